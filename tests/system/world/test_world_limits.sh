#!/usr/bin/env bash
# test_world_limits.sh WEFT RANK - ranks under limits of their process: a small stack, small files.
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
finish
