# shellcheck shell=bash
# tensors.sh - the parts of ci/gpu.sh that use tensors: random numbers with the bits of processors, what tensors do,
# operators by kernels of the device, in phases too, checkpoints of device memory.  Sourced by it.

# engine N: operators and checkpoints by N ranks.
engine()
{
    local path code=0
    path=$(mktemp -d)
    ranks "$1" engine_check "$path/checkpoint" || code=$?
    rm -rf "$path"
    return "$code"
}

tensor_parts()
{
    local backend
    find_backends
    gpu_part draws_memcheck 150 "${self[@]}" sanitize memcheck --report-api-errors no --target-processes all \
        "$weft" run -n 1 --no-prefix "$tests/draw_check" 20011 device
    start_mps
    for backend in "${backends[@]}"; do
        gpu_part "draws_$backend" 60 "${self[@]}" on_backend "$backend" 2 ranks 2 draw_check 1003003 device
        gpu_part "tensors_${backend}_2" 40 "${self[@]}" on_backend "$backend" 2 ranks 2 tensor_check
        gpu_part "tensors_${backend}_4" 60 "${self[@]}" on_backend "$backend" 4 ranks 4 tensor_check
        gpu_part "engine_$backend" 90 "${self[@]}" on_backend "$backend" 2 engine 2
    done
    end_mps
}
