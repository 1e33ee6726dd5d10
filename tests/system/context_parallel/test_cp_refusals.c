/* Calls of context parallel that are refused. */
#include "rank.h"

TEST_ON_RANKS(RANKS, wrong_sizes_are_refused_on_all_ranks)
{
    static _Thread_local struct rank r;
    weft_cp *none = NULL;
    int32_t odd;

    WF_TRY(join(&r, OPTIONS(.variant = WEFT_CP_HEADS)));
    odd = weft_rank(r.ctx) == 1;
    EXPECT(
        refused(create(&r, SIZES_OF(1, 6, 2, 4, WEFT_DTYPE_F32, 0), &none), WEFT_ERR_INVALID,
                "6 heads and 2 key heads do not divide among 3 ranks, as the variant HEADS needs; "
                "RING and GATHER"));
    EXPECT(refused(create(&r, SIZES_OF(1, 6, 4, 4, WEFT_DTYPE_F32, 0), &none), WEFT_ERR_INVALID,
                   "must divide heads"));
    EXPECT(refused(create(&r, SIZES_OF(1, 6, 3, 4, WEFT_DTYPE_I32, 0), &none), WEFT_ERR_INVALID,
                   "weft_cp_options.dtype is i32"));
    EXPECT(refused(create(&r, SIZES_OF(1, 6, 3, 4, WEFT_DTYPE_F32, 3), &none), WEFT_ERR_INVALID,
                   "weft_cp_options.sequence_dim is 3"));
    EXPECT(refused(create(&r, SIZES_OF(INT64_MAX / 2, 6, 3, 4, WEFT_DTYPE_F32, 0), &none),
                   WEFT_ERR_INVALID,
                   "batch x heads x depth is at least 9223372036854775807; it must be below"));
    EXPECT(refused(create(&r, SIZES_OF(1 << 25, 6, 3, 4, WEFT_DTYPE_F32, 0), &none),
                   WEFT_ERR_INVALID, "batch x heads x depth is 805306368; it must be below 2^27"));
    EXPECT(refused(create(&r, SIZES_OF(1, 6, 3, odd ? 8 : 4, WEFT_DTYPE_F32, 0), &none),
                   WEFT_ERR_MISMATCH, "differ in depth: 4 and 8"));
    EXPECT(refused(create(&r, SIZES_OF(1, odd ? 0 : 6, 3, 4, WEFT_DTYPE_F32, 0), &none),
                   WEFT_ERR_INVALID, "heads 0"));
    r.options = *OPTIONS(.mask = (uint32_t)odd);
    EXPECT(refused(create(&r, SIZES, &none), WEFT_ERR_MISMATCH, "differ in mask: FULL and CAUSAL"));
    EXPECT(none == NULL);
    return leave(&r);
}

/* Shard or restore between f32[WHOLE,2] and f32[PART,2]. */
static weft_status copy_rows(struct rank *r, bool restore, int64_t whole, int64_t part, int32_t dim,
                             float *from, float *to)
{
    weft_tensor *source = local_rows(r->ctx, WEFT_DTYPE_F32, restore ? part : whole, 2, from);
    weft_tensor *target = local_rows(r->ctx, WEFT_DTYPE_F32, restore ? whole : part, 2, to);
    weft_status status;

    EXPECT(source != NULL && target != NULL);
    status =
        (restore ? weft_cp_restore : weft_cp_shard)(r->cp, source, dim, target, NULL, NULL, NULL);
    weft_tensor_release(&source);
    weft_tensor_release(&target);
    return status;
}

/* The memory for the whole buffer of a restore is too small, or overlaps a shard. */
static weft_status refuse_staging(struct rank *r)
{
    enum { PART = LENGTH / RANKS };
    weft_cp_copy_options options = {.struct_size = sizeof options, .staging = r->q};
    weft_tensor *part = local_rows(r->ctx, WEFT_DTYPE_F32, PART, 2, r->q);
    weft_tensor *whole = local_rows(r->ctx, WEFT_DTYPE_F32, LENGTH, 2, r->k);

    options.staging_bytes = LENGTH * 2 * sizeof(float) - 1;
    EXPECT(refused(weft_cp_restore(r->cp, part, 0, whole, &options, NULL, NULL), WEFT_ERR_INVALID,
                   "staging has 191 bytes, but the whole buffer has 192"));
    options.staging_bytes++;
    EXPECT(refused(weft_cp_restore(r->cp, part, 0, whole, &options, NULL, NULL), WEFT_ERR_INVALID,
                   "overlaps source or target"));
    options.staging = r->k;
    EXPECT(refused(weft_cp_restore(r->cp, part, 0, whole, &options, NULL, NULL), WEFT_ERR_INVALID,
                   "overlaps source or target"));
    weft_tensor_release(&part);
    weft_tensor_release(&whole);
    return WEFT_OK;
}

