# shellcheck shell=bash
# python.sh - the parts of ci/gpu.sh in Python: arrays of PyTorch, CuPy and JAX on the device, torch.distributed over
# weft beside NCCL, and its speed on the CPU.  CMake alone builds the extension; programs are plain scripts.  Sourced.
programs=$root/bindings/python/tests

# Without Python's headers the tree stays as it was.
build_python()
{
    if ! cmake -S . -B "$tree" -DWEFT_BUILD_PYTHON=ON; then
        cmake -S . -B "$tree" -DWEFT_BUILD_PYTHON=OFF
        return 1
    fi
    cmake --build "$tree" -j "$jobs" --target weft_python
}

# python_of BACKEND N COMMAND...: N ranks that share the device, with the package of the build tree; a fault prints the
# stacks.
python_of()
{
    local backend=$1 n=$2
    shift 2
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$((100 / n)) PYTHONPATH=$root/$tree/python PYTHONFAULTHANDLER=1 \
        OMP_NUM_THREADS=1 WEFT_BACKEND=$backend "$@"
}
arrays() { python_of "$1" "$2" "$weft" run -n "$2" --no-prefix python3 "$programs/gpu/arrays.py" "$3"; }
torch_ranks()
{
    local backend=$1 n=$2
    shift 2
    python_of "$backend" "$n" python3 -m torch.distributed.run --standalone --nproc-per-node "$n" "$@"
}

# The programs that run over Gloo and weft on the CPU, over NCCL and weft on the device.
torch_programs()
{
    local backend=$1 n=$2 path code=0
    path=$(mktemp -d)
    torch_ranks "$backend" "$n" "$programs/torch_programs.py" weft@cuda "$path/weft" &&
        torch_ranks "$backend" "$n" "$programs/torch_programs.py" nccl@cuda "$path/nccl" &&
        python3 "$programs/gpu/compare.py" "$path" weft nccl || code=$?
    rm -rf "$path"
    return "$code"
}

python_parts()
{
    local library
    gpu_part python_build 120 "${self[@]}" build_python
    if [[ $(failed_parts) == *python_build* ]]; then return; fi
    if ! python3 -c 'import torch' 2>/dev/null; then
        echo "python: left out, as python3 has no PyTorch"
        return
    fi
    start_mps
    for library in torch cupy jax; do
        gpu_part "python_arrays_$library" 90 env XLA_PYTHON_CLIENT_PREALLOCATE=false "${self[@]}" arrays nccl 2 "$library"
    done
    gpu_part python_group_2 90 "${self[@]}" torch_ranks nccl 2 "$programs/gpu/group.py"
    gpu_part python_group_4 120 "${self[@]}" torch_ranks nccl 4 "$programs/gpu/group.py"
    gpu_part python_programs_2 150 "${self[@]}" torch_programs nccl 2
    gpu_part python_speed_2 60 "${self[@]}" python_of auto 2 python3 bench/python/group.py 2
    gpu_part python_speed_4 90 "${self[@]}" python_of auto 4 python3 bench/python/group.py 4
    end_mps
}
