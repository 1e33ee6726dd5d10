/* Binding of plans: agreement of ranks, sharing of communicators, and memory that running
 * accesses. */
#include "comm/comm.h"
#include "redistribute/values.h"
#include "short_memory.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

enum { RANKS = 4 };

static weft_plan *plan_of(const char *mesh, const char *from_text, const char *to_text)
{
    weft_spec *from = spec_of(mesh, from_text), *to = spec_of(mesh, to_text);
    weft_plan *plan = NULL;

    ck_assert_msg(weft_plan_create(from, to, NULL, &plan) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&from);
    weft_spec_release(&to);
    return plan;
}

static void on_ranks(weft_status (*rank_main)(void *))
{
    ck_assert_msg(weft_threads_run(RANKS, rank_main, NULL) == WEFT_OK, "%s", weft_last_error());
}

static int group_count(const weft_comm *comm)
{
    int count = 0;

    for (const weft_comm *group = comm->groups; group != NULL; group = group->next_group)
        count++;
    return count;
}

TEST_ON_RANKS(RANKS, bound_plans_share_the_communicators_of_axes)
{
    OWNED(weft_plan) *plan = plan_of("2x2", "f32[8,8] S(0),S(1)", "f32[8,8] S(0),R");
    weft_bound *first = NULL, *second = NULL;
    OWNED(weft_context) *context = NULL;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_plan_bind(plan, weft_world(context), NULL, &first));
    WF_TRY(weft_plan_bind(plan, weft_world(context), NULL, &second));
    EXPECT(group_count(weft_world(context)) == 1);
    weft_bound_release(&first);
    weft_bound_release(&second);
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, ranks_with_different_plans_get_an_error)
{
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;
    OWNED(weft_plan) *plan = NULL;
    weft_status status;

    WF_TRY(weft_init(NULL, &context));
    plan = weft_rank(context) == 2 ? plan_of("4", "f32[8,8] S(0)", "f32[8,8] S(1)")
                                   : plan_of("4", "f32[8,8] S(0)", "f32[8,8] R");
    status = weft_plan_bind(plan, weft_world(context), NULL, &bound);
    EXPECT(status == WEFT_ERR_MISMATCH &&
           strstr(weft_last_error(), "bind different plans") != NULL);
    EXPECT(strstr(weft_last_error(), "S(0) -> f32[8,8] S(1) on 4, by all-to-all") != NULL);
    EXPECT(strstr(weft_last_error(), "S(0) -> f32[8,8] R on 4, by all-gather") != NULL);
    EXPECT(bound == NULL);
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, ranks_that_bind_differently_get_an_error)
{
    static const char *const parts[] = {
        "rank 2 binds f32[8,8] S(0) -> f32[8,8] R on 4, by all-gather "
        "packed, rank",
        "in place, rank"};
    OWNED(weft_plan) *plan = plan_of("4", "f32[8,8] S(0)", "f32[8,8] R");
    OWNED(weft_context) *context = NULL;

    WF_TRY(weft_init(NULL, &context));
    for (int i = 0; i < 2; i++) {
        bool odd = weft_rank(context) == 2;
        weft_bind_options options = {
            .struct_size = sizeof options, .packed = odd && i == 0, .in_place = odd && i == 1};
        weft_bound *bound = NULL;
        weft_status status = weft_plan_bind(plan, weft_world(context), &options, &bound);

        EXPECT(status == WEFT_ERR_MISMATCH && bound == NULL);
        EXPECT(strstr(weft_last_error(), parts[i]) != NULL);
    }
    return WEFT_OK;
}

static weft_status bind_one(void *fail_at)
{
    OWNED(weft_plan) *plan = plan_of("2x2", "f32[8,8] S(0),P", "f32[8,8] R,S(1)");

    WF_TRY(bind_short_of_memory(plan, *(const uint64_t *)fail_at));
    return WEFT_OK;
}

