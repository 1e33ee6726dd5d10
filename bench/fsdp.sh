#!/bin/sh
# fsdp.sh - weft's sharded parameters and clipping against PyTorch's FSDP2, in one table: on the CPU over
# Gloo, or with --gpu over NCCL, all ranks of both on one NVIDIA device (see ci/gpu.sh).
#
#   bench/fsdp.sh [--json] [--gpu] [--rounds N] [--repeats N] [--build DIR] [--ranks "2 4"] [--python PROGRAM]
#
# The parameters have the shapes of a GPT-2 of 124 million.  Both sides measure in turn, N times over,
# with so many repeats each; the table has the least times.  PyTorch comes from PROGRAM (python3) if that
# has it, else from PyPI into a virtual environment under the build directory.  If it cannot be installed,
# the table has weft's side only.
set -eu

# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
rounds=2
repeats=5
ranks_list="2 4"

while [ $# -gt 0 ]; do
    case $1 in
    --json) json=--json ;;
    --gpu) gpu=cuda ;;
    --rounds) rounds=$2; shift ;;
    --repeats) repeats=$2; shift ;;
    --build) build=$2; shift ;;
    --ranks) ranks_list=$2; shift ;;
    --python) python=$2; shift ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done

begin fsdp
build_weft tests/fsdp_speed -DWEFT_BUILD_GPU_CHECKS=ON
torch=yes
if ! find_torch; then
    say_without_torch
    torch=
fi

round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    for ranks in $ranks_list; do
        say "round $round of $rounds, $ranks ranks"
        on_ranks "$ranks" "$build/tests/fsdp_speed" "$work/board" "$repeats" >"$work/weft-$round-$ranks.json"
        if [ -z "$torch" ]; then continue; fi
        OMP_NUM_THREADS=1 "$python" -m torch.distributed.run --standalone --nproc-per-node "$ranks" \
            "$here/fsdp.py" "$repeats" "$work/fsdp2-$round-$ranks.json" ${gpu:+cuda} \
            2>"$work/torch.log" || { cat "$work/torch.log" >&2; exit 1; }
    done
done
if [ -n "$torch" ]; then
    "$python" "$here/fsdp_table.py" ${json:+--json} "$work"/weft-*.json -- "$work"/fsdp2-*.json
else
    "$python" "$here/fsdp_table.py" ${json:+--json} "$work"/weft-*.json
fi
