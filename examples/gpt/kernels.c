/* kernels.c - see kernels.h.  The inside of a layer is computed again in the backward pass, so that
 * only the inputs of layers are kept. */
#include "kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

struct sizes sizes;

static struct parameter embedding[2], layer[MOST_PARAMETERS], head[3];
static char thirds[64]; /* some heads of each of queries, keys and values */

static void set_parameters(void)
{
    const int width = sizes.width, hidden = sizes.hidden, letters = sizes.letters;
    const float deviation = 0.1F * sqrtf(30.0F / (float)width);
    const struct parameter of_embedding[] = {{"letters", letters, width, deviation, 0, NULL},
                                             {"places", sizes.length, width, deviation, 0, NULL}};
    const struct parameter of_layer[] = {{"norm1", width, 0, 0, 1, NULL},
                                         {"shift1", width, 0, 0, 0, NULL},
                                         {"qkv", 3 * width, width, deviation, 0, thirds},
                                         {"qkv_bias", 3 * width, 0, 0, 0, thirds},
                                         {"out", width, width, deviation, 0, "S(1)"},
                                         {"out_bias", width, 0, 0, 0, NULL},
                                         {"norm2", width, 0, 0, 1, NULL},
                                         {"shift2", width, 0, 0, 0, NULL},
                                         {"up", hidden, width, deviation, 0, "S(0)"},
                                         {"up_bias", hidden, 0, 0, 0, "S(0)"},
                                         {"down", width, hidden, deviation, 0, "S(1)"},
                                         {"down_bias", width, 0, 0, 0, NULL}};
    const struct parameter of_head[] = {{"norm", width, 0, 0, 1, NULL},
                                        {"shift", width, 0, 0, 0, NULL},
                                        {"head", letters, width, deviation, 0, NULL}};

    snprintf(thirds, sizeof thirds, "B(0;%d,%d,%d)", width, width, width);
    memcpy(embedding, of_embedding, sizeof embedding);
    memcpy(layer, of_layer, sizeof layer);
    memcpy(head, of_head, sizeof head);
}

/* Floats of a letter: of the inside of a layer, and in the memory for the inside of a block. */
static int inside_floats(void)
{
    return 7 * sizes.width + 2 * sizes.hidden;
}

static int room_floats(void)
{
    int layer_floats = 2 * inside_floats(), head_floats = 2 * sizes.width + sizes.letters;

    return layer_floats > head_floats ? layer_floats : head_floats;
}

const char *sizes_set(struct sizes given)
{
    sizes = given;
    sizes.blocks = given.layers + 2; /* the embedding, the layers, the head */
    sizes.head = given.width / given.heads;
    sizes.hidden = 4 * given.width;
    if (given.width % given.heads != 0) return "--heads must divide --width";
    if (given.layers > MOST_LAYERS) return "there are at most 96 layers";
    if (given.length > MOST_LENGTH) return "a sequence has at most 8192 letters";
    if (given.width > 1 << 16 || given.letters > 1 << 24 ||
        (int64_t)given.sequences * given.length * room_floats() > INT32_MAX)
        return "the activations of a step exceed 2^31 floats; use a smaller --batch";
    set_parameters();
    return NULL;
}

const struct parameter *parameters_of(int block, int *count)
{
    *count = block == 0 ? 2 : block == sizes.blocks - 1 ? 3 : MOST_PARAMETERS;
    return block == 0 ? embedding : block == sizes.blocks - 1 ? head : layer;
}

/* ---- kernels ---- */

/* Eight sums at once, which compilers turn into vectors. */
static float dot(const float *restrict a, const float *restrict b, int count)
{
    float sums[8] = {0}, sum = 0;
    int i = 0;

    for (; i + 8 <= count; i += 8)
        for (int j = 0; j < 8; j++)
            sums[j] += a[i + j] * b[i + j];
    for (; i < count; i++)
        sum += a[i] * b[i];
    for (int j = 0; j < 8; j++)
        sum += sums[j];
    return sum;
}

/* The loop over rows is inside, so that a row of W is read from memory once. */
void linear(const float *x, const float *w, const float *b, float *y, int rows, int inputs,
            int outputs)
{
    for (int o = 0; o < outputs; o++)
        for (int r = 0; r < rows; r++)
            y[r * outputs + o] =
                (b != NULL ? b[o] : 0) + dot(x + r * inputs, w + o * inputs, inputs);
}

