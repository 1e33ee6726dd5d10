/* Scratch: its size before binding, scratch of the caller, and scratch that bound plans share. */
#include "exec/context/kept.h"
#include "pairs.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/seed.h"
#include "support/suite.h"
#include "weft/weft.h"

enum { RANKS = 4, MANY = 8 };

static uint64_t scratch_of(weft_context *context)
{
    weft_move_info info = {.struct_size = sizeof info};

    return weft_move_get(context, &info) == WEFT_OK ? info.scratch_bytes : UINT64_MAX;
}

static bool says(weft_status status, const char *text)
{
    return status == WEFT_ERR_INVALID && strstr(weft_last_error(), text) != NULL;
}

/* ---- the size before binding ---- */

struct question {
    weft_plan *plan;
    weft_bind_options options;
};

static weft_status ask_and_bind(void *argument)
{
    const struct question *q = argument;
    uint64_t bytes = UINT64_MAX;
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_plan_scratch(q->plan, weft_world(context), &q->options, &bytes));
    EXPECT(scratch_of(context) == 0);
    WF_TRY(weft_plan_bind(q->plan, weft_world(context), &q->options, &bound));
    EXPECT(bytes == weft_bound_scratch(bound));
    EXPECT(scratch_of(context) == bytes);
    weft_bound_release(&bound);
    return WEFT_OK;
}

static void ask_all_ways(weft_plan *plan, const char *name, int number)
{
    for (int way = 0; way < 4; way++) {
        struct question q = {plan, {.struct_size = sizeof q.options}};

        q.options.packed = way & 1;
        q.options.in_place = way & 2;
        ck_assert_msg(weft_threads_run(RANKS, ask_and_bind, &q) == WEFT_OK, "%s %d, way %d: %s",
                      name, number, way, weft_last_error());
    }
}

TEST(the_size_is_known_before_binding)
{
    struct random r = {.state = test_seed_begin("redistribute_scratch") | 1};
    int cases = test_cases(30);

    for (int i = 0; i < cases; i++) {
        const weft_spec *from[MANY], *to[MANY];
        struct pair pairs[MANY];
        weft_plan *plan = NULL;
        uint32_t count = 0;

        for (int k = 0; k < MANY; k++) {
            struct pair pair = random_pair(&r, RANKS);

            plan = NULL;
            if (weft_plan_create(pair.from, pair.to, NULL, &plan) != WEFT_OK) {
                pair_release(&pair);
                continue;
            }
            if (k == 0) ask_all_ways(plan, "pair", i);
            weft_plan_release(&plan);
            pairs[count] = pair;
            from[count] = pair.from;
            to[count++] = pair.to;
        }
        ck_assert_uint_gt(count, 0);
        ck_assert_int_eq(weft_plan_create_batch(count, from, to, NULL, &plan), WEFT_OK);
        ask_all_ways(plan, "batch", i);
        weft_plan_release(&plan);
        for (uint32_t k = 0; k < count; k++)
            pair_release(&pairs[k]);
    }
}

/* Fails if this rank has more scratch than the plan states. */
static weft_status bind_packed(void *argument)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = true};
    weft_plan_info info = {.struct_size = sizeof info};
    const weft_plan *plan = argument;
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;

    WF_TRY(weft_plan_get(plan, &info));
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_plan_bind(plan, weft_world(context), &options, &bound));
    if (weft_bound_scratch(bound) > info.peak_bytes + 4 * 255) /* pieces of 256 bytes */
        return wf_fail(WEFT_ERR_INTERNAL, "%llu bytes of scratch, the plan has %llu",
                       (unsigned long long)weft_bound_scratch(bound),
                       (unsigned long long)info.peak_bytes);
    weft_bound_release(&bound);
    return WEFT_OK;
}

/* Each element goes to several ranks, and each message is one run of the shard: a rank narrows its
 * shard once, and needs no message of its own for each of them. */
