#include "attention.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>

float get(const void *memory, uint32_t dtype, int64_t index)
{
    float value;

    wf_elements_cast(dtype, WEFT_DTYPE_F32,
                     (const char *)memory + (size_t)index * wf_dtype_bytes(dtype), &value, 1);
    return value;
}

void set(void *memory, uint32_t dtype, int64_t index, float value)
{
    wf_elements_cast(WEFT_DTYPE_F32, dtype, &value,
                     (char *)memory + (size_t)index * wf_dtype_bytes(dtype), 1);
}

static float at(const weft_cp_call *c, const weft_cp_local *t, int64_t b, int64_t h, int64_t s,
                int64_t d)
{
    return get(t->memory, c->dtype, b * t->batch + h * t->head + s * t->sequence + d);
}

static void put(const weft_cp_call *c, const weft_cp_local *t, int64_t b, int64_t h, int64_t s,
                int64_t d, float value)
{
    set(t->memory, c->dtype, b * t->batch + h * t->head + s * t->sequence + d, value);
}

static float *lse_at(const weft_cp_local *t, int64_t b, int64_t h, int64_t s)
{
    return (float *)t->memory + b * t->batch + h * t->head + s * t->sequence;
}

/* The score of a query and a key; -infinity if it does not see the key. */
static float score(const weft_cp_call *c, int64_t b, int64_t h, int64_t i, int64_t j)
{
    int64_t key_head = h / (c->heads / c->key_heads);
    float sum = 0;

    if (!cp_problem_sees(c->problem, i, j)) return -INFINITY;
    for (int64_t d = 0; d < c->depth; d++)
        sum += at(c, &c->q, b, h, i, d) * at(c, &c->k, b, key_head, j, d);
    return sum / sqrtf((float)c->depth);
}

static void forward_row(const weft_cp_call *c, int64_t b, int64_t h, int64_t i)
{
    int64_t key_head = h / (c->heads / c->key_heads), keys = c->problem->keys;
    float largest = -INFINITY, sum = 0;

    for (int64_t j = 0; j < keys; j++)
        largest = fmaxf(largest, score(c, b, h, i, j));
    for (int64_t j = 0; j < keys && largest > -INFINITY; j++)
        sum += expf(score(c, b, h, i, j) - largest);
    *lse_at(&c->lse, b, h, i) = largest > -INFINITY ? largest + logf(sum) : -INFINITY;
    for (int64_t d = 0; d < c->depth; d++) {
        float value = 0;
        for (int64_t j = 0; j < keys && largest > -INFINITY; j++)
            value += expf(score(c, b, h, i, j) - largest) / sum * at(c, &c->v, b, key_head, j, d);
        put(c, &c->out, b, h, i, d, value);
    }
}

static void clear(const weft_cp_call *c, const weft_cp_local *t, int64_t heads, int64_t count)
{
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t s = 0; s < count; s++)
                for (int64_t d = 0; d < c->depth; d++)
                    put(c, t, b, h, s, d, 0);
}

/* Sums stay in f32 until a whole row is done: a dtype of 16 bits would round each addition. */
static void add(float *sums, int64_t row, int64_t depth, int64_t d, float value)
{
    sums[row * depth + d] += value;
}

static void backward_row(const weft_cp_call *c, int64_t b, int64_t h, int64_t i, float *d_k,
                         float *d_v)
{
    int64_t key_head = h / (c->heads / c->key_heads);
    float scale = 1 / sqrtf((float)c->depth), own = 0, d_q[64] = {0};

    for (int64_t d = 0; d < c->depth; d++)
        own += at(c, &c->d_out, b, h, i, d) * at(c, &c->out, b, h, i, d);
    for (int64_t j = 0; j < c->problem->keys; j++) {
        float s = score(c, b, h, i, j), p, d_s = -own;

        if (s == -INFINITY) continue;
        p = expf(s - *lse_at(&c->lse, b, h, i));
        for (int64_t d = 0; d < c->depth; d++)
            d_s += at(c, &c->d_out, b, h, i, d) * at(c, &c->v, b, key_head, j, d);
        for (int64_t d = 0; d < c->depth; d++) {
            d_q[d] += scale * p * d_s * at(c, &c->k, b, key_head, j, d);
            add(d_k, j, c->depth, d, scale * p * d_s * at(c, &c->q, b, h, i, d));
            add(d_v, j, c->depth, d, p * at(c, &c->d_out, b, h, i, d));
        }
    }
    for (int64_t d = 0; d < c->depth; d++)
        put(c, &c->d_q, b, h, i, d, d_q[d]);
}

static void backward_heads(const weft_cp_call *c, int64_t b, int64_t key_head, float *sums)
{
    int64_t group = c->heads / c->key_heads, elements = c->problem->keys * c->depth;

    memset(sums, 0, (size_t)(2 * elements) * sizeof *sums);
    for (int64_t h = key_head * group; h < (key_head + 1) * group; h++)
        for (int64_t i = 0; i < c->problem->queries; i++)
            backward_row(c, b, h, i, sums, sums + elements);
    for (int64_t j = 0; j < c->problem->keys; j++)
        for (int64_t d = 0; d < c->depth; d++) {
            put(c, &c->d_k, b, key_head, j, d, sums[j * c->depth + d]);
            put(c, &c->d_v, b, key_head, j, d, sums[elements + j * c->depth + d]);
        }
}

