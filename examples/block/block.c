/* block.c - a transformer block, forward and backward, with data, tensor and sequence parallelism.
 *
 *     weft run -n 4 block
 *
 * Each `dp` coordinate has a part of the batch.  Each `tp` coordinate has a part of the heads and
 * of the hidden units, and outside of attention and MLP a part of the sequence: norms and sums are
 * not computed twice.  2 divides neither the hidden units nor the sequence.  Between the parts
 * there are an all-gather of the sequence and a reduce-scatter, as in Megatron.  A list of styles
 * states the layouts of inputs and weights, and the program these moves; all others follow from the
 * operators.  The same program with replicas in place of parts must give the same numbers.  The
 * kernels compute on the host, so a CPU backend is needed. */
#include "kernels.h"

#include <weft/style.h>

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

enum { BATCH = 4, SEQUENCE = 5, WIDTH = 8, HEADS = 4, RESULTS = 10, TENSORS = 128 };

static weft_context *ctx;
static weft_tensor *made[TENSORS]; /* released at the end of a run */
static int made_count;

static weft_tensor *keep(weft_tensor *tensor)
{
    return made[made_count++] = tensor;
}

/* ---- operators ---- */

static void apply(const char *name, const weft_op_attr *attr, weft_tensor **inputs, uint32_t count,
                  weft_tensor **outputs, uint32_t output_count)
{
    weft_op_call call = {.struct_size = sizeof call,
                         .name = name,
                         .input_count = count,
                         .attr_size = sizeof(weft_op_attr),
                         .attrs = attr,
                         .attr_count = attr != NULL};

    MUST(weft_op_apply(ctx, &call, inputs, NULL, block_kernel, NULL, NULL, output_count, outputs));
    for (uint32_t i = 0; i < output_count; i++)
        keep(outputs[i]);
}

static weft_tensor *unary(const char *name, const weft_op_attr *attr, weft_tensor *a)
{
    weft_tensor *out;

    apply(name, attr, &a, 1, &out, 1);
    return out;
}

static weft_tensor *binary(const char *name, weft_tensor *a, weft_tensor *b)
{
    weft_tensor *out;

    apply(name, NULL, (weft_tensor *[]){a, b}, 2, &out, 1);
    return out;
}

/* The gradient of a weight whose rows are outputs. */
static weft_tensor *weight_gradient(weft_tensor *g, weft_tensor *x)
{
    const weft_op_attr eq = {.name = "eq", .kind = WEFT_ATTR_TEXT, .text = "bsn,bsk->nk"};
    weft_tensor *out;

    apply("einsum", &eq, (weft_tensor *[]){g, x}, 2, &out, 1);
    return out;
}

static const weft_op_attr last_dim = {
    .name = "dims", .kind = WEFT_ATTR_LIST, .list = (const int64_t[]){-1}, .count = 1};
static const weft_op_attr causal = {.name = "causal", .kind = WEFT_ATTR_INT, .integer = 1};

/* ---- layouts ---- */

/* T in another layout. */
static weft_tensor *move(weft_tensor *t, const char *placements)
{
    weft_tensor *moved;
    weft_spec *spec;

    MUST(weft_spec_with(weft_tensor_spec(t), placements, &spec));
    MUST(weft_tensor_move(t, spec, NULL, NULL, &moved));
    weft_spec_release(&spec);
    return keep(moved);
}

/* [batch, token, width] as [batch, head, token, part of the width], in the same memory. */
static weft_tensor *split_heads(weft_tensor *t)
{
    const int64_t shape[] = {BATCH, SEQUENCE, HEADS, WIDTH / HEADS};
    weft_tensor *parts, *out;

    MUST(weft_tensor_reshape(t, 4, shape, &parts));
    MUST(weft_tensor_transpose(keep(parts), 1, 2, &out));
    return keep(out);
}

/* The reverse, as a copy. */
static weft_tensor *join_heads(weft_tensor *t)
{
    const weft_op_attr shape = {.name = "shape",
                                .kind = WEFT_ATTR_LIST,
                                .list = (const int64_t[]){BATCH, SEQUENCE, WIDTH},
                                .count = 3};
    weft_tensor *tokens;

    MUST(weft_tensor_transpose(t, 1, 2, &tokens));
    return unary("reshape", &shape, keep(tokens));
}

