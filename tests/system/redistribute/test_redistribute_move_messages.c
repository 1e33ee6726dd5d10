/* Errors of moves name the function that the program called, and what helps. */
#include "support/expect.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/weft.h"

#include <stdio.h>
#include <string.h>

static bool says(const char *text)
{
    return strstr(weft_last_error(), text) != NULL;
}

/* ---- one rank leaves ---- */

/* On three ranks the move has a communicator of its own; on two it has the world. */
static weft_status move_with_a_rank_that_leaves(void *unused)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[8] S(0)"), *to = spec_of("2", "f32[8] R");
    float a[4] = {0}, b[8];
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    if (weft_rank(context) == 0) {
        EXPECT(move_one(context, from, a, to, b, NULL, NULL) == WEFT_ERR_PEER);
        EXPECT(says("weft_move: ") && says("rank 1 has left the job"));
        EXPECT(weft_move_clear(context) == WEFT_ERR_PEER);
        EXPECT(says("weft_move_clear: ")); /* of all ranks, so a third one may be named */
        EXPECT(says("rank 1 has left the job") ||
               (weft_size(context) == 3 && says("rank 2 has left the job")));
    }
    return WEFT_OK;
}

TEST(a_rank_that_leaves_is_named_with_the_move)
{
    for (int32_t size = 2; size <= 3; size++)
        ck_assert_msg(weft_threads_run(size, move_with_a_rank_that_leaves, NULL) == WEFT_OK, "%s",
                      weft_last_error());
}

/* ---- ranks that differ ---- */

TEST_ON_RANKS(2, different_tensors_are_named)
{
    OWNED(weft_spec) *rows = spec_of("2", "f32[8] S(0)"), *all = spec_of("2", "f32[8] R");
    OWNED(weft_spec) *strided = spec_of("2", "f32[8] SS(0,2)"), *whole = spec_of("2", "i32[8] R");
    float a[4] = {0}, b[8], c[8];
    weft_move_item first[] = {{"w1", rows, a, all, b}, {"w2", strided, a, all, c}};
    weft_move_item second[] = {first[1], first[0]};
    OWNED(weft_context) *context = NULL;
    bool odd;

    WF_TRY(weft_init(NULL, &context));
    odd = weft_rank(context) == 1;
    EXPECT(move_one(context, odd ? strided : rows, a, all, b, NULL, NULL) == WEFT_ERR_MISMATCH);
    EXPECT(says("weft_move: rank ") && says("bind different plans"));
    EXPECT(says("in the same order, with the same specs"));
    EXPECT(move_items(context, 2, odd ? second : first, NULL, NULL) == WEFT_ERR_MISMATCH);
    EXPECT(says("weft_move: rank 0 and rank 1 bind different batches: on rank 0, tensor "
                "w1 is f32[8] S(0) -> f32[8] R on 2, "));
    EXPECT(says("; on rank 1, tensor w2 is f32[8] SS(0,2) -> f32[8] R on 2, "));
    EXPECT(move_one(context, rows, a, whole, b, NULL, NULL) == WEFT_ERR_UNSUPPORTED);
    EXPECT(says("weft_move: the source is f32, the target i32, and that cast is not offered"));
    WF_TRY(weft_barrier(weft_world(context), NULL));
    return WEFT_OK;
}

/* ---- lists of sizes that differ where messages do not show them ---- */

TEST_ON_RANKS(3, the_first_size_that_differs_is_named)
{
    OWNED(weft_spec) *a = spec_of("3", "f32[60] B(0;5,5,5,5,5,5,5,6,9,10)");
    OWNED(weft_spec) *b = spec_of("3", "f32[60] B(0;5,5,5,5,5,5,5,6,10,9)");
    OWNED(weft_spec) *c = spec_of("3", "f32[60] B(0;5,5,5,5,5,5,5,6,9,5,5)");
    OWNED(weft_spec) *all = spec_of("3", "f32[60] R");
    float in[60] = {0}, out[2][60];
    OWNED(weft_context) *context = NULL;
    bool odd;

    WF_TRY(weft_init(NULL, &context));
    odd = weft_rank(context) == 2;
    EXPECT(move_one(context, odd ? b : a, in, all, out[0], NULL, NULL) == WEFT_ERR_MISMATCH);
    EXPECT(says("weft_move: rank ") && says("bind different plans"));
    EXPECT(says("with the same specs; size 8 (from 0) of placement 0 of the source is 9 on rank 0 "
                "and 10 on rank 2"));
    EXPECT(move_one(context, all, in, odd ? c : a, out[0], NULL, NULL) == WEFT_ERR_MISMATCH);
    EXPECT(says("; placement 0 of the target lists 10 sizes on rank 0 and 11 on rank 2"));
    EXPECT(move_items(context, 2,
                      (const weft_move_item[]){{"w1", a, in, all, out[0]},
                                               {"w2", odd ? b : a, in, all, out[1]}},
                      NULL, NULL) == WEFT_ERR_MISMATCH);
    EXPECT(says("weft_move: rank 0 and rank 2 bind different batches: on rank 0, tensor w2"));
    EXPECT(says("; size 8 (from 0) of placement 0 of the source is 9 on rank 0 and 10 on rank 2"));
    WF_TRY(move_one(context, a, in, all, out[0], NULL, NULL));
    return WEFT_OK;
}

