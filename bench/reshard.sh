#!/usr/bin/env bash
# reshard.sh - `weft reshard` against `cp` of the same bytes, on one disk, with data synced in both.
#
#   bench/reshard.sh [--build DIR] [--folder DIR] [--gigabytes N] [--rounds N] [--torch] [--json]
#
# A Hugging Face folder of Llama's shape (4 GB) is written for four ranks; eight ranks with fused q, k and v become two
# with separate ones; 100,000 tensors are planned.  Programs run in turn, with a warm cache.  The table has the median
# of the rounds, cp's time divided by weft's, and the time of processors of both.  The largest memory of weft is that of
# the whole process.  --torch also compares with PyTorch, without its start: a DCP checkpoint is loaded and saved again,
# and its consolidation script makes whole tensors of four ranks' files.  --folder /dev/shm keeps disks out of it.
set -euo pipefail
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
folder=${TMPDIR:-/tmp} gigabytes=4 rounds=3 torch='' python=${PYTHON:-python3}
while (($#)); do
    case $1 in
    --build) build=$2; shift ;;
    --folder) folder=$2; shift ;;
    --gigabytes) gigabytes=$2; shift ;;
    --rounds) rounds=$2; shift ;;
    --json) json=--json ;;
    --torch) torch=yes ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done
weft=$(realpath "$build")/bin/weft
TMPDIR=$folder begin reshard
cd "$work"

# Layers of Llama-3-8B, 436 MB each in bf16, until there are enough bytes; a file of at most 2 GB each.
python3 - "$gigabytes" <<'PY'
import json, os, struct, sys
wanted = int(float(sys.argv[1]) * 1e9)
block = os.urandom(1 << 20)
def write(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors:
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for start in range(0, at, len(block)):
            file.write(block[:min(len(block), at - start)])
    return at
def layer(i):
    p = f"model.layers.{i}."
    return [(p + "self_attn.q_proj.weight", [4096, 4096]), (p + "self_attn.k_proj.weight", [1024, 4096]),
            (p + "self_attn.v_proj.weight", [1024, 4096]), (p + "self_attn.o_proj.weight", [4096, 4096]),
            (p + "mlp.gate_proj.weight", [14336, 4096]), (p + "mlp.up_proj.weight", [14336, 4096]),
            (p + "mlp.down_proj.weight", [4096, 14336]), (p + "input_layernorm.weight", [4096])]
os.mkdir("hf")
count = max(1, round(wanted / 436e6))
files = [list(range(count))[i:i + 4] for i in range(0, count, 4)]
weights = {}
for number, layers in enumerate(files, 1):
    name = f"model-{number:05}-of-{len(files):05}.safetensors"
    tensors = [t for i in layers for t in layer(i)]
    write("hf/" + name, tensors)
    weights.update({t: name for t, _ in tensors})
json.dump({"metadata": {}, "weight_map": weights}, open("hf/model.safetensors.index.json", "w"))
header = {f"layers.{i}.w": {"dtype": "U8", "shape": [8], "data_offsets": [8 * i, 8 * i + 8]} for i in range(100000)}
text = json.dumps(header).encode()
open("many.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(800000))
PY
cp "$root/layouts/llama.layout" tp4.layout
printf 'mesh tp=8\n*.qkv_proj.weight B(0;4096,1024,1024)\n' >fused.layout
sed '/^mesh/d' "$root/layouts/llama.layout" >>fused.layout
"$weft" reshard hf tp8 --layout fused.layout --rules "$root/rules/fuse-qkv.rules" >&2
sync

# timed NAME COMMAND...: seconds and the largest memory of one run, as a line of times.json.
timed()
{
    local name=$1
    shift
    python3 - "$name" "$@" >>times.json <<'PY'
import json, resource, subprocess, sys, time
begin = time.monotonic()
subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL)
seconds = time.monotonic() - begin
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"name": sys.argv[1], "s": seconds, "cpu_s": used.ru_utime + used.ru_stime, "kib": used.ru_maxrss}))
PY
    rm -rf out
    sync
}
if [[ $torch ]]; then
    find_torch || { say_without_torch; exit 77; }
    "$weft" reshard hf tp4 --layout tp4.layout >&2
    "$weft" inspect hf --json | "$python" -c 'import json, sys
