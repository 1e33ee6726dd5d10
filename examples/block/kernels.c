#include "kernels.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_KEYS = 256 };

/* ---- elements ---- */

/* Element POSITION, counted row-major. */
static float *at(const weft_tensor_local *t, int64_t position)
{
    int64_t offset = 0;

    for (int32_t d = t->shard->dims - 1; d >= 0; d--) {
        offset += position % t->shard->shape[d] * t->strides[d];
        position /= t->shard->shape[d];
    }
    return (float *)t->memory + offset;
}

static int64_t columns(const weft_tensor_local *t)
{
    return t->shard->shape[t->shard->dims - 1];
}

static int64_t rows(const weft_tensor_local *t)
{
    return columns(t) > 0 ? t->shard->elements / columns(t) : 0;
}

static float *cell(const weft_tensor_local *t, int64_t row, int64_t column)
{
    return at(t, row * columns(t) + column);
}

/* ---- products ---- */

/* y = x w, or x w^T if the rows of w are outputs. */
static void multiply(const weft_op_run *run, bool transposed)
{
    const weft_tensor_local *x = &run->inputs[0], *w = &run->inputs[1], *y = &run->outputs[0];

    for (int64_t i = 0; i < rows(y); i++)
        for (int64_t j = 0; j < columns(y); j++) {
            float sum = 0;
            for (int64_t k = 0; k < columns(x); k++)
                sum += *cell(x, i, k) * *(transposed ? cell(w, j, k) : cell(w, k, j));
            *cell(y, i, j) = sum;
        }
}

/* The gradient of a weight: the sum of a^T b over batch and sequence. */
static void multiply_all(const weft_op_run *run)
{
    const weft_tensor_local *a = &run->inputs[0], *b = &run->inputs[1], *c = &run->outputs[0];

    for (int64_t i = 0; i < rows(c); i++)
        for (int64_t j = 0; j < columns(c); j++) {
            float sum = 0;
            for (int64_t k = 0; k < rows(a); k++)
                sum += *cell(a, k, i) * *cell(b, k, j);
            *cell(c, i, j) = sum;
        }
}

/* ---- elements one by one ---- */

static float gelu(float x)
{
    return x / 2 * (1 + erff(x / sqrtf(2)));
}

static float gelu_slope(float x)
{
    return (1 + erff(x / sqrtf(2))) / 2 + x * expf(-x * x / 2) / sqrtf(2 * 3.14159265f);
}

static float combine(const weft_op_run *run, float a, float b)
{
    if (strcmp(run->name, "add") == 0) return a + b;
    if (strcmp(run->name, "gelu") == 0) return gelu(a);
    if (strcmp(run->name, "gelu_bwd") == 0) return a * gelu_slope(b);
    return a; /* reshape */
}

static void map(const weft_op_run *run)
{
    const weft_tensor_local *a = &run->inputs[0], *b = &run->inputs[run->input_count - 1];

    for (int64_t i = 0; i < run->outputs[0].shard->elements; i++)
        *at(&run->outputs[0], i) = combine(run, *at(a, i), *at(b, i));
}

/* ---- the norm: y = w x r, with r = 1 / sqrt(mean of x^2) ---- */

static void norm(const weft_op_run *run)
{
    const weft_tensor_local *x = &run->inputs[0], *w = &run->inputs[1];

    for (int64_t i = 0; i < rows(x); i++) {
        float sum = 0, r;
        for (int64_t j = 0; j < columns(x); j++)
            sum += *cell(x, i, j) * *cell(x, i, j);
        *at(&run->outputs[1], i) = r = 1 / sqrtf(sum / (float)columns(x) + 1e-6f);
        for (int64_t j = 0; j < columns(x); j++)
            *cell(&run->outputs[0], i, j) = *at(w, j) * *cell(x, i, j) * r;
    }
}

static void norm_bwd(const weft_op_run *run)
{
    const weft_tensor_local *g = &run->inputs[0], *x = &run->inputs[1], *w = &run->inputs[3];
    const weft_tensor_local *dx = &run->outputs[0], *dw = &run->outputs[1];

    for (int64_t j = 0; j < columns(x); j++)
        *at(dw, j) = 0;
    for (int64_t i = 0; i < rows(x); i++) {
        float r = *at(&run->inputs[2], i), dot = 0;
        for (int64_t j = 0; j < columns(x); j++) {
            dot += *cell(g, i, j) * *at(w, j) * *cell(x, i, j);
            *at(dw, j) += *cell(g, i, j) * *cell(x, i, j) * r;
        }
        for (int64_t j = 0; j < columns(x); j++)
            *cell(dx, i, j) =
                r * (*cell(g, i, j) * *at(w, j) - *cell(x, i, j) * r * r * dot / (float)columns(x));
    }
}

