/* mlp.c - two layers, y = relu(x w1) w2, trained with data and tensor parallelism.
 *
 *     weft run -n 4 mlp
 *
 * Each `dp` coordinate has a part of the batch, each `tp` coordinate a part of the hidden units,
 * which 2 does not divide.  After three steps every rank gathers the weights and compares them with
 * those that it computes alone.  The host computes, in memory of weft_alloc, so a CPU backend is
 * needed. */
#include <weft/weft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

enum { BATCH = 8, IN = 6, HIDDEN = 9, OUT = 4, STEPS = 3 };

static weft_context *ctx;
static weft_mesh *mesh;

/* ---- tensors ---- */

/* A layout, this rank's part of it, and the memory of that part. */
struct tensor {
    weft_spec *spec;
    weft_shard shard;
    float *data;
};

static struct tensor make(const char *layout)
{
    struct tensor t;
    void *memory;

    MUST(weft_spec_parse(mesh, layout, &t.spec));
    weft_spec_shard(t.spec, weft_rank(ctx), &t.shard);
    MUST(weft_alloc(ctx, (uint64_t)t.shard.elements * sizeof(float), WEFT_MEMORY_DEVICE, &memory));
    t.data = memory;
    return t;
}

/* The same tensor in another layout. */
static weft_spec *with(const struct tensor *t, const char *placements)
{
    weft_spec *spec;

    MUST(weft_spec_with(t->spec, placements, &spec));
    return spec;
}

/* Values that depend on the global index alone. */
static void fill(float *data, int64_t rows, int64_t columns, const int64_t *offset, int64_t width,
                 int seed)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            data[i * columns + j] =
                (float)(((offset[0] + i) * width + offset[1] + j) * 7 % 11 + seed - 8) / 16;
}

static void fill_shard(struct tensor *t, int64_t width, int seed)
{
    fill(t->data, t->shard.shape[0], t->shard.shape[1], t->shard.offset, width, seed);
}

/* ---- the model ---- */

/* c = a b, with a[m,k] and b[k,n]; A_T and B_T transpose an operand. */
static void multiply(float *c, const float *a, const float *b, int64_t m, int64_t n, int64_t k,
                     int a_t, int b_t)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += a[a_t ? l * m + i : i * k + l] * b[b_t ? j * k + l : l * n + j];
            c[i * n + j] = sum;
        }
}

/* h = relu(x w1), y = h w2. */
static void forward(float *y, float *h, const float *x, const float *w1, const float *w2,
                    int64_t batch, int64_t hidden)
{
    multiply(h, x, w1, batch, hidden, IN, 0, 0);
    for (int64_t i = 0; i < batch * hidden; i++)
        if (h[i] < 0) h[i] = 0;
    multiply(y, h, w2, batch, OUT, hidden, 0, 0);
}

/* DY is the gradient of y.  H becomes that of h. */
static void backward(float *dw1, float *dw2, const float *dy, float *h, const float *x,
                     const float *w2, int64_t batch, int64_t hidden)
{
    float dh[BATCH * HIDDEN];

    multiply(dw2, h, dy, hidden, OUT, batch, 1, 0);
    multiply(dh, dy, w2, batch, hidden, OUT, 0, 1);
    for (int64_t i = 0; i < batch * hidden; i++)
        h[i] = h[i] > 0 ? dh[i] : 0;
    multiply(dw1, x, h, IN, hidden, batch, 1, 0);
}

/* The target is 1 everywhere: y becomes its own gradient.  Returns the loss. */
static float compare_output(float *y, int64_t count)
{
    float loss = 0;

    for (int64_t i = 0; i < count; i++) {
        y[i] -= 1;
        loss += y[i] * y[i] / 2;
    }
    return loss;
}

static void descend(float *w, const float *dw, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        w[i] -= 0.05f * dw[i];
}

/* ---- alone ---- */

static float w1_alone[IN * HIDDEN], w2_alone[HIDDEN * OUT];

