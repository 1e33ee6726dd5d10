#!/usr/bin/env bash
# test_world.sh WEFT RANK DENY HELLO HELLO_THREADS - ranks as processes on the CPU backend: started by every launcher
# there is, killed, stopped, leaving early, calling different things, denied what they would like.  Nothing may be left
# behind.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
program=$2
deny=$3
hello=$4
hello_threads=$5
export WEFT_BACKEND=gloo-cpu WEFT_TIMEOUT=10 WEFT_JOIN_TIMEOUT=300
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT

TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
# Other tests may run at the same time, with the example plugin.
traces() { find /dev/shm "$TMPDIR" -mindepth 1 -name 'weft*' ! -name 'weft-example*' ! -name 'weft-standin*' | sort; }

# survivors COUNT TEXT RANKS SCENARIO NUMBER: COUNT ranks tell what they expected, with TEXT.
survivors()
{
    local count=$1 text=$2 ranks=$3 have told
    shift 3
    check=$((check + 1))
    have=$("$weft" run -n "$ranks" --keep-going --timeout "${limit:-300}" "$program" "$@" 2>&1)
    told=$(grep -c "as expected: .*$text" <<<"$have")
    if ((told != count)); then not_so "$told ranks of $* say \"$text\", not $count: $have"; fi
}

before=$(traces)

# Launchers.
expect 0 "as expected" "$weft" run -n 1 "$program" hello 10
expect 0 "[3] as expected" "$weft" run -n 4 "$program" hello 100
expect 0 "[63] as expected" "$weft" run -n 64 "$program" hello 2
expect 0 "as expected" "$program" hello 10
scenario=(hello 10)
by_hand()
{
    local pids=() rank bad=0
    for rank in 0 1 2; do
        env "RANK=$rank" WORLD_SIZE=3 "LOCAL_RANK=$rank" "$@" "$program" "${scenario[@]}" &
        pids+=($!)
    done
    for rank in 0 1 2; do wait "${pids[rank]}" || bad=1; done
    return $bad
}
expect 0 "as expected" by_hand MASTER_ADDR=127.0.0.1 MASTER_PORT=29517
scenario=(hello 1 60) # one job after the other: a server that ends sends early ranks to the next one
expect 0 "as expected" by_hand MASTER_ADDR=127.0.0.1 MASTER_PORT=29517
scenario=(hello 10)
expect 0 "as expected" by_hand LOCAL_WORLD_SIZE=3 MASTER_ADDR=some.other.host MASTER_PORT=29517
expect 0 "as expected" by_hand WEFT_RENDEZVOUS=localhost:29518 WEFT_TOKEN=0123456789abcdef
expect 1 "WEFT_TOKEN" by_hand MASTER_ADDR=some.other.host MASTER_PORT=29517
expect 1 "MASTER_PORT" by_hand MASTER_ADDR=
# As a torchrun inside each rank of `weft run` starts its workers: two jobs of three ranks.
# shellcheck disable=SC2016 # the rank expands it
expect 0 "as expected" "$weft" run -n 2 bash -c 'pids=()
    export WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 TORCHELASTIC_RUN_ID="inside $WEFT_RANK"
    for rank in 0 1 2; do RANK=$rank LOCAL_RANK=$rank "$0" hello 10 & pids+=($!); done
    for pid in "${pids[@]}"; do wait "$pid" || exit 1; done' "$program"
if command -v mpirun.openmpi >/dev/null; then
    expect 0 "as expected" mpirun.openmpi --allow-run-as-root --oversubscribe -n 3 "$program" hello 10
else
    echo "skipped: Open MPI is not installed"
fi
if command -v mpiexec.mpich >/dev/null; then
    expect 0 "as expected" mpiexec.mpich -n 3 "$program" hello 10
    expect 0 "as expected" mpiexec.mpich -n 3 sh -c "'$program' hello 10"
else
    echo "skipped: MPICH is not installed"
fi
two_nodes()
{
    local node pids=() bad=0
    for node in 0 1; do
        WEFT_TOKEN=0123456789abcdef torchrun --no-python --nnodes 2 --node-rank "$node" --nproc-per-node 2 \
            --master-addr 127.0.0.1 --master-port 29525 "$program" hello 10 &
        pids+=($!)
    done
    for node in 0 1; do wait "${pids[node]}" || bad=1; done
    return $bad
}
if command -v torchrun >/dev/null; then
    expect 0 "as expected" torchrun --no-python --nproc-per-node 3 "$program" hello 10
    expect 0 "as expected" two_nodes
else
    echo "skipped: torchrun is not installed"
fi
if command -v srun >/dev/null && sinfo -h 2>/dev/null | grep -q idle; then
    expect 0 "as expected" srun -n 2 "$program" hello 10
else
    echo "skipped: there is no Slurm with an idle node"
fi
expect 11 "RANK is set, but WORLD_SIZE is not" env RANK=1 "$program" hello

# The example, as processes and as threads.
is $'[0] rank 0 of 3: the sum is 3\n[1] rank 1 of 3: the sum is 3\n[2] rank 2 of 3: the sum is 3' \
    bash -c "'$weft' run -n 3 '$hello' | sort"
is $'rank 0 of 4: the sum is 6\nrank 1 of 4: the sum is 6\nrank 2 of 4: the sum is 6\nrank 3 of 4: the sum is 6' \
    bash -c "'$weft' run -n 4 --threads '$hello_threads' | sort"
expect 1 "the process of all ranks ended with exit code 1" \
    env WEFT_BACKEND=nosuch "$weft" run -n 2 --threads "$hello_threads"

