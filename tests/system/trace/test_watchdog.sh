#!/usr/bin/env bash
# test_watchdog.sh WEFT WATCHDOG - the example of a job that hangs: every rank says what it did, dumps and ends.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1 watchdog=$2
export WEFT_BACKEND=gloo-cpu WEFT_TIMEOUT=300 # the watchdog ends the job, not the time limit
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

said=$("$weft" run --no-prefix -n 3 "$watchdog" "$folder" 20 2>&1) || not_so "exit code $?: $said"
# says COUNT PATTERN: so many lines match.
says() {
    local have
    check=$((check + 1))
    have=$(grep -cE "$2" <<<"$said")
    ((have == $1)) || not_so "$have lines, not $1, are \"$2\" in: $said"
}
# A rank that another one has stopped before it looks has a call that failed.
says 2 '^rank [02]: all-reduce world 3\.9 KiB, call 3 on world, begun [0-9]+\.[0-9] s ago, (waits|failed)$'
says 2 '^rank 1: all-reduce world 3\.9 KiB, call [12] on world, begun [0-9]+\.[0-9] s ago, ended$'
says 2 '^rank [02]: 2 steps, then ERR_ABORTED \(the communicator was aborted\): world was aborted by rank [012]$'
says 1 '^rank 1: 2 steps, then ERR_ABORTED \(the communicator was aborted\): the loader of rank 1 was stopped$'
for rank in 0 1 2; do
    [[ -s $folder/hang.$rank ]] || not_so "$folder/hang.$rank was written"
    json cat "$folder/hang-$rank.json" -- "it['weft']['rank'] == $rank" \
        "it['pg_status']['1']['last_completed_collective'] == 2" \
        "it['pg_status']['1']['last_enqueued_collective'] == (2 if $rank == 1 else 3)"
done

# Without a rank that hangs, the watchdog says nothing.
is "rank 0: 10 steps, then OK (success)" "$watchdog" "$folder"
finish
