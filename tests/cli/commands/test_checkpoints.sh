#!/usr/bin/env bash
# `weft inspect`, `weft reshard` and `weft verify`.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
layouts=$(cd "$(dirname "$0")/../../../layouts" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# A Llama-shaped checkpoint of two files with an index.
python3 - <<'PY'
import json, os, struct
def save(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, shape in tensors.items():
        count = 2
        for size in shape:
            count *= size
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(data), len(data) + count]}
        data += bytes((i * 7 + len(name)) % 251 for i in range(count))
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
def layer(i):
    p = f"model.layers.{i}."
    return {p + "self_attn.q_proj.weight": [16, 12], p + "self_attn.k_proj.weight": [8, 12],
            p + "self_attn.v_proj.weight": [8, 12], p + "self_attn.o_proj.weight": [12, 16],
            p + "mlp.gate_proj.weight": [20, 12], p + "mlp.up_proj.weight": [20, 12],
            p + "mlp.down_proj.weight": [12, 20], p + "input_layernorm.weight": [12]}
parts = [dict(layer(0), **{"model.embed_tokens.weight": [30, 12]}),
         dict(layer(1), **{"lm_head.weight": [30, 12], "model.norm.weight": [12]})]
os.mkdir("hf")
index = {"metadata": {"total_size": 0}, "weight_map": {}}
for i, tensors in enumerate(parts):
    name = f"model-0000{i + 1}-of-00002.safetensors"
    save(f"hf/{name}", tensors)
    index["weight_map"].update({tensor: name for tensor in tensors})
json.dump(index, open("hf/model.safetensors.index.json", "w"))
PY

contains 'huggingface: 19 tensors' "$weft" inspect hf
contains 'BF16     [16,12]              model.layers.0.self_attn.q_proj.weight' "$weft" inspect hf
json "$weft" inspect hf --layout "$layouts/llama.layout" --json -- \
    'it["format"] == "huggingface" and it["files"] == 2 and len(it["tensors"]) == 19' \
    'it["metadata"] == {"format": "pt"} and it["tensors"][0]["shape"] == [30, 12]' \
    'len(it["ranks"]) == 4 and it["ranks"][0]["bytes"] >= it["ranks"][3]["bytes"] > 0' \
    '[t["layout"] for t in it["tensors"][:3]] == ["S(0)", "S(0)", "R"]' \
    'it["ranks"][3]["shapes"][:3] == [[6, 12], [6, 12], [12]] and len(it["ranks"][0]["shapes"]) == 19'
contains 'metadata format: pt' "$weft" inspect hf
"$weft" inspect hf --layout "$layouts/llama.layout" >placed || not_so "a layout as text"
contains 'placements and shapes on the ranks of the mesh tp=4:' cat placed
contains 'BF16     [16,12]              S(0)         [4,12]               model.layers.0.self_attn.q_proj.weight' cat placed
contains 'BF16     [12,16]              S(1)         [12,4]               model.layers.0.self_attn.o_proj.weight' cat placed
contains 'BF16     [30,12]              S(0)         [8,12] or [6,12]     lm_head.weight' cat placed
contains 'BF16     [12]                 R            [12]                 model.norm.weight' cat placed
contains 'rank 3 holds' cat placed

# From whole tensors to tp=2, to tp=4, and back; nothing changes.
"$weft" reshard hf tp2 --layout "$layouts/llama.layout" --mesh tp=2 --json >events || not_so "events"
is '2' grep -c '^{"event":"[a-z]*","path":"tp2"' events
json head -1 events -- 'it["event"] == "begin" and it["steps"] == 19 and it["memory"] > 0'
json tail -1 events -- 'it["event"] == "done" and it["tensors"] == 19' \
    'it["written"] > it["read"] and it["time_ns"] > 0 and it["resumed"] == 0'
