#!/usr/bin/env bash
# `weft bench symm`: a line for every operation and size, and complaints about what makes no sense.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
export WEFT_BACKEND=gloo-cpu
symm() { "$weft" bench symm --budget-ms 1 "$@"; }

json symm --max-bytes 600 --json -- 'it["bench"] == "symm" and it["ranks"] == 2' \
    '[r["bytes"] for r in it["rows"] if r["op"] == "get"] == [8, 64, 512]' \
    '[r["op"] for r in it["rows"][-2:]] == ["signal, wait", "barrier"]' \
    'all((r["gbps"] is None) == (r["bytes"] == 0) for r in it["rows"])' \
    'all(r["gbps"] > 0 for r in it["rows"] if r["bytes"] > 0)' \
    'all(0 < r["min_ns"] <= r["median_ns"] <= r["p99_ns"] for r in it["rows"])'
json symm --max-bytes 8 --ranks 3 --json -- 'len(it["rows"]) == 5' 'it["ranks"] == 3'
expect 0 "4.0 KiB" symm --max-bytes 4096
expect 0 "1 rank, each on its right neighbour's memory" symm --ranks 1 --max-bytes 8
expect 2 "--max-bytes is" symm --max-bytes 7
expect 3 "nosuch" symm --backend nosuch
WEFT_CPU_HEAP=1M expect 3 "bytes" symm --max-bytes 16MiB
expect 0 "example:" symm --help
finish
