#!/usr/bin/env bash
# `weft step`: a training step that is simulated.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
graphs=$(dirname "$0")/../../../examples/graphs
graph=$(mktemp)
out=$(mktemp)
trap 'rm -f "$graph" "$graph.csv" "$out"' EXIT
export WEFT_COSTS=cpu # it has no launches, and communication does not slow compute
step() { "$weft" step "$@"; }
write() { printf '%s\n' "$@" >"$graph"; }
model() {
    write 'mesh tp=2' 'input x f32[8,8] S(0)' 'param w f32[8,8] R ; x8' 'y = linear(x, w) ; x8 ; time 1us' \
        'phase backward' 'dx = matmul(y, w) ; x8 ; time 1us' 'dw = einsum(y, x, eq="bn,bk->nk") ; to R ; x8 ; time 1us' \
        'phase update' 'v = add(w, dw) ; x8 ; time 1us' 'output v'
}

# Layers are dealt evenly; gradients are reduced once a step.
model
json step "$graph" --mesh pp=4,tp=2 --schedule 1f1b --microbatches 8 --json -- 'it["stages"] == 4 and it["ranks"] == 8' \
    'all(one["forward_ns"] == one["input_ns"] == one["weight_ns"] == one["update_ns"] == 2000 for one in it["stage"])' \
    'all(one["communication_ns"] == 0 and one["reduce_ns"] > 0 for one in it["stage"])' \
    'all(one["parameter_bytes"] == one["gradient_bytes"] == 2 * 256 for one in it["stage"])' \
    'all(one["optimizer_bytes"] == 0 and one["held_bytes"] == 4 * 256 for one in it["stage"])' \
    'it["boundary_bytes"] == 128 and it["schedule"] == "1f1b" and it["pipelines"] == 1' \
    'it["time_ns"] >= 33 * 2000 + 2000 + it["stage"][0]["reduce_ns"] and it["utilisation"] > 0 and it["flops_per_s"] > 0'
# Views take no time; a causal mask halves the operations of attention, forward and backward.
views() {
    write 'mesh tp=1' 'input q f32[2,4,64,16] R' 'param w f32[16,16] R' "o, l = sdpa(q, q, q$1)" \
        'p = permute(o, order=[0,2,1,3])' 'y = reshape(p, shape=[2,64,64])' 'phase backward' \
        "dq, dk, dv = sdpa_bwd(o, q, q, q, o, l$1)" 'phase update' 'output dq'
    json step "$graph" --costs h100 --json -- "it[\"flops\"] == $2" 'it["costs"] == "h100"' \
        '"Nemotron" in it["costs_source"]' 'it["stage"][0]["forward_ns"] == 7000'
}
views '' '14 * 2 * 4 * 64 * 64 * 16'
views ', causal=true' '7 * 2 * 4 * 64 * 64 * 16'
views ', causal=false' '14 * 2 * 4 * 64 * 64 * 16'
contains 'operations of forward and backward / (time * ranks)' step "$graph" --costs h100
contains 'costs: h100: flops fitted on Nemotron-4 340 B' step "$graph" --costs h100
contains 'costs: b200: by rule, not checked' step "$graph" --costs b200
# With more stages than layers, the last stages pass on what they get; lines behind the layers stay in the last stage.
write 'mesh tp=1' 'input x f32[8,8] R' 'param w f32[8,8] R ; x2' 'param h f32[8,8] R' 'y = linear(x, w) ; x2 ; time 1us' \
    'z = linear(y, h) ; time 3us' 'phase backward' 'dy = matmul(z, h) ; time 1us' 'dx = matmul(dy, w) ; x2 ; time 1us' \
    'dw = einsum(dy, x, eq="bn,bk->nk") ; x2 ; time 1us' 'output dw'
json step "$graph" --mesh pp=4,tp=1 --microbatches 4 --json -- '[one["forward_ns"] for one in it["stage"]] == [1000, 1000, 0, 3000]' \
    '[one["input_ns"] for one in it["stage"]] == [1000, 1000, 0, 1000]' \
    '[one["parameter_bytes"] for one in it["stage"]] == [256, 256, 0, 256] and it["stage"][2]["activation_bytes"] == 0'
