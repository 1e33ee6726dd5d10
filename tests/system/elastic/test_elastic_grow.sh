#!/usr/bin/env bash
# test_elastic_grow.sh WEFT RANK - lost ranks of elastic jobs are replaced: by processes that wait, and by processes that
# are started for them; at once, and when the job lets them in.  All runs have the losses of an undisturbed one, bit by bit.
set -u
weft=$1
rank=$2
unset WEFT_RENDEZVOUS WEFT_TOKEN WEFT_SERVED LOCAL_WORLD_SIZE TORCHELASTIC_RESTART_COUNT
export WEFT_BACKEND=gloo-cpu WEFT_JOIN_TIMEOUT=60 WEFT_TIMEOUT=60 WEFT_SILENT=2
if [ -n "${WEFT_TEST_SANITIZED:-}" ]; then export WEFT_SILENT=5; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad=0

fail() {
    echo "not so: $*; the output:"
    cat "$folder/out"
    bad=1
}

losses() { sed -n 's/^\[.*\] \(loss .*\)/\1/p' "$folder/out" | sort -u; }

# job NAME CAME OPTIONS -- ARGUMENTS: CAME processes come later; four ranks end, with the losses of the first job.
job() {
    local name=$1 came=$2 options=()
    shift 2
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    "$weft" run -n 4 --timeout 120 "${options[@]}" "${program[@]}" "$@" >"$folder/out" 2>&1 || fail "$name: exit code $?"
    [ "$(grep -c 'came as rank' "$folder/out")" = "$came" ] || fail "$name: $came processes come"
    [ "$(grep -c 'rank . of 4 after 20 steps' "$folder/out")" = 4 ] || fail "$name: four ranks end"
    [ -s "$folder/losses" ] || losses >"$folder/losses"
    [ "$(wc -l <"$folder/losses")" = 20 ] || fail "$name: the losses of 20 steps"
    losses | cmp -s - "$folder/losses" || fail "$name: the losses are equal"
}

program=("$rank")
job 'undisturbed' 0 --min 4 -- 20
job 'a process that waits is not needed' 0 --min 4 --spares 1 -- 20
job 'a process that waits takes a place' 1 --min 3 --spares 1 -- 20 2:6:kill
job 'the place of rank 0' 1 --min 3 --spares 1 -- 20 0:6:kill
job 'two at once' 2 --min 2 --spares 2 -- 20 1:7:kill 2:7:kill
job 'one that is stopped' 1 --min 3 --spares 1 -- 20 3:9:stop
job 'the others wait for processes that are started' 2 --min 4 --respawn -- 20 0:4:kill 3:12:kill
job 'the others grow' 1 --min 3 --respawn -- 20 1:6:kill
job 'one that waits, and its successor' 2 --min 4 --spares 1 --respawn -- 20 2:3:kill 1:9:kill

# A process with other settings gets no place: the one that is started for the lost rank does.
program=(bash -c 'if [ "${WEFT_SPARE:-}" = 4 ]; then export WEFT_TIMEOUT=59; fi; exec "$0" "$@"' "$rank")
job 'other settings' 1 --min 4 --spares 1 --respawn -- 20 2:6:kill
grep -q 'ERR_MISMATCH: .*different settings' "$folder/out" || fail 'other settings: the error'

# A process that waits is stopped: it is left out after WEFT_SILENT, and another one takes the place.
program=(bash -c 'if [ "${WEFT_SPARE:-}" = 4 ]; then (sleep 0.5; kill -STOP $$) & fi; exec "$0" "$@"' "$rank")
job 'a process that waits is stopped' 1 --min 3 --spares 2 --grace 1 -- 20 2:6:kill

# refused TEXT COMMAND
refused() {
    local text=$1
    shift
    env "$@" >"$folder/out" 2>&1 && fail "$*"
    grep -q -- "$text" "$folder/out" || fail "$* says: $text"
}
refused 'are for elastic jobs of at least two ranks; give --min' "$weft" run -n 4 --spares 1 "$rank" 1
refused 'are for elastic jobs of at least two ranks; give --min' "$weft" run -n 1 --min 1 --respawn "$rank" 1
refused 'ERR_INVALID: weft_init: WEFT_SPARE is 4: a process can wait' WEFT_SPARE=4 WEFT_LAUNCHER=weft WEFT_RANK=0 \
    WEFT_SIZE=2 WEFT_RENDEZVOUS=unix:grow-$$ WEFT_ELASTIC=1 "$rank" 1
refused 'ERR_UNSUPPORTED: .*no process can join this job later' "$weft" run -n 2 --min 1 \
    bash -c 'WEFT_SPARE=4 exec "$0" 1' "$rank"
exit $bad