TEST(no_rank_waits_for_a_rank_without_memory)
{
    check_short_memory(RANKS, bind_one, 24);
}

TEST_ON_RANKS(RANKS, a_mesh_beyond_the_communicator_is_refused)
{
    OWNED(weft_plan) *plan = plan_of("2x4", "f32[8,8] S(0),R", "f32[8,8] R,R");
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;

    WF_TRY(weft_init(NULL, &context));
    EXPECT(weft_plan_bind(plan, weft_world(context), NULL, &bound) == WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), "need 8 ranks; world has 4") != NULL);
    return WEFT_OK;
}

static weft_status run_without_allocating(void *argument)
{
    OWNED(weft_plan) *plan = plan_of("2x2", "f32[64,64] S(0),P", "f32[64,64] S(1),R");
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;
    void *source, *target;

    (void)argument;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_alloc(context, 64 * 64 * 4, WEFT_MEMORY_DEVICE, &source));
    WF_TRY(weft_alloc(context, 64 * 64 * 4, WEFT_MEMORY_DEVICE, &target));
    WF_TRY(weft_plan_bind(plan, weft_world(context), NULL, &bound));
    WF_TRY(weft_redistribute(bound, source, target, NULL, NULL));
    wf_mem_fail_at(0); /* counts from here */
    for (int i = 0; i < 10; i++)
        WF_TRY(weft_redistribute(bound, source, target, NULL, NULL));
    EXPECT(wf_mem_made() == 0);
    WF_TRY(weft_barrier(weft_world(context), NULL));
    weft_bound_release(&bound);
    WF_TRY(weft_free(context, source));
    WF_TRY(weft_free(context, target));
    return WEFT_OK;
}

TEST(running_a_bound_plan_allocates_nothing)
{
    for (int check = 0; check < 2; check++) {
        setenv("WEFT_CHECK", check ? "1" : "0", 1);
        on_ranks(run_without_allocating);
    }
}

/* Two halves of the world run different plans at the same time. */
TEST_ON_RANKS(RANKS, two_communicators_redistribute_at_the_same_time)
{
    OWNED(weft_plan) *plan = plan_of("2", "i32[64] S(0)", "i32[64] R");
    OWNED(weft_context) *context = NULL;
    weft_comm *half = NULL;
    weft_bound *bound = NULL;
    struct values values;
    weft_plan_info info = {.struct_size = sizeof info};
    void *source, *target;
    int32_t me;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_comm_split(weft_world(context), weft_rank(context) % 2, 0, NULL, &half));
    me = weft_comm_rank(half);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    values = values_between(info.from, info.to);
    WF_TRY(weft_alloc(context, 256, WEFT_MEMORY_DEVICE, &source));
    WF_TRY(weft_alloc(context, 256, WEFT_MEMORY_DEVICE, &target));
    values_fill(&values, info.from, me, NULL, source);
    WF_TRY(weft_plan_bind(plan, half, NULL, &bound));
    for (int i = 0; i < 100 * (1 + weft_rank(context) % 2); i++)
        WF_TRY(weft_redistribute(bound, source, target, NULL, NULL));
    for (int32_t i = 0; i < 64; i++)
        EXPECT(((int32_t *)target)[i] == i);
    WF_TRY(weft_barrier(weft_world(context), NULL));
    weft_bound_release(&bound);
    weft_comm_release(&half);
    WF_TRY(weft_free(context, source));
    WF_TRY(weft_free(context, target));
    return WEFT_OK;
}

/* One of two communicators of all ranks, with its own stream. */
struct lane {
    weft_comm *comm;
    weft_stream *stream;
    weft_bound *bound;
    int32_t *source, *target;
};

