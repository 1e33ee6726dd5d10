#!/usr/bin/env bash
# `weft bench trace`: every operation without records, with the recorder, and with an observer.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
export WEFT_BACKEND=gloo-cpu
trace() { "$weft" bench trace --budget-ms 1 "$@"; }

json trace --json -- 'it["bench"] == "trace" and it["ranks"] == 2' 'len(it["rows"]) == 9' \
    '[r["records"] for r in it["rows"][:3]] == ["off", "recorder", "observer"]' \
    '[r["bytes"] for r in it["rows"][::3]] == [8, 8, 65536]' \
    'all(r["added_ns"] == 0 for r in it["rows"] if r["records"] == "off")' \
    'all(0 < r["min_ns"] <= r["median_ns"] for r in it["rows"])'
WEFT_RECORDER=0 expect 0 'recorder and observer' trace --ranks 1
expect 2 '--ranks is' trace --ranks 0
expect 3 'nosuch' trace --backend nosuch
finish
