# shellcheck shell=bash
# fsdp.sh - the parts of ci/gpu.sh with sharded parameters, clipping and attention, on nccl and on nvshmem; sourced by it.

# fsdp_of BACKEND N COMMAND...: on the backend, as one of N ranks that share the device.
fsdp_of()
{
    local backend=$1 n=$2
    shift 2
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$((100 / n)) WEFT_BACKEND=$backend "$@"
}

# fsdp_speed BACKEND N: N ranks of weft on the backend beside PyTorch's over NCCL.
fsdp_speed() { fsdp_of "$1" "$2" bench/fsdp.sh --gpu --json --rounds 1 --ranks "$2" --build "$root/$tree"; }

fsdp_parts()
{
    local backend n backends=(nccl)
    if WEFT_NVSHMEM_LIB=$(nvshmem_library); then
        export WEFT_NVSHMEM_LIB
        backends+=(nvshmem)
    fi
    start_mps
    for backend in "${backends[@]}"; do
        for n in 2 4; do
            gpu_part "fsdp_${backend}_$n" 60 "${self[@]}" fsdp_of "$backend" "$n" ranks "$n" fsdp_check
            gpu_part "cp_${backend}_$n" 60 "${self[@]}" fsdp_of "$backend" "$n" ranks "$n" cp_check
        done
    done
    for backend in "${backends[@]}"; do
        for n in 2 4; do
            gpu_part "fsdp_speed_${backend}_$n" 120 "${self[@]}" fsdp_speed "$backend" "$n"
        done
    done
    end_mps
}