static weft_status open_lane(weft_context *context, const weft_plan *plan, bool packed,
                             struct lane *lane)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = packed};
    void *memory[2];
    weft_plan_info info = {.struct_size = sizeof info};
    struct values values;

    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    values = values_between(info.from, info.to);
    WF_TRY(weft_comm_split(weft_world(context), 0, weft_rank(context), NULL, &lane->comm));
    WF_TRY(weft_stream_create(context, &lane->stream));
    for (int i = 0; i < 2; i++)
        WF_TRY(weft_alloc(context, 64 * 4, WEFT_MEMORY_DEVICE, &memory[i]));
    lane->source = memory[0];
    lane->target = memory[1];
    values_fill(&values, info.from, weft_comm_rank(lane->comm), NULL, lane->source);
    return weft_plan_bind(plan, lane->comm, &options, &lane->bound);
}

static weft_status close_lane(weft_context *context, struct lane *lane)
{
    for (int32_t i = 0; i < 64; i++)
        EXPECT(lane->target[i] == i);
    weft_bound_release(&lane->bound);
    weft_stream_release(&lane->stream);
    weft_comm_release(&lane->comm);
    WF_TRY(weft_free(context, lane->source));
    return weft_free(context, lane->target);
}

/* Half of the ranks begin with the first lane, the others with the second, so both must be in
 * flight at once. */
static weft_status run_two_at_a_time(void *argument)
{
    OWNED(weft_plan) *plan = plan_of("4", "i32[8,8] S(0)", "i32[8,8] R");
    OWNED(weft_context) *context = NULL;
    struct lane lanes[2];

    WF_TRY(weft_init(NULL, &context));
    for (int i = 0; i < 2; i++)
        WF_TRY(open_lane(context, plan, *(bool *)argument, &lanes[i]));
    for (int run = 0; run < 50; run++) {
        weft_work *works[2];
        for (int i = 0; i < 2; i++) {
            struct lane *lane = &lanes[i ^ (weft_rank(context) & 1)];
            WF_TRY(weft_redistribute(lane->bound, lane->source, lane->target, lane->stream,
                                     &works[i]));
        }
        for (int i = 0; i < 2; i++) {
            WF_TRY(weft_work_wait(works[i], WEFT_FOREVER));
            weft_work_release(&works[i]);
        }
    }
    WF_TRY(weft_barrier(weft_world(context), NULL));
    for (int i = 0; i < 2; i++)
        WF_TRY(close_lane(context, &lanes[i]));
    return WEFT_OK;
}

TEST(a_rank_has_two_redistributions_in_flight)
{
    for (int packed = 0; packed < 2; packed++) {
        bool argument = packed != 0;
        ck_assert_msg(weft_threads_run(RANKS, run_two_at_a_time, &argument) == WEFT_OK, "%s",
                      weft_last_error());
    }
}

/* Staging is counted in blocks of 256 bytes, for each side that needs any. */
static const struct {
    const char *from, *to;
    uint64_t staged;
} messages[] = {
    {"f32[8,8] S(0)", "f32[8,8] R", 0},      {"f32[8,8] S(1)", "f32[8,8] R", 256},
    {"f32[8,8] P", "f32[8,8] S(0)", 0},      {"f32[8,8] P", "f32[8,8] S(1)", 256},
    {"f32[8,8] S(0)", "f32[8,8] S(1)", 256}, {"f32[8,8] S(1)", "f32[8,8] S(0)", 256},
    {"f32[7,8] S(0)", "f32[7,8] R", 0},      {"f32[7,8] P", "f32[7,8] S(0)", 0},
};

