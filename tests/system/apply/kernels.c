#include "kernels.h"

#include <math.h>
#include <string.h>

/* ---- elements ---- */

/* Element POSITION of LOCAL in row-major order. */
static float *element(const weft_tensor_local *local, int64_t position)
{
    int64_t at = 0;

    for (int32_t d = local->shard->dims - 1; d >= 0; d--) {
        at += position % local->shard->shape[d] * local->strides[d];
        position /= local->shard->shape[d];
    }
    return (float *)local->memory + at;
}

static float *matrix(const weft_tensor_local *local, int64_t row, int64_t column)
{
    return (float *)local->memory + row * local->strides[0] + column * local->strides[1];
}

/* The position in SOURCE, which broadcasts, of POSITION in TARGET. */
static int64_t broadcast(const weft_tensor_local *source, const weft_tensor_local *target,
                         int64_t position)
{
    int64_t at = 0, step = 1;
    int32_t missing = target->shard->dims - source->shard->dims;

    for (int32_t d = target->shard->dims - 1; d >= missing; d--) {
        int64_t size = source->shard->shape[d - missing];
        if (size > 1) at += position % target->shard->shape[d] * step;
        step *= size;
        position /= target->shard->shape[d];
    }
    return at;
}

/* ---- operators ---- */

static void multiply(const weft_op_run *run)
{
    const weft_tensor_local *a = &run->inputs[0], *b = &run->inputs[1], *c = &run->outputs[0];

    for (int64_t i = 0; i < c->shard->shape[0]; i++)
        for (int64_t j = 0; j < c->shard->shape[1]; j++) {
            float sum = 0;
            for (int64_t k = 0; k < a->shard->shape[1]; k++)
                sum += *matrix(a, i, k) * *matrix(b, k, j);
            *matrix(c, i, j) = sum;
        }
}

/* y = x w^T + b */
static void linear(const weft_op_run *run)
{
    const weft_tensor_local *x = &run->inputs[0], *w = &run->inputs[1], *y = &run->outputs[0];
    const weft_tensor_local *b = run->input_count > 2 ? &run->inputs[2] : NULL;

    for (int64_t i = 0; i < y->shard->shape[0]; i++)
        for (int64_t j = 0; j < y->shard->shape[1]; j++) {
            float sum = b != NULL && b->spec != NULL ? *element(b, j) : 0;
            for (int64_t k = 0; k < x->shard->shape[1]; k++)
                sum += *matrix(x, i, k) * *matrix(w, j, k);
            *matrix(y, i, j) = sum;
        }
}

static void add(const weft_op_run *run)
{
    const weft_tensor_local *out = &run->outputs[0];

    for (int64_t i = 0; i < out->shard->elements; i++)
        *element(out, i) = *element(&run->inputs[0], broadcast(&run->inputs[0], out, i)) +
                           *element(&run->inputs[1], broadcast(&run->inputs[1], out, i));
}

static void relu(const weft_op_run *run)
{
    for (int64_t i = 0; i < run->outputs[0].shard->elements; i++) {
        float value = *element(&run->inputs[0], i);
        *element(&run->outputs[0], i) = value > 0 ? value : 0;
    }
}

static void sign(const weft_op_run *run)
{
    for (int64_t i = 0; i < run->outputs[0].shard->elements; i++) {
        float value = *element(&run->inputs[0], i);
        *element(&run->outputs[0], i) = (float)((value > 0) - (value < 0));
    }
}

static int64_t attr(const weft_op_run *run, const char *name)
{
    for (uint32_t i = 0; i < run->attr_count; i++)
        if (strcmp(run->attrs[i].name, name) == 0) return run->attrs[i].integer;
    return -1;
}

/* Over dimension 1 of a matrix. */
static void reduce_rows(const weft_op_run *run, bool largest, float divisor)
{
    const weft_tensor_local *x = &run->inputs[0], *y = &run->outputs[0];

    for (int64_t i = 0; i < y->shard->elements; i++) {
        float value = largest ? -INFINITY : 0;
        for (int64_t j = 0; j < x->shard->shape[1]; j++) {
            float one = *matrix(x, i, j);
            value = !largest ? value + one : one > value ? one : value;
        }
        *element(y, i) = value / divisor;
    }
}

/* w[i] += g for each row g and its index i.  The attribute `v` must be that of the shard. */
static weft_status add_rows(const weft_op_run *run)
{
    const weft_tensor_local *g = &run->inputs[0], *indices = &run->inputs[1], *w = &run->outputs[0];
    weft_index_run rows;

    if (attr(run, "v") != w->shard->shape[0])
        return weft_fail(WEFT_ERR_INTERNAL, "embedding_bwd: v is %lld, but the shard has %lld rows",
                         (long long)attr(run, "v"), (long long)w->shard->shape[0]);
    for (int64_t i = 0; i < w->shard->elements; i++)
        *element(w, i) = 0;
    for (int64_t i = 0; i < indices->shard->elements; i++) {
        int64_t index = ((const int64_t *)indices->memory)[i];
        for (int64_t at = 0; weft_spec_run(w->spec, run->rank, 0, at, &rows); at += rows.length)
            if (index >= rows.start && index < rows.start + rows.length)
                for (int64_t j = 0; j < w->shard->shape[1]; j++)
                    *matrix(w, at + index - rows.start, j) += *matrix(g, i, j);
    }
    return WEFT_OK;
}

