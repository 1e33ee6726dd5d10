#!/usr/bin/env bash
# weft run: starting, output, signals, failures, time limits.
# shellcheck disable=SC2016 # the ranks expand what is in single quotes
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
run() { "$weft" run "$@"; }
folder=$(mktemp -d)
export folder
trap 'rm -rf "$folder"' EXIT
# The start of every rank's script: report that the rank is ready, and wait for rank R.
ready='touch $folder/$WEFT_RANK;'
awaits() { echo "while ! [ -e \$folder/$1 ]; do sleep 0.01; done;"; }

# The environment of each rank has its number.
is $'[0] 0 of 3\n[1] 1 of 3\n[2] 2 of 3' \
    bash -c "'$weft' run -n 3 sh -c 'echo \$WEFT_RANK of \$WEFT_SIZE' | sort"
is '[0] weft 1 0' run -n 1 sh -c 'echo $WEFT_LAUNCHER $WEFT_SERVED $WEFT_LOCAL_RANK'
is '0' run -n 1 --no-prefix sh -c 'echo $WEFT_RANK'
is '[0] a b c' run -n 1 -- sh -c 'echo $*' x a b c
is '[0] --help' run -n 1 printf '%s\n' --help
many=$(seq 1 300 | tr '\n' ' ')
# shellcheck disable=SC2086 # words are meant
is "[0] ${many% }" run -n 1 echo $many

# The variables that PyTorch reads, also inside another launcher.
places() { RANK=7 WORLD_SIZE=9 LOCAL_RANK=5 MASTER_ADDR=elsewhere MASTER_PORT=1 "$weft" run -n 2 "$@" | sort; }
is $'[0] 0 of 2, 0 of 2 at 127.0.0.1\n[1] 1 of 2, 1 of 2 at 127.0.0.1' places \
    sh -c 'echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE at $MASTER_ADDR'
outer=(GROUP_RANK=1 ROLE_RANK=1 TORCHELASTIC_RUN_ID=a TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_USE_AGENT_STORE=True)
is '[0] none' env "${outer[@]}" "$weft" run -n 1 sh -c 'env | grep -E "^(GROUP|ROLE|TORCHELASTIC)_" || echo none'
is '[0] 127.0.0.2' run -n 1 --listen 127.0.0.2 sh -c 'echo $MASTER_ADDR'
is '[0] 127.0.0.1' run -n 1 --listen "unix:weft-test-run-$$" sh -c 'echo $MASTER_ADDR'
if grep -qs '^0*1 ' /proc/net/if_inet6; then is '[0] ::1' run -n 1 --listen '[::1]' sh -c 'echo $MASTER_ADDR'; fi
# Rank 0 can listen on the port, the others reach it, and no other program gets it meanwhile.
is $'[0] heard rank 1\n[1] the port is taken' bash -c "'$weft' run -n 2 python3 -c '$(
    cat <<'PY'
import os, socket, time
rank, port = int(os.environ["RANK"]), int(os.environ["MASTER_PORT"])
if rank == 0:
    listener = socket.create_server(("", port))  # with SO_REUSEADDR, as PyTorch has
    with listener.accept()[0] as peer:
        print("heard", peer.recv(100).decode())
