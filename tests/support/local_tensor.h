/* local_tensor.h - memory of this rank alone as a tensor. */
#ifndef WEFT_TESTS_SUPPORT_LOCAL_TENSOR_H
#define WEFT_TESTS_SUPPORT_LOCAL_TENSOR_H

#include "weft/tensor.h"

/* The tensor of SHAPE on a mesh of this rank alone, in MEMORY.  STRIDES may be NULL.  NULL: it
 * failed, and weft_last_error says why.  The caller releases it. */
static inline weft_tensor *local_tensor(weft_context *ctx, enum weft_dtype dtype, int32_t dims,
                                        const int64_t *shape, const void *memory,
                                        const int64_t *strides)
{
    int32_t size = 1, rank = weft_rank(ctx);
    weft_mesh_options alone = {.struct_size = sizeof alone, .ranks = &rank};
    weft_tensor_options options = {.struct_size = sizeof options, .strides = strides};
    weft_placement replicated = {0};
    weft_tensor *tensor = NULL;
    weft_spec *spec = NULL;
    weft_mesh *lone = NULL;

    if (weft_mesh_create(1, &size, &alone, &lone) == WEFT_OK &&
        weft_spec_create(lone, dtype, dims, shape, &replicated, &spec) == WEFT_OK &&
        weft_tensor_wrap(ctx, spec, (void *)(uintptr_t)memory, &options, &tensor) != WEFT_OK)
        tensor = NULL;
    weft_spec_release(&spec);
    weft_mesh_release(&lone);
    return tensor;
}

/* ROWS rows of WIDTH elements. */
static inline weft_tensor *local_rows(weft_context *ctx, enum weft_dtype dtype, int64_t rows,
                                      int64_t width, const void *memory)
{
    return local_tensor(ctx, dtype, 2, (const int64_t[]){rows, width}, memory, NULL);
}

#endif