TEST(a_shard_that_several_ranks_receive_is_narrowed_once)
{
    static const char *const cases[][3] = {
        {"4", "f16[70,10,12] S(2)", "bf16[70,10,12] P(avg)"},
        {"2x2", "f32[40000] S(0),R", "bf16[40000] R,S(0)"},
        {"2x2", "f32[40000] S(0),S(0)", "f16[40000] P(avg),S(0)"},
    };
    weft_plan_options options = {.struct_size = sizeof options, .planner = WEFT_PLANNER_EXCHANGE};

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        OWNED(weft_spec) *from = spec_of(cases[i][0], cases[i][1]),
                         *to = spec_of(cases[i][0], cases[i][2]);
        OWNED(weft_plan) *plan = NULL;

        ck_assert_int_eq(weft_plan_create(from, to, &options, &plan), WEFT_OK);
        ck_assert_msg(weft_threads_run(RANKS, bind_packed, plan) == WEFT_OK, "%s to %s: %s",
                      cases[i][1], cases[i][2], weft_last_error());
    }
}

/* ---- scratch of the caller ---- */

/* A plan of two steps, so that there is scratch also where ranks read each other's memory. */
static weft_plan *plan_steps(const char *from, const char *to)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .without = 1u << WEFT_STEP_EXCHANGE | 1u << WEFT_STEP_PERMUTE};
    weft_spec *source = spec_of("2x2", from), *target = spec_of("2x2", to);
    weft_plan *plan = NULL;

    if (weft_plan_create(source, target, &options, &plan) != WEFT_OK) plan = NULL;
    weft_spec_release(&source);
    weft_spec_release(&target);
    return plan;
}

/* One run of BOUND; elements are their global indices, and there are SIDE x SIDE. */
static weft_status run_checked(weft_context *context, weft_bound *bound, int side,
                               weft_stream *stream)
{
    int32_t rank = weft_rank(context), half = side / 2;
    int32_t *source, *target;
    void *memory[2];

    for (int i = 0; i < 2; i++)
        WF_TRY(weft_alloc(context, (uint64_t)side * (uint64_t)half * 4, WEFT_MEMORY_DEVICE,
                          &memory[i]));
    source = memory[0];
    target = memory[1];
    for (int i = 0; i < half * half; i++) /* S(0),S(1): a block */
        source[i] = (rank / 2 * half + i / half) * side + rank % 2 * half + i % half;
    WF_TRY(weft_barrier(weft_world(context), NULL));
    WF_TRY(weft_redistribute(bound, source, target, stream, NULL));
    WF_TRY(weft_context_wait(context, stream, WEFT_FOREVER));
    for (int i = 0; i < half * half; i++) /* S(1),S(0): the other block */
        EXPECT(target[i] == (rank % 2 * half + i / half) * side + rank / 2 * half + i % half);
    WF_TRY(weft_barrier(weft_world(context), NULL));
    WF_TRY(weft_free(context, memory[0]));
    return weft_free(context, memory[1]);
}

