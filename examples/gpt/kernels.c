/* kernels.c - see kernels.h.  The inside of a layer is computed again in the backward pass, so that
 * only the inputs of layers are kept. */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

static const struct parameter embedding[] = {{"letters", LETTERS, WIDTH, 0.1F, 0, NULL},
                                             {"places", LENGTH, WIDTH, 0.1F, 0, NULL}};
static const struct parameter layer[] = {
    {"norm1", WIDTH, 0, 0, 1, NULL},
    {"shift1", WIDTH, 0, 0, 0, NULL},
    {"qkv", 3 * WIDTH, WIDTH, 0.1F, 0, "B(0;30,30,30)"}, /* some heads of each of the three */
    {"qkv_bias", 3 * WIDTH, 0, 0, 0, "B(0;30,30,30)"},
    {"out", WIDTH, WIDTH, 0.1F, 0, "S(1)"},
    {"out_bias", WIDTH, 0, 0, 0, NULL},
    {"norm2", WIDTH, 0, 0, 1, NULL},
    {"shift2", WIDTH, 0, 0, 0, NULL},
    {"up", HIDDEN, WIDTH, 0.1F, 0, "S(0)"},
    {"up_bias", HIDDEN, 0, 0, 0, "S(0)"},
    {"down", WIDTH, HIDDEN, 0.1F, 0, "S(1)"},
    {"down_bias", WIDTH, 0, 0, 0, NULL}};
static const struct parameter head[] = {{"norm", WIDTH, 0, 0, 1, NULL},
                                        {"shift", WIDTH, 0, 0, 0, NULL},
                                        {"head", LETTERS, WIDTH, 0.1F, 0, NULL}};

const struct parameter *parameters_of(int block, int *count)
{
    *count = block == 0 ? 2 : block == BLOCKS - 1 ? 3 : MOST_PARAMETERS;
    return block == 0 ? embedding : block == BLOCKS - 1 ? head : layer;
}

/* ---- kernels ---- */

void linear(const float *x, const float *w, const float *b, float *y, int rows, int inputs,
            int outputs)
{
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outputs; o++) {
            float sum = b != NULL ? b[o] : 0;

            for (int i = 0; i < inputs; i++)
                sum += x[r * inputs + i] * w[o * inputs + i];
            y[r * outputs + o] = sum;
        }
}

void linear_backward(const float *x, const float *w, const float *dy, float *dx, float *dw,
                     float *db, int rows, int inputs, int outputs)
{
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outputs; o++) {
            float slope = dy[r * outputs + o];

            for (int i = 0; i < inputs; i++) {
                dx[r * inputs + i] += slope * w[o * inputs + i];
                dw[o * inputs + i] += slope * x[r * inputs + i];
            }
            if (db != NULL) db[o] += slope;
        }
}

static void moments(const float *x, float *mean, float *scale)
{
    float sum = 0, square = 0;

    for (int i = 0; i < WIDTH; i++)
        sum += x[i];
    *mean = sum / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        square += (x[i] - *mean) * (x[i] - *mean);
    *scale = 1 / sqrtf(square / WIDTH + 1e-5F);
}

void norm(const float *x, const float *w, const float *b, float *y, int rows)
{
    for (int r = 0; r < rows; r++, x += WIDTH, y += WIDTH) {
        float mean, scale;

        moments(x, &mean, &scale);
        for (int i = 0; i < WIDTH; i++)
            y[i] = (x[i] - mean) * scale * w[i] + b[i];
    }
}

void norm_backward(const float *x, const float *w, const float *dy, float *dx, float *dw, float *db,
                   int rows)
{
    for (int r = 0; r < rows; r++, x += WIDTH, dy += WIDTH, dx += WIDTH) {
        float mean, scale, sum = 0, product = 0;

        moments(x, &mean, &scale);
        for (int i = 0; i < WIDTH; i++) {
            float normal = (x[i] - mean) * scale;

            dw[i] += dy[i] * normal;
            db[i] += dy[i];
            sum += dy[i] * w[i];
            product += dy[i] * w[i] * normal;
        }
        for (int i = 0; i < WIDTH; i++)
            dx[i] += scale * (dy[i] * w[i] - sum / WIDTH - (x[i] - mean) * scale * product / WIDTH);
    }
}

