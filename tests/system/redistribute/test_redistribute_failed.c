/* Bound plans and contexts released while the work of plans and moves still runs.
 *
 * The source of one rank has a page that nobody may access.  That rank and another one copy from it
 * and stay in the handler of the signal until the test opens the gate. */
#include "support/expect.h"
#include "support/gate.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { RANKS = 2, BYTES = 512 * 1024 };

static atomic_bool released_early;

static void *open_gate(void *argument)
{
    (void)argument;
    for (int i = 0; i < 200 && !atomic_load(&gate.over); i++)
        pause_briefly();
    atomic_store(&released_early, atomic_load(&gate.over));
    atomic_store(&gate.open, true);
    return NULL;
}

/* Rank 0 releases BOUND while its stream runs it. */
static weft_status release_while_it_runs(weft_context *context, weft_comm *comm, weft_bound **bound,
                                         const void *source, void *target)
{
    weft_stream *stream = NULL;
    pthread_t helper;

    WF_TRY(weft_stream_create(context, &stream));
    WF_TRY(weft_redistribute(*bound, source, target, stream, NULL));
    while (atomic_load(&gate.entered) < RANKS)
        pause_briefly();
    weft_comm_abort(comm);
    EXPECT(pthread_create(&helper, NULL, open_gate, NULL) == 0);
    weft_bound_release(bound);
    atomic_store(&gate.over, true);
    pthread_join(helper, NULL);
    EXPECT(!atomic_load(&released_early));
    EXPECT(weft_context_wait(context, stream, WEFT_FOREVER) == WEFT_ERR_ABORTED);
    weft_stream_release(&stream);
    return WEFT_OK;
}

static weft_status fail_and_release(void *argument)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[512,512] S(0)"),
                     *to = spec_of("2", "f32[512,512] S(1)");
    unsigned char *source = map_zeros(BYTES), *target = map_zeros(BYTES);
    OWNED(weft_context) *context = NULL;
    OWNED(weft_plan) *plan = NULL;
    weft_comm *comm = NULL;
    weft_bound *bound = NULL;

    (void)argument;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_plan_create(from, to, NULL, &plan));
    WF_TRY(weft_comm_split(weft_world(context), 0, 0, NULL, &comm));
    WF_TRY(weft_plan_bind(plan, comm, NULL, &bound));
    EXPECT(!weft_bound_is_packed(bound));
    if (weft_rank(context) == 1) {
        place_gate(source + BYTES - GATE_BYTES);
    }
    WF_TRY(weft_barrier(comm, NULL));
    if (weft_rank(context) == 0)
        WF_TRY(release_while_it_runs(context, comm, &bound, source, target));
    else
        EXPECT(weft_redistribute(bound, source, target, NULL, NULL) != WEFT_OK);
    munmap(source, BYTES);
    munmap(target, BYTES);
    weft_bound_release(&bound);
    weft_comm_release(&comm);
    return WEFT_OK;
}

static void run_at_gate(int32_t ranks, weft_status (*rank_main)(void *))
{
    struct sigaction action = {.sa_sigaction = stay_at_gate, .sa_flags = SA_SIGINFO}, before;

    close_gate();
    ck_assert_int_eq(sigaction(SIGSEGV, &action, &before), 0);
    ck_assert_msg(weft_threads_run(ranks, rank_main, NULL) == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(sigaction(SIGSEGV, &before, NULL), 0);
}

TEST(a_bound_plan_is_released_after_its_work)
{
    run_at_gate(RANKS, fail_and_release);
}

/* ---- moves ---- */

/* Rank 0 of five releases its context while its stream runs a move of ranks 0 to 3.  The step runs
 * on ranks 0 and 2. */
static weft_status release_context_while_it_moves(void *argument)
{
    weft_spec *from = spec_of("2x2", "f32[512,512] S(0),R");
    weft_spec *to = spec_of("2x2", "f32[512,512] S(1),R");
    unsigned char *source = map_zeros(BYTES), *target = map_zeros(BYTES);
    weft_context *context = NULL;
    weft_stream *stream = NULL;
    pthread_t helper;
    int32_t rank;

    (void)argument;
    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    WF_TRY(move_one(context, from, source, to, target, NULL, NULL)); /* binds */
    if (rank == 2) {
        place_gate(source + BYTES - GATE_BYTES);
    }
    WF_TRY(weft_barrier(weft_world(context), NULL));
    if (rank == 0) {
        WF_TRY(weft_stream_create(context, &stream));
        WF_TRY(move_one(context, from, source, to, target, stream, NULL));
        while (atomic_load(&gate.entered) < 2)
            pause_briefly();
        EXPECT(pthread_create(&helper, NULL, open_gate, NULL) == 0);
    } else {
        (void)!move_one(context, from, source, to, target, NULL, NULL);
    }
    weft_context_release(&context);
    weft_stream_release(&stream); /* after its context */
    if (rank == 0) pthread_join(helper, NULL);
    munmap(source, BYTES);
    munmap(target, BYTES);
    weft_spec_release(&from);
    weft_spec_release(&to);
    return WEFT_OK;
}

TEST(a_context_is_released_after_its_moves)
{
    run_at_gate(5, release_context_while_it_moves);
}
