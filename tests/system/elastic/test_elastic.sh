#!/usr/bin/env bash
# test_elastic.sh WEFT RANK - elastic jobs lose ranks and go on: killed, stopped, leaving, several at once, one after the
# other; with the launcher's server, and with that of rank 0 and its standby.
set -u
weft=$1
rank=$2
unset WEFT_RENDEZVOUS WEFT_TOKEN WEFT_SERVED LOCAL_WORLD_SIZE TORCHELASTIC_RESTART_COUNT
export WEFT_BACKEND=gloo-cpu WEFT_JOIN_TIMEOUT=60 WEFT_TIMEOUT=60 WEFT_SILENT=2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad=0

# Ranks without a launcher: own SIZE MIN ARGUMENTS.
own() {
    local size=$1 min=$2 jobs=() i
    shift 2
    for ((i = 0; i < size; i++)); do
        WEFT_LAUNCHER=weft WEFT_RANK=$i WEFT_SIZE=$size WEFT_RENDEZVOUS=unix:elastic-$$ WEFT_ELASTIC=$min \
            "$rank" "$@" >>"$folder/out" 2>&1 &
        jobs+=($!)
    done
    wait "${jobs[@]}" 2>/dev/null
}

# expect COUNT PATTERN NAME: so many lines of the output match.
expect() {
    local found
    found=$(grep -c -- "$2" "$folder/out")
    [ "$found" = "$1" ] && return
    echo "$3: $found lines match '$2', expected $1; the output:"
    cat "$folder/out"
    bad=1
}

# job NAME SIZE LEFT GENERATION ARGUMENTS: LEFT ranks are left at the end, both ways.
job() {
    local name=$1 size=$2 left=$3 generation=$4
    shift 4
    for way in served own; do
        : >"$folder/out"
        if [ $way = served ]; then
            "$weft" run -n "$size" --min 1 --timeout 120 "$rank" "$@" >"$folder/out" 2>&1 || bad=1
        else
            own "$size" 1 "$@" 2>/dev/null
        fi
        expect "$left" "of $left in generation $generation after" "$name, $way"
        expect 0 'not so\|rank . ends' "$name, $way"
    done
}

job 'a killed rank' 4 3 2 12 3:4:kill
job 'rank 0' 4 3 2 12 0:4:kill
job 'one after the other' 4 1 4 20 0:4:kill 1:8:kill 2:12:kill
job 'two at once' 4 2 2 12 2:4:kill 3:4:kill
job 'one that leaves' 4 3 2 12 2:5:leave
job 'a rank that asks' 4 4 2 12 1:5:next
job 'a stopped rank' 4 3 2 12 3:4:stop
job 'a stopped rank 0' 4 3 2 12 0:4:stop
expect 1 'process [0-9]* of rank 0 is killed\|was expelled: it is stopped.*silent for 2.0 s$' 'a stopped rank 0' || true

# Fewer than the minimum: the job ends, and says why.
"$weft" run -n 4 --min 3 --timeout 120 "$rank" 12 1:3:kill 2:6:kill >"$folder/out" 2>&1 && bad=1
expect 2 'rank [03] ends: ERR_PEER: weft_context_next: the job ends: fewer than 3 ranks are left' 'too few ranks'

# WEFT_SILENT=0: a stopped rank is not expelled, and the time limit of the communicator ends the wait.
: >"$folder/out"
(
    export WEFT_SILENT=0 WEFT_TIMEOUT=2
    "$weft" run -n 2 --min 1 --timeout 20 "$rank" 12 1:4:stop >"$folder/out" 2>&1
)
expect 0 'was expelled: it is stopped' 'no expulsion'
exit $bad
