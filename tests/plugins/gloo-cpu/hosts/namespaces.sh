#!/usr/bin/env bash
# Collectives between network namespaces, and what goes wrong there: killed ranks, pulled cables, hosts that
# vanish, ranks that stop reading.
#
#   namespaces.sh WEFT NETWORK HOSTS    four ranks; exits 77, with the reason, where namespaces are not permitted
weft=$1 network=$2 count=$3
work=$(mktemp -d)
# shellcheck source=tests/plugins/gloo-cpu/hosts/lan.sh
source "$(dirname "$0")/lan.sh"
trap 'take_up_lan; rm -rf "$work"' EXIT
lay_lan "$count"
last=$((count - 1)) # a host; rank LAST is its first

echo "collectives give the right results over the cables"
start "$work/right" 4 "$weft" bench coll --budget-ms 1 --sizes 8,1000,64KiB,1MiB,5MiB --json
ended 600 0 0 1 2 3
says "$work/right.0" "$count hosts; the address of this host is 198.51.100.1$" \
    '"op":"all_to_all","dtype":"f32","bytes":5242880,"ranks":4'
says "$work/right.$last" "$count hosts; the address of this host is 198.51.100.$count$"

echo "rounds of a small stage, and checked calls"
start "$work/rounds" 4 env WEFT_CHECK=1 WEFT_GLOO_STAGE=50K \
    "$weft" bench coll --budget-ms 1 --sizes 8,64KiB,1MiB
ended 600 0 0 1 2 3

# repeat SIZE: collectives of SIZE for minutes, in a row for every second.
repeat() {
    local sizes
    sizes=$(printf "$1,%.0s" {1..64})
    bench=("$weft" bench coll --budget-ms 1000 --sizes "${sizes%,}")
}

# others_name LOG RANK: every other rank names RANK.
others_name() {
    local rank
    for rank in 0 1 2 3; do
        if ((rank != $2)); then says "$1.$rank" "rank $2"; fi
    done
}

repeat 64KiB
for victim in 0 1 3; do
    echo "rank $victim is killed"
    start "$work/killed" 4 env WEFT_TIMEOUT=300 "${bench[@]}"
    busy
    kill -9 "${pids[victim]}" 2>/dev/null
    ended 200 1 0 1 2 3
    others_name "$work/killed" "$victim"
done

# The time limit is that of the start, too.
limit=10
if [[ -n ${WEFT_TEST_SANITIZED:-} ]]; then limit=30; fi

repeat 16MiB
echo "a rank stops reading in large collectives"
start "$work/stopped" 4 env WEFT_TIMEOUT="$limit" "${bench[@]}"
busy
kill -STOP "${pids[1]}"
ended 200 1 0 2 3
others_name "$work/stopped" 1
kill -CONT "${pids[1]}"
ended 200 1 1

echo "a cable is pulled in large collectives"
start "$work/pulled" 4 env WEFT_TIMEOUT="$limit" "${bench[@]}"
busy
pull "$last"
ended 300 1 0 1 2 3
for rank in 0 1 2 3; do says "$work/pulled.$rank" "rank [0-3].* (does not answer|did not|gone|Timed out|lost)"; done
plug_in "$last"

repeat 64KiB
echo "a host vanishes: nothing of its end is heard"
start "$work/vanished" 4 env WEFT_TIMEOUT="$limit" "${bench[@]}"
busy
pull "$last"
survivors=()
for rank in 0 1 2 3; do
    if ((rank % count == last)); then kill -9 "${pids[rank]}"; else survivors+=("$rank"); fi
done
ended 300 1 "${survivors[@]}"
lost="$last"
if ((last + count < 4)); then lost="[$last$((last + count))]"; fi
for rank in "${survivors[@]}"; do says "$work/vanished.$rank" "rank $lost"; done
plug_in "$last"

if [[ $network == gloo ]]; then finish; fi
bench=("$weft" bench symm --budget-ms 20000)
echo "a rank is killed in one-sided operations"
start "$work/killed" 4 env WEFT_TIMEOUT=300 "${bench[@]}"
busy
kill -9 "${pids[1]}" 2>/dev/null
ended 200 1 0 1 2 3
others_name "$work/killed" 1

echo "a cable is pulled in one-sided operations"
start "$work/pulled" 4 env WEFT_TIMEOUT="$limit" "${bench[@]}"
busy
pull "$last"
ended 300 1 0 1 2 3
for rank in 0 1 2 3; do says "$work/pulled.$rank" "rank [0-3].* (does not answer|did not|gone|Timed out|lost)"; done
finish