contains 'note: the graph has 2 layers; stages from 2 on have none' step "$graph" --mesh pp=4,tp=1 --microbatches 4
lacks 'note:' step "$graph" --mesh pp=2,tp=1 --microbatches 4
# --stages says how many layers each stage has.
json step "$graph" --mesh pp=4,tp=1 --microbatches 4 --stages 0,2,0*2 --json -- \
    '[one["forward_ns"] for one in it["stage"]] == [0, 2000, 0, 3000]' \
    '[one["input_ns"] for one in it["stage"]] == [0, 2000, 0, 1000]' \
    '[one["parameter_bytes"] for one in it["stage"]] == [0, 512, 0, 256]'
lacks 'note:' step "$graph" --mesh pp=4,tp=1 --microbatches 4 --stages 0,1*2,0
fails 1 'the stages have 3 layers in sum, and graph line 3 is repeated 2 times' step "$graph" --mesh pp=2,tp=1 --stages 1,2
fails 1 'layers are given for 3 stages, and the schedule has 2' step "$graph" --mesh pp=2,tp=1 --stages 1,1,0
for list in '' '1,' ',1' '1,,1' '1*0' '1*' 'x' '-1,3' '1*65537' '1 ,1' '99999999999999999999,1'; do
    fails 2 '--stages takes the layers of each' step "$graph" --mesh pp=2,tp=1 --stages "$list"
done
# Recomputed operations count for the hardware's utilisation, not for the model's.
write 'mesh tp=1' 'input x f32[8,8] R' 'param w f32[8,8] R ; x2' 'y = linear(x, w) ; x2 ; time 1us' 'phase backward' \
    'z = linear(x, w) ; x2 ; time 1us ; recompute' 'dx = matmul(z, w) ; x2 ; time 1us' 'output dx'
json step "$graph" --costs h100 --json -- 'it["flops"] == 3 * 2 * 2 * 512 and it["recomputed_flops"] == it["flops"] / 3' \
    'abs(it["utilisation"] / it["hardware_utilisation"] - 2 / 3) < 1e-9' 'it["stage"][0]["recomputed_flops"] == 2 * 2 * 512'
contains 'hardware FLOPs utilisation: ' step "$graph" --costs h100
sed -i '4s/$/ ; recompute/' "$graph"
fails 1 'recompute is for lines of the backward pass' step "$graph"
# Without messages and reductions the time is that of the schedule.
write 'mesh tp=1' 'input x f32[8,8] R' 'param w f32[8,8] R ; x8' 'y = linear(x, w) ; x8 ; time 1ms' \
    'phase backward' 'dx = matmul(y, w) ; x8 ; time 1ms' 'dw = einsum(y, x, eq="bn,bk->nk") ; x8 ; time 1ms' 'output dw'
sed 's/ within [0-9 ]*/ within 0 0 0/; s/ between [0-9 ]*/ between 0 0 0/; s/^copy.*/copy 0/; s/^pack.*/pack 0/' >"$out" <<'END'
weft-cost 1
name free
one-sided yes
copy 1
pack 1
reduce 0
flops 1000000
slice within 1
slice between 1
partial within 1
partial between 1
all-gather within 1
all-gather between 1
reduce-scatter within 1
reduce-scatter between 1
all-reduce within 1
all-reduce between 1
all-to-all within 1
all-to-all between 1
permute within 1
permute between 1
exchange within 1
exchange between 1
END
while read -r name chunks want; do
    json step "$graph" --costs "$out" --mesh pp=4,tp=1 --schedule "$name" --microbatches 8 --json -- \
        "it['time_ns'] == $want * 8000000 // (4 * $chunks)"
done <<'END'
gpipe 1 33
1f1b 1 33
interleaved 2 57
zb1p 2 51
zbv 2 51
dualpipev 2 51
END
# A schedule from a file, with compute actions or with all of them, is as one by name.
for options in '' '--lower --reduce'; do
    # shellcheck disable=SC2086
    "$weft" schedule zbv --ranks 4 --microbatches 8 $options --csv >"$graph.csv" || not_so "zbv $options"
    json step "$graph" --costs "$out" --mesh pp=4,tp=1 --schedule "$graph.csv" --json -- \
        'it["time_ns"] == 51 * 1000000 and it["schedule"] == "csv" and it["microbatches"] == 8'
    fails 2 'has 4 ranks, and the axis pp 2' step "$graph" --mesh pp=2,tp=1 --schedule "$graph.csv"
