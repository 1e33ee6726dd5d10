#!/usr/bin/env bash
# test_wrong_lines.sh WEFT BUILD - a known case that fails is reported, for every kind of line.
set -uo pipefail
weft=$1 build=$2
file=$(mktemp)
trap 'rm -f "$file"' EXIT
bad=0
here=$(dirname "$0")

fails()
{
    local output
    printf '%s\n' 'weft version' "$1" 'weft version' >"$file"
    if output=$(bash "$here/test_known.sh" "$weft" "$build" "$file" 2>&1) ||
        [[ $output != *"3 known cases, 1 failures"* || $output != *"failed: $1"* ]]; then
        printf 'this line did not fail, or was not told: %s\n%s\n' "$1" "$output"
        bad=1
    fi
}

fails "weft sim --mesh 2 --shape 4 --from 'P(sum)' --to 'P(max)'"
fails 'weft nosuch'
fails "dtensor_sim greedy 2 'f32[4] P(sum)' 'f32[4] P(max)'"
fails "dtensor_sim nosuch 2 'f32[4] R' 'f32[4] R'"
fails 'seed test_nosuch 7'
fails 'fuzz fuzz_nosuch \x00'
fails 'something else'
printf '# nothing\n' >"$file"
if bash "$here/test_known.sh" "$weft" "$build" "$file" >/dev/null 2>&1; then
    echo "a file without cases passed"
    bad=1
fi
exit $bad