/* T in the layout of LIKE. */
static weft_tensor *move_as(weft_tensor *t, weft_tensor *like)
{
    weft_tensor *moved;

    MUST(weft_tensor_move(t, weft_tensor_spec(like), NULL, NULL, &moved));
    return keep(moved);
}

/* The layouts that the program chooses: of inputs and weights by their names, and of tokens where
 * heads or hidden units are split. */
struct layouts {
    const char *styles, *whole;
};

static const struct layouts parallel = {"mesh dp=2,tp=2\n"
                                        "*x         dp  S(0)\n"
                                        "*x         tp  sequence\n"
                                        "in.*       tp  column\n"
                                        "out.*      tp  row\n",
                                        "S(0),R"};
static const struct layouts alone = {"mesh dp=2,tp=2\n", "R,R"};

/* Random elements of SHAPE, in the layout that STYLES give to NAME. */
static weft_tensor *normal(const weft_styles *styles, const char *name, const char *shape,
                           enum weft_style_part part, uint64_t seed)
{
    weft_random random = {.seed = seed};
    weft_spec *replicated, *spec;
    weft_tensor *t;
    char text[64];

    snprintf(text, sizeof text, "f32%s R,R", shape);
    MUST(weft_spec_parse(weft_styles_mesh(styles), text, &replicated));
    MUST(weft_styles_apply(styles, name, part, replicated, &spec));
    MUST(weft_tensor_create(ctx, spec, NULL, &t));
    MUST(weft_tensor_normal(t, &random, 0, 0.5, NULL)); /* the same numbers in every layout */
    weft_spec_release(&replicated);
    weft_spec_release(&spec);
    return keep(t);
}

/* ---- the block ---- */

struct block {
    const char *whole; /* the layout of tokens where heads or hidden units are split */
    weft_tensor *x, *dy, *g1, *g2, *wq, *wk, *wv, *wo, *w1, *w2;
    /* kept for the backward pass */
    weft_tensor *n1, *r1, *q, *k, *v, *o, *l, *joined, *h, *n2, *r2, *u, *t;
};

static void begin(struct block *b, const weft_styles *styles)
{
    b->x = normal(styles, "x", "[4,5,8]", WEFT_STYLE_INPUT, 1);
    b->g1 = normal(styles, "norm1", "[8]", WEFT_STYLE_WEIGHT, 2);
    b->g2 = normal(styles, "norm2", "[8]", WEFT_STYLE_WEIGHT, 3);
    b->wq = normal(styles, "in.q", "[8,8]", WEFT_STYLE_WEIGHT, 4);
    b->wk = normal(styles, "in.k", "[8,8]", WEFT_STYLE_WEIGHT, 5);
    b->wv = normal(styles, "in.v", "[8,8]", WEFT_STYLE_WEIGHT, 6);
    b->wo = normal(styles, "out.heads", "[8,8]", WEFT_STYLE_WEIGHT, 7);
    b->w1 = normal(styles, "in.up", "[9,8]", WEFT_STYLE_WEIGHT, 8);
    b->w2 = normal(styles, "out.down", "[8,9]", WEFT_STYLE_WEIGHT, 9);
    b->dy = normal(styles, "dx", "[4,5,8]", WEFT_STYLE_INPUT, 10);
}

/* Print the layout of the weight NAME, and the line of STYLES that decides it on axis tp. */
static void print_layout(const weft_styles *styles, const char *name, const weft_tensor *weight)
{
    const char *pattern;
    char text[64];
    int32_t tp;

    MUST(weft_mesh_find_axis(weft_styles_mesh(styles), "tp", &tp));
    if (weft_styles_find(styles, name, tp, &pattern) != WEFT_OK) pattern = "none";
    MUST(weft_spec_print(weft_tensor_spec(weight), text, sizeof text, NULL));
    printf("%-9s %-16s by the line %s\n", name, text, pattern);
}

/* The norm of X, with the whole sequence; *R is kept for the backward pass. */
static weft_tensor *normalize(const struct block *b, weft_tensor *x, weft_tensor *g,
                              weft_tensor **r)
{
    weft_tensor *out[2];

    apply("rms_norm", &last_dim, (weft_tensor *[]){x, g}, 2, out, 2);
    *r = out[1];
    return move(out[0], b->whole); /* an all-gather over tp */
}

