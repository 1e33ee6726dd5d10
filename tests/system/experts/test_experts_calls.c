/* What calls of experts communicate and allocate, and how they fail. */
#include "base/base.h"
#include "support/counts.h"
#include "support/expect.h"
#include "support/local_tensor.h"
#include "support/suite.h"
#include "weft/parallel.h"
#include "weft/trace.h"

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
    EXPECT(weft_experts_route(r->experts, EXPERTS, r->counts, NULL, NULL, &r->routing) == WEFT_OK);
    return WEFT_OK;
}

/* Dispatch or combine between two pieces of memory, which have WIDTH columns. */
static weft_status move(struct rank *r, bool back, int64_t width, const void *source, void *target)
{
    weft_routing_info info = {.struct_size = sizeof info};
    weft_tensor *from, *to;
    weft_status status = weft_routing_get(r->routing, &info);

    if (status != WEFT_OK) return status;
    from = local_rows(r->ctx, WEFT_DTYPE_F32, back ? info.received : info.tokens, width, source);
    to = local_rows(r->ctx, WEFT_DTYPE_F32, back ? info.tokens : info.received, width, target);
    EXPECT(from != NULL && to != NULL);
    status = back ? weft_routing_combine(r->routing, from, to, NULL, NULL, NULL)
                  : weft_routing_dispatch(r->routing, from, to, NULL, NULL, NULL);
    weft_tensor_release(&from);
    weft_tensor_release(&to);
    return status;
}

static weft_status dispatch(struct rank *r, int64_t width)
{
    return move(r, false, width, r->tokens, r->received);
}