else:
    try:
        socket.socket().bind(("", port))
    except OSError:
        print("the port is taken")
    while True:
        try:
            peer = socket.create_connection((os.environ["MASTER_ADDR"], port))
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    peer.send(b"rank 1")
PY
)' | sort"
# Jobs at the same time have ports of their own, which are not those of the rendezvous.
export weft
ports=$(run -n 1 --no-prefix sh -c 'echo $MASTER_PORT ${WEFT_RENDEZVOUS##*:}
    "$weft" run -n 1 --no-prefix sh -c "echo \$MASTER_PORT \${WEFT_RENDEZVOUS##*:}"')
check=$((check + 1))
if [[ $(tr ' ' '\n' <<<"$ports" | grep -E '^[0-9]+$' | sort -u | wc -l) != 4 ]]; then not_so "four ports: $ports"; fi
# A command that starts ranks of its own inside a rank.
contains 'every element of f32[6] is right on all 2 ranks' \
    run -n 1 "$weft" redistribute -n 2 --backend gloo-cpu --mesh 2 --shape 6 --from 'S(0)' --to R

# Lines do not mix, and a last line needs no end.
lines=$(run -n 8 sh -c 'i=0; while [ $i -lt 200 ]; do echo "$WEFT_RANK aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa $WEFT_RANK"; i=$((i+1)); done')
check=$((check + 1))
if [[ $(grep -cE '^\[([0-7])\] \1 a+ \1$' <<<"$lines") != 1600 ]]; then not_so "1600 whole lines: $lines"; fi
is '[0] no end' run -n 1 printf 'no end'
is '[0] late' run -n 1 sh -c 'printf la; sleep 0.1; echo te'
aligned() { run -n 12 echo x | sort | sed -n '1p;$p'; }
is $'[ 0] x\n[11] x' aligned
long=$(run -n 2 sh -c 'head -c 3000000 /dev/zero | tr "\0" x; echo' | tr -d 'x\n' | wc -c)
check=$((check + 1))
if ((long < 8 || long > 100)); then not_so "three megabytes on a line, with $long bytes of prefixes"; fi

# Counters; tests/system/trace has ranks with counters.
expect 2 '--json is the form of --counts; give both' run -n 1 --json true
expect 0 '2 of 2 ranks have no counters: they did not release their context' run -n 2 --counts true
# More axes than the table has, and a name that would control the terminal.
axes='file=${WEFT_COUNTS%\%r}0
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do printf "axes 1 0 0 x\033[%sm\n" $i; done >$file
echo "end 1 rank" >>$file'
expect 0 $'along x?[16m                  1, 0 bytes sent, 0 received\n  along others                  2' \
    run -n 1 --counts sh -c "$axes"
expect 0 '"axes_missed":2,' run -n 1 --counts --json sh -c "$axes"

# Failures.
expect 3 'rank 1 failed first: it ended with exit code 3' run -n 3 sh -c '[ $WEFT_RANK = 1 ] && exit 3; sleep 20'
expect 3 'its last line of output: oops' run -n 2 sh -c '[ $WEFT_RANK = 1 ] && { echo oops >&2; echo >&2; exit 3; }; sleep 20'
expect 137 'rank 0 failed first: it was killed by signal 9 (Killed)' run -n 2 sh -c '[ $WEFT_RANK = 0 ] && kill -9 $$; sleep 20'
expect 139 'killed by signal 11' run -n 1 sh -c 'kill -SEGV $$'
expect 127 'cannot run /no/such/program: No such file' run -n 2 /no/such/program
expect 127 'cannot run /: Permission denied' run -n 2 /
ln -s /bin/true "$folder/here-only"
in_folder() { (cd "$folder" && run "$@"); }
expect 127 'cannot run here-only: it is in no folder of PATH; ./here-only exists: `weft run -n 2 ./here-only`' \
    in_folder -n 2 here-only
expect 127 'cannot run not-anywhere: it is in no folder of PATH' in_folder -n 2 not-anywhere
lacks 'exists' in_folder -n 2 not-anywhere
expect 127 'cannot run ./not-here: No such file' in_folder -n 2 ./not-here
rm "$folder/here-only"
expect 5 '[0] still here' run -n 2 --keep-going sh -c '[ $WEFT_RANK = 1 ] && exit 5; sleep 0.3; echo still here'
expect 1 'ranks 1 and 2 failed after it' run -n 3 --keep-going sh -c '
    if [ $WEFT_RANK = 0 ]; then echo $$ >$folder/first; mv $folder/first $folder/pid; exit 1; fi
    while ! [ -e $folder/pid ] || kill -0 $(cat $folder/pid) 2>/dev/null; do sleep 0.01; done # until it is buried
    exit $((WEFT_RANK + 1))'

# Ranks that do not end are killed, with all processes that they started.
expect 4 'rank 0 did not end by itself, and is killed' run -n 2 --grace 0.5 sh -c \
    'trap "" TERM; '"$ready"' [ $WEFT_RANK = 1 ] && { '"$(awaits 0)"' exit 4; }; sleep 50; sleep 50'
rm -f "$folder"/?
expect 0 'done' run -n 1 sh -c 'sleep 60 & echo done'
# What a rank that succeeded has left goes on while other ranks run, and ends with the job.
expect 0 '[1] it goes on' run -n 2 sh -c 'if [ $WEFT_RANK = 0 ]; then
        sleep 61 &
        echo $$ $! >$folder/making; mv $folder/making $folder/made
        exit 0
    fi
    while ! [ -e $folder/made ]; do sleep 0.01; done
    read -r first left <$folder/made
    lives() { grep -s "^State:" /proc/$1/status | grep -qv zombie; } # a container may have no process that reaps it
    while lives $first; do sleep 0.01; done
    sleep 0.5 # in which the launcher sees the end of rank 0
    lives $left && echo it goes on'
check=$((check + 1))
if pgrep -f 'sleep 5[0]$|sleep 6[01]$' -s 0 >/dev/null; then not_so "nothing of them is left"; fi

# Time limits.
expect 124 'the time limit of 500.0 ms passed' run -n 2 --timeout 0.5 sleep 20
expect 124 'the time limit' run -n 2 --timeout 0.5 sh -c 'kill -STOP $$'

# signalled SIGNALS RANKS SCRIPT: the launcher gets SIGNALS when all RANKS are ready.
start=('--default-signal=INT,HUP') # which a shell lets its background jobs ignore
signalled()
{
    local signals=$1 ranks=$2 pid code=0 rank signal
    env "${start[@]}" "$weft" run -n "$ranks" sh -c "$3" &
    pid=$!
    for ((rank = 0; rank < ranks; rank++)); do
        while [[ ! -e $folder/$rank ]]; do sleep 0.01; done
    done
    for signal in $signals; do kill "-$signal" $pid; done
    wait $pid || code=$?
    rm -f "$folder"/?
    return $code
}
expect 130 '' signalled INT 2 "$ready"' exec sleep 20'
expect 143 '' signalled TERM 2 "$ready"' exec sleep 20'
expect 129 '[1] got it' signalled HUP 2 'trap "echo got it; exit 0" HUP; '"$ready"' sleep 20 & wait'
start=(--ignore-signal=HUP --default-signal=INT) # as nohup does
expect 143 '' signalled 'HUP TERM' 1 "$ready"' exec sleep 20'
start=('--default-signal=INT,HUP')
expect 0 '[0] usr1' signalled USR1 1 'trap "echo usr1; exit 0" USR1; '"$ready"' sleep 20 & wait'
# A rank has the signal mask and the ignored signals that the launcher was started with.
for given in --default-signal '--ignore-signal=CHLD,INT,PIPE,TERM' '--block-signal=CHLD,INT,TERM,USR1'; do
    start=('--default-signal=HUP,INT,QUIT' "$given")
    is "$(env "${start[@]}" grep -E '^Sig(Blk|Ign)' /proc/self/status)" \
        timeout -s KILL 100 env "${start[@]}" "$weft" run -n 1 --no-prefix grep -E '^Sig(Blk|Ign)' /proc/self/status
done
orphan=$("$weft" run -n 1 --no-prefix sh -c 'echo $$ $PPID; exec sleep 77' | {
    read -r rank launcher
    kill -9 "$launcher"
    # A container may have no process that reaps it.
    while grep -s '^State:' "/proc/$rank/status" | grep -qv zombie; do sleep 0.01; done
})
is '' echo "$orphan"
check=$((check + 1))
run -n 2 yes | head -1 >/dev/null
if ((PIPESTATUS[0] != 141)); then not_so "a closed pipe ends the job"; fi

# Standard input.
is '[0] hello' bash -c "echo hello | '$weft' run -n 2 cat"
is '[1] hello' bash -c "echo hello | '$weft' run -n 2 --stdin 1 cat"
is '' bash -c "echo hello | '$weft' run -n 2 --stdin none cat"

# Wrong command lines.
expect 2 'give the number of ranks, as in -n 4' run true
expect 2 'no program' run -n 2
expect 2 '--ranks is "0"; expected a number from 1 to 4096' run -n 0 true
lacks '--n' run -n 0 true
lacks '--n ' run --help
expect 2 'expected a number of seconds' run -n 1 --timeout soon true
expect 2 'auto, none or a rank below 2' run -n 2 --stdin 2 true
expect 2 'did you mean --threads' run -n 2 --thread true
expect 3 'cannot be resolved' run -n 2 --listen no-such-host.invalid true
expect 0 'usage: weft run' run --help
expect 0 'Processes that ranks left behind are ended' run --help
expect 0 'a rank, none, or auto' run --help

# --counts takes the place of the user's file.
WEFT_COUNTS=/tmp/mine expect 0 'weft run: --counts replaces WEFT_COUNTS; /tmp/mine is not written' run -n 1 --counts true

# --threads needs a shared object.
expect 127 'cannot open' run -n 2 --threads /no/such/engine.so
expect 127 'has no weft_main' run -n 2 --threads "$(ldd "$weft" | awk '/libm\.so/ {print $3}')"
# ---- the output of one rank ----
is '[1] said 1' "$weft" run -n 3 --rank 1 sh -c 'echo said $WEFT_RANK'
fails 3 'its last line of output: broken 0' "$weft" run -n 2 --rank 1 sh -c 'if [ $WEFT_RANK = 0 ]; then echo broken 0 >&2; exit 3; fi; sleep 5'
# A program that does not find weft's libraries: the tool knows where they are.
fails 127 "weft's libraries are in /" "$weft" run -n 1 \
    sh -c 'echo "x: error while loading shared libraries: libweft.so.0.9: cannot open shared object file" >&2; exit 127'
fails 2 '--rank is "3"; expected a number from 0 to 2' "$weft" run -n 3 --rank 3 true
fails 2 'not for --threads' "$weft" run -n 3 --threads --rank 1 x.so
finish
