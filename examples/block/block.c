/* block.c - a transformer block, forward and backward, with data, tensor and sequence parallelism.
 *
 *     weft run -n 4 block
 *
 * Each `dp` coordinate has a part of the batch.  Each `tp` coordinate has a part of the heads and
 * of the hidden units, and outside of attention and MLP a part of the sequence: norms and sums are
 * not computed twice.  2 divides neither the hidden units nor the sequence.  Between the parts
 * there are an all-gather of the sequence and a reduce-scatter, as in Megatron.  The program states
 * the layouts of inputs and weights, and these moves; all others follow from the operators.  The
 * same program with replicas in place of parts must give the same numbers.  The kernels compute on
 * the host, so a CPU backend is needed. */
#include "kernels.h"

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
static weft_mesh *mesh;
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

static weft_tensor *normal(const char *shape, const char *placements, uint64_t seed)
{
    weft_random random = {.seed = seed};
    weft_spec *spec;
    weft_tensor *t;
    char text[64];

    snprintf(text, sizeof text, "f32%s %s", shape, placements);
    MUST(weft_spec_parse(mesh, text, &spec));
    MUST(weft_tensor_create(ctx, spec, NULL, &t));
    MUST(weft_tensor_normal(t, &random, 0, 0.5, NULL)); /* the same numbers in every layout */
    weft_spec_release(&spec);
    return keep(t);
}

/* The layouts that the program chooses. */
struct layouts {
    const char *tokens;  /* of the block's input and output: parts of the sequence */
    const char *whole;   /* where heads or hidden units are split, tokens are not */
    const char *columns; /* of weights whose outputs are split */
    const char *rows;    /* of weights whose inputs are split */
    const char *replica; /* of the norms' weights */
};

/* ---- the block ---- */

struct block {
    const struct layouts *in;
    weft_tensor *x, *g1, *g2, *wq, *wk, *wv, *wo, *w1, *w2;
    /* kept for the backward pass */
    weft_tensor *n1, *r1, *q, *k, *v, *o, *l, *joined, *h, *n2, *r2, *u, *t;
};

static void begin(struct block *b)
{
    b->x = normal("[4,5,8]", b->in->tokens, 1);
    b->g1 = normal("[8]", b->in->replica, 2);
    b->g2 = normal("[8]", b->in->replica, 3);
    b->wq = normal("[8,8]", b->in->columns, 4);
    b->wk = normal("[8,8]", b->in->columns, 5);
    b->wv = normal("[8,8]", b->in->columns, 6);
    b->wo = normal("[8,8]", b->in->rows, 7);
    b->w1 = normal("[9,8]", b->in->columns, 8);
    b->w2 = normal("[8,9]", b->in->rows, 9);
}

/* The norm of X, with the whole sequence; *R is kept for the backward pass. */
static weft_tensor *normalize(const struct block *b, weft_tensor *x, weft_tensor *g,
                              weft_tensor **r)
{
    weft_tensor *out[2];

    apply("rms_norm", &last_dim, (weft_tensor *[]){x, g}, 2, out, 2);
    *r = out[1];
    return move(out[0], b->in->whole); /* an all-gather over tp */
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
    a = move(binary("linear", b->joined, b->wo), b->in->tokens); /* a reduce-scatter over tp */
    b->h = binary("add", b->x, a);
    b->n2 = normalize(b, b->h, b->g2, &b->r2);
    b->u = binary("linear", b->n2, b->w1);
    b->t = unary("gelu", NULL, b->u);
    f = move(binary("linear", b->t, b->w2), b->in->tokens); /* a reduce-scatter over tp */
    return binary("add", b->h, f);
}

/* The gradient of normalize with regard to X; *DG is that of the weights. */
static weft_tensor *normalize_bwd(const struct block *b, weft_tensor *dn, weft_tensor *x,
                                  weft_tensor *r, weft_tensor *g, weft_tensor **dg)
{
    weft_tensor *out[2], *tokens = move(dn, b->in->tokens); /* a reduce-scatter over tp */

    apply("rms_norm_bwd", &last_dim, (weft_tensor *[]){tokens, x, r, g}, 4, out, 2);
    *dg = move(out[1], b->in->replica);
    return out[0];
}

/* RESULTS gets the gradients of the input and of the weights. */
static void backward(const struct block *b, weft_tensor *dy, weft_tensor **results)
{
    const struct layouts *in = b->in;
    weft_tensor *whole = move(dy, in->whole), *du, *dh, *dn, *d[3];

    results[1] = move(weight_gradient(whole, b->t), in->rows);
    du = binary("gelu_bwd", binary("matmul", whole, b->w2), b->u);
    results[2] = move(weight_gradient(du, b->n2), in->columns);
    dn = binary("matmul", du, b->w1);
    dh = binary("add", dy, normalize_bwd(b, dn, b->h, b->r2, b->g2, &results[3]));

    whole = move(dh, in->whole);
    results[4] = move(weight_gradient(whole, b->joined), in->rows);
    apply("sdpa_bwd", &causal,
          (weft_tensor *[]){split_heads(binary("matmul", whole, b->wo)), b->q, b->k, b->v, b->o,
                            b->l},
          6, d, 3);
    for (int i = 0; i < 3; i++) {
        d[i] = join_heads(d[i]);
        results[5 + i] = move(weight_gradient(d[i], b->n1), in->columns);
    }
    dn = binary("add", binary("matmul", d[0], b->wq), binary("matmul", d[1], b->wk));
    dn = binary("add", dn, binary("matmul", d[2], b->wv));
    results[0] = binary("add", dh, normalize_bwd(b, dn, b->x, b->r1, b->g1, &results[8]));
}

static void run(const struct layouts *in, weft_tensor *results[RESULTS])
{
    struct block b = {.in = in};

    begin(&b);
    results[RESULTS - 1] = forward(&b);
    backward(&b, normal("[4,5,8]", in->tokens, 10), results);
    for (int i = 0; i < RESULTS; i++)
        weft_tensor_retain(results[i]);
    while (made_count > 0)
        weft_tensor_release(&made[--made_count]);
}

int main(void)
{
    static const struct layouts parallel = {"S(0),S(1)", "S(0),R", "R,S(0)", "R,S(1)", "R,R"};
    static const struct layouts alone = {"R,R", "R,R", "R,R", "R,R", "R,R"};
    weft_tensor *results[RESULTS], *expected[RESULTS];
    double largest = 0;

    MUST(weft_init(NULL, &ctx));
    MUST(weft_mesh_parse("dp=2,tp=2", &mesh));
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
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return largest < 1e-4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
