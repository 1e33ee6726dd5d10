/* What calls of experts communicate and allocate, and how they fail. */
#include "base/base.h"
#include "support/expect.h"
#include "support/suite.h"
#include "weft/weft.h"

#include <string.h>

enum { RANKS = 3, EXPERTS = 5, WIDTH = 4, MOST = 64 };

/* One rank of a job of RANKS ranks. */
struct rank {
    weft_context *ctx;
    weft_mesh *mesh;
    weft_experts *experts;
    weft_routing *routing;
    int64_t counts[EXPERTS];
    float tokens[MOST * WIDTH], received[MOST * WIDTH];
};

static weft_experts_options options_of(int32_t experts, int64_t capacity)
{
    return (weft_experts_options){sizeof(weft_experts_options), experts, capacity};
}

static weft_status join(struct rank *r)
{
    weft_experts_options options = options_of(EXPERTS, 0);

    memset(r, 0, sizeof *r);
    EXPECT(weft_init(NULL, &r->ctx) == WEFT_OK);
    EXPECT(weft_mesh_parse("ep=3", &r->mesh) == WEFT_OK);
    EXPECT(weft_experts_create(r->ctx, r->mesh, "ep", &options, &r->experts) == WEFT_OK);
    for (int i = 0; i < EXPERTS; i++)
        r->counts[i] = i + weft_rank(r->ctx);
    return WEFT_OK;
}

static weft_status leave(struct rank *r)
{
    weft_routing_release(&r->routing);
    weft_experts_release(&r->experts);
    weft_mesh_release(&r->mesh);
    weft_context_release(&r->ctx);
    return WEFT_OK;
}

typedef weft_status rank_function(struct rank *r);

static weft_status rank_main(void *function)
{
    static _Thread_local struct rank r;

    WF_TRY(join(&r));
    WF_TRY((*(rank_function *const *)function)(&r));
    return leave(&r);
}

static void run_ranks(rank_function *function)
{
    weft_status status = weft_threads_run(RANKS, rank_main, (void *)&function);

    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
}

/* Exchange the counts of the rank. */
static weft_status route(struct rank *r)
{
    EXPECT(weft_experts_route(r->experts, r->counts, NULL, &r->routing) == WEFT_OK);
    return WEFT_OK;
}

static weft_status dispatch(struct rank *r, int64_t width)
{
    return weft_routing_dispatch(r->routing, WEFT_DTYPE_F32, width, r->tokens, r->received, NULL);
}

static weft_status step(struct rank *r)
{
    WF_TRY(route(r));
    EXPECT(dispatch(r, WIDTH) == WEFT_OK);
    EXPECT(weft_routing_combine(r->routing, WEFT_DTYPE_F32, WIDTH, r->received, r->tokens, NULL) ==
           WEFT_OK);
    weft_routing_release(&r->routing);
    return WEFT_OK;
}

/* ---- counts ---- */

/* Messages that RANK sends in a dispatch and a combine: rank i has i + e tokens for expert e. */
static uint64_t messages_of(int32_t rank)
{
    uint64_t sum = 0;

    for (int32_t e = 0; e < EXPERTS; e++)
        for (int32_t from = 0; from < RANKS; from++) {
            bool travels = from + e > 0 && e / 2 != from; /* two experts on each rank */

            sum += travels && (from == rank || e / 2 == rank);
        }
    return sum;
}

static weft_status count_step(struct rank *r)
{
    weft_counts counts = {.struct_size = sizeof counts};
    uint64_t made;

    WF_TRY(step(r));
    wf_mem_fail_at(0);
    WF_TRY(route(r));
    made = wf_mem_made();
    EXPECT(made == 0);
    weft_routing_release(&r->routing);
    EXPECT(weft_counts_begin(r->ctx, &counts) == WEFT_OK);
    WF_TRY(step(r));
    EXPECT(weft_counts_end(r->ctx, &counts) == WEFT_OK);
    for (int i = 0; i < WEFT_OP_COUNT; i++)
        if (i != WEFT_OP_SEND && i != WEFT_OP_RECEIVE)
            EXPECT(counts.operations[i] == (i == WEFT_OP_ALL_TO_ALL ? 1 : 0));
    EXPECT(counts.operations[WEFT_OP_SEND] == messages_of(weft_rank(r->ctx)));
    EXPECT(counts.operations[WEFT_OP_RECEIVE] == messages_of(weft_rank(r->ctx)));
    return WEFT_OK;
}

START_TEST(a_step_communicates_as_stated)
{
    run_ranks(count_step);
}
END_TEST

/* ---- refusals ---- */

static bool refused(weft_status got, weft_status wanted, const char *text)
{
    return got == wanted && strstr(weft_last_error(), text) != NULL;
}

