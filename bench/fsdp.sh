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

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
build=$root/build
rounds=2
repeats=5
ranks_list="2 4"
python=python3
json=
gpu=

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

work=$(mktemp -d "${TMPDIR:-/tmp}/weft-fsdp.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

say() { echo "fsdp: $*" >&2; }
# shellcheck source=bench/torch.sh
. "$root/bench/torch.sh"

if [ ! -x "$build/tests/fsdp_speed" ] || [ ! -x "$build/bin/weft" ]; then
    say "building weft in $build"
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DWEFT_BUILD_TESTS=OFF -DWEFT_BUILD_GPU_CHECKS=ON >&2
    cmake --build "$build" -j "$(nproc)" >&2
fi
torch=yes
if ! find_torch; then
    say "without PyTorch, which could not be installed: $(tail -n 1 "$work/pip.log" 2>/dev/null)"
    torch=
fi

run_weft() {
    if [ -n "$gpu" ]; then
        WEFT_BACKEND=${WEFT_BACKEND:-nccl} WEFT_SHARE_GPU=1 WEFT_NCCL_LIB=${WEFT_NCCL_LIB:-$(wheel_nccl)} \
            "$build/bin/weft" run -n "$1" --no-prefix "$build/tests/fsdp_speed" "$work/board" "$repeats"
    else
        WEFT_BACKEND=gloo-cpu "$build/bin/weft" run -n "$1" --no-prefix "$build/tests/fsdp_speed" \
            "$work/board" "$repeats"
    fi
}

round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    for ranks in $ranks_list; do
        say "round $round of $rounds, $ranks ranks"
        run_weft "$ranks" >"$work/weft-$round-$ranks.json"
        if [ -z "$torch" ]; then continue; fi
        OMP_NUM_THREADS=1 "$python" -m torch.distributed.run --standalone --nproc-per-node "$ranks" \
            "$here/fsdp.py" "$repeats" "$work/fsdp2-$round-$ranks.json" $gpu \
            2>"$work/torch.log" || { cat "$work/torch.log" >&2; exit 1; }
    done
done
if [ -n "$torch" ]; then
    "$python" "$here/fsdp_table.py" $json "$work"/weft-*.json -- "$work"/fsdp2-*.json
else
    "$python" "$here/fsdp_table.py" $json "$work"/weft-*.json
fi
