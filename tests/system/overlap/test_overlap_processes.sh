#!/usr/bin/env bash
# test_overlap_processes.sh WEFT OVERLAP_RANK [BACKEND STANDINS] - overlapped matmuls on ranks that are processes, on
# gloo-cpu or over the stand-ins for the vendor's libraries in the folder STANDINS.
plugins=$WEFT_PLUGIN_PATH # lib.sh clears the variables of weft
source "$(dirname "$0")/../../support/lib.sh"
weft=$1 rank=$2
export WEFT_BACKEND=gloo-cpu WEFT_CHECK=1 WEFT_PLUGIN_PATH=$plugins
export WEFT_CPU_HEAP=1073741824 # tsan has little address space
if (($# > 2)); then
    kernels=$(cd "$(dirname "$0")/../../../plugins/kernels" && pwd)/weft_kernels.cu # any file will do
    export WEFT_BACKEND=$3 WEFT_CUDA_LIB=$4/libcuda.so.1 WEFT_NCCL_LIB=$4/libnccl.so.2 WEFT_LOG=error \
        WEFT_NVSHMEM_LIB=$4/libnvshmem_host.so.3 WEFT_NCCL_KERNELS=$kernels WEFT_NVSHMEM_KERNELS=$kernels
fi
run() { "$weft" run -n 4 --keep-going --timeout 600 "$rank" "$@"; }

random=$(run random 2>&1) || not_so "exit code $? of random: $random"
for i in 0 1 2 3; do contains "rank $i is done" echo "$random"; done
lost=$(run lost 2>&1) && not_so 'a job that loses a rank ends with 0'
for i in 0 1 3; do contains "rank $i is done" echo "$lost"; done
for what in differ fail; do
    all=$(run "$what" 2>&1) || not_so "exit code $? of $what: $all"
    for i in 0 1 2 3; do contains "rank $i is done" echo "$all"; done
done
finish
