#!/usr/bin/env bash
# Strangers connect to every port of the ranks of a job between two hosts: with noise, with silence, and with the first
# bytes of other protocols.  The job must not notice.
#
#   strangers.sh WEFT NETWORK    exits 77, with the reason, where namespaces are not permitted
weft=$1 network=$2
work=$(mktemp -d)
# shellcheck source=tests/plugins/gloo-cpu/hosts/lan.sh
source "$(dirname "$0")/lan.sh"
trap 'take_up_lan; rm -rf "$work"' EXIT
command -v ss >/dev/null || skip "the ss command (iproute2) is missing"
lay_lan 2

ports() { ip netns exec "${hosts[$1]}" ss -Hltn | awk '{ sub(/.*:/, "", $4); print $4 }' | sort -u; }

# attack ADDRESS PORT: from the switch.
attack() {
    # shellcheck disable=SC2016
    ip netns exec "$switch" bash -c '
        for bytes in 0 1 16 4096 262144; do
            exec 3<>"/dev/tcp/$0/$1" || exit 0
            head -c "$bytes" /dev/urandom >&3
            exec 3>&-
        done
        exec 4<>"/dev/tcp/$0/$1" || exit 0
        printf "GET / HTTP/1.1\r\n\r\n" >&4
        exec 5<>"/dev/tcp/$0/$1" || exit 0
        sleep 3' "$1" "$2" 2>/dev/null
}

start "$work/log" 4 env WEFT_TIMEOUT=120 "$weft" bench coll --budget-ms 400 --sizes 8,64KiB,1MiB,4MiB --json
busy
found=0
for host in 0 1; do
    for port in $(ports "$host"); do
        found=$((found + 1))
        attack "198.51.100.$((host + 1))" "$port" &
        attackers+=($!)
    done
done
echo "$found ports"
((found > 0)) || not_so "the ranks listen"
for attacker in "${attackers[@]}"; do wait "$attacker"; done
kill -0 "${pids[0]}" 2>/dev/null || not_so "the job still ran when the last stranger had left"
ended 600 0 0 1 2 3
says "$work/log.0" '"op":"broadcast","dtype":"f32","bytes":4194304,"ranks":4'
finish
