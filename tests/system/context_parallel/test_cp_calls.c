/* What calls of context parallel cost and when they communicate, and how they fail. */
#include "attention.h"

#include "parallel/context/cp.h"
#include "support/expect.h"
#include "support/peek.h"
#include "support/suite.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { RANKS = 3, LENGTH = 24, DEPTH = 4, MOST = LENGTH * 6 * DEPTH };

#define OPTIONS(...) (&(weft_cp_options){.struct_size = sizeof(weft_cp_options), __VA_ARGS__})
/* Sizes without a default. */
#define SIZES_OF(batch, heads, key_heads, depth, dtype, dim)                                       \
    (&(weft_cp_sizes){sizeof(weft_cp_sizes), batch, heads, depth, key_heads, dtype, dim})
#define SIZES SIZES_OF(1, 6, 3, DEPTH, WEFT_DTYPE_F32, 0)

/* One rank of a job of RANKS ranks on one axis. */
struct rank {
    weft_context *ctx;
    weft_mesh *mesh;
    weft_cp_plan *plan;
    weft_cp *cp;
    float q[MOST], k[MOST], v[MOST], out[MOST], lse[MOST], d_out[MOST], d_q[MOST], d_k[MOST],
        d_v[MOST];
    weft_cp_tensors tensors;
};

static weft_status join(struct rank *r, const weft_cp_options *options)
{
    char mesh[16];

    memset(r, 0, sizeof *r);
    EXPECT(weft_init(NULL, &r->ctx) == WEFT_OK);
    snprintf(mesh, sizeof mesh, "cp=%d", weft_size(r->ctx));
    EXPECT(weft_mesh_parse(mesh, &r->mesh) == WEFT_OK);
    EXPECT(weft_cp_plan_create(r->mesh, "cp", LENGTH, options, &r->plan) == WEFT_OK);
    r->tensors = (weft_cp_tensors){sizeof r->tensors, r->q,   r->k,   r->v,  r->out, r->lse,
                                   r->d_out,          r->d_q, r->d_k, r->d_v};
    for (int i = 0; i < MOST; i++)
        r->k[i] = (float)weft_rank(r->ctx) + 1;
    return WEFT_OK;
}

static weft_status leave(struct rank *r)
{
    weft_cp_release(&r->cp);
    weft_cp_plan_release(&r->plan);
    weft_mesh_release(&r->mesh);
    weft_context_release(&r->ctx);
    return WEFT_OK;
}

static void run_ranks(weft_status (*rank_main)(void *), void *argument)
{
    weft_status status = weft_threads_run(RANKS, rank_main, argument);

    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
}

/* ---- counts ---- */

struct expected {
    uint32_t variant;
    uint64_t operations[2][WEFT_OP_COUNT]; /* forward, backward */
};

/* gloo-cpu allocates for the call groups of a ring. */
static weft_status count_pass(struct rank *r, bool backward, weft_counts *counts)
{
    bool is_ring = r->cp->plan->variant == WEFT_CP_RING;
    uint64_t made;

    *counts = (weft_counts){.struct_size = sizeof *counts};
    EXPECT(weft_counts_begin(r->ctx, counts) == WEFT_OK);
    wf_mem_fail_at(0);
    EXPECT((backward ? weft_cp_backward : weft_cp_forward)(r->cp, &r->tensors, attend, NULL,
                                                           NULL) == WEFT_OK);
    made = wf_mem_made();
    EXPECT(weft_counts_end(r->ctx, counts) == WEFT_OK);
    if (made == 0 || is_ring) return WEFT_OK;
    return wf_fail(WEFT_ERR_INTERNAL, "%llu allocations", (unsigned long long)made);
}