contains 'ranks: 19 tensors' "$weft" inspect tp2
contains 'BF16     [16,12]              S(0)         model.layers.0.self_attn.q_proj.weight' "$weft" inspect tp2
json "$weft" reshard tp2 tp4 --layout "$layouts/llama.layout" --dry-run --json -- \
    'it["event"] == "plan" and it["memory"] <= 256 << 20 and it["steps"] == 19 and it["predicted_ns"] > 0' \
    'sum(f["read"] for f in it["files"]) == it["read"] and len([f for f in it["files"] if f["read"]]) == 2' \
    '[f["path"] for f in it["files"] if f["written"]] == [f"tp4/rank-0000{i}-of-00004.safetensors" for i in range(4)]'
"$weft" reshard tp2 tp4 --layout "$layouts/llama.layout" --dry-run >plan || not_so "the plan as text"
contains ' of buffers, about ' cat plan
contains 'tp2/rank-00001-of-00002.safetensors' grep '^  read ' plan
contains 'hf exists already; the run needs --force' bash -c "'$weft' reshard tp2 hf --dry-run 2>&1"
if [[ -e tp4 || -e tp4.weft-sample ]]; then not_so "a dry run leaves nothing"; fi
contains 'written in' "$weft" reshard tp2 tp4 --layout "$layouts/llama.layout" -j 3
contains 'the same: 19 tensors' "$weft" verify hf tp4
json "$weft" reshard tp2 new --layout "$layouts/llama.layout" --dry-run --json -- \
    "[f['written'] for f in it['files'] if f['written']] == [$(stat -c %s tp4/* | paste -sd,)]"
contains 'the same' "$weft" verify tp4 tp2
contains 'read' "$weft" reshard tp4 back.safetensors --memory-limit 8M
json "$weft" verify hf back.safetensors --json -- 'it["same"] and it["difference"] is None'

# Checksums do not depend on the layout.
"$weft" reshard hf sums2 --layout "$layouts/llama.layout" --mesh tp=2 --verify >/dev/null || not_so "checksums"
"$weft" reshard tp4 sums --verify --memory-limit 8M >/dev/null || not_so "checksums"
is '' cmp sums/weft.json sums2/weft.json
contains 'the same: 19 tensors' "$weft" verify sums
contains 'the same: 19 tensors' "$weft" verify sums2
part=sums2/rank-00001-of-00002.safetensors
printf 'x' | dd of=$part bs=1 seek=$(($(stat -c %s $part) - 10)) conv=notrunc 2>/dev/null
expect 1 'is replicated, but byte' "$weft" verify sums2
expect 1 'is replicated, but byte' "$weft" verify hf sums2
printf 'x' | dd of=$part bs=1 seek=$(($(stat -c %s $part) - 1500)) conv=notrunc 2>/dev/null
expect 1 'but weft.json has' "$weft" verify sums2
fails 1 'weft.json: No such file' "$weft" verify hf
fails 1 'checksums are written to a folder' "$weft" reshard hf one.safetensors --verify

# A weft.json without checksums proves nothing; one that is a pipe is not waited for.
echo '{"checksum": "weft-1"}' >sums/weft.json
fails 1 'it has no "tensors" behind "checksum"' "$weft" verify sums
echo '{"tensors": {}, "checksum": "weft-1"}' >sums/weft.json
fails 1 'it has no "tensors" behind "checksum"' "$weft" verify sums
rm sums/weft.json && mkfifo sums/weft.json
fails 1 'weft.json is not a regular file' timeout 20 "$weft" verify sums

