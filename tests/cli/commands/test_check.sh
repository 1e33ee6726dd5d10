#!/usr/bin/env bash
# `weft check`: graphs of operators.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
here=$(dirname "$0")
graphs=$here/../../../examples/graphs
graph=$(mktemp)
trap 'rm -f "$graph"' EXIT
check() { "$weft" check "$@"; }
# write LINES...: the graph
write() { printf '%s\n' "$@" >"$graph"; }

# The examples write every move.
for name in gpt-block llama-block llama-8b; do
    json check --strict --json "$graphs/$name.graph" -- 'it["legal"] and it["refused"] == 0 and it["moves"] > 0'
done
# Blocks that are written out cost what repeated lines cost.
python3 "$here/unroll.py" "$graphs/llama-8b.graph" x:y dy:dx >"$graph" || not_so unroll.py
is "$(check "$graphs/llama-8b.graph" | grep -o 'GiB received by a rank, .*')" \
    bash -c "'$weft' check '$graph' | grep -o 'GiB received by a rank, .*'"

# Turns at the end of a layout are not taken for a shape without placements.
write 'mesh dp=2,tp=4' 'param w f32[32,16] S(0)[1],S(0)[0]' 'y = relu(w)' 'output y'
json check "$graph" --json -- 'it["lines"][0]["outputs"][0]["spec"] == "f32[32,16] S(0)[1],S(0)[0]" and it["legal"]'

# Layouts, moves, bytes and times; repeats; clauses.
write 'mesh dp=2,tp=4' 'input x f32[8,16] S(0),R # a comment' 'param w f32[32,16] R,S(0)' 'param v f32[16,32]' \
    'h = linear(x, w) ; flops auto ; x3' 'y = linear(h, v) ; x3' 's = softmax(y, dim=-1) ; x3' \
    '_, i = sort(s, dim=1)' 'output s ; memory 1G ; keep v on tp=S(1)'
json check "$graph" --json -- 'it["mesh"] == "dp=2,tp=4" and [one["line"] for one in it["lines"]] == list(range(2, 10))' \
    'it["lines"][2]["outputs"] == [{"name": "v", "spec": "f32[16,32] R,S(1)"}]' \
    'it["lines"][3]["outputs"][0]["spec"] == "f32[8,32] S(0),S(1)" and it["lines"][3]["moves"] == []' \
    'it["lines"][4]["outputs"][0]["spec"] == "f32[8,16] S(0),P(sum)" and it["lines"][4]["inputs"] == ["h", "v"]' \
    'it["lines"][5]["moves"][0]["tensor"] == "y" and it["lines"][5]["moves"][0]["from"] == "f32[8,16] S(0),P(sum)"' \
    'it["lines"][5]["repeat"] == 3 and it["bytes"] >= 3 * it["lines"][5]["bytes"] > 0' \
    'it["cost_ns"] == sum(one["repeat"] * one["cost_ns"] for one in it["lines"])' \
    'it["lines"][6]["outputs"][0] == {"name": "_", "spec": it["lines"][5]["outputs"][0]["spec"]}' \
    'it["held_bytes"] == 4 * (4 * 16 + 2 * 8 * 16) and it["memory_limit"] == 2**30 and it["legal"]'
contains '= softmax(y)  x3' check "$graph"
contains 'move y from S(0),P(sum) to ' check "$graph"
is "$(check "$graph")" bash -c "'$weft' check - <'$graph'"