static weft_status count_main(void *argument)
{
    const struct expected *expected = argument;
    static _Thread_local struct rank r;

    WF_TRY(join(&r, OPTIONS(.mask = WEFT_CP_CAUSAL, .balance = WEFT_CP_HEAD_TAIL,
                            .variant = expected->variant)));
    EXPECT(weft_cp_create(r.ctx, r.plan, SIZES, &r.cp) == WEFT_OK);
    EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    EXPECT(weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    for (int backward = 0; backward < 2; backward++) {
        weft_counts counts;

        WF_TRY(count_pass(&r, backward, &counts));
        for (int i = 0; i < WEFT_OP_COUNT; i++)
            if (counts.operations[i] != expected->operations[backward][i])
                return wf_fail(WEFT_ERR_INTERNAL, "pass %d: %llu operations of kind %d", backward,
                               (unsigned long long)counts.operations[i], i);
    }
    return leave(&r);
}

START_TEST(passes_communicate_as_stated_and_allocate_nothing)
{
    struct expected ring = {WEFT_CP_RING, {{0}}}, gather = {WEFT_CP_GATHER, {{0}}},
                    heads = {WEFT_CP_HEADS, {{0}}};

    ring.operations[0][WEFT_OP_SEND] = ring.operations[0][WEFT_OP_RECEIVE] = 2 * (RANKS - 1);
    ring.operations[1][WEFT_OP_SEND] = ring.operations[1][WEFT_OP_RECEIVE] =
        2 * (RANKS - 1) + RANKS;
    gather.operations[0][WEFT_OP_ALL_GATHER_V] = gather.operations[1][WEFT_OP_ALL_GATHER_V] = 1;
    gather.operations[1][WEFT_OP_REDUCE_SCATTER_V] = 1;
    heads.operations[0][WEFT_OP_ALL_TO_ALL_V] = heads.operations[1][WEFT_OP_ALL_TO_ALL_V] = 2;
    run_ranks(count_main, &ring);
    run_ranks(count_main, &gather);
    run_ranks(count_main, &heads);
}
END_TEST

/* ---- overlap ---- */

/* The kernel of the first step returns only when the keys of the next step have arrived. */
static weft_status wait_for_keys(void *user, const weft_cp_call *call)
{
    const struct rank *r = user;
    const float *next = r->cp->pieces[4]; /* after out, lse, d_k and d_v */
    float expected = (float)((weft_rank(r->ctx) + RANKS - 1) % RANKS) + 1;
    time_t begin = time(NULL);

    while (call->problem->source == weft_rank(r->ctx) && peek(next) != expected) {
        if (time(NULL) - begin > 300) return weft_fail(WEFT_ERR_TIMEOUT, "no keys arrived");
        sched_yield();
    }
    return attend(NULL, call);
}

static weft_status overlap_main(void *unused)
{
    static _Thread_local struct rank r;

    (void)unused;
    WF_TRY(join(&r, NULL));
    EXPECT(weft_cp_create(r.ctx, r.plan, SIZES, &r.cp) == WEFT_OK);
    EXPECT(weft_cp_forward(r.cp, &r.tensors, wait_for_keys, &r, NULL) == WEFT_OK);
    return leave(&r);
}

START_TEST(keys_travel_while_the_kernel_runs)
{
    run_ranks(overlap_main, NULL);
}
END_TEST

/* ---- masks without work ---- */

static weft_status empty_main(void *unused)
{
    static _Thread_local struct rank r;

    (void)unused;
    WF_TRY(join(&r, OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER, .block_size = 4)));
    EXPECT(weft_cp_create(r.ctx, r.plan, SIZES, &r.cp) == WEFT_OK);
    r.out[0] = r.d_q[0] = r.d_k[0] = 1;
    EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    EXPECT(weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    EXPECT(r.out[0] == 0 && r.lse[0] == -INFINITY && r.d_q[0] == 0 && r.d_k[0] == 0);
    return leave(&r);
}

START_TEST(a_mask_without_blocks_gives_zero)
{
    run_ranks(empty_main, NULL);
}
END_TEST

/* ---- work on the caller's streams ---- */

static atomic_bool may_go_on, is_releasing;

static void wait_until_it_may(void *unused)
{
    (void)unused;
    while (!atomic_load(&may_go_on))
        sched_yield();
}

/* Let the others reach the call that they make next. */
static void pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
}