json.dump([t["name"] for t in json.load(sys.stdin)["tensors"]], open("tp4.names", "w"))'
    "$python" "$root/bench/reshard_torch.py" make hf dcp >&2
fi
# by_torch NAME ARGUMENTS...: the same for PyTorch, which measures itself.
by_torch()
{
    local name=$1
    shift
    "$python" "$root/bench/reshard_torch.py" "$@" 2>/dev/null | tail -1 |
        sed "s/^{/{\"name\": \"$name\", \"kib\": 0, /" >>times.json
    rm -rf out
    sync
}
separate=(--rules "$root/rules/split-qkv.rules" --set "heads=32,kv_heads=8")
for ((round = 0; round < rounds; round++)); do
    timed cp_hf sh -c 'cp -r --reflink=never hf out && sync -f out'
    timed hf_tp4 "$weft" reshard hf out --layout tp4.layout
    timed cp_tp8 sh -c 'cp -r --reflink=never tp8 out && sync -f out'
    timed tp8_tp2 "$weft" reshard tp8 out --layout "$root/layouts/llama.layout" --mesh tp=2 "${separate[@]}"
    timed plan "$weft" reshard many.safetensors out --dry-run
    if [[ $torch ]]; then
        by_torch torch_dcp copy dcp out
        timed weft_dcp "$weft" reshard dcp out --layout tp4.layout
        by_torch torch_whole consolidate tp4 out
        timed weft_whole "$weft" reshard tp4 out
    fi
done
du -sb hf tp8 >sizes
python3 - "$json" <<'PY'
import json, statistics, sys
rows = [json.loads(line) for line in open("times.json")]
sizes = {line.split()[1]: int(line.split()[0]) for line in open("sizes")}
def median(name, key="s"): return statistics.median(r[key] for r in rows if r["name"] == name)
def memory(name): return max(r["kib"] for r in rows if r["name"] == name) / 1024
table = [("hf -> tp=4", "hf", "cp_hf", "hf_tp4"), ("tp=8 fused -> tp=2", "tp8", "cp_tp8", "tp8_tp2")]
result = {"rows": [{"what": what, "bytes": sizes[source], "cp_s": median(cp), "weft_s": median(own),
                    "of_cp": median(cp) / median(own), "cp_cpu_s": median(cp, "cpu_s"),
                    "weft_cpu_s": median(own, "cpu_s"), "memory_mib": memory(own)} for what, source, cp, own in table],
          "plan_100000_s": median("plan")}
peers = [("DCP loaded and saved", "torch_dcp", "weft_dcp"), ("tp=4 -> whole tensors", "torch_whole", "weft_whole")]
if any(r["name"] == "torch_dcp" for r in rows):
    result["torch"] = [r["torch"] for r in rows if "torch" in r][0]
    result["peers"] = [{"what": what, "torch_s": median(theirs), "weft_s": median(own),
                        "times": median(theirs) / median(own), "torch_cpu_s": median(theirs, "cpu_s"),
                        "weft_cpu_s": median(own, "cpu_s")} for what, theirs, own in peers]
if sys.argv[1]:
    print(json.dumps(result))
else:
    for row in result["rows"]:
        print(f"{row['what']:20} {row['bytes'] / 1e9:6.2f} GB   cp {row['cp_s']:6.2f} s   weft {row['weft_s']:6.2f} s   "
              f"{100 * row['of_cp']:4.0f} % of cp   CPU {row['cp_cpu_s']:.2f} s and {row['weft_cpu_s']:.2f} s   "
              f"{row['memory_mib']:4.0f} MiB")
    print(f"100,000 tensors are planned in {result['plan_100000_s']:.2f} s")
    for row in result.get("peers", []):
        print(f"{row['what']:22} PyTorch {result['torch']} {row['torch_s']:6.2f} s   weft {row['weft_s']:6.2f} s   "
              f"{row['times']:.1f} times as fast   CPU {row['torch_cpu_s']:.2f} s and {row['weft_cpu_s']:.2f} s")
PY
