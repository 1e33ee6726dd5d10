#!/usr/bin/env bash
# expect.sh WEFT PLUGIN CASE OPTIONS - the conformance kit fails on PLUGIN, names CASE, and fails
# again when a case it named is run alone.
set -euo pipefail
weft=$1 plugin=$2 wanted=$3
read -ra options <<<"$4"

status=0
report=$("$weft" conform "$plugin" "${options[@]}") || status=$?
echo "$report"
if ((status != 1)); then
    echo "exit code $status, not 1: the kit did not find out"
    exit 1
fi
named=$(sed -n 's/^FAILED //p' <<<"$report" | grep -E "^$wanted(/|\$)") || {
    echo "the kit did not name $wanted"
    exit 1
}
named=${named%%$'\n'*} # the first, if several are under it

timeout=()
if [[ $4 == *--comm-timeout* ]]; then timeout=(--comm-timeout "${4##*--comm-timeout }"); fi
status=0
report=$("$weft" conform "$plugin" --only "$named" "${timeout[@]}") || status=$?
if ((status != 1)) || ! grep -q "^FAILED $named" <<<"$report"; then
    echo "$report"
    echo "run alone, $named did not fail"
    exit 1
fi
echo "as wanted: $named fails, also alone"