/* TO += FACTOR FROM. */
static void add(float factor, const float *restrict from, float *restrict to, int count)
{
    for (int i = 0; i < count; i++)
        to[i] += factor * from[i];
}

void linear_backward(const float *x, const float *w, const float *dy, float *dx, float *dw,
                     float *db, int rows, int inputs, int outputs)
{
    for (int o = 0; o < outputs; o++)
        for (int r = 0; r < rows; r++) {
            float slope = dy[r * outputs + o];

            add(slope, w + o * inputs, dx + r * inputs, inputs);
            add(slope, x + r * inputs, dw + o * inputs, inputs);
            if (db != NULL) db[o] += slope;
        }
}

static void moments(const float *x, float *mean, float *scale)
{
    float sum = 0, square = 0;

    for (int i = 0; i < sizes.width; i++)
        sum += x[i];
    *mean = sum / (float)sizes.width;
    for (int i = 0; i < sizes.width; i++)
        square += (x[i] - *mean) * (x[i] - *mean);
    *scale = 1 / sqrtf(square / (float)sizes.width + 1e-5F);
}

void norm(const float *x, const float *w, const float *b, float *y, int rows)
{
    for (int r = 0; r < rows; r++, x += sizes.width, y += sizes.width) {
        float mean, scale;

        moments(x, &mean, &scale);
        for (int i = 0; i < sizes.width; i++)
            y[i] = (x[i] - mean) * scale * w[i] + b[i];
    }
}