/* The streams of rank 0 go on only when it waits for them in weft_cp_release. */
static weft_status release_main(void *unused)
{
    static _Thread_local struct rank r;
    weft_stream *streams[2] = {NULL};
    int64_t shape = LENGTH;

    (void)unused;
    WF_TRY(join(&r, NULL));
    EXPECT(weft_cp_create(r.ctx, r.plan, SIZES, &r.cp) == WEFT_OK);
    if (weft_rank(r.ctx) != 0) {
        while (!atomic_load(&is_releasing))
            sched_yield();
        pause_shortly();
        atomic_store(&may_go_on, true);
        return leave(&r);
    }
    for (int i = 0; i < 2; i++) {
        EXPECT(weft_stream_create(r.ctx, &streams[i]) == WEFT_OK);
        EXPECT(r.ctx->plugin->device->stream_call(r.ctx->device, streams[i], wait_until_it_may,
                                                  NULL) == WEFT_OK);
        EXPECT(weft_cp_shard(r.cp, WEFT_DTYPE_F32, 1, &shape, 0, r.q, i == 0 ? r.out : r.lse,
                             streams[i]) == WEFT_OK);
    }
    atomic_store(&is_releasing, true);
    weft_cp_release(&r.cp);
    for (int i = 0; i < 2; i++) {
        bool is_complete = weft_stream_test(r.ctx, streams[i]) == WEFT_OK;

        atomic_store(&may_go_on, true);
        weft_stream_release(r.ctx, &streams[i]);
        EXPECT(is_complete);
    }
    return leave(&r);
}

START_TEST(a_release_waits_for_the_streams_of_the_caller)
{
    atomic_store(&may_go_on, false);
    atomic_store(&is_releasing, false);
    run_ranks(release_main, NULL);
}
END_TEST

/* Rank 0 computes nothing, and the others come later. */
static weft_status complete_main(void *unused)
{
    static _Thread_local struct rank r;
    weft_stream *stream = NULL;
    bool is_complete;

    (void)unused;
    WF_TRY(join(&r, OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER, .block_size = 4)));
    EXPECT(weft_cp_create(r.ctx, r.plan, SIZES, &r.cp) == WEFT_OK);
    EXPECT(weft_stream_create(r.ctx, &stream) == WEFT_OK);
    if (weft_rank(r.ctx) != 0) pause_shortly();
    EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, stream) == WEFT_OK);
    is_complete = weft_stream_test(r.ctx, stream) == WEFT_OK;
    weft_stream_release(r.ctx, &stream);
    EXPECT(is_complete);
    return leave(&r);
}

START_TEST(a_pass_without_problems_is_complete_when_it_returns)
{
    run_ranks(complete_main, NULL);
}
END_TEST

/* ---- refusals ---- */

static bool refused(weft_status got, weft_status wanted, const char *text)
{
    return got == wanted && strstr(weft_last_error(), text) != NULL;
}

static weft_status create_main(void *unused)
{
    static _Thread_local struct rank r;
    weft_cp *none = NULL;
    int32_t odd;

    (void)unused;
    WF_TRY(join(&r, OPTIONS(.variant = WEFT_CP_HEADS)));
    odd = weft_rank(r.ctx) == 1;
    EXPECT(
        refused(weft_cp_create(r.ctx, r.plan, SIZES_OF(1, 6, 2, 4, WEFT_DTYPE_F32, 0), &none),
                WEFT_ERR_INVALID,
                "6 heads and 2 key heads do not divide among 3 ranks, as the variant HEADS needs; "
                "RING and GATHER"));
    EXPECT(refused(weft_cp_create(r.ctx, r.plan, SIZES_OF(1, 6, 4, 4, WEFT_DTYPE_F32, 0), &none),
                   WEFT_ERR_INVALID, "must divide heads"));
    EXPECT(refused(weft_cp_create(r.ctx, r.plan, SIZES_OF(1, 6, 3, 4, WEFT_DTYPE_I32, 0), &none),
                   WEFT_ERR_INVALID, "dtype i32"));
    EXPECT(refused(weft_cp_create(r.ctx, r.plan, SIZES_OF(1, 6, 3, 4, WEFT_DTYPE_F32, 3), &none),
                   WEFT_ERR_INVALID, "sequence_dim is 3"));
    EXPECT(refused(
        weft_cp_create(r.ctx, r.plan, SIZES_OF(INT64_MAX / 2, 6, 3, 4, WEFT_DTYPE_F32, 0), &none),
        WEFT_ERR_INVALID,
        "batch x heads x depth is at least 9223372036854775807; it must be below"));
    EXPECT(
        refused(weft_cp_create(r.ctx, r.plan, SIZES_OF(1 << 25, 6, 3, 4, WEFT_DTYPE_F32, 0), &none),
                WEFT_ERR_INVALID, "batch x heads x depth is 805306368; it must be below 2^27"));
    EXPECT(refused(
        weft_cp_create(r.ctx, r.plan, SIZES_OF(1, 6, 3, odd ? 8 : 4, WEFT_DTYPE_F32, 0), &none),
        WEFT_ERR_MISMATCH, "different sizes: depth is 4 and 8"));
    EXPECT(refused(
        weft_cp_create(r.ctx, r.plan, SIZES_OF(1, odd ? 0 : 6, 3, 4, WEFT_DTYPE_F32, 0), &none),
        WEFT_ERR_INVALID, "heads 0"));
    weft_cp_plan_release(&r.plan);
    EXPECT(weft_cp_plan_create(r.mesh, "cp", LENGTH, OPTIONS(.mask = (uint32_t)odd), &r.plan) ==
           WEFT_OK);
    EXPECT(refused(weft_cp_create(r.ctx, r.plan, SIZES, &none), WEFT_ERR_MISMATCH,
                   "plans with different masks"));
    EXPECT(none == NULL);
    return leave(&r);
}

