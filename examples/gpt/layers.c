/* layers.c - see layers.h.  The matmuls before a communication produce rows for it, and those after
 * one consume them, so that weft_overlap can run both at once. */
#include "layers.h"

#include <math.h>
#include <string.h>

/* ---- matmuls with communication ---- */

/* A matmul of all rows.  W has OUTPUTS x INPUTS elements; DW and DB are its gradients. */
struct matmul {
    const float *w, *b, *x, *dy;
    float *y, *dx, *dw, *db, *whole;
    int inputs, outputs;
};

/* Y of the rows that have arrived; WHOLE keeps them. */
static weft_status forward_rows(void *user, const weft_overlap_rows *rows)
{
    const struct matmul *m = user;

    memcpy(m->whole + rows->first * m->inputs, rows->memory,
           (size_t)(rows->count * m->inputs) * sizeof(float));
    linear(rows->memory, m->w, m->b, m->y + rows->first * m->outputs, (int)rows->count, m->inputs,
           m->outputs);
    return WEFT_OK;
}

/* Y of the rows that are to be sent. */
static weft_status produce_rows(void *user, const weft_overlap_rows *rows)
{
    const struct matmul *m = user;

    linear(m->x + rows->first * m->inputs, m->w, NULL, rows->memory, (int)rows->count, m->inputs,
           m->outputs);
    return WEFT_OK;
}

/* DX of the rows of DY that have arrived, and their part of DW. */
static weft_status backward_rows(void *user, const weft_overlap_rows *rows)
{
    const struct matmul *m = user;

    linear_backward(m->x + rows->first * m->inputs, m->w, rows->memory,
                    m->dx + rows->first * m->inputs, m->dw, m->db, (int)rows->count, m->inputs,
                    m->outputs);
    return WEFT_OK;
}

/* DX of the rows that are to be sent, and their part of DW. */
static weft_status produce_slopes(void *user, const weft_overlap_rows *rows)
{
    const struct matmul *m = user;

    memset(rows->memory, 0, (size_t)(rows->count * m->inputs) * sizeof(float));
    linear_backward(m->x + rows->first * m->inputs, m->w, m->dy + rows->first * m->outputs,
                    rows->memory, m->dw, m->db, (int)rows->count, m->inputs, m->outputs);
    return WEFT_OK;
}

/* Rows that travel, and the operations of the matmul M for each. */
static weft_overlap_call call_of(const struct part *part, const struct matmul *m)
{
    return (weft_overlap_call){.struct_size = sizeof(weft_overlap_call),
                               .rows = part->rows,
                               .width = WIDTH,
                               .dtype = WEFT_DTYPE_F32,
                               .chunks = 2, /* such small tensors would not overlap by costs */
                               .flops = 2 * (uint64_t)m->inputs * (uint64_t)m->outputs};
}

/* Call CONSUME for all rows, of which this rank has OWN. */
static void consume_all(const struct part *part, struct matmul *m, const float *own,
                        weft_status (*consume)(void *user, const weft_overlap_rows *rows))
{
    weft_overlap_rows all = {.count = part->rows, .memory = (void *)(uintptr_t)own};
    weft_overlap_call call = call_of(part, m);

    if (part->overlap != NULL)
        MUST(weft_overlap_gather(part->overlap, &call, own, consume, m, NULL));
    else
        MUST(consume(m, &all));
}

/* Call PRODUCE for all rows, and set OWN to the sum of what all ranks of tp have produced. */
static void produce_all(const struct part *part, struct matmul *m,
                        weft_status (*produce)(void *user, const weft_overlap_rows *rows),
                        float *own)
{
    weft_overlap_rows all = {.count = part->rows, .memory = own};
    weft_overlap_call call = call_of(part, m);

    if (part->overlap != NULL) {
        MUST(weft_overlap_reduce_scatter(part->overlap, &call, produce, m, own, NULL));
        return;
    }
    MUST(produce(m, &all));
    MUST(weft_all_reduce(part->tp, own, own, (uint64_t)(part->rows * WIDTH), WEFT_DTYPE_F32,
                         WEFT_REDUCE_SUM, NULL));
}

/* ---- attention ---- */

/* Columns of Q, K and V between QKV and three tensors. */
static void split_columns(const struct part *part, const float *qkv, float *const *out)
{
    for (int r = 0; r < part->rows; r++)
        for (int i = 0; i < 3; i++)
            memcpy(out[i] + r * part->width, qkv + (r * 3 + i) * part->width,
                   (size_t)part->width * sizeof(float));
}

static void join_columns(const struct part *part, float *const *in, float *qkv)
{
    for (int r = 0; r < part->rows; r++)
        for (int i = 0; i < 3; i++)
            memcpy(qkv + (r * 3 + i) * part->width, in[i] + r * part->width,
                   (size_t)part->width * sizeof(float));
}

/* ---- layers ---- */

static float *floats(int count)
{
    float *memory = calloc((size_t)count + 1, sizeof *memory);

    if (memory == NULL) abort();
    return memory;
}

struct activations activations_create(const struct part *part)
{
    int own = part->own * WIDTH, all = part->rows * WIDTH, heads = part->rows * part->width;
    struct activations a = {.x = floats(own),
                            .middle = floats(own),
                            .normal1 = floats(all),
                            .normal2 = floats(all),
                            .q = floats(heads),
                            .k = floats(heads),
                            .v = floats(heads),
                            .mixed = floats(heads),
                            .lse = floats(heads / HEAD),
                            .up = floats(part->rows * part->hidden),
                            .bent = floats(part->rows * part->hidden)};