done
fails 2 '--microbatches is for a schedule by name' step "$graph" --mesh pp=4,tp=1 --schedule "$graph.csv" --microbatches 8
# The graph or the schedule may be standard input, and not both; standard output has the figures.
json step "$graph" --costs "$out" --mesh pp=4,tp=1 --schedule - --json <"$graph.csv" -- 'it["time_ns"] == 51 * 1000000'
json step - --costs "$out" --mesh pp=4,tp=1 --schedule "$graph.csv" --json <"$graph" -- 'it["time_ns"] == 51 * 1000000'
fails 2 'the graph and the schedule cannot both be standard input' step - --mesh pp=4,tp=1 --schedule - <"$graph"
fails 2 'the figures are on standard output; give --trace a file' step "$graph" --trace -
fails 3 'No such file' step "$graph" --mesh pp=4,tp=1 --schedule /nonexistent/x.csv
# Figures are those of what the pipeline would run.  A file with all actions reduces what it says.
write 'mesh dp=2' 'input x f32[8,8] S(0)' 'param w f32[8,8] S(0) ; x8' 'f = move(w) ; to R ; x8 ; time 5us' \
    'y = linear(x, f) ; x8 ; time 1us' 'phase backward' 'b = move(w) ; to R ; x8 ; time 5us' 'dx = matmul(y, b) ; x8 ; time 1us' \
    'dw = einsum(y, x, eq="bn,bk->nk") ; x8 ; time 1us' 'g = move(dw) ; to S(0) ; x8 ; time 3us' \
    'phase update' 'v = add(w, g) ; x8 ; time 1us' 'output v'
gpipe() { "$weft" schedule gpipe --ranks 2 --microbatches 2 --csv "$@" >"$graph.csv" || not_so "gpipe $*"; }
at_2() { step "$graph" --costs "$out" --mesh pp=2,dp=2 --schedule "$graph.csv" "$@"; }
# Parameters are moved in each microbatch: 4 layers of a stage take 4 * 6 us in F and 4 * 7 us in B.  Reductions of
# 4 * 3 us and updates of 4 us follow the backward of stage 0: 3 * 24 + 3 * 28 + 12 + 4.
gpipe --reduce
json at_2 --json -- 'it["time_ns"] == 172000 and not it["sharded"] and it["unreduced"] == 0' \
    'all(one["forward_ns"] == 24000 and one["input_ns"] == 28000 and one["reduce_ns"] == 12000 for one in it["stage"])' \
    'it["exposed_ns"] == 2 * 40000 + 12000 and all(one["gathered_bytes"] == one["unshard_ns"] == 0 for one in it["stage"])'
lacks 'note:' at_2
gpipe --lower
json at_2 --json -- 'it["time_ns"] == 160000 and it["unreduced"] == 2 and it["stage"][1]["reduce_ns"] == 0'
contains 'note: the schedule has no REDUCE_GRAD of 2 stages; the step does not reduce their gradients' at_2
sed -i 's/$/,/; 1s/$/0REDUCE_GRAD/' "$graph.csv"
json at_2 --json -- 'it["time_ns"] == 172000 and it["unreduced"] == 1'
contains 'no REDUCE_GRAD of 1 stage; the step does not reduce its gradients' at_2
# UNSHARD gathers the 4 layers of a stage once, for F and I: 20 us, and 4 * 256 bytes until RESHARD.  Stage 0 begins then,
# and ends 3 * 4 us of F, 3 * 8 us of B, 12 us and 4 us later.
gpipe --sharded --reduce
json at_2 --json -- 'it["sharded"] and it["time_ns"] == 72000 and it["exposed_ns"] == 20000 + 12000' \
    'all(one["unshard_ns"] == 20000 and one["gathered_bytes"] == 1024 for one in it["stage"])' \
    'all(one["forward_ns"] == 4000 and one["input_ns"] == 8000 and one["communication_ns"] == 0 for one in it["stage"])' \
    'it["stage"][0]["activation_bytes"] == 128 + 4 * 128 and it["stage"][0]["parameter_bytes"] == 4 * 128' \
    'it["rank"][0]["peak_bytes"] == it["stage"][0]["held_bytes"] + 1024 + 2 * 640'