static weft_status create_wrongly(struct rank *r)
{
    weft_experts *none = NULL;
    weft_experts_options o;
    bool odd;

    odd = weft_rank(r->ctx) == 1;
    o = options_of(odd ? 6 : 5, 0);
    EXPECT(refused(weft_experts_create(r->ctx, r->mesh, "ep", &o, &none), WEFT_ERR_MISMATCH,
                   "rank 0 of world has 5 experts with capacity 0, rank 1 has 6"));
    o = options_of(5, odd);
    EXPECT(refused(weft_experts_create(r->ctx, r->mesh, "ep", &o, &none), WEFT_ERR_MISMATCH,
                   "rank 1 has 5 with capacity 1"));
    o = options_of(odd ? 0 : 5, 0);
    EXPECT(refused(weft_experts_create(r->ctx, r->mesh, "ep", &o, &none), WEFT_ERR_INVALID,
                   "0 experts; there must be 1 to 65536"));
    o = options_of(5, -1);
    EXPECT(refused(weft_experts_create(r->ctx, r->mesh, "ep", &o, &none), WEFT_ERR_INVALID,
                   "capacity is -1"));
    o = options_of(5, 0);
    EXPECT(
        refused(weft_experts_create(r->ctx, r->mesh, "tp", &o, &none), WEFT_ERR_NOT_FOUND, "tp"));
    EXPECT(none == NULL);
    return WEFT_OK;
}

START_TEST(options_that_differ_are_refused_on_all_ranks)
{
    run_ranks(create_wrongly);
}
END_TEST

static weft_status route_wrongly(struct rank *r)
{
    weft_routing *none = NULL;
    bool odd;

    odd = weft_rank(r->ctx) == 1;
    if (odd) r->counts[3] = -7;
    EXPECT(refused(weft_experts_route(r->experts, r->counts, NULL, &none), WEFT_ERR_INVALID,
                   "counts[3] of rank 1 is -7"));
    if (odd) r->counts[3] = INT64_MAX;
    EXPECT(refused(weft_experts_route(r->experts, r->counts, NULL, &none), WEFT_ERR_INVALID,
                   "rank 1 has more than 1099511627776 tokens"));
    r->counts[3] = 1;
    if (odd) wf_mem_fail_at(1); /* no routing is spare yet */
    EXPECT(refused(weft_experts_route(r->experts, r->counts, NULL, &none), WEFT_ERR_NO_MEMORY,
                   "rank 1 has no memory"));
    wf_mem_fail_at(0);
    EXPECT(none == NULL);
    WF_TRY(step(r)); /* the experts are usable */
    return WEFT_OK;
}

START_TEST(counts_of_one_rank_that_are_wrong_are_an_error_on_all)
{
    run_ranks(route_wrongly);
}
END_TEST

static weft_status call_wrongly(struct rank *r)
{
    weft_routing_info info = {.struct_size = sizeof info};
    weft_spec *spec = NULL;

    WF_TRY(route(r));
    EXPECT(refused(dispatch(r, 0), WEFT_ERR_INVALID, "width is 0"));
    EXPECT(refused(
        weft_routing_dispatch(r->routing, WEFT_DTYPE_COUNT, 1, r->tokens, r->received, NULL),
        WEFT_ERR_INVALID, "dtype"));
    EXPECT(refused(weft_routing_combine(r->routing, WEFT_DTYPE_F32, INT64_MAX / 8, r->received,
                                        r->tokens, NULL),
                   WEFT_ERR_INVALID, "larger than memory"));
    EXPECT(refused(weft_routing_dispatch(r->routing, WEFT_DTYPE_F32, 1, NULL, r->received, NULL),
                   WEFT_ERR_INVALID, "tokens is NULL"));
    EXPECT(refused(weft_routing_combine(r->routing, WEFT_DTYPE_F32, 1, NULL, r->tokens, NULL),
                   WEFT_ERR_INVALID, "outputs is NULL"));
    EXPECT(refused(weft_routing_spec(r->routing, WEFT_DTYPE_F32, 0, NULL, &spec), WEFT_ERR_INVALID,
                   "width is 0"));
    weft_experts_release(&r->experts);
    EXPECT(refused(weft_routing_get(r->routing, &info), WEFT_ERR_INVALID,
                   "experts is a weft_experts that was released"));
    return WEFT_OK;
}

START_TEST(wrong_calls_are_refused)
{
    run_ranks(call_wrongly);
}
END_TEST

static weft_status differ_in_width(struct rank *r)
{
    WF_TRY(route(r));
    EXPECT(refused(dispatch(r, weft_rank(r->ctx) == 1 ? 2 : 1), WEFT_ERR_MISMATCH,
                   "weft_routing_dispatch"));
    return WEFT_OK;
}

START_TEST(widths_that_differ_are_an_error_on_all_ranks)
{
    run_ranks(differ_in_width);
}
END_TEST

