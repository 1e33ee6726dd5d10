#!/usr/bin/env bash
# A rank is killed in the middle of a step: the others learn which, keep their shards and release everything.
plugins=$WEFT_PLUGIN_PATH # lib.sh clears the variables of weft
source "$(dirname "$0")/../../support/lib.sh"
weft=$1 rank=$2
export WEFT_PLUGIN_PATH=$plugins WEFT_BACKEND=gloo-cpu WEFT_LOG=error
export WEFT_CPU_HEAP=1073741824 # tsan has little address space
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # the check takes seconds for every process

for calls in 1 2 5 7 9 12 31; do
    check=$((check + 1))
    have=$("$weft" run -n 3 --keep-going --timeout 60 "$rank" "$calls" 2>&1)
    if [[ $(grep -c "the shards are intact after: .*rank 1" <<<"$have") != 2 ]]; then
        not_so "both ranks that are left name rank 1, which ends at call $calls: $have"
    fi
done
finish
