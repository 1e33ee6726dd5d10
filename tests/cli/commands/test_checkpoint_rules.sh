#!/usr/bin/env bash
# `--rules` of weft reshard, inspect and verify: fused q, k and v on every number of ranks, gate and up, experts.
source "$(dirname "$0")/../../support/lib.sh"
export WEFT_BACKEND=gloo-cpu # also on a machine with a device
weft=$1
rules=$(cd "$(dirname "$0")/../../../rules" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# Grouped-query attention: 8 heads of q and 2 of k and v, of 6 rows each; 3 experts.
python3 - <<'PY'
import json, struct
def tensors():
    for i in range(2):
        p = f"model.layers.{i}."
        for name, rows in ("q", 48), ("k", 12), ("v", 12):
            yield p + f"self_attn.{name}_proj.weight", [rows, 10]
        yield p + "mlp.gate_proj.weight", [24, 10]
        yield p + "mlp.up_proj.weight", [24, 10]
        for e in range(3):
            for name in "w1", "w2":
                yield p + f"moe.experts.{e}.{name}.weight", [6, 10]
    yield "model.norm.weight", [10]
header, data = {}, b""
for name, shape in tensors():
    count = 2
    for size in shape:
        count *= size
    header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(data), len(data) + count]}
    data += bytes((i * 7 + len(header) * 13) % 251 for i in range(count))
