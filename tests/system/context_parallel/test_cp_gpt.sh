#!/usr/bin/env bash
# The example GPT over several axes: after 50 steps its loss is that of one rank, within 1e-4 of it.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1 gpt=$2
export WEFT_BACKEND=gloo-cpu WEFT_CPU_HEAP=1073741824 # tsan has little address space

loss() {
    "$@" 2>&1 | sed -n 's/.*step 50 loss //p'
}

# close RANKS ARGUMENTS...: the losses are about equal, and the model has learnt something.
close() {
    local got

    check=$((check + 1))
    got=$(loss "$weft" run -n "$1" "$gpt" "${@:2}")
    awk -v a="$alone" -v b="$got" 'BEGIN { exit !(a > 1 && a < 1.6 && (a - b) ^ 2 <= (1e-4 * a) ^ 2) }' ||
        not_so "the loss is $alone on one rank and ${got:-none} with ${*:2}"
}

alone=$(loss "$gpt")
close 8 --mesh dp=2,cp=2,tp=2
close 6 --mesh cp=3,tp=2 --sp
fails 1 'dp divides 12, tp divides 6' "$gpt" --mesh dp=5
fails 1 '--tp is not known' "$gpt" --mesh dp=1 --tp
finish