START_TEST(wrong_sizes_are_refused_on_all_ranks)
{
    run_ranks(create_main, NULL);
}
END_TEST

static weft_status call_main(void *unused)
{
    static _Thread_local struct rank r;
    int64_t shape[] = {LENGTH, 2}, other[] = {LENGTH + 1, 2}, negative[] = {LENGTH, -2};

    (void)unused;
    WF_TRY(join(&r, NULL));
    EXPECT(weft_cp_create(r.ctx, r.plan, SIZES, &r.cp) == WEFT_OK);
    r.tensors.k = NULL;
    EXPECT(refused(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "weft_cp_tensors.k is NULL"));
    r.tensors.k = r.k;
    r.tensors.lse = (char *)r.lse + 1;
    EXPECT(refused(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "weft_cp_tensors.lse at"));
    r.tensors.lse = r.lse;
    r.tensors.out = (void *)(uintptr_t)r.tensors.q; /* in place */
    EXPECT(refused(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "weft_cp_tensors.out, which is written"));
    r.tensors.out = r.out;
    r.tensors.d_v = r.tensors.d_k;
    EXPECT(refused(weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "overlap"));
    r.tensors.d_v = NULL;
    EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    EXPECT(refused(weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "weft_cp_tensors.d_v is NULL"));
    EXPECT(refused(weft_cp_shard(r.cp, WEFT_DTYPE_F32, 2, other, 0, r.q, r.k, NULL),
                   WEFT_ERR_INVALID, "size 25, but the sequence of the plan has length 24"));
    EXPECT(refused(weft_cp_shard(r.cp, WEFT_DTYPE_F32, 2, negative, 0, r.q, r.k, NULL),
                   WEFT_ERR_INVALID, "shape[1] is -2"));
    EXPECT(refused(weft_cp_shard(r.cp, WEFT_DTYPE_F32, 2, shape, 2, r.q, r.k, NULL),
                   WEFT_ERR_INVALID, "dim is 2, but"));
    EXPECT(weft_cp_shard(r.cp, WEFT_DTYPE_F32, 2, shape, 0, r.q, r.q, NULL) == WEFT_ERR_INVALID);
    EXPECT(refused(weft_cp_restore(r.cp, WEFT_DTYPE_F32, 2, shape, 0, NULL, r.k, NULL),
                   WEFT_ERR_INVALID, "source is NULL"));
    weft_context_release(&r.ctx);
    EXPECT(refused(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL), WEFT_ERR_INVALID,
                   "the attention ended with it"));
    return leave(&r);
}

START_TEST(wrong_calls_are_refused)
{
    run_ranks(call_main, NULL);
}
END_TEST

START_TEST(simulated_ranks_have_plans_only)
{
    weft_options options = {.struct_size = sizeof options, .simulated_ranks = 4};
    weft_context *ctx;
    weft_mesh *mesh;
    weft_cp_plan *plan;
    weft_cp *cp = NULL;

    ck_assert_int_eq(weft_init(&options, &ctx), WEFT_OK);
    ck_assert_int_eq(weft_mesh_parse("4", &mesh), WEFT_OK);
    ck_assert_int_eq(weft_cp_plan_create(mesh, "0", 8, NULL, &plan), WEFT_OK);
    ck_assert_int_eq(weft_cp_create(ctx, plan, SIZES, &cp), WEFT_ERR_UNSUPPORTED);
    weft_cp_plan_release(&plan);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
}
END_TEST

