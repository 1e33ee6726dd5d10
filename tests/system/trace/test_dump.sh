#!/usr/bin/env bash
# test_dump.sh WEFT DUMP_RANK - dumps by call, of failures and by signal, read by Python.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
program=$2
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export WEFT_BACKEND=gloo-cpu WEFT_TIMEOUT=300 WEFT_JOIN_TIMEOUT=300

# reads SCENARIO RANKS...: the dumps in the folder are complete, and no other file is there.
reads()
{
    check=$((check + 1))
    python3 "$here/check_dump.py" "$1" "$folder/d" "${@:2}" || not_so "dumps of $1"
}
files() { (cd "$folder" && LC_ALL=C && printf '%s ' *); }
begin()
{
    rm -rf "${folder:?}"/*
    export WEFT_DUMP=$folder/d
}

# By call, on ranks as processes and as threads.
begin
expect 0 "" "$weft" run -n 4 "$program" all
reads all 0 1 2 3
is "d-0.json d-1.json d-2.json d-3.json d.0 d.1 d.2 d.3 " files
begin
expect 0 "" "$program" --threads 4 all
reads all 0 1 2 3
begin
WEFT_DUMP=$folder/a%r-b expect 0 "" "$weft" run -n 1 "$program" calm
is "* " files # nothing has failed
WEFT_DUMP='' expect 1 "weft_dump: prefix is NULL or empty, and WEFT_DUMP is not set" "$weft" run -n 4 "$program" all
WEFT_DUMP=$folder/a%r-b expect 0 "" "$weft" run -n 4 "$program" all
is "a0-b a0-b.json a1-b a1-b.json a2-b a2-b.json a3-b a3-b.json " files

# A recorder that is shorter than the program, and none.
begin
WEFT_RECORDER=1 expect 0 "" "$weft" run -n 2 "$program" calm
WEFT_RECORDER=1 expect 0 "are in $folder/d.0 and $folder/d-0.json" "$weft" run -n 2 "$program" signals
reads busy 0 1
begin
WEFT_RECORDER=0 expect 0 "are in $folder/d.0 and $folder/d-0.json" "$weft" run -n 1 "$program" signals
reads none 0

# A killed rank: the others name it.
begin
expect 137 "are in $folder/d.3 and $folder/d-3.json" "$weft" run -n 4 --keep-going "$program" killed 1
is "d-0.json d-2.json d-3.json d.0 d.2 d.3 " files
reads lost-1 0 2 3

# The same without --keep-going: the others have written theirs when SIGTERM has ended them.
for ((i = 0; i < 5; i++)); do
    begin
    expect 137 "" "$weft" run -n 4 "$program" killed 1
    is "d-0.json d-2.json d-3.json d.0 d.2 d.3 " files
done

# A communicator of some ranks fails: all ranks of the job write dumps.
begin
expect 0 "are in $folder/d.3 and $folder/d-3.json" "$weft" run -n 4 "$program" part
is "d-0.json d-1.json d-2.json d-3.json d.0 d.1 d.2 d.3 " files
reads busy 0 1 2 3

# Signals under load, while the program has a handler of its own.
begin
expect 0 "SIGUSR1: the last" "$weft" run -n 3 "$program" signals
reads busy 0 1 2
is "d-0.json d-1.json d-2.json d.0 d.1 d.2 " files
begin
expect 0 "SIGUSR1: the last" "$program" --threads 3 signals
reads busy 0 1 2
for ((i = 0; i < 20; i++)); do
    begin
    expect 0 "SIGUSR1: the last" "$program" --threads 8 leave
    is "d-0.json d-1.json d-2.json d-3.json d-4.json d-5.json d-6.json d-7.json d.0 d.1 d.2 d.3 d.4 d.5 d.6 d.7 " files
done

# Files that cannot be written: one message, and the job goes on.
begin
expect 0 "SIGUSR1: $folder/d.0 cannot be written: File too large" "$weft" run -n 2 "$program" refused
is "* " files
WEFT_DUMP=/nonexistent/d expect 137 "WEFT_DUMP: /nonexistent/d.0 cannot be written: No such file or directory; this rank writes no dump" \
    "$weft" run -n 2 --keep-going "$program" killed 1
WEFT_DUMP=/nonexistent/d expect 0 "WEFT_DUMP: /nonexistent/d.0 cannot be written" "$weft" run -n 1 "$program" calm
WEFT_DUMP=$folder/ expect 1 "weft_init: WEFT_DUMP is \"$folder/\", a folder; it must be the beginning" \
    "$weft" run -n 1 "$program" calm
WEFT_TRACE=$folder/d expect 1 "weft_init: WEFT_TRACE is \"$folder/d\" and WEFT_DUMP is \"$folder/d\", so that both are the file $folder/d.0" \
    "$weft" run -n 1 "$program" calm
WEFT_COUNTS=$folder/d.%r expect 1 "WEFT_DUMP is \"$folder/d\" and WEFT_COUNTS is \"$folder/d.%r\"" "$weft" run -n 1 "$program" calm
WEFT_RECORDER=99999 expect 1 'WEFT_RECORDER is "99999"; expected a whole number from 0 to 65536' "$weft" run -n 1 "$program" calm

# A rank that does not take part: the others wait for it until the time limit.
begin
export WEFT_TIMEOUT=10
expect 0 "as expected: all_reduce #4 on world" "$weft" run -n 4 --keep-going "$program" wrong-rank 2
reads lost-2 0 1 3
begin
"$weft" run -n 3 --keep-going "$program" stopped 1 >"$folder/log" 2>&1 & # it does not end by itself
for ((i = 0; i < 600; i++)); do
    if [[ -e $folder/d-0.json && -e $folder/d-2.json ]]; then break; fi
    sleep 0.2
done
kill $!
wait $!
rm "$folder/log"
reads lost-1 0 2
finish
