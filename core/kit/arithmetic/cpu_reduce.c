/* cpu_reduce.c - reductions, composed of kernels. */
#include "cpu_reduce.h"

#include <float.h>
#include <string.h>

#define BLOCK_BYTES 8192 /* partial results; fits in the L1 cache */
/* The sum of up to FEW - 1 parts of a mean is finite.  Likewise the sum of parts of a mean of small
 * floats is within their format. */
#define FEW 1024

static enum cpu_binary binary_of(uint32_t reduction)
{
    switch (reduction) {
    case WEFT_REDUCE_PROD:
        return CPU_MULTIPLY;
    case WEFT_REDUCE_MIN:
        return CPU_MIN;
    case WEFT_REDUCE_MAX:
        return CPU_MAX;
    case WEFT_REDUCE_BAND:
        return CPU_AND;
    case WEFT_REDUCE_BOR:
        return CPU_OR;
    case WEFT_REDUCE_BXOR:
        return CPU_XOR;
    default:
        return CPU_ADD;
    }
}

/* One block.  AT is its first element.  COUNT elements fit in BLOCK_BYTES. */
struct block {
    const struct cpu_reducer *reducer;
    const struct cpu_arithmetic *arithmetic; /* of the type in which sums are computed */
    const struct cpu_arithmetic *small;      /* for widening and narrowing, or NULL */
    const void *const *sources;
    size_t element, at, count;
    void *wide;   /* a widened source */
    bool exceeds; /* the sum of the parts of a mean may be infinite */
    void (*limit)(float *data, float largest, size_t count);
};

/* Source K, widened into ROOM if necessary. */
static const void *source_of(const struct block *block, uint32_t k, void *room)
{
    const void *source = (const unsigned char *)block->sources[k] + block->at * block->element;

    if (block->small == NULL) return source;
    block->small->widen(room, source, block->count);
    return room;
}

/* Reduce sources 0 .. size-1 to TARGET.  Intermediate results are in PARTIAL. */
static void combine(const struct block *block, void *partial, void *target)
{
    uint32_t size = block->reducer->size;
    cpu_binary_kernel *binary = block->arithmetic->binary[binary_of(block->reducer->reduction)];
    const void *so_far = source_of(block, 0, partial);

    for (uint32_t k = 1; k < size; k++) {
        void *next = k + 1 < size ? partial : target;

        binary(next, so_far, source_of(block, k, block->wide), block->count);
        so_far = next;
    }
}

static void combine_scaled(const struct block *block, void *partial, void *target)
{
    const void *const *scales = block->reducer->scales;
    uint32_t size = block->reducer->size;
    float wide_scale;

    for (uint32_t k = 0; k < size; k++) {
        void *next = k + 1 < size ? partial : target;
        const void *scale = scales[k];

        if (block->small != NULL) {
            block->small->widen(&wide_scale, scale, 1);
            scale = &wide_scale;
        }
        if (k == 0)
            block->arithmetic->scale(next, source_of(block, k, block->wide), scale, block->count);
        else
            block->arithmetic->scale_add(next, partial, source_of(block, k, block->wide), scale,
                                         block->count);
    }
}

static uint32_t parts_of(const struct cpu_reducer *reducer)
{
    return reducer->parts != 0 ? reducer->parts : reducer->size;
}

static bool exceeds_f32(uint32_t parts, uint32_t size)
{
    float part = FLT_MAX / (float)parts, sum = part;

    for (uint32_t k = 1; k < size; k++)
        sum += part;
    return sum > FLT_MAX;
}

static bool exceeds_f64(uint32_t parts, uint32_t size)
{
    double part = DBL_MAX / parts, sum = part;

    for (uint32_t k = 1; k < size; k++)
        sum += part;
    return sum > DBL_MAX;
}

/* True if the sum of the parts of a finite mean may be infinite.  Rounding is monotonic, so no such
 * sum exceeds the sum of the parts of the largest number.  Small floats are added in f32. */
static bool may_exceed(const struct cpu_reducer *reducer)
{
    uint32_t size = reducer->size, parts = parts_of(reducer);

    if (reducer->divided) return true;
    if (parts < size) return false; /* a sum of means */
    if (size > FEW) return true;
    switch (reducer->dtype) {
    case WEFT_DTYPE_F32:
    case WEFT_DTYPE_C64:
        return exceeds_f32(parts, size);
    case WEFT_DTYPE_F64:
    case WEFT_DTYPE_C128:
        return exceeds_f64(parts, size);
    default:
        return false;
    }
}