static float train_alone(void)
{
    static const int64_t origin[2] = {0, 0};
    float x[BATCH * IN], h[BATCH * HIDDEN], y[BATCH * OUT], dw1[IN * HIDDEN], dw2[HIDDEN * OUT];
    float loss = 0;

    fill(x, BATCH, IN, origin, IN, 1);
    fill(w1_alone, IN, HIDDEN, origin, HIDDEN, 2);
    fill(w2_alone, HIDDEN, OUT, origin, OUT, 3);
    for (int step = 0; step < STEPS; step++) {
        forward(y, h, x, w1_alone, w2_alone, BATCH, HIDDEN);
        loss = compare_output(y, BATCH * OUT);
        backward(dw1, dw2, y, h, x, w2_alone, BATCH, HIDDEN);
        descend(w1_alone, dw1, IN * HIDDEN);
        descend(w2_alone, dw2, HIDDEN * OUT);
    }
    return loss;
}

/* ---- together ---- */

static int differ(const float *a, const float *b, int64_t count)
{
    int wrong = 0;

    for (int64_t i = 0; i < count; i++)
        wrong += !(fabsf(a[i] - b[i]) <= 1e-5f);
    return wrong;
}

static void drop(struct tensor *t)
{
    MUST(weft_free(ctx, t->data));
    weft_spec_release(&t->spec);
}

int main(void)
{
    float loss = 0, loss_alone = train_alone(), whole[IN * HIDDEN + HIDDEN * OUT];
    weft_comm *dp;
    int wrong;

    MUST(weft_init(NULL, &ctx));
    MUST(weft_mesh_parse("dp=2,tp=2", &mesh));
    MUST(weft_comm_along(weft_world(ctx), mesh, "dp", &dp));

    struct tensor x = make("f32[8,6] S(0),R"); /* data parallel: a part of the batch */
    struct tensor w1 = make("f32[6,9] R,S(1)"), w2 = make("f32[9,4] R,S(0)");  /* tensor parallel */
    struct tensor h = make("f32[8,9] S(0),S(1)"), y = make("f32[8,4] S(0),P"); /* they follow */
    struct tensor dw1 = make("f32[6,9] P,S(1)"), dw2 = make("f32[9,4] P,S(0)");
    weft_spec *y_sum = with(&y, "S(0),R"), *dw1_sum = with(&dw1, "R,S(1)");
    weft_spec *dw2_sum = with(&dw2, "R,S(0)"), *w1_whole = with(&w1, "R,R");
    weft_spec *w2_whole = with(&w2, "R,R");
    int64_t batch = x.shard.shape[0], hidden = w1.shard.shape[1]; /* this rank's */

    fill_shard(&x, IN, 1);
    fill_shard(&w1, HIDDEN, 2);
    fill_shard(&w2, OUT, 3);
    for (int step = 0; step < STEPS; step++) {
        weft_move_item gradients[] = {{"dw1", dw1.spec, dw1.data, dw1_sum, dw1.data},
                                      {"dw2", dw2.spec, dw2.data, dw2_sum, dw2.data}};

        forward(y.data, h.data, x.data, w1.data, w2.data, batch, hidden);
        MUST(weft_move(ctx, y.spec, y.data, y_sum, y.data, NULL, NULL)); /* a sum over tp */
        loss = compare_output(y.data, batch * OUT);
        MUST(weft_all_reduce(dp, &loss, &loss, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
        backward(dw1.data, dw2.data, y.data, h.data, x.data, w2.data, batch, hidden);
        MUST(weft_move_batch(ctx, 2, gradients, NULL, NULL)); /* sums over dp */
        descend(w1.data, dw1.data, IN * hidden);
        descend(w2.data, dw2.data, hidden * OUT);
    }
    MUST(weft_move(ctx, w1.spec, w1.data, w1_whole, whole, NULL, NULL));
    MUST(weft_move(ctx, w2.spec, w2.data, w2_whole, whole + IN * HIDDEN, NULL, NULL));
    wrong = differ(whole, w1_alone, IN * HIDDEN) +
            differ(whole + IN * HIDDEN, w2_alone, HIDDEN * OUT) + differ(&loss, &loss_alone, 1);
    printf("rank %d: loss %.3f, alone %.3f; %d of %d weights differ\n", weft_rank(ctx),
           (double)loss, (double)loss_alone, wrong, IN * HIDDEN + HIDDEN * OUT);

    for (struct tensor *all[] = {&x, &w1, &w2, &h, &y, &dw1, &dw2, NULL}, **t = all; *t; t++)
        drop(*t);
    for (weft_spec *all[] = {y_sum, dw1_sum, dw2_sum, w1_whole, w2_whole, NULL}, **s = all; *s; s++)
        weft_spec_release(s);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
