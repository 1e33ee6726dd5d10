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

/* The operations of the matmul M for each row that travels. */
static weft_overlap_call_options options_of(const struct matmul *m)
{
    return (weft_overlap_call_options){.struct_size = sizeof(weft_overlap_call_options),
                                       .chunks = 2, /* by costs such small tensors do not overlap */
                                       .flops = 2 * (uint64_t)m->inputs * (uint64_t)m->outputs};
}

/* This rank's memory as a tensor of layout SPEC.  STRIDES may be NULL. */
static weft_tensor *wrap(const weft_spec *spec, const float *memory, const int64_t *strides)
{
    weft_tensor_options options = {.struct_size = sizeof options, .strides = strides};
    weft_tensor *tensor;

    MUST(weft_tensor_wrap(ctx, spec, (void *)(uintptr_t)memory, &options, &tensor));
    return tensor;
}

/* Call CONSUME for all rows, of which this rank has OWN. */
static void consume_all(const struct part *part, struct matmul *m, const float *own,
                        weft_overlap_kernel consume)
{
    weft_overlap_rows all = {.count = part->rows, .memory = (void *)(uintptr_t)own};
    weft_overlap_call_options options = options_of(m);
    weft_tensor *tensor;

    if (part->overlap == NULL) {
        MUST(consume(m, &all));
        return;
    }
    tensor = wrap(part->shared, own, NULL);
    MUST(weft_overlap_gather(part->overlap, tensor, &options, consume, m, NULL));
    weft_tensor_release(&tensor);
}

