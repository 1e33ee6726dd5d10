#!/usr/bin/env bash
# demo.sh - build weft and show what it does, on a fresh Debian or Ubuntu: a tensor of 64 MiB moves
# between two layouts on four ranks of this machine.
#
#   ci/demo.sh [--installed]     --installed: builds nothing; weft and examples/redistribute are on the PATH
source "$(dirname "$0")/lib.sh"
weft=build/demo/bin/weft program=build/demo/bin/redistribute
if [[ ${1:-} == --installed ]]; then weft=$(command -v weft) program=$(command -v redistribute); fi
tensor=(--mesh "dp=2,tp=2" --shape 4096x4096)
from="S(0),R"
to="R,S(1)"

info()
{
    echo "The plugins of this machine:"
    "$weft" info
}

layouts()
{
    echo "64 MiB in rows over dp, $from:"
    "$weft" layout "${tensor[@]}" --placements "$from"
    echo "and in columns over tp, $to:"
    "$weft" layout "${tensor[@]}" --placements "$to"
}

plan()
{
    echo "The plan from the first to the second:"
    "$weft" plan "${tensor[@]}" --from "$from" --to "$to" --costs cpu
}

redistribute()
{
    echo "Four ranks on $(nproc) cores redistribute it, and check every element.  Beside it: the same bytes, copied"
    echo "by four processes at once on the same cores."
    "$weft" redistribute --ranks 4 "${tensor[@]}" --from "$from" --to "$to"
    echo "Five elements on four ranks, which a gather of padded shards would mix up:"
    "$weft" redistribute --ranks 4 --mesh 2x2 --shape 5 --from "S(0),S(0)" --to "R,R"
}

program()
{
    echo "The same from a program, on eight ranks:"
    "$weft" run -n 8 "$program"
}

checkpoints()
{
    local folder
    folder=$(mktemp -d)
    echo "A small checkpoint of Llama's shape, cut for two ranks, then for four:"
    python3 - "$folder/hf.safetensors" <<'END'
import json, struct, sys
header, at = {}, 0
for i in range(2):
    for name, shape in (("self_attn.q_proj", [256, 128]), ("self_attn.o_proj", [128, 256]), ("mlp.up_proj", [512, 128]),
                        ("mlp.down_proj", [128, 512]), ("input_layernorm", [128])):
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[f"model.layers.{i}.{name}.weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + bytes(i * i % 251 for i in range(at)))
END
    "$weft" reshard "$folder/hf.safetensors" "$folder/tp2" --layout layouts/llama.layout --mesh tp=2
    "$weft" reshard "$folder/tp2" "$folder/tp4" --layout layouts/llama.layout
    "$weft" inspect "$folder/tp4"
    "$weft" verify "$folder/hf.safetensors" "$folder/tp4"
    rm -r "$folder"
}

conform()
{
    echo "The conformance kit proves the plugin that served:"
    "$weft" conform gloo-cpu
}

if [[ ${1:-} != --installed ]]; then
    part packages need build
    part build build release build/demo -DWEFT_BUILD_TESTS=OFF
fi
part info info
part layouts layouts
part plan plan
part redistribute redistribute
part program program
part checkpoints checkpoints
part conform conform
finish ci/demo.sh
