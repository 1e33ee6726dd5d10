#!/bin/sh
# step.sh - predictions of `weft step` beside measured training steps of examples/gpt, in one table.
#
#   bench/step.sh [--json] [--rounds N] [--steps N] [--ranks "2 4"] [--build DIR]
#
# Communication is calibrated by `weft bench calibrate`, and computation by examples/gpt on one rank, of which as
# many run at once as there will be ranks: they share caches and memory.  From these times `weft step` predicts
# the step on 2 and 4 ranks.  Then the same step is measured on these ranks.
# Both sides measure in turn, N times over; the table has the least of the medians over the steps of a run.
# It needs python3, and takes about a minute.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
build=$root/build
rounds=2
steps=50
ranks_list="2 4"
json=

while [ $# -gt 0 ]; do
    case $1 in
    --json) json=--json ;;
    --rounds) rounds=$2; shift ;;
    --steps) steps=$2; shift ;;
    --ranks) ranks_list=$2; shift ;;
    --build) build=$2; shift ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done

work=$(mktemp -d "${TMPDIR:-/tmp}/weft-step.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export WEFT_BACKEND=gloo-cpu

say() { echo "step: $*" >&2; }

if [ ! -x "$build/bin/gpt" ] || [ ! -x "$build/bin/weft" ]; then
    say "building weft in $build"
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DWEFT_BUILD_TESTS=OFF >&2
    cmake --build "$build" -j "$(nproc)" >&2
fi
weft=$build/bin/weft gpt=$build/bin/gpt

# A case per line: ranks, mesh, microbatches of `weft step`, schedule or - or =, for sharded parameters or --mesh.
# A microbatch of a pipeline has one of the 12 sequences.
cases() {
    for ranks in $ranks_list; do
        case $ranks in
        2) printf '%s\n' "2 pp=2,dp=1 12 1f1b" "2 pp=2,dp=1 12 zbv" "2 dp=2,tp=1 1 -" "2 dp=1,tp=2 1 =" ;;
        4) printf '%s\n' "4 pp=4,dp=1 12 1f1b" "4 pp=4,dp=1 12 zbv" "4 pp=2,dp=2 6 1f1b" "4 dp=4,tp=1 1 -" \
            "4 dp=2,tp=2 1 =" ;;
        *) say "--ranks takes 2 and 4"; exit 2 ;;
        esac
    done
}

# median RANKS ARGUMENTS...: microseconds of a step of gpt
median() {
    ranks=$1
    shift
    "$weft" run -n "$ranks" --no-prefix "$gpt" "$@" --steps "$steps" 2>"$work/log" </dev/null >"$work/out" ||
        { cat "$work/log" >&2; exit 1; }
    sed -n 's/^median step \(.*\) us$/\1/p' "$work/out"
}

# alone RANKS ARGUMENTS...: the same of gpt on one rank, while as many compute; times in $work/graph
alone() {
    others=$1
    shift
    while [ "$others" -gt 1 ]; do
        "$gpt" "$@" --times "$work/other-$others" --steps "$steps" >/dev/null 2>&1 &
        others=$((others - 1))
    done
    median 1 "$@" --times "$work/graph"
    wait
}

most=2
for ranks in $ranks_list; do if [ "$ranks" -gt "$most" ]; then most=$ranks; fi; done
say "calibrating communication on $most ranks"
"$weft" bench calibrate --ranks "$most" --budget-ms 20 --output "$work/costs" >/dev/null 2>"$work/log" ||
    { cat "$work/log" >&2; exit 1; }
cases >"$work/cases"
round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    while read -r ranks mesh microbatches mode; do
        say "round $round of $rounds: $mesh, $mode"
        case $mode in
        -) one=$(alone "$ranks" --for "$mesh")
            measured=$(median "$ranks" "dp=$ranks") ;;
        =) one=$(alone "$ranks" --mesh dp=1 --for "$mesh")
            measured=$(median "$ranks" --mesh "$mesh") ;;
        *) one=$(alone "$ranks" --schedule "$mode")
            measured=$(median "$ranks" --schedule "$mode" "$mesh") ;;
        esac
        schedule=1f1b
        case $mode in - | =) ;; *) schedule=$mode ;; esac
        "$weft" step "$work/graph" --mesh "$mesh" --schedule "$schedule" --microbatches "$microbatches" \
            --costs "$work/costs" --json >"$work/step.json"
        echo "$ranks $mesh $mode $one $measured $(tr -d '\n' <"$work/step.json")" >>"$work/rows"
    done <"$work/cases"
done
# The simulator itself, for 2^20 ranks, with a sequence for each of the 8192 along dp.
sed 's/\[16,8192/[8192,8192/; s/\[131072/[67108864/' "$root/examples/graphs/llama-8b.graph" >"$work/large.graph"
python3 -c 'import resource, subprocess, sys, time
begin = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)' \
    "$weft" step "$work/large.graph" --mesh pp=16,dp=8192,tp=8/8 --schedule zbv \
    --microbatches 64 >"$work/simulator"
python3 "$here/step_table.py" $json --simulator "$work/simulator" --costs "$work/costs" --processors "$(nproc)" "$work/rows"