TEST_ON_RANKS(RANKS, the_caller_supplies_one_piece_for_many)
{
    OWNED(weft_plan) *small = plan_steps("i32[16,16] S(0),S(1)", "i32[16,16] S(1),S(0)");
    OWNED(weft_plan) *large = plan_steps("i32[64,64] S(0),S(1)", "i32[64,64] S(1),S(0)");
    weft_bind_options options = {.struct_size = sizeof options, .packed = true};
    weft_bound *bound[2] = {NULL};
    OWNED(weft_context) *context = NULL;
    uint64_t need = 0;
    void *scratch;

    WF_TRY(weft_init(NULL, &context));
    EXPECT(small != NULL && large != NULL);
    WF_TRY(weft_plan_scratch(large, weft_world(context), &options, &need));
    EXPECT(need > 0);
    WF_TRY(weft_alloc(context, need, WEFT_MEMORY_DEVICE, &scratch));
    options.scratch = scratch;
    options.scratch_bytes = need;
    WF_TRY(weft_plan_bind(small, weft_world(context), &options, &bound[0]));
    WF_TRY(weft_plan_bind(large, weft_world(context), &options, &bound[1]));
    EXPECT(scratch_of(context) == 0);
    for (int i = 0; i < 6; i++)
        WF_TRY(run_checked(context, bound[i % 2], i % 2 ? 64 : 16, NULL));
    EXPECT(scratch_of(context) == 0);
    for (int i = 0; i < 2; i++)
        weft_bound_release(&bound[i]);
    WF_TRY(weft_free(context, scratch));
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, unusable_scratch_is_refused_on_all_ranks)
{
    OWNED(weft_plan) *plan = plan_steps("i32[64,64] S(0),S(1)", "i32[64,64] S(1),S(0)");
    weft_bind_options options = {.struct_size = sizeof options};
    static _Alignas(WEFT_SCRATCH_ALIGNMENT) char memory[RANKS][1 << 16];
    weft_bound *bound = NULL;
    OWNED(weft_context) *context = NULL;
    uint64_t need = 0;
    char text[64];
    int32_t rank;

    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    WF_TRY(weft_plan_scratch(plan, weft_world(context), NULL, &need));
    EXPECT(need > 0 && need < sizeof memory[0]);
    options.scratch = memory[rank];
    options.scratch_bytes = rank == 2 ? need - 1 : need;
    snprintf(text, sizeof text, "rank 2 needs %llu bytes of scratch, and scratch_bytes is %llu",
             (unsigned long long)need, (unsigned long long)need - 1);
    EXPECT(says(weft_plan_bind(plan, weft_world(context), &options, &bound), text));
    options.scratch_bytes = need;
    options.scratch = memory[rank] + (rank == 1 ? 8 : 0);
    EXPECT(says(weft_plan_bind(plan, weft_world(context), &options, &bound),
                "on rank 1; its address must be a multiple of 16"));
    options.scratch = rank == 3 ? NULL : memory[rank];
    EXPECT(says(weft_plan_bind(plan, weft_world(context), &options, &bound),
                "scratch is NULL on rank 3"));
    EXPECT(bound == NULL);
    if (rank == 3) options.scratch_bytes = 0; /* a rank may use the context's */
    WF_TRY(weft_plan_bind(plan, weft_world(context), &options, &bound));
    WF_TRY(run_checked(context, bound, 64, NULL));
    EXPECT((scratch_of(context) > 0) == (rank == 3));
    weft_bound_release(&bound);
    return WEFT_OK;
}

/* ---- scratch of the context ---- */

static weft_status share(void *unused)
{
    static const int sides[] = {16, 64, 32};
    weft_stream *streams[2] = {NULL};
    weft_bound *bound[3] = {NULL};
    OWNED(weft_context) *context = NULL;
    uint64_t most = 0, sum = 0;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    for (int i = 0; i < 2; i++)
        WF_TRY(weft_stream_create(context, &streams[i]));
    for (int i = 0; i < 3; i++) {
        char from[64], to[64];
        weft_plan *plan;

        snprintf(from, sizeof from, "i32[%d,%d] S(0),S(1)", sides[i], sides[i]);
        snprintf(to, sizeof to, "i32[%d,%d] S(1),S(0)", sides[i], sides[i]);
        plan = plan_steps(from, to);
        WF_TRY(weft_plan_bind(plan, weft_world(context), NULL, &bound[i]));
        weft_plan_release(&plan);
        sum += weft_bound_scratch(bound[i]);
        if (weft_bound_scratch(bound[i]) > most) most = weft_bound_scratch(bound[i]);
    }
    EXPECT(most > 0 && sum > most && scratch_of(context) == most); /* reserved once, for all */
    for (int i = 0; i < 9; i++)
        WF_TRY(run_checked(context, bound[i % 3], sides[i % 3], NULL));
    EXPECT(scratch_of(context) == most); /* the default stream has taken it */
    for (int i = 0; i < 18; i++)
        WF_TRY(run_checked(context, bound[i % 3], sides[i % 3], streams[i % 2]));
    EXPECT(scratch_of(context) > 2 * most); /* each stream has its own; it grew on the way */
    WF_TRY(weft_move_clear(context));
    EXPECT(scratch_of(context) > 2 * most); /* bound plans still use all of it */
    for (int i = 0; i < 2; i++)
        weft_stream_release(&streams[i]);
    for (int i = 0; i < 3; i++)
        weft_bound_release(&bound[i]);
    EXPECT(scratch_of(context) == 3 * most);
    WF_TRY(weft_move_clear(context));
    EXPECT(scratch_of(context) == 0);
    return WEFT_OK;
}