# A rank that never joins.
late()
{
    WEFT_JOIN_TIMEOUT=1 RANK=0 WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT=29519 "$program" hello
}
expect 11 "ranks 1 and 2 of 3 did not join the job within 1.0 s" late
nobody()
{
    WEFT_JOIN_TIMEOUT=1 RANK=1 WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT=29519 "$program" hello
}
expect 11 "which rank 0 serves" nobody

# Choices that differ.
# shellcheck disable=SC2016 # the ranks expand it
differ() { "$weft" run -n 3 --keep-going sh -c 'test $WEFT_RANK = 1 && export WEFT_TIMEOUT=7; exec "$0" hello' "$program"; }
expect 11 "10000000000 ns           ranks 0 and 2" differ
expect 11 "7000000000 ns            rank 1" differ
# shellcheck disable=SC2016
no_backend() { "$weft" run -n 3 --keep-going sh -c 'test $WEFT_RANK = 2 && export WEFT_BACKEND=nosuch; exec "$0" hello' "$program"; }
expect 11 "[0] weft_init: rank 2: " no_backend

# Ranks that fail.
survivors 3 "ERR_PEER.*rank 2 " 4 die 2
survivors 3 "ERR_PEER.*rank 0 " 4 die 0
survivors 2 "ERR_PEER.*rank 1 " 3 exit 1
survivors 2 "ERR_PEER.*rank 1 .*has left" 3 leave 1
survivors 2 "ERR_ABORTED.*world was aborted by rank 0" 3 abort 0
survivors 2 "ERR_ABORTED.*world was aborted by rank 0" 3 undone 0
survivors 2 "ERR_PEER.*rank 0 is gone" 3 undone 1
survivors 3 "rank 1 " 4 die_in_split 1
limit=60 survivors 2 "ERR_TIMEOUT.*rank 1" 3 stop 1 # which never ends by itself
survivors 0 "" 4 go_on 2
expect 137 "[0] as expected" "$weft" run -n 4 --keep-going --timeout 300 "$program" go_on 2

# Without a launcher that serves: rank 0 leaves first, the standby on rank 1 serves, and rank 3 dies.
serve_self()
{
    local pids=() rank
    for rank in 0 1 2 3; do
        env "RANK=$rank" WORLD_SIZE=4 "LOCAL_RANK=$rank" "$@" "$program" outlive_first 3 &
        pids+=($!)
    done
    for rank in 0 1 2; do wait "${pids[rank]}" || return 1; done
}
expect 0 "as expected: ERR_PEER: rank 3 is gone" serve_self MASTER_ADDR=127.0.0.1 MASTER_PORT=29522
expect 0 "as expected: ERR_PEER: rank 3 is gone" serve_self WEFT_RENDEZVOUS=localhost:29523 WEFT_TOKEN=0123456789abcdef

# A rank that ends before all have joined is named to the others at once, also if they may continue.
# shellcheck disable=SC2016
end_early() { WEFT_JOIN_TIMEOUT=100 "$weft" run -n 3 --keep-going --timeout 50 sh -c 'test $WEFT_RANK = 1 && exit 3; exec "$0" hello' "$program"; }
expect 3 "[0] weft_init: rank 0 of 3 cannot join" end_early
expect 3 "rank 1 is gone: it ended with exit code 3" end_early
expect 1 "has 5 characters; a token must have at least 16" by_hand WEFT_RENDEZVOUS=localhost:29524 WEFT_TOKEN=short

# Calls that differ: all three ranks see both.
export WEFT_CHECK=1
first="ERR_MISMATCH.*rank 0 calls"
survivors 3 "$first all_reduce(f32, count 8, sum), rank 2 calls barrier" 3 mismatch 0
survivors 3 "$first all_reduce(f32, count 8, sum), rank 2 calls all_reduce(f32, count 9, sum)" 3 mismatch 1
survivors 3 "$first all_reduce(f32, count 8, sum), rank 2 calls all_reduce(i32, count 8, sum)" 3 mismatch 2
survivors 3 "$first broadcast(f32, count 8, root 0), rank 2 calls broadcast(f32, count 8, root 1)" 3 mismatch 3
unset WEFT_CHECK

# Limits.
# shellcheck disable=SC2016
few_files() { (ulimit -n 40; "$weft" run -n 30 "$program" hello 2); }
expect 3 "ulimit -n" few_files

# Features that a sandbox may deny: work continues the slower way, with a message.
denied()
{
    local thing=$1
    shift
    WEFT_LOG=info "$deny" "$thing" "$@"
}
if "$deny" ipv6 true; then
    expect 0 "[1] as expected" denied attach "$weft" run -n 2 "$program" private
    expect 0 "process_vm_readv is not permitted on rank" denied attach "$weft" run -n 2 "$program" private
    expect 0 "[2] as expected" denied memfd "$weft" run -n 3 "$program" private
    expect 0 "no memfd_create (Function not implemented), using /dev/shm" denied memfd "$weft" run -n 2 "$program" hello
    expect 0 "[2] as expected" denied ipv6 "$weft" run -n 3 "$program" private
    expect 0 "as expected" by_hand WEFT_RENDEZVOUS=localhost:29520 WEFT_TOKEN=0123456789abcdef "$deny" ipv6
    expect 1 "cannot listen on [::1]:29521: Address family not supported" \
        by_hand 'WEFT_RENDEZVOUS=[::1]:29521' WEFT_TOKEN=0123456789abcdef WEFT_JOIN_TIMEOUT=2 "$deny" ipv6
else
    echo "skipped: system calls cannot be filtered here"
fi

# Growth.
expect 0 "as expected" "$weft" run -n 3 --timeout 900 "$program" churn "${WEFT_TEST_CHURN:-2000}"

# Nothing is left, and the next run works.
is "$before" traces
expect 0 "[2] as expected" "$weft" run -n 3 "$program" hello 10
finish
