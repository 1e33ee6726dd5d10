# shellcheck shell=bash
# lan.sh - sourced by test scripts: hosts that are network namespaces, each with a cable to one switch.
#
#   lay_lan COUNT                 makes hosts; exits 77, with the reason, where that is not permitted
#   start LOG RANKS COMMAND...    starts a job, rank R on host R % COUNT, without a launcher
#   ended SECONDS WANT RANK...    these ranks end by then, with success (WANT 0) or without (1)
#   run_ranks RANKS COMMAND...    runs a job that `weft run` starts, rank R on host R % COUNT
#
# Host H has the address 198.51.100.(H + 1), and the switch has 198.51.100.254.  `weft`, `network` (of
# WEFT_CPU_NETWORK) and `work`, a folder, are the caller's.
set -u
hosts=() wires=() switch=weft-s-$$
failures=0

skip() { echo "skipped: $*"; exit 77; }
not_so() { failures=$((failures + 1)); echo "not so: $*"; }
finish() {
    if ((failures)); then echo "$failures failures"; exit 1; fi
    echo passed
    exit 0
}

take_up_lan() {
    local host
    for job in $(jobs -p); do kill -9 "$job" 2>/dev/null; done
    wait 2>/dev/null
    for host in "$switch" "${hosts[@]}"; do ip netns del "$host" 2>/dev/null; done
}

make_namespace() {
    ip netns add "$1" 2>"$work/why" || skip "network namespaces are not permitted here: $(cat "$work/why")"
    ip -n "$1" link set lo up
}

lay_lan() {
    local i host wire
    command -v ip >/dev/null || skip "the ip command (iproute2) is missing"
    make_namespace "$switch"
    ip -n "$switch" link add weft type bridge 2>"$work/why" ||
        skip "no switch can be made here: $(cat "$work/why")"
    ip -n "$switch" addr add 198.51.100.254/24 dev weft
    ip -n "$switch" link set weft up
    for ((i = 0; i < $1; i++)); do
        host=weft-$i-$$ wire=w$i-$$
        make_namespace "$host"
        hosts+=("$host") wires+=("$wire")
        ip link add "$wire" netns "$host" type veth peer name "$wire" netns "$switch" 2>"$work/why" ||
            skip "no virtual cable can be laid here: $(cat "$work/why")"
        ip -n "$host" addr add 198.51.100.$((i + 1))/24 dev "$wire"
        ip -n "$switch" link set "$wire" master weft up
        ip -n "$host" link set "$wire" up
    done
    # UCX does not use an interface until the kernel has seen that its cable is connected.
    for ((i = 0; i < $1; i++)); do
        until ip -n "${hosts[i]}" link show "${wires[i]}" | grep -q "state UP"; do sleep 0.1; done
    done
    cat >"$work/place" <<END
#!/usr/bin/env bash
# Start a rank of \`weft run\` on its host.
hosts=(${hosts[*]})
exec ip netns exec "\${hosts[WEFT_RANK % ${#hosts[@]}]}" "\$@"
END
    chmod +x "$work/place"
}

# pull HOST: its cable.
pull() { ip -n "$switch" link set "${wires[$1]}" down; }
plug_in() {
    ip -n "$switch" link set "${wires[$1]}" up
    until ip -n "${hosts[$1]}" link show "${wires[$1]}" | grep -q "state UP"; do sleep 0.1; done
}

port=29500
pids=()
start() {
    local log=$1 ranks=$2 rank
    shift 2
    port=$((port + 1)) # those of the job before may still be in use
    pids=()
    for ((rank = 0; rank < ranks; rank++)); do
        ip netns exec "${hosts[rank % ${#hosts[@]}]}" env WEFT_RANK=$rank WEFT_SIZE="$ranks" \
            WEFT_TOKEN=0123456789abcdef WEFT_RENDEZVOUS=198.51.100.1:$port WEFT_LOG=info \
            WEFT_BACKEND=gloo-cpu WEFT_CPU_NETWORK="$network" "$@" >"$log.$rank" 2>&1 &
        pids+=($!)
    done
}

ended() {
    local seconds=$1 want=$2 rank code deadline=$((SECONDS + $1))
    shift 2
    for rank in "$@"; do
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

run_ranks() {
    local ranks=$1
    shift
    ip netns exec "$switch" env WEFT_BACKEND=gloo-cpu WEFT_CPU_NETWORK="$network" \
        "$weft" run --listen 198.51.100.254 --timeout 900 -n "$ranks" "$work/place" "$@"
}

# says FILE TEXT...: all of the patterns are in it.
says() {
    local file=$1 text
    shift
    for text in "$@"; do
        grep -qE "$text" "$file" || { not_so "\"$text\" in $file:"; cat "$file"; }
    done
}

received() { ip -n "${hosts[0]}" -s link show "${wires[0]}" | awk '/RX:/ { getline; print $1 }'; }

# busy: the job has started, and moves data between its hosts.
busy() {
    local before
    before=$(received)
    while kill -0 "${pids[0]}" 2>/dev/null && (($(received) < before + 1000000)); do sleep 0.1; done
}
