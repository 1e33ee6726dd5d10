/* Queries, keys and values that are views of one packed tensor, and gradients likewise: attention
 * with them has the bits of attention with copies. */
#include "attention.h"

#include "base/base.h"
#include "support/expect.h"
#include "support/local_tensor.h"
#include "support/suite.h"

#include <string.h>

enum {
    RANKS = 2,
    LENGTH = 12,
    HELD = LENGTH / RANKS,
    BATCH = 2,
    HEADS = 4,
    KEYS = 2,
    DEPTH = 3,
    ROW = (HEADS + 2 * KEYS) * DEPTH, /* q, k and v of one place */
    GAP = 5,                          /* elements after it that belong to nobody */
    PACKED = BATCH * HELD * (ROW + GAP),
    LSE = BATCH * HEADS * HELD
};

/* Elements of 4 bytes at most. */
struct memory {
    uint32_t packed[PACKED], d_packed[PACKED], out[PACKED], d_out[PACKED];
    float lse[LSE];
};

struct layout {
    uint32_t variant, dtype;
    int32_t sequence_dim;
};

/* The part of a packed row from column FIRST on, as a tensor; without gaps if DENSE. */
static weft_tensor *view(weft_context *ctx, const struct layout *l, void *memory, int64_t first,
                         int64_t heads, bool dense)
{
    bool second = l->sequence_dim == 2;
    int64_t row = dense ? heads * DEPTH : ROW + GAP;
    int64_t shape[] = {BATCH, second ? heads : HELD, second ? HELD : heads, DEPTH};
    int64_t strides[] = {HELD * row, second ? DEPTH : row, second ? row : DEPTH, 1};
    size_t element = weft_dtype_bytes((enum weft_dtype)l->dtype);

    if (dense)
        return local_tensor(ctx, (enum weft_dtype)l->dtype, 4, shape,
                            (char *)memory + (size_t)(BATCH * HELD * first) * element, NULL);
    return local_tensor(ctx, (enum weft_dtype)l->dtype, 4, shape,
                        (char *)memory + (size_t)first * element, strides);
}

static weft_status make(weft_context *ctx, const struct layout *l, struct memory *m, bool dense,
                        weft_cp_tensors *out)
{
    const int64_t q = 0, k = HEADS * DEPTH, v = (HEADS + KEYS) * DEPTH;

    *out = (weft_cp_tensors){
        .struct_size = sizeof *out,
        .q = view(ctx, l, m->packed, q, HEADS, dense),
        .k = view(ctx, l, m->packed, k, KEYS, dense),
        .v = view(ctx, l, m->packed, v, KEYS, dense),
        .out = view(ctx, l, m->out, q, HEADS, dense),
        .lse = local_tensor(ctx, WEFT_DTYPE_F32, 3, (int64_t[]){BATCH, HEADS, HELD}, m->lse, NULL),
        .d_out = view(ctx, l, m->d_out, q, HEADS, dense),
        .d_q = view(ctx, l, m->d_packed, q, HEADS, dense),
        .d_k = view(ctx, l, m->d_packed, k, KEYS, dense),
        .d_v = view(ctx, l, m->d_packed, v, KEYS, dense)};
    EXPECT(out->q != NULL && out->k != NULL && out->v != NULL && out->out != NULL &&
           out->lse != NULL && out->d_out != NULL && out->d_q != NULL && out->d_k != NULL &&
           out->d_v != NULL);
    return WEFT_OK;
}

static void release(weft_cp_tensors *t)
{
    weft_tensor **const all[] = {&t->q,     &t->k,   &t->v,   &t->out, &t->lse,
                                 &t->d_out, &t->d_q, &t->d_k, &t->d_v};

    for (size_t i = 0; i < WF_COUNT(all); i++)
        weft_tensor_release(all[i]);
}

/* The elements of FROM, without gaps, to TO. */
static weft_status copy(weft_tensor *from, weft_tensor *to)
{
    char elements[PACKED * 4];

    EXPECT(weft_tensor_to_host(from, elements, sizeof elements, NULL) == WEFT_OK);
    EXPECT(weft_tensor_from_host(to, elements,
                                 (size_t)weft_tensor_shard(to)->elements *
                                     weft_dtype_bytes(weft_spec_dtype(weft_tensor_spec(to))),
                                 NULL) == WEFT_OK);
    return WEFT_OK;
}

static weft_status same(const char *name, weft_tensor *a, weft_tensor *b)
{
    char first[PACKED * 4] = {0}, second[PACKED * 4] = {0};

    EXPECT(weft_tensor_to_host(a, first, sizeof first, NULL) == WEFT_OK);
    EXPECT(weft_tensor_to_host(b, second, sizeof second, NULL) == WEFT_OK);
    if (memcmp(first, second, sizeof first) == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_INTERNAL, "%s differs", name);
}

static void fill(struct memory *m, uint32_t dtype, int32_t rank)
{
    memset(m, 0x5a, sizeof *m);
    for (int i = 0; i < PACKED; i++) {
        float value = (float)((i * 29 + rank * 17) % 41) / 16 - 1;

        set(m->packed, dtype, i, value);
        set(m->d_out, dtype, i, value + 1);
    }
}