float gelu(float x)
{
    return 0.5F * x * (1 + erff(x * 0.70710678F));
}

float gelu_slope(float x)
{
    return 0.5F * (1 + erff(x * 0.70710678F)) + x * 0.39894228F * expf(-0.5F * x * x);
}

/* The weights of the letters up to T for letter T, of one head of one sequence. */
static void attend(const float *qkv, int t, int at, float *weights)
{
    const float *q = qkv + t * 3 * WIDTH + at;
    float most = -INFINITY, sum = 0;

    for (int s = 0; s <= t; s++) {
        const float *k = qkv + s * 3 * WIDTH + WIDTH + at;

        weights[s] = 0;
        for (int i = 0; i < HEAD; i++)
            weights[s] += q[i] * k[i] / sqrtf(HEAD);
        most = fmaxf(most, weights[s]);
    }
    for (int s = 0; s <= t; s++)
        sum += weights[s] = expf(weights[s] - most);
    for (int s = 0; s <= t; s++)
        weights[s] /= sum;
}

static void attention(const float *qkv, float *y)
{
    for (int t = 0; t < LENGTH; t++)
        for (int at = 0; at < WIDTH; at += HEAD) {
            float weights[LENGTH];

            attend(qkv, t, at, weights);
            for (int i = 0; i < HEAD; i++) {
                y[t * WIDTH + at + i] = 0;
                for (int s = 0; s <= t; s++)
                    y[t * WIDTH + at + i] += weights[s] * qkv[s * 3 * WIDTH + 2 * WIDTH + at + i];
            }
        }
}

static void attention_backward(const float *qkv, const float *dy, float *dqkv)
{
    for (int t = 0; t < LENGTH; t++)
        for (int at = 0; at < WIDTH; at += HEAD) {
            const float *slope = dy + t * WIDTH + at, *q = qkv + t * 3 * WIDTH + at;
            float weights[LENGTH], dw[LENGTH], sum = 0;

            attend(qkv, t, at, weights);
            for (int s = 0; s <= t; s++) {
                dw[s] = 0;
                for (int i = 0; i < HEAD; i++) {
                    dw[s] += slope[i] * qkv[s * 3 * WIDTH + 2 * WIDTH + at + i];
                    dqkv[s * 3 * WIDTH + 2 * WIDTH + at + i] += weights[s] * slope[i];
                }
                sum += weights[s] * dw[s];
            }
            for (int s = 0; s <= t; s++) {
                float score = weights[s] * (dw[s] - sum) / sqrtf(HEAD);

                for (int i = 0; i < HEAD; i++) {
                    dqkv[t * 3 * WIDTH + at + i] += score * qkv[s * 3 * WIDTH + WIDTH + at + i];
                    dqkv[s * 3 * WIDTH + WIDTH + at + i] += score * q[i];
                }
            }
        }
}

/* ---- a layer ---- */

/* The inside of a layer, for all letters of a batch. */
struct inside {
    float *normal1, *qkv, *mixed, *middle, *normal2, *up, *bent;
};

static struct inside cut(float *room, int rows)
{
    struct inside in = {.normal1 = room};

    in.qkv = in.normal1 + rows * WIDTH;
    in.mixed = in.qkv + rows * 3 * WIDTH;
    in.middle = in.mixed + rows * WIDTH;
    in.normal2 = in.middle + rows * WIDTH;
    in.up = in.normal2 + rows * WIDTH;
    in.bent = in.up + rows * HIDDEN;
    return in;
}

enum { INSIDE = 7 * WIDTH + 2 * HIDDEN }; /* floats of a letter */

