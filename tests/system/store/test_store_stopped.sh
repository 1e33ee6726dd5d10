#!/usr/bin/env bash
# A rank that is stopped inside weft_save, a saving or weft_load: the others return an error that names it, and
# weft status shows where the ranks are. A rank that is slow, but goes on, is no error.
source "$(dirname "$0")/../../support/lib.sh"
export WEFT_BACKEND=gloo-cpu # also on a machine with a device
weft=$1 rank=$2 library=$3
folder=$(mktemp -d)
export XDG_RUNTIME_DIR=$folder
cd "$folder" || exit 1
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
end() { # what a failed check may leave
    for file in "$folder"/pid.*; do [[ -e $file ]] && kill -CONT "$(cat "$file")" 2>/dev/null; done
    wait
    rm -rf "$folder"
}
trap end EXIT

# One rank gets the fault. Every rank writes its process's number.
cat >faulty.sh <<'SH2'
#!/usr/bin/env bash
which=$1 fault=$2
shift 2
echo $$ >pid.$WEFT_RANK
if [[ $WEFT_RANK == "$which" ]]; then
    export LD_PRELOAD=$LIBRARY
    if [[ $2 == load ]]; then export STORE_FAULT=$fault; else export WEFT_TEST_FAULT=$fault; fi
fi
exec "$@"
SH2
chmod +x faulty.sh
export LIBRARY=$library

run() # RANK FAULT HOW: a job that weft run serves
{
    "$weft" run --no-prefix --keep-going -n 4 ./faulty.sh "$1" "$2" "$rank" "$3" out
}
serve() # RANK FAULT HOW: a job that rank 0 serves
{
    local number
    for number in 0 1 2 3; do
        WEFT_RANK=$number WEFT_SIZE=4 WEFT_RENDEZVOUS="unix:weft-stopped-$$" ./faulty.sh "$1" "$2" "$rank" "$3" out &
    done
    wait
}

until_true() # TEXT COMMAND...: COMMAND succeeds at last
{
    local text=$1 tries
    shift
    check=$((check + 1))
    for ((tries = 0; tries < 1200; tries++)); do
        "$@" && return
        sleep 0.05
    done
    not_so "$text: $(cat lines errors 2>/dev/null)"
}
is_shown() { status=$("$weft" status "$(cat pid.3 2>/dev/null)" 2>&1) && [[ $status == *"$1"* ]]; }
are_lines() { (($(grep -cE "$1" lines) == $2)); }

# stopped HOW FAULT RANK STARTER PART ERROR: RANK stops at FAULT. Weft status shows PART of the others and that they wait
# for RANK. They fail with ERROR, and so does RANK when it goes on.
stopped()
{
    rm -f pid.* lines
    "$4" "$3" "$2" "$1" >lines 2>errors &
    job=$!
    until_true "status of $1" is_shown "rank $3 holds up ranks"
    [[ $status == *"$5"* ]] || not_so "$1: weft status says $status"
    [[ $status == *"it is stopped (pid $(cat "pid.$3"))"* ]] || not_so "$1: weft status says $status"
    until_true "$1 on the others" are_lines "ERR_TIMEOUT (weft_[a-z_]+: )?$6" 3
    kill -CONT "$(cat "pid.$3")"
    wait "$job"
    until_true "$1 on all" are_lines "ERR_TIMEOUT (weft_[a-z_]+: )?$6" 4
}

nothing_there()
{
    [[ ! -e out ]] || not_so "$1: there is a checkpoint"
    rm -rf out out.weft-partial
}

export WEFT_TIMEOUT=8 # weft status must be asked and answer in it, also on a busy machine
late='did not reach weft_save within 8' silent='made no progress in weft_save for 8'
stopped save pwrite:1:stop 2 run 'save #1 of 64.0 KiB (weft_save), for' "rank 2 of 4 $late"
nothing_there save
stopped save fdatasync:1:stop 2 run 'save #1 of 64.0 KiB (weft_save), for' "rank 2 of 4 ($late|$silent)"
nothing_there 'a flush'
stopped save rename:1:stop 0 run 'save #1 of 64.0 KiB (weft_save), for' "rank 0 of 4 $late"
rm -rf out out.weft-partial # rank 0 may have given the files their names
# its own process serves the rendezvous
stopped save pwrite:1:stop 0 serve 'save #1 of 64.0 KiB (weft_save), for' 'the rendezvous does not answer; rank 0 serves it'
nothing_there 'a server'
# in the background, while the program of rank 2 waits, and before it does
for how in begin busy; do
    stopped $how pwrite:1:stop 2 run 'save #1 of 64.0 KiB (weft_saving' 'rank 2 of 4 did not reach weft_save_begin within 8'
    nothing_there $how
done

# A rank that needs longer than the time limit, but goes on, holds up nobody.
check=$((check + 1))
WEFT_TIMEOUT=12 run 2 pwrite:0:slow many >lines 2>errors
are_lines 'rank .: OK' 4 || not_so "a slow rank: $(cat lines errors)"
rm -rf out
run none x save >lines 2>errors
stopped load pread:1:stop 2 run 'load #1 of 128.0 KiB (weft_load), for' 'rank 2 of 4 did not reach weft_load within 8'
finish
