#!/bin/sh
# hosts.sh - weft's collectives between two hosts against Open MPI, MPICH and Gloo, in one table.
#
#   bench/hosts.sh [--json] [--rounds N] [--budget-ms N] [--build DIR] [--sizes LIST]
#                  [--ranks "1 2"] [--cables "full 10gbit 1gbit"]
#
# The hosts are network namespaces with a cable between them, which tbf slows down to the given
# speeds.  All run the same measuring loop (cli/timing/loop.c) over TCP, in turn, N times over; the
# table keeps each cell's least time.  --ranks is per host.  The MPIs are the newest that PyPI offers,
# in environments under the build folder.  Needs the right to make network namespaces.
set -eu

# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
rounds=3
budget_ms=50
ranks_list="1 2"
cables="full 10gbit 1gbit"
sizes=8,4096,65536,1048576,16777216,67108864

while [ $# -gt 0 ]; do
    take_option "$@" || case $1 in
    --sizes) sizes=$2 ;;
    --cables) cables=$2 ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift "$taken"
done

begin hosts
mkdir "$work/rows"
a=weft-a-$$ b=weft-b-$$
address_a=198.51.100.1 address_b=198.51.100.2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

finished() { [ "$1" = 0 ] || say "$2 ended early with status $1"; }

# ---- the two hosts ----

lay_cable() {
    command -v ip >/dev/null || { say "the ip command (iproute2) is missing"; exit 1; }
    ip netns add "$a"
    ip netns add "$b"
    ip link add "wa$$" netns "$a" type veth peer name "wb$$" netns "$b"
    ip -n "$a" addr add "$address_a/24" dev "wa$$"
    ip -n "$b" addr add "$address_b/24" dev "wb$$"
    for n in "$a" "$b"; do ip -n "$n" link set lo up; done
    ip -n "$a" link set "wa$$" up
    ip -n "$b" link set "wb$$" up
    # UCX uses no interface before the kernel has seen that its cable is connected.
    until ip -n "$a" link show "wa$$" | grep -q "state UP" &&
        ip -n "$b" link show "wb$$" | grep -q "state UP"; do sleep 0.1; done
}
clear_up() {
    ip netns del "$a" 2>/dev/null || :
    ip netns del "$b" 2>/dev/null || :
    rm -rf "$work"
}
trap clear_up EXIT

# slow_down SPEED: of the cable, in both directions.
slow_down() {
    for end in "$a wa$$" "$b wb$$"; do
        # shellcheck disable=SC2086
        set -- $end "$1"
        tc -n "$1" qdisc del dev "$2" root 2>/dev/null || :
        [ "$3" = full ] || tc -n "$1" qdisc add dev "$2" root tbf rate "$3" burst 512kb latency 20ms
        set -- "$3"
    done
}

# What the MPIs start on the other host instead of ssh: AGENT [options] ADDRESS COMMAND...
make_agent() {
    cat >"$work/agent" <<EOF
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
case \$1 in $address_a) host=$a ;; *) host=$b ;; esac
shift
exec ip netns exec "\$host" unshare --uts sh -c 'hostname "\$1"; shift; exec sh -c "\$*"' sh "\$host" "\$@"
EOF
    chmod +x "$work/agent"
}

# ---- who is measured; each run_* writes rows/ROUND-RANKS-WHO in the folder of the cable ----

# build_mpi NAME: its newest wheel, and its program.
build_mpi() {
    venv=$build/mpi-$1
    [ -x "$venv/bin/mpicc" ] || {
        say "installing $1 from PyPI into $venv"
        { "$python" -m venv "$venv" && "$venv/bin/pip" install -q --upgrade "$1"; } >"$work/pip.log" 2>&1 ||
            { leave_out "$1" "its wheel cannot be installed"; return; }
    }
    "$venv/bin/mpicc" -O3 -D_GNU_SOURCE "-I$root/cli" "-I$here/peers" "-DPEER_NAME=\"$1\"" \
        "$here/peers/peer_mpi.c" "$here/peers/peer.c" "$root/cli/timing/loop.c" \
        "$root/cli/bench/pattern.c" -o "$work/$1" || leave_out "$1" "its program did not build"
}

