/* attention.c - causal attention over a long sequence that the ranks share.
 *
 *     weft run -n 4 ./attention
 *
 * Every rank has the tokens of a batch, as a loader reads them.  A plan of context parallel says
 * which of them each rank keeps: the first and the last ones together, so that all ranks compute
 * about the same.  Ring attention computes the output of each rank's own tokens.  Then every rank
 * gets the output of all tokens in the order of the sequence, and compares it with one that it
 * computes alone.  The attention is computed on the host, so a CPU backend is needed. */
#include <weft/parallel.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, LENGTH = 203, HEADS = 2, DEPTH = 8 };

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static weft_context *ctx;
static weft_mesh *mesh, *here; /* all ranks along "cp"; this rank alone */

/* ---- the model: queries, keys and values of a token at a place of the sequence ---- */

enum { Q, K, V };

static float element(int which, int32_t token, int64_t place, int head, int i)
{
    return sinf((float)((which + 1) * token + (head + 1) * (i + 1)) + 0.01F * (float)place);
}

static float dot(const float *a, const float *b)
{
    float sum = 0;

    for (int i = 0; i < DEPTH; i++)
        sum += a[i] * b[i];
    return sum / sqrtf(DEPTH);
}

/* OUT of a query that sees COUNT keys, each STRIDE elements behind the one before it; the logarithm
 * of its sum is returned. */
static float attend(const float *q, const float *k, const float *v, int64_t stride, int64_t count,
                    float *out)
{
    float weights[LENGTH], most = -INFINITY, sum = 0;

    memset(out, 0, DEPTH * sizeof *out);
    for (int64_t j = 0; j < count; j++)
        most = fmaxf(most, weights[j] = dot(q, k + j * stride));
    for (int64_t j = 0; j < count; j++)
        sum += weights[j] = expf(weights[j] - most);
    for (int64_t j = 0; j < count; j++)
        for (int i = 0; i < DEPTH; i++)
            out[i] += weights[j] / sum * v[j * stride + i];
    return count > 0 ? most + logf(sum) : -INFINITY;
}

static float *row(const weft_cp_local *t, int64_t batch, int64_t head, int64_t place)
{
    return (float *)t->memory + batch * t->batch + head * t->head + place * t->sequence;
}

/* The engine's kernel: each query of the problem sees the keys up to its diagonal. */
static weft_status kernel(void *user, const weft_cp_call *c)
{
    const weft_cp_problem *p = c->problem;

    (void)user;
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t h = 0; h < c->heads; h++)
            for (int64_t i = 0; i < p->queries; i++) {
                int64_t last = p->mask == WEFT_CP_CAUSAL ? i + p->diagonal + 1 : p->keys;
                int64_t count = last < 0 ? 0 : last < p->keys ? last : p->keys;

                *row(&c->lse, b, h, i) =
                    attend(row(&c->q, b, h, i), row(&c->k, b, h, 0), row(&c->v, b, h, 0),
                           c->k.sequence, count, row(&c->out, b, h, i));
            }
    return WEFT_OK;
}

/* ---- tensors ---- */

/* A tensor that this rank has alone. */
static weft_tensor *make(const char *text)
{
    weft_tensor *tensor;
    weft_spec *spec;

    MUST(weft_spec_parse(here, text, &spec));
    MUST(weft_tensor_create(ctx, spec, NULL, &tensor));
    MUST(weft_tensor_fill(tensor, 0, NULL));
    weft_spec_release(&spec);
    return tensor;
}

/* The same for [batch, head, length, depth] or, without DEPTH, [batch, head, length]. */
static weft_tensor *make_rows(int64_t length, bool has_depth)
{
    char text[96], depth[16] = "";

    if (has_depth) snprintf(depth, sizeof depth, ",%d", DEPTH);
    snprintf(text, sizeof text, "f32[%d,%d,%lld%s] R", BATCH, HEADS, (long long)length, depth);
    return make(text);
}

/* Tensor WHICH of the LENGTH tokens of each sequence, which are at PLACES. */
static weft_tensor *project(int which, const weft_tensor *tokens, int64_t length,
                            const int64_t *places)
{
    const int32_t *token = weft_tensor_memory(tokens);
    weft_tensor *tensor = make_rows(length, true);
    float *memory = weft_tensor_memory(tensor);

    for (int b = 0; b < BATCH; b++)
        for (int h = 0; h < HEADS; h++)
            for (int64_t i = 0; i < length; i++)
                for (int d = 0; d < DEPTH; d++)
                    memory[((b * HEADS + h) * length + i) * DEPTH + d] =
                        element(which, token[b * length + i], places[i], h, d);
    return tensor;
}

/* ---- the loader ---- */

/* It reads ahead, and so it lives longer than the attention of a step. */
struct loader {
    weft_cp_plan *plan;
    int32_t coord; /* of this rank */
    int64_t length;
    int64_t places[LENGTH]; /* of this rank's tokens, in the sequence */
};

static void open_loader(struct loader *loader, const weft_cp *cp)
{
    weft_cp_info info = {.struct_size = sizeof info};
    weft_index_run run;

    MUST(weft_cp_get(cp, &info));
    loader->plan = weft_cp_plan_retain(info.plan);
    loader->length = info.length;
    loader->coord = weft_rank(ctx);
    for (int64_t at = 0; weft_cp_plan_run(loader->plan, loader->coord, at, &run); at += run.length)
        for (int64_t i = 0; i < run.length; i++)
            loader->places[at + i] = run.start + i;
}