# A strict check refuses moves that the graph does not write, and reports all of them.
expect 1 'error: weft_op_check: operator softmax: on axis tp, input x is P(sum)' check "$graph" --strict
json check "$graph" --strict --json -- 'it["refused"] == 1 and not it["legal"]' '"the cheapest fix moves" in it["lines"][5]["error"]'
write 'mesh 2' 'input x f32[8] S(0)' 'y = move(x) ; to R' 'z = relu(y)' 'output z R'
expect 0 'moves: 1' check "$graph" --strict
write 'mesh 2' 'input x f32[8] S(0)' 'output x R'
expect 0 'move x from S(0) to R' check "$graph"
expect 1 'error: x must be moved to the layout that the graph demands' check "$graph" --strict
write 'mesh 2' 'input x f32[4096] S(0)' 'output x ; memory 4K'
expect 1 'the limit is 4.0 KiB' check "$graph"
# The rank that holds most need not be the first.
write 'mesh 3' 'input x f32[64] O(1)' 'param w f32[64] G(0;10,20,34)' 'y = add(x, x)' 'output y'
json check "$graph" --strict --json -- 'it["held_bytes"] == 4 * (64 + 20) and it["legal"]' \
    'it["lines"][2]["outputs"] == [{"name": "y", "spec": "f32[64] O(1)"}]'

# Errors name the line.
write 'mesh 2' 'input x f32[8,4] S(0)' 'y = linear(x)'
fails 1 'graph line 3: weft_op_propose: operator linear: the call has 1 input;' check "$graph"
write 'mesh 2' 'input x f32[8,4] S(0)' 'y = relu(z)'
fails 1 'graph line 3 "y = relu(z)", position 10: no line above defines z' check "$graph"
write 'mesh 2' 'input x f32[8,4] S(0)' 'x = relu(x)'
fails 1 'line 2 defines x already' check "$graph"
write 'mesh 2' 'input x f32[8,4] S(0),R'
fails 1 'graph line 2: ' check "$graph"
write 'mesh 2' 'input x f32[8,4] S(0)' 'y = sofmax(x, dim=0)'
fails 1 'did you mean softmax?' check "$graph"
write 'mesh 2' 'input x f32[8,4] S(0)' 'y, z = relu(x)'
fails 1 'operator relu has 1 output, and the line names 2' check "$graph"
write 'mesh 2' 'input x f32[8,4] S(0)' 'y = relu(x) ; twice'
fails 1 'expected a clause' check "$graph"
write 'mesh 2' 'input x f32[8,4] S(0)' 'y = relu(x) ; keep x on dp=R'
fails 1 'graph line 3: keep x' check "$graph"
# Lines that contradict themselves.
write 'mesh dp=2,tp=2' 'input x f32[4,4] S(0),R ; keep x on dp=R' 'output x'
fails 1 'graph line 2: keep x on dp=R contradicts its layout, which line 2 writes' check "$graph"
write 'mesh dp=2,tp=2' 'input x f32[4,4] ; keep x on dp=S(0)' 'output x'
expect 0 'f32[4,4] S(0),R' check "$graph"
write 'mesh 2' 'input x f32[8] S(0)' 'y = relu(x) ; to R ; keep y on 0=S(0)'
fails 1 'contradicts its layout, which line 3 writes' check "$graph"
write 'mesh 2' 'input x f32[8] S(0)' 'y = relu(x) ; to R ; to S(0)'
fails 1 'the line has two clauses to' check "$graph"
write 'mesh 2' 'input x f32[8] S(0)' 'y = relu(x) ; x2 ; x3'
fails 1 'the line has two clauses x' check "$graph"
write 'mesh 2' 'input x f32[8] S(0)' 'y = relu(x) ; flops abc'
fails 1 'expected a number, or auto' check "$graph"
write 'mesh 2' 'input x f32[8,4] S(0)' 'y, i = topk(x, dim=1, k=2, k=3)'
fails 1 'the call has attribute k twice' check "$graph"
write 'mesh 2' 'input x f32[8,4] S(0)' 'y = sum(x, dims=[0], keepdim=True)'
fails 1 'attribute keepdim is True; it must be true or false' check "$graph"
write 'mesh 2' 'input x f32[8,4] S(0)' 'y = sum(x, dim=0)'
fails 1 'operator sum: it has no attribute dim; the attributes of its rules: dims' check "$graph"
# Rules of the graph's own, which several lines may share.
write 'mesh 2' 'rule twice(s>0): x[a b] -> y[a b]; lin x; mono x' 'rule twice(s): x[a b] -> y[a b]; lin x' \
    'input x f32[4,4] P(max)' 'y = twice(x, s=2)' 'output y'
