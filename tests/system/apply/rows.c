#include "phase_kernels.h"

#include <string.h>

void walk_begin(struct walk *w, const weft_op_run *run, const weft_tensor_local *x,
                uint32_t reduced)
{
    weft_index_run some;

    w->x = x;
    w->reduced = reduced;
    w->position = 0;
    w->rows = 1;
    for (int32_t d = 0; d < x->shard->dims; d++) {
        if ((reduced >> d & 1) == 0) w->rows *= x->shard->shape[d];
        for (int64_t at = 0; weft_spec_run(x->spec, run->rank, d, at, &some); at += some.length)
            for (int64_t i = 0; i < some.length; i++)
                w->global[d][at + i] = some.start + i;
    }
}

float *walk_next(struct walk *w)
{
    const weft_shard *shard = w->x->shard;
    int64_t rest = w->position++, offset = 0;

    if (rest >= shard->elements) return NULL;
    for (int32_t d = shard->dims - 1; d >= 0; d--) {
        w->at[d] = rest % shard->shape[d];
        rest /= shard->shape[d];
        offset += w->at[d] * w->x->strides[d];
    }
    w->row = w->index = 0;
    for (int32_t d = 0; d < shard->dims; d++)
        if ((w->reduced >> d & 1) == 0)
            w->row = w->row * shard->shape[d] + w->at[d];
        else
            w->index = w->index * weft_spec_shape(w->x->spec)[d] + w->global[d][w->at[d]];
    return (float *)w->x->memory + offset;
}

static const weft_op_attr *find(const weft_op_run *run, const char *name)
{
    for (uint32_t i = 0; i < run->attr_count; i++)
        if (strcmp(run->attrs[i].name, name) == 0) return &run->attrs[i];
    return NULL;
}

int64_t int_attr(const weft_op_run *run, const char *name, int64_t otherwise)
{
    const weft_op_attr *attr = find(run, name);

    return attr != NULL ? attr->integer : otherwise;
}

uint32_t reduced_dims(const weft_op_run *run, const weft_tensor_local *x)
{
    const weft_op_attr *dims = find(run, "dims"), *dim = find(run, "dim");
    uint32_t set = 0;

    if (strncmp(run->name, "cross_entropy", strlen("cross_entropy")) == 0) return 2;
    if (dim != NULL) return 1u << dim->integer;
    if (dims == NULL || x->shard->dims == 0 || (dims->kind == WEFT_ATTR_LIST && dims->count == 0))
        return (1u << x->shard->dims) - 1;
    if (dims->kind == WEFT_ATTR_INT)
        return 1u << (dims->integer < 0 ? dims->integer + x->shard->dims : dims->integer);
    for (uint32_t i = 0; i < dims->count; i++)
        set |= 1u << (dims->list[i] < 0 ? dims->list[i] + x->shard->dims : dims->list[i]);
    return set;
}
