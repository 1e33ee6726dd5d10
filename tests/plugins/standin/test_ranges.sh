#!/usr/bin/env bash
# test_ranges.sh WEFT RANGE_CHECK STANDINS - ranges for the vendors' tools, and names of NCCL's communicators.
# STANDINS is the folder of the simulated libraries.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
program=$2
standins=$3
image=$(cd "$(dirname "$0")/../../../plugins/kernels" && pwd)/weft_kernels.cu
tool=$standins/nvidia/libstandin_nvtx.so
roctx=$standins/amd/libroctx64.so.4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset NVTX_INJECTION64_PATH
export WEFT_TIMEOUT=300 WEFT_LOG=warning
nvidia=("WEFT_CUDA_LIB=$standins/nvidia/libcuda.so.1" "WEFT_NCCL_LIB=$standins/nvidia/libnccl.so.2"
    "WEFT_NVSHMEM_LIB=$standins/nvidia/libnvshmem_host.so.3" "WEFT_NCCL_KERNELS=$image" "WEFT_NVSHMEM_KERNELS=$image")
amd=("WEFT_HIP_LIB=$standins/amd/libamdhip64.so" "WEFT_RCCL_LIB=$standins/amd/librccl.so.1" "WEFT_RCCL_KERNELS=$image")

# ranks BACKEND HOW LIBRARY [VARIABLE=VALUE...]
ranks() {
    local backend=$1 how=$2 library=$3
    shift 3
    env "${nvidia[@]}" "${amd[@]}" "WEFT_BACKEND=$backend" "$@" "$weft" run -n 2 --timeout 200 "$program" "$how" "$library"
}

# A tool hears all calls, with and without the recorder, and whether or not it registers texts.
for backend in nccl nvshmem; do
    expect 0 "as expected" ranks "$backend" nvtx "$tool" "NVTX_INJECTION64_PATH=$tool"
done
expect 0 "as expected" ranks nccl nvtx "$tool" "NVTX_INJECTION64_PATH=$tool" WEFT_RECORDER=0
expect 0 "as expected" ranks nccl nvtx "$tool" "NVTX_INJECTION64_PATH=$tool" STANDIN_NVTX_PLAIN=1
expect 0 "as expected" ranks rccl roctx "$roctx"
# The plugin's table of texts has an end, and the tool hears the others too.
expect 0 "as expected" ranks nccl many "$tool" "NVTX_INJECTION64_PATH=$tool"

# Nothing is called without a tool, or if it cannot be used; the job goes on.
expect 0 "as expected" ranks nccl silent "$tool"
expect 0 "as expected" ranks nccl silent "$tool" NVTX_INJECTION64_PATH=
expect 0 "as expected" ranks rccl silent "$roctx"
expect 0 "as expected" ranks nccl silent "$tool" "NVTX_INJECTION64_PATH=$tool" STANDIN_NVTX_DEAF=1
expect 0 "does not start" ranks nccl silent "$tool" "NVTX_INJECTION64_PATH=$tool" STANDIN_NVTX_FAIL=1
expect 0 "has no function InitializeInjectionNvtx2" ranks nccl silent "$tool" \
    "NVTX_INJECTION64_PATH=$standins/nvidia/libcuda.so.1"
expect 0 "no NVTX ranges: NVTX_INJECTION64_PATH=/nowhere/tool.so cannot be opened" ranks nccl silent "$tool" \
    NVTX_INJECTION64_PATH=/nowhere/tool.so

# A file that every user may change is not opened.
cp "$tool" "$folder/tool.so"
chmod 0777 "$folder/tool.so"
expect 0 "so every user may change it" ranks nccl silent "$folder/tool.so" "NVTX_INJECTION64_PATH=$folder/tool.so"
chmod 0755 "$folder/tool.so"
expect 0 "as expected" ranks nccl nvtx "$folder/tool.so" "NVTX_INJECTION64_PATH=$folder/tool.so"

# The kit marks ranges from several threads.
expect 0 "" env "${nvidia[@]}" "NVTX_INJECTION64_PATH=$tool" "$weft" conform nccl --ranks 2 --only load/ranges

# NCCL's communicators have weft's names, if the library has any.
expect 0 "as expected" ranks nccl names "$standins/nvidia/libnccl.so.2"
expect 0 "as expected" ranks nccl nameless "$standins/nvidia/libnccl.so.2" STANDIN_CCL_VERSION=22602
expect 0 "as expected" ranks nccl nameless "$standins/nvidia-old/libnccl.so.2" \
    "WEFT_NCCL_LIB=$standins/nvidia-old/libnccl.so.2"
expect 0 "as expected" ranks rccl nameless "$standins/amd/librccl.so.1"
finish
