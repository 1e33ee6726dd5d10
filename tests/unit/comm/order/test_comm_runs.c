/* The counts of runs of one rank, compared with those that another rank reports. */
#include "comm/comm.h"
#include "support/fake_world.h"
#include "support/suite.h"

static weft_context *context;
static weft_comm *comm;
static struct wf_plan_runs first, second;

/* The other rank waits in this step, and has dropped plan 'a' (bit 0) or 'b' (bit 1). */
static const char *waits_in = "";
static uint32_t dropped;

static void begin(void)
{
    fake_reset();
    context = world_alone();
    comm = weft_world(context);
    first = (struct wf_plan_runs){
        .binding = 1, .digest = 0x11, .function = "weft_move", .text = "the first"};
    second = (struct wf_plan_runs){
        .binding = 2, .digest = 0x22, .function = "weft_move", .text = "the second"};
    wf_runs_add(comm, &first);
    wf_runs_add(comm, &second);
}

static void end(void)
{
    wf_runs_remove(comm, &first);
    wf_runs_remove(comm, &second);
    weft_context_release(&context);
}

static void run(struct wf_plan_runs *plan)
{
    wf_runs_begin(&comm->runs, plan, atomic_load(&comm->collectives));
}

/* Begin ORDER on this rank: 'a' and 'b' are the plans, '+' is a collective. */
static void run_all(const char *order)
{
    for (; *order != '\0'; order++)
        if (*order == '+')
            comm->collectives++;
        else
            run(*order == 'a' ? &first : &second);
}

static void put_counts(struct wf_text *out, const char *order)
{
    struct wf_text notes = {0};
    uint64_t begun[2] = {0}, collectives = 0;
    uint32_t count = 0;

    for (; *order != '\0'; order++) {
        if (*order == '+') {
            collectives++;
            continue;
        }
        wf_put_u32(&notes, *order == 'a' ? 1 : 2);
        wf_put_u64(&notes, ++begun[*order - 'a']);
        wf_put_u64(&notes, collectives);
        count++;
    }
    wf_put_u64(out, collectives);
    wf_put_u32(out, 2);
    wf_put_u32(out, 3);
    wf_put_u32(out, count);
    wf_text_append(out, notes.data, notes.length);
    wf_put_u32(out, 9); /* a plan that this rank does not have */
    wf_put_u64(out, 100);
    for (uint32_t i = 0; i < 2; i++) {
        if (dropped >> i & 1) continue;
        wf_put_u32(out, i + 1);
        wf_put_u64(out, begun[i]);
    }
    wf_text_free(&notes);
}

/* True if this rank's order of runs differs.  BYTES: truncate the answer to that length; 0: do
 * not. */
static bool differs_cut(const char *order, size_t bytes)
{
    struct wf_text counts = {0}, answer = {0};
    int32_t rank = 5;
    weft_blob blob;

    put_counts(&counts, order);
    wf_put_u32(&answer, WF_WHERE_KNOWN);
    wf_put_u64(&answer, 0);
    wf_put_u64(&answer, 0);
    wf_put_blob(&answer, "", 0);
    wf_put_blob(&answer, counts.data, counts.length);
    wf_put_string(&answer, waits_in);
    blob = (weft_blob){answer.data, bytes > 0 ? bytes : answer.length};
    wf_runs_receive(context, &(struct wf_question){comm->number, &rank, 1},
                    &(struct wf_gathered){.blobs = &blob, .count = 1});
    wf_text_free(&counts);
    wf_text_free(&answer);
    return atomic_load(&comm->cause) != WEFT_OK;
}

static bool differs(const char *order)
{
    comm->runs.seen = atomic_load(&comm->runs.begun); /* the question was asked after the runs */
    return differs_cut(order, 0);
}

TEST(the_same_order_is_fine)
{
    static const char *const whole = "ab+aab+bba+";
    char mine[16], theirs[16];

    for (int i = 0; i <= 11; i++)
        for (int j = 0; j <= 11; j++) {
            snprintf(mine, sizeof mine, "%.*s", i, whole);
            snprintf(theirs, sizeof theirs, "%.*s", j, whole);
            begin();
            run_all(mine);
            ck_assert_msg(!differs(theirs), "%s and %s", mine, theirs);
            end();
        }
}

TEST(runs_that_wait_for_each_other_are_found)
{
    begin();
    run(&first);
    ck_assert(differs("b"));
    ck_assert_int_eq(wf_comm_cause(comm), WEFT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(
        weft_last_error(), "rank 0 runs plan 0000000000000011 (binding 1): the first; rank 5 "
                           "runs step 3 of plan 0000000000000022 (binding 2): the second; all "
                           "ranks must run bound plans in the same order"));
    end();
}