static weft_status step(struct rank *r)
{
    WF_TRY(route(r));
    EXPECT(dispatch(r, WIDTH) == WEFT_OK);
    EXPECT(move(r, true, WIDTH, r->received, r->tokens) == WEFT_OK);
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

TEST_BY(run_ranks, a_step_communicates_as_stated, struct rank *r)
{
    weft_record_counts *counting = NULL;
    struct counted counts;
    uint64_t made;

    WF_TRY(step(r));
    wf_mem_fail_at(0);
    WF_TRY(route(r));
    made = wf_mem_made();
    EXPECT(made == 0);
    weft_routing_release(&r->routing);
    EXPECT(weft_record_counts_create(r->ctx, &counting) == WEFT_OK);
    WF_TRY(step(r));
    EXPECT(counts_take(counting, &counts) == WEFT_OK);
    for (int i = 0; i < WEFT_RECORD_OPERATION_COUNT; i++)
        if (i != WEFT_RECORD_SEND && i != WEFT_RECORD_RECEIVE)
            EXPECT(counts.operations[i] == (i == WEFT_RECORD_ALL_TO_ALL ? 1 : 0));
    EXPECT(counts.operations[WEFT_RECORD_SEND] == messages_of(weft_rank(r->ctx)));
    EXPECT(counts.operations[WEFT_RECORD_RECEIVE] == messages_of(weft_rank(r->ctx)));
    return WEFT_OK;
}

/* ---- refusals ---- */

static bool refused(weft_status got, weft_status wanted, const char *text)
{
    return got == wanted && strstr(weft_last_error(), text) != NULL;
}

TEST_BY(run_ranks, options_that_differ_are_refused_on_all_ranks, struct rank *r)
{
    weft_experts *none = NULL;
    weft_experts_options o;
    bool odd;

    odd = weft_rank(r->ctx) == 1;
    o = options_of(odd ? 6 : 5, 0);
    EXPECT(refused(weft_experts_create(r->ctx, r->mesh, "ep", &o, &none), WEFT_ERR_MISMATCH,
                   "ranks 0 and 1 of world differ in experts: 5 and 6"));
    o = options_of(5, odd);
    EXPECT(refused(weft_experts_create(r->ctx, r->mesh, "ep", &o, &none), WEFT_ERR_MISMATCH,
                   "differ in capacity: 0 and 1"));
    o = options_of(odd ? 0 : 5, 0);
    EXPECT(refused(weft_experts_create(r->ctx, r->mesh, "ep", &o, &none), WEFT_ERR_INVALID,
                   "weft_experts_options.experts is 0; it must be 1 to 65536"));
    o = options_of(5, -1);
    EXPECT(refused(weft_experts_create(r->ctx, r->mesh, "ep", &o, &none), WEFT_ERR_INVALID,
                   "weft_experts_options.capacity is -1"));
    o = options_of(5, 0);
    EXPECT(
        refused(weft_experts_create(r->ctx, r->mesh, "tp", &o, &none), WEFT_ERR_NOT_FOUND, "tp"));
    EXPECT(none == NULL);
    return WEFT_OK;
}

TEST_BY(run_ranks, counts_of_one_rank_that_are_wrong_are_an_error_on_all, struct rank *r)
{
    weft_routing_options few = {.struct_size = sizeof few};
    weft_routing *none = NULL;
    bool odd;

    odd = weft_rank(r->ctx) == 1;
    if (odd) r->counts[3] = -7;
    EXPECT(refused(weft_experts_route(r->experts, EXPERTS, r->counts, NULL, NULL, &none),
                   WEFT_ERR_INVALID, "counts[3] of rank 1 is -7"));
    if (odd) r->counts[3] = INT64_MAX;
    EXPECT(refused(weft_experts_route(r->experts, EXPERTS, r->counts, NULL, NULL, &none),
                   WEFT_ERR_INVALID, "rank 1 has more than 1099511627776 tokens"));
    r->counts[3] = 1;
    EXPECT(refused(weft_experts_route(r->experts, odd ? 4 : EXPERTS, r->counts, NULL, NULL, &none),
                   WEFT_ERR_INVALID, "rank 1 passes 4 counts for 5 experts"));
    if (odd) few.capacity = -1;
    EXPECT(refused(weft_experts_route(r->experts, EXPERTS, r->counts, &few, NULL, &none),
                   WEFT_ERR_INVALID, "capacity of rank 1 is -1"));
    if (odd) wf_mem_fail_at(1); /* no routing is spare yet */
    EXPECT(refused(weft_experts_route(r->experts, EXPERTS, r->counts, NULL, NULL, &none),
                   WEFT_ERR_NO_MEMORY, "rank 1 has no memory"));
    wf_mem_fail_at(0);
    EXPECT(none == NULL);
    WF_TRY(step(r)); /* the experts are usable */
    return WEFT_OK;
}

static weft_status pass_wrongly(struct rank *r, const weft_routing_info *info, weft_tensor *tokens)
{
    const struct {
        enum weft_dtype dtype;
        int32_t dims;
        int64_t rows, width, stride;
        const char *text;
    } wrong[] = {
        {WEFT_DTYPE_F32, 2, info->received + 1, 1, 1, "2 dimensions and"},
        {WEFT_DTYPE_F32, 1, info->received, 1, 1, "the shard of received has 1 dimensions"},
        {WEFT_DTYPE_F32, 2, info->received, 2, 2, "the widths 1 and 2"},
        {WEFT_DTYPE_I32, 2, info->received, 1, 1, "the dtypes f32 and i32"},
        {WEFT_DTYPE_F32, 2, info->received, 1, 2, "received has gaps"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weft_tensor *to = local_tensor(r->ctx, wrong[i].dtype, wrong[i].dims,
                                       (int64_t[]){wrong[i].rows, wrong[i].width}, r->received,
                                       (int64_t[]){wrong[i].stride, 1});

        EXPECT(to != NULL);
        EXPECT(refused(weft_routing_dispatch(r->routing, tokens, to, NULL, NULL, NULL),
                       WEFT_ERR_INVALID, wrong[i].text));
        weft_tensor_release(&to);
    }
    return WEFT_OK;
}

TEST_BY(run_ranks, wrong_calls_are_refused, struct rank *r)
{
    weft_routing_info info = {.struct_size = sizeof info};
    weft_tensor *tokens, *received;
    weft_spec *spec = NULL;

    WF_TRY(route(r));
    EXPECT(weft_routing_get(r->routing, &info) == WEFT_OK);
    tokens = local_rows(r->ctx, WEFT_DTYPE_F32, info.tokens, 1, r->tokens);
    received = local_rows(r->ctx, WEFT_DTYPE_F32, info.received, 1, r->received);
    EXPECT(refused(weft_routing_dispatch(r->routing, NULL, received, NULL, NULL, NULL),
                   WEFT_ERR_INVALID, "tokens is NULL"));
    EXPECT(refused(weft_routing_combine(r->routing, NULL, tokens, NULL, NULL, NULL),
                   WEFT_ERR_INVALID, "outputs is NULL"));
    WF_TRY(pass_wrongly(r, &info, tokens));
    weft_tensor_release(&tokens);
    weft_tensor_release(&received);
    EXPECT(refused(weft_routing_spec(r->routing, WEFT_DTYPE_F32, 0, NULL, &spec), WEFT_ERR_INVALID,
                   "width is 0"));
    weft_experts_release(&r->experts);
    EXPECT(refused(weft_routing_get(r->routing, &info), WEFT_ERR_INVALID,
                   "experts is a weft_experts that was released"));
    return WEFT_OK;
}

TEST_BY(run_ranks, widths_that_differ_are_an_error_on_all_ranks, struct rank *r)
{
    WF_TRY(route(r));
    EXPECT(refused(dispatch(r, weft_rank(r->ctx) == 1 ? 2 : 1), WEFT_ERR_MISMATCH,
                   "weft_routing_dispatch"));
    return WEFT_OK;
}

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
    EXPECT(weft_experts_route(r.experts, 4, ones, NULL, NULL, &r.routing) == WEFT_OK);
    if (weft_rank(r.ctx) == 0) {
        WF_TRY(exchange(&r, 0));
        WF_TRY(exchange(&r, 1));
        return leave(&r);
    }
    EXPECT(dispatch(&r, 1) == WEFT_OK);
    EXPECT(move(&r, true, 1, r.received, r.tokens) == WEFT_OK);
    return leave(&r);
}

TEST(messages_of_a_dispatch_and_of_a_combine_have_different_tags)
{
    weft_status status = weft_threads_run(2, tags_main, NULL);

    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
}

TEST_BY(run_ranks, memory_that_overlaps_on_one_rank_is_an_error_on_all, struct rank *r)
{
    WF_TRY(route(r));
    if (weft_rank(r->ctx) != 1) {
        EXPECT(refused(dispatch(r, 1), WEFT_ERR_ABORTED, "overlap"));
        return WEFT_OK;
    }
    EXPECT(refused(move(r, false, 1, r->tokens, r->tokens + 1), WEFT_ERR_INVALID, "overlap"));
    EXPECT(refused(move(r, true, 1, r->tokens, r->tokens), WEFT_ERR_INVALID,
                   "weft_routing_combine: outputs"));
    return WEFT_OK;
}

/* ---- ends ---- */

TEST_BY(run_ranks, experts_end_with_their_context, struct rank *r)
{
    WF_TRY(route(r));
    weft_context_release(&r->ctx);
    EXPECT(refused(dispatch(r, 1), WEFT_ERR_INVALID, "the experts ended with it"));
    return WEFT_OK;
}

/* Rank 1 leaves the job between the counts and the tokens. */
TEST_BY(run_ranks, a_lost_rank_ends_the_dispatch, struct rank *r)
{
    WF_TRY(route(r));
    if (weft_rank(r->ctx) != 1) EXPECT(refused(dispatch(r, 1), WEFT_ERR_PEER, "1"));
    return WEFT_OK;
}

TEST(simulated_ranks_have_no_experts)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = 4};
    weft_experts_options o = options_of(4, 0);
    weft_experts *experts = NULL;
    OWNED(weft_context) *ctx = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    ck_assert_int_eq(weft_init(&options, &ctx), WEFT_OK);
    ck_assert_int_eq(weft_mesh_parse("4", &mesh), WEFT_OK);
    ck_assert_int_eq(weft_experts_create(ctx, mesh, "0", &o, &experts), WEFT_ERR_UNSUPPORTED);
}
