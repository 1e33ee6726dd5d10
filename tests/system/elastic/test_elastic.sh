#!/usr/bin/env bash
# test_elastic.sh WEFT RANK - elastic jobs lose ranks and go on: killed, stopped, leaving, several at once, one after the
# other; with the launcher's server, and with that of rank 0 and its standby.
set -u
weft=$1
rank=$2
unset WEFT_RENDEZVOUS WEFT_TOKEN WEFT_SERVED LOCAL_WORLD_SIZE TORCHELASTIC_RESTART_COUNT
export WEFT_BACKEND=gloo-cpu WEFT_JOIN_TIMEOUT=60 WEFT_TIMEOUT=60 WEFT_SILENT=2
# Sanitizers keep memory that is freed, and make a job's start slow.
most_kib=2048 late=2
if [ -n "${WEFT_TEST_SANITIZED:-}" ]; then export WEFT_SILENT=5; most_kib=1000000 late=10; fi
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
job 'a rank that stops in an all-reduce' 3 2 2 6 2:4:large
job 'a stopped rank 0' 4 3 2 12 0:4:stop
grep -q 'process [0-9]* of rank 0 is killed: the rank was expelled' "$folder/out" || {
    echo 'a stopped rank 0: the log does not name the process that is killed'
    bad=1
}

# Fewer than the minimum: the job ends, and says why.
: >"$folder/out"
own 4 3 12 1:3:kill 2:6:kill 2>/dev/null
expect 2 'rank [03] ends: ERR_PEER: weft_context_next: the job ends: fewer than 3 ranks are left' 'too few ranks'

# The launcher ends the ranks that are left, too.
"$weft" run -n 4 --min 3 --timeout 120 "$rank" 12 1:3:kill 2:6:kill >"$folder/out" 2>&1 && bad=1

# measure GENERATIONS: the most files, threads and mappings of a rank after so many generations.
measure() {
    local events=() i
    for ((i = 1; i < $1; i++)); do events+=("0:$i:next"); done
    : >"$folder/out"
    own 3 1 $(($1 + 2)) "${events[@]}"
    expect 3 "of 3 in generation $1 after" "$1 generations"
    sed -n 's/.* steps, \([0-9]*\) files, \([0-9]*\) threads, \([0-9]*\) KiB, \([0-9]*\) mappings$/\1 \2 \3 \4/p' \
        "$folder/out" | sort -n | tail -1
}
read -r files threads kib mappings < <(measure 4)
read -r files_later threads_later kib_later mappings_later < <(measure 40)
if [ -z "${kib_later:-}" ] || ((files_later > files + 2 || threads_later > threads || mappings_later > mappings + 4 || kib_later > kib + most_kib)); then
    echo "after 4 generations $files files, $threads threads, $mappings mappings, $kib KiB;" \
        "after 40 $files_later, $threads_later, $mappings_later, $kib_later KiB"
    bad=1
fi

# A rank that is expelled on another host, which the others cannot kill, is told so when it runs again.
if [ "${3:-}" = gloo ]; then
    : >"$folder/out"
    jobs=()
    for i in 0 1 2; do
        WEFT_HOST_ID=host$((i / 2)) WEFT_CPU_NETWORK=gloo WEFT_GLOO_INTERFACE=lo WEFT_LAUNCHER=weft WEFT_RANK=$i \
            WEFT_SIZE=3 WEFT_RENDEZVOUS=unix:elastic-$$ WEFT_ELASTIC=1 "$rank" 8 2:4:stop >>"$folder/out" 2>&1 &
        jobs+=($!)
    done
    wait "${jobs[0]}" "${jobs[1]}"
    kill -CONT "${jobs[2]}"
    wait "${jobs[2]}"
    expect 2 'of 2 in generation 2 after' 'two hosts'
    expect 1 'rank 2 ends: ERR_PEER: weft_context_next: rank 2 was expelled in generation 1 of the job' 'two hosts'
fi

# WEFT_SILENT=0: a stopped rank is not expelled, but named, and can go on, as in a debugger.
: >"$folder/out"
jobs=()
for i in 0 1; do
    WEFT_SILENT=0 WEFT_TIMEOUT=$late WEFT_LAUNCHER=weft WEFT_RANK=$i WEFT_SIZE=2 WEFT_RENDEZVOUS=unix:elastic-$$ \
        WEFT_ELASTIC=1 "$rank" 8 1:4:stop >>"$folder/out" 2>&1 &
    jobs+=($!)
done
for ((i = 0; i < 600; i++)); do
    grep -q 'waits on' "$folder/out" && break
    sleep 0.1
done
kill -CONT "${jobs[1]}"
wait "${jobs[@]}"
expect 2 'of 2 in generation 2 after' 'no expulsion'
expect 0 'expelled: it is stopped\|is killed' 'no expulsion'
grep -q 'waits on: .*rank 1 of 2 did not call weft_context_next within '"$late"'\.0 s' "$folder/out" || {
    echo 'no expulsion: the rank that does not call is not named'
    bad=1
}

# refused TEXT VARIABLES COMMAND: a job that cannot be elastic.
refused() {
    local text=$1
    shift
    env WEFT_ELASTIC=1 "$@" >"$folder/out" 2>&1 && bad=1
    expect 1 "$text" "$*"
}
refused 'ERR_UNSUPPORTED: .*its ranks are threads of one process' "$rank" threads
refused 'ERR_UNSUPPORTED: .*its ranks are simulated' WEFT_SIMULATED_RANKS=2 "$rank" 1
refused 'ERR_INVALID: .*silent_ns (WEFT_SILENT) is 50000000 ns; expected 0 or at least 100 ms' WEFT_SILENT=0.05 "$rank" 1
refused 'ERR_INVALID: .*an elastic job has at most 64 ranks' WEFT_ELASTIC=65 "$rank" 1
exit $bad
