#!/usr/bin/env bash
# test_world_fork.sh WEFT RANK - ranks that fork: their children take no part in the job, and do not keep it from
# seeing that a rank has died.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
program=$2
export WEFT_BACKEND=gloo-cpu WEFT_TIMEOUT=100 WEFT_JOIN_TIMEOUT=60
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT

expect 0 "as expected" "$program" calls
expect 0 "[2] as expected" "$weft" run -n 3 --timeout 100 "$program" calls

# orphaned RANK TEXT: how many survivors say TEXT; without a launcher, since that would tell of the rank's end; its child lives on all the while.
orphaned()
{
    local pids=() rank text child
    text=$(mktemp)
    for rank in 0 1 2; do
        env "RANK=$rank" WORLD_SIZE=3 "LOCAL_RANK=$rank" WEFT_RENDEZVOUS="unix:weft-fork-$$-$1" \
            WEFT_TOKEN=a-token-of-this-test-alone "$program" orphan "$1" >>"$text" 2>&1 &
        pids+=($!)
    done
    for rank in 0 1 2; do wait "${pids[rank]}"; done
    while read -r child; do
        kill -0 "$child" && echo "the child lives"
        kill -9 "$child"
    done < <(sed -n 's/^child //p' "$text")
    grep -c "as expected: ERR_PEER: .*$2" "$text"
    grep -v "^child" "$text"
    rm -f "$text"
}
expect 0 $'the child lives\n2' orphaned 1 "rank 1 "
expect 0 $'the child lives\n2' orphaned 0 ""
finish
