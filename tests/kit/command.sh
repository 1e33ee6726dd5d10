#!/usr/bin/env bash
# command.sh WEFT EXAMPLE WRONG_FOLDER - exit codes and reports of `weft conform`.
set -uo pipefail
weft=$1 example=$2 wrong=$3
bad=0

# expect CODE PATTERN ARGUMENTS...: the exit code, and a line that matches PATTERN.
expect()
{
    local code=$1 pattern=$2 output status=0
    shift 2
    output=$("$weft" conform "$@" 2>&1) || status=$?
    if ((status != code)) || ! grep -qE -- "$pattern" <<<"$output"; then
        printf 'weft conform %s\n  wanted exit code %d and a line like: %s\n  got exit code %d and:\n%s\n' \
            "$*" "$code" "$pattern" "$status" "$output"
        bad=1
    fi
}

expect 0 '^load +7 passed$' "$example" --level load
expect 0 '^passed: 1 case in' "$example" --only load/probe --ranks 2
expect 0 '^passed: 6 cases' "$example" --only load --skip load/probe --ranks 2
expect 0 '^passed: ' "$example" --level memory --threads
expect 0 '^stress ' --levels
expect 1 'no case was run; no case has the name load/nothing' "$example" --only load/nothing
expect 1 'libweft_plugin_nowhere.so: No such file' ./libweft_plugin_nowhere.so
expect 1 'libweft_plugin_nowhere.so: No such file' libweft_plugin_nowhere.so
expect 1 'libweft_plugin_nosuch.so is not in' nosuch
expect 1 'ended by signal|ended the process' "$wrong/libweft_plugin_wrong-crashes.so" --only collectives/gather/i8
expect 1 'ended the process, with exit code 3' "$wrong/libweft_plugin_wrong-exits.so" --only p2p/plain/c64
expect 1 'hangs: after .* rank 0, 1, 2 had not returned' "$wrong/libweft_plugin_wrong-ignores-timeout.so" \
    --only errors/timeout/collective --comm-timeout 1
expect 1 'run one alone: weft conform .* --only' "$wrong/libweft_plugin_wrong-sum.so" \
    --only collectives/all_reduce/f32
expect 1 'rank 0: 100 all_reduces in a row: WEFT_ERR_INVALID .this thread opened no device' \
    "$wrong/libweft_plugin_wrong-one-thread.so" --only stress/threads
expect 2 'give one plugin'
expect 2 'there is no level "memry"; did you mean "memory"\?' "$example" --level memry
expect 2 'there is no level "foo"; the levels are load, claims, .* pull and stress' "$example" --level foo
expect 2 'did you mean "memory"\? the levels are load, ' "$example" --level memry
expect 2 'there is no level "colectives"; did you mean' "$example" --only colectives/all_reduce
expect 2 'there is no level "errrs"; did you mean' "$example" --skip errrs/killed
expect 2 'expected a number from 1 to 32' "$example" --ranks 0
expect 2 'unknown option --timeout; did you mean --comm-timeout\?' "$example" --timeout 1
expect 2 'unknown option --without; did you mean --skip\?' "$example" --without load
expect 2 'expected NAME=VALUE' "$example" --rank-env '{rank}=x'

# A crash in the middle does not end the run: what comes after it is run by a new team.
report=$("$weft" conform "$wrong/libweft_plugin_wrong-crashes.so" --level collectives)
grep -qE '^collectives +[0-9]{4} passed, .*1 failed.*, [0-9]+ not run after that' <<<"$report" || {
    printf 'after a crash:\n%s\n' "$report"
    bad=1
}

report=$("$weft" conform "$wrong/libweft_plugin_wrong-sum.so" --only collectives/all_reduce/f32 --json)
python3 -c '
import json, sys
report = json.load(sys.stdin)
assert report["conforms"] is False and report["failed"] == len(report["failures"]) > 0, report
assert report["plugin"] == "wrong-sum" and report["ranks"] == 4 and report["ranks_as"] == "processes"
assert report["stopped"] is None and report["passed_over"] == 0 and report["seconds"] > 0
levels = {level["name"]: level for level in report["levels"]}
assert levels["collectives"]["failed"] == report["failed"] and levels["load"]["passed"] == 0
first = report["failures"][0]
assert first["case"].startswith("collectives/all_reduce/f32/sum") and "expected" in first["text"]
' <<<"$report" || bad=1

# Values of --rank-env may contain the rank.
"$weft" conform "$example" --only load/probe --ranks 2 --rank-env 'WEFT_BACKEND=rank{rank}' >/dev/null || bad=1
exit $bad
