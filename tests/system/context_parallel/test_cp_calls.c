/* What calls of context parallel cost and when they communicate, and how they fail. */
#include "rank.h"

#include "cp/cp.h"
#include "support/counts.h"
#include "support/peek.h"
#include "weft/trace.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* ---- counts ---- */

struct expected {
    uint32_t variant;
    uint64_t operations[2][WEFT_RECORD_OPERATION_COUNT]; /* forward, backward */
};

/* gloo-cpu allocates for the call groups of a ring. */
static weft_status count_pass(struct rank *r, bool backward, struct counted *counts)
{
    bool is_ring = r->cp->plan->variant == WEFT_CP_RING;
    weft_record_counts *counting = NULL;
    uint64_t made;

    EXPECT(weft_record_counts_create(r->ctx, &counting) == WEFT_OK);
    wf_mem_fail_at(0);
    EXPECT((backward ? weft_cp_backward : weft_cp_forward)(r->cp, &r->tensors, attend, NULL,
                                                           NULL) == WEFT_OK);
    made = wf_mem_made();
    EXPECT(counts_take(counting, counts) == WEFT_OK);
    if (made == 0 || is_ring) return WEFT_OK;
    return wf_fail(WEFT_ERR_INTERNAL, "%llu allocations", (unsigned long long)made);
}

static weft_status count_main(void *argument)
{
    const struct expected *expected = argument;
    static _Thread_local struct rank r;

    WF_TRY(join(&r, OPTIONS(.mask = WEFT_CP_CAUSAL, .balance = WEFT_CP_HEAD_TAIL,
                            .variant = expected->variant)));
    EXPECT(create(&r, SIZES, &r.cp) == WEFT_OK);
    EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    EXPECT(weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    for (int backward = 0; backward < 2; backward++) {
        struct counted counts;

        WF_TRY(count_pass(&r, backward, &counts));
        for (int i = 0; i < WEFT_RECORD_OPERATION_COUNT; i++)
            if (counts.operations[i] != expected->operations[backward][i])
                return wf_fail(WEFT_ERR_INTERNAL, "pass %d: %llu operations of kind %d", backward,
                               (unsigned long long)counts.operations[i], i);
    }
    return leave(&r);
}

TEST(passes_communicate_as_stated_and_allocate_nothing)
{
    struct expected ring = {WEFT_CP_RING, {{0}}}, gather = {WEFT_CP_GATHER, {{0}}},
                    heads = {WEFT_CP_HEADS, {{0}}};

    ring.operations[0][WEFT_RECORD_SEND] = ring.operations[0][WEFT_RECORD_RECEIVE] =
        2 * (RANKS - 1);
    ring.operations[1][WEFT_RECORD_SEND] = ring.operations[1][WEFT_RECORD_RECEIVE] =
        2 * (RANKS - 1) + RANKS;
    gather.operations[0][WEFT_RECORD_ALL_GATHER_V] =
        gather.operations[1][WEFT_RECORD_ALL_GATHER_V] = 1;
    gather.operations[1][WEFT_RECORD_REDUCE_SCATTER_V] = 1;
    heads.operations[0][WEFT_RECORD_ALL_TO_ALL_V] = heads.operations[1][WEFT_RECORD_ALL_TO_ALL_V] =
        2;
    run_ranks(count_main, &ring);
    run_ranks(count_main, &gather);
    run_ranks(count_main, &heads);
}

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

TEST_ON_RANKS(RANKS, keys_travel_while_the_kernel_runs)
{
    static _Thread_local struct rank r;

    WF_TRY(join(&r, NULL));
    EXPECT(create(&r, SIZES, &r.cp) == WEFT_OK);
    EXPECT(weft_cp_forward(r.cp, &r.tensors, wait_for_keys, &r, NULL) == WEFT_OK);
    return leave(&r);
}

/* ---- masks without work ---- */

TEST_ON_RANKS(RANKS, a_mask_without_blocks_gives_zero)
{
    static _Thread_local struct rank r;

    WF_TRY(join(&r, OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER, .block_length = 4)));
    EXPECT(create(&r, SIZES, &r.cp) == WEFT_OK);
    r.out[0] = r.d_q[0] = r.d_k[0] = 1;
    EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    EXPECT(weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    EXPECT(r.out[0] == 0 && r.lse[0] == -INFINITY && r.d_q[0] == 0 && r.d_k[0] == 0);
    return leave(&r);
}

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
    const int64_t whole = LENGTH, part = LENGTH / RANKS;

    (void)unused;
    WF_TRY(join(&r, NULL));
    EXPECT(create(&r, SIZES, &r.cp) == WEFT_OK);
    if (weft_rank(r.ctx) != 0) {
        while (!atomic_load(&is_releasing))
            sched_yield();
        pause_shortly();
        atomic_store(&may_go_on, true);
        return leave(&r);
    }
    for (int i = 0; i < 2; i++) {
        weft_tensor *source, *target;

        EXPECT(weft_stream_create(r.ctx, &streams[i]) == WEFT_OK);
        EXPECT(weft_context_plugin(r.ctx)->device->stream_call(
                   weft_context_device(r.ctx), streams[i], wait_until_it_may, NULL) == WEFT_OK);
        source = local_tensor(r.ctx, WEFT_DTYPE_F32, 1, &whole, r.q, NULL);
        target = local_tensor(r.ctx, WEFT_DTYPE_F32, 1, &part, i == 0 ? r.out : r.lse, NULL);
        EXPECT(weft_cp_shard(r.cp, source, 0, target, NULL, streams[i], NULL) == WEFT_OK);
        weft_tensor_release(&source);
        weft_tensor_release(&target);
    }
    atomic_store(&is_releasing, true);
    weft_cp_release(&r.cp);
    for (int i = 0; i < 2; i++) {
        bool is_complete = weft_stream_test(streams[i]) == WEFT_OK;

        atomic_store(&may_go_on, true);
        weft_stream_release(&streams[i]);
        EXPECT(is_complete);
    }
    return leave(&r);
}

