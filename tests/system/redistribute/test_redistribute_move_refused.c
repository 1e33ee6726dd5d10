/* Moves that are refused: wrong arguments, and a second thread. */
#include "exec/context/kept.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/weft.h"

#include <sched.h>
#include <string.h>

/* ---- arguments ---- */

static bool says(weft_status status, const char *text)
{
    return status == WEFT_ERR_INVALID && strstr(weft_last_error(), text) != NULL;
}

TEST_ON_RANKS(2, wrong_arguments_are_named)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[8] S(0)"), *to = spec_of("2", "f32[8] R");
    OWNED(weft_spec) *longer = spec_of("2", "f32[9] R"), *wider = spec_of("3", "f32[8] R");
    float a[8] = {0}, b[8];
    weft_move_item items[] = {{"w1", from, a, to, b}, {"w2", from, a, longer, b + 4}};
    weft_plan_options wrong = {.struct_size = 3};
    OWNED(weft_context) *context = NULL;
    weft_plan *plan = NULL;

    WF_TRY(weft_init(NULL, &context));
    EXPECT(says(move_one(context, NULL, a, to, b, NULL, NULL), "weft_move: from is NULL"));
    EXPECT(says(move_one(context, from, a, NULL, b, NULL, NULL), "weft_move: to is NULL"));
    EXPECT(says(move_one(context, (void *)weft_spec_mesh(from), a, to, b, NULL, NULL),
                "weft_move: from is a weft_mesh; expected a weft_spec"));
    EXPECT(says(weft_context_plan(context, from, (void *)context, NULL, &plan),
                "weft_context_plan: to is a weft_context; expected a weft_spec"));
    EXPECT(says(move_one(context, from, a, longer, b, NULL, NULL), "weft_move: "));
    EXPECT(says(move_one(context, from, a, wider, b, NULL, NULL),
                "weft_move: the meshes have ranks up to 2"));
    EXPECT(says(move_one(context, from, NULL, to, b, NULL, NULL), "weft_move: source is NULL"));
    EXPECT(says(move_one(context, from, b + 1, to, b, NULL, NULL), "must not overlap otherwise"));
    EXPECT(says(move_items(context, 0, items, NULL, NULL), "count is 0"));
    EXPECT(says(move_items(context, 2, items, NULL, NULL), "weft_move: tensor w2: "));
    items[1] = (weft_move_item){NULL, from, NULL, to, b};
    EXPECT(says(move_items(context, 2, items, NULL, NULL), "items[1].source is NULL"));
    items[1].name = "w2";
    EXPECT(says(move_items(context, 2, items, NULL, NULL), "the source of w2 is NULL"));
    items[1].from = NULL;
    EXPECT(says(move_items(context, 2, items, NULL, NULL), "w2: items[1].from is NULL"));
    items[1] = (weft_move_item){NULL, from, a, (void *)context, b};
    EXPECT(says(move_items(context, 2, items, NULL, NULL),
                "weft_move: items[1].to is a weft_context; expected a weft_spec"));
    EXPECT(weft_context_plan(context, from, to, &wrong, &plan) != WEFT_OK);
    EXPECT(says(weft_context_plan(context, from, longer, NULL, &plan), "weft_context_plan: "));
    WF_TRY(move_one(context, from, a, to, b, NULL, NULL)); /* refusals have changed nothing */
    WF_TRY(weft_barrier(weft_world(context), NULL));
    return WEFT_OK;
}

/* ---- ranks in different orders ---- */

TEST_ON_RANKS(2, different_orders_are_an_error)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[8] S(0)"), *other = spec_of("2", "f32[8] SS(0,2)");
    OWNED(weft_spec) *to = spec_of("2", "f32[8] R");
    float a[4] = {0}, b[8];
    OWNED(weft_context) *context = NULL;
    weft_status status;

    WF_TRY(weft_init(NULL, &context));
    /* The first moves bind: nothing is kept, and the ranks may go on. */
    status = move_one(context, weft_rank(context) == 0 ? from : other, a, to, b, NULL, NULL);
    EXPECT(status == WEFT_ERR_MISMATCH);
    EXPECT(strstr(weft_last_error(), "weft_move: rank ") != NULL);
    EXPECT(strstr(weft_last_error(), "bind different plans") != NULL);
    WF_TRY(move_one(context, from, a, to, b, NULL, NULL));
    WF_TRY(move_one(context, other, a, to, b, NULL, NULL));
    /* Later ones run: the world fails. */
    status = move_one(context, weft_rank(context) == 0 ? from : other, a, to, b, NULL, NULL);
    EXPECT(status == WEFT_ERR_MISMATCH && strstr(weft_last_error(), "weft_move") != NULL);
    EXPECT(move_one(context, from, a, to, b, NULL, NULL) == WEFT_ERR_MISMATCH);
    EXPECT(weft_move_clear(context) == WEFT_ERR_MISMATCH);
    return WEFT_OK;
}

/* ---- memory ---- */

/* Rank 1 has no memory when it begins to bind: both ranks get the error at once. */
static weft_status move_without_memory(void *argument)
{
    uint64_t fail_at = *(const uint64_t *)argument;
    weft_init_options options = {.struct_size = sizeof options, .timeout_ns = 60 * WF_SECOND_NS};
    weft_spec *from = spec_of("2", "f32[8] S(0)"), *to = spec_of("2", "bf16[8] R");
    float a[4] = {0}, b[8];
    OWNED(weft_context) *context = NULL;
    weft_status status;

    WF_TRY(weft_init(&options, &context));
    if (weft_rank(context) == 1) wf_mem_fail_at(fail_at);
    status = move_one(context, from, a, to, b, NULL, NULL);
    wf_mem_fail_at(0);
    EXPECT(status == WEFT_ERR_NO_MEMORY);
    EXPECT(strstr(weft_last_error(), "rank 1: weft_move: out of memory") != NULL);
    WF_TRY(move_one(context, from, a, to, b, NULL, NULL)); /* nothing was kept */
    weft_spec_release(&from);
    weft_spec_release(&to);
    WF_TRY(weft_move_clear(context));
    return WEFT_OK;
}

