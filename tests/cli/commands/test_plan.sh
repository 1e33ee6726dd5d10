#!/usr/bin/env bash
# `weft plan`: the output for people and for programs, and messages that list the alternatives.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
plan() { "$weft" plan --mesh dp=2,tp=4 --shape 4096x4096 "$@"; }
rows=(--from "S(0),R" --to "R,S(1)")

expect 0 "1. slice over tp: no communication   S(0),R -> S(0),S(1)" plan "${rows[@]}"
# A size * takes the ranks that the other axes leave.
expect 0 "1. slice over tp: no communication   S(0),R -> S(0),S(1)" "$weft" plan -n 8 --mesh "dp=*,tp=4" --shape 4096x4096 "${rows[@]}"
expect 2 "--mesh is \"dp=*,tp=4\"; a size * needs the number of ranks: give it with -n, as in -n 8" \
    "$weft" plan --mesh "dp=*,tp=4" --shape 4096x4096 "${rows[@]}"
expect 2 "--to-mesh is \"*\"; a size * needs" "$weft" plan --mesh 8 --to-mesh "*" --shape 8 --from R --to R
expect 2 "8 ranks divided by 3" "$weft" plan -n 8 --mesh "dp=*,tp=3" --shape 4096x4096 "${rows[@]}"
expect 2 "--mesh: the mesh has 8 ranks, so --ranks 4 is too few" "$weft" plan -n 4 --mesh 2x4 --shape 4096x4096 "${rows[@]}"
expect 2 "--ranks is \"0\"; expected a number from 1" "$weft" plan -n 0 --mesh 2x4 --shape 4096x4096 "${rows[@]}"
expect 0 "2. all-gather over dp: a rank receives at most 8.0 MiB" plan "${rows[@]}"
expect 0 "at most 8.0 MiB received by a rank (1.00 of the least possible), 8.0 MiB of scratch, " plan "${rows[@]}"
# Different steps load different ranks, a strided target, and data that is already there.
expect 0 "at most 288 B received by a rank (at most 1.22 of the least possible)" "$weft" plan --mesh 2x3 --shape 7x10 \
    --dtype f32 --from "P(sum),P(sum)" --to "S(0),S(1)" --minimize bytes
json "$weft" plan --mesh 5x2 --shape 23x5x23 --from "R,SS(2,1)" --to "SS(1,7),R" --minimize bytes --json -- \
    'it["bytes_received_max"] == it["bytes_lower_bound"] == 5520 and it["exact"]'
json "$weft" plan --mesh 4x3 --to-mesh 2x2x3@0,2,3,4,5,6,7,8,9,11,12,13 --shape 96x17 --from R,R --to "R,P(sum),R" \
    --json -- 'it["bytes_received_max"] == it["bytes_received_total"] == 0'
json "$weft" plan --mesh 512x256 --shape 1000x1001 --from "S(0),S(1)" --to R,R --json -- \
    'it["exact"] is False and it["steps"][0]["exact"] is False'
expect 0 "runner-up: exchange: 43.7 ms, about 264.1 KiB received" "$weft" plan --mesh 270x270 --shape 70001x70003 \
    --from "S(0),S(1)" --to "S(1),S(0)"
expect 0 "runner-up: exchange: " plan "${rows[@]}"
expect 0 "it lost because it takes " plan "${rows[@]}"
expect 0 "it lost because it takes as long and receives 4 B more" "$weft" plan --mesh 2 --shape 5 \
    --from "S(0)" --to "P(max)"
expect 0 "it lost because it costs the same and has more steps" "$weft" plan --mesh 2 --shape 8 --from "O(1)" \
    --to "P(max)"
# Scratch is counted for 256 ranks that exchange, and estimated for more.
many=("$weft" plan --shape 6144x64 --from "B(0;4096,1024,1024)" --to "S(0)" --planner exchange)
expect 0 "), 0 B of scratch, " "${many[@]}" --mesh 256
expect 0 "), about 12.0 KiB of scratch, " "${many[@]}" --mesh 257
expect 0 ", about 12.0 KiB of scratch, " "${many[@]}" --mesh 257 --svg -
json "${many[@]}" --mesh 256 --json -- 'it["scratch_exact"] and it["steps"][0]["scratch_exact"] and it["exact"]'
json "${many[@]}" --mesh 257 --json -- \
    'not it["scratch_exact"] and not it["steps"][0]["scratch_exact"] and it["exact"] and it["steps"][0]["exact"]'
