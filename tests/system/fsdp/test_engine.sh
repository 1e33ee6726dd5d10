#!/usr/bin/env bash
# The example engine: weft adds at most 80 lines, and the losses are those of the engine without weft, on 1, 2 and 4
# ranks, within 1e-4 of them.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1 engine=$2 alone=$3 source=$4
export WEFT_BACKEND=gloo-cpu WEFT_CPU_HEAP=1073741824 # tsan has little address space
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # the check takes seconds for every process

losses() {
    "$@" 2>&1 | sed -n 's/.*step [0-9]* loss //p' | tr '\n' ' '
}

check=$((check + 1))
lines=$(awk '/^#ifdef DISTRIBUTED/ { on = 1; next } /^#(else|endif)/ { on = 0 } on && NF' "$source" | wc -l)
if [ "$lines" -lt 20 ] || [ "$lines" -gt 80 ]; then not_so "weft adds $lines lines to the engine; at most 80 are allowed"; fi

want=$(losses "$alone")
for ranks in 1 2 4; do
    check=$((check + 1))
    have=$(losses "$weft" run -n "$ranks" "$engine")
    awk -v want="$want" -v have="$have" 'BEGIN {
        count = split(want, a, " ")
        same = count == 4 && split(have, b, " ") == count && a[4] < 2.4
        for (i = 1; i <= count; i++) same = same && (a[i] - b[i]) ^ 2 <= (1e-4 * a[i]) ^ 2
        exit !same }' || not_so "the losses are ${want:-none} without weft and ${have:-none} on $ranks ranks"
done
finish