contains 'gathered  ' at_2
# A gathered parameter that the backward pass reads is no activation; a start is a move; a shared parameter is gathered once.
sed -i 's/^f = move(w) ; to R ; x8 ; time 5us/s = start(w) ; to R ; x8 ; time 5us\nf = wait(s) ; x8/; s/matmul(y, b)/matmul(y, f)/' "$graph"
json at_2 --json -- 'it["time_ns"] == 72000 and it["stage"][0]["activation_bytes"] == 640'
sed -i 's/^\(param w .*\) ; x8/\1/' "$graph"
json at_2 --json -- 'all(one["unshard_ns"] == 5000 and one["gathered_bytes"] == 256 for one in it["stage"])'
# With one rank along dp the clause still says what the move takes; nothing is copied.
json step "$graph" --costs "$out" --mesh pp=2,dp=1 --schedule "$graph.csv" --json -- \
    'all(one["unshard_ns"] == 5000 and one["gathered_bytes"] == 0 and one["forward_ns"] == 4000 for one in it["stage"])'
# A call that moves a parameter which it reads gathers it.
write 'mesh dp=2' 'input x f32[8,8] S(0)' 'param w f32[8,8] S(1) ; x4' 'y = linear(x, w) ; x4 ; time 1us' 'phase backward' \
    'dw = einsum(y, x, eq="bn,bk->nk") ; x4 ; time 1us' 'output dw'
json step "$graph" --mesh pp=2,dp=2 --schedule "$graph.csv" --json -- 'it["stage"][0]["forward_ns"] == 2000' \
    'it["stage"][0]["unshard_ns"] > 0 and it["stage"][0]["gathered_bytes"] == 512'
json step "$graph" --mesh pp=2,dp=2 --schedule gpipe --microbatches 2 --json -- 'it["stage"][0]["forward_ns"] > 2000'
# A pipeline refuses actions without their messages.
sed -i 's/[0-9]\(SEND\|RECV\)_[FB][0-9]//g' "$graph.csv"
fails 1 'but no sends; no pipeline runs it' step "$graph" --mesh pp=2,dp=2 --schedule "$graph.csv"
# A line without a time needs the rates of the table: 2 * 8 * 8 * 8 operations at 10^12 a second.
write 'mesh tp=1' 'input x f32[8,8] R' 'param w f32[8,8] R' 'y = linear(x, w)' 'output y'
json step "$graph" --costs "$out" --json -- 'it["flops"] == 1024 and it["time_ns"] == 1'
# 2 for each combination of all indices, wherever the factors are among the inputs and whichever has a batch.
while IFS='|' read -r call want; do
    write 'mesh tp=1' 'input c f32[8,4] R' 'input a f32[8,16] R' 'input b f32[16,4] R' 'input e f32[3,8,4] R' \
        'input p f32[3,8,16] R' 'input q f32[3,16,4] R' "y = $call" 'output y'
    json step "$graph" --costs "$out" --json -- "it['flops'] == $want"
done <<'END'
mm(a, b)|2 * 8 * 16 * 4
addmm(c, a, b)|2 * 8 * 16 * 4
bmm(p, q)|2 * 3 * 8 * 16 * 4
baddbmm(e, p, q)|2 * 3 * 8 * 16 * 4
matmul(p, b)|2 * 3 * 8 * 16 * 4
matmul(a, q)|2 * 3 * 8 * 16 * 4
END
contains ' % of 1.0 TFLOP/s' step "$graph" --costs "$out"
sed -i 's/^flops.*/flops 2500/' "$out"
contains ' % of 2.5 GFLOP/s' step "$graph" --costs "$out"
sed -i '/^flops/d' "$out"
fails 1 'graph line 8 has no clause `time`, and the cost table has no line `flops`' step "$graph" --costs "$out"

# FSDP gathers a layer beside the one before, in each pass, and reduces its gradients beside the next ones.  F takes
# 3 + 8 * 5 us, and B 3 + 8 * 10 + 4 us: gathers of 3 us and reductions of 4 us hide behind 10 us of a layer.
write 'mesh dp=2' 'input x f32[8,8] S(0)' 'param w f32[8,8] S(0) ; x8' 'f = move(w) ; to R ; x8 ; time 3us' \
    'y = linear(x, f) ; x8 ; time 5us' 'phase backward' 'b = move(w) ; to R ; x8 ; time 3us' 'dx = matmul(y, b) ; x8 ; time 5us' \
    'dw = einsum(y, x, eq="bn,bk->nk") ; x8 ; time 5us' 'g = move(dw) ; to S(0) ; x8 ; time 4us' \
    'phase update' 'v = add(w, g) ; x8 ; time 1us' 'output v'