/* The tokens of whole sequences; the same on all ranks. */
static weft_tensor *read_batch(void)
{
    char text[64];
    weft_tensor *tokens;
    int32_t *memory;

    snprintf(text, sizeof text, "i32[%d,%d] R", BATCH, LENGTH);
    tokens = make(text);
    memory = weft_tensor_memory(tokens);
    for (int32_t i = 0; i < BATCH * LENGTH; i++)
        memory[i] = i * 7919 % 101;
    return tokens;
}

/* Those of TOKENS that this rank keeps. */
static weft_tensor *keep_own(const struct loader *loader, weft_cp *cp, weft_tensor *tokens)
{
    char text[64];
    weft_tensor *own;

    snprintf(text, sizeof text, "i32[%d,%lld] R", BATCH, (long long)loader->length);
    own = make(text);
    MUST(weft_cp_shard(cp, tokens, 1, own, NULL, NULL, NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER)); /* the host reads them */
    return own;
}

/* ---- the program ---- */

/* The output of all tokens, by all ranks together. */
static weft_tensor *attend_together(weft_cp *cp, const struct loader *loader, weft_tensor *tokens)
{
    weft_tensor *own = keep_own(loader, cp, tokens), *whole = make_rows(LENGTH, true);
    weft_cp_tensors t = {.struct_size = sizeof t,
                         .q = project(Q, own, loader->length, loader->places),
                         .k = project(K, own, loader->length, loader->places),
                         .v = project(V, own, loader->length, loader->places),
                         .out = make_rows(loader->length, true),
                         .lse = make_rows(loader->length, false)};

    MUST(weft_cp_forward(cp, &t, kernel, NULL, NULL));
    MUST(weft_cp_restore(cp, t.out, 2, whole, NULL, NULL, NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    weft_tensor_release(&own);
    weft_tensor_release(&t.q);
    weft_tensor_release(&t.k);
    weft_tensor_release(&t.v);
    weft_tensor_release(&t.out);
    weft_tensor_release(&t.lse);
    return whole;
}

/* The largest difference of OUT from the output that this rank computes alone. */
static float compare(const weft_tensor *tokens, const weft_tensor *out)
{
    const float *have = weft_tensor_memory(out), *q, *k, *v;
    weft_tensor *parts[3];
    int64_t places[LENGTH];
    float largest = 0;

    for (int64_t i = 0; i < LENGTH; i++)
        places[i] = i;
    for (int which = Q; which <= V; which++)
        parts[which] = project(which, tokens, LENGTH, places);
    q = weft_tensor_memory(parts[Q]);
    k = weft_tensor_memory(parts[K]);
    v = weft_tensor_memory(parts[V]);
    for (int64_t i = 0; i < (int64_t)BATCH * HEADS * LENGTH; i++) {
        int64_t first = (i - i % LENGTH) * DEPTH;
        float want[DEPTH];

        attend(q + i * DEPTH, k + first, v + first, DEPTH, i % LENGTH + 1, want);
        for (int d = 0; d < DEPTH; d++)
            largest = fmaxf(largest, fabsf(have[i * DEPTH + d] - want[d]));
    }
    for (int which = Q; which <= V; which++)
        weft_tensor_release(&parts[which]);
    return largest;
}

int main(void)
{
    weft_cp_options causal = {.struct_size = sizeof causal,
                              .length = LENGTH,
                              .mask = WEFT_CP_CAUSAL,
                              .balance = WEFT_CP_HEAD_TAIL,
                              .batch = BATCH,
                              .heads = HEADS,
                              .depth = DEPTH,
                              .dtype = WEFT_DTYPE_F32};
    weft_mesh_options alone = {.struct_size = sizeof alone};
    weft_cp_plan_info sums = {.struct_size = sizeof sums};
    struct loader loader = {.plan = NULL};
    weft_tensor *tokens, *out;
    int32_t rank, one = 1;
    float difference;
    weft_cp *cp;

    MUST(weft_init(NULL, &ctx));
    rank = weft_rank(ctx);
    alone.ranks = &rank;
    MUST(weft_mesh_parse_for("cp=*", weft_size(ctx), &mesh));
    MUST(weft_mesh_create(1, &one, &alone, &here));
    MUST(weft_cp_create(ctx, mesh, "cp", &causal, &cp));
    open_loader(&loader, cp);
    tokens = read_batch();
    out = attend_together(cp, &loader, tokens);
    weft_cp_release(&cp);

    difference = compare(tokens, out);
    MUST(weft_cp_plan_get(loader.plan, &sums));
    printf("rank %d: %lld of %d places, %.1f %% of the work; the output differs by %g\n", rank,
           (long long)loader.length, LENGTH,
           100 * (double)weft_cp_plan_work(loader.plan, loader.coord) / (double)sums.work_total,
           (double)difference);
    weft_cp_plan_release(&loader.plan);
    weft_tensor_release(&tokens);
    weft_tensor_release(&out);
    weft_mesh_release(&mesh);
    weft_mesh_release(&here);
    weft_context_release(&ctx);
    return difference < 1e-5F ? EXIT_SUCCESS : EXIT_FAILURE;
}
