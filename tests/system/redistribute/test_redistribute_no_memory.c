/* Binding and moving, with each allocation of one rank failing in turn: all ranks get the same
 * error, nothing is left, and the same call succeeds afterwards.  Without scratch for a run, the
 * world fails on all ranks. */
#include "exec/context/kept.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/weft.h"

#include <stdio.h>
#include <string.h>

enum { RANKS = 4, TENSORS = 2, ELEMENTS = 12 * 8 };

/* A call that all ranks make, while allocation FAIL_AT of rank 1 fails. */
struct attempt {
    weft_status (*call)(struct attempt *attempt, weft_context *context);
    const char *mesh, *from[TENSORS], *to[TENSORS];
    weft_bind_options options;
    int32_t without; /* a rank that has no part in the call; 0: all have */
    uint64_t fail_at;
    weft_spec *specs[2][TENSORS];
    weft_plan *plan;
    weft_status status[RANKS];
    char text[RANKS][512];
    bool has_failed; /* rank 1 has made that many allocations */
};

/* ---- the calls ---- */

static weft_status bind_plan(struct attempt *a, weft_context *context)
{
    weft_bound *bound = NULL;
    weft_status status = weft_plan_bind(a->plan, weft_world(context), &a->options, &bound);

    EXPECT((status == WEFT_OK) == (bound != NULL));
    weft_bound_release(&bound);
    return status;
}

/* True if TEXT says that rank 1 had no scratch for a run, which is not a part of binding. */
static bool lacked_scratch(const char *text)
{
    return strstr(text, " on world: rank 1 cannot run ") != NULL &&
           strstr(text, ": scratch: out of memory") != NULL;
}

static weft_status try_move(struct attempt *a, weft_context *context)
{
    static double memory[RANKS][2][ELEMENTS];
    double *mine = memory[weft_rank(context)][0];

    return move_one(context, a->specs[0][0], mine, a->specs[1][0], mine + ELEMENTS, NULL, NULL);
}

static weft_status move_two(struct attempt *a, weft_context *context)
{
    static double memory[RANKS][2 * TENSORS][ELEMENTS];
    weft_move_item items[TENSORS];

    for (int i = 0; i < TENSORS; i++)
        items[i] = (weft_move_item){"tensor", a->specs[0][i], memory[weft_rank(context)][2 * i],
                                    a->specs[1][i], memory[weft_rank(context)][2 * i + 1]};
    return move_items(context, TENSORS, items, NULL, NULL);
}

/* ---- one attempt ---- */

static weft_status attempt_on_rank(void *argument)
{
    struct attempt *a = argument;
    OWNED(weft_context) *context = NULL;
    int32_t rank;

    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    if (rank == 1) wf_mem_fail_at(a->fail_at);
    a->status[rank] = a->call(a, context);
    snprintf(a->text[rank], sizeof a->text[rank], "%s", weft_last_error());
    if (rank == 1) a->has_failed = a->fail_at > 0 && wf_mem_made() >= a->fail_at;
    wf_mem_fail_at(0);
    /* The world is usable, and the ranks are still at the same call. */
    if (!lacked_scratch(a->text[rank])) WF_TRY(a->call(a, context));
    return WEFT_OK;
}

static void open_attempt(struct attempt *a)
{
    const weft_spec *from[TENSORS], *to[TENSORS];

    for (int i = 0; i < TENSORS; i++) {
        from[i] = a->specs[0][i] = spec_of(a->mesh, a->from[i]);
        to[i] = a->specs[1][i] = spec_of(a->mesh, a->to[i]);
    }
    a->options.struct_size = sizeof a->options;
    if (a->call != bind_plan) return;
    if (a->from[0] == a->from[1])
        ck_assert_int_eq(weft_plan_create(from[0], to[0], NULL, &a->plan), WEFT_OK);
    else
        ck_assert_int_eq(weft_plan_create_batch(TENSORS, from, to, NULL, &a->plan), WEFT_OK);
}

static void close_attempt(struct attempt *a)
{
    for (int i = 0; i < TENSORS; i++) {
        weft_spec_release(&a->specs[0][i]);
        weft_spec_release(&a->specs[1][i]);
    }
    weft_plan_release(&a->plan);
}

