# shellcheck shell=bash
# fsdp.sh - the parts of ci/gpu.sh with sharded parameters and clipping, on nccl and on nvshmem; sourced by it.

# fsdp_speed BACKEND N: N ranks of weft on the backend beside PyTorch's over NCCL.
fsdp_speed() { on_backend "$1" "$2" bench/fsdp.sh --gpu --json --rounds 1 --ranks "$2" --build "$root/$tree"; }

fsdp_parts()
{
    local backend n
    find_backends
    start_mps
    for backend in "${backends[@]}"; do
        for n in 2 4; do
            gpu_part "fsdp_${backend}_$n" 60 "${self[@]}" on_backend "$backend" "$n" ranks "$n" fsdp_check
        done
    done
    end_mps
}

fsdp_speeds()
{
    local backend n
    find_backends
    start_mps
    for backend in "${backends[@]}"; do
        for n in 2 4; do
            gpu_part "fsdp_speed_${backend}_$n" 120 "${self[@]}" fsdp_speed "$backend" "$n"
        done
    done
    end_mps
}
