#!/usr/bin/env bash
# Programs on ranks of several network namespaces: the conformance kit, symmetric memory over UCX, random
# redistributions, training with sharded parameters, checkpoints, and ranks that are killed meanwhile.
#
#   jobs.sh WEFT NETWORK HOSTS TESTS NAMESPACES
#
# TESTS is the folder of the test programs, and NAMESPACES the library of namespaces.c.  Exits 77, with the reason,
# where namespaces are not permitted.
weft=$1 network=$2 count=$3 tests=$4 library=$5
work=$(mktemp -d)
# shellcheck source=tests/plugins/gloo-cpu/hosts/lan.sh
source "$(dirname "$0")/lan.sh"
trap 'take_up_lan; rm -rf "$work"' EXIT
lay_lan "$count"
# The leak check takes seconds for every process.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:verify_asan_link_order=0

echo "the conformance kit"
LD_PRELOAD=$library WEFT_TEST_NAMESPACES=${hosts[*]} WEFT_CPU_NETWORK=$network \
    "$weft" conform gloo-cpu --ranks 4 --hosts "$count" >"$work/conform" 2>&1 ||
    { not_so "the conformance kit passes:"; cat "$work/conform"; }
if [[ $network == ucx ]]; then
    echo "symmetric memory"
    says "$work/conform" '^symm +[0-9]+'
    if ! WEFT_TIMEOUT=30 run_ranks 4 "$tests/symm_suite" --rounds 100 >"$work/symm" 2>&1 ||
        grep -q "not so" "$work/symm"; then
        not_so "symmetric memory is right:"
        cat "$work/symm"
    fi
fi

echo "random redistributions"
WEFT_TEST_CASES=${WEFT_TEST_CASES:-60} run_ranks 4 "$tests/redistribute_check" "$work/board" \
    >"$work/redistribute" 2>&1 || { not_so "redistributions are right:"; cat "$work/redistribute"; }

echo "training, of which a rank is killed"
for calls in 5 31; do
    start "$work/fsdp" 3 env WEFT_TIMEOUT=60 "$tests/fsdp_rank" "$calls"
    ended 300 0 0 2
    ended 300 1 1
    for rank in 0 2; do says "$work/fsdp.$rank" "the shards are intact after: .*rank 1"; done
done

# stored HOW: all four ranks succeed.
stored() {
    run_ranks 4 "$tests/store_rank" "$1" "$work/checkpoint" >"$work/log" 2>&1
    (($(grep -c "rank [0-3]: OK" "$work/log") == 4)) || { not_so "$1:"; cat "$work/log"; }
}

echo "a checkpoint is saved, in the call and in the background, and loaded"
stored save
stored load
rm -rf "$work/checkpoint"
stored begin
stored load
finish
