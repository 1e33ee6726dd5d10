#!/usr/bin/env bash
# A library that is preloaded has a thread that takes signals.  The tool still sees the end of ranks, and
# obeys signals.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1 library=$2
folder=$(mktemp -d)
export folder
trap 'rm -rf "$folder"' EXIT
# The sanitizer must not insist on being the first library.  The test of weft run looks for leaks.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0:detect_leaks=0"
preloaded() { timeout -s KILL 100 env LD_PRELOAD="$library" "$weft" "$@"; }

# Without a handler of SIGCHLD about half of these runs did not end.
for ((i = 0; i < 16 && failures == 0; i++)); do
    is '[0] done' preloaded run -n 1 sh -c 'sleep 0.05; echo done'
done
expect 3 'rank 1 failed first: it ended with exit code 3' preloaded run -n 2 sh -c \
    "[ \$WEFT_RANK = 1 ] && exit 3; exec sleep 200"
WEFT_TEST_TAKE_SIGCHLD=1 is '[0] done' preloaded run -n 1 sh -c 'sleep 0.05; echo done'

# signalled SIGNAL: the launcher gets SIGNAL when its rank is ready.
signalled()
{
    local pid code=0
    env --default-signal=INT,HUP LD_PRELOAD="$library" "$weft" run -n 1 sh -c \
        "trap 'echo rank; exit 0' $1; touch \$folder/ready; sleep 200 & wait" &
    pid=$!
    while [[ ! -e $folder/ready ]]; do sleep 0.01; done
    kill "-$1" $pid
    wait $pid || code=$?
    rm "$folder/ready"
    return $code
}
expect 143 '[0] rank' signalled TERM
expect 130 '[0] rank' signalled INT
expect 129 '[0] rank' signalled HUP
expect 0 '[0] rank' signalled USR1

# Commands that start ranks of their own.
contains 'every element of f32[6] is right' preloaded redistribute -n 2 --backend gloo-cpu --mesh 2 \
    --shape 6 --from 'S(0)' --to R
contains 'collectives' preloaded conform gloo-cpu -n 2 --only 'collectives/all_reduce/*/sum'
finish
