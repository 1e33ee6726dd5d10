#!/usr/bin/env bash
# gpu.sh - everything there is to run on a machine with an NVIDIA GPU, in one command.
#
#   ci/gpu.sh [REPORT.json]        (build/gpu/report.json)
#
# Needs CUDA's toolkit, NCCL and python3; no network and no Check library.  Ranks share one device:
# each looks like a host of its own to NCCL, and the CUDA MPS daemon lets their kernels run side by
# side.  A log of each part lies beside the report.  GPU_SECONDS (500) bounds the whole run.
source "$(dirname "$0")/lib.sh"
self=("$root/ci/gpu.sh" --part)
tree=build/gpu
weft=$tree/bin/weft
plugin=$root/$tree/lib/weft/libweft_plugin_nccl.so
deadline=$((SECONDS + ${GPU_SECONDS:-500}))
PATH=$PATH:/usr/local/cuda/bin
export WEFT_BACKEND=nccl WEFT_SHARE_GPU=1
export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo} NCCL_IB_DISABLE=1 NCCL_DEBUG=${NCCL_DEBUG:-WARN}

# ---- the MPS daemon, in a folder of its own ----

mps=""
end_mps()
{
    if [[ -z $mps ]]; then return; fi
    echo quit | nvidia-cuda-mps-control >/dev/null 2>&1 || true
    rm -rf "$mps"
    mps=""
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}
start_mps()
{
    end_mps
    if ! command -v nvidia-cuda-mps-control >/dev/null; then return; fi
    mps=$(mktemp -d)
    mkdir "$mps/pipe" "$mps/log"
    export CUDA_MPS_PIPE_DIRECTORY=$mps/pipe CUDA_MPS_LOG_DIRECTORY=$mps/log
    nvidia-cuda-mps-control -d >/dev/null 2>&1 || end_mps
}

# ---- parts: each with a time limit, a log, and a line in the report ----

# gpu_part NAME SECONDS COMMAND...: its standard output is the log NAME.txt.
gpu_part()
{
    local name=$1 limit=$2 begin=$SECONDS code=0 left=$((deadline - SECONDS))
    shift 2
    if ((left <= 5)); then
        printf '%s\t%s\t%s\n' "$name" skipped 0 >>"$logs/parts.tsv"
        echo "$name: skipped, no time left"
        return
    fi
    timeout -k 5 $((limit < left ? limit : left)) "$@" >"$logs/$name.txt" 2>"$logs/$name.err" || code=$?
    printf '%s\t%s\t%s\n' "$name" "$code" $((SECONDS - begin)) >>"$logs/parts.tsv"
    if ((code == 0)); then
        echo "$name: passed in $((SECONDS - begin)) s"
    elif ((code == 77)); then
        echo "$name: skipped: $(tail -n 1 "$logs/$name.txt")"
    else
        echo "$name: FAILED with code $code in $((SECONDS - begin)) s; its last lines:"
        tail -n 12 "$logs/$name.txt" "$logs/$name.err"
        part_failed+=("$name")
    fi
}

build_tree()
{
    local generator=()
    if command -v ninja >/dev/null; then generator=(-G Ninja); fi
    cmake -S . -B "$tree" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
        -DWEFT_BUILD_TESTS=OFF -DWEFT_BUILD_EXAMPLES=OFF -DWEFT_BUILD_GPU_CHECKS=ON \
        -DWEFT_HIP_KERNELS=OFF && cmake --build "$tree" -j "$jobs"
}

redistribute_some()
{
    local ranks=$1
    "$weft" redistribute -n "$ranks" --mesh "$ranks" --shape 1024x1024 --from "S(0)" --to R --json
    "$weft" redistribute -n "$ranks" --mesh "$ranks" --shape 1000x1003 --from "S(0)" --to "S(1)" --json
    "$weft" redistribute -n "$ranks" --mesh "$ranks" --shape 777x513 --dtype bf16 --from P --to "S(1)" --json
    "$weft" redistribute -n "$ranks" --mesh "$ranks" --shape 65x129x7 --dtype i16 --from "S(2)" --to "S(0)" --json
}

sanitize()
{
    if ! command -v compute-sanitizer >/dev/null; then
        echo "compute-sanitizer not found"
        return 77
    fi
    compute-sanitizer --tool "$1" --error-exitcode 9 "${@:2}"
}

run_parts()
{
    gpu_part build "${GPU_BUILD_SECONDS:-240}" "${self[@]}" build_tree
    if ((${#part_failed[@]})); then return; fi
    gpu_part info 30 "$weft" info --json
    gpu_part conform_1 90 "$weft" conform nccl --ranks 1 --json
    gpu_part kernel_check 60 "$tree/tests/kernel_check" "$plugin"
    gpu_part memcheck 60 "${self[@]}" sanitize memcheck "$tree/tests/kernel_check" "$plugin" --cases 40 --bytes 0
    gpu_part racecheck 60 "${self[@]}" sanitize racecheck "$tree/tests/kernel_check" "$plugin" --cases 20 --bytes 0
    gpu_part calls_1 30 "$tree/tests/call_cost" "$plugin" --ranks 1
    start_mps
    gpu_part calls_2 60 "$tree/tests/call_cost" "$plugin" --ranks 2 --most 16777216
    gpu_part redistribute_2 60 "${self[@]}" redistribute_some 2
    gpu_part bench_redistribute 60 "$weft" bench redistribute --ranks 2 --json
    start_mps
    gpu_part conform_2 150 "$weft" conform nccl --ranks 2 --json --timeout 30
    start_mps
    gpu_part conform_4 200 "$weft" conform nccl --ranks 4 --json --timeout 30
    end_mps
}

# `timeout` runs programs, not functions: these come back here as programs.
if [[ ${1:-} == --part ]]; then
    "${@:2}"
    exit
fi
report=$(realpath -m "${1:-build/gpu/report.json}")
logs=${report%.json}.logs
rm -rf "$logs"
mkdir -p "$logs" "$tree"
export NCCL_DEBUG_FILE=$logs/nccl.%h.%p.txt
nvidia-smi -L >/dev/null 2>&1 || die "nvidia-smi sees no device"
trap end_mps EXIT
run_parts
python3 ci/gpu_report.py "$logs" "$report"
echo "report: $report"
((${#part_failed[@]} == 0)) || die "failed: ${part_failed[*]}"