expect 0 " by the cost table h100" plan "${rows[@]}"
expect 0 " by the cost table cpu" plan "${rows[@]}" --costs cpu
expect 0 "nothing to do" plan --from "R,R" --to "R,R"
expect 0 "exchange between the meshes" plan --from "R,R" --to "S(0),R" --to-mesh dp=2,tp=4@8-15
expect 1 "every plan between these two meshes needs an exchange, and the options exclude: exchange; do not exclude exchange" \
    plan --from "R,R" --to "S(0),R" --to-mesh dp=2,tp=4@8-15 --without exchange
expect 0 "nothing to do" plan --from "S(0),S(0)" --to "S(0)" --to-mesh 8
# Both contributions to an average are sent, to each of two shards.
expect 0 "19.5 KiB of scratch" "$weft" plan --mesh 1 --to-mesh 2x2@2,3,5,4 --dtype i64 --shape 13x12x8 --from "S(0)" \
    --to "P(avg),S(2)" --costs dtensor --planner exchange
json plan --from "S(0),R" --to "S(0)" --to-mesh 8 --json -- \
    'it["steps"][0]["kind"] == "slice" and it["steps"][0]["mesh"] == "dp=2,tp=4"' \
    'it["bytes_received_max"] == 0 and it["peak_bytes"] == 0'
expect 0 "runner-up: exchange: " plan --from "S(0),R" --to "S(0)" --to-mesh 8
expect 0 "all-gather over axes 0 and 1" "$weft" plan --mesh 2x4 --shape 4096x64 --from "S(0),S(0)" \
    --to "R,R"

json plan "${rows[@]}" --json -- \
    '[s["kind"] for s in it["steps"]] == ["slice", "all-gather"]' \
    '[s["axes"] for s in it["steps"]] == [[1], [0]]' \
    '(it["steps"][0]["from"], it["steps"][1]["to"]) == ("S(0),R", "R,S(1)")' \
    '[(s["bytes_sent"], s["bytes_received"]) for s in it["steps"]] == [(0, 0), (8 << 20, 8 << 20)]' \
    'it["bytes_received_max"] == 8 << 20 and it["bytes_received_total"] == 64 << 20' \
    'it["peak_bytes"] == 8 << 20 and it["cost_ns"] > 0 and it["plan_ns"] > 0' \
    'it["shape"] == [4096, 4096] and it["dtype"] == "f32" and it["costs"] == "h100"' \
    '(it["mesh"], it["to_mesh"], it["from"], it["to"]) == ("dp=2,tp=4", "dp=2,tp=4", "S(0),R", "R,S(1)")' \
    'it["runner_up"]["steps"][0]["kind"] == "exchange" and it["runner_up"]["cost_ns"] > it["cost_ns"]' \
    'it["runner_up_reason"].startswith("takes ") and it["runner_up_reason"].endswith(" longer")'
json "$weft" plan --mesh 2 --shape 5 --from "S(0)" --to "P(max)" --json -- \
    'it["runner_up_reason"] == "takes as long and receives 4 B more"'
json plan --from "R,R" --to "R,R" --costs cpu --json -- 'it["runner_up"] is None and it["costs"] == "cpu"' \
    'it["runner_up_reason"] is None' \
    'it["steps"] == [] and it["bytes_received_total"] == 0'
json "$weft" plan --mesh 3 --shape 7 --from "S(0)" --to R --json -- \
    'it["steps"][0]["bytes_received"] == 24 and it["steps"][0]["bytes_sent"] == 24' \
    'it["bytes_received_max"] == 24 and it["bytes_received_total"] == 16 + 16 + 24'
