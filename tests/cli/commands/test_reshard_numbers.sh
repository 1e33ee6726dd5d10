#!/usr/bin/env bash
# Numbers that weft reshard states, compared with a count of the headers of the files; and tensors beside an index.
source "$(dirname "$0")/../../support/lib.sh"
export WEFT_BACKEND=gloo-cpu # also on a machine with a device
weft=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# Two files with an index, and one that the index does not name.
python3 - <<'PY'
import json, os, struct
sizes = {"F32": 4, "BF16": 2, "I64": 8}
def save(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape) in tensors.items():
        count = sizes[dtype]
        for size in shape:
            count *= size
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + count]}
        data += bytes(count)
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
os.mkdir("hf")
one = {"w": ("F32", [48, 10]), "n": ("F32", [10])}
two = {"h": ("BF16", [12, 10]), "step": ("I64", [3])}
save("hf/one.safetensors", one)
save("hf/two.safetensors", two)
index = {k: "one.safetensors" for k in one} | {k: "two.safetensors" for k in two}
json.dump({"weight_map": index}, open("hf/model.safetensors.index.json", "w"))
save("hf/extra.safetensors", {"adapter": ("F32", [5, 4]), "w": ("F32", [48, 10])})
PY

# counted FILES...: bytes of elements, by the headers.
counted()
{
    python3 - "$@" <<'PY'
import json, struct, sys
total = 0
for path in sys.argv[1:]:
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    total += sum(v["data_offsets"][1] - v["data_offsets"][0] for k, v in json.loads(data[8:8 + size]).items() if k[0] != "_")
print(total)
PY
}
source_bytes=$(counted hf/one.safetensors hf/two.safetensors)
is 2224 echo "$source_bytes"

# check NAME OPTIONS...: the dry run, the run, its events and its text state the same bytes as the files have.
check()
{
    local name=$1 read=$2 written
    shift 2
    "$weft" reshard hf "$name-dry" --dry-run --json "$@" 2>/dev/null >"$name.plan" || not_so "plan of $name"
    "$weft" reshard hf "$name" --json "$@" 2>/dev/null >"$name.events" || not_so "run of $name"
    written=$(counted "$name"/*.safetensors)
    json cat "$name.plan" -- "it['read'] == $read and it['written'] == $written" \
        "sum(f['read'] for f in it['files']) == $read" \
        "all(f['written'] == 0 or __import__('os').stat(f['path'].replace('-dry', '')).st_size == f['written'] for f in it['files'])" \
        "len([f for f in it['files'] if f['written']]) == len(__import__('os').listdir('$name'))"
    json head -1 "$name.events" -- "it['event'] == 'begin' and it['read'] == $read and it['written'] == $written"
    json tail -1 "$name.events" -- "it['event'] == 'done' and it['read'] == $read and it['written'] == $written"
    contains "$(python3 -c "print(f'$read B' if $read < 1024 else f'{$read / 1024:.1f} KiB')") to read, " \
        "$weft" reshard hf "$name-dry" --dry-run "$@"
    rm -r "$name"
    contains "$(python3 -c "print(f'$written B' if $written < 1024 else f'{$written / 1024:.1f} KiB')") written in" \
        "$weft" reshard hf "$name" "$@"
}
printf '* : cast bf16\n* = *\n' >narrow.rules
printf '* : cast f64\n* = *\n' >wide.rules
printf 'n = pad0(n, 33)\nx = slice0(w, 0:8)\nw : drop\n* : cast bf16\n* = *\n' >parts.rules
printf 'mesh dp=3,tp=2\nw R,S(0)\nh S(0),R\n* R,R\n' >both.layout
check plain 2224
check replicas 2224 --layout both.layout
check narrow 2224 --rules narrow.rules
check narrow-replicas 2224 --rules narrow.rules --layout both.layout
check wide 2224 --rules wide.rules
check wide-replicas 2224 --rules wide.rules --layout both.layout
check parts $((8 * 10 * 4 + 10 * 4 + 12 * 10 * 2 + 3 * 8)) --rules parts.rules

# Ranks of a launcher state the same.
"$weft" run -n 2 "$weft" reshard hf two --json --rules narrow.rules 2>/dev/null | sed 's/^\[0\] //' >two.events || not_so "two ranks"
json tail -1 two.events -- "it['read'] == 2224 and it['written'] == $(counted two/*.safetensors)"

# What a rank holds is in the dtype that it has after the rules.
contains 'rank 5 holds 604 B' "$weft" inspect hf --rules narrow.rules --layout both.layout

# A tensor that is in a file but not in the index is named; a copy of a listed one is not.
contains 'F32      [5,4]                adapter  (in extra.safetensors, not in the index: left out)' "$weft" inspect hf
contains 'weft inspect: 1 tensor in files of the folder is not in the index' "$weft" inspect hf
json "$weft" inspect hf --json -- 'len(it["tensors"]) == 4' \
    'it["unlisted"] == [{"name": "adapter", "dtype": "F32", "shape": [5, 4], "bytes": 80, "file": "extra.safetensors"}]'
warning='hf/model.safetensors.index.json does not list 1 tensor in files of the folder, such as "adapter" of extra.safetensors'
contains "$warning" "$weft" reshard hf warned
contains "$warning" "$weft" reshard hf warned --dry-run --force --rules narrow.rules
lacks 'does not list' "$weft" reshard hf/model.safetensors.index.json quiet
json "$weft" inspect hf/model.safetensors.index.json --json -- 'it["unlisted"] == []'
is 1 bash -c "'$weft' run -n 2 '$weft' reshard hf ranks 2>&1 | grep -c 'does not list'"

# One tensor is no plural.
contains '.npy: 1 tensor, 80 B read, 80 B written in' "$weft" reshard hf/extra.safetensors one.npy --rules <(printf 'adapter = adapter\n* : drop\n')
contains 'two.npy: 1 tensor, 80 B to read, 80 B to write, 1 job, at most' "$weft" reshard one.npy two.npy --dry-run -j 1
contains 'npy: 1 tensor, 80 B, 1 file' "$weft" inspect one.npy
contains 'the same: 1 tensor, 80 B' "$weft" verify one.npy one.npy

# So is a tensor of a file that the index names for others.
python3 - <<'PY'
import json
index = json.load(open("hf/model.safetensors.index.json"))
del index["weight_map"]["w"]
json.dump(index, open("hf/model.safetensors.index.json", "w"))
PY
contains 'w  (in one.safetensors, not in the index: left out)' "$weft" inspect hf
contains 'does not list 3 tensors in files of the folder, such as "adapter" of extra.safetensors; left out' \
    "$weft" reshard hf without
json "$weft" inspect without --json -- 'len(it["tensors"]) == 3 and it["unlisted"] == []'
json "$weft" inspect hf/model.safetensors.index.json --json -- 'len(it["tensors"]) == 3 and it["unlisted"] == []'
finish
