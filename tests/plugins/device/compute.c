/* compute.c - see compute.h. */
#include "compute.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, THREADS = 256 };

static enum { ON_PROCESSOR, ON_CUDA, BY_COPIES } place;

static bool is_cuda(void)
{
    return place == ON_CUDA;
}

bool compute_is_immediate(void)
{
    return place == ON_PROCESSOR;
}

const char *compute_name(void)
{
    static const char *const names[] = {"processor", "cuBLAS", "copies"};

    return names[place];
}

enum weft_dtype compute_dtype(void)
{
    return is_cuda() ? WEFT_DTYPE_BF16 : WEFT_DTYPE_F32;
}

/* ---- the vendor's libraries ---- */

typedef void *handle;

static struct {
    int (*module_load)(handle *module, const void *image);
    int (*function_get)(handle *function, handle module, const char *name);
    int (*launch)(handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                  handle stream, void **parameters, void **extra);
    int (*context_get)(handle *out);
    int (*context_set)(handle made);
    int (*primary_retain)(handle *out, int device);
    int (*device_attribute)(int *out, int attribute, int device);
    int (*blas_create)(handle *out);
    int (*blas_set_stream)(handle blas, handle stream);
    int (*gemm)(handle blas, int a_turned, int b_turned, int m, int n, int k, const void *alpha,
                const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                const void *beta, void *c, int c_type, int ldc, int computed_as, int algorithm);
} cuda;

static handle blas, spin;
static unsigned multiprocessors;

/* Sixteen dependent steps per round; the store keeps them alive and never happens. */
static const char spin_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry spin(.param .u64 rounds)\n{\n"
    ".reg .pred %p<3>;\n.reg .f32 %f<4>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [rounds];\n"
    "mov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f3F7FFFFE;\n"
    "setp.eq.u64 %p1, %rd1, 0;\n@%p1 bra DONE;\n"
    "LOOP:\n"
#define STEP "fma.rn.f32 %f1, %f1, %f2, %f2;\n"
    STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP
#undef STEP
    "sub.u64 %rd1, %rd1, 1;\nsetp.ne.u64 %p2, %rd1, 0;\n@%p2 bra LOOP;\n"
    "DONE:\nsetp.eq.f32 %p1, %f1, 0fC0490FDB;\n"
    "mov.u64 %rd2, 8;\n@%p1 st.global.f32 [%rd2], %f1;\nret;\n}\n";

static void check_call(int code, const char *what)
{
    if (code == 0) return;
    fprintf(stderr, "rank %d: %s returned %d\n", weft_rank(context), what, code);
    exit(1);
}

static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    memcpy(function, &found, sizeof found);
    if (found != NULL) return;
    printf("%s not found\n", name);
    exit(SKIPPED);
}

static void *open_blas(void)
{
    const char *names[] = {getenv("CUBLAS_LIB"), "libcublas.so.13", "libcublas.so.12",
                           "libcublas.so"};
    void *library = NULL;

    for (size_t i = 0; i < sizeof names / sizeof names[0] && library == NULL; i++)
        if (names[i] != NULL && names[i][0] != '\0')
            library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) return library;
    printf("libcublas not found: %s\n", dlerror());
    exit(SKIPPED);
}

static void open_cuda(void *library)
{
    handle current = NULL, module = NULL;
    weft_device_info info = {.struct_size = sizeof info};
    int number = 0;

    find(library, "cuModuleLoadData", &cuda.module_load);
    find(library, "cuModuleGetFunction", &cuda.function_get);
    find(library, "cuLaunchKernel", &cuda.launch);
    find(library, "cuCtxGetCurrent", &cuda.context_get);
    find(library, "cuCtxSetCurrent", &cuda.context_set);
    find(library, "cuDevicePrimaryCtxRetain", &cuda.primary_retain);
    find(library, "cuDeviceGetAttribute", &cuda.device_attribute);
    must(weft_device_get(context, &info), "weft_device_get");
    check_call(cuda.context_get(&current), "cuCtxGetCurrent");
    if (current == NULL) {
        check_call(cuda.primary_retain(&current, info.device), "cuDevicePrimaryCtxRetain");
        check_call(cuda.context_set(current), "cuCtxSetCurrent");
    }
    check_call(cuda.device_attribute(&number, 16, info.device), "cuDeviceGetAttribute");
    multiprocessors = (unsigned)number;
    check_call(cuda.module_load(&module, spin_text), "cuModuleLoadData");
    check_call(cuda.function_get(&spin, module, "spin"), "cuModuleGetFunction");
}

