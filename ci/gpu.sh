#!/usr/bin/env bash
# gpu.sh - everything there is to run on a machine with an NVIDIA GPU, in one command.
#
#   ci/gpu.sh [REPORT.json]        (build/gpu/report.json)
#
# Needs CUDA's toolkit, NCCL and python3, and NVSHMEM for the parts in ci/gpu/nvshmem.sh; no network
# and no Check library.  Ranks share one device:
# each looks like a host of its own to NCCL, and the CUDA MPS daemon lets their kernels run side by
# side.  What checks runs together, what measures runs alone.  Each part has a time limit, a log
# beside the report, and a line in it; GPU_SECONDS (500) bounds the whole run, and GPU_PARTS
# names the groups of parts to run (measure_all check_all kernel_parts nvshmem_parts trace_parts
# placement_parts tensor_parts fsdp_parts fsdp_speeds parallel_parts parallel_speeds python_parts).
# GPU_COMMIT names the commit where there is no git to ask.  `ci/evidence.py REPORT.json` adds the results to
# docs/evidence.md.
source "$(dirname "$0")/lib.sh"
self=("$root/ci/gpu.sh" --part)
tree=build/gpu
weft=$root/$tree/bin/weft
tests=$root/$tree/tests
plugin=$root/$tree/lib/weft/libweft_plugin_nccl.so
deadline=$((SECONDS + ${GPU_SECONDS:-500}))
PATH=$PATH:/usr/local/cuda/bin
export WEFT_BACKEND=nccl WEFT_SHARE_GPU=1 WEFT_LOG=${WEFT_LOG:-error}
export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo} NCCL_IB_DISABLE=1 NCCL_DEBUG=${NCCL_DEBUG:-WARN}

source "$root/ci/gpu/nvshmem.sh"
source "$root/ci/gpu/traces.sh"
source "$root/ci/gpu/placements.sh"
source "$root/ci/gpu/tensors.sh"
source "$root/ci/gpu/fsdp.sh"
source "$root/ci/gpu/parallel.sh"
source "$root/ci/gpu/python.sh"

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

# ---- parts ----

# gpu_part NAME SECONDS COMMAND...: its standard output is the log NAME.txt.
gpu_part()
{
    local name=$1 limit=$2 begin=$SECONDS code=0 left=$((deadline - SECONDS))
    shift 2
    if ((left <= 5)); then
        printf '%s\t%s\t%s\n' "$name" late 0 >>"$logs/parts.tsv"
        echo "$name: not run, no time left"
        return
    fi
    timeout -k 5 $((limit < left ? limit : left)) "$@" >"$logs/$name.txt" 2>"$logs/$name.err" || code=$?
    if ((limit > left && (code == 124 || code == 137))); then code=late; fi
    printf '%s\t%s\t%s\n' "$name" "$code" $((SECONDS - begin)) >>"$logs/parts.tsv"
    if [[ $code == late ]]; then
        echo "$name: cut after $((SECONDS - begin)) s, no time left"
    elif ((code == 0)); then
        echo "$name: passed in $((SECONDS - begin)) s"
    elif ((code == 77)); then
        echo "$name: skipped: $(tail -n 1 "$logs/$name.txt")"
    else
        echo "$name: FAILED with code $code in $((SECONDS - begin)) s; its last lines:"
        tail -n 12 "$logs/$name.txt" "$logs/$name.err"
    fi
}

# also NAME SECONDS COMMAND...: the same, beside others, until all_done.
also() { gpu_part "$@" & }
all_done() { wait; }

failed_parts() { awk -F '\t' '$2 != 0 && $2 != 77 { print $1 }' "$logs/parts.tsv"; }

build_tree()
{
    local generator=()
    if command -v ninja >/dev/null; then generator=(-G Ninja); fi
    cmake -S . -B "$tree" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
        -DWEFT_BUILD_TESTS=OFF -DWEFT_BUILD_EXAMPLES=OFF -DWEFT_BUILD_GPU_CHECKS=ON \
        -DWEFT_CUDA_KERNELS=ON && cmake --build "$tree" -j "$jobs"
}

# ranks N PROGRAM ARGUMENTS...: as so many ranks, with a file of their own to meet in.
ranks()
{
    local n=$1 program=$2
    shift 2
    "$weft" run -n "$n" --no-prefix "$tests/$program" "$@"
}
board() { mktemp -u; }
# on_backend BACKEND N COMMAND...: as one of N ranks that share the device.
on_backend()
{
    local backend=$1 n=$2
    shift 2
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$((100 / n)) WEFT_BACKEND=$backend "$@"
}
# Set backends to nccl, and nvshmem if this machine has it.
find_backends()
{
    backends=(nccl)
    if WEFT_NVSHMEM_LIB=$(nvshmem_library); then
        export WEFT_NVSHMEM_LIB
        backends+=(nvshmem)
    fi
}

