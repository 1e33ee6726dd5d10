#!/usr/bin/env bash
# `weft sim`, `weft redistribute` and `weft bench redistribute`: right results, files, complaints.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
export WEFT_BACKEND=gloo-cpu
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

# Cases that other systems get wrong: uneven nested shards, strided ones, another mesh.
for size in 5 6 7 9; do
    expect 0 "every element of f32[$size] is right on all 4 ranks of 2x2" \
        "$weft" sim --mesh 2x2 --shape $size --from "S(0),S(0)" --to "R,R"
    expect 0 "is right" "$weft" sim --mesh 2x2 --shape $size --from "SS(0,2),S(0)" --to "R,R"
    expect 0 "is right on all 4 ranks of 2x2, by" \
        "$weft" redistribute -n 4 --mesh 2x2 --shape $size --from "S(0),S(0)" --to "R,R" --iters 3
done
expect 0 "is right on all 2 ranks of 2@2-3, by" "$weft" redistribute --mesh 2 --to-mesh 2@2-3 \
    --shape 8x3 --from "S(0)" --to "S(1)" --iters 2
expect 0 "is right" "$weft" redistribute -n 3 --mesh 3 --shape 7x5 --dtype bf16 --from P \
    --to "S(1)" --iters 2 --packed
expect 0 "is right" "$weft" redistribute --mesh 2x2 --shape 9 --dtype i32 --from "P(sum),P(avg)" \
    --to "R,S(0)" --iters 2
expect 0 "is right" "$weft" sim --mesh 64x32 --shape 130x70 --from "S(0),S(1)" --to "S(1),S(0)"
# Another dtype on the way: rounded once, after the reduction, and checked as such.
expect 0 "every element of bf16[40,40] is right" "$weft" sim --mesh 2x3 --shape 40x40 --from "P,S(0)" --to "S(1),R" \
    --to-dtype bf16
for packed in "" --packed; do
    expect 0 "every element of bf16[40,40] is right" "$weft" redistribute --mesh 3 --shape 40x40 --from "S(0)" \
        --to "S(1)" --to-dtype bf16 --iters 2 $packed
    expect 0 "is right" "$weft" redistribute --mesh 2 --to-mesh 2@1-2 --shape 40x7 --from P --to "S(1)" \
        --dtype i8 --to-dtype i32 --iters 2 $packed
done
# The plan assumes that ranks read each other's memory; the text has what the run takes.
expect 0 "packed, with 512 B of scratch" "$weft" redistribute --mesh 4 --shape 49x7 --from "S(0)" --to "G(1;3,1,3,0)" --packed
expect 0 "nothing to do" "$weft" sim --mesh 2 --shape 4 --from R --to R

for planner in search exchange; do
    expect 0 "is right" "$weft" sim --mesh 4 --shape 16 --from "S(0)" --to "P(avg)" --planner $planner
    expect 0 "is right" "$weft" sim --mesh 2x3 --shape 7 --dtype i64 --from "S(0)[1],S(0)[0]" \
        --to "R,P(sum)" --planner $planner
    expect 0 "is right" "$weft" redistribute --mesh 2x3 --shape 7x5 --from "S(0)[1],S(0)[0]" \
        --to "R,S(1)" --planner $planner --iters 2
done

json "$weft" sim --mesh 2 --shape 4x4 --from "S(0)" --to "S(1)" --json -- \
    'it["right"] and it["from"] == "S(0)" and it["to"] == "S(1)" and it["backend"] is None'
json "$weft" redistribute --mesh 2 --shape 64x64 --from "S(0)" --to "S(1)" --iters 5 --json -- \
    'it["right"] and it["ranks"] == 2 and it["runs"] == 5' \
    '0 < it["min_ns"] <= it["median_ns"] and it["limit_ns"] > 0 and it["gbps"] > 0'
# The plan's keys are those of `weft plan --json`, and have its values.
python3 - "$weft" <<'END' || not_so "sim and redistribute have the keys of plan"
import json, subprocess, sys
options = ["--mesh", "2x2", "--shape", "64x64", "--from", "S(0),R", "--to", "R,S(1)", "--costs", "cpu", "--json"]
plan, sim, run = (json.loads(subprocess.check_output([sys.argv[1], command, *options]))
                  for command in ("plan", "sim", "redistribute"))
for other in sim, run:
    for key in plan:
        assert key in other, key
        assert key == "plan_ns" or plan[key] == other[key], (key, plan[key], other[key])
    assert other["steps"] and other["bytes_received_max"] > 0 and other["cost_ns"] > 0 and other["runner_up"]
    assert other["plan_ns"] > 0 and other["ranks"] == 4 and other["right"] is True
assert set(sim) == set(run) and sim["gbps"] is None and sim["one_sided"] is None, set(sim) ^ set(run)
END
check=$((check + 1))
# A plan whose JSON does not fit into one write to a pipe.
axes=$(python3 -c 'print(",".join(31 * name + "=" + ("2" if name < "d" else "1") for name in "abcdefgh"))')
json "$weft" redistribute --mesh "$axes" --shape 16x16x16 --from "S(0),S(1),P,P,P,P,P,P" --to "S(1),S(0),S(1),R,R,R,R,R" \
    --without exchange --iters 1 --json -- 'len(text) > 4096 and it["right"] and it["ranks"] == 8' 'len(it["steps"]) > 1'
