#!/usr/bin/env bash
# weft status on recorders that fake_recorders makes: groups, outliers, several jobs, damaged files.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
fake=$2
folder=$(mktemp -d)
export XDG_RUNTIME_DIR=$folder
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$folder"' EXIT
# shellcheck disable=SC2120 # it has arguments through lib.sh
status() { "$weft" status "$@"; }

# says JOB TEXT...: one call for JOB prints each TEXT.  Calls are slow in builds with sanitizers.
says() {
    local job=$1 have text
    shift
    have=$("$weft" status "$job" 2>&1) || not_so "exit code $? of weft status $job"
    for text; do
        check=$((check + 1))
        [[ $have == *"$text"* ]] || not_so "\"$text\" in what weft status $job says: $have"
    done
}

# begin NAME ARGUMENTS...: starts fake_recorders; end NAME ends it.
declare -A pids
begin() {
    local name=$1
    shift
    "$fake" "$folder/$name" "$@" &
    pids[$name]=$!
    while [[ ! -e $folder/$name ]]; do sleep 0.01; done
}
end() {
    kill "${pids[$1]}"
    wait "${pids[$1]}" || not_so "fake_recorders $1 ended with $?"
}
# stop NAME: stops it; a signal takes effect some time after it was sent.
stop() {
    local state=""
    kill -STOP "${pids[$1]}"
    while [[ $state != T ]]; do read -r _ _ state _ <"/proc/${pids[$1]}/stat"; done
}
everyone() { # a record of each of eight ranks
    for rank in 0 1 2 3 4 5 6 7; do echo "$rank:all-reduce:11:finished"; done
}

# No such job.  Other jobs of this user may run meanwhile, so all checks ask for a job.  There is a letter among the
# first four digits of each number, because four decimal digits may be the pid of another job.  Ranks whose launcher was
# killed have the parent 1, so a pid that no process has is asked for.
fails 1 "no job of this user on this host has the pid or number 99999999; the pid of a launcher finds a job only while its ranks run, and of the ranks that have ended weft keeps the last 32; a rank has a recorder after weft_init, unless WEFT_RECORDER=0, and only its user can see it; recorders are searched for in $folder/weft" status 99999999
fails 1 '"abcd?" is neither a PID nor the beginning of a job'"'"'s number (at least four hexadecimal digits), and there is no file of this name' status abcd?
json status 99999999 --json -- 'it["jobs"] == []'
fails 2 'not a number of seconds' status --watch soon
fails 2 'unexpected argument' status 1 2
export XDG_RUNTIME_DIR=$folder/missing/too
fails 1 "$folder/missing/too/weft" status 99999999
export XDG_RUNTIME_DIR=$folder

# One rank is behind, and outside weft.
mapfile -t before < <(everyone)
begin a aaaa000000000001 8 "${before[@]}" {0,1,2,3,4,5,7}:all-reduce:12:in
says "${pids[a]}" 'job aaaa000000000001' 'tp (8 ranks: 0-7)' \
    'ranks 0-5,7: all-reduce #12 of 8.0 MiB, for ' \
    'rank 6, behind at #11: all-reduce #11 of 8.0 MiB, finished ' \
    'rank 6 holds up ranks 0-5,7: it is behind at #11 of tp, and it has been in no operation of weft for' \
    'if no number after # grows, the job hangs or computes'
json status aaaa --json -- 'len(it["jobs"]) == 1' \
    'it["jobs"][0]["held_up_by"] == [{"rank": 6, "waiting": [0, 1, 2, 3, 4, 5, 7]}]' \
    'it["jobs"][0]["communicators"][0]["groups"][0]["ranks"] == [6]' \
    'it["jobs"][0]["communicators"][0]["groups"][0]["outlier"] == "behind"' \
    'it["jobs"][0]["communicators"][0]["groups"][1]["begun"]["sequence"] == 12' \
    'it["jobs"][0]["communicators"][0]["groups"][1]["finished"]["sequence"] == 11' \
    '{w["for"] for w in it["jobs"][0]["waits"]} == {6}'

# A second job, whose ranks do not agree; each job can be asked for.
begin b bbbb000000000002 3 {0,2}:all-reduce:5:in 1:all-gather:5:in
says bbbb 'rank 1, in another operation: all-gather #5 of 8.0 MiB, for ' \
    'rank 1 holds up ranks 0,2: it is in all-gather #5 of 8.0 MiB on tp, for '