TEST(a_rank_without_memory_does_not_keep_others_waiting)
{
    for (uint64_t n = 1; n <= 4; n++)
        ck_assert_msg(weft_threads_run(2, move_without_memory, &n) == WEFT_OK, "allocation %d: %s",
                      (int)n, weft_last_error());
}

/* ---- one rank has the move in its cache ---- */

/* The call of the last rank, while the others make a move that they have in their caches. */
enum other { MAKES_ANOTHER_MOVE, MOVES_ON_OTHER_RANKS, HAS_DROPPED_THE_MOVE, CLEARS };

static weft_status do_otherwise(enum other other, weft_context *context, const weft_spec *from,
                                const weft_spec *to)
{
    OWNED(weft_spec) *another = spec_of("3", "f32[12] SS(0,2)");
    OWNED(weft_spec) *rows = spec_of("2@2,0", "f32[12] S(0)"), *all = spec_of("2@2,0", "f32[12] R");
    float a[12] = {0}, b[12];
    weft_status status = WEFT_OK;

    if (other == HAS_DROPPED_THE_MOVE) wf_moves_drop(context);
    if (other == MAKES_ANOTHER_MOVE)
        status = move_one(context, another, a, to, b, NULL, NULL);
    else if (other == MOVES_ON_OTHER_RANKS)
        status = move_one(context, rows, a, all, b, NULL, NULL);
    else if (other == HAS_DROPPED_THE_MOVE)
        status = move_one(context, from, a, to, b, NULL, NULL);
    else
        status = weft_move_clear(context);
    return status;
}

static weft_status move_against(void *argument)
{
    static const char *const names[] = {
        "weft_move on world (comparing plans): f32[12] SS(0,2) -> f32[12] R on 3",
        "rank 2 is at weft_move on world;",
        "weft_move on world (comparing plans): f32[12] S(0) -> ", "weft_move_clear"};
    enum other other = *(const enum other *)argument;
    OWNED(weft_spec) *from = spec_of("3", "f32[12] S(0)"), *to = spec_of("3", "f32[12] R");
    float a[12] = {0}, b[12];
    OWNED(weft_context) *context = NULL;
    weft_status status;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(move_one(context, from, a, to, b, NULL, NULL));
    status = weft_rank(context) == 2 ? do_otherwise(other, context, from, to)
                                     : move_one(context, from, a, to, b, NULL, NULL);
    EXPECT(status == WEFT_ERR_MISMATCH);
    EXPECT(strstr(weft_last_error(), " runs step 1 of plan ") != NULL);
    EXPECT(strstr(weft_last_error(), "f32[12] S(0) -> f32[12] R on 3; rank 2 is at ") != NULL);
    EXPECT(strstr(weft_last_error(), names[other]) != NULL);
    return WEFT_OK;
}

TEST(a_rank_without_the_move_is_found_before_the_time_limit)
{
    for (enum other other = MAKES_ANOTHER_MOVE; other <= CLEARS; other++)
        ck_assert_msg(weft_threads_run(3, move_against, &other) == WEFT_OK, "%d: %s", (int)other,
                      weft_last_error());
}

/* ---- two threads ---- */

static _Atomic(int) second_was_refused;

struct second {
    weft_context *context;
    const weft_spec *from, *to;
    weft_status status, cleared;
    char text[256];
};

/* While the first thread waits for the other rank. */
static void *move_second(void *argument)
{
    struct second *s = argument;
    float a[4] = {0}, b[8];

    while (atomic_load(&wf_exec_state(s->context)->moves.holder) == NULL)
        sched_yield();
    s->status = move_one(s->context, s->from, a, s->to, b, NULL, NULL);
    snprintf(s->text, sizeof s->text, "%s", weft_last_error());
    s->cleared = weft_move_clear(s->context);
    atomic_store(&second_was_refused, 1);
    return NULL;
}

static weft_status move_in_two_threads(void *unused)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[8] S(0)"), *to = spec_of("2", "f32[8] R");
    float a[4] = {0}, b[8];
    struct second second = {.from = from, .to = to};
    OWNED(weft_context) *context = NULL;
    pthread_t thread;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    second.context = context;
    if (weft_rank(context) == 0) EXPECT(pthread_create(&thread, NULL, move_second, &second) == 0);
    while (weft_rank(context) == 1 && !atomic_load(&second_was_refused))
        sched_yield();
    WF_TRY(move_one(context, from, a, to, b, NULL, NULL));
    if (weft_rank(context) == 0) {
        pthread_join(thread, NULL);
        EXPECT(second.status == WEFT_ERR_INVALID && second.cleared == WEFT_ERR_INVALID);
        EXPECT(strstr(second.text, "weft_move: another thread is moving") != NULL);
    }
    WF_TRY(weft_barrier(weft_world(context), NULL));
    return WEFT_OK;
}

TEST(a_second_thread_is_refused)
{
    atomic_store(&second_was_refused, 0);
    ck_assert_msg(weft_threads_run(2, move_in_two_threads, NULL) == WEFT_OK, "%s",
                  weft_last_error());
}
