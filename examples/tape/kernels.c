/* kernels.c - the kernels of tape.c: plain loops over shards of two dimensions in host memory. */
#include "kernels.h"

#include <math.h>
#include <string.h>

static float *at(const weft_tensor_local *t, int64_t row, int64_t column)
{
    return (float *)t->memory + row * t->strides[0] + column * t->strides[1];
}

/* A statistic: one number for each row. */
static float *row_of(const weft_tensor_local *t, int64_t row)
{
    return (float *)t->memory + row * t->strides[0];
}

double attr_of(size_t count, const weft_op_attr *attrs, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(attrs[i].name, name) == 0)
            return attrs[i].kind == WEFT_ATTR_REAL ? attrs[i].real : (double)attrs[i].integer;
    return 0;
}

/* TURNED: B has the columns as rows. */
static void multiply(const weft_op_run *run, bool turned)
{
    const weft_tensor_local *a = &run->inputs[0], *b = &run->inputs[1], *c = &run->outputs[0];

    for (int64_t i = 0; i < c->shard->shape[0]; i++)
        for (int64_t j = 0; j < c->shard->shape[1]; j++) {
            float sum = 0;
            for (int64_t k = 0; k < a->shard->shape[1]; k++)
                sum += *at(a, i, k) * (turned ? *at(b, j, k) : *at(b, k, j));
            *at(c, i, j) = sum;
        }
}

/* Each block of a row keeps seven steps between 0 and its largest element. */
static void round_blocks(const weft_op_run *run)
{
    const weft_tensor_local *x = &run->inputs[0], *y = &run->outputs[0];
    int64_t block = (int64_t)attr_of(run->attr_count, run->attrs, "block");

    for (int64_t i = 0; i < y->shard->shape[0]; i++)
        for (int64_t first = 0; first < y->shard->shape[1]; first += block) {
            float most = 0;
            for (int64_t j = first; j < first + block; j++)
                most = fmaxf(most, fabsf(*at(x, i, j)));
            for (int64_t j = first; j < first + block; j++)
                *at(y, i, j) = most > 0 ? roundf(*at(x, i, j) * 7 / most) * most / 7 : 0;
        }
}

/* ---- softmax: whole rows, or in phases with the statistics of whole rows ---- */

static float largest(const weft_tensor_local *x, int64_t i)
{
    float most = -INFINITY;

    for (int64_t j = 0; j < x->shard->shape[1]; j++)
        most = fmaxf(most, *at(x, i, j));
    return most;
}

static float sum_exp(const weft_tensor_local *x, int64_t i, float most)
{
    float sum = 0;

    for (int64_t j = 0; j < x->shard->shape[1]; j++)
        sum += expf(*at(x, i, j) - most);
    return sum;
}

static float dot(const weft_tensor_local *a, const weft_tensor_local *b, int64_t i)
{
    float sum = 0;

    for (int64_t j = 0; j < a->shard->shape[1]; j++)
        sum += *at(a, i, j) * *at(b, i, j);
    return sum;
}

static void softmax(const weft_op_run *run, const char *phase)
{
    const weft_tensor_local *x = &run->inputs[0], *out = &run->outputs[0];

    for (int64_t i = 0; i < x->shard->shape[0]; i++) {
        if (strcmp(phase, ".max") == 0) {
            *row_of(out, i) = largest(x, i);
        } else if (strcmp(phase, ".sum_exp") == 0) {
            *row_of(out, i) = sum_exp(x, i, *row_of(&run->inputs[1], i));
        } else { /* ".finish", or the whole operator */
            float most = *phase != '\0' ? *row_of(&run->inputs[1], i) : largest(x, i);
            float sum = *phase != '\0' ? *row_of(&run->inputs[2], i) : sum_exp(x, i, most);
            for (int64_t j = 0; j < out->shard->shape[1]; j++)
                *at(out, i, j) = expf(*at(x, i, j) - most) / sum;
        }
    }
}

static void softmax_backward(const weft_op_run *run, const char *phase)
{
    const weft_tensor_local *g = &run->inputs[0], *y = &run->inputs[1], *out = &run->outputs[0];

    for (int64_t i = 0; i < g->shard->shape[0]; i++) {
        float sum = *phase == '\0' || strcmp(phase, ".dot") == 0 ? dot(g, y, i)
                                                                 : *row_of(&run->inputs[2], i);
        if (strcmp(phase, ".dot") == 0) {
            *row_of(out, i) = sum;
            continue;
        }
        for (int64_t j = 0; j < out->shard->shape[1]; j++)
            *at(out, i, j) = *at(y, i, j) * (*at(g, i, j) - sum);
    }
}

/* ---- all operators ---- */

/* out = a + scale b; without B, out = a. */
static void add(const weft_op_run *run, const weft_tensor_local *b, float scale)
{
    const weft_tensor_local *a = &run->inputs[0], *out = &run->outputs[0];

    for (int64_t i = 0; i < out->shard->shape[0]; i++)
        for (int64_t j = 0; j < out->shard->shape[1]; j++)
            *at(out, i, j) = *at(a, i, j) + (b != NULL ? scale * *at(b, i, j) : 0);
}

static const char *phase_of(const char *name, const char *operator)
{
    size_t length = strlen(operator);

    if (strncmp(name, operator, length) != 0) return NULL;
    return name[length] == '\0' || name[length] == '.' ? name + length : NULL;
}

weft_status tape_kernel(void *user, const weft_op_run *run)
{
    weft_op_choice **choice = user;
    const char *phase;

    if (choice != NULL && *choice == NULL) *choice = weft_op_choice_retain(run->choice);
    if ((phase = phase_of(run->name, "softmax")) != NULL)
        softmax(run, phase);
    else if ((phase = phase_of(run->name, "softmax_bwd")) != NULL)
        softmax_backward(run, phase);
    else if (strcmp(run->name, "linear") == 0)
        multiply(run, true);
    else if (strcmp(run->name, "mm") == 0)
        multiply(run, false);
    else if (strcmp(run->name, "round_blocks") == 0)
        round_blocks(run);
    else if (strcmp(run->name, "round_blocks_bwd") == 0)
        add(run, NULL, 0); /* as if nothing was rounded */
    else if (strcmp(run->name, "sub") == 0)
        add(run, &run->inputs[1], -1);
    else if (strcmp(run->name, "add_") == 0)
        add(run, &run->inputs[1], (float)attr_of(run->attr_count, run->attrs, "alpha"));
    else
        return weft_fail(WEFT_ERR_UNSUPPORTED, "there is no kernel for %s", run->name);
    return WEFT_OK;
}