/* Rank 0 sends and receives two messages with TAG, as its part of a call of rank 1. */
static weft_status exchange(struct rank *r, uint32_t tag)
{
    weft_comm *world = weft_world(r->ctx);

    EXPECT(weft_group_begin(world) == WEFT_OK);
    for (int i = 0; i < 2; i++) {
        EXPECT(weft_send(world, r->tokens + i, 1, WEFT_DTYPE_F32, 1, tag, NULL) == WEFT_OK);
        EXPECT(weft_receive(world, r->received + i, 1, WEFT_DTYPE_F32, 1, tag, NULL) == WEFT_OK);
    }
    EXPECT(weft_group_end(world) == WEFT_OK);
    return WEFT_OK;
}

/* Two ranks have two experts each, and a token for every expert. */
static weft_status tags_main(void *unused)
{
    static const int64_t ones[] = {1, 1, 1, 1};
    static _Thread_local struct rank r;
    weft_experts_options options = options_of(4, 0);

    (void)unused;
    memset(&r, 0, sizeof r);
    EXPECT(weft_init(NULL, &r.ctx) == WEFT_OK);
    EXPECT(weft_mesh_parse("ep=2", &r.mesh) == WEFT_OK);
    EXPECT(weft_experts_create(r.ctx, r.mesh, "ep", &options, &r.experts) == WEFT_OK);
    EXPECT(weft_experts_route(r.experts, ones, NULL, &r.routing) == WEFT_OK);
    if (weft_rank(r.ctx) == 0) {
        WF_TRY(exchange(&r, 0));
        WF_TRY(exchange(&r, 1));
        return leave(&r);
    }
    EXPECT(dispatch(&r, 1) == WEFT_OK);
    EXPECT(weft_routing_combine(r.routing, WEFT_DTYPE_F32, 1, r.received, r.tokens, NULL) ==
           WEFT_OK);
    return leave(&r);
}

START_TEST(messages_of_a_dispatch_and_of_a_combine_have_different_tags)
{
    weft_status status = weft_threads_run(2, tags_main, NULL);

    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
}
END_TEST

static weft_status overlap_on_one(struct rank *r)
{
    WF_TRY(route(r));
    if (weft_rank(r->ctx) != 1) {
        EXPECT(refused(dispatch(r, 1), WEFT_ERR_ABORTED, "overlap"));
        return WEFT_OK;
    }
    EXPECT(refused(
        weft_routing_dispatch(r->routing, WEFT_DTYPE_F32, 1, r->tokens, r->tokens + 1, NULL),
        WEFT_ERR_INVALID, "overlap"));
    EXPECT(refused(weft_routing_combine(r->routing, WEFT_DTYPE_F32, 1, r->tokens, r->tokens, NULL),
                   WEFT_ERR_INVALID, "weft_routing_combine: outputs"));
    return WEFT_OK;
}

START_TEST(memory_that_overlaps_on_one_rank_is_an_error_on_all)
{
    run_ranks(overlap_on_one);
}
END_TEST

/* ---- ends ---- */

static weft_status end_context(struct rank *r)
{
    WF_TRY(route(r));
    weft_context_release(&r->ctx);
    EXPECT(refused(dispatch(r, 1), WEFT_ERR_INVALID, "the experts ended with it"));
    return WEFT_OK;
}

START_TEST(experts_end_with_their_context)
{
    run_ranks(end_context);
}
END_TEST

/* Rank 1 leaves the job between the counts and the tokens. */
static weft_status lose_rank(struct rank *r)
{
    WF_TRY(route(r));
    if (weft_rank(r->ctx) != 1) EXPECT(refused(dispatch(r, 1), WEFT_ERR_PEER, "1"));
    return WEFT_OK;
}

START_TEST(a_lost_rank_ends_the_dispatch)
{
    run_ranks(lose_rank);
}
END_TEST

START_TEST(simulated_ranks_have_no_experts)
{
    weft_options options = {.struct_size = sizeof options, .simulated_ranks = 4};
    weft_experts_options o = options_of(4, 0);
    weft_experts *experts = NULL;
    weft_context *ctx;
    weft_mesh *mesh;

    ck_assert_int_eq(weft_init(&options, &ctx), WEFT_OK);
    ck_assert_int_eq(weft_mesh_parse("4", &mesh), WEFT_OK);
    ck_assert_int_eq(weft_experts_create(ctx, mesh, "0", &o, &experts), WEFT_ERR_UNSUPPORTED);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
}
END_TEST

SUITE(experts_calls, messages_of_a_dispatch_and_of_a_combine_have_different_tags,
      a_step_communicates_as_stated, options_that_differ_are_refused_on_all_ranks,
      counts_of_one_rank_that_are_wrong_are_an_error_on_all, wrong_calls_are_refused,
      widths_that_differ_are_an_error_on_all_ranks,
      memory_that_overlaps_on_one_rank_is_an_error_on_all, experts_end_with_their_context,
      a_lost_rank_ends_the_dispatch, simulated_ranks_have_no_experts)