/* ---- attention; tensors are [batch, head, token, width] ---- */

/* Element WIDTH of TOKEN in HEAD, which counts through batch and heads. */
static float *part(const weft_tensor_local *t, int64_t head, int64_t token, int64_t width)
{
    return cell(t, head * t->shard->shape[2] + token, width);
}

static int64_t heads(const weft_tensor_local *t)
{
    return t->shard->shape[0] * t->shard->shape[1];
}

static float score(const weft_tensor_local *q, const weft_tensor_local *k, int64_t head,
                   int64_t token, int64_t key)
{
    float sum = 0;

    for (int64_t e = 0; e < columns(q); e++)
        sum += *part(q, head, token, e) * *part(k, head, key, e);
    return sum / sqrtf((float)columns(q));
}

/* A token attends to itself and to those before it. */
static void attend(const weft_op_run *run, int64_t head, int64_t token)
{
    const weft_tensor_local *q = &run->inputs[0], *k = &run->inputs[1], *v = &run->inputs[2];
    const weft_tensor_local *o = &run->outputs[0], *l = &run->outputs[1];
    float weights[MOST_KEYS], max, sum;

    max = weights[token] = score(q, k, head, token, token);
    for (int64_t key = 0; key < token; key++)
        max = fmaxf(max, weights[key] = score(q, k, head, token, key));
    sum = weights[token] = expf(weights[token] - max);
    for (int64_t key = 0; key < token; key++)
        sum += weights[key] = expf(weights[key] - max);
    *cell(l, head, token) = max + logf(sum);
    for (int64_t e = 0; e < columns(o); e++) {
        *part(o, head, token, e) = 0;
        for (int64_t key = 0; key <= token; key++)
            *part(o, head, token, e) += weights[key] / sum * *part(v, head, key, e);
    }
}

/* Add to the gradients what TOKEN contributes. */
static void attend_bwd(const weft_op_run *run, int64_t head, int64_t token)
{
    const weft_tensor_local *g = &run->inputs[0], *q = &run->inputs[1], *k = &run->inputs[2];
    const weft_tensor_local *v = &run->inputs[3], *o = &run->inputs[4], *l = &run->inputs[5];
    const weft_tensor_local *dq = &run->outputs[0], *dk = &run->outputs[1], *dv = &run->outputs[2];
    float scale = 1 / sqrtf((float)columns(q)), row = 0;

    for (int64_t e = 0; e < columns(o); e++)
        row += *part(g, head, token, e) * *part(o, head, token, e);
    for (int64_t key = 0; key <= token; key++) {
        float p = expf(score(q, k, head, token, key) - *cell(l, head, token)), ds = -row;

        for (int64_t e = 0; e < columns(v); e++) {
            ds += *part(g, head, token, e) * *part(v, head, key, e);
            *part(dv, head, key, e) += p * *part(g, head, token, e);
        }
        for (int64_t e = 0; e < columns(q); e++) {
            *part(dq, head, token, e) += scale * p * ds * *part(k, head, key, e);
            *part(dk, head, key, e) += scale * p * ds * *part(q, head, token, e);
        }
    }
}

static weft_status attention(const weft_op_run *run, bool backward)
{
    const weft_tensor_local *q = &run->inputs[backward ? 1 : 0];

    if (q->shard->shape[2] > MOST_KEYS)
        return weft_fail(WEFT_ERR_UNSUPPORTED, "more than %d tokens", MOST_KEYS);
    for (uint32_t i = 0; backward && i < run->output_count; i++)
        for (int64_t j = 0; j < run->outputs[i].shard->elements; j++)
            *at(&run->outputs[i], j) = 0;
    for (int64_t head = 0; head < heads(q); head++)
        for (int64_t token = 0; token < q->shard->shape[2]; token++)
            (backward ? attend_bwd : attend)(run, head, token);
    return WEFT_OK;
}

/* ---- by name ---- */

weft_status block_kernel(void *user, const weft_op_run *run)
{
    (void)user;
    if (strcmp(run->name, "sdpa") == 0) return attention(run, false);
    if (strcmp(run->name, "sdpa_bwd") == 0) return attention(run, true);
    if (strcmp(run->name, "linear") == 0)
        multiply(run, true);
    else if (strcmp(run->name, "matmul") == 0)
        multiply(run, false);
    else if (strcmp(run->name, "einsum") == 0)
        multiply_all(run);
    else if (strcmp(run->name, "rms_norm") == 0)
        norm(run);
    else if (strcmp(run->name, "rms_norm_bwd") == 0)
        norm_bwd(run);
    else
        map(run);
    return WEFT_OK;
}