void norm_backward(const float *x, const float *w, const float *dy, float *dx, float *dw, float *db,
                   int rows)
{
    for (int r = 0; r < rows; r++, x += sizes.width, dy += sizes.width, dx += sizes.width) {
        float mean, scale, sum = 0, product = 0, width = (float)sizes.width;

        moments(x, &mean, &scale);
        for (int i = 0; i < sizes.width; i++) {
            float normal = (x[i] - mean) * scale;

            dw[i] += dy[i] * normal;
            db[i] += dy[i];
            sum += dy[i] * w[i];
            product += dy[i] * w[i] * normal;
        }
        for (int i = 0; i < sizes.width; i++)
            dx[i] += scale * (dy[i] * w[i] - sum / width - (x[i] - mean) * scale * product / width);
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
    const float *q = qkv + t * 3 * sizes.width + at;
    float most = -INFINITY, sum = 0;

    for (int s = 0; s <= t; s++) {
        const float *k = qkv + s * 3 * sizes.width + sizes.width + at;

        weights[s] = 0;
        for (int i = 0; i < sizes.head; i++)
            weights[s] += q[i] * k[i] / sqrtf((float)sizes.head);
        most = fmaxf(most, weights[s]);
    }
    for (int s = 0; s <= t; s++)
        sum += weights[s] = expf(weights[s] - most);
    for (int s = 0; s <= t; s++)
        weights[s] /= sum;
}

static void attention(const float *qkv, float *y)
{
    for (int t = 0; t < sizes.length; t++)
        for (int at = 0; at < sizes.width; at += sizes.head) {
            float weights[MOST_LENGTH];

            attend(qkv, t, at, weights);
            for (int i = 0; i < sizes.head; i++) {
                y[t * sizes.width + at + i] = 0;
                for (int s = 0; s <= t; s++)
                    y[t * sizes.width + at + i] +=
                        weights[s] * qkv[s * 3 * sizes.width + 2 * sizes.width + at + i];
            }
        }
}

static void attention_backward(const float *qkv, const float *dy, float *dqkv)
{
    for (int t = 0; t < sizes.length; t++)
        for (int at = 0; at < sizes.width; at += sizes.head) {
            const float *slope = dy + t * sizes.width + at, *q = qkv + t * 3 * sizes.width + at;
            float weights[MOST_LENGTH], dw[MOST_LENGTH], sum = 0;

            attend(qkv, t, at, weights);
            for (int s = 0; s <= t; s++) {
                dw[s] = 0;
                for (int i = 0; i < sizes.head; i++) {
                    dw[s] += slope[i] * qkv[s * 3 * sizes.width + 2 * sizes.width + at + i];
                    dqkv[s * 3 * sizes.width + 2 * sizes.width + at + i] += weights[s] * slope[i];
                }
                sum += weights[s] * dw[s];
            }
            for (int s = 0; s <= t; s++) {
                float score = weights[s] * (dw[s] - sum) / sqrtf((float)sizes.head);

                for (int i = 0; i < sizes.head; i++) {
                    dqkv[t * 3 * sizes.width + at + i] +=
                        score * qkv[s * 3 * sizes.width + sizes.width + at + i];
                    dqkv[s * 3 * sizes.width + sizes.width + at + i] += score * q[i];
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

    in.qkv = in.normal1 + rows * sizes.width;
    in.mixed = in.qkv + rows * 3 * sizes.width;
    in.middle = in.mixed + rows * sizes.width;
    in.normal2 = in.middle + rows * sizes.width;
    in.up = in.normal2 + rows * sizes.width;
    in.bent = in.up + rows * sizes.hidden;
    return in;
}

static void layer_inside(const float *const *p, const float *x, const struct inside *in, int rows)
{
    norm(x, p[NORM1], p[SHIFT1], in->normal1, rows);
    linear(in->normal1, p[QKV], p[QKV_BIAS], in->qkv, rows, sizes.width, 3 * sizes.width);
    for (int r = 0; r < rows; r += sizes.length)
        attention(in->qkv + r * 3 * sizes.width, in->mixed + r * sizes.width);
    linear(in->mixed, p[OUT], p[OUT_BIAS], in->middle, rows, sizes.width, sizes.width);
    for (int i = 0; i < rows * sizes.width; i++)
        in->middle[i] += x[i];
    norm(in->middle, p[NORM2], p[SHIFT2], in->normal2, rows);
    linear(in->normal2, p[UP], p[UP_BIAS], in->up, rows, sizes.width, sizes.hidden);
    for (int i = 0; i < rows * sizes.hidden; i++)
        in->bent[i] = gelu(in->up[i]);
}

static void layer_forward(const float *const *p, const float *x, float *y, float *room, int rows)
{
    struct inside in = cut(room, rows);

    layer_inside(p, x, &in, rows);
    linear(in.bent, p[DOWN], p[DOWN_BIAS], y, rows, sizes.hidden, sizes.width);
    for (int i = 0; i < rows * sizes.width; i++)
        y[i] += in.middle[i];
}

static void layer_backward(const float *const *p, float *const *g, const float *x, float *slope,
                           float *room, int rows)
{
    int floats = rows * inside_floats();
    struct inside in = cut(room, rows), d = cut(room + floats, rows);

    layer_inside(p, x, &in, rows);
    memset(room + floats, 0, (size_t)floats * sizeof *room);
    linear_backward(in.bent, p[DOWN], slope, d.bent, g[DOWN], g[DOWN_BIAS], rows, sizes.hidden,
                    sizes.width);
    for (int i = 0; i < rows * sizes.hidden; i++)
        d.up[i] = d.bent[i] * gelu_slope(in.up[i]);
    linear_backward(in.normal2, p[UP], d.up, d.normal2, g[UP], g[UP_BIAS], rows, sizes.width,
                    sizes.hidden);
    norm_backward(in.middle, p[NORM2], d.normal2, slope, g[NORM2], g[SHIFT2], rows);
    linear_backward(in.mixed, p[OUT], slope, d.mixed, g[OUT], g[OUT_BIAS], rows, sizes.width,
                    sizes.width);
    for (int r = 0; r < rows; r += sizes.length)
        attention_backward(in.qkv + r * 3 * sizes.width, d.mixed + r * sizes.width,
                           d.qkv + r * 3 * sizes.width);
    linear_backward(in.normal1, p[QKV], d.qkv, d.normal1, g[QKV], g[QKV_BIAS], rows, sizes.width,
                    3 * sizes.width);
    norm_backward(x, p[NORM1], d.normal1, slope, g[NORM1], g[SHIFT1], rows);
}

/* ---- the embedding and the head ---- */

static void embed(const float *const *p, const struct batch *batch, float *y)
{
    for (int r = 0; r < batch->count * sizes.length; r++)
        for (int i = 0; i < sizes.width; i++)
            y[r * sizes.width + i] = p[0][batch->letters[r] * sizes.width + i] +
                                     p[1][r % sizes.length * sizes.width + i];
}

static void embed_backward(float *const *g, const struct batch *batch)
{
    for (int r = 0; r < batch->count * sizes.length; r++)
        for (int i = 0; i < sizes.width; i++) {
            g[0][batch->letters[r] * sizes.width + i] += batch->slope[r * sizes.width + i];
            g[1][r % sizes.length * sizes.width + i] += batch->slope[r * sizes.width + i];
        }
}

float cross_entropy(float *logits, int next, float rows)
{
    float most = logits[0], sum, loss;

    for (int i = 1; i < sizes.letters; i++)
        most = fmaxf(most, logits[i]);
    sum = expf(logits[0] - most);
    for (int i = 1; i < sizes.letters; i++)
        sum += expf(logits[i] - most);
    loss = logf(sum) + most - logits[next];
    for (int i = 0; i < sizes.letters; i++)
        logits[i] = (expf(logits[i] - most) / sum - (float)(i == next)) / rows;
    return loss;
}

static float head_backward(const float *const *p, float *const *g, struct batch *batch)
{
    int rows = batch->count * sizes.length;
    const float *x = batch->inputs[sizes.blocks - 1];
    float *normal = batch->room, *dnormal = normal + rows * sizes.width,
          *logits = dnormal + rows * sizes.width;
    double loss = 0;

    norm(x, p[0], p[1], normal, rows);
    linear(normal, p[2], NULL, logits, rows, sizes.width, sizes.letters);
    for (int r = 0; r < rows; r++)
        loss += (double)cross_entropy(logits + r * sizes.letters, batch->next[r], (float)rows);
    for (int i = 0; i < rows * sizes.letters; i++)
        logits[i] *= batch->loss_scale;
    memset(dnormal, 0, (size_t)(rows * sizes.width) * sizeof *dnormal);
    memset(batch->slope, 0, (size_t)(rows * sizes.width) * sizeof *dnormal);
    linear_backward(normal, p[2], logits, dnormal, g[2], NULL, rows, sizes.width, sizes.letters);
    norm_backward(x, p[0], dnormal, batch->slope, g[0], g[1], rows);
    return (float)(loss / rows);
}

void forward(int block, const float *const *parameters, struct batch *batch)
{
    int rows = batch->count * sizes.length;

    if (block == 0)
        embed(parameters, batch, batch->inputs[1]);
    else if (block < sizes.blocks - 1)
        layer_forward(parameters, batch->inputs[block], batch->inputs[block + 1], batch->room,
                      rows);
}

float backward(int block, const float *const *parameters, float *const *gradients,
               struct batch *batch)
{
    if (block == sizes.blocks - 1) return head_backward(parameters, gradients, batch);
    if (block == 0)
        embed_backward(gradients, batch);
    else
        layer_backward(parameters, gradients, batch->inputs[block], batch->slope, batch->room,
                       batch->count * sizes.length);
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
        int letter = (int)(state % (uint32_t)sizes.letters);

        for (int t = 0; t < sizes.length; t++) {
            letters[s * sizes.length + t] = letter;
            state = mix(state + 0x9e3779b9U);
            letter = (int)(mix((uint32_t)letter * 3 + state % 3) % (uint32_t)sizes.letters);
            next[s * sizes.length + t] = letter;
        }
    }
}

struct batch *batch_create(int count)
{
    size_t rows = (size_t)count * (size_t)sizes.length, width = (size_t)sizes.width;
    size_t room = (size_t)room_floats();
    struct batch *batch = calloc(1, sizeof *batch);

    if (batch == NULL) abort();
    batch->count = count;
    batch->loss_scale = 1;
    batch->letters = calloc(2 * rows, sizeof *batch->letters);
    batch->room = calloc(rows * (room + (size_t)(sizes.blocks + 1) * width), sizeof *batch->room);
    if (batch->letters == NULL || batch->room == NULL) abort();
    batch->next = batch->letters + rows;
    for (int i = 0; i < sizes.blocks; i++)
        batch->inputs[i] = batch->room + rows * (room + (size_t)i * width);
    batch->slope = batch->room + rows * (room + (size_t)sizes.blocks * width);
    return batch;
}

void batch_free(struct batch *batch)
{
    free(batch->letters);
    free(batch->room);
    free(batch);
}
