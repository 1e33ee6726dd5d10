# nvshmem_lib.sh - for scripts WEFT GPU_RANK STANDINS on the nvshmem plugin; STANDINS is the folder of the stand-in libraries.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
program=$2
standins=$3
image=$(cd "$(dirname "$0")/../../../plugins/kernels" && pwd)/weft_kernels.cu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export WEFT_TIMEOUT=300 WEFT_LOG=error WEFT_BACKEND=nvshmem WEFT_CUDA_LIB=$standins/nvidia/libcuda.so.1 \
    WEFT_NVSHMEM_LIB=$standins/nvidia/libnvshmem_host.so.3 WEFT_NVSHMEM_KERNELS=$image