# Names of tensors may have anything; a terminal is not told to do it.
python3 -c 'import json, struct
h = json.dumps({"a\x1b[31m\nb": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
open("names.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + b"1")'
contains 'a?[31m?b' "$weft" inspect names.safetensors
expect 1 'a?[31m?b' "$weft" verify names.safetensors hf

# All layouts that come with weft are well formed: a name that none of them has is refused.
python3 -c 'import struct; h = b"{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}"
open("t.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + b"1")'
for layout in "$layouts"/*.layout; do
    fails 1 'no pattern of the layout matches tensor "t"; is it the layout of this model?' "$weft" inspect t.safetensors --layout "$layout"
done

# Layouts that come with weft are found by their names; a file of the working directory comes first.
contains '"ranks":' "$weft" inspect hf --layout llama --json
contains '"ranks":' "$weft" inspect hf --layout llama.layout --json
fails 1 'no pattern of the layout matches' "$weft" inspect hf --layout gpt2
printf 'mesh tp=7\n* R\n' >llama.layout
json "$weft" inspect hf --layout llama.layout --json -- 'len(it["ranks"]) == 7'
rm llama.layout
json "$weft" inspect hf --layout llama --mesh tp=3 --json -- 'len(it["ranks"]) == 3'
fails 2 'none: No such file or directory; nor is it one of those that come with weft: chatglm, gpt2, llama' \
    "$weft" reshard hf new --layout none
fails 2 'those that come with weft: fuse-gate-up, fuse-qkv' "$weft" reshard hf new --rules fuse-qvk
fails 2 './llama: No such file' "$weft" reshard hf new --layout ./llama

# Ranks that would have a part of a head are refused; on a mesh with an axis of copies, heads stay whole.
printf '{"hidden_size": 16, "num_attention_heads": 8, "num_key_value_heads": 4}' >hf/config.json
for ranks in 1 2 4; do
    json "$weft" inspect hf --layout llama --mesh "tp=$ranks" --json -- "len(it['ranks']) == $ranks"
done
cut='tensor "model.layers.0.self_attn.k_proj.weight": dimension 0 has 4 heads of 2 indices, which cannot stay whole on the'
fails 1 "$cut 3 ranks of the mesh tp=3; take a number of ranks that divides 4" "$weft" inspect hf --layout llama --mesh tp=3
fails 1 "$cut 8 ranks of the mesh tp=8; take a number of ranks that divides 4, or write a layout for the mesh kv=4,copy=2" \
    "$weft" reshard hf new --layout llama --mesh tp=8
fails 1 "$cut 8 ranks" "$weft" reshard hf new --layout qwen --mesh tp=8
fails 1 "has 8, 4 and 4 heads of 2 indices, which cannot stay whole on the 8 ranks of the mesh tp=8" \
    "$weft" inspect hf --rules fuse-qkv --layout llama --mesh tp=8
cat >copies.layout <<'EOF'
mesh kv=4,copy=2
*.{k,v}_proj.weight    S(0),R     heads0($head_dim)
*.q_proj.weight        S(0),S(0)  heads0($head_dim)
*.o_proj.weight        S(1),S(1)  heads1($head_dim)
*                      R,R
EOF
contains 'written in' "$weft" reshard hf copies --layout copies.layout
contains 'the same' "$weft" verify hf copies
sed 's/copy=2/copy=4/' copies.layout >many.layout
fails 1 'dimension 1 has 8 heads of 2 indices, which cannot stay whole on the 16 ranks of the mesh kv=4,copy=4; take a number of ranks that divides 8' \
    "$weft" inspect hf --layout many.layout
# What the error advises holds for placements with sizes too.
advises() { # advises PLACEMENTS RANKS TEXT
    printf 'mesh tp=%s\n*.k_proj.weight %s heads0(2)\n* R\n' "$2" "$1" >sizes.layout
    fails 1 "$3" "$weft" inspect hf --layout sizes.layout
}
advises 'SS(0,2)' 4 'has 2 chunks of 2 heads of 2 indices, which cannot stay whole on the 4 ranks of the mesh tp=4; take a number of ranks that divides 2'
lacks 'kv=' "$weft" inspect hf --layout sizes.layout
advises 'SS(0,3)' 2 'has 4 heads of 2 indices, which cannot stay whole on the 2 ranks of the mesh tp=2; write a number of chunks that divides the number of heads, not 3'
advises 'G(0;3,5)' 2 'write sizes that are multiples of 2'
advises 'B(0;3,5)' 2 'write parts that are multiples of 2'
# A size that is not known is not passed over in silence.
printf 'mesh tp=2\n*.k_proj.weight S(0) heads0($head_dimm)\n* R\n' >wrong.layout
fails 1 'tensor "model.layers.0.self_attn.k_proj.weight": heads0($head_dimm): $head_dimm is a number of the model, but hf/config.json does not have it' \
    "$weft" inspect hf --layout wrong.layout
printf '{"hidden_size": 16, "num_attention_heads": 8, "head_dim": 2.5}' >hf/config.json
fails 1 'heads0($head_dim): $head_dim is a number of the model, but hf/config.json has no whole number for it' \
    "$weft" inspect hf --layout llama --mesh tp=2
printf '{"hidden_size": 17, "num_attention_heads": 8}' >hf/config.json
fails 1 'hf/config.json does not have it' "$weft" inspect hf --layout llama --mesh tp=2
printf '{"head_dim": 0}' >hf/config.json
fails 1 'heads0($head_dim): it is 0 in hf/config.json; expected at least 1' "$weft" inspect hf --layout llama --mesh tp=2
contains 'heads that the layout wants whole are not checked, such as heads0($head_dimm) of tensor "model.layers.0.self_attn.k_proj.weight": tp2/config.json does not exist' \
    "$weft" reshard tp2 new --layout wrong.layout --dry-run
# Scales of blocks are split like their weights, and have no heads.
mkdir fp8
python3 -c 'import json, struct
h, at = {}, 0
for name, rows in ("weight", 8), ("weight_scale_inv", 2), ("bias", 8):
    h["model.layers.0.self_attn.k_proj." + name] = {"dtype": "U8", "shape": [rows], "data_offsets": [at, at + rows]}
    at += rows
h = json.dumps(h).encode()
open("fp8/model.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + bytes(at))'
printf '{"head_dim": 2}' >fp8/config.json
json "$weft" inspect fp8 --layout qwen --mesh tp=2 --json -- 'it["ranks"][1]["shapes"] == [[4], [4], [1]]'
fails 1 'k_proj.bias": dimension 0 has 4 heads' "$weft" inspect fp8 --layout qwen --mesh tp=8
printf '{"n_embd": 16, "n_head": 4}' >hf/config.json
fails 1 'has 2 heads of 4 indices' "$weft" inspect hf --layout llama --mesh tp=4
rm hf/config.json

# Differences are named.
cp -r hf changed
printf 'x' | dd of=changed/model-00002-of-00002.safetensors bs=1 seek=3000 conv=notrunc 2>/dev/null
expect 1 'different: tensor "' "$weft" verify hf changed
json "$weft" verify changed hf --json -- 'not it["same"] and "differs at element [" in it["difference"]'
expect 1 'has tensor "' "$weft" verify hf hf/model-00001-of-00002.safetensors

# Memory does not grow with the checkpoint: 192 MiB pass through a process of 128 MiB.
python3 - <<'PY'
import json, struct
size = 64 << 20
text = json.dumps({f"model.{i}.q_proj.weight": {"dtype": "BF16", "shape": [8192, 4096],
                   "data_offsets": [i * size, (i + 1) * size]} for i in range(3)}).encode()
with open("large.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    file.seek(3 * size - 1, 1)
    file.write(b"1")
PY
printf 'mesh tp=4\n* S(1)\n' >columns.layout
limit='ulimit -v 131072'
if grep -qaE '__(asan|tsan)_init' "$weft"; then limit=true; fi # sanitizers reserve terabytes
contains 'written in' bash -c "$limit && '$weft' reshard large.safetensors bounded --layout columns.layout --memory-limit 16M -j 2"
contains 'the same' "$weft" verify large.safetensors bounded
rm -rf bounded

# The same for rows that end inside a byte.
python3 - <<'PY'
import json, struct
text = json.dumps({"w": {"dtype": "F4", "shape": [16384, 16385], "data_offsets": [0, 16384 * 16385 // 2]}}).encode()
with open("halves.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    file.truncate(8 + len(text) + 16384 * 16385 // 2)
PY
contains 'the same' bash -c "$limit && '$weft' verify halves.safetensors halves.safetensors"
rm halves.safetensors

# A run that is killed at any moment leaves nothing that looks complete, and does not hinder the next.
python3 - <<'PY'
import json, struct
text = json.dumps({"q_proj.weight": {"dtype": "BF16", "shape": [3072, 4096], "data_offsets": [0, 3072 * 8192]}}).encode()
with open("large.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    file.write(bytes(i % 253 for i in range(8192)) * 3072)
PY
begin()
{
    rm -rf killed
    env --default-signal=INT "$weft" reshard large.safetensors killed --layout columns.layout >said 2>&1 &
    pid=$!
    until [[ -e killed.weft-partial || -e killed ]] || ! kill -0 $pid 2>/dev/null; do :; done
}
for round in 1 2 3; do
    begin
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    if [[ -e killed ]]; then contains 'the same' "$weft" verify large.safetensors killed; fi
done
rm -rf killed
contains 'written in' "$weft" reshard large.safetensors killed --layout columns.layout
if [[ -e killed.weft-partial ]]; then not_so "round $round: the partial folder is gone"; fi

# An interrupted run says so and how to go on, unless it has ended before.
begin
kill -INT $pid 2>/dev/null
wait $pid
status=$?
if [[ $status -ne 0 && $status -ne 130 ]]; then not_so "exit code $status of an interrupted run: $(cat said)"; fi
if [[ $status -eq 130 && -e killed ]]; then not_so "an interrupted run leaves nothing at the target"; fi
if [[ -e killed.weft-partial ]]; then contains 'the same command with --resume continues' cat said; fi
rm -rf killed
contains 'written in' "$weft" reshard large.safetensors killed --layout columns.layout --resume
contains 'the same' "$weft" verify large.safetensors killed
if [[ -e killed.weft-partial || -e killed.weft-journal ]]; then not_so "a resumed run leaves nothing else"; fi
rm -rf killed large.safetensors

# Refusals.
fails 1 'exists already; weft replaces it only if told to (the option replace, in the tool --force)' \
    "$weft" reshard hf tp4
fails 1 'the path is empty' "$weft" reshard hf ''
fails 1 'config.json' bash -c "touch tp4/config.json && '$weft' reshard hf tp4 --force"
fails 3 'new/model.safetensors: 8560 bytes are needed: File too large; raise the limit of the size of files, which is 1 KiB (ulimit -f)' \
    bash -c "ulimit -f 1 && '$weft' reshard hf new"
fails 3 'Too many open files; raise the limit of open files, which is 5 (ulimit -n)' \
    bash -c "ulimit -n 5 && '$weft' reshard hf new"
if [[ -e new.weft-partial ]]; then not_so "a file that may not be so large leaves nothing"; fi
fails 2 'give --layout too' "$weft" reshard hf new --mesh tp=2
fails 1 'a file per rank needs a folder' "$weft" reshard hf new.safetensors --layout llama
fails 3 'nowhere/new: its folder does not exist' "$weft" reshard hf nowhere/new
fails 2 'must have as many' "$weft" reshard hf new --layout "$layouts/llama.layout" --mesh 2x2
fails 2 'axis 0 of the layout llama is tp, not pp; use --mesh tp=2' "$weft" reshard hf new --layout llama --mesh pp=2
contains '"ranks":' "$weft" inspect hf --layout llama --mesh 2 --json
fails 2 'TO, the target, is missing' "$weft" reshard hf
fails 2 'FROM, the source, and TO, the target, are missing' "$weft" reshard
fails 3 'weft_checkpoint_open: nowhere: No such file or directory' "$weft" reshard nowhere new
fails 3 'weft_checkpoint_open: nowhere: No such file or directory' "$weft" inspect nowhere
fails 3 'weft_checkpoint_open: nowhere: No such file or directory' "$weft" verify nowhere
fails 3 'weft_checkpoint_open: nowhere: No such file or directory' "$weft" verify hf nowhere
fails 2 'one or two checkpoints are needed' "$weft" verify
fails 2 'the checkpoint is missing' "$weft" inspect
printf 'mesh tp=2\n*_proj.weight S(0)\n' >short.layout
fails 1 'no pattern of the layout matches tensor "lm_head.weight"' "$weft" reshard hf new --layout short.layout
printf 'mesh tp=2\n* P\n' >partial.layout
fails 2 'a checkpoint has no partial placement' "$weft" reshard hf new --layout partial.layout
rm hf/model-00002-of-00002.safetensors
fails 1 'model-00002-of-00002.safetensors: this file is missing' "$weft" reshard hf new
if [[ -e new || -e new.weft-partial ]]; then not_so "a refused command leaves nothing"; fi
finish
