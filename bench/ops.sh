#!/bin/sh
# ops.sh - how long weft takes to check and propose layouts of operators, beside PyTorch's DTensor.
#
#   bench/ops.sh [--json] [--budget-ms N] [--build DIR] [--python PROGRAM]
#
# One process measures; nothing is communicated.  PyTorch comes from PROGRAM (python3) if that has it,
# else from PyPI into a virtual environment under the build directory.  Where it cannot be had, the
# table has weft's side only.  The last line is the time of `weft check` of a training step.
set -eu

# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
budget_ms=300

while [ $# -gt 0 ]; do
    case $1 in
    --json) json=--json ;;
    --budget-ms) budget_ms=$2; shift ;;
    --build) build=$2; shift ;;
    --python) python=$2; shift ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done

begin ops
build_weft bin/weft
"$build/bin/weft" bench ops --budget-ms "$budget_ms" --json >"$work/weft.json"
if find_torch; then
    OMP_NUM_THREADS=1 "$python" "$here/ops.py" "$work/weft.json" "$budget_ms" >"$work/dtensor.json"
    "$python" "$here/ops_table.py" ${json:+--json} "$work/weft.json" "$work/dtensor.json"
else
    say_without_torch
    "$python" "$here/ops_table.py" ${json:+--json} "$work/weft.json"
fi
if [ -z "$json" ]; then
    python3 -c 'import subprocess, sys, time
times = []
for _ in range(20):
    begin = time.perf_counter()
    subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
    times.append(time.perf_counter() - begin)
print(f"check of a training step of Llama 3 8B: {1000 * sorted(times)[10]:.1f} ms with the start of the process")' \
        "$build/bin/weft" check "$root/examples/graphs/llama-8b.graph"
fi
