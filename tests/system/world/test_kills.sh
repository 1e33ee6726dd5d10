#!/usr/bin/env bash
# test_kills.sh KILL_TRIALS - ranks that are killed or stopped at random moments are named by all others.
# WEFT_TEST_KILLS, WEFT_TEST_STOPS and WEFT_TEST_CHAINS are how many trials to run, WEFT_TEST_SEED is the first one's
# seed.
set -u
trials=$1
seed=${WEFT_TEST_SEED:-1}
chains=${WEFT_TEST_CHAINS:-8}
unset WEFT_RENDEZVOUS WEFT_TOKEN WEFT_SERVED LOCAL_WORLD_SIZE TORCHELASTIC_RESTART_COUNT
export WEFT_BACKEND=gloo-cpu WEFT_JOIN_TIMEOUT=60 WEFT_TIMEOUT=30
bad=0
"$trials" kill "${WEFT_TEST_KILLS:-100}" "$seed" || bad=1
export WEFT_TIMEOUT=3
"$trials" stop "${WEFT_TEST_STOPS:-4}" "$seed" || bad=1
for ((first = 0; first < chains; first += 4)); do # a trial of these waits most of its time
    jobs=()
    for ((i = first; i < first + 4 && i < chains; i++)); do
        "$trials" chain 1 $((seed + i)) &
        jobs+=($!)
    done
    for job in "${jobs[@]}"; do
        wait "$job" || bad=1
    done
done
exit $bad