expect 0 'output y: f32[4,4] P(max)' check "$graph"
write 'mesh 2' 'rule twice: x[a b] -> y[a]' 'input x f32[4,4] S(0)'
fails 1 'factor b of x may be split' check "$graph"
write 'mesh 2' '' 'rule twice: x[a b -> y[a]' 'input x f32[4,4] S(0)'
fails 1 'rule line 3' check "$graph"
# A partial result that must be reduced counts; inputs that are legal as they are stay.
write 'mesh 4' 'input a f32[4096,64] S(1)' 'input b f32[64,4096]' 'c = mm(a, b)' 'd = gelu(c)' 'output d'
expect 0 'move a from S(1) to S(0)' check "$graph"
write 'mesh 4' 'input a f32[4096,64] S(1)' 'input b f32[64,4096] S(0)' 'c = mm(a, b)' 'output c'
expect 0 'c: f32[4096,4096] P(sum) = mm(a, b)' check "$graph"
# Fused projections are cut between their parts without a move, up to attention in groups of heads.
write 'mesh tp=8' 'input x bf16[2,512,4096]' 'param wqkv bf16[6144,4096] B(0;4096,1024,1024)' \
    'qkv = linear(x, wqkv)' 'q, k, v = split(qkv, dim=2, sizes=[4096,1024,1024])' \
    'q2 = view(q, shape=[2,512,32,128])' 'k2 = view(k, shape=[2,512,8,128])' \
    'v2 = view(v, shape=[2,512,8,128])' 'q3 = transpose(q2, dims=[1,2])' 'k3 = transpose(k2, dims=[1,2])' \
    'v3 = transpose(v2, dims=[1,2])' 'o, _ = sdpa_gqa(q3, k3, v3, r=4)' 'dqkv = cat(q, k, v, dim=2)' 'output o'
expect 0 'o: bf16[2,32,512,128] S(1)' check "$graph" --strict
expect 0 'dqkv: bf16[2,512,6144] B(2;4096,1024,1024) = cat(q, k, v)' check "$graph" --strict
# A clause `to` says where a result goes.
write 'mesh 4' 'input a f32[64,64] S(0)' 'input b f32[64,64] S(1)' 'c = mm(a, b) ; to S(1)' 'output c'
expect 0 'move a from S(0) to R' check "$graph"

# With styles, mesh and layouts come from another file, every move is written, and the layouts of parameters fit all
# layers.
layout=$(mktemp)
style=$(mktemp)
trap 'rm -f "$graph" "$layout" "$style"' EXIT
json check --strict --json "$graphs/llama.graph" --style "$graphs/llama.style" --layout-out "$layout" -- \
    'it["legal"] and it["mesh"] == "dp=8,cp=2,tp=8" and it["moves"] == 21'
contains '*o_proj.weight                       R,R,S(1)' cat "$layout"
contains '*norm.weight                         R,R,R' cat "$layout"
json check --json "$graphs/llama.graph" --style "$graphs/llama.style" --mesh dp=2,cp=1,tp=4 -- \
    'it["legal"] and it["mesh"] == "dp=2,cp=1,tp=4"'
# Parameters whose longest pattern is the same and whose layouts differ are listed by name.
printf 'mesh dp=2,tp=2\n*.weight dp S(0)\na.* tp R\nb.* tp S(1)\n' >"$style"
write 'param a.weight f32[4,4]' 'param b.weight f32[4,4]' 'c = mm(a.weight, b.weight)' 'output c'
check "$graph" --style "$style" --layout-out "$layout" >/dev/null || not_so 'a graph with two patterns'
contains 'a.weight                             S(0),R' cat "$layout"
contains 'b.weight                             S(0),S(1)' cat "$layout"
# `weft reshard` reads the layout file and cuts a checkpoint as it says.
folder=$(mktemp -d)
trap 'rm -rf "$graph" "$layout" "$style" "$folder"' EXIT
python3 - "$folder/in.safetensors" <<'END' || not_so 'no checkpoint'
import json, struct, sys