TEST_ON_RANKS(RANKS, messages_that_lie_in_the_tensor_are_not_staged)
{
    weft_bind_options packed = {.struct_size = sizeof packed, .packed = true};
    OWNED(weft_context) *context = NULL;

    WF_TRY(weft_init(NULL, &context));
    for (size_t i = 0; i < WF_COUNT(messages); i++) {
        OWNED(weft_plan) *plan = plan_of("4", messages[i].from, messages[i].to);
        weft_bound *bound = NULL;
        WF_TRY(weft_plan_bind(plan, weft_world(context), &packed, &bound));
        if (weft_bound_scratch(bound) != messages[i].staged)
            return wf_fail(WEFT_ERR_INTERNAL, "%s to %s stages %llu bytes", messages[i].from,
                           messages[i].to, (unsigned long long)weft_bound_scratch(bound));
        if (!weft_bound_is_packed(bound) || weft_bound_is_packed(NULL))
            return wf_fail(WEFT_ERR_INTERNAL, "%s to %s does not pack", messages[i].from,
                           messages[i].to);
        weft_bound_release(&bound);
    }
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, memory_that_cannot_be_meant_is_refused)
{
    weft_plan *plan = plan_of("4", "f32[8,8] S(0)", "f32[8,8] S(1)");
    weft_bind_options unsized = {.in_place = true};
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;
    void *memory;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_alloc(context, 64, WEFT_MEMORY_DEVICE, &memory));
    EXPECT(weft_plan_bind(plan, weft_world(context), &unsized, &bound) == WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), "set it to sizeof(weft_bind_options)") != NULL);
    WF_TRY(weft_plan_bind(plan, weft_world(context), NULL, &bound));
    EXPECT(weft_redistribute(bound, memory, memory, NULL, NULL) == WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), "not bound with in_place") != NULL);
    EXPECT(weft_redistribute(bound, memory, NULL, NULL, NULL) == WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), "target is NULL") != NULL);
    EXPECT(weft_redistribute(bound, NULL, memory, NULL, NULL) == WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), "has 16 elements") != NULL);
    weft_bound_release(&bound);
    weft_plan_release(&plan);
    WF_TRY(weft_free(context, memory));
    return WEFT_OK;
}

/* Only the last rank's strides are wrong.  Every rank gets the error. */
TEST_ON_RANKS(RANKS, strides_that_cannot_be_meant_are_refused_on_every_rank)
{
    static const int64_t wrong[][2] = {{-8, 1}, {INT64_MAX, 1}, {0, 1}};
    static const char *const why[] = {"strides must not be negative", "beyond 2^63 bytes",
                                      "a target stride of 0"};
    OWNED(weft_plan) *plan = plan_of("4", "f32[8,8] S(0)", "f32[8,8] R");
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;

    WF_TRY(weft_init(NULL, &context));
    for (size_t i = 0; i < WF_COUNT(wrong); i++) {
        weft_bind_options options = {.struct_size = sizeof options};
        if (weft_rank(context) == RANKS - 1) options.target_strides = wrong[i];
        EXPECT(weft_plan_bind(plan, weft_world(context), &options, &bound) == WEFT_ERR_INVALID);
        EXPECT(strstr(weft_last_error(),
                      "weft_bind_options.target_strides: dimension 0 has 8 elements") != NULL);
        EXPECT(strstr(weft_last_error(), why[i]) != NULL);
    }
    return WEFT_OK;
}

/* A source row of eight is read as two rows. */
TEST_ON_RANKS(RANKS, a_source_may_repeat_what_it_has)
{
    static const int64_t repeated[] = {0, 1};
    weft_bind_options options = {.struct_size = sizeof options, .source_strides = repeated};
    OWNED(weft_plan) *plan = plan_of("4", "f32[8,8] S(0)", "f32[8,8] R");
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;
    float source[8], target[64];

    WF_TRY(weft_init(NULL, &context));
    for (int j = 0; j < 8; j++)
        source[j] = (float)(10 * weft_rank(context) + j);
    for (int packed = 0; packed < 2; packed++) {
        options.packed = packed == 1;
        memset(target, 0, sizeof target);
        WF_TRY(weft_plan_bind(plan, weft_world(context), &options, &bound));
        WF_TRY(weft_redistribute(bound, source, target, NULL, NULL));
        WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
        WF_TRY(weft_barrier(weft_world(context), NULL));
        for (int i = 0; i < 64; i++)
            EXPECT(target[i] == (float)(10 * (i / 16) + i % 8));
        weft_bound_release(&bound);
    }
    return WEFT_OK;
}
