#!/usr/bin/env bash
# test_processes.sh WEFT RANK - the program RANK on ranks that are processes: with random cases, and when a rank is lost.
plugins=$WEFT_PLUGIN_PATH # lib.sh clears the variables of weft
source "$(dirname "$0")/lib.sh"
weft=$1 rank=$2
export WEFT_BACKEND=gloo-cpu WEFT_CHECK=1 WEFT_PLUGIN_PATH=$plugins
export WEFT_CPU_HEAP=1073741824 # tsan has little address space
run() { "$weft" run -n 4 --keep-going --timeout 600 "$rank" "$@"; }

random=$(run random 2>&1) || not_so "exit code $? of random: $random"
for i in 0 1 2 3; do contains "rank $i is done" echo "$random"; done
lost=$(run lost 2>&1) && not_so 'a job that loses a rank ends with 0'
for i in 0 1 3; do contains "rank $i is done" echo "$lost"; done
finish