json step "$graph" --fsdp --microbatches 2 --json -- 'it["time_ns"] == 2 * (43000 + 87000) + 8000' \
    'it["stage"][0]["forward_ns"] == 43000 and it["stage"][0]["input_ns"] + it["stage"][0]["weight_ns"] == 87000' \
    'it["stage"][0]["communication_ns"] == 3000 + 7000 and it["stage"][0]["reduce_ns"] == 0' \
    'it["stage"][0]["gathered_bytes"] == 2 * 256 and it["stage"][0]["gradient_bytes"] == 8 * 128' \
    'it["rank"][0]["peak_bytes"] >= it["stage"][0]["held_bytes"] + 2 * 256'
contains 'gathered' step "$graph" --fsdp
# Without it both are beside nothing; DDP hides reductions behind the last backward pass alone.
json step "$graph" --microbatches 2 --json -- 'it["time_ns"] == 2 * (8 * 8000 + 8 * 13000) + 32000 + 8000'
json step "$graph" --ddp --microbatches 2 --json -- 'it["time_ns"] == 2 * (8 * 8000 + 8 * 13000) + 4000 + 8000' \
    'it["stage"][0]["gradient_bytes"] == 8 * 256'
fails 2 '--fsdp and --ddp exclude each other' step "$graph" --fsdp --ddp
"$weft" schedule gpipe --ranks 1 --sharded --reduce --microbatches 2 --csv >"$graph.csv" || not_so 'a sharded schedule'
fails 1 'the schedule has UNSHARD, which gathers whole stages; FSDP gathers layers' step "$graph" --fsdp --schedule "$graph.csv"
fails 2 '--fsdp shares parameters' step "$graphs/llama-70b.model" --fsdp --sharding nothing
json step "$graphs/llama-70b.model" --mesh dp=64/8 --fsdp --recompute full --costs h100 --json -- \
    'it["exposed_ns"] < it["time_ns"] / 4 and it["stage"][0]["parameter_bytes"] < 3e9'

# Compute hides a move that is started before it.
write 'mesh tp=2' 'input x f32[8,8] S(0)' 'input z f32[8,8] S(0)' 'h = start(x) ; to R ; time 5us' 'a = relu(z) ; time 3us' \
    'y = wait(h)' 'output y'
json step "$graph" --json -- 'it["time_ns"] == 5000 and it["exposed_ns"] == 2000'
# Compute and communication slow each other: 15 % and 30 % in the table h100.  3.45 us, and what is left of 5 us.
json step "$graph" --costs h100 --json -- 'it["time_ns"] == 3450 + 5000 - 3450 * 100 // 130'
# A move in pieces runs beside the call that uses its result, or makes what it moves, but for one piece of 2.
pieces() {
    write 'mesh cp=2' 'input q f32[2,4,8,16] S(2)' 'input k f32[2,4,8,16] S(2)' "g = move(k) ; to R ; time $1us$2" \
        'o, l = sdpa(q, g, g) ; time 8us' 'phase backward' 'dq, dk, dv = sdpa_bwd(o, q, g, g, o, l) ; time 8us' \
        "e = move(dk) ; to S(2) ; time $1us$2" 'u = relu(e) ; time 0ns' 'phase update' 'output dq' 'output u'
    json step "$graph" --json -- "it['stage'][0]['forward_ns'] == $3" "it['stage'][0]['input_ns'] == $4"
}
pieces 3 '' 11000 11000
pieces 3 ' ; pieces' 8000 8000
pieces 6 ' ; pieces' 10000 10000
fails 1 'expected a clause: x32,' step - <<'END'
mesh cp=2
input q f32[4] R
a = relu(q) ; pieces
END
# Products in fp8 have a rate of their own, and convert their operands; nothing else is a product.
write 'mesh tp=1' 'input x bf16[4096,4096] R' 'param w bf16[4096,4096] R' 'y = linear(x, w) ; f8' 'output y'
json step "$graph" --costs h100 --json -- 'it["flops"] == 2 * 4096**3 and 130000 < it["time_ns"] < 230000'
fails 1 'graph line 4 computes in fp8, and the cost table a100-80 has no line `flops-f8`' step "$graph" --costs a100-80
sed -i 's/linear(x, w)/add(x, w)/' "$graph"
fails 1 'graph line 4 has the clause `f8`, and add is no product' step "$graph" --costs h100
# Fused attention has a rate of its own: 346 and 535 TFLOP/s.
write 'mesh tp=1' 'input q bf16[8,32,4096,128] R' 'o, l = sdpa(q, q, q)' 'output o'
json step "$graph" --costs h100 --json -- 'abs(it["time_ns"] / (it["flops"] / 346e12 * 1e9) - 1) < 1e-3'
# What the head and the loss keep, and their gradients, are not activations of layers.
json step "$graphs/llama-70b.model" --mesh dp=8/8 --fsdp --costs h100 --json -- \
    'it["stage"][0]["logit_bytes"] > 8192 * 128256 * 4 and it["stage"][0]["logit_gradient_bytes"] > 8192 * 128256 * 6' \
    'it["rank"][0]["peak_bytes"] == it["peak_bytes"] > it["stage"][0]["held_bytes"] + it["stage"][0]["logit_bytes"]'