TEST(bound_plans_share_one_piece_per_stream)
{
    ck_assert_msg(weft_threads_run(RANKS, share, NULL) == WEFT_OK, "%s", weft_last_error());
}

/* ---- several threads of a rank, each with a communicator of its own, on one stream ---- */

struct helper {
    pthread_t thread;
    int32_t number; /* added to all elements, so that no two threads have equal data */
    weft_context *context;
    weft_comm *comm;
    weft_status status;
    char text[256];
};

static weft_status run_helper(struct helper *h)
{
    OWNED(weft_spec) *from = spec_of("2x2", "i32[64,64] S(0),S(1)");
    OWNED(weft_spec) *to = spec_of("2x2", "i32[64,64] S(1),S(0)");
    OWNED(weft_plan) *plan = plan_steps("i32[64,64] S(0),S(1)", "i32[64,64] S(1),S(0)");
    struct values values = values_between(from, to);
    int32_t rank = weft_comm_rank(h->comm), source[32 * 32], target[32 * 32], wanted[32 * 32];
    weft_bound *bound = NULL;
    int wrong = 0;

    WF_TRY(weft_context_bind_thread(h->context));
    WF_TRY(weft_plan_bind(plan, h->comm, NULL, &bound));
    values_fill(&values, from, rank, NULL, source);
    values_fill(&values, to, rank, NULL, wanted);
    for (int i = 0; i < 32 * 32; i++) {
        source[i] += h->number << 20;
        wanted[i] += h->number << 20;
    }
    for (int i = 0; i < 200; i++) {
        memset(target, 0, sizeof target);
        WF_TRY(weft_redistribute(bound, source, target, NULL, NULL));
        wrong += memcmp(target, wanted, sizeof target) != 0;
    }
    WF_TRY(weft_barrier(h->comm, NULL)); /* before a failure: the other ranks still run */
    EXPECT(wrong == 0);
    weft_bound_release(&bound);
    return WEFT_OK;
}

static void *start_helper(void *argument)
{
    struct helper *h = argument;

    h->status = run_helper(h);
    if (h->status != WEFT_OK) snprintf(h->text, sizeof h->text, "%s", weft_last_error());
    return NULL;
}