places = {"a.weight": [0, 64], "b.weight": [64, 128]}
header = json.dumps({k: {"dtype": "F32", "shape": [4, 4], "data_offsets": v} for k, v in places.items()}).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + struct.pack("<32f", *range(32)))
END
"$weft" reshard "$folder/in.safetensors" "$folder/out" --layout "$layout" >/dev/null 2>&1 || not_so 'reshard by a style'
contains 'S(0),R       a.weight' "$weft" inspect "$folder/out"
contains 'S(0),S(1)    b.weight' "$weft" inspect "$folder/out"
contains 'mesh dp=2,tp=2' "$weft" inspect "$folder/out"
expect 0 'the same: 2 tensors' "$weft" verify "$folder/in.safetensors" "$folder/out"
# So is a parameter to which a longer pattern of a later line would give another layout.
printf 'mesh tp=2\nl0.* tp R\n*q_proj.weight tp column\n' >"$style"
write 'param l0.q_proj.weight f32[4,4]' 'param l1.q_proj.weight f32[4,4]' 'c = mm(l0.q_proj.weight, l1.q_proj.weight)' 'output c'
check "$graph" --style "$style" --layout-out "$layout" >/dev/null || not_so 'a short pattern before a long one'
is '# Written by weft check --style.
mesh tp=2
l0.q_proj.weight                     R
*q_proj.weight                       S(0)' cat "$layout"
# A value is moved where its style says; a bias follows its module.
printf 'mesh tp=2\nw tp column\nb tp column\ny tp R\n' >"$style"
write 'input x f32[4,8]' 'param w f32[6,8]' 'param b f32[6]' 'y = linear(x, w, b)' 'output y'
expect 0 'move y from S(1) to R' check "$graph" --style "$style" --strict
# A line that matches nothing is told, and so is its number.
is '' bash -c '"$@" 2>&1 >/dev/null' - "$weft" check "$graph" --style "$style"
printf '# styles\nmesh tp=2\nw tp column\n  v.weigth tp column # misspelt\nb tp column\n' >"$style"
contains 'styles line 4: no name of the graph matches v.weigth' check "$graph" --style "$style"
printf 'mesh tp=2\nw* tp column\n*w tp R\nb tp column\n' >"$style"
contains 'styles line 3: *w decides nothing: w* of an earlier line decides w' check "$graph" --style "$style"
printf 'mesh tp=2\nw tp rows\n' >"$style"
fails 1 'styles line 2: expected column, row' check "$graph" --style "$style"
printf 'mesh tp=2\nb tp S(1)\n' >"$style"
fails 1 'styles line 2, tensor b' check "$graph" --style "$style"
printf 'mesh tp=2\n' >"$style"
write 'mesh tp=2' 'input x f32[4,8]'
fails 1 'the mesh is that of the styles' check "$graph" --style "$style"
write 'input x f32[4,8] S(0)'
fails 1 'placements are those of the styles; the line writes S(0)' check "$graph" --style "$style"
fails 1 'has no axis' check "$graph" --style "$graphs/llama.style" --mesh 2x2x2
fails 2 '--mesh and --layout-out need --style' check "$graph" --mesh 2
fails 3 'No such file' check "$graph" --style "$graph.absent"

write 'input x f32[8,4] S(0)'
fails 1 'no line gives the mesh' check "$graph"
printf 'mesh 2\n\0' >"$graph"
fails 1 'is not text' check "$graph"
fails 1 '/dev/zero is not text' timeout 10 "$weft" check /dev/zero
fails 3 'No such file' check "$graph.absent"
fails 2 'give a file' check
fails 1 'no line gives the mesh' check /dev/null
# A mesh with a long list of ranks is printed whole.
ranks=$(seq -s, 1023 -1 0)
write "mesh 32x32@$ranks" 'input x f32[4] R,R' 'y = relu(x)'
json check "$graph" --json -- "it[\"mesh\"] == \"32x32@$ranks\""
printf '%s\n' "mesh 32x32@$ranks" '* 0 S(0)' >"$style"
write 'param w f32[64,64]'
expect 0 '' check "$graph" --style "$style" --layout-out "$layout"
contains "mesh 32x32@$ranks" cat "$layout"

