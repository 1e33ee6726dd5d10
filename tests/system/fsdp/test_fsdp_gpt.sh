#!/usr/bin/env bash
# The example GPT on ranks that are processes: after 50 steps its loss is that of one rank, within 1e-4 of it.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1 gpt=$2
export WEFT_BACKEND=gloo-cpu WEFT_CPU_HEAP=1073741824 # tsan has little address space
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # the check takes seconds for every process

loss() {
    "$@" 2>&1 | sed -n 's/.*step 50 loss //p'
}

# close WANT HAVE WHAT: the losses are about equal, and the model has learnt something.
close() {
    check=$((check + 1))
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 1 && a < 1.6 && (a - b) ^ 2 <= (1e-4 * a) ^ 2) }' ||
        not_so "the loss is $1 on one rank and ${2:-none} on $3"
}

alone=$(loss "$gpt")
for mesh in dp=2 dp=3 dp=4 rep=2,dp=2; do
    ranks=4
    [[ $mesh =~ ^dp=([0-9]+)$ ]] && ranks=${BASH_REMATCH[1]}
    close "$alone" "$(loss "$weft" run -n "$ranks" "$gpt" "$mesh")" "$mesh"
done

# Blocks 1 and 2 have equal layouts, so their gathers and reductions have equal plans; each keeps its name.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
WEFT_TRACE=$folder/t "$weft" run -n 2 "$gpt" dp=2 >/dev/null 2>&1 || not_so "a run with a trace"
plans() { # LABEL: plans of whole runs with this label, and how often they ran
    echo "{s['plan']: s['count'] for s in it['steps'] if s['label'] == '$1' and s['step'] == 0}"
}
json "$weft" trace "$folder/t.0" --json -- "$(plans block1) == $(plans block2)" "len($(plans block1)) == 2" \
    "set($(plans block1).values()) == {50, 100}"
contains ' of block2' "$weft" trace "$folder/t.0"
finish
