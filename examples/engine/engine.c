/* engine.c - a trainer of a small GPT as a plain engine in C has it: one arena with all parameters,
 * one with all gradients, layers stacked in one tensor each, packed queries, keys and values, and
 * an optimizer that is one loop over the arena.
 *
 *     engine_alone            the engine as it was: this file without the lines of DISTRIBUTED
 *     engine                  with these lines, on one rank
 *     weft run -n 4 engine    on four ranks: fully sharded data parallel, with the same losses
 *
 * The lines between `#ifdef DISTRIBUTED` and `#else` or `#endif` are all that weft needs.  Each
 * rank keeps a shard of the parameters and of the optimizer's moments.  Before a step weft gathers
 * the parameters into the engine's arena; after it, it adds up the gradients of all ranks in an
 * arena of shards, and clips them.  The kernels compute on the host, so a CPU backend is needed. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef DISTRIBUTED
#include <weft/parallel.h>
#endif

enum {
    LAYERS = 3,
    WIDTH = 24,
    HEADS = 4,
    HEAD = WIDTH / HEADS,
    LENGTH = 12, /* letters of a sequence */
    LETTERS = 29,
    BATCH = 8, /* sequences of a step */
    STEPS = 40
};

static void *zeros(size_t count)
{
    void *memory = calloc(count, sizeof(float));

    if (memory == NULL) abort();
    return memory;
}

/* ---- parameters: one arena ---- */

enum { WORDS, PLACES, NORM1, SHIFT1, QKV, QKV_B, OUT, OUT_B, NORM2, SHIFT2, UP, UP_B };
enum { DOWN = UP_B + 1, DOWN_B, NORM, SHIFT, TENSORS };

/* The tensors of the arena, in order; those with LAYERS in front have all layers. */
static const struct {
    int dims;
    int64_t shape[3];
    float deviation, start; /* of the first elements */
} tensors[TENSORS] = {
    [WORDS] = {2, {LETTERS, WIDTH}, 0.1F, 0},
    [PLACES] = {2, {LENGTH, WIDTH}, 0.1F, 0},
    [NORM1] = {2, {LAYERS, WIDTH}, 0, 1},
    [SHIFT1] = {2, {LAYERS, WIDTH}, 0, 0},
    [QKV] = {3, {LAYERS, 3 * WIDTH, WIDTH}, 0.1F, 0},
    [QKV_B] = {2, {LAYERS, 3 * WIDTH}, 0, 0},
    [OUT] = {3, {LAYERS, WIDTH, WIDTH}, 0.1F, 0},
    [OUT_B] = {2, {LAYERS, WIDTH}, 0, 0},
    [NORM2] = {2, {LAYERS, WIDTH}, 0, 1},
    [SHIFT2] = {2, {LAYERS, WIDTH}, 0, 0},
    [UP] = {3, {LAYERS, 4 * WIDTH, WIDTH}, 0.1F, 0},
    [UP_B] = {2, {LAYERS, 4 * WIDTH}, 0, 0},
    [DOWN] = {3, {LAYERS, WIDTH, 4 * WIDTH}, 0.1F, 0},
    [DOWN_B] = {2, {LAYERS, WIDTH}, 0, 0},
    [NORM] = {1, {WIDTH}, 0, 1},
    [SHIFT] = {1, {WIDTH}, 0, 0},
};

static float *params, *gradients; /* TOTAL elements each */
static size_t first[TENSORS + 1]; /* where each tensor begins in an arena */
#define TOTAL first[TENSORS]

/* What the optimizer works on. */
static struct {
    size_t count;
    float *elements, *slopes, *mean, *square;
} state;

static float uniform(void) /* -1 to 1, the same numbers in every run */
{
    static uint64_t x = 1;

    x = x * 6364136223846793005U + 1442695040888963407U;
    return (float)(x >> 40) / (float)(1 << 23) - 1;
}

static void make_arenas(void)
{
    for (int i = 0; i < TENSORS; i++) {
        first[i + 1] = first[i] + 1;
        for (int d = 0; d < tensors[i].dims; d++)
            first[i + 1] += (first[i + 1] - first[i]) * (size_t)(tensors[i].shape[d] - 1);
    }
    params = zeros(TOTAL);
    gradients = zeros(TOTAL);
    for (int i = 0; i < TENSORS; i++)
        for (size_t at = first[i]; at < first[i + 1]; at++)
            params[at] = tensors[i].start + tensors[i].deviation * uniform();
}

