#!/bin/sh
# collectives.sh - weft's collectives on the CPU against Open MPI, MPICH and Gloo, in one table.
#
#   bench/collectives.sh --hosts [OPTION...]        between two hosts: bench/hosts.sh
#   bench/collectives.sh [--json] [--rounds N] [--budget-ms N] [--build DIR] [--ranks "2 4"]
#
# All of them run the same measuring loop (cli/timing/loop.c) over the same sizes, in turn, N times
# over; the table keeps each cell's quietest round.  What is missing is installed with apt-get where
# that is possible; a peer that cannot be had is left out, with the reason.
set -eu

# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
rounds=3
budget_ms=100
ranks_list="2 4"
gloo_mtu=16384

if [ "${1-}" = --hosts ]; then
    shift
    exec "$(dirname "$0")/hosts.sh" "$@"
fi
while [ $# -gt 0 ]; do
    take_option "$@" || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
    shift "$taken"
done

begin collectives
mkdir "$work/rows"
cores=$(nproc)

# need COMMAND-OR-FILE PACKAGE...
need() {
    thing=$1; shift
    if command -v "$thing" >/dev/null 2>&1 || [ -e "$thing" ]; then return 0; fi
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    say "installing $*"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
        >"$work/apt.log" 2>&1 || return 1
}

shared="$here/peers/peer.c $root/cli/timing/loop.c $root/cli/bench/pattern.c"
flags="-O3 -D_GNU_SOURCE -I$root/cli -I$here/peers"

# build_mpi NAME PACKAGES...
build_mpi() {
    name=$1; shift
    need "mpicc.$name" "$@" || { leave_out "$name" "mpicc.$name is not installed ($*)"; return; }
    # shellcheck disable=SC2086
    "mpicc.$name" $flags "-DPEER_NAME=\"$name\"" "$here/peers/peer_mpi.c" $shared -o "$work/$name" ||
        leave_out "$name" "its program did not build"
}

build_gloo() {
    need /usr/include/gloo/context.h libgloo-dev ||
        { leave_out gloo "libgloo-dev is not installed"; return; }
    mkdir "$work/objects"
    # shellcheck disable=SC2086
    (cd "$work/objects" && cc $flags -c $shared &&
        c++ -std=c++17 $flags "$here/peers/peer_gloo.cc" ./*.o -lgloo -lpthread -o "$work/gloo") ||
        leave_out gloo "its program did not build"
}

# Each run_* writes one file of JSON lines, named by who ran: rows/ROUND-RANKS-WHO.
peer_options() { echo "--sizes 8,1024,65536,1048576,67108864 --budget-ms $budget_ms"; }

# finished WHO FILE: a run that fails or is cut short keeps the cells it has.
finished() { [ "$1" = 0 ] || say "$2 ended early with status $1"; }

run_weft() { # ROUND RANKS MEMORY
    status=0
    WEFT_BACKEND=gloo-cpu timeout 300 "$weft" bench coll --json --ranks "$2" --buffers "$3" --dtype f32 \
        --sizes 8,1KiB,64KiB,1MiB,64MiB --budget-ms "$budget_ms" \
        >"$work/rows/$1-$2-weft-$3" || status=$?
    finished $status "weft ($3 memory), $2 ranks"
}

run_openmpi() { # ROUND RANKS
    [ -x "$work/openmpi" ] || return 0
    status=0
    # shellcheck disable=SC2046
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 300 \
        mpirun.openmpi --mca pml ob1 --mca btl self,vader --bind-to none --oversubscribe \
        -np "$2" "$work/openmpi" $(peer_options) >"$work/rows/$1-$2-openmpi" || status=$?
    finished $status "openmpi, $2 ranks"
}

run_mpich() { # ROUND RANKS
    [ -x "$work/mpich" ] || return 0
    status=0
    if [ "$2" -gt "$cores" ]; then
        [ "$1" = 1 ] || return 0
        timeout 30 mpirun.mpich -np "$2" "$work/mpich" --ops all_reduce --sizes 8 \
            --budget-ms "$budget_ms" >"$work/rows/$1-$2-mpich" || status=$?
        echo "mpich: only 8 B all_reduce with $2 ranks on $cores cores, where it does not yield" \
             "and takes milliseconds per call" >>"$work/left-out"
    else
        # shellcheck disable=SC2046
        timeout 300 mpirun.mpich -np "$2" "$work/mpich" $(peer_options) \
            >"$work/rows/$1-$2-mpich" || status=$?
    fi
    finished $status "mpich, $2 ranks"
}

run_gloo() { # ROUND RANKS
    [ -x "$work/gloo" ] || return 0
    for mtu in default "$gloo_mtu"; do
        status=0
        store=$(mktemp -d "$work/store.XXXXXX")
        file=$work/rows/$1-$2-gloo-$mtu
        # shellcheck disable=SC2046
        if [ "$mtu" = default ]; then
            timeout 300 "$work/gloo" "$2" "$store" $(peer_options) >"$file" || status=$?
        elif [ "$namespace" = none ]; then
            continue
        else
            # shellcheck disable=SC2016
            timeout 300 unshare "$namespace" sh -c 'ip link set lo mtu "$1" up && shift && exec "$@"' \
                sh "$mtu" "$work/gloo" "$2" "$store" $(peer_options) >"$file" || status=$?
        fi
        finished $status "gloo, MTU $mtu, $2 ranks"
    done
}

build_weft bin/weft
weft=$build/bin/weft
build_mpi openmpi openmpi-bin libopenmpi-dev
build_mpi mpich mpich libmpich-dev
build_gloo
need ip iproute2 || :
for namespace in -n -rn none; do
    unshare "$namespace" ip link set lo mtu "$gloo_mtu" up 2>/dev/null && break
done
[ "$namespace" != none ] ||
    leave_out "gloo at MTU $gloo_mtu" "no private network namespace can be made here"

round=1
while [ "$round" -le "$rounds" ]; do
    for ranks in $ranks_list; do
        say "round $round of $rounds, $ranks ranks (load $(cut -d' ' -f1 /proc/loadavg))"
        run_weft "$round" "$ranks" alloc
        run_openmpi "$round" "$ranks"
        run_mpich "$round" "$ranks"
        run_weft "$round" "$ranks" malloc
        run_gloo "$round" "$ranks"
    done
    round=$((round + 1))
done

python3 "$here/collectives_table.py" ${json:+--json} "$work"