contains 'activations  logits' step "$graphs/llama-70b.model" --mesh dp=8/8 --fsdp
# A move of a gradient, whose clause `time` replaces the prediction, happens once a step.
for clause in '' ' ; time 5ms'; do
    write 'mesh tp=2' 'input x f32[8,8] S(0)' 'param w f32[8,8] R' 'y = linear(x, w) ; time 1us' 'phase backward' \
        'p = einsum(y, x, eq="bn,bk->nk") ; time 1us' "g = move(p) ; to R$clause" 'phase update' 'v = add(w, g) ; time 1us' 'output v'
    json step "$graph" --microbatches 4 --json -- 'it["stage"][0]["communication_ns"] == it["stage"][0]["weight_ns"] == 0' \
        'it["stage"][0]["reduce_ns"] == it["exposed_ns"] and it["time_ns"] == 9000 + it["exposed_ns"]' \
        "it['exposed_ns'] == 5000000 or '$clause' == ''"
done

# Many ranks cost no more than one of each stage; ranks that differ are simulated one by one.
sed 's/\[16,8192/[8192,8192/; s/\[131072/[67108864/' "$graphs/llama-8b.graph" >"$out"
json step "$out" --mesh pp=16,dp=8192,tp=8/8 --schedule zbv --microbatches 64 --json -- \
    'it["ranks"] == 2**20 and it["stages"] == 32 and it["time_ns"] > 0' 'it["peak_bytes"] > 0 and 0 < it["utilisation"] < 1'
model
json step "$graph" --mesh pp=4,tp=2 --microbatches 8 --straggler 3:2 --json -- 'it["time_ns"] > 33 * 2000 * 1.5 and it["pipelines"] == 2'
# Ranks along tp wait for each other, and those along dp do not, in whichever order --mesh has the axes.
write 'mesh dp=2,tp=4' 'input x f32[8,8] S(0),S(1)' 'y = relu(x) ; to S(0),R ; time 1us' 'output y'
for mesh in dp=2,tp=4 tp=4,dp=2; do
    json step "$graph" --mesh $mesh --straggler 3:2 --json -- 'it["pipelines"] == 2'
done
write 'mesh 2x4' 'input x f32[8,8] S(0),S(1)' 'y = relu(x) ; to S(0),R ; time 1us' 'output y'
json step "$graph" --straggler 3:2 --json -- 'it["pipelines"] == 2'
model
is "$(step "$graph" --mesh pp=4,tp=2 --microbatches 8 --jitter 20 --seed 7)" \
    step "$graph" --mesh pp=4,tp=2 --microbatches 8 --jitter 20 --seed 7
