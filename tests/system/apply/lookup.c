#include "phase_kernels.h"

/* The position of global index INDEX in dimension DIM of the shard; -1: the rank has it not. */
static int64_t position_of(const weft_op_run *run, const weft_tensor_local *x, int32_t dim,
                           int64_t index)
{
    weft_index_run some;

    for (int64_t at = 0; weft_spec_run(x->spec, run->rank, dim, at, &some); at += some.length)
        if (index >= some.start && index < some.start + some.length) return at + index - some.start;
    return -1;
}

weft_status gather_kernel(const weft_op_run *run)
{
    const weft_tensor_local *x = &run->inputs[0], *indices = &run->inputs[1], *y = &run->outputs[0];
    int32_t dim = (int32_t)int_attr(run, "dim", 0), dims = y->shard->dims;

    for (int64_t i = 0; i < y->shard->elements; i++) {
        int64_t at[WEFT_MAX_DIMS], rest = i, from = 0, where = 0, index;

        for (int32_t d = dims - 1; d >= 0; d--) {
            at[d] = rest % y->shard->shape[d];
            rest /= y->shard->shape[d];
            where += at[d] * indices->strides[d];
        }
        index = integers(indices)[where];
        if (index < 0 || index >= weft_spec_shape(x->spec)[dim])
            return weft_fail(WEFT_ERR_INVALID, "index %lld is out of range", (long long)index);
        at[dim] = position_of(run, x, dim, index);
        for (int32_t d = 0; d < dims; d++)
            from += at[d] * x->strides[d];
        floats(y)[i] = at[dim] < 0 ? 0 : floats(x)[from];
    }
    return WEFT_OK;
}