/* The attribute `shape` must be that of the shard. */
static weft_status reshape(const weft_op_run *run)
{
    const weft_tensor_local *out = &run->outputs[0];
    const weft_op_attr *shape = &run->attrs[0];

    if (run->attr_count != 1 || strcmp(shape->name, "shape") != 0 ||
        (int32_t)shape->count != out->shard->dims ||
        memcmp(shape->list, out->shard->shape, shape->count * sizeof *shape->list) != 0)
        return weft_fail(WEFT_ERR_INTERNAL, "reshape: the attribute is not the shard's shape");
    for (int64_t i = 0; i < out->shard->elements; i++)
        *element(out, i) = *element(&run->inputs[0], i);
    return WEFT_OK;
}

/* Rows of the table that this rank does not have count as 0. */
static void look_up(const weft_op_run *run)
{
    const weft_tensor_local *table = &run->inputs[0], *indices = &run->inputs[1],
                            *out = &run->outputs[0];
    int64_t width = table->shard->shape[1];
    weft_index_run rows;

    for (int64_t i = 0; i < out->shard->elements; i++)
        *element(out, i) = 0;
    for (int64_t i = 0; i < indices->shard->elements; i++) {
        int64_t index = ((const int64_t *)indices->memory)[i];
        for (int64_t at = 0; weft_spec_run(table->spec, run->rank, 0, at, &rows); at += rows.length)
            if (index >= rows.start && index < rows.start + rows.length)
                for (int64_t j = 0; j < width; j++)
                    *element(out, i * width + j) = *matrix(table, at + index - rows.start, j);
    }
}

/* Matrices one under the other. */
static void concatenate(const weft_op_run *run)
{
    int64_t row = 0;

    for (uint32_t i = 0; i < run->input_count; i++)
        for (int64_t r = 0; r < run->inputs[i].shard->shape[0]; r++, row++)
            for (int64_t j = 0; j < run->inputs[i].shard->shape[1]; j++)
                *matrix(&run->outputs[0], row, j) = *matrix(&run->inputs[i], r, j);
}

/* The columns of a matrix. */
static void split(const weft_op_run *run)
{
    int64_t column = 0;

    for (uint32_t i = 0; i < run->output_count; i++)
        for (int64_t j = 0; j < run->outputs[i].shard->shape[1]; j++, column++)
            for (int64_t r = 0; r < run->outputs[i].shard->shape[0]; r++)
                *matrix(&run->outputs[i], r, j) = *matrix(&run->inputs[0], r, column);
}

weft_status plain_kernel(void *user, const weft_op_run *run)
{
    (void)user;
    if (strcmp(run->name, "mm") == 0)
        multiply(run);
    else if (strcmp(run->name, "linear") == 0)
        linear(run);
    else if (strncmp(run->name, "add", 3) == 0)
        add(run);
    else if (strncmp(run->name, "relu", 4) == 0)
        relu(run);
    else if (strcmp(run->name, "sign") == 0)
        sign(run);
    else if (strcmp(run->name, "sum") == 0 || strcmp(run->name, "amax") == 0)
        reduce_rows(run, run->name[0] == 'a', 1);
    else if (strcmp(run->name, "mean") == 0)
        reduce_rows(run, false, (float)run->count);
    else if (strcmp(run->name, "embedding_bwd") == 0)
        return add_rows(run);
    else if (strcmp(run->name, "reshape") == 0)
        return reshape(run);
    else if (strcmp(run->name, "embedding") == 0)
        look_up(run);
    else if (strcmp(run->name, "cat") == 0)
        concatenate(run);
    else if (strcmp(run->name, "split") == 0)
        split(run);
    else
        return weft_fail(WEFT_ERR_UNSUPPORTED, "no kernel for %s", run->name);
    return WEFT_OK;
}

bool kernel_is_told_writes(const weft_op_run *run)
{
    bool right = true;

    for (uint32_t i = 0; i < run->output_count; i++)
        right = right && run->outputs[i].is_written;
    for (uint32_t k = 0; k < run->input_count; k++) {
        bool is_written = false;
        for (uint32_t i = 0; i < run->output_count; i++)
            is_written = is_written || weft_op_choice_memory(run->choice, i) == k;
        right = right && (run->inputs[k].spec == NULL || run->inputs[k].is_written == is_written);
    }
    return right;
}