static weft_tensor *forward(struct block *b)
{
    weft_tensor *out[2], *a, *f;

    b->n1 = normalize(b, b->x, b->g1, &b->r1);
    b->q = split_heads(binary("linear", b->n1, b->wq));
    b->k = split_heads(binary("linear", b->n1, b->wk));
    b->v = split_heads(binary("linear", b->n1, b->wv));
    apply("sdpa", &causal, (weft_tensor *[]){b->q, b->k, b->v}, 3, out, 2);
    b->o = out[0];
    b->l = out[1];
    b->joined = join_heads(b->o);
    a = move_as(binary("linear", b->joined, b->wo), b->x); /* a reduce-scatter over tp */
    b->h = binary("add", b->x, a);
    b->n2 = normalize(b, b->h, b->g2, &b->r2);
    b->u = binary("linear", b->n2, b->w1);
    b->t = unary("gelu", NULL, b->u);
    f = move_as(binary("linear", b->t, b->w2), b->x); /* a reduce-scatter over tp */
    return binary("add", b->h, f);
}

/* The gradient of normalize with regard to X; *DG is that of the weights. */
static weft_tensor *normalize_bwd(weft_tensor *dn, weft_tensor *x, weft_tensor *r, weft_tensor *g,
                                  weft_tensor **dg)
{
    weft_tensor *out[2], *tokens = move_as(dn, x); /* a reduce-scatter over tp */

    apply("rms_norm_bwd", &last_dim, (weft_tensor *[]){tokens, x, r, g}, 4, out, 2);
    *dg = move_as(out[1], g);
    return out[0];
}

/* RESULTS gets the gradients of the input and of the weights. */
static void backward(const struct block *b, weft_tensor **results)
{
    weft_tensor *const weights[] = {b->wq, b->wk, b->wv};
    weft_tensor *whole = move(b->dy, b->whole), *du, *dh, *dn, *d[3];

    results[1] = move_as(weight_gradient(whole, b->t), b->w2);
    du = binary("gelu_bwd", binary("matmul", whole, b->w2), b->u);
    results[2] = move_as(weight_gradient(du, b->n2), b->w1);
    dn = binary("matmul", du, b->w1);
    dh = binary("add", b->dy, normalize_bwd(dn, b->h, b->r2, b->g2, &results[3]));

    whole = move(dh, b->whole);
    results[4] = move_as(weight_gradient(whole, b->joined), b->wo);
    apply("sdpa_bwd", &causal,
          (weft_tensor *[]){split_heads(binary("matmul", whole, b->wo)), b->q, b->k, b->v, b->o,
                            b->l},
          6, d, 3);
    for (int i = 0; i < 3; i++) {
        d[i] = join_heads(d[i]);
        results[5 + i] = move_as(weight_gradient(d[i], b->n1), weights[i]);
    }
    dn = binary("add", binary("matmul", d[0], b->wq), binary("matmul", d[1], b->wk));
    dn = binary("add", dn, binary("matmul", d[2], b->wv));
    results[0] = binary("add", dh, normalize_bwd(dn, b->x, b->r1, b->g1, &results[8]));
}

static void run(const struct layouts *in, weft_tensor *results[RESULTS])
{
    struct block b = {.whole = in->whole};
    weft_styles *styles;

    MUST(weft_styles_parse(in->styles, NULL, &styles));
    begin(&b, styles);
    if (in == &parallel && weft_rank(ctx) == 0) {
        print_layout(styles, "in.q", b.wq);
        print_layout(styles, "out.heads", b.wo);
        print_layout(styles, "norm1", b.g1);
    }
    results[RESULTS - 1] = forward(&b);
    backward(&b, results);
    for (int i = 0; i < RESULTS; i++)
        weft_tensor_retain(results[i]);
    while (made_count > 0)
        weft_tensor_release(&made[--made_count]);
    weft_styles_release(&styles);
}

int main(void)
{
    weft_tensor *results[RESULTS], *expected[RESULTS];
    double largest = 0;

    MUST(weft_init(NULL, &ctx));
    run(&parallel, results);
    run(&alone, expected);
    for (int i = 0; i < RESULTS; i++) {
        weft_tensor_difference_info difference = {.struct_size = sizeof difference};

        MUST(weft_tensor_compare(expected[i], results[i], NULL, NULL, &difference));
        largest = fmax(largest, difference.largest);
        weft_tensor_release(&results[i]);
        weft_tensor_release(&expected[i]);
    }
    printf("rank %d: output and gradients differ by at most %g from those of one rank\n",
           weft_rank(ctx), largest);
    weft_context_release(&ctx);
    return largest < 1e-4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
