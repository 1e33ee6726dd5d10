#!/usr/bin/env bash
# test_world_limits.sh WEFT RANK - ranks under limits of their process: a small stack, small files, few files, little address
# space.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
program=$2
job=(env -i "PATH=$PATH" WEFT_BACKEND=gloo-cpu WEFT_TIMEOUT=100 "$weft" run -n 4 --timeout 100 "$program")

# limited LIMIT COMMAND...: with a soft limit, as a user sets it.
limited() { (ulimit -S "$1" "$2" && shift 2 && "$@"); }

expect 0 "[3] as expected" "${job[@]}"

# Arguments and variables lie on the stack, too.  The limit holds for the tool, its ranks and their threads.
expect 0 "[3] as expected" limited -s 96 "${job[@]}"
expect 0 "[3] as expected" "${job[@]}" 98304

# SIGXFSZ would end the ranks.
expect 1 "may not make files of more than 65536 bytes (RLIMIT_FSIZE)" limited -f 64 "${job[@]}"

# The launcher of 16 ranks opens more than 56 files.  Under a lower limit it cannot accept all ranks, which end at once.
# The limit is a hard one: the launcher raises a soft one.
files() { (ulimit -n "$1" && shift && "$@"); }
export WEFT_JOIN_TIMEOUT=300
expect 1 "ranks: Too many open files; raise the limit of open files, which is 50 (ulimit -n)" \
    files 50 env WEFT_BACKEND=gloo-cpu "$weft" run -n 16 --timeout 100 "$program"
expect 127 "Too many open files; raise the limit of open files, which is 36 (ulimit -n)" \
    files 36 env WEFT_BACKEND=gloo-cpu "$weft" run -n 16 --timeout 100 "$program"
# A rank that cannot open a file says so, also if it would have to read the addresses of hosts.  It has no files of the
# program that runs this test.
# shellcheck disable=SC2016 # the rank expands it
for limit in 4 5; do
    expect 1 "Too many open files; raise the limit of open files, which is $limit (ulimit -n)" \
        env WEFT_BACKEND=gloo-cpu "$weft" run -n 3 --timeout 100 bash -c 'exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
            if [[ $WEFT_RANK == 1 ]]; then ulimit -n "$1"; fi
            exec "$0"' "$program" "$limit"
done

# Sanitizers reserve terabytes of address space.
if ! grep -qaE '__(asan|tsan)_init' "$weft"; then
    expect 1 "Cannot allocate memory; raise the limit of address space, which is 60000 KiB (ulimit -v)" \
        limited -v 60000 env WEFT_BACKEND=gloo-cpu WEFT_CPU_HEAP=64M "$weft" run -n 4 --timeout 100 "$program"
fi
finish