TEST_ON_RANKS(RANKS, threads_on_one_stream_have_their_own)
{
    struct helper helpers[3];
    OWNED(weft_context) *context = NULL;

    WF_TRY(weft_init(NULL, &context));
    for (int i = 0; i < 3; i++) {
        helpers[i] = (struct helper){.context = context, .number = i + 1};
        WF_TRY(weft_comm_split(weft_world(context), 0, 0, NULL, &helpers[i].comm));
    }
    for (int i = 0; i < 3; i++)
        EXPECT(pthread_create(&helpers[i].thread, NULL, start_helper, &helpers[i]) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(helpers[i].thread, NULL);
    for (int i = 0; i < 3; i++) {
        if (helpers[i].status != WEFT_OK)
            return wf_fail(helpers[i].status, "thread %d: %s", i, helpers[i].text);
        weft_comm_release(&helpers[i].comm);
    }
    return WEFT_OK;
}

/* ---- no memory for a run ---- */

/* A run on a second stream, of which allocation FAIL_AT on rank 1 fails. */
struct short_run {
    uint64_t fail_at;
    bool is_local; /* the ranks do not communicate */
    bool has_failed;
    char text[3][512]; /* of the error, by rank */
};

static weft_status run_on_two_streams(weft_context *context, weft_bound *bound,
                                      struct short_run *run)
{
    int32_t rank = weft_rank(context);
    weft_stream *stream;
    weft_status status;
    float a[96] = {0}, b[96];
    void *target = run->is_local ? a : b;

    WF_TRY(weft_redistribute(bound, a, target, NULL, NULL)); /* in the reserved piece */
    WF_TRY(weft_stream_create(context, &stream));
    WF_TRY(weft_barrier(weft_world(context), NULL));
    if (rank == 1) wf_mem_fail_at(run->fail_at);
    status = weft_redistribute(bound, a, target, stream, NULL);
    if (rank == 1) run->has_failed = wf_mem_made() >= run->fail_at;
    wf_mem_fail_at(0);
    if (status == WEFT_OK) status = weft_context_wait(context, stream, WEFT_FOREVER);
    snprintf(run->text[rank], sizeof run->text[rank], "%s", weft_last_error());
    weft_stream_release(&stream);
    return status;
}

/* STATUS is the result of the run on the second stream. */
static weft_status check_short_run(weft_context *context, const struct short_run *run,
                                   weft_status status)
{
    int32_t rank = weft_rank(context);

    if (run->is_local) {
        EXPECT(status == WEFT_OK || (rank == 1 && status == WEFT_ERR_NO_MEMORY));
        return weft_barrier(weft_world(context), NULL);
    }
    if (status == WEFT_OK) return WEFT_OK; /* all allocations were made */
    EXPECT(status == (rank == 1 ? WEFT_ERR_NO_MEMORY : WEFT_ERR_ABORTED));
    EXPECT(strstr(run->text[rank], "weft_redistribute on world: rank 1 cannot run f32[12,8] "
                                   "S(0) -> f32[12,8] S(1) on 3: scratch: ") != NULL);
    EXPECT(weft_barrier(weft_world(context), NULL) == status);
    return WEFT_OK;
}

static weft_status run_without_scratch(void *argument)
{
    struct short_run *run = argument;
    weft_bind_options options = {
        .struct_size = sizeof options, .packed = true, .in_place = run->is_local};
    weft_init_options limit = {.struct_size = sizeof limit, .timeout_ns = 120 * WF_SECOND_NS};
    OWNED(weft_spec) *from = spec_of("3", run->is_local ? "f32[12,8] R" : "f32[12,8] S(0)");
    OWNED(weft_spec) *to = spec_of("3", "f32[12,8] S(1)");
    OWNED(weft_plan) *plan = NULL;
    weft_bound *bound = NULL;
    OWNED(weft_context) *context = NULL;

    WF_TRY(weft_init(&limit, &context));
    WF_TRY(weft_plan_create(from, to, NULL, &plan));
    WF_TRY(weft_plan_bind(plan, weft_world(context), &options, &bound));
    EXPECT(weft_bound_scratch(bound) > 0);
    WF_TRY(check_short_run(context, run, run_on_two_streams(context, bound, run)));
    weft_bound_release(&bound);
    return WEFT_OK;
}

TEST(a_rank_without_scratch_for_a_run_does_not_keep_others_waiting)
{
    for (int is_local = 0; is_local < 2; is_local++) {
        struct short_run run = {.fail_at = 1, .is_local = is_local, .has_failed = true};

        for (; run.has_failed; run.fail_at++)
            ck_assert_msg(weft_threads_run(3, run_without_scratch, &run) == WEFT_OK,
                          "allocation %d: %s", (int)run.fail_at, weft_last_error());
        ck_assert_int_gt((int)run.fail_at, 3);
    }
}
