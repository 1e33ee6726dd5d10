# lib.sh - sourced by test scripts: `is WANT COMMAND...` compares standard output,
# `fails CODE TEXT COMMAND...` the exit code and a part of standard error; the rest say it themselves.
set -u
while read -r variable; do unset "$variable"; done < <(compgen -e | grep '^WEFT_' | grep -v '^WEFT_TEST_')
failures=0
check=0

not_so() {
    failures=$((failures + 1))
    printf 'not so: %s\n' "$*"
}

is() {
    local want=$1 have
    shift
    check=$((check + 1))
    have=$("$@" 2>&1) || not_so "exit code $? of $*"
    if [[ $have != "$want" ]]; then
        not_so "$*"
        diff <(printf '%s\n' "$want") <(printf '%s\n' "$have")
    fi
}

contains() {
    local want=$1 have
    shift
    check=$((check + 1))
    have=$("$@" 2>&1) || not_so "exit code $? of $*"
    if [[ $have != *"$want"* ]]; then not_so "\"$want\" in what $* prints: $have"; fi
}

fails() {
    local code=$1 text=$2 have status
    shift 2
    check=$((check + 1))
    have=$("$@" 2>&1 >/dev/null)
    status=$?
    if ((status != code)); then not_so "exit code $status, not $code, of $*"; fi
    if [[ $have != *"$text"* ]]; then not_so "\"$text\" in what $* says: $have"; fi
}

# expect CODE TEXT COMMAND...: exits with CODE, and TEXT stands in its output or its errors.
expect() {
    local code=$1 text=$2 have status=0
    shift 2
    check=$((check + 1))
    have=$("$@" 2>&1) || status=$?
    if ((status != code)); then not_so "exit code $status, not $code, of $*: $have"; fi
    if [[ $have != *"$text"* ]]; then not_so "\"$text\" in what $* says: $have"; fi
}

# lacks TEXT COMMAND...: TEXT stands neither in its output nor in its errors.
lacks() {
    local text=$1 have
    shift
    check=$((check + 1))
    have=$("$@" 2>&1)
    if [[ $have == *"$text"* ]]; then not_so "no \"$text\" in what $* says: $have"; fi
}

# json COMMAND... -- CLAIM...: its output is JSON, `it`, of which each CLAIM, in Python, is true.
json() {
    local command=()
    while [[ $1 != -- ]]; do
        command+=("$1")
        shift
    done
    shift
    check=$((check + $#))
    "${command[@]}" 2>/dev/null | python3 -c 'import json, sys
text = sys.stdin.read()
it = json.loads(text)
wrong = [claim for claim in sys.argv[1:] if not eval(claim)]
sys.exit("\n".join(wrong + [text]) if wrong else 0)' "$@" || not_so "JSON of ${command[*]}"
}

finish() {
    echo "$check checks, $failures failures"
    exit $((failures > 0))
}