static weft_status call_buffers(struct rank *r)
{
    enum { PART = LENGTH / RANKS };
    weft_tensor *whole, *half;

    EXPECT(refused(copy_rows(r, false, LENGTH + 1, PART, 0, r->q, r->k), WEFT_ERR_INVALID,
                   "size 25 and the part 8, but the sequence of the plan has length 24"));
    EXPECT(refused(copy_rows(r, false, LENGTH, PART, 2, r->q, r->k), WEFT_ERR_INVALID,
                   "dim is 2, but the buffer has 2 dimensions"));
    EXPECT(refused(copy_rows(r, false, LENGTH, PART, 0, r->q, r->q), WEFT_ERR_INVALID, "overlap"));
    WF_TRY(refuse_staging(r));
    EXPECT(refused(weft_cp_restore(r->cp, NULL, 0, r->tensors.q, NULL, NULL, NULL),
                   WEFT_ERR_INVALID, "source is NULL"));
    EXPECT(refused(weft_cp_shard(r->cp, r->tensors.q, 0, r->tensors.lse, NULL, NULL, NULL),
                   WEFT_ERR_INVALID, "source has 4 dimensions and target 3"));
    whole = local_rows(r->ctx, WEFT_DTYPE_F32, LENGTH, 2, r->q);
    half = local_rows(r->ctx, WEFT_DTYPE_F16, PART, 2, r->k);
    EXPECT(whole != NULL && half != NULL);
    EXPECT(refused(weft_cp_shard(r->cp, whole, 0, half, NULL, NULL, NULL), WEFT_ERR_INVALID,
                   "weft_cp_shard: source has dtype f32 and target f16; they must be the same"));
    weft_tensor_release(&whole);
    weft_tensor_release(&half);
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, wrong_calls_are_refused)
{
    static _Thread_local struct rank r;
    weft_tensor *kept;

    WF_TRY(join(&r, NULL));
    EXPECT(create(&r, SIZES, &r.cp) == WEFT_OK);
    kept = r.tensors.k;
    r.tensors.k = NULL;
    EXPECT(refused(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "weft_cp_tensors.k is NULL"));
    r.tensors.k = r.tensors.q;
    EXPECT(refused(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "weft_cp_tensors.k is f32[1,6,8,4]; it must be f32[1,3,8,4]"));
    r.tensors.k = kept;
    kept = r.tensors.lse;
    r.tensors.lse = r.tensors.v;
    EXPECT(refused(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "it must be f32[1,6,8]"));
    r.tensors.lse = kept;
    kept = r.tensors.out;
    r.tensors.out = r.tensors.q; /* in place */
    EXPECT(refused(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "weft_cp_tensors.out, which is written"));
    r.tensors.out = kept;
    kept = r.tensors.d_v;
    r.tensors.d_v = r.tensors.d_k;
    EXPECT(refused(weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "overlap"));
    r.tensors.d_v = NULL;
    EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    EXPECT(refused(weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "weft_cp_tensors.d_v is NULL"));
    r.tensors.d_v = kept;
    WF_TRY(call_buffers(&r));
    weft_context_release(&r.ctx);
    EXPECT(refused(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "the attention ended with it"));
    return leave(&r);
}

TEST(simulated_ranks_have_plans_only)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = 4};
    weft_context *ctx;
    weft_mesh *mesh;
    weft_cp_plan *plan;
    weft_cp_options of_cp = cp_options(NULL, 8, SIZES);
    weft_cp *cp = NULL;

    ck_assert_int_eq(weft_init(&options, &ctx), WEFT_OK);
    ck_assert_int_eq(weft_mesh_parse("4", &mesh), WEFT_OK);
    ck_assert_int_eq(weft_cp_plan_create(mesh, "0", &of_cp, &plan), WEFT_OK);
    ck_assert_int_eq(weft_cp_create(ctx, mesh, "0", &of_cp, &cp), WEFT_ERR_UNSUPPORTED);
    weft_cp_plan_release(&plan);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
}