json "$weft" plan --mesh 2 --to-mesh 3@2-4 --shape 4 --from R --to R --planner exchange --json -- \
    'it["steps"][0]["axes"] == [] and it["steps"][0]["bytes_sent"] == 32' \
    'it["bytes_received_total"] == 48'
json "$weft" plan --mesh 64x64x32 --shape 8192x8192 --from "S(0),R,R" --to "R,R,R" --json -- \
    'it["bytes_received_total"] == (8192 * 8192 * 4 * 63 // 64) * 64 * 64 * 32'
json "$weft" plan --mesh 4 --shape 2048x2048 --from P --to R --dtype f32 --to-dtype bf16 --json -- \
    '[s["kind"] for s in it["steps"]] == ["reduce-scatter", "all-gather"]' \
    '[s["cast"] for s in it["steps"]] == ["after", None]' \
    '[s["bytes_received"] for s in it["steps"]] == [12 << 20, 6 << 20]' \
    '(it["dtype"], it["to_dtype"]) == ("f32", "bf16") and it["bytes_received_max"] == 18 << 20'
expect 0 "f32 S(0) -> bf16 S(1), cast before it travels" "$weft" plan --mesh 2 --shape 64x64 --from "S(0)" \
    --to "S(1)" --to-dtype bf16
expect 0 "1. cast: no communication   f32 R -> bf16 R" "$weft" plan --mesh 2 --shape 64 --from R --to R \
    --to-dtype bf16
contains 'bf16 S(1)\n2' "$weft" plan --mesh 2 --shape 64x64 --from "S(0)" --to "S(1)" --to-dtype bf16 --dot
contains 'over axis 0, cast first' "$weft" plan --mesh 2 --shape 64x64 --from "S(0)" --to "S(1)" --to-dtype bf16 --dot
contains '>cast<' "$weft" plan --mesh 2 --shape 64x64 --from R --to R --to-dtype bf16 --svg -
expect 1 "f16, bf16, f32, f64, f8e4m3 and f8e5m2" "$weft" plan --mesh 2 --shape 64 --from R --to R --dtype f32 \
    --to-dtype i32
expect 1 "P(sum) of f32 cannot become P(sum) of f16" "$weft" plan --mesh 2 --shape 64 --from P --to P --to-dtype f16
expect 2 "did you mean bf16?" "$weft" plan --mesh 2 --shape 64 --from R --to R --to-dtype bfloat16
for planner in search exchange; do
    json plan "${rows[@]}" --planner $planner --json -- 'it["steps"][-1]["to"] == "R,S(1)"'
done
for minimize in time bytes memory; do
    json plan --from "P,P" --to "R,S(1)" --minimize $minimize --json -- 'it["cost_ns"] > 0'
done
json "$weft" bench plan --budget-ms 1 --json -- 'len(it["rows"]) == 10' \
    'it["rows"][0]["shape"] == [4096, 4096] and it["rows"][4]["shape"] == [8192, 8192, 64]'
contains "digraph" plan "${rows[@]}" --dot
contains "slice over tp\\nno communication; " plan "${rows[@]}" --dot
expect 0 "wrote $here/plan.svg" plan "${rows[@]}" --svg "$here/plan.svg"
expect 0 "1. slice over tp: no communication   S(0),R -> S(0),S(1)" plan "${rows[@]}" --svg "$here/plan.svg"
contains "<svg" cat "$here/plan.svg"
contains ">slice over tp<" cat "$here/plan.svg"
contains ">no communication; " cat "$here/plan.svg"
contains ">all-gather over dp<" cat "$here/plan.svg"
contains ">a rank receives at most 8.0 MiB; " cat "$here/plan.svg"
lacks "receives 0 B" cat "$here/plan.svg"
contains ">0,4</text>" cat "$here/plan.svg"
lacks "do not fit" cat "$here/plan.svg"
expect 0 "; rank numbers do not fit" "$weft" plan --mesh 64 --shape 64x64 --from "S(0)" --to "S(1)" --svg -
expect 2 "give only one of --json and --svg" \
    plan "${rows[@]}" --svg "$here/other.svg" --json
