/* mlp.c - two layers, y = relu(x w1) w2, trained with data and tensor parallelism.
 *
 *     weft run -n 4 mlp
 *
 * Each `dp` coordinate has a part of the batch, each `tp` coordinate a part of the hidden units,
 * which 2 does not divide.  The layouts of all other tensors follow from the operators.  The same
 * program with replicas in place of parts must train the same weights.  The kernels compute on the
 * host, so a CPU backend is needed. */
#include <weft/parallel.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

enum { STEPS = 3 };

/* ---- the engine's kernels, on the shards of one rank ---- */

static float *at(const weft_tensor_local *t, int64_t row, int64_t column)
{
    return (float *)t->memory + row * t->strides[0] + column * t->strides[1];
}

static void multiply(const weft_tensor_local *a, const weft_tensor_local *b,
                     const weft_tensor_local *c)
{
    for (int64_t i = 0; i < c->shard->shape[0]; i++)
        for (int64_t j = 0; j < c->shard->shape[1]; j++) {
            float sum = 0;
            for (int64_t k = 0; k < a->shard->shape[1]; k++)
                sum += *at(a, i, k) * *at(b, k, j);
            *at(c, i, j) = sum;
        }
}

/* One element of an operator that treats all elements alike. */
static float compute(const weft_op_run *run, float a, float b)
{
    if (strcmp(run->name, "relu") == 0) return a > 0 ? a : 0;
    if (strcmp(run->name, "threshold_bwd") == 0) return b > 0 ? a : 0;
    if (strcmp(run->name, "add_scalar") == 0) return a + (float)run->attrs[0].real;
    return a + (float)run->attrs[0].real * b; /* add_ */
}

static weft_status kernel(void *user, const weft_op_run *run)
{
    const weft_tensor_local *a = &run->inputs[0], *b = run->input_count > 1 ? a + 1 : a;
    const weft_tensor_local *out = &run->outputs[0];

    (void)user;
    if (strcmp(run->name, "mm") == 0) {
        multiply(a, b, out);
        return WEFT_OK;
    }
    for (int64_t i = 0; i < out->shard->shape[0]; i++)
        for (int64_t j = 0; j < out->shard->shape[1]; j++)
            *at(out, i, j) = compute(run, *at(a, i, j), *at(b, i, j));
    return WEFT_OK;
}

/* ---- distribution ---- */

static weft_context *ctx;
static weft_mesh *mesh;

static weft_tensor *apply(const char *name, weft_tensor *a, weft_tensor *b,
                          const weft_op_attr *attr)
{
    weft_op_call call = {.struct_size = sizeof call,
                         .name = name,
                         .input_count = b != NULL ? 2 : 1,
                         .attr_size = sizeof(weft_op_attr),
                         .attrs = attr,
                         .attr_count = attr != NULL};
    weft_tensor *inputs[] = {a, b}, *out;

    MUST(weft_op_apply(ctx, &call, inputs, NULL, kernel, NULL, NULL, 1, &out));
    return out;
}

static weft_tensor *transposed(weft_tensor *t)
{
    weft_tensor *out;

    MUST(weft_tensor_transpose(t, 0, 1, &out));
    return out;
}

/* Replace *T by the same tensor in another layout. */
static void move(weft_tensor **t, const char *placements)
{
    weft_tensor *moved;
    weft_spec *spec;

    MUST(weft_spec_with(weft_tensor_spec(*t), placements, &spec));
    MUST(weft_tensor_move(*t, spec, NULL, NULL, &moved));
    weft_spec_release(&spec);
    weft_tensor_release(t);
    *t = moved;
}

static weft_tensor *normal(const char *layout, uint64_t seed)
{
    weft_random random = {.seed = seed};
    weft_spec *spec;
    weft_tensor *t;

    MUST(weft_spec_parse(mesh, layout, &spec));
    MUST(weft_tensor_create(ctx, spec, NULL, &t));
    MUST(weft_tensor_normal(t, &random, 0, 0.5, NULL)); /* the same numbers in every layout */
    weft_spec_release(&spec);
    return t;
}

/* The layouts that the program chooses. */
struct layouts {
    const char *x, *w1, *w2;
    const char *y, *dw1, *dw2; /* after the sums over ranks */
};

static void train(const struct layouts *layouts, weft_tensor *weights[2])
{
    const weft_op_attr minus_one = {.name = "s", .kind = WEFT_ATTR_REAL, .real = -1};
    const weft_op_attr rate = {.name = "alpha", .kind = WEFT_ATTR_REAL, .real = -0.05};
    weft_tensor *x = normal(layouts->x, 1), *xt = transposed(x);
    weft_tensor *w1 = normal(layouts->w1, 2), *w2 = normal(layouts->w2, 3), *w2t = transposed(w2);

    for (int step = 0; step < STEPS; step++) {
        weft_tensor *a = apply("mm", x, w1, NULL), *h = apply("relu", a, NULL, NULL);
        weft_tensor *y = apply("mm", h, w2, NULL), *ht = transposed(h);
        move(&y, layouts->y);                                       /* a sum over tp */
        weft_tensor *dy = apply("add_scalar", y, NULL, &minus_one); /* the target is 1 */
        weft_tensor *dw2 = apply("mm", ht, dy, NULL), *dh = apply("mm", dy, w2t, NULL);
        weft_tensor *da = apply("threshold_bwd", dh, h, NULL), *dw1 = apply("mm", xt, da, NULL);
        move(&dw1, layouts->dw1); /* sums over dp */
        move(&dw2, layouts->dw2);
        weft_tensor *new_w1 = apply("add_", w1, dw1, &rate);
        weft_tensor *new_w2 = apply("add_", w2, dw2, &rate);
        for (weft_tensor **t =
                 (weft_tensor *[]){a, h, y, ht, dy, dw2, dh, da, dw1, new_w1, new_w2, NULL};
             *t != NULL; t++)
            weft_tensor_release(t);
    }
    for (weft_tensor **t = (weft_tensor *[]){x, xt, w2t, NULL}; *t != NULL; t++)
        weft_tensor_release(t);
    weights[0] = w1;
    weights[1] = w2;
}

int main(void)
{
    static const struct layouts parallel = {"f32[8,6] S(0),R", "f32[6,9] R,S(1)", "f32[9,4] R,S(0)",
                                            "S(0),R",          "R,S(1)",          "R,S(0)"};
    static const struct layouts alone = {"f32[8,6] R,R", "f32[6,9] R,R", "f32[9,4] R,R",
                                         "R,R",          "R,R",          "R,R"};
    weft_tensor *weights[2], *expected[2];
    double largest = 0;

    MUST(weft_init(NULL, &ctx));
    MUST(weft_mesh_parse("dp=2,tp=2", &mesh));
    train(&parallel, weights);
    train(&alone, expected);
    for (int i = 0; i < 2; i++) {
        weft_tensor_difference_info difference = {.struct_size = sizeof difference};

        MUST(weft_tensor_compare(expected[i], weights[i], NULL, NULL, &difference));
        largest = fmax(largest, difference.largest);
        weft_tensor_release(&weights[i]);
        weft_tensor_release(&expected[i]);
    }
    printf("rank %d: weights differ by at most %g from those of one rank\n", weft_rank(ctx),
           largest);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return largest < 1e-5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
