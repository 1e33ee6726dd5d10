#!/usr/bin/env bash
# Elastic jobs on two hosts, which are network namespaces with a cable between them.
#
#   test_elastic_hosts.sh RANK    exits 77, with the reason, where namespaces are not permitted
set -u
rank=$1
unset WEFT_RENDEZVOUS WEFT_TOKEN WEFT_SERVED LOCAL_WORLD_SIZE TORCHELASTIC_RESTART_COUNT
export WEFT_BACKEND=gloo-cpu WEFT_JOIN_TIMEOUT=60 WEFT_TIMEOUT=6 WEFT_SILENT=2 WEFT_CPU_NETWORK=gloo
export WEFT_TOKEN=0123456789abcdef WEFT_LAUNCHER=weft WEFT_ELASTIC=1 ELASTIC_PAUSE_MS=20
a=weft-a-$$ b=weft-b-$$
work=$(mktemp -d)
failures=0 port=29600 jobs=()

skip() { echo "skipped: $*"; exit 77; }

cleanup() {
    for job in $(jobs -p); do kill -9 "$job" 2>/dev/null; done
    ip netns del "$a" 2>/dev/null
    ip netns del "$b" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

command -v ip >/dev/null || skip "the ip command (iproute2) is missing"
for n in "$a" "$b"; do
    ip netns add "$n" 2>"$work/why" || skip "network namespaces are not permitted here: $(cat "$work/why")"
done
ip link add "wa$$" netns "$a" type veth peer name "wb$$" netns "$b" 2>"$work/why" ||
    skip "no virtual cable can be laid here: $(cat "$work/why")"
ip -n "$a" addr add 198.51.100.1/24 dev "wa$$"
ip -n "$b" addr add 198.51.100.2/24 dev "wb$$"
for n in "$a" "$b"; do ip -n "$n" link set lo up; done
ip -n "$b" link set "wb$$" up

cable() { ip -n "$a" link set "wa$$" "$1"; }
cable up
until ip -n "$a" link show "wa$$" | grep -q "state UP" && ip -n "$b" link show "wb$$" | grep -q "state UP"; do
    sleep 0.1
done

# start STEPS HOSTS: a rank on each of HOSTS, a letter each.  They have joined when this returns.
start() {
    local steps=$1 hosts=$2 i host
    port=$((port + 1)) jobs=()
    rm -f "$work"/out.*
    for ((i = 0; i < ${#hosts}; i++)); do
        if [ "${hosts:i:1}" = a ]; then host=$a; else host=$b; fi
        WEFT_RANK=$i WEFT_SIZE=${#hosts} WEFT_RENDEZVOUS=198.51.100.1:$port WEFT_LOG=info \
            ip netns exec "$host" "$rank" "$steps" >"$work/out.$i" 2>&1 &
        jobs+=($!)
    done
    for ((i = 0; i < 600; i++)); do
        grep -q 'hosts; the address of this host' "$work/out.0" && break
        sleep 0.1
    done
    sleep 1
}

# expect RANK PATTERN: a line of the rank matches, and the rank has ended.
expect() {
    wait "${jobs[$1]}"
    grep -q -- "$2" "$work/out.$1" && return
    failures=$((failures + 1))
    echo "not so: no line of rank $1 matches '$2':"
    cat "$work/out.$1"
}

# What a rank says that has not gone on.
ended='ends: ERR_PEER: .*\(was expelled in generation 1\|it served the rendezvous, and its connection closed\)'
ended+='\|ends: ERR_TIMEOUT: .*\(the rendezvous does not answer\|this one may be cut off\)'
went_on() { expect "$1" "of $2 in generation $3 after"; }

echo 'the cable is pulled for a moment: no rank is lost'
WEFT_SILENT=4 start 100 aab # the kernel sends again after a while that doubles
cable down
sleep 1
cable up
for i in 0 1 2; do went_on $i 3 1; done

echo 'the cable is pulled: the side with more ranks goes on, with the server'
start 200 aab
cable down
went_on 0 2 2
went_on 1 2 2
cable up
expect 2 "$ended"

echo 'the cable is pulled: the side with more ranks goes on, with the standby'
start 200 abb
cable down
went_on 1 2 2
went_on 2 2 2
cable up
expect 0 "$ended"

echo 'the cable is pulled: of two equal sides, that of the lowest rank goes on'
start 200 ab
cable down
went_on 0 1 2
cable up
expect 1 "$ended"

# The cable is slow, and loses packets.
slow() { ip netns exec "$a" tc qdisc add dev "wa$$" root tbf rate 100mbit burst 64k latency 50ms 2>"$work/why"; }
lossy() {
    ip netns exec "$b" nft -f - 2>"$work/why" <<'END'
table inet lossy {
    chain input {
        type filter hook input priority 0;
        iif != lo numgen random mod 100 < 5 drop
    }
}
END
}
if ! slow; then
    echo "left out: a slow cable: $(cat "$work/why")"
elif ! lossy; then
    echo "left out: a cable that loses packets: $(cat "$work/why")"
else
    echo 'the cable is slow and loses packets: no rank is lost'
    WEFT_TIMEOUT=60 WEFT_SILENT=10 start 50 aab
    for i in 0 1 2; do went_on $i 3 1; done
fi

if ((failures)); then exit 1; fi
echo passed