static void run_attempt(struct attempt *a)
{
    ck_assert_msg(weft_threads_run(RANKS, attempt_on_rank, a) == WEFT_OK, "allocation %d: %s",
                  (int)a->fail_at, weft_last_error());
}

/* Every allocation of rank 1 in the call fails once. */
static void fail_each(struct attempt a)
{
    int failures = 0;
    int64_t live;

    open_attempt(&a);
    run_attempt(&a); /* with all allocations */
    live = wf_mem_live();
    for (a.fail_at = 1;; a.fail_at++) {
        run_attempt(&a);
        ck_assert_int_eq(wf_mem_live(), live);
        if (!a.has_failed) break;
        for (int rank = 0; rank < RANKS; rank++) { /* texts of descriptions may be left out */
            if (rank > 0 && rank == a.without) continue;
            if (lacked_scratch(a.text[1])) {
                weft_status expected = rank == 1 ? WEFT_ERR_NO_MEMORY : WEFT_ERR_ABORTED;
                ck_assert_msg(a.status[rank] == expected && lacked_scratch(a.text[rank]),
                              "allocation %d, rank %d: %s", (int)a.fail_at, rank, a.text[rank]);
                continue;
            }
            ck_assert_msg(a.status[rank] == a.status[1] &&
                              (a.status[1] == WEFT_OK || a.status[1] == WEFT_ERR_NO_MEMORY),
                          "allocation %d, rank %d: %s: %s", (int)a.fail_at, rank,
                          weft_status_name(a.status[rank]), a.text[rank]);
        }
        failures += a.status[1] != WEFT_OK;
    }
    printf("%d of %d allocations are needed\n", failures, (int)a.fail_at - 1);
    ck_assert_int_gt(failures, 10);
    close_attempt(&a);
}

static const char *const narrow[] = {"f32[12,8] S(0)", "bf16[12,8] S(1)"};

TEST(a_plan_that_casts)
{
    for (int packed = 0; packed < 2; packed++)
        fail_each((struct attempt){.call = bind_plan,
                                   .mesh = "4",
                                   .from = {narrow[0], narrow[0]},
                                   .to = {narrow[1], narrow[1]},
                                   .options = {.packed = packed, .in_place = packed}});
}

TEST(a_plan_on_groups)
{
    fail_each((struct attempt){.call = bind_plan,
                               .mesh = "2x2",
                               .from = {"f32[12,8] S(0),S(1)", "f32[12,8] S(0),S(1)"},
                               .to = {"bf16[12,8] R,S(1)", "bf16[12,8] R,S(1)"}});
}

/* The ranks of the batch are not all ranks of the world. */
TEST(a_batch_on_a_group)
{
    fail_each((struct attempt){.call = bind_plan,
                               .mesh = "3@3,1,0",
                               .from = {"f32[12,8] S(0)", "bf16[12,8] S(0)"},
                               .to = {"bf16[12,8] S(1)", "bf16[12,8] R"}});
}

TEST(a_move_on_a_group)
{
    fail_each((struct attempt){.call = try_move,
                               .mesh = "3@3,1,0",
                               .without = 2,
                               .from = {narrow[0], narrow[0]},
                               .to = {narrow[1], narrow[1]}});
}

TEST(a_batch)
{
    fail_each((struct attempt){.call = bind_plan,
                               .mesh = "4",
                               .from = {"f32[12,8] S(0)", "f32[12,8] P"},
                               .to = {"bf16[12,8] S(1)", "f32[12,8] R"}});
}

TEST(a_move)
{
    fail_each((struct attempt){.call = try_move,
                               .mesh = "4",
                               .from = {narrow[0], narrow[0]},
                               .to = {narrow[1], narrow[1]}});
}

TEST(a_move_of_a_batch)
{
    fail_each((struct attempt){.call = move_two,
                               .mesh = "4",
                               .from = {"f32[12,8] S(0)", "f32[12,8] P"},
                               .to = {"bf16[12,8] S(1)", "f32[12,8] R"}});
}
