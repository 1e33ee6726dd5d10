# lib.sh - sourced by the scripts here: `is WANT COMMAND...` compares standard output,
# `fails CODE TEXT COMMAND...` the exit code and a part of standard error.
set -u
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

fails() {
    local code=$1 text=$2 have status
    shift 2
    check=$((check + 1))
    have=$("$@" 2>&1 >/dev/null)
    status=$?
    if ((status != code)); then not_so "exit code $status, not $code, of $*"; fi
    if [[ $have != *"$text"* ]]; then not_so "\"$text\" in what $* says: $have"; fi
}

finish() {
    echo "$check checks, $failures failures"
    exit $((failures > 0))
}