sed 's/input x f32.8,/input x f32[2048,/' "$graph" >"$graph.csv"
fails 1 'jitter and stragglers are for at most 4096' step "$graph.csv" --mesh pp=4,tp=2048 --jitter 5
fails 1 'there is no rank 8 among 8' step "$graph" --mesh pp=4,tp=2 --straggler 8:2
fails 2 'a factor is 1 or more' step "$graph" --straggler 3:0.5
for list in '1' '' '0:2,' '0:2,,1:2'; do fails 2 '--straggler takes' step "$graph" --straggler "$list"; done

# Traces, and errors.
step "$graph" --mesh pp=4,tp=2 --microbatches 8 --schedule zbv --trace "$out" >/dev/null || not_so '--trace'
json cat "$out" -- 'sum(one["ph"] == "X" and one["name"] != "update" for one in it["traceEvents"]) == 8 * 8 * 3 + 8' \
    'all(one["dur"] > 0 for one in it["traceEvents"] if one["ph"] == "X")'
expect 1 'a rank holds ' step "$graph" --mesh pp=4,tp=2 --memory-limit 1K
# Sizes and names are as in weft schedule: twice as many microbatches as ranks of the pipeline.
for name in gpipe 1f1b dualpipev; do
    json step "$graph" --mesh pp=4,tp=2 --schedule $name --json -- "it['schedule'] == '$name' and it['microbatches'] == 8"
done
json step "$graph" --json -- 'it["microbatches"] == 1'
fails 2 'weft step: --schedule: "foo" is not a schedule; the schedules are' step "$graph" --mesh pp=4,tp=2 --schedule foo
fails 2 'did you mean zbv?' step "$graph" --mesh pp=4,tp=2 --schedule zvb
fails 2 'dualpipev on 4 ranks needs at least 8 microbatches, not 7' \
    step "$graph" --mesh pp=4,tp=2 --schedule dualpipev --microbatches 7
fails 1 'no line gives the mesh' step /dev/null
fails 1 'the graph'"'"'s mesh has the axis tp' step "$graph" --mesh pp=4
# Each rank has as many samples of a microbatch as the others.
fails 1 'graph line 2: a microbatch has 8 samples (dimension 0 of x), which tp=3 does not divide evenly; 8 samples fit 1, 2, 4 or 8 ranks, and 3 ranks take 6 or 9 samples' \
    step "$graph" --mesh pp=4,tp=3
fails 1 'has 8 samples (dimension 0 of x), fewer than the 16 ranks of tp=16; 8 samples fit 1, 2, 4 or 8 ranks, and 16 ranks take 16 samples' \
    step "$graph" --mesh pp=4,tp=16
write 'mesh dp=8,tp=2' 'input x f32[32,8] S(0),R' 'input t i64[96] S(0),S(0)' 'y = relu(x) ; time 1us' 'output y'
step "$graph" >/dev/null || not_so 'a batch that all axes divide'
fails 1 'graph line 2: a microbatch has 32 samples (dimension 0 of x), which dp=24 does not divide evenly; 32 samples fit 1, 2, 4, 8, 16 or 32 ranks, and 24 ranks take 24 or 48 samples' \
    step "$graph" --mesh dp=24,tp=2
fails 1 'graph line 3: a microbatch has 96 samples (dimension 0 of t), which dp=32,tp=2 does not divide evenly; 96 samples fit' \
    step "$graph" --mesh dp=32,tp=2
fails 1 '--mesh is "dp=*,tp=2"; a size * needs the number of ranks' step "$graph" --mesh 'dp=*,tp=2'
fails 1 'which dp=24 does not divide evenly' step "$graph" -n 48 --mesh 'dp=*,tp=2'
fails 1 '--ranks is for the mesh; give --mesh too' step "$graph" -n 48
model
fails 1 'only pp may be added' step "$graph" --mesh pp=4,dp=2,tp=2
write 'mesh tp=2' 'input x f32[8,8] S(0)' 'y = relu(x)' 'output y'
fails 1 'the graph has no repeated layers' step "$graph" --mesh pp=4,tp=2
write 'mesh tp=1' 'input x f32[8,8] R' 'y = relu(x) ; x1000000 ; time 999s' 'z = relu(x) ; x1000000 ; time 999s' 'output y'
fails 1 'graph line 4: the time of a stage exceeds 2^60 ns' step "$graph"
write 'mesh tp=2' 'phase update' 'phase backward'
fails 1 'expected backward or update' step "$graph"
fails 2 'give a file with a graph' step
finish
