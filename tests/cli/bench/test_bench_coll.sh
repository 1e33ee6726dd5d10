#!/usr/bin/env bash
# `weft bench coll`: a row for every cell asked for, and complaints about what makes no sense.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
export WEFT_BACKEND=gloo-cpu
coll() { "$weft" bench coll --budget-ms 1 "$@"; }

json coll --sizes 8,1KiB,100K --json -- \
    'it["bench"] == "coll" and it["memcpy_gbps"] > 0' \
    '[r["op"] for r in it["rows"][:5]] == ["all_reduce", "all_gather", "reduce_scatter",
        "all_to_all", "broadcast"]' \
    '[r["bytes"] for r in it["rows"][::5]] == [8, 1024, 102400]' \
    'all(r["dtype"] == "f32" and r["ranks"] == 2 and r["memory"] == "alloc" for r in it["rows"])' \
    'all(0 < r["min_ns"] <= r["median_ns"] <= r["p99_ns"] for r in it["rows"])' \
    'all(r["memcpy_gbps"] > 0 and r["samples"] >= 3 for r in it["rows"])'
json coll --min-bytes 8 --max-bytes 64 --op broadcast,all_gather --dtype bf16 --ranks 3 \
    --buffers malloc --json -- \
    '{r["op"] for r in it["rows"]} == {"all_gather", "broadcast"}' \
    '[r["bytes"] for r in it["rows"] if r["op"] == "broadcast"] == [8, 16, 32, 64]' \
    '[r["bytes"] for r in it["rows"] if r["op"] == "all_gather"] == [6, 12, 30, 60]' \
    'all(r["dtype"] == "bf16" and r["ranks"] == 3 and r["memory"] == "malloc" for r in it["rows"])'
# 8 B are less than an element for each rank, and become 16 B, which are measured once
json coll --ranks 4 --op all_gather,all_reduce --max-bytes 64 --json -- \
    '[r["bytes"] for r in it["rows"] if r["op"] == "all_gather"] == [16, 32, 64]' \
    '[r["bytes"] for r in it["rows"] if r["op"] == "all_reduce"] == [8, 16, 32, 64]'
json coll --ranks 3 --hosts 2 --sizes 8,64KiB --json -- 'len(it["rows"]) == 10 and it["rows"][0]["ranks"] == 3'
expect 2 "--hosts" coll --ranks 2 --hosts 3 --sizes 8
json coll --ranks 1 --sizes 8 --json -- 'len(it["rows"]) == 5'
expect 0 "all_reduce of f32, 2 ranks, memory from weft_alloc" coll --op all_reduce --sizes 4096
expect 0 "4.0 KiB" coll --op all_reduce --sizes 4096

expect 2 "--op is \"reduce_all\"; expected a list of all_reduce" coll --op reduce_all
expect 2 "--sizes is \"8,\"; expected a list" coll --sizes 8,
expect 2 "--sizes is \"0\"" coll --sizes 0
expect 2 "expected a size from --min-bytes on" coll --min-bytes 64 --max-bytes 8
expect 2 "--dtype: \"f31\" is not a dtype; the dtypes are" coll --dtype f31
expect 2 "--buffers is \"shm\"; expected alloc or malloc" coll --buffers shm
expect 2 "did you mean --ranks?" coll --rank 2
WEFT_BACKEND=nothing expect 3 "nothing" coll --sizes 8
# ranks that a launcher started: rank 0 prints, and more rows than a pipe holds do not block it
sizes=$(seq -s, 8 8 320)
json "$weft" run -n 2 --no-prefix --timeout 300 "$weft" bench coll --budget-ms 1 --op all_reduce,broadcast \
    --sizes "$sizes" --json -- 'len(it["rows"]) == 80 and it["rows"][0]["ranks"] == 2'
json "$weft" run -n 3 --no-prefix "$weft" bench symm --budget-ms 1 --max-bytes 64 --json -- 'it["ranks"] == 3'
json "$weft" run -n 3 --no-prefix "$weft" bench batch --budget-ms 1 --tensors 2 --json -- \
    'len(it["rows"]) == 5 and it["rows"][0]["ranks"] == 3'
# ranks that a launcher started, which here pretends that each has a host of its own
each_its_host() { "$weft" run -n 2 sh -c "WEFT_HOST_ID=host\$WEFT_RANK exec \"\$@\"" sh "$@"; }
export WEFT_CPU_NETWORK=gloo
WEFT_GLOO_LIB=/nonexistent.so expect 3 "without Gloo, gloo-cpu serves one host only" \
    each_its_host "$weft" bench coll --budget-ms 1 --sizes 8
open=$(mktemp -d)
touch "$open/libgloo.so"
chmod 0777 "$open"
WEFT_GLOO_LIB=$open/libgloo.so expect 3 "gloo-cpu serves one host only: $open belongs to user $(id -u) and has mode 0777" \
    each_its_host "$weft" bench coll --budget-ms 1 --sizes 8
rm -r "$open"
unset WEFT_CPU_NETWORK
WEFT_CPU_NETWORK=ucx WEFT_UCX_LIB=/nonexistent.so expect 3 "UCX" each_its_host "$weft" bench coll --budget-ms 1 --sizes 8
WEFT_GLOO_LIB=/nonexistent.so WEFT_UCX_LIB=/nonexistent.so expect 3 "without UCX and Gloo, gloo-cpu serves one host only" \
    each_its_host "$weft" bench coll --budget-ms 1 --sizes 8
WEFT_CPU_NETWORK=tcp expect 1 "WEFT_CPU_NETWORK is \"tcp\"; expected \"auto\", \"ucx\" or \"gloo\"" coll --sizes 8
expect 0 "example:" coll --help
finish