/* ---- failures ---- */

static weft_status fail_on_one(void *user, const weft_cp_call *call)
{
    const struct rank *r = user;

    if (weft_rank(r->ctx) == 1 && call->problem->source == 0)
        return weft_fail(WEFT_ERR_NO_MEMORY, "no room for scores");
    return attend(NULL, call);
}

static weft_status kernel_main(void *unused)
{
    static _Thread_local struct rank r;
    weft_status status;

    (void)unused;
    WF_TRY(join(&r, NULL));
    EXPECT(weft_cp_create(r.ctx, r.plan, SIZES, &r.cp) == WEFT_OK);
    do /* a rank may complete a pass before it learns of the failure */
        status = weft_cp_forward(r.cp, &r.tensors, fail_on_one, &r, NULL);
    while (status == WEFT_OK);
    EXPECT(strstr(weft_last_error(), "no room for scores") != NULL);
    EXPECT(status == (weft_rank(r.ctx) == 1 ? WEFT_ERR_NO_MEMORY : WEFT_ERR_ABORTED));
    EXPECT(weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL) == status);
    return leave(&r);
}

START_TEST(a_kernel_that_fails_fails_all_ranks)
{
    run_ranks(kernel_main, NULL);
}
END_TEST

static atomic_bool has_ended;

static void end_late(void *unused)
{
    (void)unused;
    pause_shortly();
    atomic_store(&has_ended, true);
}

/* The kernel posts work to the stream and fails before that work has ended. */
static weft_status fail_early(void *user, const weft_cp_call *call)
{
    const struct rank *r = user;

    if (weft_rank(r->ctx) != 1) return attend(NULL, call);
    WF_TRY(r->ctx->plugin->device->stream_call(r->ctx->device, call->stream, end_late, NULL));
    return weft_fail(WEFT_ERR_NO_MEMORY, "no room for scores");
}

static weft_status early_main(void *unused)
{
    static _Thread_local struct rank r;
    weft_stream *stream = NULL;
    weft_status status;

    (void)unused;
    WF_TRY(join(&r, NULL));
    EXPECT(weft_cp_create(r.ctx, r.plan, SIZES, &r.cp) == WEFT_OK);
    EXPECT(weft_stream_create(r.ctx, &stream) == WEFT_OK);
    do /* as above */
        status = weft_cp_forward(r.cp, &r.tensors, fail_early, &r, stream);
    while (status == WEFT_OK);
    EXPECT(strstr(weft_last_error(), "no room for scores") != NULL);
    EXPECT(status == (weft_rank(r.ctx) == 1 ? WEFT_ERR_NO_MEMORY : WEFT_ERR_ABORTED));
    EXPECT(weft_rank(r.ctx) != 1 || atomic_load(&has_ended));
    weft_stream_release(r.ctx, &stream);
    return leave(&r);
}

START_TEST(a_pass_that_fails_returns_when_its_stream_has_ended)
{
    atomic_store(&has_ended, false);
    run_ranks(early_main, NULL);
}
END_TEST

/* Rank 1 leaves the job in the middle of a ring. */
static weft_status lost_main(void *unused)
{
    static _Thread_local struct rank r;

    (void)unused;
    WF_TRY(join(&r, NULL));
    EXPECT(weft_cp_create(r.ctx, r.plan, SIZES, &r.cp) == WEFT_OK);
    EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    if (weft_rank(r.ctx) != 1) {
        weft_status status = weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL);

        EXPECT(status == WEFT_ERR_PEER && strstr(weft_last_error(), "1") != NULL);
        EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_ERR_PEER);
    }
    return leave(&r);
}

START_TEST(a_lost_rank_ends_the_ring)
{
    run_ranks(lost_main, NULL);
}
END_TEST

SUITE(cp_calls, passes_communicate_as_stated_and_allocate_nothing,
      keys_travel_while_the_kernel_runs, a_mask_without_blocks_gives_zero,
      a_release_waits_for_the_streams_of_the_caller,
      a_pass_without_problems_is_complete_when_it_returns, wrong_sizes_are_refused_on_all_ranks,
      wrong_calls_are_refused, simulated_ranks_have_plans_only, a_kernel_that_fails_fails_all_ranks,
      a_pass_that_fails_returns_when_its_stream_has_ended, a_lost_rank_ends_the_ring)