peer_options() { echo "--sizes $sizes --budget-ms $budget_ms"; }

run_openmpi() { # ROUND RANKS
    [ -x "$work/openmpi" ] || return 0
    status=0
    # shellcheck disable=SC2046
    timeout 300 ip netns exec "$a" unshare --uts sh -c 'hostname "$1"; shift; exec "$@"' sh "$a" \
        "$build/mpi-openmpi/bin/mpirun" --bind-to none --prtemca plm_ssh_agent "$work/agent" \
        -x OMPI_MCA_pml=ob1 -x OMPI_MCA_btl=self,sm,tcp --host "$address_a:$2,$address_b:$2" \
        -np $((2 * $2)) "$work/openmpi" $(peer_options) >"$rows/$1-$2-openmpi" 2>"$work/err" ||
        status=$?
    finished $status "openmpi, $2 ranks per host"
}

run_mpich() { # ROUND RANKS
    [ -x "$work/mpich" ] || return 0
    status=0
    tls=tcp,self
    [ "$2" = 1 ] || tls=tcp,self,sm
    # shellcheck disable=SC2046
    timeout 300 ip netns exec "$a" unshare --uts sh -c 'hostname "$1"; shift; exec "$@"' sh "$a" \
        env UCX_TLS=$tls "$build/mpi-mpich/bin/mpiexec" -launcher ssh -launcher-exec "$work/agent" \
        -localhost "$address_a" -hosts "$address_a:$2,$address_b:$2" -n $((2 * $2)) "$work/mpich" \
        $(peer_options) >"$rows/$1-$2-mpich" 2>"$work/err" || status=$?
    finished $status "mpich, $2 ranks per host"
}

port=29600
run_weft() { # ROUND RANKS NETWORK
    port=$((port + 1))
    out=$rows/$1-$2-weft-$3
    rank=$((2 * $2))
    while [ "$rank" -gt 0 ]; do
        rank=$((rank - 1))
        host=$a file=$out
        [ "$rank" -lt "$2" ] || host=$b
        [ "$rank" = 0 ] || file=/dev/null
        timeout 300 ip netns exec "$host" env WEFT_RANK=$rank WEFT_SIZE=$((2 * $2)) \
            WEFT_TOKEN=0123456789abcdef WEFT_HOST_ID="$host" WEFT_RENDEZVOUS="$address_a:$port" \
            WEFT_BACKEND=gloo-cpu WEFT_CPU_NETWORK="$3" UCX_TLS=tcp "$weft" bench coll --json \
            --dtype f32 --sizes "$sizes" --budget-ms "$budget_ms" >"$file" 2>"$work/err-$rank" &
    done
    wait
    [ -s "$out" ] || say "weft over $3, $2 ranks per host, failed: $(tail -n 1 "$work/err-0")"
}

build_weft bin/weft
weft=$build/bin/weft
build_mpi openmpi
build_mpi mpich
make_agent
lay_cable

for cable in $cables; do
    slow_down "$cable"
    rows=$work/rows/$cable
    mkdir "$rows"
    round=1
    while [ "$round" -le "$rounds" ]; do
        for ranks in $ranks_list; do
            say "cable $cable, round $round of $rounds, $ranks ranks per host (load $(cut -d' ' -f1 /proc/loadavg))"
            run_weft "$round" "$ranks" ucx
            run_openmpi "$round" "$ranks"
            run_mpich "$round" "$ranks"
            run_weft "$round" "$ranks" gloo
        done
        round=$((round + 1))
    done
done

python3 "$here/hosts_table.py" ${json:+--json} "$work"