void compute_begin(bool with_matmuls)
{
    weft_device_info info = {.struct_size = sizeof info};
    void *library;

    must(weft_device_get(context, &info), "weft_device_get");
    place = (info.features & WEFT_FEATURE_HOST_MEMORY) != 0 ? ON_PROCESSOR : BY_COPIES;
    if (place == ON_PROCESSOR || getenv("WEFT_CUDA_LIB") != NULL) return;
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    open_cuda(library);
    place = ON_CUDA;
    if (!with_matmuls) return;
    library = open_blas();
    find(library, "cublasCreate_v2", &cuda.blas_create);
    find(library, "cublasSetStream_v2", &cuda.blas_set_stream);
    find(library, "cublasGemmEx", &cuda.gemm);
    check_call(cuda.blas_create(&blas), "cublasCreate");
}

/* ---- matmuls ---- */

static void multiply(const float *a, int64_t rows, int64_t depth, const float *b, int64_t columns,
                     float *out)
{
    for (int64_t i = 0; i < rows; i++) {
        float *to = out + i * columns;

        memset(to, 0, (size_t)columns * sizeof *to);
        for (int64_t k = 0; k < depth; k++)
            for (int64_t j = 0; j < columns; j++)
                to[j] += a[i * depth + k] * b[k * columns + j];
    }
}

static void *allocate(int64_t elements)
{
    void *memory = malloc((size_t)elements * sizeof(float) + 1);

    if (memory == NULL) abort();
    return memory;
}

/* Copy in the order of AT, and wait. */
static void copy(const void *source, void *target, int64_t elements, weft_stream *at)
{
    must(weft_memory_copy(context, source, target, (uint64_t)elements * sizeof(float), at), "copy");
    must(weft_context_wait(context, at, WEFT_FOREVER), "weft_context_wait");
}

static void multiply_copies(const void *a, int64_t rows, int64_t depth, const void *b,
                            int64_t columns, void *out, weft_stream *at)
{
    float *left = allocate(rows * depth), *right = allocate(depth * columns),
          *product = allocate(rows * columns);

    copy(a, left, rows * depth, at);
    copy(b, right, depth * columns, at);
    multiply(left, rows, depth, right, columns, product);
    copy(product, out, rows * columns, at);
    free(left);
    free(right);
    free(product);
}

/* The library's matrices are column by column: the transposed product of the transposed factors. */
static void multiply_cuda(const void *a, int64_t rows, int64_t depth, const void *b,
                          int64_t columns, void *out, weft_stream *at)
{
    enum { BF16 = 14, AS_F32 = 68, ANY_ALGORITHM = -1 };
    const float one = 1, zero = 0;
    int m = (int)columns, n = (int)rows, k = (int)depth;

    check_call(cuda.blas_set_stream(blas, weft_stream_native(at)), "cublasSetStream");
    check_call(cuda.gemm(blas, 0, 0, m, n, k, &one, b, BF16, m, a, BF16, k, &zero, out, BF16, m,
                         AS_F32, ANY_ALGORITHM),
               "cublasGemmEx");
}

void compute_matmul(const void *a, int64_t rows, int64_t depth, const void *b, int64_t columns,
                    void *out, weft_stream *at)
{
    if (place == ON_PROCESSOR)
        multiply(a, rows, depth, b, columns, out);
    else if (is_cuda())
        multiply_cuda(a, rows, depth, b, columns, out, at);
    else
        multiply_copies(a, rows, depth, b, columns, out, at);
}

void compute_fill(void *memory, int64_t count, int32_t seed)
{
    uint16_t *halves = allocate(count);
    float *wholes = (void *)halves;

    for (int64_t i = 0; i < count; i++) {
        float value = (float)((i * 7 + i / 13 + seed * 5) % 5 - 2);
        uint32_t bits;

        memcpy(&bits, &value, sizeof bits);
        if (is_cuda())
            halves[i] = (uint16_t)(bits >> 16);
        else
            wholes[i] = value;
    }
    must(weft_memory_copy(context, halves, memory,
                          (uint64_t)count * weft_dtype_bytes(compute_dtype()), stream),
         "weft_memory_copy");
    rank_wait();
    free(halves);
}

/* ---- arithmetic ---- */

static void spin_here(uint64_t rounds)
{
    static volatile float kept;
    float value = 1;

    for (uint64_t i = 0; i < rounds; i++)
        for (int step = 0; step < 16; step++)
            value = value * 0.9999999F + 0.9999999F;
    kept = value;
    (void)kept;
}

void compute_spin(uint64_t rounds, weft_stream *at)
{
    void *parameters[] = {&rounds};
    unsigned blocks = multiprocessors > 1 ? multiprocessors / 2 : 1;

    if (rounds == 0) return;
    if (is_cuda()) {
        check_call(cuda.launch(spin, blocks, 1, 1, THREADS, 1, 1, 0, weft_stream_native(at),
                               parameters, NULL),
                   "cuLaunchKernel");
        return;
    }
    if (place == BY_COPIES) must(weft_context_wait(context, at, WEFT_FOREVER), "weft_context_wait");
    spin_here(rounds);
}
