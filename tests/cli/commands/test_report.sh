#!/usr/bin/env bash
# weft report: everything in one file, and no secret, home or host in it.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
export WEFT_BACKEND=gloo-cpu WEFT_TOKEN=correct-horse-battery
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
export WEFT_DUMP=$here/dump XDG_RUNTIME_DIR=$here
expect 0 "" "$weft" report --output "$here/report.txt"
report=$(<"$here/report.txt")
for part in 'What I did' '== machine ==' 'kernel: Linux' 'processors: ' '== weft version ==' '== weft info ==' 'gloo-cpu' \
    '== weft why ==' '== weft env ==' 'WEFT_DUMP' '== weft status =='; do
    check=$((check + 1))
    [[ $report == *"$part"* ]] || not_so "the report has $part: $report"
done
for private in "$WEFT_TOKEN" "$(hostname) "; do
    check=$((check + 1))
    [[ $report != *"$private"* ]] || not_so "the report does not have $private: $report"
done
contains '== weft env ==' "$weft" report
fails 2 'unexpected argument' "$weft" report stray
fails 3 'No such file' "$weft" report --output "$here/none/report.txt"
finish
