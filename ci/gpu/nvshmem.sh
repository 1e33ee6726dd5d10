# shellcheck shell=bash
# nvshmem.sh - the parts of ci/gpu.sh that are the nvshmem plugin's; sourced by it.
#
# Several ranks on one device need the MPS daemon and an equal share of the device each, which the plugin asks for
# itself: that it does is a part, too.

# A folder with NVSHMEM's library: WEFT_NVSHMEM_LIB's, or a Python environment's.
nvshmem_library()
{
    python3 - <<'PYTHON'
import os, sys
given = os.environ.get("WEFT_NVSHMEM_LIB")
for folder in [given] if given else sys.path:
    for part in ("nvidia/nvshmem/lib", ""):
        if os.path.exists(os.path.join(folder or ".", part, "libnvshmem_host.so.3")):
            print(os.path.abspath(os.path.join(folder, part)))
            sys.exit(0)
sys.exit(1)
PYTHON
}

# shared N COMMAND...: on nvshmem, as one of N ranks that share the device.
shared()
{
    local n=$1
    shift
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$((100 / n)) WEFT_BACKEND=nvshmem "$@"
}

# Without the daemon two ranks are refused, with the reason, and nobody ends the process under them.
refuses_without_mps()
{
    local said
    said=$(WEFT_BACKEND=nvshmem "$weft" redistribute -n 2 --mesh 2 --shape 64x64 --from "S(0)" --to R 2>&1) && return 1
    echo "$said" | tail -n 1
    [[ $said == *"start the CUDA MPS daemon"* ]]
}

# By as many ranks, one redistribution on nvshmem and on nccl.
against_nccl()
{
    local n=$1 backend
    for backend in nvshmem nccl; do
        CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$((100 / n)) WEFT_BACKEND=$backend \
            ranks "$n" redistribute_speed "$(board)" 8192 300
    done
}

# Collectives from nccl, symmetric memory from nvshmem.
symm_beside_nccl()
{
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$((100 / $1)) WEFT_BACKEND=nccl,nvshmem ranks "$1" symm_suite --rounds 200
}

# A command with NVSHMEM's own collectives, or with the plugin's.
with_collectives() { WEFT_NVSHMEM_COLLECTIVES=$1 "${@:2}"; }

# Both ways by the same ranks, in turn.
collectives_both_ways()
{
    local way
    for way in weft nvshmem; do
        WEFT_NVSHMEM_COLLECTIVES=$way "$weft" bench coll --ranks "$1" --sizes 1KiB,1MiB,64MiB --budget-ms 100 --json
    done
}

nvshmem_parts()
{
    local n cases
    if ! WEFT_NVSHMEM_LIB=$(nvshmem_library); then
        echo "nvshmem: no libnvshmem_host.so.3 found, its parts are left out"
        return
    fi
    export WEFT_NVSHMEM_LIB
    gpu_part nvshmem_without_mps 60 "${self[@]}" refuses_without_mps
    gpu_part nvshmem_racecheck 40 env WEFT_BACKEND=nvshmem "${self[@]}" sanitize racecheck --target-processes all \
        "$weft" conform nvshmem --ranks 1 --level pull --comm-timeout 30
    start_mps
    for n in 2 4; do
        gpu_part "nvshmem_rate_$n" 60 "${self[@]}" shared "$n" ranks "$n" redistribute_rate "$(board)"
    done
    gpu_part nvshmem_beside_nccl 40 "${self[@]}" symm_beside_nccl 2
    start_mps # what was cut off may leave the daemon unwell
    gpu_part nvshmem_against_nccl 100 "${self[@]}" against_nccl 4
    gpu_part nvshmem_capture 40 "${self[@]}" shared 2 ranks 2 capture_check
    gpu_part nvshmem_same_bits 40 "${self[@]}" shared 4 ranks 4 same_bits
    gpu_part nvshmem_collectives 40 "${self[@]}" shared 4 collectives_both_ways 4
    for n in 1 2 4; do
        gpu_part "nvshmem_random_$n" 60 "${self[@]}" shared "$n" ranks "$n" redistribute_check "$(board)"
        gpu_part "nvshmem_symm_$n" 60 "${self[@]}" shared "$n" ranks "$n" symm_suite
        gpu_part "nvshmem_conform_$n" 120 "${self[@]}" shared "$n" "$weft" conform nvshmem --ranks "$n" --json --comm-timeout 20
        start_mps # so may a rank that was killed
    done
    for n in 2 4; do
        # Without a rank that is killed: what NVSHMEM then has on the device keeps MPS from serving anybody.
        for cases in "--skip errors" "--only errors/timeout" "--only errors/abort"; do
            # shellcheck disable=SC2086
            gpu_part "nvshmem_library${cases//[^a-z]/_}_$n" 100 "${self[@]}" shared "$n" with_collectives nvshmem \
                "$weft" conform nvshmem --ranks "$n" --json --comm-timeout 20 $cases
            start_mps
        done
    done
    end_mps
}
