#!/usr/bin/env bash
# Hosts with different numbers of ranks, in several orders: random redistributions are right, and symmetric memory works
# over UCX, and is refused with the reason over Gloo.
#
#   uneven.sh WEFT CHECK SYMM   where CHECK is redistribute_check and SYMM symm_suite
source "$(dirname "$0")/../../../support/lib.sh"
weft=$1 program=$2 symm=$3
export WEFT_BACKEND=gloo-cpu WEFT_GLOO_INTERFACE=lo WEFT_CPU_NETWORK=$WEFT_TEST_NETWORK
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# on PLACEMENT COMMAND...: ranks, each on the host that its letter names.
on() {
    local placement=$1
    shift
    # shellcheck disable=SC2016
    "$weft" run -n "${#placement}" --timeout 600 bash -c \
        'letters=$1; shift; WEFT_HOST_ID=uneven-${letters:WEFT_RANK:1} exec "$@"' rank "$placement" "$@"
}

for placement in aab abb aba aaab abbc aabbb; do
    check=$((check + 1))
    echo "hosts $placement"
    WEFT_TEST_CASES=${WEFT_TEST_CASES:-25} on "$placement" "$program" "$work/board" >"$work/log" 2>&1 || {
        not_so "redistributions on hosts $placement are right:"
        cat "$work/log"
    }
done
if [[ $WEFT_CPU_NETWORK == gloo ]]; then
    expect 1 'gloo-cpu has windows between hosts over UCX only, and Gloo' on aab "$weft" bench symm
else
    export WEFT_TIMEOUT=30
    for placement in ab aba abbc; do
        echo "symmetric memory, hosts $placement"
        if ! on "$placement" "$symm" --rounds 100 >"$work/log" 2>&1 || grep -q "not so" "$work/log"; then
            not_so "symmetric memory on hosts $placement is right:"
            cat "$work/log"
        fi
    done
fi
finish