json "$weft" bench redistribute --rows 16 --budget-ms 1 --json -- \
    'it["bench"] == "redistribute" and len(it["rows"]) == 5' \
    'all(r["median_ns"] > 0 and r["limit_ns"] > 0 and r["ranks"] == 2 for r in it["rows"])' \
    'all(r["mesh"] == "2" and r["shape"] == [16, 16] for r in it["rows"])' \
    '[(r["from"], r["to"]) for r in it["rows"]][:2] == [("S(0)", "R"), ("S(0)", "S(1)")]'
json "$weft" bench batch --tensors 20 --size 8 --budget-ms 1 --json -- \
    'it["bench"] == "batch" and len(it["rows"]) == 5' \
    'all(r["median_ns"] > 0 and r["alone_ns"] > 0 and r["tensors"] == 20 for r in it["rows"])' \
    '[r["together"] for r in it["rows"]] == [20, 20, 20, 20, 0]'
json "$weft" bench move --budget-ms 1 --json -- \
    'it["bench"] == "move" and [r["kept"] for r in it["rows"]] == [1, 1000]'
json "$weft" bench apply --budget-ms 1 --json -- \
    'it["bench"] == "apply" and [r["inputs"] for r in it["rows"]] == [3, 3, 2, 7500]' \
    'all(r["median_ns"] > 0 for r in it["rows"])'
expect 0 "besides the kernel" "$weft" bench apply --budget-ms 1
expect 0 "more than weft_redistribute" "$weft" bench move --budget-ms 1
expect 0 "as one plan" "$weft" bench batch --tensors 3 --ranks 3 --budget-ms 1
expect 0 "P -> S(0)" "$weft" bench redistribute --rows 16,17 --budget-ms 1 --ranks 3
# Rows are printed as they are measured: those before a failure are there.
WEFT_CPU_HEAP=8M expect 3 "R -> S(1)      16x16" "$weft" bench redistribute --rows 16,65536 --budget-ms 1
check=$((check + 1)) # a name that is nothing is told of by the first job of several
((1 == $(WEFT_BACKEND=nothing,gloo-cpu "$weft" bench redistribute --rows 16 --budget-ms 1 2>&1 >/dev/null |
    grep -c "gloo-cpu serves"))) || not_so "the choice of the backend is told once"

# Files as NumPy reads them: a header that ends on a multiple of 64, then the elements.
for how in sim redistribute; do
    expect 0 "is right" "$weft" $how --mesh 2 --shape 3x2 --from R --to "S(0)" --dump "$here/$how"
    check=$((check + 1))
    python3 - "$here/$how" <<'END' || not_so "files of $how"
import ast, struct, sys
for rank, shape, values in (0, (2, 2), (0, 1, 2, 3)), (1, (1, 2), (4, 5)):
    data = open(f"{sys.argv[1]}/rank-{rank}.npy", "rb").read()
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    assert data[:8] == b"\x93NUMPY\x01\x00" and (10 + length) % 64 == 0
    assert header == {"descr": "<f4", "fortran_order": False, "shape": shape}, header
    assert struct.unpack(f"<{len(values)}f", data[10 + length:]) == values
END
done

expect 0 "is right" "$weft" sim -n 4 --mesh "*x2" --shape 4x4 --from "S(0),R" --to "R,S(1)"
expect 2 "--ranks 2 is too few" "$weft" redistribute -n 2 --mesh 2x2 --shape 4 --from "R,R" --to "R,R"
expect 2 "the meshes have 2147483648 ranks, and the command starts at most 256" "$weft" redistribute --mesh 2 \
    --to-mesh 2@2147483646-2147483647 --shape 4 --from "S(0)" --to R
RANK=1 WORLD_SIZE=4 expect 2 "rank 1 of 4 of a job that torchrun started, but the command starts" \
    "$weft" redistribute -n 2 --mesh 2 --shape 4 --from R --to R
RANK=1 WORLD_SIZE=4 WEFT_LAUNCHER=none expect 0 "nothing to do" \
    "$weft" redistribute -n 2 --mesh 2 --shape 4 --from R --to R
expect 2 "--mesh is missing" "$weft" redistribute -n 2
expect 2 "--to is missing" "$weft" sim --mesh 2 --shape 4 --from R
expect 1 "cannot become" "$weft" sim --mesh 2 --shape 4 --from "P(min)" --to "P(max)"
expect 1 "cannot become" "$weft" redistribute --mesh 2 --shape 4 --from "P(min)" --to "P(max)"
expect 3 "nothing" "$weft" redistribute --mesh 2 --shape 4 --from R --to R --backend nothing
expect 3 "the backend option is \"glooo\"" "$weft" redistribute --mesh 4 --shape 4 --from R --to "S(0)" \
    --backend glooo
check=$((check + 1))
doubled=$("$weft" redistribute --mesh 4 --shape 4 --from R --to "S(0)" --backend glooo 2>&1)
if [[ $doubled =~ rank\ [0-9]+:\ rank ]]; then not_so "a rank named once: $doubled"; fi
expect 2 "--ranks is \"0\"; expected a number" "$weft" redistribute -n 0 --mesh 2 --shape 4 --from R --to R
expect 0 "  -n, --ranks N  " "$weft" redistribute --help
expect 2 "--rows is \"0\"; expected a list" "$weft" bench redistribute --rows 0
expect 0 "example:" "$weft" redistribute --help
expect 0 "one run: operations of 4 ranks together:" "$weft" redistribute --mesh dp=2,tp=2 --shape 8x8 --from "S(0),R" \
    --to "R,S(1)" --iters 1 --counts
expect 0 '"counts":{"ranks":2,"operations":{' "$weft" redistribute --mesh 2 --shape 8 --from "S(0)" --to R --iters 1 \
    --counts --json
finish
