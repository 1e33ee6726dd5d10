#!/usr/bin/env bash
# The example GPT with sizes that options set, none of which the numbers of ranks divide: after 10 steps its loss is that
# of one rank, within 1e-4 of it.  With --bf16 it is another one, close to it.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1 gpt=$2
export WEFT_BACKEND=gloo-cpu WEFT_CPU_HEAP=1073741824 # tsan has little address space
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # the check takes seconds for every process
sizes=(--layers 3 --width 21 --heads 3 --length 7 --vocabulary 17 --batch 6 --steps 10)

# loss RANKS ARGUMENTS...
loss() {
    "$weft" run -n "$1" "$gpt" "${sizes[@]}" "${@:2}" 2>&1 | sed -n 's/.*step 10 loss //p'
}

# close LEAST MOST WANT HAVE WHAT: the two losses differ by LEAST to MOST times the first one.
close() {
    check=$((check + 1))
    awk -v least="$1" -v most="$2" -v a="$3" -v b="$4" 'BEGIN {
        apart = a > b ? a - b : b - a
        exit !(a > 1 && a < 3 && b > 0 && apart >= least * a && apart <= most * a) }' ||
        not_so "the loss is ${3:-none} on one rank, and ${4:-none} with $5"
}

alone=$(loss 1)
close 0 1e-4 "$alone" "$(loss 2)" "2 ranks"
close 0 1e-4 "$alone" "$(loss 3 dp=3)" "dp=3"
close 0 1e-4 "$alone" "$(loss 6 --mesh dp=2,tp=3 --sp)" "dp=2,tp=3"
close 0 1e-4 "$alone" "$(loss 2 --mesh cp=2)" "cp=2"
close 0 1e-4 "$alone" "$(loss 3 --schedule 1f1b)" "a pipeline"
# A part that is kept does not change the loss; a limit for each element does, alike on any number of ranks.
close 0 1e-4 "$alone" "$(loss 6 --keep 3)" "--keep 3"
close 0 1e-4 "$alone" "$(loss 4 --mesh dp=2,cp=2 --keep 2)" "dp=2,cp=2 --keep 2"
memory() { "$weft" run -n 6 "$gpt" "${sizes[@]}" "$@" 2>&1 | sed -n 's/.* \([0-9]*\) bytes of memory at most.*/\1/p'; }
none=$(memory) part=$(memory --keep 2)
((none > 0 && part > none)) || not_so "$part bytes of memory with --keep 2, and $none without"
by_value=$(loss 1 --clip-value 0.002)
close 1e-5 1 "$alone" "$by_value" "--clip-value"
close 0 1e-4 "$by_value" "$(loss 3 --clip-value 0.002)" "3 ranks and --clip-value"
for arguments in "1" "2" "2 --mesh cp=2" "2 --schedule 1f1b"; do
    read -ra words <<<"$arguments"
    close 1e-6 0.02 "$alone" "$(loss "${words[@]}" --bf16)" "$arguments --bf16"
done
fails 1 '--heads must divide --width' "$gpt" --width 20 --heads 3
fails 1 'is not a number above 0' "$gpt" --clip-value 0
fails 1 'would leave nothing to gather' "$gpt" --keep 1
fails 1 'is not for pipelines' "$gpt" --schedule 1f1b --keep 2
fails 1 'use a smaller --batch' "$gpt" --length 8192 --vocabulary 50257 --batch 1024
finish
