/* phase_kernels.h - plain kernels of the operators of weft_op_apply_phases, phase by phase and
 * whole, on f32 in host memory.  Those of the phases are the reference for engines. */
#ifndef WEFT_TESTS_APPLY_PHASE_KERNELS_H
#define WEFT_TESTS_APPLY_PHASE_KERNELS_H

#include "weft/phases.h"

/* Runs the phase that run->name names, or the whole operator.  USER is not used. */
weft_status phase_kernel(void *user, const weft_op_run *run);

/* ---- rows.c: rows of a shard ---- */

enum { MOST_INDICES = 256 }; /* of a dimension of a shard */

/* The elements of a shard one after the other.  A row has all indices of the reduced dimensions. */
struct walk {
    const weft_tensor_local *x;
    uint32_t reduced;
    int64_t position, rows;
    int64_t at[WEFT_MAX_DIMS];
    int64_t row;   /* number of the element's row among those of the shard */
    int64_t index; /* global index in the row, row-major over the reduced dimensions */
    int64_t global[WEFT_MAX_DIMS][MOST_INDICES];
};

void walk_begin(struct walk *w, const weft_op_run *run, const weft_tensor_local *x,
                uint32_t reduced);
/* The next element; NULL at the end. */
float *walk_next(struct walk *w);
/* The dimensions of X that the attributes `dim` or `dims` name. */
uint32_t reduced_dims(const weft_op_run *run, const weft_tensor_local *x);
int64_t int_attr(const weft_op_run *run, const char *name, int64_t otherwise);

static inline float *floats(const weft_tensor_local *t)
{
    return t->memory;
}

static inline int64_t *integers(const weft_tensor_local *t)
{
    return t->memory;
}

/* ---- pairs.c: the best elements of rows ---- */

weft_status pairs_kernel(const weft_op_run *run);

/* ---- lookup.c ---- */

/* y = x at the indices in one dimension; what this rank does not have counts as 0. */
weft_status gather_kernel(const weft_op_run *run);

/* ---- norms.c ---- */

weft_status norm_kernel(const weft_op_run *run);
weft_status cumsum_kernel(const weft_op_run *run);

/* ---- whole.c ---- */

weft_status whole_kernel(const weft_op_run *run);

#endif