/* Floats are divided before they are added, so that a finite mean does not overflow. */
static void combine_divided(const struct block *block, void *partial, void *target)
{
    uint32_t size = block->reducer->size;
    uint32_t parts = block->reducer->divided ? 1 : parts_of(block->reducer), k = 0;

    if (size > 1 && !block->exceeds) { /* the first two in one pass */
        block->arithmetic->divide_pair(size > 2 ? partial : target, source_of(block, 0, partial),
                                       source_of(block, 1, block->wide), parts, block->count);
        k = 2;
    }
    for (; k < size; k++) {
        void *next = k + 1 < size ? partial : target;
        const void *source = source_of(block, k, block->wide);

        if (k == 0)
            block->arithmetic->divide(next, source, parts, block->count);
        else if (block->exceeds && (k + 1 == size || size > FEW || block->reducer->divided))
            block->arithmetic->mean_add(next, partial, source, parts, block->count);
        else
            block->arithmetic->divide_add(next, partial, source, parts, block->count);
    }
}

/* Integers are summed exactly and then divided. */
static void average_integers(const struct block *block, void *partial, void *target)
{
    const struct cpu_averaging *average = &block->arithmetic->average;
    uint32_t size = block->reducer->size, parts = parts_of(block->reducer);
    bool near = !block->reducer->wide && average->sum_near != NULL && size <= average->near_most;
    void *sums = block->reducer->wide ? target : partial;

    memset(sums, 0, block->count * (near ? average->near_bytes : sizeof(cpu_wide)));
    for (uint32_t k = 0; k < size; k++)
        (near ? average->sum_near : average->sum)(sums, source_of(block, k, NULL), block->count);
    if (near)
        average->divide_near(target, sums, parts, parts >= size, block->count);
    else if (!block->reducer->wide)
        average->divide(target, sums, parts, block->count);
}

static void reduce_block(const struct block *block, unsigned char *target)
{
    _Alignas(64) unsigned char partial[BLOCK_BYTES];
    const struct cpu_arithmetic *small = block->small;
    uint32_t reduction = block->reducer->reduction;
    void *result = small == NULL ? target : partial;

    if (reduction == WEFT_REDUCE_AVG && block->arithmetic->average.sum != NULL)
        average_integers(block, partial, target);
    else if (reduction == WEFT_REDUCE_AVG)
        combine_divided(block, partial, result);
    else if (reduction == WEFT_REDUCE_PREMUL_SUM)
        combine_scaled(block, partial, result);
    else if (block->reducer->size > 1 || small != NULL)
        combine(block, partial, result);
    else
        memmove(result, source_of(block, 0, partial), block->count * block->element);
    if (small == NULL) return;
    if (block->exceeds && small->largest > 0)
        block->limit((float *)partial, small->largest, block->count);
    (small->narrow_reduced != NULL ? small->narrow_reduced : small->narrow)(target, partial,
                                                                            block->count);
}

void cpu_reduce(const struct cpu_kernels *kernels, const struct cpu_reducer *reducer,
                const void *const *sources, void *target, size_t count)
{
    _Alignas(64) unsigned char wide[BLOCK_BYTES];
    const struct cpu_arithmetic *own = &kernels->of[reducer->dtype];
    bool small = own->widen != NULL;
    struct block block = {.reducer = reducer,
                          .arithmetic = small ? &kernels->of[WEFT_DTYPE_F32] : own,
                          .small = small ? own : NULL,
                          .sources = sources,
                          .element = kit_dtype_bytes(reducer->dtype),
                          .wide = wide,
                          .limit = kernels->limit};
    size_t most = BLOCK_BYTES / (small ? sizeof(float) : block.element);
    size_t result = reducer->wide ? sizeof(cpu_wide) : block.element;

    if (reducer->reduction == WEFT_REDUCE_AVG && own->average.sum != NULL)
        most = BLOCK_BYTES / sizeof(cpu_wide);
    else if (reducer->reduction == WEFT_REDUCE_AVG)
        block.exceeds = may_exceed(reducer);
    for (; block.at < count; block.at += block.count) {
        block.count = count - block.at < most ? count - block.at : most;
        reduce_block(&block, (unsigned char *)target + block.at * result);
    }
}

void cpu_divide_wide(const struct cpu_kernels *kernels, uint32_t dtype, uint32_t parts,
                     const void *sums, void *target, size_t count)
{
    kernels->of[dtype].average.divide(target, sums, parts, count);
}

void cpu_scale(const struct cpu_kernels *kernels, uint32_t dtype, const void *scale, void *data,
               size_t count)
{
    const void *source = data;
    struct cpu_reducer reducer = {
        .dtype = dtype, .reduction = WEFT_REDUCE_PREMUL_SUM, .size = 1, .scales = &scale};

    cpu_reduce(kernels, &reducer, &source, data, count);
}