# Memory is counted on few ranks where a tensor has an owner, whatever the size of the mesh.
write 'mesh 2147483647' 'input x f32[4] O(3)' 'input y f32[4] O(2147483646) ; x2' 'z = relu(x)'
expect 0 'inputs and parameters: 32 B on the rank' timeout 10 "$weft" check "$graph"
write 'mesh 4x3' 'input x f32[6] O(3),S(0)' 'input y f32[6,2] R,G(0;1,2,3)' 'input z f32[4] O(3),O(1)' 'r = relu(x)'
expect 0 'inputs and parameters: 40 B on the rank' check "$graph"

# Clauses that contradict each other, and clauses without effect.
write 'mesh 2' 'input x f32[4,8] R' 'y = rfft(x, dims=[1]) ; out c64[4,5] ; out c64[4,5]'
fails 1 'the line has two clauses out' check "$graph"
write 'mesh 2' 'input x f32[4] R' 'y = relu(x) ; x1 ; x2'
fails 1 'the line has two clauses x' check "$graph"
write 'mesh 2' 'input x f32[4] R ; memory 8' 'y = relu(x) ; memory 100'
fails 1 'the graph has two clauses memory' check "$graph"
write 'mesh 2' 'input x f32[4] R' 'y = relu(x) ; flops 1 ; flops 2'
fails 1 'the line has two clauses flops' check "$graph"
write 'mesh tp=2' 'input x f32[4]' 'y = relu(x) ; keep y on tp=S(0)' 'z = relu(y) ; keep y on 0=R'
fails 1 'contradicts its layout, which line 4 writes' check "$graph"
write 'mesh 2' 'input x f32[4] S(0)' '_ = relu(x) ; to R'
fails 1 '`to` needs a line with one result, which has a name' check "$graph"
write 'mesh 2' 'input x f32[4] S(0)' 'y = move(x, dim=3) ; to R'
fails 1 'a move is written y = move(x) ; to S(0)' check "$graph"
write 'mesh 2' 'input x f32[4] R' 'a, _ = split(x, sizes=[2,2], dim=0)'
contains 'a: f32[2] R, _: f32[2] R = split(x)' check "$graph"
write 'mesh 2' 'input x f32[4] R' 'y = relu(x'
fails 1 'expected "," or ")", found the end of the line' check "$graph"
write 'mesh 2' 'input x f32[4] S(0)' 'y = softmax(x, dim=0)'
expect 1 '1 line needs moves' check "$graph" --strict
fails 2 'cannot both be standard input' check - --style -
fails 2 '--json needs standard output' check "$graph" --style "$style" --layout-out - --json
# Every start has one wait.
write 'mesh tp=2' 'input x f32[8] S(0)' 'h = start(x) ; to R' 'y = wait(h)' 'output y'
expect 0 'wait(h)' check "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'h = start(x) ; to R' 'y = wait(h)' 'z = wait(h)' 'output y'
fails 1 'graph line 5: line 4 waits for h already' check "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'h = start(x) ; to R' 'y = relu(x)' 'output y'
fails 1 'graph line 3: no line waits for h' check "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'h = start(x) ; to R' 'y = wait(h)' 'z = relu(h)'
fails 1 'graph line 5: h is started; use the result of its wait' check "$graph"
# Several dtypes where the rule wants one.
write 'mesh 2' 'input x f32[4,4] S(0)' 'param w bf16[4,4]' 'y = mm(x, w)'
fails 1 'operator mm: input a is f32, and b is bf16' check "$graph"
write 'mesh 2' 'input x f32[4,4] S(0)' 'param w bf16[4,4]' 'y = mm(x, w) ; mixed'
json check "$graph" --json -- 'it["legal"] and it["lines"][2]["outputs"][0]["spec"] == "f32[4,4] S(0)"'
finish