/* Call PRODUCE for all rows, and set OWN to the sum of what all ranks of tp have produced. */
static void produce_all(const struct part *part, struct matmul *m,
                        weft_status (*produce)(void *user, const weft_overlap_rows *rows),
                        float *own)
{
    weft_overlap_rows all = {.count = part->rows, .memory = own};
    weft_overlap_call_options options = options_of(m);
    weft_tensor *tensor;

    if (part->overlap == NULL) {
        MUST(produce(m, &all));
        MUST(weft_all_reduce(part->tp, own, own, (uint64_t)(part->rows * sizes.width),
                             WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
        return;
    }
    tensor = wrap(part->shared, own, NULL);
    MUST(weft_overlap_reduce_scatter(part->overlap, &options, produce, m, tensor, NULL));
    weft_tensor_release(&tensor);
}

/* ---- attention ---- */

/* Tensor INDEX of the three that are packed in each row of QKV. */
static weft_tensor *unpack(const struct part *part, const float *qkv, int index)
{
    int64_t row = 3 * part->width, strides[] = {part->places * row, row, sizes.head, 1};

    return wrap(part->heads, qkv + index * part->width, strides);
}

/* The attention of A or, if D_QKV is not NULL, its gradients from the slope D_MIXED. */
static void attend(const struct part *part, const struct activations *a, const float *d_mixed,
                   float *d_qkv)
{
    weft_cp_tensors t = {.struct_size = sizeof t,
                         .q = unpack(part, a->qkv, 0),
                         .k = unpack(part, a->qkv, 1),
                         .v = unpack(part, a->qkv, 2),
                         .out = wrap(part->heads, a->mixed, NULL),
                         .lse = wrap(part->logarithms, a->lse, NULL)};
    weft_tensor **const all[] = {&t.q,     &t.k,   &t.v,   &t.out, &t.lse,
                                 &t.d_out, &t.d_q, &t.d_k, &t.d_v};

    if (d_qkv == NULL) {
        MUST(weft_cp_forward(part->cp, &t, attend_problem, NULL, NULL));
    } else {
        t.d_out = wrap(part->heads, d_mixed, NULL);
        t.d_q = unpack(part, d_qkv, 0);
        t.d_k = unpack(part, d_qkv, 1);
        t.d_v = unpack(part, d_qkv, 2);
        MUST(weft_cp_backward(part->cp, &t, attend_problem, NULL, NULL));
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        weft_tensor_release(all[i]);
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
    int own = part->own * sizes.width, all = part->rows * sizes.width,
        heads = part->rows * part->width;
    struct activations a = {.x = floats(own),
                            .middle = floats(own),
                            .normal1 = floats(all),
                            .normal2 = floats(all),
                            .qkv = floats(3 * heads),
                            .mixed = floats(heads),
                            .lse = floats(heads / sizes.head),
                            .up = floats(part->rows * part->hidden),
                            .bent = floats(part->rows * part->hidden)};

    return a;
}

void activations_free(struct activations *a)
{
    float *const all[] = {a->x,     a->middle, a->normal1, a->normal2, a->qkv,
                          a->mixed, a->lse,    a->up,      a->bent};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* TO = FROM + BIAS + SUM for the own rows. */
static void add_rows(const struct part *part, const float *from, const float *bias,
                     const float *sum, float *to)
{
    for (int i = 0; i < part->own * sizes.width; i++)
        to[i] = from[i] + bias[i % sizes.width] + sum[i];
}

void layer_forward_part(const struct part *part, const float *const *p, struct activations *a,
                        float *y)
{
    float *normal = floats(part->own * sizes.width), *sum = floats(part->own * sizes.width);

    norm(a->x, p[NORM1], p[SHIFT1], normal, part->own);
    consume_all(part,
                &(struct matmul){.w = p[QKV],
                                 .b = p[QKV_BIAS],
                                 .y = a->qkv,
                                 .whole = a->normal1,
                                 .inputs = sizes.width,
                                 .outputs = 3 * part->width},
                normal, forward_rows);
    attend(part, a, NULL, NULL);
    produce_all(
        part,
        &(struct matmul){.w = p[OUT], .x = a->mixed, .inputs = part->width, .outputs = sizes.width},
        produce_rows, sum);
    add_rows(part, a->x, p[OUT_BIAS], sum, a->middle);
    norm(a->middle, p[NORM2], p[SHIFT2], normal, part->own);
    consume_all(part,
                &(struct matmul){.w = p[UP],
                                 .b = p[UP_BIAS],
                                 .y = a->up,
                                 .whole = a->normal2,
                                 .inputs = sizes.width,
                                 .outputs = part->hidden},
                normal, forward_rows);
    for (int i = 0; i < part->rows * part->hidden; i++)
        a->bent[i] = gelu(a->up[i]);
    produce_all(part,
                &(struct matmul){
                    .w = p[DOWN], .x = a->bent, .inputs = part->hidden, .outputs = sizes.width},
                produce_rows, sum);
    add_rows(part, a->middle, p[DOWN_BIAS], sum, y);
    free(normal);
    free(sum);
}

static void add_bias(const struct part *part, const float *slope, float *db)
{
    for (int i = 0; i < part->own * sizes.width; i++)
        db[i % sizes.width] += slope[i];
}

/* The slope of the input of the hidden layer is added to SLOPE. */
static void hidden_backward(const struct part *part, const float *const *p, float *const *g,
                            const struct activations *a, float *slope)
{
    float *bent = floats(part->rows * part->hidden), *normal = floats(part->own * sizes.width);

    add_bias(part, slope, g[DOWN_BIAS]);
    consume_all(part,
                &(struct matmul){.w = p[DOWN],
                                 .x = a->bent,
                                 .dx = bent,
                                 .dw = g[DOWN],
                                 .inputs = part->hidden,
                                 .outputs = sizes.width},
                slope, backward_rows);
    for (int i = 0; i < part->rows * part->hidden; i++)
        bent[i] *= gelu_slope(a->up[i]);
    produce_all(part,
                &(struct matmul){.w = p[UP],
                                 .x = a->normal2,
                                 .dy = bent,
                                 .dw = g[UP],
                                 .db = g[UP_BIAS],
                                 .inputs = sizes.width,
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
    float *mixed = floats(heads), *qkv = floats(3 * heads),
          *normal = floats(part->own * sizes.width);

    hidden_backward(part, p, g, a, slope);
    add_bias(part, slope, g[OUT_BIAS]);
    consume_all(part,
                &(struct matmul){.w = p[OUT],
                                 .x = a->mixed,
                                 .dx = mixed,
                                 .dw = g[OUT],
                                 .inputs = part->width,
                                 .outputs = sizes.width},
                slope, backward_rows);
    attend(part, a, mixed, qkv);
    produce_all(part,
                &(struct matmul){.w = p[QKV],
                                 .x = a->normal1,
                                 .dy = qkv,
                                 .dw = g[QKV],
                                 .db = g[QKV_BIAS],
                                 .inputs = sizes.width,
                                 .outputs = 3 * part->width},
                produce_slopes, normal);
    norm_backward(a->x, p[NORM1], normal, slope, g[NORM1], g[SHIFT1], part->own);
    free(mixed);
    free(qkv);
    free(normal);
}