static void layer_inside(const float *const *p, const float *x, const struct inside *in, int rows)
{
    norm(x, p[NORM1], p[SHIFT1], in->normal1, rows);
    linear(in->normal1, p[QKV], p[QKV_BIAS], in->qkv, rows, WIDTH, 3 * WIDTH);
    for (int r = 0; r < rows; r += LENGTH)
        attention(in->qkv + r * 3 * WIDTH, in->mixed + r * WIDTH);
    linear(in->mixed, p[OUT], p[OUT_BIAS], in->middle, rows, WIDTH, WIDTH);
    for (int i = 0; i < rows * WIDTH; i++)
        in->middle[i] += x[i];
    norm(in->middle, p[NORM2], p[SHIFT2], in->normal2, rows);
    linear(in->normal2, p[UP], p[UP_BIAS], in->up, rows, WIDTH, HIDDEN);
    for (int i = 0; i < rows * HIDDEN; i++)
        in->bent[i] = gelu(in->up[i]);
}

static void layer_forward(const float *const *p, const float *x, float *y, float *room, int rows)
{
    struct inside in = cut(room, rows);

    layer_inside(p, x, &in, rows);
    linear(in.bent, p[DOWN], p[DOWN_BIAS], y, rows, HIDDEN, WIDTH);
    for (int i = 0; i < rows * WIDTH; i++)
        y[i] += in.middle[i];
}

static void layer_backward(const float *const *p, float *const *g, const float *x, float *slope,
                           float *room, int rows)
{
    struct inside in = cut(room, rows), d = cut(room + rows * INSIDE, rows);

    layer_inside(p, x, &in, rows);
    memset(room + rows * INSIDE, 0, (size_t)(rows * INSIDE) * sizeof *room);
    linear_backward(in.bent, p[DOWN], slope, d.bent, g[DOWN], g[DOWN_BIAS], rows, HIDDEN, WIDTH);
    for (int i = 0; i < rows * HIDDEN; i++)
        d.up[i] = d.bent[i] * gelu_slope(in.up[i]);
    linear_backward(in.normal2, p[UP], d.up, d.normal2, g[UP], g[UP_BIAS], rows, WIDTH, HIDDEN);
    norm_backward(in.middle, p[NORM2], d.normal2, slope, g[NORM2], g[SHIFT2], rows);
    linear_backward(in.mixed, p[OUT], slope, d.mixed, g[OUT], g[OUT_BIAS], rows, WIDTH, WIDTH);
    for (int r = 0; r < rows; r += LENGTH)
        attention_backward(in.qkv + r * 3 * WIDTH, d.mixed + r * WIDTH, d.qkv + r * 3 * WIDTH);
    linear_backward(in.normal1, p[QKV], d.qkv, d.normal1, g[QKV], g[QKV_BIAS], rows, WIDTH,
                    3 * WIDTH);
    norm_backward(x, p[NORM1], d.normal1, slope, g[NORM1], g[SHIFT1], rows);
}

/* ---- the embedding and the head ---- */

static void embed(const float *const *p, const struct batch *batch, float *y)
{
    for (int r = 0; r < batch->count * LENGTH; r++)
        for (int i = 0; i < WIDTH; i++)
            y[r * WIDTH + i] = p[0][batch->letters[r] * WIDTH + i] + p[1][r % LENGTH * WIDTH + i];
}

static void embed_backward(float *const *g, const struct batch *batch)
{
    for (int r = 0; r < batch->count * LENGTH; r++)
        for (int i = 0; i < WIDTH; i++) {
            g[0][batch->letters[r] * WIDTH + i] += batch->slope[r * WIDTH + i];
            g[1][r % LENGTH * WIDTH + i] += batch->slope[r * WIDTH + i];
        }
}

float cross_entropy(float *logits, int next, float rows)
{
    float most = -INFINITY, sum = 0, loss;

    for (int i = 0; i < LETTERS; i++)
        most = fmaxf(most, logits[i]);
    for (int i = 0; i < LETTERS; i++)
        sum += expf(logits[i] - most);
    loss = logf(sum) + most - logits[next];
    for (int i = 0; i < LETTERS; i++)
        logits[i] = (expf(logits[i] - most) / sum - (float)(i == next)) / rows;
    return loss;
}

