/* Errors of moves name the function that the program called, and what helps. */
#include "support/expect.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/weft.h"

#include <string.h>

static bool says(const char *text)
{
    return strstr(weft_last_error(), text) != NULL;
}

/* ---- one rank leaves ---- */

/* On three ranks the move has a communicator of its own; on two it has the world. */
static weft_status move_with_a_rank_that_leaves(void *unused)
{
    weft_spec *from = spec_of("2", "f32[8] S(0)"), *to = spec_of("2", "f32[8] R");
    float a[4] = {0}, b[8];
    weft_context *context;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    if (weft_rank(context) == 0) {
        EXPECT(weft_move(context, from, a, to, b, NULL, NULL) == WEFT_ERR_PEER);
        EXPECT(says("weft_move: ") && says("rank 1 has left the job"));
        EXPECT(weft_move_clear(context) == WEFT_ERR_PEER);
        EXPECT(says("weft_move_clear: ")); /* of all ranks, so a third one may be named */
        EXPECT(says("rank 1 has left the job") ||
               (weft_size(context) == 3 && says("rank 2 has left the job")));
    }
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_context_release(&context);
    return WEFT_OK;
}

START_TEST(a_rank_that_leaves_is_named_with_the_move)
{
    for (int32_t size = 2; size <= 3; size++)
        ck_assert_msg(weft_threads_run(size, move_with_a_rank_that_leaves, NULL) == WEFT_OK, "%s",
                      weft_last_error());
}
END_TEST

/* ---- ranks that differ ---- */

static weft_status move_different_tensors(void *unused)
{
    weft_spec *rows = spec_of("2", "f32[8] S(0)"), *all = spec_of("2", "f32[8] R");
    weft_spec *strided = spec_of("2", "f32[8] SS(0,2)"), *whole = spec_of("2", "i32[8] R");
    float a[4] = {0}, b[8], c[8];
    weft_move_item first[] = {{"w1", rows, a, all, b}, {"w2", strided, a, all, c}};
    weft_move_item second[] = {first[1], first[0]};
    weft_context *context;
    bool odd;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    odd = weft_rank(context) == 1;
    EXPECT(weft_move(context, odd ? strided : rows, a, all, b, NULL, NULL) == WEFT_ERR_MISMATCH);
    EXPECT(says("weft_move: rank ") && says("bind different plans"));
    EXPECT(says("in the same order, with the same specs"));
    EXPECT(weft_move_batch(context, 2, odd ? second : first, NULL, NULL) == WEFT_ERR_MISMATCH);
    EXPECT(says("weft_move_batch: rank "));
    EXPECT(says("a batch of 2 tensors, the first of them f32[8] S(0) -> f32[8] R on 2 (digest"));
    EXPECT(says("a batch of 2 tensors, the first of them f32[8] SS(0,2) -> "));
    EXPECT(weft_move(context, rows, a, whole, b, NULL, NULL) == WEFT_ERR_UNSUPPORTED);
    EXPECT(says("weft_move: the source is f32, the target i32, and that cast is not offered"));
    WF_TRY(weft_barrier(weft_world(context), NULL));
    weft_spec_release(&rows);
    weft_spec_release(&all);
    weft_spec_release(&strided);
    weft_spec_release(&whole);
    weft_context_release(&context);
    return WEFT_OK;
}

START_TEST(different_tensors_are_named)
{
    ck_assert_msg(weft_threads_run(2, move_different_tensors, NULL) == WEFT_OK, "%s",
                  weft_last_error());
}
END_TEST

/* ---- call groups ---- */

/* The refused call is the group's first error. */
static weft_status end_refused_group(weft_comm *comm, weft_status status, const char *function)
{
    EXPECT(status == WEFT_ERR_INVALID && says(function));
    EXPECT(says(" on world: a call group is open") && says("weft_group_end"));
    EXPECT(weft_group_end(comm) == WEFT_ERR_INVALID && says("a call group is open"));
    return WEFT_OK;
}

static weft_status run_in_groups(weft_context *context, weft_bound *bound, const weft_spec *from,
                                 const weft_spec *to)
{
    weft_comm *world = weft_world(context);
    float a[4], b[8] = {0};
    const void *sources[] = {a};
    void *targets[] = {b};
    weft_move_item item = {"w", from, a, to, b};

    for (int i = 0; i < 4; i++)
        a[i] = (float)(2 * i + weft_rank(context));
    WF_TRY(weft_group_begin(world));
    WF_TRY(
        end_refused_group(world, weft_redistribute(bound, a, b, NULL, NULL), "weft_redistribute "));
    WF_TRY(weft_group_begin(world));
    WF_TRY(end_refused_group(world, weft_redistribute_batch(bound, sources, targets, NULL, NULL),
                             "weft_redistribute_batch "));
    WF_TRY(weft_group_begin(world));
    WF_TRY(end_refused_group(world, weft_move(context, from, a, to, b, NULL, NULL), "weft_move "));
    WF_TRY(weft_group_begin(world));
    WF_TRY(end_refused_group(world, weft_move_batch(context, 1, &item, NULL, NULL),
                             "weft_move_batch "));
    for (int i = 0; i < 8; i++)
        EXPECT(b[i] == 0);
    WF_TRY(weft_redistribute(bound, a, b, NULL, NULL)); /* refusals have changed nothing */
    for (int i = 0; i < 8; i++)
        EXPECT(b[i] == (float)i);
    return WEFT_OK;
}

static weft_status redistribute_in_groups(void *unused)
{
    weft_spec *from = spec_of("2", "f32[4,2] S(1)"), *to = spec_of("2", "f32[4,2] R");
    weft_bind_options options = {.struct_size = sizeof options, .packed = true};
    weft_context *context;
    weft_bound *bound = NULL;
    weft_plan *plan = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_plan_create(from, to, NULL, &plan));
    WF_TRY(weft_plan_bind(plan, weft_world(context), &options, &bound));
    WF_TRY(run_in_groups(context, bound, from, to));
    WF_TRY(weft_barrier(weft_world(context), NULL));
    weft_bound_release(&bound);
    weft_plan_release(&plan);
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_context_release(&context);
    return WEFT_OK;
}

START_TEST(a_call_group_refuses_redistributions)
{
    ck_assert_msg(weft_threads_run(2, redistribute_in_groups, NULL) == WEFT_OK, "%s",
                  weft_last_error());
}
END_TEST

SUITE(redistribute_move_messages, a_rank_that_leaves_is_named_with_the_move,
      different_tensors_are_named, a_call_group_refuses_redistributions)
