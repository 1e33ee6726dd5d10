# shellcheck shell=bash
# placements.sh - the parts of ci/gpu.sh that compare parts B and sizes G with shards S; sourced by it.

# placements_cost N BACKEND ROWS COLUMNS S G B: by N ranks, a tensor from each of the three placements, in turn.
placements_cost()
{
    local n=$1 backend=$2
    shift 2
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$((100 / n)) WEFT_BACKEND=$backend ranks "$n" placement_cost "$(board)" "$@"
}

# On nccl the S has shards of unequal sizes, as the G and the B have: NCCL gathers those by one broadcast per shard.
placement_parts()
{
    start_mps
    gpu_part placements_nccl_2 60 "${self[@]}" placements_cost 2 nccl 4095 4096 \
        "S(0)" "G(0;2016,2079)" "B(0;2047,1024,1024)"
    if WEFT_NVSHMEM_LIB=$(nvshmem_library); then
        export WEFT_NVSHMEM_LIB
        gpu_part placements_nvshmem_2 60 "${self[@]}" placements_cost 2 nvshmem 8192 8192 \
            "S(0)" "G(0;4064,4128)" "B(0;4096,2048,2048)"
        gpu_part placements_nvshmem_4 60 "${self[@]}" placements_cost 4 nvshmem 8192 8192 \
            "S(0)" "G(0;2016,2080,2048,2048)" "B(0;4096,2048,2048)"
    fi
    end_mps
}
