#!/usr/bin/env bash
# test_known.sh WEFT BUILD FILE - runs the lines of FILE, which tests/data/known.txt explains; prints
# those that fail, and exits with 1 if there are any.
set -uo pipefail
weft=$1 build=$2 file=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
lines=0 failures=0

# One line in the words of a shell; false if it fails or means nothing.
run_line()
{
    local words=()
    eval "words=(${1//\\/\\\\})"
    case ${words[0]} in
    weft) "$weft" "${words[@]:1}" ;;
    dtensor_sim) "$build/tests/dtensor_sim" "${words[@]:1}" ;;
    seed) "$(dirname "$0")/../../../ci/soak.py" "$build" --once "${words[@]:1}" ;;
    fuzz)
        rm -rf "$folder/input" && mkdir "$folder/input"
        printf '%b' "${words[2]:-}" >"$folder/input/known"
        "$build/tests/${words[1]}" "$folder/input" 0
        ;;
    *) echo "a line begins with weft, dtensor_sim, seed or fuzz" && return 1 ;;
    esac
}

while IFS= read -r line || [[ -n $line ]]; do
    if [[ -z $line || $line == \#* ]]; then continue; fi
    lines=$((lines + 1))
    if ! output=$(run_line "$line" 2>&1 </dev/null); then
        failures=$((failures + 1))
        printf 'failed: %s\n%s\n' "$line" "$output"
    fi
done <"$file"
echo "$lines known cases, $failures failures"
((lines > 0 && failures == 0))
