# shellcheck shell=bash
# placements.sh - the parts of ci/gpu.sh that compare parts B and sizes G with shards S; sourced by it.

# By N ranks on BACKEND, a matrix of SIZE x SIZE from each kind, in turn, so that all see the same conditions.
placements_cost()
{
    local n=$1 backend=$2 size=$3 from to
    local part=$((size / n))
    local sizes=$((part - 32)),$((part + 32))
    if ((n == 4)); then sizes=$((part - 32)),$((part + 32)),$part,$part; fi
    for _ in 1 2; do
        for to in "S(1)" R; do
            for from in "S(0)" "G(0;$sizes)" "B(0;$((size / 2)),$((size / 4)),$((size / 4)))"; do
                CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$((100 / n)) "$weft" redistribute --backend "$backend" --ranks "$n" \
                    --mesh "$n" --shape "${size}x$size" --from "$from" --to "$to" --iters 20 --json || return 1
            done
        done
    done
}

placement_parts()
{
    start_mps
    gpu_part placements_nccl_2 120 "${self[@]}" placements_cost 2 nccl 4096
    if WEFT_NVSHMEM_LIB=$(nvshmem_library); then
        export WEFT_NVSHMEM_LIB
        gpu_part placements_nvshmem_2 100 "${self[@]}" placements_cost 2 nvshmem 8192
        gpu_part placements_nvshmem_4 150 "${self[@]}" placements_cost 4 nvshmem 8192
    fi
    end_mps
}
