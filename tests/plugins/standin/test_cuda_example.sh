#!/usr/bin/env bash
# test_cuda_example.sh WEFT CUDA STANDINS - the example of an engine with CUDA objects of its own.  Its exit code tells
# whether the vendor's library has failed.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1 example=$2 standins=$3
image=$(cd "$(dirname "$0")/../../../plugins/kernels" && pwd)/weft_kernels.cu
export WEFT_BACKEND=nccl WEFT_TIMEOUT=300 WEFT_LOG=error WEFT_NCCL_KERNELS=$image
export WEFT_CUDA_LIB=$standins/nvidia/libcuda.so.1 WEFT_NCCL_LIB=$standins/nvidia/libnccl.so.2

for ranks in 1 2 3; do
    is "a sum on the engine's stream: right
a sum beside the engine's stream: right
a kernel on weft's stream: right
a sum by NCCL: right" "$weft" run --no-prefix -n "$ranks" "$example"
done
for call in 1 2 3; do # of weft's
    fails 75 "NCCL gave the error 1" env STANDIN_CCL_FAIL_CALL=$call "$example"
done
fails 75 "result: 1" env STANDIN_CCL_FAIL_CALL=4 "$example" # the engine's own
fails 1 "set WEFT_BACKEND=nccl" env WEFT_BACKEND=gloo-cpu "$example"
finish
