#!/usr/bin/env bash
# test_kills.sh KILL_TRIALS - ranks that are killed or stopped at random moments are named by all others.
# WEFT_TEST_KILLS and WEFT_TEST_STOPS are how many trials to run, WEFT_TEST_SEED is the first one's seed.
set -u
trials=$1
seed=${WEFT_TEST_SEED:-1}
unset WEFT_RENDEZVOUS WEFT_TOKEN WEFT_SERVED LOCAL_WORLD_SIZE TORCHELASTIC_RESTART_COUNT
export WEFT_BACKEND=gloo-cpu WEFT_JOIN_TIMEOUT=60 WEFT_TIMEOUT=30
bad=0
"$trials" kill "${WEFT_TEST_KILLS:-100}" "$seed" || bad=1
WEFT_TIMEOUT=3 "$trials" stop "${WEFT_TEST_STOPS:-4}" "$seed" || bad=1
exit $bad