/* The ranks have posted their runs and collectives to their streams. */
TEST(runs_that_have_begun_are_compared_by_their_order)
{
    static const char *const pairs[][2] = {
        {"ab", "ba"}, {"abab", "baab"}, {"aab", "baa"},   {"abab", "b"}, {"a+", "+a"},
        {"a+", "+"},  {"a", "+"},       {"ab+b", "abb+"}, {"ab+", "+"},  {"a+a", "aa"}};

    for (size_t i = 0; i < 2 * WF_COUNT(pairs); i++) {
        begin();
        run_all(pairs[i / 2][i % 2]);
        ck_assert_msg(differs(pairs[i / 2][1 - i % 2]), "%s and %s", pairs[i / 2][0],
                      pairs[i / 2][1]);
        end();
    }
}

/* One rank has begun many more runs than it has records. */
TEST(old_runs_are_not_compared)
{
    begin();
    run_all("ab");
    for (int i = 0; i < 100; i++)
        run_all("b+");
    ck_assert(!differs("ab"));
    ck_assert(!differs("a"));
    ck_assert(!differs("abb+b+b+"));
    ck_assert(differs("abba"));
    end();
}

/* The rank may try again, and the others have not begun another run. */
TEST(a_run_that_failed_does_not_count)
{
    uint64_t last;

    begin();
    run_all("ab");
    last = atomic_load(&first.last);
    run(&first);
    wf_runs_undo(&comm->runs, &first, last);
    ck_assert(!differs("ab"));
    run(&second);
    ck_assert(!differs("abb"));
    ck_assert(differs("aba"));
    end();
}

TEST(an_answer_that_is_cut_proves_nothing)
{
    begin();
    run(&first);
    for (size_t bytes = 1; bytes < 36 + 20 + 20 + 3 * 12 + 8; bytes++)
        ck_assert(!differs_cut("b", bytes));
    ck_assert(differs("b"));
    end();
}

/* ---- a rank that waits in a step ---- */

/* This rank has begun MINE, the other one THEIRS. */
static bool differs_at_a_step(const char *mine, const char *theirs)
{
    bool found;

    begin();
    first.is_for_all = second.is_for_all = dropped != 0;
    waits_in = "weft_move on world (comparing plans): the third";
    run_all(mine);
    found = differs(theirs);
    ck_assert(!found || strstr(comm->cause_text, "rank 5 is at weft_move on world (comparing "
                                                 "plans): the third; all ranks must bind") != NULL);
    waits_in = "";
    end();
    return found;
}

TEST(a_rank_that_waits_in_a_step_before_the_run_is_found)
{
    ck_assert(differs_at_a_step("a", ""));
    ck_assert(differs_at_a_step("ab", "a"));
    ck_assert(differs_at_a_step("aba", "ab"));
    ck_assert(!differs_at_a_step("", ""));
    ck_assert(!differs_at_a_step("ab", "ab"));
    ck_assert(!differs_at_a_step("ab", "abab"));
}

/* The other rank has waited for this one to bind the plan that has begun since. */
TEST(an_answer_that_is_older_than_the_run_names_no_step)
{
    begin();
    waits_in = "weft_move on world (binding): the first";
    run(&second);
    comm->runs.seen = atomic_load(&comm->runs.begun);
    run(&first);
    ck_assert(!differs_cut("b", 0));
    ck_assert(differs("b"));
    waits_in = "";
    end();
}

/* The other rank has dropped plan 'a', which all ranks run. */
TEST(a_rank_without_the_plan_is_behind_by_its_last_run)
{
    dropped = 1;
    ck_assert(differs_at_a_step("a", ""));
    ck_assert(differs_at_a_step("aa", "a"));
    ck_assert(differs_at_a_step("aba", "ab"));
    ck_assert(!differs_at_a_step("a", "a"));
    ck_assert(!differs_at_a_step("aba", "aba"));
    ck_assert(!differs_at_a_step("aba", "abab"));
    dropped = 0;
}

/* Without that, the other rank may have no part in the plan. */
TEST(a_rank_without_a_part_in_the_plan_may_wait)
{
    begin();
    dropped = 1;
    waits_in = "weft_plan_bind on world (comparing plans)";
    run(&first);
    ck_assert(!differs(""));
    waits_in = "";
    dropped = 0;
    end();
}

/* ---- several ranks ---- */

static struct world_rank ranks[3];
static struct wf_plan_runs plans[3][2];
static _Atomic(weft_comm *) worlds[3];

static bool has_failed(int rank)
{
    return worlds[rank] != NULL && atomic_load(&worlds[rank]->cause) != WEFT_OK;
}

/* Wait, for a limited time, until rank ONE and rank OTHER have failed. */
static bool both_fail(int one, int other)
{
    for (int ms = 0; ms < 60000 && !(has_failed(one) && has_failed(other)); ms += 10)
        fake_sleep_ms(10);
    return has_failed(one) && has_failed(other);
}

