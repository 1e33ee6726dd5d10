#!/usr/bin/env bash
# weft status on jobs: a rank that is stopped, killed, late or in another operation.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
rank=$2
waiting=$3
export WEFT_BACKEND=gloo-cpu WEFT_TIMEOUT=300
folder=$(mktemp -d)
export XDG_RUNTIME_DIR=$folder
trap 'touch "$folder/end"; wait; rm -rf "$folder"' EXIT
status() { "$weft" status "$@"; }

begin() { # begin COMMAND...: starts a job; all its ranks have begun
    rm -f "$folder"/pid.* "$folder/end"
    "$@" >"$folder/log" 2>&1 &
    job=$!
    for number in 0 1 2 3; do
        while [[ ! -e $folder/pid.$number ]]; do sleep 0.01; done
    done
}
end() { # end CODE: lets the job end
    local code=0
    touch "$folder/end"
    wait "$job" || code=$?
    check=$((check + 1))
    ((code == $1)) || not_so "exit code $code of the job, not $1: $(cat "$folder/log")"
}
shows() { # shows TEXT [PID [OPTION...]]: weft status says it of the job, at last
    local text=$1 have='' tries
    shift
    check=$((check + 1))
    (($# > 0)) || set -- "$(cat "$folder/pid.0")"
    for ((tries = 0; tries < 600; tries++)); do
        have=$(status "$@" 2>&1)
        [[ $have == *"$text"* ]] && return
        sleep 0.05
    done
    not_so "\"$text\" in what weft status $* says: $have"
}

# A rank that is stopped, and goes on.
begin "$weft" run -n 4 "$rank" loop "$folder"
kill -STOP "$(cat "$folder/pid.2")"
shows "rank 2 holds up ranks 0-1,3: it is stopped (pid $(cat "$folder/pid.2"))"
shows 'rank 2, stopped: all-reduce #' "$(cat "$folder/pid.1")"
shows 'world (4 ranks: 0-3)' "$job" # the launcher
json status "$job" --json -- 'it["jobs"][0]["size"] == 4' '[r["stopped"] for r in it["jobs"][0]["ranks"]] == [False, False, True, False]'
kill -CONT "$(cat "$folder/pid.2")"
end 0
fails 1 'no job of this user' status "$job"

# A rank that computes while the others wait for it.
begin "$weft" run -n 4 "$rank" behind "$folder"
shows 'rank 1 holds up ranks 0,2-3: it is behind at #3 of world, and it has been in no operation of weft for'
shows 'ranks 0,2-3: all-reduce #4 of 1.0 MiB, for'
shows 'rank 1, behind at #3: all-reduce #3 of 1.0 MiB, finished'
end 0

# A rank that receives, while its peer is outside weft: the peer is the cause.
begin "$weft" run -n 4 "$rank" receive "$folder"
shows 'rank 2 holds up ranks 0-1,3: it is behind at #3 of world, and it has been in no operation of weft for'
shows 'rank 1, behind at #3: receive #1 of 64 B from rank 2, for'
end 0

# Ranks as threads.
begin "$rank" threads "$folder"
shows 'rank 1 holds up ranks 0,2-3: it is behind at #3 of world'
shows '4 ranks' "$job"
end 0

# Parts of a split have one number; each has its own ranks and its own cause.
begin "$weft" run -n 4 "$rank" split "$folder"
shows 'rank 3 holds up rank 2: it is behind at #3 of halves#'
shows '/0 (2 ranks: 0-1) over shared memory
    ranks 0-1: all-reduce #3 of 1.0 MiB, finished' "$job" --all
lacks '/0 (2 ranks: 0-1)' status "$job"
contains 'idle; --all shows' status "$job"
json status "$job" --json -- '[c["idle"] for c in it["jobs"][0]["communicators"] if c["name"].startswith("halves")] == [True, False]'
shows '/1 (2 ranks: 2-3) over shared memory
    rank 3, behind at #3: all-reduce #3'
end 0

# Ranks that create or release something together, while one of them is outside weft.
begin "$weft" run -n 4 "$rank" create "$folder"
shows 'rank 1 holds up ranks 0,2-3: it has been in no operation of weft for'
shows 'ranks 0,2-3: create #1 (weft_comm_split), for'
touch "$folder/split"
shows 'rank 1 holds up rank 0: it has been in no operation of weft for'
shows 'rank 0: create #1 by ranks 0-1 (weft_comm_create), for'
touch "$folder/create"
shows 'rank 1 holds up ranks 0,2-3: it has been in no operation of weft for'
shows 'ranks 0,2-3: create #2 (weft_comm_along), for'
touch "$folder/along"
shows 'ranks 0,2-3: create #3 (weft_symm_create), for'
touch "$folder/symm"
shows 'rank 1 holds up ranks 0,2-3: it has been in no operation of weft for'
shows 'ranks 0,2-3: release #4 (weft_symm_release), for'
end 0

# Calls that wait for all ranks, while one of them is outside weft.
late() { # late CALL TEXT: rank 1 is late for CALL
    begin "$weft" run -n 4 "$waiting" "$1" "$folder"
    shows 'rank 1 holds up ranks 0,2-3: it has been in no operation of weft for'
    shows "ranks 0,2-3: $2, for"
    end 0
}
late move 'agree #1 (weft_tensor_move)'
lacks 'in another operation' status "$(cat "$folder/pid.0")"
late group 'agree #1 (weft_fsdp_group_create)'
late reduce 'agree #1 (weft_fsdp_reduce_begin)'
late save 'save #3 (weft_save_begin)'
late load 'load #4 of 128 B (weft_load_into)'
late clip 'plan (weft_tensors_move_into)'

# The same with a rank that skips the call: all wait, and after the time limit their recorders tell it.
skipped() { # skipped CALL COMMUNICATOR OTHERS MINE
    WEFT_TIMEOUT=1 begin "$weft" run -n 4 "$waiting" "$1" "$folder" skip
    end 1
    shows 'ranks 0-3 waited for each other'
    shows "the first call that differs on $2"
    shows ": rank 0 called $3, rank 1 $4"$'\n'
}
skipped move world 'agree #1 (weft_tensor_move)' 'barrier #2'
json status "$(cat "$folder/pid.0")" --json -- 'it["jobs"][0]["first_difference"]["called"]["operation"] == "agree"' \
    'it["jobs"][0]["first_difference"]["other_called"]["operation"] == "barrier"' 'it["jobs"][0]["first_difference"]["sequence"] == 0'
skipped group 'fsdp-gather#' 'agree #1 (weft_fsdp_group_create)' 'barrier #2 on world'
skipped save world 'save #3 (weft_save_begin)' 'barrier #2'
skipped clip world 'plan (weft_tensors_move_into)' 'barrier #3'
# All ranks are in the call, but with different arguments: nobody is blamed.
begin "$weft" run -n 4 "$waiting" move "$folder" differ
end 1
shows '4 ranks, ended'
lacks 'held up' status "$(cat "$folder/pid.0")"
lacks 'waited for' status "$(cat "$folder/pid.0")"
# Rank 3 waits for rank 1 on dp, and rank 1 for rank 3 on world.
WEFT_TIMEOUT=1 begin "$weft" run -n 4 "$waiting" dp "$folder" skip
end 1
shows 'the first call that differs on world: rank 1 called barrier #2, rank 3 all-reduce(f32, count 1, sum) #1 on dp'

# A rank that is killed: the others fail, and its last operation is still there.
begin "$weft" run -n 4 --keep-going "$rank" loop "$folder"
kill -9 "$(cat "$folder/pid.3")"
wait "$job"
shows '4 ranks, ended'
shows ': all-reduce #' "$(cat "$folder/pid.3")"
rm -f "$folder"/weft/recorder.*

# A job without recorders.
export WEFT_RECORDER=0
begin "$weft" run -n 4 "$rank" behind "$folder"
fails 1 'no job of this user' status "$job"
end 0
finish