static float head_backward(const float *const *p, float *const *g, struct batch *batch)
{
    int rows = batch->count * LENGTH;
    const float *x = batch->inputs[BLOCKS - 1];
    float *normal = batch->room, *dnormal = normal + rows * WIDTH, *logits = dnormal + rows * WIDTH;
    double loss = 0;

    norm(x, p[0], p[1], normal, rows);
    linear(normal, p[2], NULL, logits, rows, WIDTH, LETTERS);
    for (int r = 0; r < rows; r++)
        loss += (double)cross_entropy(logits + r * LETTERS, batch->next[r], (float)rows);
    for (int i = 0; i < rows * LETTERS; i++)
        logits[i] *= batch->loss_scale;
    memset(dnormal, 0, (size_t)(rows * WIDTH) * sizeof *dnormal);
    memset(batch->slope, 0, (size_t)(rows * WIDTH) * sizeof *dnormal);
    linear_backward(normal, p[2], logits, dnormal, g[2], NULL, rows, WIDTH, LETTERS);
    norm_backward(x, p[0], dnormal, batch->slope, g[0], g[1], rows);
    return (float)(loss / rows);
}

void forward(int block, const float *const *parameters, struct batch *batch)
{
    int rows = batch->count * LENGTH;

    if (block == 0)
        embed(parameters, batch, batch->inputs[1]);
    else if (block < BLOCKS - 1)
        layer_forward(parameters, batch->inputs[block], batch->inputs[block + 1], batch->room,
                      rows);
}

float backward(int block, const float *const *parameters, float *const *gradients,
               struct batch *batch)
{
    if (block == BLOCKS - 1) return head_backward(parameters, gradients, batch);
    if (block == 0)
        embed_backward(gradients, batch);
    else
        layer_backward(parameters, gradients, batch->inputs[block], batch->slope, batch->room,
                       batch->count * LENGTH);
    return 0;
}

void adamw(int64_t count, float *elements, const float *gradient, float *first, float *second,
           int step)
{
    const float rate = 3e-3F, decay = 0.01F;
    float one = 1 - powf(0.9F, (float)step), two = 1 - powf(0.95F, (float)step);

    for (int64_t i = 0; i < count; i++) {
        first[i] = 0.9F * first[i] + 0.1F * gradient[i];
        second[i] = 0.95F * second[i] + 0.05F * gradient[i] * gradient[i];
        elements[i] -=
            rate * (first[i] / one / (sqrtf(second[i] / two) + 1e-8F) + decay * elements[i]);
    }
}

/* ---- data: each letter is followed by one of three others ---- */

static uint32_t mix(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352dU;
    x = (x ^ x >> 15) * 0x846ca68bU;
    return x ^ x >> 16;
}

void batch_fill(struct batch *batch, int64_t first)
{
    int *letters = batch->letters, *next = batch->next;

    for (int s = 0; s < batch->count; s++) {
        uint32_t state = mix((uint32_t)(first + s) + 1);
        int letter = (int)(state % LETTERS);

        for (int t = 0; t < LENGTH; t++) {
            letters[s * LENGTH + t] = letter;
            state = mix(state + 0x9e3779b9U);
            letter = (int)(mix((uint32_t)letter * 3 + state % 3) % LETTERS);
            next[s * LENGTH + t] = letter;
        }
    }
}

struct batch *batch_create(int count)
{
    size_t rows = (size_t)count * LENGTH;
    struct batch *batch = calloc(1, sizeof *batch);

    if (batch == NULL) abort();
    batch->count = count;
    batch->loss_scale = 1;
    batch->letters = calloc(2 * rows, sizeof *batch->letters);
    batch->room = calloc(rows * (2 * INSIDE + (BLOCKS + 1) * WIDTH), sizeof *batch->room);
    if (batch->letters == NULL || batch->room == NULL) abort();
    batch->next = batch->letters + rows;
    for (int i = 0; i < BLOCKS; i++)
        batch->inputs[i] = batch->room + rows * (size_t)(2 * INSIDE + i * WIDTH);
    batch->slope = batch->room + rows * (2 * INSIDE + BLOCKS * WIDTH);
    return batch;
}

void batch_free(struct batch *batch)
{
    free(batch->letters);
    free(batch->room);
    free(batch);
}