expect 2 "give only one of --json and --dot" plan "${rows[@]}" --dot --json
expect 2 "give only one of --dot and --svg" plan "${rows[@]}" --dot --svg -

expect 1 "no plan stays within memory_limit, 1 byte of scratch; the minimum is 8388608 (8.0 MiB)" \
    plan "${rows[@]}" --memory-limit 1
for limit in 8388608 8192K 8192KiB 8M 8MB 8MiB; do
    expect 0 "8.0 MiB of scratch" plan "${rows[@]}" --memory-limit $limit
done
expect 1 "within memory_limit, 7340032 bytes" plan "${rows[@]}" --memory-limit 7MiB
expect 1 "no plan between the meshes stays within memory_limit, 1 byte of scratch; " \
    plan --from "P,R" --to "R,R" --to-mesh dp=2,tp=4@8-15 --memory-limit 1
expect 1 "weft_plan_create: axis 0: P(max) cannot become P(sum); go through R or a shard" plan --from "P(max),R" --to "P,R"
expect 2 "it cannot be combined with P(max)" plan --from "P(max),P" --to "R,R"
expect 2 "1 placement, but the mesh dp=2,tp=4 has 2 axes (dp, tp); write one placement for each axis" plan --from "S(0)" --to "R,R"
expect 2 "--to: placements \"R,S(0),R\", position 8: 3 placements, but the mesh dp=2,tp=4 has 2 axes (dp, tp)" plan --from "R,R" --to "R,S(0),R"
expect 2 "the tensor has 2 dimensions; its dimensions are 0 and 1" plan --from "S(0),S(5)" --to "R,R"
expect 2 "\"X\" is not a placement; the placements are R, S(dim), SS(dim,factor), B(dim;sizes), G(dim;sizes), P(op) and O(coordinate)" plan --from "S(0),X" --to "R,R"
expect 2 "--planner is \"greedy\"; expected one of search, exchange" \
    plan "${rows[@]}" --planner greedy
expect 2 "--minimize is \"latency\"; expected one of time, bytes, memory" plan "${rows[@]}" --minimize latency
expect 2 "--memory-limit is \"0\"; expected a size" plan "${rows[@]}" --memory-limit 0
expect 2 "--memory-limit is \"8MiBs\"; expected a size" plan "${rows[@]}" --memory-limit 8MiBs
expect 2 "expected a size" plan "${rows[@]}" --memory-limit 9999999999G
expect 2 "--dtype: \"float32\" is not a dtype; the dtypes are bool, i8, " plan "${rows[@]}" --dtype float32
expect 2 "--from: placements \"X,R\", position 1: \"X\" is not a placement" plan --from "X,R" --to "R,R"
expect 2 "--to: placements \"R,S\", position 4: expected '(' and a dimension, as in S(0)" plan --from "R,R" --to "R,S"
expect 2 "--to: placements \"S(5),R\": placement 0, S(5): the tensor has" plan --from "R,R" --to "S(5),R"
expect 2 "--to-mesh: mesh \"2y\", position 2" plan --from "R,R" --to R --to-mesh 2y
expect 2 "--shape: shape \"8z\", position 2" "$weft" plan --mesh 2 --shape 8z --from R --to R
expect 2 "--from: placements \"S(0)S(1)\", position 5: expected ',' between placements after \"S(0)\", found 'S'" \
    plan --from "S(0)S(1)" --to "R,R"
expect 2 "--to is missing" plan --from "R,R"
expect 2 "did you mean f32?" plan "${rows[@]}" --dtype float32
expect 2 "\"Shard\" is not a placement; the placements are R, S(dim), SS(dim,factor), B(dim;sizes), G(dim;sizes), P(op) and O(coordinate); did you mean S(0)?" \
    plan --from "Shard(0),R" --to "R,R"
expect 2 "did you mean R?" plan --from "S(0),Replicate()" --to "R,R"
expect 2 "unknown option --costz; did you mean --costs?" plan "${rows[@]}" --costz cpu
expect 3 "No such file or directory" plan "${rows[@]}" --svg /nowhere/at/all.svg
expect 0 "example:" plan --help
finish