weft_status attend(void *user, const weft_cp_call *c)
{
    (void)user;
    if (c->backward) {
        float *sums = calloc((size_t)(2 * c->problem->keys * c->depth), sizeof *sums);

        if (sums == NULL) return weft_fail(WEFT_ERR_NO_MEMORY, "no memory for sums");
        clear(c, &c->d_q, c->heads, c->problem->queries);
        for (int64_t b = 0; b < c->batch; b++)
            for (int64_t h = 0; h < c->key_heads; h++)
                backward_heads(c, b, h, sums);
        free(sums);
        return WEFT_OK;
    }
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t h = 0; h < c->heads; h++)
            for (int64_t i = 0; i < c->problem->queries; i++)
                forward_row(c, b, h, i);
    return WEFT_OK;
}

/* ---- on one rank ---- */

static double *draw(int64_t count, uint32_t dtype, struct random *r)
{
    double *out = calloc((size_t)count + 1, sizeof *out);

    for (int64_t i = 0; i < count && out != NULL; i++) {
        float value = (float)random_in(r, -1000, 1000) / 500;
        _Alignas(4) char rounded[4];
        set(rounded, dtype, 0, value);
        out[i] = (double)get(rounded, dtype, 0);
    }
    return out;
}

static double *row(const struct reference *r, double *t, int64_t heads, int64_t b, int64_t h,
                   int64_t s)
{
    return t + ((b * heads + h) * r->length + s) * r->depth;
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void refer_forward(struct reference *r, const struct cp_case *c, int64_t b, int64_t h,
                          int64_t i)
{
    int64_t key_head = h / (r->heads / r->key_heads);
    double *q = row(r, r->q, r->heads, b, h, i), *out = row(r, r->out, r->heads, b, h, i);
    double sum = 0, scale = 1 / sqrt((double)r->depth);

    for (int64_t j = 0; j < r->length; j++) {
        double p;
        if (!cp_sees(c, i, j)) continue;
        p = exp(scale * dot(q, row(r, r->k, r->key_heads, b, key_head, j), r->depth));
        sum += p;
        for (int64_t d = 0; d < r->depth; d++)
            out[d] += p * row(r, r->v, r->key_heads, b, key_head, j)[d];
    }
    for (int64_t d = 0; d < r->depth && sum > 0; d++)
        out[d] /= sum;
    r->lse[(b * r->heads + h) * r->length + i] = log(sum);
}

static void refer_backward(struct reference *r, const struct cp_case *c, int64_t b, int64_t h,
                           int64_t i)
{
    int64_t key_head = h / (r->heads / r->key_heads);
    double *q = row(r, r->q, r->heads, b, h, i), *d_out = row(r, r->d_out, r->heads, b, h, i);
    double *d_q = row(r, r->d_q, r->heads, b, h, i), scale = 1 / sqrt((double)r->depth);
    double own = dot(d_out, row(r, r->out, r->heads, b, h, i), r->depth);

    for (int64_t j = 0; j < r->length; j++) {
        double *k = row(r, r->k, r->key_heads, b, key_head, j);
        double *v = row(r, r->v, r->key_heads, b, key_head, j), p, d_s;
        if (!cp_sees(c, i, j)) continue;
        p = exp(scale * dot(q, k, r->depth) - r->lse[(b * r->heads + h) * r->length + i]);
        d_s = scale * p * (dot(d_out, v, r->depth) - own);
        for (int64_t d = 0; d < r->depth; d++) {
            d_q[d] += d_s * k[d];
            row(r, r->d_k, r->key_heads, b, key_head, j)[d] += d_s * q[d];
            row(r, r->d_v, r->key_heads, b, key_head, j)[d] += p * d_out[d];
        }
    }
}

void reference_make(struct reference *out, const struct cp_case *c, const struct cp_sizes *s,
                    struct random *r)
{
    int64_t key_heads = s->key_heads == 0 ? s->heads : s->key_heads;
    int64_t queries = s->batch * s->heads * c->length * s->depth;
    int64_t keys = s->batch * key_heads * c->length * s->depth;

    *out = (struct reference){.batch = s->batch,
                              .heads = s->heads,
                              .key_heads = key_heads,
                              .depth = s->depth,
                              .length = c->length};
    out->q = draw(queries, s->dtype, r);
    out->k = draw(keys, s->dtype, r);
    out->v = draw(keys, s->dtype, r);
    out->d_out = draw(queries, s->dtype, r);
    out->out = calloc((size_t)queries + 1, sizeof(double));
    out->lse = calloc((size_t)queries + 1, sizeof(double));
    out->d_q = calloc((size_t)queries + 1, sizeof(double));
    out->d_k = calloc((size_t)keys + 1, sizeof(double));
    out->d_v = calloc((size_t)keys + 1, sizeof(double));
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t h = 0; h < s->heads; h++)
            for (int64_t i = 0; i < c->length; i++) {
                refer_forward(out, c, b, h, i);
                refer_backward(out, c, b, h, i);
            }
}

void reference_free(struct reference *r)
{
    double *const all[] = {r->q, r->k, r->v, r->d_out, r->out, r->lse, r->d_q, r->d_k, r->d_v};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}
