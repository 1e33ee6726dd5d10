#!/usr/bin/env bash
# test_world_skip.sh WEFT RANK - with WEFT_CHECK, the first call that differs is named if a rank skips a collective.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
program=$2
export WEFT_BACKEND=gloo-cpu WEFT_TIMEOUT=300 WEFT_JOIN_TIMEOUT=300 WEFT_CHECK=1

# told RANK PATTERN HOW: rank RANK prints a line that matches PATTERN.
told()
{
    local rank=$1 pattern=$2 have
    shift 2
    check=$((check + 1))
    have=$("$weft" run -n 2 --keep-going --timeout 280 "$program" "$@" 2>&1)
    if ! grep -qE "^\[$rank\] .*$pattern" <<<"$have"; then not_so "rank $rank of $* says \"$pattern\": $have"; fi
}

second='the calls first differ in collective 2, which rank 0 makes at skip_rank\+0x[0-9a-f]+'
third='rank 0 makes collective 3 at skip_rank\+0x[0-9a-f]+'
last='the last one at skip_rank\+0x[0-9a-f]+'
# The job ends: rank 0 waits in its third collective.
told 0 "ERR_PEER: collective 3 of world cannot complete: rank 1 has left the job; $second and rank 1 at skip_rank\\+0x" end
told 0 "weft_context_release: rank 0 leaves after 3 collectives on world, $last, but rank 1 left after 2, $last;" end
# The job goes on with something else: both ranks get the error.
told 0 "ERR_MISMATCH: .*collective 3: rank 0 calls all_reduce.*, rank 1 calls barrier.*$second" go_on
told 1 "ERR_MISMATCH: .*collective 3: rank 0 calls all_reduce.*, rank 1 calls barrier.*$second" go_on
# One place in a loop: the memory differs, or nothing does.
told 0 "ERR_PEER: .*$second with other memory than rank 1" memory
told 0 "ERR_PEER: .*rank 1 has made 2 collectives, from the same places .* or a repeated one, may be missing; $third" equal
told 0 "ERR_PEER: .*differ in collective 3, .* and rank 1 at skip_rank\\+0x[0-9a-f]+; an earlier repeated one may be missing on rank 1;" repeated
# Rank 1 skips its last call, and leaves or releases the communicator.
told 0 "ERR_PEER: .*rank 1 has made 2 collectives, .* collective 3, or a repeated one, may be missing; $third" last
told 0 "ERR_PEER: .*rank 1 .*has left; $third" release
# Rank 1 refuses a call that has a wrong count.
refused='rank 1 refused the call of collective 2 at skip_rank\+0x[0-9a-f]+ \(weft_all_reduce on world: rank 1 needs 28 bytes'
told 0 "ERR_PEER: collective 3 of world cannot complete: rank 1 has left the job; $refused .*; $third" refused
told 0 "ERR_MISMATCH: .*collective 3: rank 0 calls all_reduce.*, rank 1 calls barrier; $refused" refused_go_on
told 1 "ERR_MISMATCH: .*collective 3: rank 0 calls all_reduce.*, rank 1 calls barrier; $refused" refused_go_on
# Ranks may make the same call from different places.
told 0 "OK: $" elsewhere
told 1 "OK: $" elsewhere
finish
