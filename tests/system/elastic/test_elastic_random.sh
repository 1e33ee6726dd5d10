#!/usr/bin/env bash
# test_elastic_random.sh WEFT RANK - elastic jobs whose ranks are killed and stopped at random moments, one after the other
# and several within a recovery, until one is left.  WEFT_TEST_SEED sets the moments, WEFT_TEST_TIMES multiplies the jobs.
set -u
weft=$1
rank=$2
unset WEFT_RENDEZVOUS WEFT_TOKEN WEFT_SERVED LOCAL_WORLD_SIZE TORCHELASTIC_RESTART_COUNT
export WEFT_BACKEND=gloo-cpu WEFT_JOIN_TIMEOUT=60 WEFT_TIMEOUT=60 WEFT_SILENT=2 ELASTIC_PAUSE_MS=1 ELASTIC_REPLICAS=1
folder=$(mktemp -d)
launcher=
trap 'kill -9 $launcher 2>/dev/null; rm -rf "$folder"' EXIT
seed=${WEFT_TEST_SEED:-20261}
RANDOM=$seed
echo "test_elastic_random: WEFT_TEST_SEED=$seed"

# run SIZE: a job, of which one rank is left.
run() {
    local size=$1 processes=() victim pause signal last=$((RANDOM % $1))
    : >"$folder/events"
    "$weft" run -n "$size" --min 1 --timeout 240 "$rank" 1500 >"$folder/out" 2>&1 &
    launcher=$!
    until ((${#processes[@]} == size)); do
        mapfile -t processes < <(pgrep -P "$launcher") # in the order of their ranks
        sleep 0.01
    done
    until [ "$(grep -c 'generation 1 has begun' "$folder/out")" = "$size" ]; do sleep 0.01; done
    for victim in $(seq 0 $((size - 1)) | shuf --random-source=<(yes "$RANDOM")); do
        if ((victim == last)); then continue; fi
        pause=$((RANDOM % 3 == 0 ? RANDOM % 20 : RANDOM % 300)) signal=KILL
        if ((RANDOM % 8 == 0)); then signal=STOP; fi
        sleep "$(printf '0.%03d' $pause)"
        kill -$signal "${processes[victim]}" 2>/dev/null
        echo "after $pause ms, rank $victim: $signal" >>"$folder/events"
    done
    wait "$launcher" && grep -q "^\[$last\] rank $last is 0 of 1 in generation" "$folder/out" &&
        ! grep -q 'not so' "$folder/out" && return
    echo "not so: rank $last of $size goes on; what happened:"
    cat "$folder/events" "$folder/out"
    exit 1
}

for ((number = 0; number < 6 * ${WEFT_TEST_TIMES:-1}; number++)); do
    run $((2 + RANDOM % 5))
done
echo "$number jobs"
