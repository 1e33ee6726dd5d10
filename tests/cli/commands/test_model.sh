#!/usr/bin/env bash
# `weft model`: graphs of models, and `weft step` on them.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
graphs=$(dirname "$0")/../../../examples/graphs
file=$(mktemp)
trap 'rm -f "$file" "$file.graph"' EXIT
model() { "$weft" model "$@"; }
step() { "$weft" step "$@"; }

# The sizes of a model, and its graph.
json model "$graphs/llama-70b.model" --json -- 'it["parameters"] == 70553706496 and it["template"] == "llama"' \
    'it["key_heads"] == 8 and it["experts"] == 0 and it["model"].startswith("model llama layers=80 hidden=8192 ")'
contains 'mesh dp=2,tp=4/8' model "$graphs/llama-70b.model" --mesh dp=2,tp=4/8
contains 'param w2 bf16[8192,28672] R,S(1) ; x80' model "$graphs/llama-70b.model" --mesh dp=2,tp=4/8
contains 'param w2 bf16[8192,28672] S(1)[1],S(1)[0] ; x80' model "$graphs/llama-70b.model" --mesh dp=2,tp=4 --sharding parameters
contains 'input tokens i64[6,4096] S(0)' model "$graphs/llama-70b.model" --mesh dp=2 --sequence 4096 --microbatch 3
contains 'n1.again = move(n1s.again)' model "$graphs/llama-70b.model" --mesh tp=4 --recompute full
lacks '.again = linear' model "$graphs/llama-70b.model" --mesh tp=4
contains 'dw1 = cast(dw1p, to=bf16)' model "$graphs/llama-70b.model" --narrow-gradients
contains 'to S(1),R ; x80' model "$graphs/llama-70b.model" --mesh dp=2,tp=4 --whole-sequence
# A graph that is printed, and perhaps edited, is as the model itself.
model "$graphs/llama-70b.model" --mesh pp=2,dp=2,tp=4/8 --recompute full >"$file.graph" || not_so 'model'
"$weft" check "$file.graph" --strict >/dev/null || not_so 'a graph of a model needs no other move'
is "$(step "$file.graph" --mesh pp=2,dp=2,tp=4/8 --costs h100)" \
    step "$graphs/llama-70b.model" --mesh pp=2,dp=2,tp=4/8 --recompute full --costs h100
# A batch makes the number of microbatches, or is refused.
json step "$graphs/llama-70b.model" --mesh pp=2,dp=2,tp=4/8 --batch 64 --microbatch 2 --json -- 'it["microbatches"] == 16' \
    'it["layers"] == 80 and it["stage"][0]["optimizer_bytes"] > 5 * it["stage"][0]["parameter_bytes"]'
fails 1 '--batch is 62 sequences, and a microbatch of all ranks has 4, which do not divide it; 60 or 64 fit' \
    step "$graphs/llama-70b.model" --mesh pp=2,dp=2,tp=4/8 --batch 62 --microbatch 2
fails 1 'which do not divide it; 4 fit' step "$graphs/llama-70b.model" --mesh dp=2,tp=4/8 --batch 3 --microbatch 2
fails 2 '--batch and --microbatches exclude each other' step "$graphs/llama-70b.model" --batch 3 --microbatches 2
fails 2 '--batch is for a schedule by name' step "$graphs/llama-70b.model" --batch 8 --schedule /dev/null
fails 2 '--recompute is for a model; the file is a graph' step "$graphs/llama-8b.graph" --recompute full
fails 2 '--batch is for a model; the file is a graph' step "$graphs/llama-8b.graph" --batch 16
# The same from a config.json, also from standard input.
cat >"$file" <<'END'
{"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
 "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000, "hidden_act": "silu",
 "max_position_embeddings": 32768, "sliding_window": null}
END
json model "$file" --json -- 'it["parameters"] == 46702792704 and it["active_parameters"] == 12879925248'
json step - --mesh dp=2,ep=4/8 --sequence 4096 --costs h100 --json <"$file" -- 'it["layers"] == 32 and it["utilisation"] > 0.1' \
    'it["stage"][0]["parameter_bytes"] < 30e9'
fails 1 'an axis of the mesh has no name; axes of a model are dp' step "$graphs/llama-70b.model" --mesh 64/8
lacks 'bubble' step "$graphs/llama-70b.model" --mesh dp=2,tp=4/8 --batch 4 --microbatch 2
contains 'bubble: ' step "$graphs/llama-70b.model" --mesh pp=2,tp=4/8 --batch 4 --microbatch 2
fails 1 'the model no experts' model "$graphs/llama-70b.model" --mesh dp=2,ep=4
fails 1 'tp=16 does not divide key_heads, 8' step "$graphs/llama-70b.model" --mesh tp=16
fails 1 'is none, full, needed, alternate, or some of norms' model "$graphs/llama-70b.model" --recompute everything
fails 2 '--sharding is "x"' model "$graphs/llama-70b.model" --sharding x
fails 2 '--sequence' model "$graphs/llama-70b.model" --sequence 0
printf '{"model_type": "rwkv"}' >"$file"
fails 1 'the model_type "rwkv" is not known; the known ones are llama, mistral, qwen2, qwen3, nemotron, gpt2, gpt_neox, bloom, mixtral, qwen3_moe' \
    model "$file"
printf 'model llama layers=2 hidden=64 heads=8 ffn=9223372036854775807 vocabulary=96' >"$file"
fails 1 'ffn is 9223372036854775807; it is from 1' model "$file"
fails 3 'No such file' model /nonexistent
fails 2 'give a file with a model' model
finish