static void list_plans(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context);

    for (uint32_t i = 0; i < 2; i++) {
        plans[self->rank][i] = (struct wf_plan_runs){.binding = i + 1, .digest = i + 1};
        wf_runs_add(world, &plans[self->rank][i]);
    }
    HOLDS(weft_barrier(world, NULL) == WEFT_OK);
    worlds[self->rank] = world;
    while (worlds[0] == NULL || worlds[1] == NULL || (self->size == 3 && worlds[2] == NULL))
        fake_sleep_ms(1);
}

static atomic_int ended;

static void unlist_plans(struct world_rank *self)
{
    note_seen(&self->seen, wf_comm_cause(weft_world(self->context)));
    for (uint32_t i = 0; i < 2; i++)
        wf_runs_remove(weft_world(self->context), &plans[self->rank][i]);
    for (ended++; ended < self->size;)
        fake_sleep_ms(1);
}

/* Ranks 0 and 1 run different plans.  The thread of rank 2 that answers queries waits for the
 * context's lock. */
static void swap_beside_a_silent_rank(struct world_rank *self)
{
    list_plans(self);
    if (self->rank == 2) pthread_mutex_lock(&self->context->lock);
    if (self->rank < 2)
        wf_runs_begin(&weft_world(self->context)->runs, &plans[self->rank][self->rank], 0);
    HOLDS(both_fail(0, 1));
    if (self->rank == 2) pthread_mutex_unlock(&self->context->lock);
    unlist_plans(self);
}

TEST(a_rank_that_does_not_answer_hides_no_mismatch)
{
    fake_reset();
    ended = 0;
    memset(worlds, 0, sizeof worlds);
    world_run(ranks, 3, swap_beside_a_silent_rank, NULL);
    all_saw(ranks, 2, WEFT_ERR_MISMATCH, "all ranks must run bound plans in the same order");
}

static atomic_bool watches_aborts, reported_first;

/* Rank 0 does not query, so it fails because of a report. */
static void abort_and_look(void *handle)
{
    fake_abort(handle);
    if (watches_aborts && ((struct fake_comm *)handle)->world_rank == 1) {
        for (int ms = 0; ms < 20000 && !has_failed(0); ms += 10)
            fake_sleep_ms(10);
        reported_first = has_failed(0);
    }
}

static void swap_and_look(struct world_rank *self)
{
    list_plans(self);
    watches_aborts = true;
    if (self->rank == 0) {
        atomic_store(&weft_world(self->context)->runs.done, 1);
        wf_runs_begin(&weft_world(self->context)->runs, &plans[0][0], 0);
    } else {
        wf_runs_begin(&weft_world(self->context)->runs, &plans[1][1], 0);
    }
    HOLDS(both_fail(0, 1));
    unlist_plans(self);
}

TEST(a_rank_reports_a_mismatch_before_it_fails)
{
    weft_comm_table table = fake_comm;
    weft_plugin plugin = *fake_plugin();

    fake_reset();
    table.abort = abort_and_look;
    plugin.comm = &table;
    ended = 0;
    memset(worlds, 0, sizeof worlds);
    watches_aborts = reported_first = false;
    world_begin(ranks, 2, swap_and_look, NULL);
    ranks[0].plugin = ranks[1].plugin = &plugin;
    world_go(ranks, 2);
    all_saw(ranks, 2, WEFT_ERR_MISMATCH, "all ranks must run bound plans in the same order");
    ck_assert(reported_first);
}

/* A move among some ranks of the world is noted with the communicator of these ranks. */
TEST(a_wait_names_the_plan_that_waits)
{
    static weft_context own;
    static weft_comm world, movers, pair;
    static struct wf_plan_runs plan = {
        .binding = 1, .function = "weft_redistribute", .text = "a plan"};
    static struct wf_plan_runs move = {.binding = 1, .function = "weft_move", .text = "a move"};
    char text[256];

    pthread_mutex_init(&own.lock, NULL);
    world = (weft_comm){.context = &own, .groups = &movers};
    movers = (weft_comm){.context = &own, .owner = &world, .next_group = &pair};
    pair = (weft_comm){.context = &own, .owner = &world};
    wf_runs_describe_last(&pair, "copy", text, sizeof text);
    ck_assert_str_eq(text, "work on stream copy");
    world.runs.list = &plan;
    wf_runs_begin(&world.runs, &plan, 0);
    wf_runs_step(&plan, 1, &pair);
    wf_runs_describe_last(&pair, "", text, sizeof text);
    ck_assert_str_eq(text, "work on a stream, last started by weft_redistribute: a plan: step 1");
    plan.name = "layer3.weight";
    wf_runs_describe_last(&pair, "grads", text, sizeof text);
    ck_assert_str_eq(text, "work on stream grads, last started by weft_redistribute: tensor "
                           "layer3.weight: a plan: step 1");
    movers.runs.list = &move;
    wf_runs_begin(&movers.runs, &move, 0);
    wf_runs_step(&move, 2, &pair);
    wf_runs_describe_last(&pair, "", text, sizeof text);
    ck_assert_str_eq(text, "work on a stream, last started by weft_move: a move: step 2");
    pthread_mutex_destroy(&own.lock);
}
