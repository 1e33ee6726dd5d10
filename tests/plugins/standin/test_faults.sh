#!/usr/bin/env bash
# test_faults.sh WEFT GPU_RANK STANDINS - failures on machines with GPUs and weft's messages: each refusal
# contains the vendor's error text.  STANDINS is the folder of the simulated libraries.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
program=$2
standins=$3
image=$(cd "$(dirname "$0")/../../../plugins/kernels" && pwd)/weft_kernels.cu
export WEFT_TIMEOUT=300 WEFT_LOG=error
nvidia=(WEFT_BACKEND=nccl "WEFT_CUDA_LIB=$standins/nvidia/libcuda.so.1" "WEFT_NCCL_LIB=$standins/nvidia/libnccl.so.2"
    "WEFT_NCCL_KERNELS=$image")
amd=(WEFT_BACKEND=rccl "WEFT_HIP_LIB=$standins/amd/libamdhip64.so" "WEFT_RCCL_LIB=$standins/amd/librccl.so.1"
    "WEFT_RCCL_KERNELS=$image")

# nccl CODE TEXT VARIABLE=VALUE...: a rank alone cannot begin, and says TEXT.
nccl() { local code=$1 text=$2; shift 2; expect "$code" "$text" env "${nvidia[@]}" "$@" "$program" split; }
rccl() { local code=$1 text=$2; shift 2; expect "$code" "$text" env "${amd[@]}" "$@" "$program" split; }

# No driver, one too old, none that knows a device.
nccl 11 "WEFT_CUDA_LIB=/nowhere/libcuda.so.1 cannot be opened" WEFT_CUDA_LIB=/nowhere/libcuda.so.1
nccl 11 "serves CUDA 11.0; CUDA 11.4 or newer is needed" STANDIN_VERSION=11000
nccl 11 "no NVIDIA device is present" STANDIN_DEVICES=0
nccl 11 "no device is detected" STANDIN_DEVICES=0
rccl 11 "WEFT_HIP_LIB=/nowhere/libamdhip64.so cannot be opened" WEFT_HIP_LIB=/nowhere/libamdhip64.so
rccl 11 "is HIP 5.1; HIP 5.2 or newer is needed" STANDIN_VERSION=50100000
rccl 11 "no AMD device is present" STANDIN_DEVICES=0
if ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
    expect 11 "libcuda.so.1 not found on the library search path; set WEFT_CUDA_LIB to the file" \
        env WEFT_BACKEND=nccl "$program" split
fi

# As many queues as communicators on streams of their own need, unless the user has another number.
nccl 0 "as expected" STANDIN_QUEUES=8
nccl 0 "as expected" STANDIN_QUEUES=3 CUDA_DEVICE_MAX_CONNECTIONS=3
nccl 11 "starting CUDA: some error (STANDIN_ERROR_1, 1)" STANDIN_QUEUES=3

# No library for communication, or one too old.
nccl 11 "WEFT_NCCL_LIB=/nowhere/libnccl.so.2 cannot be opened" WEFT_NCCL_LIB=/nowhere/libnccl.so.2
nccl 11 "libnccl.so.2 not found in /dev, the folder that WEFT_NCCL_LIB names" WEFT_NCCL_LIB=/dev
nccl 11 "is NCCL 2.17.1; 2.18.0 or newer is needed" STANDIN_CCL_VERSION=21701
nccl 11 "has no function ncclGetVersion" "WEFT_NCCL_LIB=$standins/nvidia/libcuda.so.1"
rccl 11 "WEFT_RCCL_LIB=/nowhere/librccl.so.1 cannot be opened" WEFT_RCCL_LIB=/nowhere/librccl.so.1
rccl 11 "is RCCL 2.16.5; 2.17.0 or newer is needed" STANDIN_CCL_VERSION=21605

# AMD's own runtime on a machine without a device of AMD's.
for hip in /usr/lib/*/libamdhip64.so.5 /opt/rocm/lib/libamdhip64.so; do
    if [[ -e $hip && ! -e /dev/kfd ]]; then
        rccl 11 "no AMD device is present" "WEFT_HIP_LIB=$hip"
        rccl 11 " says: " "WEFT_HIP_LIB=$hip" # the runtime's own text, which differs between versions
        echo "asked for devices: $hip"
    fi
done

# Without their kernels, functions of spans and merges answer that they are unsupported.
expect 0 "" env "${nvidia[@]}" STANDIN_NO_SPANS=1 "$weft" conform nccl --ranks 1 --only kernel/merge_rows
expect 0 "" env "${nvidia[@]}" STANDIN_NO_SPANS=1 "$weft" conform nccl --ranks 1 --only kernel/spans_powers

# Fewer devices than ranks.
fewer() { env "${nvidia[@]}" STANDIN_DEVICES=2 "$@" "$weft" run -n 3 "$program" split; }
expect 11 "local rank 2 has no NVIDIA device of its own: 2 are visible; WEFT_SHARE_GPU=1" fewer
expect 0 "as expected" fewer WEFT_SHARE_GPU=1

# ranks N CODE TEXT SCENARIO [VARIABLE=VALUE...], for both vendors; COUNT of them say TEXT.
ranks()
{
    local count=$1 size=$2 text=$3 scenario=$4 vendor have told
    shift 4
    for vendor in nvidia amd; do
        local -n settings=$vendor
        check=$((check + 1))
        have=$(env "${settings[@]}" "$@" "$weft" run -n "$size" --keep-going --timeout 900 "$program" "$scenario" 2>&1)
        told=$(grep -c "as expected: $text" <<<"$have")
        if ((told != count)) || [[ $have == *NOT* ]]; then
            not_so "$told ranks of $scenario on $vendor say \"$text\", not $count: $have"
        fi
    done
}
ranks 2 3 "ERR_" killed
ranks 2 2 "ERR_INVALID.*plain host memory, which the device cannot use" host_pointer
ranks 1 1 "ERR_NO_MEMORY.*allocating 1125899906842624 bytes of device memory.*out of memory" no_memory
ranks 4 4 "OK" split
ranks 2 2 "OK" wrapped_stream
ranks 2 2 "OK" wrapped_event
ranks 3 3 "OK" wrapped_comm
# Work on a stream that another rank never joins: no wait says that it was done.
ranks 1 2 "ERR_ABORTED.*world was aborted by rank 0" aborted_reduce
ranks 1 2 "ERR_ABORTED.*world was aborted by rank 0" aborted_receive
ranks 1 2 "ERR_ABORTED.*world was aborted by rank 0" aborted_on_default
ranks 1 2 "ERR_PEER.*rank 0 is gone" deserted
ranks 1 2 "ERR_TIMEOUT.*rank 0 is at #1" too_late WEFT_TIMEOUT=3
ranks 2 2 "OK" lazy STANDIN_SLOW_CONTEXT=10000
amd=("${nvidia[@]}") # which has no symmetric memory
ranks 1 2 "ERR_ABORTED.*world was aborted by rank 0" aborted_barrier
# Memory stays mapped under a kernel that looks at it: else it ends with a signal here, and with a broken device there.
ranks 1 2 "ERR_TIMEOUT" released_early WEFT_TIMEOUT=5
ranks 1 2 "ERR_TIMEOUT" released_stuck WEFT_TIMEOUT=5
finish
