#!/usr/bin/env bash
# Two hosts, as network namespaces with a cable between them, and two ranks on each.
#
#   namespaces.sh WEFT NETWORK    exits 77, with the reason, where namespaces are not permitted
set -u
weft=$1 network=$2
a=weft-a-$$ b=weft-b-$$
work=$(mktemp -d)
failures=0

skip() { echo "skipped: $*"; exit 77; }
not_so() { failures=$((failures + 1)); echo "not so: $*"; }

cleanup() {
    for job in $(jobs -p); do kill -9 "$job" 2>/dev/null; done
    ip netns del "$a" 2>/dev/null
    ip netns del "$b" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

command -v ip >/dev/null || skip "the ip command (iproute2) is missing"
for n in "$a" "$b"; do
    ip netns add "$n" 2>"$work/why" ||
        skip "network namespaces are not permitted here: $(cat "$work/why")"
done
ip link add "wa$$" netns "$a" type veth peer name "wb$$" netns "$b" 2>"$work/why" ||
    skip "no virtual cable can be laid here: $(cat "$work/why")"
ip -n "$a" addr add 198.51.100.1/24 dev "wa$$"
ip -n "$b" addr add 198.51.100.2/24 dev "wb$$"
for n in "$a" "$b"; do ip -n "$n" link set lo up; done
ip -n "$a" link set "wa$$" up
ip -n "$b" link set "wb$$" up
# UCX does not use an interface until the kernel has seen that its cable is connected.
until ip -n "$a" link show "wa$$" | grep -q "state UP" && ip -n "$b" link show "wb$$" | grep -q "state UP"; do
    sleep 0.1
done

# start LOG ENVIRONMENT... : four ranks of `weft bench coll`; the even ones are on the first host.
port=29500
pids=()
start() {
    local log=$1 rank host
    shift
    port=$((port + 1))
    pids=()
    for rank in 0 1 2 3; do
        if ((rank % 2)); then host=$b; else host=$a; fi
        ip netns exec "$host" env WEFT_RANK=$rank WEFT_SIZE=4 WEFT_TOKEN=0123456789abcdef \
            WEFT_RENDEZVOUS=198.51.100.1:$port WEFT_LOG=info \
            WEFT_CPU_NETWORK="$network" "$@" >"$log.$rank" 2>&1 &
        pids+=($!)
    done
}

# ended SECONDS WANT: all ranks have ended by then, with success (WANT 0) or without (1).
ended() {
    local seconds=$1 want=$2 rank code deadline=$((SECONDS + $1))
    for rank in 0 1 2 3; do
        while kill -0 "${pids[rank]}" 2>/dev/null && ((SECONDS < deadline)); do sleep 0.1; done
        if kill -0 "${pids[rank]}" 2>/dev/null; then
            not_so "rank $rank ends within $seconds s"
            kill -9 "${pids[rank]}"
        fi
        wait "${pids[rank]}" 2>/dev/null
        code=$?
        if (((code != 0) != want)); then not_so "rank $rank: exit code $code"; fi
    done
}

says() { grep -q "$2" "$1" || { not_so "\"$2\" in $1:"; cat "$1"; }; }

echo "collectives give the right results over the cable"
start "$work/right" "$weft" bench coll --budget-ms 1 --sizes 8,1000,64KiB,1MiB,5MiB --json
ended 600 0
says "$work/right.0" "2 hosts; the address of this host is 198.51.100.1"
says "$work/right.3" "2 hosts; the address of this host is 198.51.100.2"
says "$work/right.0" '"op":"all_to_all","dtype":"f32","bytes":5242880,"ranks":4'

echo "rounds of a small stage, and checked calls"
start "$work/rounds" WEFT_CHECK=1 WEFT_GLOO_STAGE=50K \
    "$weft" bench coll --budget-ms 1 --sizes 8,64KiB,1MiB
ended 600 0

echo "a host's first rank is killed"
start "$work/killed" WEFT_TIMEOUT=300 "$weft" bench coll --budget-ms 60000 --sizes 64KiB
sleep 2
kill -9 "${pids[1]}" 2>/dev/null
ended 200 1
for rank in 0 2 3; do says "$work/killed.$rank" "rank 1"; done

echo "the cable is pulled"
start "$work/pulled" WEFT_TIMEOUT=4 "$weft" bench coll --budget-ms 60000 --sizes 64KiB
sleep 2
ip -n "$a" link set "wa$$" down
ended 300 1

if ((failures)); then echo "$failures failures"; exit 1; fi
echo passed