/* Tensor I of LAYER in ARENA. */
static float *part(float *arena, int i, int layer)
{
    return arena + first[i] + (first[i + 1] - first[i]) / LAYERS * (size_t)layer;
}

/* ---- kernels; backward ones add to the slopes of what they have read ---- */

static void linear(const float *x, const float *w, const float *b, float *y, int rows, int inputs,
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

static void linear_backward(const float *x, const float *w, const float *dy, float *dx, float *dw,
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

static void norm(const float *x, const float *w, const float *b, float *y, int rows)
{
    for (int r = 0; r < rows; r++, x += WIDTH, y += WIDTH) {
        float mean, scale;

        moments(x, &mean, &scale);
        for (int i = 0; i < WIDTH; i++)
            y[i] = (x[i] - mean) * scale * w[i] + b[i];
    }
}

static void norm_backward(const float *x, const float *w, const float *dy, float *dx, float *dw,
                          float *db, int rows)
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

/* The weights of places 0 to T for place T of one sequence and the head that begins at AT. */
static void weigh(const float *qkv, int t, int at, float *weights)
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

static void attend(const float *qkv, float *y)
{
    float weights[LENGTH];

    for (int t = 0; t < LENGTH; t++)
        for (int at = 0; at < WIDTH; at += HEAD) {
            weigh(qkv, t, at, weights);
            for (int i = at; i < at + HEAD; i++) {
                y[t * WIDTH + i] = 0;
                for (int s = 0; s <= t; s++)
                    y[t * WIDTH + i] += weights[s] * qkv[(3 * s + 2) * WIDTH + i];
            }
        }
}

static void attend_backward(const float *qkv, const float *dy, float *dqkv)
{
    float weights[LENGTH], dw[LENGTH];

    for (int t = 0; t < LENGTH; t++)
        for (int at = 0; at < WIDTH; at += HEAD) {
            float sum = 0;

            weigh(qkv, t, at, weights);
            for (int s = 0; s <= t; s++) {
                dw[s] = 0;
                for (int i = at; i < at + HEAD; i++) {
                    dw[s] += dy[t * WIDTH + i] * qkv[(3 * s + 2) * WIDTH + i];
                    dqkv[(3 * s + 2) * WIDTH + i] += weights[s] * dy[t * WIDTH + i];
                }
                sum += weights[s] * dw[s];
            }
            for (int s = 0; s <= t; s++)
                for (int i = at; i < at + HEAD; i++) {
                    float score = weights[s] * (dw[s] - sum) / sqrtf(HEAD);

                    dqkv[3 * t * WIDTH + i] += score * qkv[(3 * s + 1) * WIDTH + i];
                    dqkv[(3 * s + 1) * WIDTH + i] += score * qkv[3 * t * WIDTH + i];
                }
        }
}

/* ---- the model ---- */

/* The activations of a layer, in rows of WIDTH. */
enum { X, LN1, IN, MIXED = IN + 3, MIDDLE, LN2, HIGH, BENT = HIGH + 4, INSIDE = BENT + 4 };

struct batch {
    int rows;             /* letters */
    int *letters, *next;  /* ROWS, and the letters after them */
    float *acts, *slopes; /* of each layer INSIDE x ROWS x WIDTH, then the output of the last */
    float *normal, *dnormal, *logits; /* of the head */
};

static struct batch make_batch(int sequences)
{
    struct batch b = {.rows = sequences * LENGTH};
    size_t rows = (size_t)b.rows;

    b.letters = zeros(rows);
    b.next = zeros(rows);
    b.acts = zeros(rows * (LAYERS * INSIDE + 1) * WIDTH);
    b.slopes = zeros(rows * (LAYERS * INSIDE + 1) * WIDTH);
    b.normal = zeros(rows * WIDTH);
    b.dnormal = zeros(rows * WIDTH);
    b.logits = zeros(rows * LETTERS);
    return b;
}

/* Each letter is followed by one of three others. */
static void fill_batch(struct batch *b, uint32_t sequence)
{
    for (int r = 0; r < b->rows; r++) {
        uint32_t mixed =
            (sequence + (uint32_t)(r / LENGTH)) * 2654435761U + (uint32_t)(r % LENGTH) * 40503U;

        mixed ^= mixed >> 15;
        b->letters[r] = r % LENGTH == 0 ? (int)(mixed % LETTERS) : b->next[r - 1];
        b->next[r] = (int)((uint32_t)b->letters[r] * 7 + mixed % 3) % LETTERS;
    }
}

/* Activation WHICH of LAYER, in ARENA. */
static float *act(const struct batch *b, float *arena, int layer, int which)
{
    return arena + (size_t)(layer * INSIDE + which) * (size_t)b->rows * WIDTH;
}

static void forward_layer(const struct batch *b, int l)
{
    float *a = b->acts, *x = act(b, a, l, X), *middle = act(b, a, l, MIDDLE);
    float *high = act(b, a, l, HIGH), *bent = act(b, a, l, BENT), *y = act(b, a, l + 1, X);

    norm(x, part(params, NORM1, l), part(params, SHIFT1, l), act(b, a, l, LN1), b->rows);
    linear(act(b, a, l, LN1), part(params, QKV, l), part(params, QKV_B, l), act(b, a, l, IN),
           b->rows, WIDTH, 3 * WIDTH);
    for (int r = 0; r < b->rows; r += LENGTH)
        attend(act(b, a, l, IN) + r * 3 * WIDTH, act(b, a, l, MIXED) + r * WIDTH);
    linear(act(b, a, l, MIXED), part(params, OUT, l), part(params, OUT_B, l), middle, b->rows,
           WIDTH, WIDTH);
    for (int i = 0; i < b->rows * WIDTH; i++)
        middle[i] += x[i];
    norm(middle, part(params, NORM2, l), part(params, SHIFT2, l), act(b, a, l, LN2), b->rows);
    linear(act(b, a, l, LN2), part(params, UP, l), part(params, UP_B, l), high, b->rows, WIDTH,
           4 * WIDTH);
    for (int i = 0; i < b->rows * 4 * WIDTH; i++)
        bent[i] = high[i] / (1 + expf(-high[i]));
    linear(bent, part(params, DOWN, l), part(params, DOWN_B, l), y, b->rows, 4 * WIDTH, WIDTH);
    for (int i = 0; i < b->rows * WIDTH; i++)
        y[i] += middle[i];
}

static void backward_layer(const struct batch *b, int l)
{
    float *a = b->acts, *d = b->slopes, *dy = act(b, d, l + 1, X), *middle = act(b, d, l, MIDDLE);
    float *high = act(b, a, l, HIGH);

    linear_backward(act(b, a, l, BENT), part(params, DOWN, l), dy, act(b, d, l, BENT),
                    part(gradients, DOWN, l), part(gradients, DOWN_B, l), b->rows, 4 * WIDTH,
                    WIDTH);
    for (int i = 0; i < b->rows * 4 * WIDTH; i++) {
        float half = 1 / (1 + expf(-high[i]));

        act(b, d, l, HIGH)[i] = act(b, d, l, BENT)[i] * half * (1 + high[i] * (1 - half));
    }
    linear_backward(act(b, a, l, LN2), part(params, UP, l), act(b, d, l, HIGH), act(b, d, l, LN2),
                    part(gradients, UP, l), part(gradients, UP_B, l), b->rows, WIDTH, 4 * WIDTH);
    memcpy(middle, dy, (size_t)b->rows * WIDTH * sizeof *dy);
    norm_backward(act(b, a, l, MIDDLE), part(params, NORM2, l), act(b, d, l, LN2), middle,
                  part(gradients, NORM2, l), part(gradients, SHIFT2, l), b->rows);
    linear_backward(act(b, a, l, MIXED), part(params, OUT, l), middle, act(b, d, l, MIXED),
                    part(gradients, OUT, l), part(gradients, OUT_B, l), b->rows, WIDTH, WIDTH);
    for (int r = 0; r < b->rows; r += LENGTH)
        attend_backward(act(b, a, l, IN) + r * 3 * WIDTH, act(b, d, l, MIXED) + r * WIDTH,
                        act(b, d, l, IN) + r * 3 * WIDTH);
    linear_backward(act(b, a, l, LN1), part(params, QKV, l), act(b, d, l, IN), act(b, d, l, LN1),
                    part(gradients, QKV, l), part(gradients, QKV_B, l), b->rows, WIDTH, 3 * WIDTH);
    memcpy(act(b, d, l, X), middle, (size_t)b->rows * WIDTH * sizeof *dy);
    norm_backward(act(b, a, l, X), part(params, NORM1, l), act(b, d, l, LN1), act(b, d, l, X),
                  part(gradients, NORM1, l), part(gradients, SHIFT1, l), b->rows);
}

/* Replace LOGITS by the slopes of the mean loss, and return this loss. */
static float cross_entropy(const struct batch *b, float *logits)
{
    double loss = 0;

    for (int r = 0; r < b->rows; r++, logits += LETTERS) {
        float most = -INFINITY, sum = 0;

        for (int i = 0; i < LETTERS; i++)
            most = fmaxf(most, logits[i]);
        for (int i = 0; i < LETTERS; i++)
            sum += expf(logits[i] - most);
        loss += (double)(logf(sum) + most - logits[b->next[r]]);
        for (int i = 0; i < LETTERS; i++)
            logits[i] = (expf(logits[i] - most) / sum - (float)(i == b->next[r])) / (float)b->rows;
    }
    return (float)(loss / b->rows);
}

/* Compute the loss, and add to the gradients. */
static float forward_backward(struct batch *b)
{
    float *x = act(b, b->acts, 0, X), *y = act(b, b->acts, LAYERS, X), loss;
    const float *dx = act(b, b->slopes, 0, X);
    float *words = params + first[WORDS], *dwords = gradients + first[WORDS];

    memset(b->slopes, 0, (size_t)b->rows * (LAYERS * INSIDE + 1) * WIDTH * sizeof *b->slopes);
    memset(b->dnormal, 0, (size_t)b->rows * WIDTH * sizeof *b->dnormal);
    for (int i = 0; i < b->rows * WIDTH; i++)
        x[i] = words[b->letters[i / WIDTH] * WIDTH + i % WIDTH] +
               params[first[PLACES] + (size_t)(i % (LENGTH * WIDTH))];
    for (int l = 0; l < LAYERS; l++)
        forward_layer(b, l);
    norm(y, params + first[NORM], params + first[SHIFT], b->normal, b->rows);
    linear(b->normal, words, NULL, b->logits, b->rows, WIDTH, LETTERS); /* the head is the words */
    loss = cross_entropy(b, b->logits);
    linear_backward(b->normal, words, b->logits, b->dnormal, dwords, NULL, b->rows, WIDTH, LETTERS);
    norm_backward(y, params + first[NORM], b->dnormal, act(b, b->slopes, LAYERS, X),
                  gradients + first[NORM], gradients + first[SHIFT], b->rows);
    for (int l = LAYERS - 1; l >= 0; l--)
        backward_layer(b, l);
    for (int i = 0; i < b->rows * WIDTH; i++) {
        dwords[b->letters[i / WIDTH] * WIDTH + i % WIDTH] += dx[i];
        gradients[first[PLACES] + (size_t)(i % (LENGTH * WIDTH))] += dx[i];
    }
    return loss;
}

/* AdamW: one loop over the arena. */
static void update(int step)
{
    const float rate = 3e-3F, decay = 0.01F;
    float one = 1 - powf(0.9F, (float)step), two = 1 - powf(0.95F, (float)step);

    for (size_t i = 0; i < state.count; i++) {
        float g = state.slopes[i], *m = &state.mean[i], *s = &state.square[i];

        *m = 0.9F * *m + 0.1F * g;
        *s = 0.95F * *s + 0.05F * g * g;
        state.elements[i] -=
            rate * (*m / one / (sqrtf(*s / two) + 1e-8F) + decay * state.elements[i]);
    }
}

#ifdef DISTRIBUTED
/* ---- distribution ---- */

static weft_context *ctx;
static weft_fsdp *fsdp;
static weft_fsdp_group *group;
static weft_tensor *partial[TENSORS], *reduced[TENSORS]; /* gradients of this rank, and of all */

static void must(weft_status status)
{
    if (status == WEFT_OK) return;
    fprintf(stderr, "%s\n", weft_last_error());
    exit(EXIT_FAILURE);
}

/* Split the arena among the ranks: the optimizer gets this rank's shards.  Of a tensor with all
 * layers the second dimension is split, of others the first. */
static void distribute(void)
{
    weft_fsdp_param list[TENSORS] = {{0}};
    weft_spec *shards[TENSORS], *whole;
    weft_mesh *mesh;
    size_t at = 0;

    must(weft_init(NULL, &ctx));
    must(weft_mesh_parse_for("dp=*", weft_size(ctx), &mesh));
    for (int i = 0; i < TENSORS; i++) {
        must(weft_spec_parse_placements(mesh, WEFT_DTYPE_F32, tensors[i].dims, tensors[i].shape,
                                        i > PLACES && i < NORM ? "S(1)" : "S(0)", &shards[i]));
        state.count += weft_spec_shard_bytes(shards[i], weft_rank(ctx)) / sizeof(float);
    }
    state.elements = zeros(state.count);
    state.slopes = zeros(state.count);
    for (int i = 0; i < TENSORS; i++) {
        must(weft_spec_with(shards[i], "R", &whole));
        must(weft_tensor_wrap(ctx, whole, params + first[i], NULL, &list[i].gathered));
        must(weft_tensor_wrap(ctx, shards[i], state.elements + at, NULL, &list[i].tensor));
        must(weft_tensor_wrap(ctx, shards[i], state.slopes + at, NULL, &reduced[i]));
        must(weft_tensors_move_into(1, &list[i].gathered, &list[i].tensor, NULL, NULL, NULL));
        list[i].gradient = reduced[i];
        at += weft_spec_shard_bytes(shards[i], weft_rank(ctx)) / sizeof(float);
        weft_spec_release(&shards[i]);
        weft_spec_release(&whole);
    }
    must(weft_fsdp_create(ctx, mesh, "dp", NULL, &fsdp));
    must(weft_fsdp_group_create(fsdp, TENSORS, list, sizeof *list, NULL, &group));
    for (int i = 0; i < TENSORS; i++) {
        must(weft_tensor_wrap(ctx, weft_fsdp_gradient_spec(group, (size_t)i), gradients + first[i],
                              NULL, &partial[i]));
        weft_tensor_release(&list[i].tensor); /* the group keeps a reference */
        weft_tensor_release(&list[i].gathered);
    }
    weft_mesh_release(&mesh);
}

/* Gather the parameters of all ranks in the arena. */
static void gather(void)
{
    must(weft_fsdp_unshard_begin(group, WEFT_FSDP_FORWARD));
    must(weft_fsdp_unshard_end(group));
    must(weft_context_wait(ctx, NULL, WEFT_FOREVER));
}

/* Clip the mean of the gradients of all ranks, of which the optimizer gets this rank's shards. */
static float reduce_and_clip(float loss)
{
    must(weft_fsdp_gradients_clear(group));
    must(weft_fsdp_reduce_begin(group, partial, 0));
    must(weft_fsdp_reduce_end(group));
    must(weft_clip_gradient_norm(ctx, TENSORS, reduced, 1.0, NULL, NULL, NULL, NULL));
    must(weft_all_reduce(weft_world(ctx), &loss, &loss, 1, WEFT_DTYPE_F32, WEFT_REDUCE_AVG, NULL));
    must(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    return loss;
}
#else
static void clip(void)
{
    double square = 0;

    for (size_t i = 0; i < TOTAL; i++)
        square += (double)gradients[i] * (double)gradients[i];
    for (size_t i = 0; i < TOTAL && square > 1; i++)
        gradients[i] /= (float)(sqrt(square) + 1e-6);
}
#endif

int main(void)
{
    int rank = 0, ranks = 1;
    struct batch batch;

    make_arenas();
#ifdef DISTRIBUTED
    distribute();
    rank = weft_rank(ctx);
    ranks = weft_size(ctx);
#else
    state.count = TOTAL;
    state.elements = params;
    state.slopes = gradients;
#endif
    state.mean = zeros(state.count);
    state.square = zeros(state.count);
    batch = make_batch(BATCH / ranks);
    for (int step = 1; step <= STEPS; step++) {
        float loss;

        fill_batch(&batch, (uint32_t)(step * BATCH + rank * (BATCH / ranks)));
        memset(gradients, 0, TOTAL * sizeof *gradients);
#ifdef DISTRIBUTED
        gather();
#endif
        loss = forward_backward(&batch);
#ifdef DISTRIBUTED
        loss = reduce_and_clip(loss);
#else
        clip();
#endif
        update(step);
        if (rank == 0 && step % 10 == 0) printf("step %d loss %.5f\n", step, (double)loss);
    }
#ifdef DISTRIBUTED
    for (int i = 0; i < TENSORS; i++) {
        weft_tensor_release(&partial[i]);
        weft_tensor_release(&reduced[i]);
    }
    weft_fsdp_group_release(&group);
    weft_fsdp_release(&fsdp);
    weft_context_release(&ctx);
#endif
    return 0;
}
