# shellcheck shell=bash
# parallel.sh - the parts of ci/gpu.sh with experts, overlapped matmuls and context parallel, on nccl and on nvshmem;
# sourced by it.

# parallel_of BACKEND N COMMAND...: on_backend with symmetric memory for large tensors, and few random cases.
parallel_of() { WEFT_NVSHMEM_HEAP=4G WEFT_TEST_CASES=10 on_backend "$@"; }

# The file of cuBLAS: CUBLAS_LIB, CUDA's, or a Python environment's; empty if there is none.
cublas_library()
{
    python3 - <<'PYTHON'
import glob, os, sys
given = os.environ.get("CUBLAS_LIB")
folders = ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/*/lib"]
folders += [os.path.join(folder or ".", "nvidia", part, "lib") for folder in sys.path for part in ("cublas", "cu*")]
found = [file for folder in folders for file in sorted(glob.glob(os.path.join(folder, "libcublas.so.*")), key=len)]
print(given or (found[0] if found else ""))
PYTHON
}

parallel_parts()
{
    local backend n program
    find_backends
    start_mps
    for backend in "${backends[@]}"; do
        for n in 2 4; do
            for program in experts overlap cp; do
                gpu_part "${program}_${backend}_$n" 30 "${self[@]}" parallel_of "$backend" "$n" \
                    ranks "$n" "${program}_rank" random
            done
            gpu_part "cp_kernels_${backend}_$n" 60 "${self[@]}" parallel_of "$backend" "$n" ranks "$n" cp_check
        done
    done
    end_mps
}

# On nccl, ranks of one device talk through sockets, so fewer tokens travel.
parallel_speeds()
{
    local backend n
    local -A tokens=([nccl]=2048 [nvshmem]=65536)
    find_backends
    CUBLAS_LIB=$(cublas_library)
    export CUBLAS_LIB
    for backend in "${backends[@]}"; do
        start_mps
        gpu_part "overlap_speed_$backend" 60 "${self[@]}" parallel_of "$backend" 4 ranks 4 overlap_speed "$(board)"
        gpu_part "experts_speed_$backend" 60 "${self[@]}" parallel_of "$backend" 4 \
            ranks 4 experts_speed "$(board)" "${tokens[$backend]}"
        for n in 2 4; do
            gpu_part "ring_speed_${backend}_$n" 30 "${self[@]}" parallel_of "$backend" "$n" \
                ranks "$n" ring_speed "$(board)"
        done
    done
    end_mps
}
