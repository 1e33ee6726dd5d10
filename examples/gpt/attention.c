/* attention.c - attention of some queries and some keys, in f32, for context parallel. */
#include "layers.h"

#include <math.h>
#include <string.h>

static float *row(const weft_cp_local *t, int64_t batch, int64_t head, int64_t place)
{
    return (float *)t->memory + batch * t->batch + head * t->head + place * t->sequence;
}

static float dot(const float *a, const float *b, int64_t count)
{
    float sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Keys that query I of the problem sees: those from 0 on. */
static int64_t seen(const weft_cp_problem *problem, int64_t i)
{
    int64_t count = problem->mask == WEFT_CP_CAUSAL ? i + problem->diagonal + 1 : problem->keys;

    return count < 0 ? 0 : count < problem->keys ? count : problem->keys;
}

static void forward_query(const weft_cp_call *c, int64_t b, int64_t h, int64_t i)
{
    const float *q = row(&c->q, b, h, i);
    float *out = row(&c->out, b, h, i), weights[MOST_LENGTH], most = -INFINITY, sum = 0;
    int64_t keys = seen(c->problem, i);

    memset(out, 0, (size_t)c->depth * sizeof *out);
    for (int64_t j = 0; j < keys; j++) {
        weights[j] = dot(q, row(&c->k, b, h, j), c->depth) / sqrtf((float)c->depth);
        most = fmaxf(most, weights[j]);
    }
    for (int64_t j = 0; j < keys; j++)
        sum += weights[j] = expf(weights[j] - most);
    for (int64_t j = 0; j < keys; j++)
        for (int64_t d = 0; d < c->depth; d++)
            out[d] += weights[j] / sum * row(&c->v, b, h, j)[d];
    *row(&c->lse, b, h, i) = keys > 0 ? most + logf(sum) : -INFINITY;
}

static void backward_query(const weft_cp_call *c, int64_t b, int64_t h, int64_t i)
{
    const float *q = row(&c->q, b, h, i), *slope = row(&c->d_out, b, h, i);
    float *d_q = row(&c->d_q, b, h, i), scale = 1 / sqrtf((float)c->depth);
    float own = dot(slope, row(&c->out, b, h, i), c->depth);

    memset(d_q, 0, (size_t)c->depth * sizeof *d_q);
    for (int64_t j = 0; j < seen(c->problem, i); j++) {
        const float *k = row(&c->k, b, h, j), *v = row(&c->v, b, h, j);
        float *d_k = row(&c->d_k, b, h, j), *d_v = row(&c->d_v, b, h, j);
        float weight = expf(dot(q, k, c->depth) * scale - *row(&c->lse, b, h, i));
        float score = scale * weight * (dot(slope, v, c->depth) - own);

        for (int64_t d = 0; d < c->depth; d++) {
            d_q[d] += score * k[d];
            d_k[d] += score * q[d];
            d_v[d] += weight * slope[d];
        }
    }
}

static void backward_head(const weft_cp_call *c, int64_t b, int64_t h)
{
    for (int64_t j = 0; j < c->problem->keys; j++) {
        memset(row(&c->d_k, b, h, j), 0, (size_t)c->depth * sizeof(float));
        memset(row(&c->d_v, b, h, j), 0, (size_t)c->depth * sizeof(float));
    }
    for (int64_t i = 0; i < c->problem->queries; i++)
        backward_query(c, b, h, i);
}

weft_status attend_problem(void *user, const weft_cp_call *c)
{
    (void)user;
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t h = 0; h < c->heads; h++) {
            if (c->backward) backward_head(c, b, h);
            for (int64_t i = 0; i < c->problem->queries && !c->backward; i++)
                forward_query(c, b, h, i);
        }
    return WEFT_OK;
}
