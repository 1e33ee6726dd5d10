#!/bin/sh
# dtensor.sh - weft's redistributions against PyTorch's DTensor, in one table: on the CPU over Gloo, or with
# --gpu over NCCL, all ranks of both on one NVIDIA device and with PyTorch's NCCL (see ci/gpu.sh).
#
#   bench/dtensor.sh [--json] [--gpu] [--rounds N] [--budget-ms N] [--build DIR] [--ranks "2 4"]
#                    [--sizes LIST] [--python PROGRAM]
#
# Both measure in turn, N times over; the table keeps each cell's quietest round.  PyTorch comes
# from PROGRAM (python3) if that has it, else from PyPI into a virtual environment under the build
# directory.  Where it cannot be had the script says so and ends with code 77.
set -eu

# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
rounds=2
budget_ms=300
ranks_list="2 4"
sizes=

while [ $# -gt 0 ]; do
    case $1 in
    --json) json=--json ;;
    --gpu) gpu=cuda ;;
    --rounds) rounds=$2; shift ;;
    --budget-ms) budget_ms=$2; shift ;;
    --build) build=$2; shift ;;
    --ranks) ranks_list=$2; shift ;;
    --sizes) sizes=$2; shift ;;
    --python) python=$2; shift ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done

if [ -z "$sizes" ]; then
    if [ -n "$gpu" ]; then sizes=64,1024,8192; else sizes=64,1024,4096; fi
fi
begin dtensor
build_weft bin/weft ${gpu:+-DWEFT_BUILD_GPU_CHECKS=ON}
if ! find_torch; then
    say_without_torch
    exit 77
fi

run_weft() {
    if [ -n "$gpu" ]; then
        on_ranks "$1" "$build/tests/redistribute_speed" "$work/board" "$sizes" "$budget_ms"
    else
        WEFT_BACKEND=gloo-cpu "$build/bin/weft" bench redistribute --ranks "$1" --rows "$sizes" \
            --budget-ms "$budget_ms" --json
    fi
}

round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    for ranks in $ranks_list; do
        say "round $round of $rounds, $ranks ranks"
        run_weft "$ranks" >"$work/weft-$round-$ranks.json"
        OMP_NUM_THREADS=1 "$python" -m torch.distributed.run --standalone --nproc-per-node "$ranks" \
            "$here/dtensor.py" "$sizes" "$budget_ms" "$work/dtensor-$round-$ranks.json" ${gpu:+cuda} \
            2>"$work/torch.log" || { cat "$work/torch.log" >&2; exit 1; }
    done
done
if [ -n "$json" ]; then
    "$python" "$here/dtensor_table.py" --json "$work"/weft-*.json -- "$work"/dtensor-*.json
else
    "$python" "$here/dtensor_table.py" "$work"/weft-*.json -- "$work"/dtensor-*.json
fi
