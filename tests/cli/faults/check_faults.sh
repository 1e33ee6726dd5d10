#!/usr/bin/env bash
# `weft reshard` when files fail, change or vanish, and when it is killed at any of its calls: one clear error,
# nothing that looks complete, and --resume finishes the work.
source "$(dirname "$0")/../../support/lib.sh"
export WEFT_BACKEND=gloo-cpu # also on a machine with a device
weft=$1 library=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
# the sanitizer's library must not insist on being the first
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"

# Twelve tensors, of which two take several steps.
python3 - <<'PY'
import json, struct
shapes = {f"layers.{i}.q_proj.weight": [16, 32] for i in range(10)}
shapes |= {"a": [3 << 10, 1 << 10], "z": [2 << 10, 1 << 10]}
header, data = {}, b""
for name, shape in shapes.items():
    count = shape[0] * shape[1] * 4
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + count]}
    data += (bytes((i * 11 + len(header)) % 253 for i in range(4093)) * (count // 4093 + 1))[:count]
text = json.dumps(header).encode()
open("in.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
PY
printf 'mesh tp=2\n*.q_proj.* S(0)\na S(1)\n* R\n' >l.layout
options=(in.safetensors out --layout l.layout --memory-limit 8M -j 1 --verify)
"$weft" reshard in.safetensors whole --layout l.layout --verify >/dev/null || not_so "a run without faults"

faulty() # FAULT, then a command
{
    local fault=$1
    shift
    env WEFT_TEST_FAULT="$fault" LD_PRELOAD="$library" "$@"
}

last_event() # options of a run
{
    local lines
    lines=$("$weft" reshard "$@" --json) && tail -1 <<<"$lines"
}

is_new() # what there is: nothing, or the whole checkpoint
{
    if [[ -e out ]]; then contains 'the same' "$weft" verify in.safetensors out; fi
    rm -rf out
}

# Errors: the file is named, there is nothing at the target, and a later run finishes the work.
refused()
{
    rm -rf out*
    fails "$1" "$3" faulty "$2" "$weft" reshard "${options[@]}"
    if [[ -e out ]]; then not_so "$2: there is nothing at the target"; fi
    contains 'written in' "$weft" reshard "${options[@]}" --resume
    is '' diff -r whole out
    if [[ -e out.weft-partial || -e out.weft-journal ]]; then not_so "$2: nothing else is left"; fi
}
refused 3 pwrite:5:EIO 'rank-0000'
refused 3 pwrite:9:ENOSPC 'No space left on device'
refused 3 pread:8:EIO 'in.safetensors: Input/output error'
refused 3 fallocate:2:ENOSPC 'bytes are needed: No space left on device'
refused 3 fsync:1:EIO 'Input/output error'
refused 3 rename:1:EIO 'out: Input/output error'

# Short reads and writes are repeated.
rm -rf out*
contains 'written in' faulty pread:0:short "$weft" reshard "${options[@]}"
is '' diff -r whole out
rm -rf out*
contains 'written in' faulty pwrite:0:short "$weft" reshard "${options[@]}"
is '' diff -r whole out

# An old checkpoint is replaced, also where two folders cannot exchange their names; the new one stays if the old one
# cannot be removed.
replaced() # FAULT
{
    rm -rf out*
    cp -r whole out
    printf 'x' | dd of=out/weft.json bs=1 conv=notrunc 2>/dev/null
    faulty "$1" "$weft" reshard "${options[@]}" --force >said 2>&1 || not_so "$1: $(cat said)"
    is '' diff -r whole out
}
replaced none:0:EIO
replaced rename:1:EINVAL
if [[ -e out.weft-old || -e out.weft-partial ]]; then not_so "the old checkpoint is removed: $(ls)"; fi
replaced unlink:1:EIO
contains 'out is written, but the old one was not removed: out.weft-partial: Input/output error' cat said
contains 'written in' "$weft" reshard "${options[@]}" --force
is '' diff -r whole out
if [[ -e out.weft-partial ]]; then not_so "the next run removes what is left"; fi
rm -rf out*
cp -r whole out
fails 3 'Input/output error' faulty rename:1:EIO "$weft" reshard "${options[@]}" --force
is '' diff -r whole out

# What a failed run has done is not done again.
rm -rf out*
fails 3 'steps are done and kept in out.weft-partial; the same command with --resume continues' \
    faulty pwrite:40:EIO "$weft" reshard "${options[@]}"
json last_event "${options[@]}" --resume -- 'it["event"] == "done" and 0 < it["resumed"] < it["written"]'
is '' diff -r whole out

# A run with other options is not continued; one that is not resumed begins anew.
again()
{
    rm -rf out*
    fails 3 'are done and kept' faulty pwrite:40:EIO "$weft" reshard "${options[@]}"
}
again
fails 1 'is of a run with another source or other options' \
    "$weft" reshard in.safetensors out --layout l.layout --memory-limit 8M -j 1 --resume
fails 1 'give more memory or fewer jobs' \
    "$weft" reshard in.safetensors out --layout l.layout --memory-limit 8M --verify -j 3 --resume
touch -d '2001-01-01' in.safetensors
fails 1 'is of a run with another source or other options' "$weft" reshard "${options[@]}" --resume
json last_event "${options[@]}" -- 'it["event"] == "done" and it["resumed"] == 0'
is '' diff -r whole out
again
truncate -s 1000 out.weft-partial/rank-00001-of-00002.safetensors
fails 1 'it was changed after the run that is resumed' "$weft" reshard "${options[@]}" --resume
json last_event "${options[@]}" -- 'it["resumed"] == 0'
rm -rf out*

# A source that changes meanwhile is refused.
cp -p in.safetensors kept.safetensors
fails 3 'was replaced or modified after the checkpoint was opened' \
    faulty pread:6:touch "$weft" reshard "${options[@]}"
cp -p kept.safetensors in.safetensors
rm -rf out*

# Killed at any call, it leaves nothing that looks complete, and goes on from where it was.
for ((n = 1; n < 400; n += n < 19 ? 3 : 9)); do
    rm -rf out*
    faulty any:$n:kill "$weft" reshard "${options[@]}" >said 2>&1
    code=$?
    if [[ $code -eq 0 ]]; then break; fi
    if [[ $code -ne 137 ]]; then not_so "killed at call $n: exit code $code: $(cat said)"; fi
    is_new
    "$weft" reshard "${options[@]}" --resume >said 2>&1 || not_so "resumed after call $n: $(cat said)"
    diff -r whole out >said 2>&1 || not_so "resumed after call $n: $(cat said)"
done
if [[ $n -lt 60 ]]; then not_so "the run is killed at more than $n calls"; fi

# The same after the journal has been written.
for n in 25 40 55; do
    rm -rf out*
    faulty any:$n:late "$weft" reshard "${options[@]}" >said 2>&1
    if [[ ! -e out.weft-journal ]]; then not_so "a run that is killed leaves its journal"; fi
    contains 'written in' "$weft" reshard "${options[@]}" --resume
    is '' diff -r whole out
done

# A run that takes its time says how far it is on a terminal, and as events; nothing in a pipe.
rm -rf out*
faulty pwrite:20:late "$weft" reshard "${options[@]}" >/dev/null 2>said
if grep -q ' of 0.03 GB' said; then not_so "nothing in a pipe: $(cat said)"; fi
rm -rf out*
python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' env WEFT_TEST_FAULT=pwrite:20:late LD_PRELOAD="$library" \
    "$weft" reshard "${options[@]}" >said
contains ' s left' grep -aE '[0-9]+ %  [0-9.]+ of 0.03 GB  [0-9.]+ GB/s' said
rm -rf out*
faulty pwrite:6:late "$weft" reshard "${options[@]}" --json >said 2>said.errors
if grep -q 's left' said.errors; then not_so "events and lines"; fi
contains '{"event":"progress","path":"out","done":' grep '"total":.*"bytes_per_s":.*"left_ns":' said
rm -rf out*
faulty pwrite:3:EIO "$weft" reshard "${options[@]}" --json >said 2>/dev/null
contains '"error":"weft_reshard_run:' grep '"event":"failed","path":"out","status":"ERR_SYSTEM"' said

# Ranks of a launcher: if one fails or is killed, nothing looks complete, and the next job does the work.
one_rank() # FAULT of rank 1, number of ranks
{
    rm -rf out*
    "$weft" run -n "$2" bash -c 'if [[ $WEFT_RANK -eq 1 ]]; then export WEFT_TEST_FAULT=$1 LD_PRELOAD=$2; fi; shift 2
        exec "$@"' - "$1" "$library" "$weft" reshard "${options[@]}"
}
fails 3 'Input/output error' one_rank pwrite:5:EIO 3
if [[ -e out ]]; then not_so "rank 1 fails: there is nothing at the target"; fi
one_rank pwrite:4:kill 3 >said 2>&1 && not_so "rank 1 is killed, so the job fails"
if [[ -e out ]]; then not_so "rank 1 is killed: there is nothing at the target"; fi
contains 'written in' "$weft" run -n 3 "$weft" reshard "${options[@]}"
is '' diff -r whole out

# What ranks have done is kept, and as many ranks, fewer or more go on.
resumed_by() # ranks
{
    local lines
    lines=$("$weft" run --no-prefix -n "$1" "$weft" reshard "${options[@]}" --resume --json) && tail -1 <<<"$lines"
}
for ranks in 3 1 2 5; do
    fails 3 'the same command with --resume continues' one_rank pwrite:5:EIO 3
    for journal in out.weft-journal out.weft-journal-1 out.weft-journal-2; do
        if [[ ! -e $journal ]]; then not_so "a job that fails leaves $journal"; fi
    done
    json resumed_by "$ranks" -- 'it["event"] == "done" and 0 < it["resumed"] < it["written"]'
    is '' diff -r whole out
    if compgen -G 'out.weft-*' >/dev/null; then not_so "$ranks ranks leave nothing else: $(ls)"; fi
done
for fault in pwrite:2:kill pwrite:4:late fdatasync:1:kill any:40:kill; do
    one_rank "$fault" 3 >said 2>&1 && not_so "rank 1 is killed, so the job fails"
    is_new
    contains 'written in' "$weft" run -n 2 "$weft" reshard "${options[@]}" --resume
    is '' diff -r whole out
done

# Killed again and again, each run goes on; a single file as well.
rm -rf out* one*
single=(in.safetensors one.safetensors --memory-limit 8M -j 1)
for ((n = 8; n < 200; n += 8)); do
    faulty any:$n:kill "$weft" reshard "${single[@]}" --resume >said 2>&1 && break
done
"$weft" reshard in.safetensors two.safetensors >/dev/null
is '' cmp one.safetensors two.safetensors
finish