sanitize()
{
    if ! command -v compute-sanitizer >/dev/null; then
        echo "compute-sanitizer not found"
        return 77
    fi
    compute-sanitizer --tool "$1" --error-exitcode 9 "${@:2}"
}

# Faults, parts of communicators, and what is wrapped.  The rank that is killed comes last: MPS does
# not always get over it.
scenarios()
{
    local scenario have
    for scenario in split wrapped_stream wrapped_event wrapped_comm host_pointer no_memory; do
        echo "$scenario"
        "$weft" run -n 2 --timeout 30 "$tests/gpu_rank" "$scenario" || return 1
    done
    echo killed
    have=$("$weft" run -n 3 --keep-going --timeout 30 "$tests/gpu_rank" killed 2>&1) || true
    echo "$have"
    [[ $(grep -c "as expected: ERR_" <<<"$have") == 2 && $have != *NOT* ]]
}

# Symmetric memory that is registered with NCCL, too; everywhere else it is not.
with_windows() { WEFT_NCCL_WINDOWS=1 symm "$1" --rounds 50; }
symm() { ranks "$1" symm_suite "${@:2}"; }

kernel_parts()
{
    also memcheck 60 "${self[@]}" sanitize memcheck "$tests/kernel_check" "$plugin" --cases 40 --bytes 0
    also racecheck 60 "${self[@]}" sanitize racecheck "$tests/kernel_check" "$plugin" --cases 20 --bytes 0
    all_done
}

check_all()
{
    export WEFT_NCCL_WINDOWS=0
    start_mps
    export CUDA_DEVICE_MAX_CONNECTIONS=4 # these are nineteen processes
    also random_2 100 "${self[@]}" ranks 2 redistribute_check "$(board)"
    also random_4 150 "${self[@]}" ranks 4 redistribute_check "$(board)"
    also stream_order 60 "${self[@]}" ranks 2 stream_order
    also capture 60 "${self[@]}" ranks 2 capture_check
    also batch 60 "${self[@]}" ranks 2 batch_check
    also moves 60 "${self[@]}" ranks 4 move_check
    also symm_2 100 env CUDA_DEVICE_MAX_CONNECTIONS=8 "${self[@]}" symm 2 --rounds 200
    also conform_1 150 "$weft" conform nccl --ranks 1 --json --comm-timeout 20
    all_done
    unset CUDA_DEVICE_MAX_CONNECTIONS
    start_mps
    also conform_2 200 "$weft" conform nccl --ranks 2 --json --comm-timeout 20 --patience 2
    also conform_4 240 "$weft" conform nccl --ranks 4 --json --comm-timeout 20 --patience 3
    all_done
    gpu_part scenarios 60 "${self[@]}" scenarios
    gpu_part symm_4 60 "${self[@]}" symm 4 --rounds 100
    end_mps
    kernel_parts
    gpu_part windows_1 40 "${self[@]}" with_windows 1
    start_mps
    gpu_part windows_2 60 "${self[@]}" with_windows 2
    end_mps
    unset WEFT_NCCL_WINDOWS
}

measure_all()
{
    gpu_part kernels 60 "$tests/kernel_check" "$plugin"
    gpu_part calls_1 30 "$tests/call_cost" "$plugin" --ranks 1
    start_mps
    gpu_part cost_2 80 "${self[@]}" ranks 2 redistribute_cost "$(board)"
    gpu_part dtensor 170 bench/dtensor.sh --gpu --json --rounds 2 --build "$root/$tree"
    end_mps
}

run_parts()
{
    local group
    gpu_part build "${GPU_BUILD_SECONDS:-240}" "${self[@]}" build_tree
    if [[ -n $(failed_parts) ]]; then return; fi
    gpu_part info 30 "$weft" info --json
    for group in ${GPU_PARTS:-measure_all tensor_parts check_all nvshmem_parts trace_parts placement_parts fsdp_parts \
        fsdp_speeds parallel_parts parallel_speeds python_parts}; do
        "$group"
    done
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
[[ -z $(failed_parts) ]] || die "failed: $(failed_parts | tr '\n' ' ')"