/* ---- batches that differ in one tensor ---- */

enum { TENSORS = 11 };

/* Rank 2 has another layout of tensor AT, or the tensors before it only. */
struct odd_one {
    uint32_t at;
    bool is_short, has_names;
    char texts[4][512];
};

static weft_status bind_batch(weft_context *context, uint32_t count, const weft_move_item *items)
{
    const weft_spec *from[TENSORS], *to[TENSORS];
    weft_bound *bound = NULL;
    OWNED(weft_plan) *plan = NULL;
    weft_status status;

    for (uint32_t i = 0; i < count; i++) {
        from[i] = items[i].from;
        to[i] = items[i].to;
    }
    WF_TRY(weft_plan_create_batch(count, from, to, NULL, &plan));
    status = weft_plan_bind(plan, weft_world(context), NULL, &bound);
    return status;
}

static weft_status batch_with_an_odd_one(void *argument)
{
    static const char *const names[TENSORS] = {"w0", "w1", "w2", "w3", "w4", "w5",
                                               "w6", "w7", "w8", "w9", "w10"};
    struct odd_one *odd = argument;
    OWNED(weft_spec) *rows = spec_of("4", "f32[8] S(0)"), *all = spec_of("4", "f32[8] R");
    OWNED(weft_spec) *strided = spec_of("4", "f32[8] SS(0,2)");
    weft_move_item items[TENSORS];
    float a[2] = {0}, b[TENSORS][8];
    uint32_t count = TENSORS;
    OWNED(weft_context) *context = NULL;
    weft_status status;

    WF_TRY(weft_init(NULL, &context));
    for (uint32_t i = 0; i < TENSORS; i++)
        items[i] = (weft_move_item){odd->has_names ? names[i] : NULL, rows, a, all, b[i]};
    if (weft_rank(context) == 2 && odd->is_short) count = odd->at;
    if (weft_rank(context) == 2) items[odd->at].from = strided;
    status = odd->has_names ? move_items(context, count, items, NULL, NULL)
                            : bind_batch(context, count, items);
    EXPECT(status == WEFT_ERR_MISMATCH);
    snprintf(odd->texts[weft_rank(context)], sizeof odd->texts[0], "%s", weft_last_error());
    items[odd->at].from = rows; /* nothing was kept, and the world is usable */
    WF_TRY(move_items(context, TENSORS, items, NULL, NULL));
    return WEFT_OK;
}

static void check_odd_one(uint32_t at, bool is_short, bool has_names)
{
    struct odd_one odd = {.at = at, .is_short = is_short, .has_names = has_names};
    const char *mark = has_names ? "w" : "";
    char first[160], other[96];

    ck_assert_msg(weft_threads_run(4, batch_with_an_odd_one, &odd) == WEFT_OK, "%s",
                  weft_last_error());
    snprintf(first, sizeof first,
             "%s: rank 0 and rank 2 bind different batches: on rank 0, tensor %s%u is f32[8] S(0) "
             "-> f32[8] R on 4, ",
             has_names ? "weft_move" : "weft_plan_bind", mark, at);
    if (is_short)
        snprintf(other, sizeof other, "; on rank 2, the batch has %u tensors; ", at);
    else
        snprintf(other, sizeof other, "; on rank 2, tensor %s%u is f32[8] SS(0,2) -> ", mark, at);
    for (int rank = 0; rank < 4; rank++) {
        ck_assert_msg(strncmp(odd.texts[rank], first, strlen(first)) == 0, "%s", odd.texts[rank]);
        ck_assert_msg(strstr(odd.texts[rank], other) != NULL, "%s", odd.texts[rank]);
    }
}

TEST(the_first_tensor_that_differs_is_named_on_all_ranks)
{
    for (uint32_t at = 0; at < TENSORS; at++)
        check_odd_one(at, false, at % 2 == 0);
    check_odd_one(7, true, true);
    check_odd_one(2, true, false);
}

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
    WF_TRY(end_refused_group(world, move_one(context, from, a, to, b, NULL, NULL), "weft_move "));
    WF_TRY(weft_group_begin(world));
    WF_TRY(end_refused_group(world, move_items(context, 1, &item, NULL, NULL), "weft_move "));
    for (int i = 0; i < 8; i++)
        EXPECT(b[i] == 0);
    WF_TRY(weft_redistribute(bound, a, b, NULL, NULL)); /* refusals have changed nothing */
    for (int i = 0; i < 8; i++)
        EXPECT(b[i] == (float)i);
    return WEFT_OK;
}

TEST_ON_RANKS(2, a_call_group_refuses_redistributions)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[4,2] S(1)"), *to = spec_of("2", "f32[4,2] R");
    weft_bind_options options = {.struct_size = sizeof options, .packed = true};
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;
    OWNED(weft_plan) *plan = NULL;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_plan_create(from, to, NULL, &plan));
    WF_TRY(weft_plan_bind(plan, weft_world(context), &options, &bound));
    WF_TRY(run_in_groups(context, bound, from, to));
    WF_TRY(weft_barrier(weft_world(context), NULL));
    weft_bound_release(&bound);
    return WEFT_OK;
}