    return a;
}

void activations_free(struct activations *a)
{
    float *const all[] = {a->x, a->middle, a->normal1, a->normal2, a->q,   a->k,
                          a->v, a->mixed,  a->lse,     a->up,      a->bent};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* TO = FROM + BIAS + SUM for the own rows. */
static void add_rows(const struct part *part, const float *from, const float *bias,
                     const float *sum, float *to)
{
    for (int i = 0; i < part->own * WIDTH; i++)
        to[i] = from[i] + bias[i % WIDTH] + sum[i];
}

void layer_forward_part(const struct part *part, const float *const *p, struct activations *a,
                        float *y)
{
    float *normal = floats(part->own * WIDTH), *sum = floats(part->own * WIDTH);
    float *qkv = floats(part->rows * 3 * part->width);
    weft_cp_tensors t = {sizeof t, a->q, a->k, a->v, a->mixed, a->lse, NULL, NULL, NULL, NULL};

    norm(a->x, p[NORM1], p[SHIFT1], normal, part->own);
    consume_all(part,
                &(struct matmul){.w = p[QKV],
                                 .b = p[QKV_BIAS],
                                 .y = qkv,
                                 .whole = a->normal1,
                                 .inputs = WIDTH,
                                 .outputs = 3 * part->width},
                normal, forward_rows);
    split_columns(part, qkv, (float *const[]){a->q, a->k, a->v});
    MUST(weft_cp_forward(part->cp, &t, attend_problem, NULL, NULL));
    produce_all(
        part, &(struct matmul){.w = p[OUT], .x = a->mixed, .inputs = part->width, .outputs = WIDTH},
        produce_rows, sum);
    add_rows(part, a->x, p[OUT_BIAS], sum, a->middle);
    norm(a->middle, p[NORM2], p[SHIFT2], normal, part->own);
    consume_all(part,
                &(struct matmul){.w = p[UP],
                                 .b = p[UP_BIAS],
                                 .y = a->up,
                                 .whole = a->normal2,
                                 .inputs = WIDTH,
                                 .outputs = part->hidden},
                normal, forward_rows);
    for (int i = 0; i < part->rows * part->hidden; i++)
        a->bent[i] = gelu(a->up[i]);
    produce_all(
        part,
        &(struct matmul){.w = p[DOWN], .x = a->bent, .inputs = part->hidden, .outputs = WIDTH},
        produce_rows, sum);
    add_rows(part, a->middle, p[DOWN_BIAS], sum, y);
    free(normal);
    free(sum);
    free(qkv);
}

static void add_bias(const struct part *part, const float *slope, float *db)
{
    for (int i = 0; i < part->own * WIDTH; i++)
        db[i % WIDTH] += slope[i];
}

/* The slope of the input of the hidden layer is added to SLOPE. */
static void hidden_backward(const struct part *part, const float *const *p, float *const *g,
                            const struct activations *a, float *slope)
{
    float *bent = floats(part->rows * part->hidden), *normal = floats(part->own * WIDTH);

    add_bias(part, slope, g[DOWN_BIAS]);
    consume_all(part,
                &(struct matmul){.w = p[DOWN],
                                 .x = a->bent,
                                 .dx = bent,
                                 .dw = g[DOWN],
                                 .inputs = part->hidden,
                                 .outputs = WIDTH},
                slope, backward_rows);
    for (int i = 0; i < part->rows * part->hidden; i++)
        bent[i] *= gelu_slope(a->up[i]);
    produce_all(part,
                &(struct matmul){.w = p[UP],
                                 .x = a->normal2,
                                 .dy = bent,
                                 .dw = g[UP],
                                 .db = g[UP_BIAS],
                                 .inputs = WIDTH,
                                 .outputs = part->hidden},
                produce_slopes, normal);
    norm_backward(a->middle, p[NORM2], normal, slope, g[NORM2], g[SHIFT2], part->own);
    free(bent);
    free(normal);
}

void layer_backward_part(const struct part *part, const float *const *p, float *const *g,
                         const struct activations *a, float *slope)
{
    int heads = part->rows * part->width;
    float *mixed = floats(heads), *qkv = floats(3 * heads), *normal = floats(part->own * WIDTH);
    float *d[3] = {floats(heads), floats(heads), floats(heads)};
    weft_cp_tensors t = {sizeof t, a->q, a->k, a->v, a->mixed, a->lse, mixed, d[0], d[1], d[2]};

    hidden_backward(part, p, g, a, slope);
    add_bias(part, slope, g[OUT_BIAS]);
    consume_all(part,
                &(struct matmul){.w = p[OUT],
                                 .x = a->mixed,
                                 .dx = mixed,
                                 .dw = g[OUT],
                                 .inputs = part->width,
                                 .outputs = WIDTH},
                slope, backward_rows);
    MUST(weft_cp_backward(part->cp, &t, attend_problem, NULL, NULL));
    join_columns(part, d, qkv);
    produce_all(part,
                &(struct matmul){.w = p[QKV],
                                 .x = a->normal1,
                                 .dy = qkv,
                                 .dw = g[QKV],
                                 .db = g[QKV_BIAS],
                                 .inputs = WIDTH,
                                 .outputs = 3 * part->width},
                produce_slopes, normal);
    norm_backward(a->x, p[NORM1], normal, slope, g[NORM1], g[SHIFT1], part->own);
    for (int i = 0; i < 3; i++)
        free(d[i]);
    free(mixed);
    free(qkv);
    free(normal);
}
