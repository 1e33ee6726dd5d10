#!/usr/bin/env bash
# The example GPT as a pipeline: its loss is that of one rank, within 1e-4 of it, with every schedule.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1 gpt=$2
export WEFT_BACKEND=gloo-cpu WEFT_CPU_HEAP=1073741824 # tsan has little address space

# loss STEP COMMAND...
loss() {
    local step=$1
    shift
    "$@" 2>&1 | sed -n "s/.*step $step loss //p"
}

# close WANT HAVE WHAT: the losses are about equal.
close() {
    check=$((check + 1))
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 1 && (a - b) ^ 2 <= (1e-4 * a) ^ 2) }' ||
        not_so "the loss is $1 on one rank and ${2:-none} with $3"
}

alone=$("$gpt")
ten=$(loss 10 echo "$alone") fifty=$(loss 50 echo "$alone")
for schedule in gpipe 1f1b interleaved looped-bfs zb1p zbv dualpipev; do
    close "$ten" "$(loss 10 "$weft" run -n 2 "$gpt" --schedule "$schedule" --steps 10)" "$schedule"
done
close "$ten" "$(loss 10 "$weft" run -n 4 "$gpt" --schedule zbv --steps 10)" 'zbv on 4 ranks'
close "$fifty" "$(loss 50 "$weft" run -n 4 "$gpt" --schedule zb1p pp=2,dp=2)" 'zb1p and pp=2,dp=2'

# Measured times are a graph that `weft step` reads.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$weft" run -n 2 "$gpt" --schedule zb1p --steps 2 --times "$folder/gpt.graph" >/dev/null ||
    not_so 'gpt --times fails'
contains '# gpt: a microbatch of 1 sequences; measured step:' cat "$folder/gpt.graph"
contains '1f1b: 2 stages on 2 pipeline ranks, 12 microbatches' \
    "$weft" step "$folder/gpt.graph" --mesh pp=2,dp=1 --schedule 1f1b --microbatches 12 --costs cpu
# One rank measures for a mesh: dp and tp share the computation and communicate.
for given in '' '--mesh dp=1'; do
    # shellcheck disable=SC2086
    contains 'median step ' "$gpt" $given --steps 3 --times "$folder/mesh.graph" --for dp=2,tp=3
    contains 'other = sub(emb, demb) ; time ' cat "$folder/mesh.graph"
    json "$weft" step "$folder/mesh.graph" --costs cpu --json -- 'it["ranks"] == 6 and it["layers"] == 2' \
        'it["stage"][0]["communication_ns"] > 0 and it["stage"][0]["reduce_ns"] > 0' 'it["time_ns"] > it["exposed_ns"]'
done
fails 1 'is written by one rank' "$weft" run -n 2 "$gpt" --steps 2 --times "$folder/mesh.graph" --for dp=2
fails 1 '--step is not known' "$gpt" --step 2
fails 1 '--steps needs a value' "$gpt" --steps
fails 1 'usage: gpt ' "$gpt" --step 2
contains 'usage: gpt ' "$gpt" --help
finish