/* Nothing was written between the rows of MEMORY. */
static weft_status gaps_are_kept(const struct layout *l, const uint32_t *memory, int64_t width)
{
    size_t element = weft_dtype_bytes((enum weft_dtype)l->dtype);

    for (int64_t row = 0; row < BATCH * HELD; row++)
        for (size_t i = (size_t)width * element; i < (ROW + GAP) * element; i++)
            EXPECT(((const char *)memory)[(size_t)row * (ROW + GAP) * element + i] == 0x5a);
    return WEFT_OK;
}

static weft_status run_both(weft_cp *cp, const struct layout *l, weft_cp_tensors *packed,
                            weft_cp_tensors *copies, const struct memory *m)
{
    WF_TRY(copy(packed->q, copies->q));
    WF_TRY(copy(packed->k, copies->k));
    WF_TRY(copy(packed->v, copies->v));
    WF_TRY(copy(packed->d_out, copies->d_out));
    for (int again = 0; again < 2; again++) { /* lists for strides are made once, and kept */
        EXPECT(weft_cp_forward(cp, copies, attend, NULL, NULL) == WEFT_OK);
        EXPECT(weft_cp_forward(cp, packed, attend, NULL, NULL) == WEFT_OK);
        EXPECT(weft_cp_backward(cp, copies, attend, NULL, NULL) == WEFT_OK);
        EXPECT(weft_cp_backward(cp, packed, attend, NULL, NULL) == WEFT_OK);
        WF_TRY(same("out", copies->out, packed->out));
        WF_TRY(same("lse", copies->lse, packed->lse));
        WF_TRY(same("d_q", copies->d_q, packed->d_q));
        WF_TRY(same("d_k", copies->d_k, packed->d_k));
        WF_TRY(same("d_v", copies->d_v, packed->d_v));
    }
    WF_TRY(gaps_are_kept(l, m->d_packed, ROW));
    return gaps_are_kept(l, m->out, HEADS * DEPTH);
}

static weft_status rank_main(void *argument)
{
    static _Thread_local struct memory strided, dense;
    const struct layout *l = argument;
    weft_cp_options options = cp_options(
        &(weft_cp_options){
            .mask = WEFT_CP_CAUSAL, .balance = WEFT_CP_HEAD_TAIL, .variant = l->variant},
        LENGTH, &(struct cp_sizes){BATCH, HEADS, DEPTH, KEYS, l->dtype, l->sequence_dim});
    weft_cp_tensors packed, copies;
    OWNED(weft_context) *ctx = NULL;
    OWNED(weft_mesh) *mesh = NULL;
    weft_cp *cp;

    EXPECT(weft_init(NULL, &ctx) == WEFT_OK);
    EXPECT(weft_mesh_parse("cp=2", &mesh) == WEFT_OK);
    EXPECT(weft_cp_create(ctx, mesh, "cp", &options, &cp) == WEFT_OK);
    fill(&strided, l->dtype, weft_rank(ctx));
    fill(&dense, l->dtype, 7);
    WF_TRY(make(ctx, l, &strided, false, &packed));
    WF_TRY(make(ctx, l, &dense, true, &copies));
    WF_TRY(run_both(cp, l, &packed, &copies, &strided));
    release(&packed);
    release(&copies);
    weft_cp_release(&cp);
    return WEFT_OK;
}

TEST(views_of_packed_tensors_give_the_bits_of_copies)
{
    static const uint32_t dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_BF16};

    for (uint32_t i = 0; i < 12; i++) {
        struct layout l = {i % 3, dtypes[i / 3 % 2], 1 + (int32_t)(i / 6)};
        weft_status status = weft_threads_run(RANKS, rank_main, &l);

        ck_assert_msg(status == WEFT_OK, "variant %u, dtype %u, sequence_dim %d: %s", l.variant,
                      l.dtype, l.sequence_dim, weft_last_error());
    }
}

static weft_status refuse_main(void *unused)
{
    static _Thread_local struct memory memory;
    struct layout l = {WEFT_CP_RING, WEFT_DTYPE_F32, 2};
    int64_t shape[] = {BATCH, HEADS, HELD, DEPTH}, strides[] = {HELD * 64, 8, 64, 2};
    weft_cp_options options =
        cp_options(NULL, LENGTH, &(struct cp_sizes){BATCH, HEADS, DEPTH, KEYS, WEFT_DTYPE_F32, 2});
    weft_cp_tensors t;
    OWNED(weft_context) *ctx = NULL;
    OWNED(weft_mesh) *mesh = NULL;
    weft_cp *cp;

    (void)unused;
    EXPECT(weft_init(NULL, &ctx) == WEFT_OK);
    EXPECT(weft_mesh_parse("cp=2", &mesh) == WEFT_OK);
    EXPECT(weft_cp_create(ctx, mesh, "cp", &options, &cp) == WEFT_OK);
    WF_TRY(make(ctx, &l, &memory, false, &t));
    weft_tensor_release(&t.q);
    t.q = local_tensor(ctx, WEFT_DTYPE_F32, 4, shape, memory.packed, strides);
    EXPECT(weft_cp_forward(cp, &t, attend, NULL, NULL) == WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), "the depth of weft_cp_tensors.q has stride 2") != NULL);
    weft_tensor_release(&t.q);
    t.q = weft_tensor_retain(t.d_q);
    EXPECT(weft_cp_backward(cp, &t, attend, NULL, NULL) == WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), "weft_cp_tensors.d_q, which is written") != NULL);
    release(&t);
    weft_cp_release(&cp);
    return WEFT_OK;
}

TEST(strides_that_no_kernel_takes_are_refused)
{
    weft_status status = weft_threads_run(RANKS, refuse_main, NULL);

    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
}