TEST(a_release_waits_for_the_streams_of_the_caller)
{
    atomic_store(&may_go_on, false);
    atomic_store(&is_releasing, false);
    run_ranks(release_main, NULL);
}

/* Rank 0 computes nothing, and the others come later. */
TEST_ON_RANKS(RANKS, a_pass_without_problems_is_complete_when_it_returns)
{
    static _Thread_local struct rank r;
    weft_stream *stream = NULL;
    bool is_complete;

    WF_TRY(join(&r, OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER, .block_length = 4)));
    EXPECT(create(&r, SIZES, &r.cp) == WEFT_OK);
    EXPECT(weft_stream_create(r.ctx, &stream) == WEFT_OK);
    if (weft_rank(r.ctx) != 0) pause_shortly();
    EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, stream) == WEFT_OK);
    is_complete = weft_stream_test(stream) == WEFT_OK;
    weft_stream_release(&stream);
    EXPECT(is_complete);
    return leave(&r);
}

/* ---- failures ---- */

static weft_status fail_on_one(void *user, const weft_cp_call *call)
{
    const struct rank *r = user;

    if (weft_rank(r->ctx) == 1 && call->problem->source == 0)
        return weft_fail(WEFT_ERR_NO_MEMORY, "no room for scores");
    return attend(NULL, call);
}

TEST_ON_RANKS(RANKS, a_kernel_that_fails_fails_all_ranks)
{
    static _Thread_local struct rank r;
    weft_status status;

    WF_TRY(join(&r, NULL));
    EXPECT(create(&r, SIZES, &r.cp) == WEFT_OK);
    do /* a rank may complete a pass before it learns of the failure */
        status = weft_cp_forward(r.cp, &r.tensors, fail_on_one, &r, NULL);
    while (status == WEFT_OK);
    EXPECT(strstr(weft_last_error(), "no room for scores") != NULL);
    EXPECT(status == (weft_rank(r.ctx) == 1 ? WEFT_ERR_NO_MEMORY : WEFT_ERR_ABORTED));
    EXPECT(weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL) == status);
    return leave(&r);
}

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
    WF_TRY(weft_context_plugin(r->ctx)->device->stream_call(weft_context_device(r->ctx),
                                                            call->stream, end_late, NULL));
    return weft_fail(WEFT_ERR_NO_MEMORY, "no room for scores");
}

static weft_status early_main(void *unused)
{
    static _Thread_local struct rank r;
    weft_stream *stream = NULL;
    weft_status status;

    (void)unused;
    WF_TRY(join(&r, NULL));
    EXPECT(create(&r, SIZES, &r.cp) == WEFT_OK);
    EXPECT(weft_stream_create(r.ctx, &stream) == WEFT_OK);
    do /* as above */
        status = weft_cp_forward(r.cp, &r.tensors, fail_early, &r, stream);
    while (status == WEFT_OK);
    EXPECT(strstr(weft_last_error(), "no room for scores") != NULL);
    EXPECT(status == (weft_rank(r.ctx) == 1 ? WEFT_ERR_NO_MEMORY : WEFT_ERR_ABORTED));
    EXPECT(weft_rank(r.ctx) != 1 || atomic_load(&has_ended));
    weft_stream_release(&stream);
    return leave(&r);
}

TEST(a_pass_that_fails_returns_when_its_stream_has_ended)
{
    atomic_store(&has_ended, false);
    run_ranks(early_main, NULL);
}

/* Rank 1 leaves the job in the middle of a ring. */
TEST_ON_RANKS(RANKS, a_lost_rank_ends_the_ring)
{
    static _Thread_local struct rank r;

    WF_TRY(join(&r, NULL));
    EXPECT(create(&r, SIZES, &r.cp) == WEFT_OK);
    EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_OK);
    if (weft_rank(r.ctx) != 1) {
        weft_status status = weft_cp_backward(r.cp, &r.tensors, attend, NULL, NULL);

        EXPECT(status == WEFT_ERR_PEER && strstr(weft_last_error(), "1") != NULL);
        EXPECT(weft_cp_forward(r.cp, &r.tensors, attend, NULL, NULL) == WEFT_ERR_PEER);
    }
    return leave(&r);
}