lacks 'aaaa0000' status bbbb
json status --json -- '{"aaaa000000000001", "bbbb000000000002"} <= {j["job"] for j in it["jobs"]}'
fails 1 '"bbb" is neither a PID nor the beginning' status bbb # too short

# One recorder, and a copy of it: all its operations, the oldest first.
cp "$folder"/weft/recorder.bbbb000000000002.1.* "$folder/copy"
contains 'rank 1 of 3, job bbbb000000000002' status "$folder/copy"
contains 'communicator tp of ranks 0-2' status "$folder/copy"
contains 'all-gather tp 8.0 MiB #5, submitted ' status "$folder/copy"
json status "$folder/copy" --json -- 'it["rank"] == 1 and it["job"] == "bbbb000000000002"' \
    '[(r["operation"], r["sequence"], r["state"]) for r in it["records"]] == [("all-gather", 5, "submitted")]'
fails 2 'repeats the status of jobs' status "$folder/copy" --watch 1
echo no >"$folder/text"
fails 1 'text' status "$folder/text"
fails 1 'missing' status "$folder/missing/recorder"

# A line of JSON each time.
check=$((check + 1))
lines=$("$weft" status --json --watch 0.05 | head -3 | python3 -c 'import json, sys
print(len([json.loads(line) for line in sys.stdin]))')
[[ $lines == 3 ]] || not_so "three objects, not $lines"

# Nobody waits if all are in the same collective, and messages wait for their peers.
begin c cccc000000000003 2 {0,1}:barrier:1:in
lacks 'holds up' status cccc
begin d dddd000000000004 3 0:receive:1:in:2 1:send:4:in:2 2:receive:4:in:1
says dddd 'rank 0: receive #1 of 8.0 MiB from rank 2, for ' \
    'rank 2 holds up rank 0: it is in receive #4 of 8.0 MiB from rank 1 on tp'
begin e eeee000000000005 2 0:receive:1:in:1 1:receive:1:in:0
says eeee 'ranks 0-1 wait for each other'
begin g 9f99000000000008 4 {0,2}:create:1:finished
rm "$folder"/weft/recorder.9f99000000000008.{1,3}.*
says 9f99 'tp (4 ranks: 0-3; no recorder here: 1,3)'
lacks 'Repeat the command' status 9f99
json status 9f99 --json -- 'it["jobs"][0]["communicators"][0]["absent"] == "1,3"'
end g
begin f ffff000000000006 2 0:all-reduce:1:failed
says ffff 'rank 0: all-reduce #1 of 8.0 MiB failed (WEFT_ERR_PEER)' 'rank 1: no collective and no message yet'
end b
end c
end d
end e
end f
fails 1 'cccc' status cccc

# A rank that is stopped is named, also if nobody waits for it yet.
begin s 5f55000000000008 3 none
says 5f55 ' without a backend, 3 ranks, for' 'ranks 0-2 have no communicator yet: weft_init has not ended'
stop s
says 5f55 'ranks 0-2 are stopped'
kill -CONT "${pids[s]}"
end s
begin t 5f55000000000009 1 0:all-reduce:1:finished
stop t
says 5f55 "rank 0 is stopped (pid ${pids[t]})"
kill -CONT "${pids[t]}"
end t

# Killed: the job is listed as ended, after the live one.
begin k 0f00000000000007 2 {0,1}:all-reduce:3:in
kill -9 "${pids[k]}"
wait "${pids[k]}" 2>/dev/null
check=$((check + 1))
all=$("$weft" status)
[[ $(grep -E '^job (aaaa000000000001|0f00000000000007)' <<<"$all" | tail -1) == "job 0f00000000000007: fake_recorders on fake, 2 ranks, ended" ]] ||
    not_so "the ended job is last: $all"
says 0f00 'ranks 0-1, ended: all-reduce #3 of 8.0 MiB, begun '
fails 1 'the job 0f00 has ended' status 0f00 --watch 1
json status 0f00 --json -- 'not it["jobs"][0]["alive"]' 'not it["jobs"][0]["ranks"][1]["alive"]'

# The cause outlives the job, and so does the first call that differs.
begin l 0f0000000000000a 4 {0,1,2,3}:all-reduce:4:finished {0,1,3}:all-reduce:5:failed
kill -9 "${pids[l]}"
wait "${pids[l]}" 2>/dev/null
says 0f0000000000000a 'rank 2 held up ranks 0-1,3: it was behind at #4 of tp when the job ended'
json status 0f0000000000000a --json -- 'it["jobs"][0]["held_up_by"] == [{"rank": 2, "waiting": [0, 1, 3]}]' \
    'it["jobs"][0]["first_difference"] is None'
begin m 0f0000000000000b 3 {0,1,2}:all-reduce:4:finished {0,1}:all-reduce:5:in 2:all-gather:5:in
says 0f0000000000000b 'the first call that differs on tp: ranks 0-1 called all-reduce(f32, count 2097152, sum) #5, rank 2 all-gather(f32, count 2097152) #5; rank 2 differs from the others'
kill -9 "${pids[m]}"
wait "${pids[m]}" 2>/dev/null
says 0f0000000000000b 'rank 2 held up ranks 0-1: ' 'the first call that differs on tp: ranks 0-1 called all-reduce('
json status 0f0000000000000b --json -- 'it["jobs"][0]["first_difference"]["other"] == 2' \
    'it["jobs"][0]["first_difference"]["other_called"]["operation"] == "all-gather"'

# A rank that itself waits is not the cause, also if it waits for a rank without a recorder here: of another host, or gone.
begin o 5f5500000000000a 4 {0,1,3}:all-reduce:4:finished 0:receive:1:in:2 {1,3}:all-reduce:5:in
rm "$folder"/weft/recorder.5f5500000000000a.2.*
says 5f5500000000000a 'ranks 0-1,3 wait for rank 2, which has no recorder here'
lacks 'holds up' status 5f5500000000000a
json status 5f5500000000000a --json -- 'it["jobs"][0]["held_up_by"] == []' \
    'it["jobs"][0]["waits_elsewhere"] == [{"rank": 0, "for": 2, "communicator": "tp"}]'
end o
begin o2 5f5500000000000b 4 {0,1,3}:create:2:in
rm "$folder"/weft/recorder.5f5500000000000b.{2,3}.*
says 5f5500000000000b 'ranks 0-1 wait in operations with ranks that have no recorder here'
json status 5f5500000000000b --json -- 'it["jobs"][0]["waits_elsewhere"][1] == {"rank": 1, "for": None, "communicator": "tp"}'
end o2
begin o3 5f5500000000000c 4 {0,1,2,3}:all-reduce:3:finished 0:all-reduce:4:failed=2 {1,3}:all-reduce:5:failed=0
kill -9 "${pids[o3]}"
wait "${pids[o3]}" 2>/dev/null
rm "$folder"/weft/recorder.5f5500000000000c.2.*
says 5f5500000000000c 'ranks 0-1,3 waited for rank 2, which has no recorder here' 'failed (WEFT_ERR_PEER), waited for rank 2'
lacks 'held up' status 5f5500000000000c
begin o4 5f5500000000000d 3 {0,1,2}:all-reduce:3:finished 0:receive:1:failed:2 1:all-reduce:4:in
kill -9 "${pids[o4]}"
wait "${pids[o4]}" 2>/dev/null
says 5f5500000000000d 'rank 2 held up ranks 0-1: '
lacks 'rank 0 held up' status 5f5500000000000d

# Ranks that had different calls waited for nobody.
begin o5 5f5500000000000e 3 {0,2}:agree:1:mismatch
kill -9 "${pids[o5]}"
wait "${pids[o5]}" 2>/dev/null
says 5f5500000000000e 'agree #1 of 8.0 MiB failed (WEFT_ERR_MISMATCH)'
lacks 'held up' status 5f5500000000000e

# weft does not record when an operation failed.
begin o6 5f5500000000000f 2 {0,1}:all-reduce:4:finished 0:all-reduce:5:failed 1:all-reduce:6:in
says 5f5500000000000f 'it is behind at #5 of tp, and it has been in no operation of weft since all-reduce #5 of 8.0 MiB on tp failed (WEFT_ERR_PEER) (pid'
contains ' ago, failed: WEFT_ERR_PEER' status "$folder"/weft/recorder.5f5500000000000f.0.*
end o6

# Texts of a recorder do not control the terminal.
cp "$folder"/weft/recorder.0f00000000000007.0.* "$folder/weft/recorder.hostile"
python3 - "$folder/weft/recorder.hostile" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
at = data.index((0x0f00000000000007).to_bytes(8, "little"))
data[at:at + 8] = (0x1f34 << 48).to_bytes(8, "little")
at = data.index(b"fake_recorders")
text = "\x1b]0;x\x07\x9b2J\u202e".encode() + b"\x9b\n\xff..."
data[at:at + len(text)] = text
open(sys.argv[1], "wb").write(data)
END
says 1f3400 'job 1f34000000000000: ?]0;x???2J??????...'
odd=$folder/weft/recorder.$'\033]0;x\007\302\233'
echo hello >"$odd"
check=$((check + 1))
python3 - "$weft" <<'END' || not_so "control characters"
import subprocess, sys
for options in [], ["--json"]:
    said = subprocess.run([sys.argv[1], "status", "1f3400", *options], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout.decode()
    bad = [c for c in said if c < " " and c != "\n" or "\x7f" <= c < "\xa0" or c == "\u202e"]
    assert not bad and "recorder.?]0;x??? is cut short" in said, repr(said)
END
rm "$folder/weft/recorder.hostile" "$odd"

# Files that are not recorders have one line each, and do not matter.
echo hello >"$folder/weft/recorder.text"
: >"$folder/weft/recorder.empty"
head -c 5000 "$folder"/weft/recorder.0f00000000000007.0.* >"$folder/weft/recorder.short"
mkfifo "$folder/weft/recorder.pipe"
ln -s /etc/passwd "$folder/weft/recorder.link"
mkdir "$folder/weft/recorder.folder"
says aaaa 'weft/recorder.text is cut short: it has 6 bytes' 'weft/recorder.short is cut short: it has 5000 bytes' \
    'weft/recorder.pipe is not a recorder of weft: it is not a plain file' 'weft/recorder.link cannot be opened' \
    'weft/recorder.folder' 'job aaaa000000000001'
lacks 'recorder.empty' status aaaa
json status aaaa --json -- 'len([p for p in it["problems"] if "'"$folder"'" in p]) == 5'

# Calls that differ in what has no bytes, in all orders of detection; nobody but the rank that differs is blamed.
number=20
differs() { # differs TEXT RECORDS...: ranks 0-2 in an ended job
    local text=$1 id
    shift
    number=$((number + 1))
    id=0f000000000000$number
    begin "d$number" "$id" 3 {0,1,2}:all-reduce:3:finished "$@"
    kill -9 "${pids[d$number]}"
    wait "${pids[d$number]}" 2>/dev/null
    says "$id" "the first call that differs on tp: $text"
    lacks 'waited for' status "$id"
    lacks 'held up ranks' status "$id"
    lacks 'behind' status "$id"
}
for states in mismatch,mismatch,mismatch failed=2,failed=2,mismatch mismatch,failed=0,failed=0; do
    IFS=, read -r zero one two <<<"$states"
    differs 'ranks 0-1 called all-reduce(f32, count 64, sum) #4, rank 2 all-reduce(f32, count 64, max) #4; rank 2 differs' \
        "0:all-reduce:4:$zero:-1:11:0:64" "1:all-reduce:4:$one:-1:11:0:64" "2:all-reduce:4:$two:-1:11:3:64"
done
differs 'ranks 0,2 called broadcast(f32, count 64, root 0) #4, rank 1 broadcast(f32, count 64, root 1) #4; rank 1 differs' \
    0:broadcast:4:mismatch:0:11:0:64 1:broadcast:4:mismatch:1:11:0:64 2:broadcast:4:failed:0:11:0:64
differs 'ranks 1-2 called all-reduce(f32, count 64, sum) #4, rank 0 all-reduce(i32, count 64, sum) #4; rank 0 differs' \
    0:all-reduce:4:mismatch:-1:5:0:64 {1,2}:all-reduce:4:failed:-1:11:0:64
differs 'ranks 0-1 called all-gather(f32, count 64) #4, rank 2 all-gather(f32, count 65) #4; rank 2 differs' \
    {0,1}:all-gather:4:mismatch:-1:11:0:64 2:all-gather:4:mismatch:-1:11:0:65
# Two calls, of one rank each: neither is called the usual one, and a rank that had not begun is not blamed.
differs 'rank 0 called all-reduce(f32, count 64, sum) #4, rank 2 all-reduce(f32, count 64, max) #4'$'\n' \
    0:all-reduce:4:mismatch:-1:11:0:64 2:all-reduce:4:failed=0:-1:11:3:64
json status "0f000000000000$number" --json -- 'it["jobs"][0]["held_up_by"] == []' \
    'it["jobs"][0]["first_difference"]["ranks"] == [0] and it["jobs"][0]["first_difference"]["other_ranks"] == [2]' \
    'it["jobs"][0]["first_difference"]["other_called"]["reduction"] == "max"'

# A folder that others can enter is not used.
end a
rm -rf "$folder"/weft
mkdir -m 755 "$folder/weft"
fails 1 "other users can enter the folder $folder/weft: its mode is 755, not 700" status aaaa
finish