text = json.dumps(header).encode()
open("plain.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
PY
heads=heads=8,kv_heads=2

# Separate tensors become fused ones on every number of ranks, and separate ones again.
contains 'BF16     [72,10]              model.layers.0.self_attn.qkv_proj.weight' \
    "$weft" inspect plain.safetensors --rules "$rules/fuse-qkv.rules"
before=plain.safetensors
option=(--rules "$rules/fuse-qkv.rules")
for tp in 1 2 3 4 8; do
    printf 'mesh tp=%d\n*.qkv_proj.weight B(0;48,12,12)\n*.gate_proj.weight S(0)\n*.experts.* S(1)\n* R\n' $tp >l.layout
    contains 'written in' "$weft" reshard $before qkv$tp --layout l.layout "${option[@]}"
    contains 'the same' "$weft" verify plain.safetensors qkv$tp --rules "$rules/fuse-qkv.rules"
    before=qkv$tp option=()
    contains 'written in' "$weft" reshard qkv$tp back$tp.safetensors --rules "$rules/split-qkv.rules" --set $heads
    contains 'the same' "$weft" verify plain.safetensors back$tp.safetensors
done

# S(0) would give rank 0 of 2 rows of q only.
joined() { # joined TP PLACEMENT RULES
    printf 'mesh tp=%d\n*.qkv_proj.weight %s\npieces %s\n* R\n' "$1" "$2" "$2" >joined.layout
    "$weft" reshard plain.safetensors new --layout joined.layout --rules "$3" --dry-run 2>&1
}
advice='join it along dimension 0 of 3 tensors with 48,12,12 indices, the first of which is "model.layers.0.self_attn.q_proj.weight"'
printf '* = *\n' >same.rules
contains "$advice" joined 2 'S(0)' fuse-qkv
contains 'write B(0;48,12,12) in the layout' joined 2 'S(0)' fuse-qkv,same.rules
lacks 'join it' joined 1 'S(0)' fuse-qkv
lacks 'join it' joined 2 'S(1)' fuse-qkv
lacks 'join it' joined 2 'B(0;48,12,12)' fuse-qkv
printf 'pieces = cat0(model.layers.{0,1}.self_attn.q_proj.weight)\n* = *\n' >pieces.rules # of one tensor
lacks 'join it' joined 2 'S(0)' pieces.rules

# Each rank has its own rows of q, k and v.
python3 - <<'PY' || not_so "rank 1 of 2 has rows 24 to 47 of q, 6 to 11 of k and of v"
import json, struct
def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {k: data[8 + size + v["data_offsets"][0]:8 + size + v["data_offsets"][1]] for k, v in header.items() if k[0] != "_"}
whole, part = read("plain.safetensors"), read("qkv2/rank-00001-of-00002.safetensors")
p = "model.layers.1.self_attn."
wanted = b"".join(whole[p + n + "_proj.weight"][-rows * 20:] for n, rows in (("q", 24), ("k", 6), ("v", 6)))
assert part[p + "qkv_proj.weight"] == wanted
PY

# Ranks of a launcher divide the work, with and without checksums.
contains '23 tensors' "$weft" run -n 3 "$weft" reshard plain.safetensors ranks3 --layout l.layout --memory-limit 8M
contains 'the same' "$weft" verify plain.safetensors ranks3
contains 'written in' "$weft" reshard plain.safetensors alone --verify
contains 'written in' "$weft" run -n 2 "$weft" reshard plain.safetensors together --verify
is '' diff -r alone together
contains 'written in' "$weft" run -n 2 "$weft" reshard plain.safetensors begun --resume
contains 'the same' "$weft" verify plain.safetensors begun
if compgen -G 'begun.weft-*' >/dev/null; then not_so "ranks leave no journal"; fi
fails 1 'exists already' "$weft" run -n 2 "$weft" reshard plain.safetensors together
if [[ -e new || -e together.weft-partial ]]; then not_so "refused ranks leave nothing"; fi

# All pairs of rules undo each other.
round_trip()
{
    contains 'written in' "$weft" reshard plain.safetensors there --force --rules "$rules/$1.rules" ${3:+--set "$3"}
    contains 'the same' "$weft" verify plain.safetensors there --rules "$rules/$1.rules" ${3:+--set "$3"}
    contains 'written in' "$weft" reshard there back --force --rules "$rules/$2.rules" ${4:+--set "$4"}
    contains 'the same' "$weft" verify plain.safetensors back
    contains 'the same' "$weft" verify there plain.safetensors --rules "$rules/$2.rules" ${4:+--set "$4"}
}
round_trip fuse-qkv split-qkv '' $heads
round_trip group-qkv ungroup-qkv kv_heads=2 $heads
round_trip fuse-gate-up split-gate-up
round_trip stack-experts unstack-experts

# Casts, in bounded memory, and a difference that is named.
printf '* = *\n* : cast f32\n' >wide.rules
printf '* = *\n* : cast bf16\n' >narrow.rules
contains 'written in' "$weft" reshard plain.safetensors wide.safetensors --rules wide.rules --memory-limit 8M
contains 'F32' "$weft" inspect wide.safetensors
contains 'the same' "$weft" verify wide.safetensors plain.safetensors --rules narrow.rules
expect 1 'different: plain.safetensors has tensor "' "$weft" verify plain.safetensors there --rules "$rules/fuse-qkv.rules"
json "$weft" reshard plain.safetensors new --rules "$rules/fuse-gate-up.rules" --dry-run --json -- \
    'it["event"] == "plan" and it["tensors"] == 21 and it["memory"] <= 256 << 20' \
    '[f["read"] for f in it["files"] if f["read"]] == [it["read"]]'

# Rules that come with weft are found by their names.
contains 'qkv_proj' "$weft" inspect plain.safetensors --rules fuse-qkv
contains 'the same' "$weft" verify plain.safetensors qkv2 --rules fuse-qkv.rules

fails 1 'no tensor matches "*.self_attn.{q,k,v}_proj.weight", but tensor "model.layers.0.self_attn.qkv_proj.weight" exists' \
    "$weft" inspect qkv2 --rules fuse-qkv

# Several are a list; each works on what the one before it made.
contains 'written in' "$weft" reshard plain.safetensors both --rules fuse-qkv,fuse-gate-up
json "$weft" inspect both --json -- \
    'sum("qkv_proj" in t["name"] or "gate_up_proj" in t["name"] for t in it["tensors"]) == 4' \
    'not any("q_proj" in t["name"] or ".up_proj" in t["name"] for t in it["tensors"])'
contains 'the same' "$weft" verify plain.safetensors both --rules fuse-qkv,fuse-gate-up
contains 'the same' "$weft" verify both plain.safetensors --rules split-gate-up,split-qkv --set $heads
json "$weft" reshard plain.safetensors new --rules fuse-gate-up,fuse-qkv --dry-run --json -- \
    '[f["read"] for f in it["files"] if f["read"]] == [it["read"]]'
fails 2 '--rules is "fuse-qkv" and "fuse-gate-up"; give one list, such as --rules fuse-qkv,fuse-gate-up' \
    "$weft" inspect plain.safetensors --rules fuse-qkv --rules fuse-gate-up
fails 2 'none of the files of --rules has all values of --set heads=8' "$weft" verify both both --rules fuse-qkv,fuse-gate-up --set heads=8
fails 2 'nor is it one of those that come with weft' "$weft" reshard both new --rules split-qkv,split-up --set $heads
fails 1 'split-gate-up: rules, line 2' "$weft" inspect plain.safetensors --rules fuse-qkv,split-gate-up
fails 2 '--rules names no file' "$weft" reshard both new --rules ,
cp "$rules/fuse-qkv.rules" a,b
contains 'qkv_proj' "$weft" inspect plain.safetensors --rules a,b

# Their sizes are taken from the model, or from the parts that files per rank have.
printf '{"hidden_size": 48, "x": [{"y": 1}], "text_config": {"num_attention_heads": 8, "num_key_value_heads": 2}}' >config.json
printf 'mesh tp=2\n*.qkv_proj.weight B(0; $num_attention_heads*$head_dim, $num_key_value_heads*$head_dim, $num_key_value_heads*$head_dim)\n* R\n' >l.layout
contains 'written in' "$weft" reshard plain.safetensors model2 --rules fuse-qkv --layout l.layout
contains 'B(0;48,12,12)' "$weft" inspect model2
contains 'rank 1 holds' "$weft" inspect plain.safetensors --rules fuse-qkv --layout l.layout
contains 'written in' "$weft" reshard model2 model3 --layout l.layout --mesh tp=3
contains 'the same' "$weft" verify qkv2 model3
contains 'written in' "$weft" reshard model2 apart.safetensors --rules split-qkv --set $heads
cp config.json model2/config.json
contains 'the same' "$weft" verify model2 plain.safetensors --rules split-qkv
rm config.json

# Refusals.
fails 1 'heads is $num_attention_heads, a number of the model, but ./config.json does not exist; give it a value, such as --set heads=32' \
    "$weft" reshard plain.safetensors new --rules "$rules/split-qkv.rules"
fails 1 'but ./config.json does not exist; write the number instead, or copy the config.json of the model to .' \
    "$weft" reshard plain.safetensors new --rules fuse-qkv --layout l.layout
printf '{' >config.json
fails 1 'config.json, byte 2' "$weft" reshard plain.safetensors new --rules fuse-qkv --layout l.layout
fails 2 'give --rules too' "$weft" reshard plain.safetensors new --set heads=8
fails 2 'no line "let none' "$weft" reshard plain.safetensors new --rules wide.rules --set none=1
fails 2 'No such file' "$weft" verify plain.safetensors there --rules none.rules
printf 'x = model.norm.weight\n' >lost.rules
fails 1 'no rule uses tensor "model.layers.0.mlp.gate_proj.weight"' "$weft" reshard plain.safetensors new --rules lost.rules
printf 'x = slice0(model.norm.weight, 0:4)\n* = *\n' >twice.rules
fails 1 'element [0] of tensor "model.norm.weight" goes to "x" (line 1) and to "model.norm.weight" (line 2)' \
    "$weft" reshard plain.safetensors new --rules twice.rules
fails 1 'line 2: no tensor matches "*.experts.{part}.weight", but tensor "model.layers.' "$weft" reshard plain.safetensors new --rules "$rules/unstack-experts.rules"

# The first match decides: a line that has no effect is an error if it can never have one, and otherwise a warning.
printf '* = *\n?*.mlp.* : drop\n' >never.rules
fails 2 'never.rules: rules, line 2: this rule can never apply: "*" of line 1 takes every tensor that "*.mlp.*" matches' \
    "$weft" reshard plain.safetensors new --rules never.rules
printf '*.weight = *.weight\n?*.mlp.* : drop\n' >taken.rules
contains 'line 2: "*.mlp.*" drops nothing: line 1 takes "model.layers.0.mlp.gate_proj.weight"; to drop it, put line 2 before' \
    "$weft" inspect plain.safetensors --rules taken.rules
printf '*.weight : cast f32\n*.norm.* : cast f64\n* = *\n' >cast.rules
contains 'line 2: "*.norm.*" casts nothing: line 1 casts "model.norm.weight"; the first line that matches decides' \
    "$weft" inspect plain.safetensors --rules cast.rules
printf 'mesh tp=2\n*.weight R\n*.mlp.* S(0)\n' >taken.layout
contains 'layout, line 3: pattern *.mlp.* decides nothing: line 2 (*.weight) decides all that it matches, such as "' \
    "$weft" reshard plain.safetensors new --layout taken.layout --dry-run
lacks 'decides nothing' "$weft" reshard plain.safetensors new --layout l.layout --dry-run
if [[ -e new || -e new.weft-partial ]]; then not_so "a refused command leaves nothing"; fi
finish
