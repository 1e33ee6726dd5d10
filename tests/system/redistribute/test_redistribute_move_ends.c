/* The end of a context with moves: bound plans end before the communicators of their steps. */
#include "exec/context/kept.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/weft.h"

enum { RANKS = 5 };

/* The state of the calling rank. */
static _Thread_local int lists_ended, lists_ended_late, steps_ended;
static _Thread_local weft_kernel_table kernel;
static _Thread_local weft_comm_table table;
static _Thread_local void (*destroy_list)(void *list);
static _Thread_local void (*destroy_comm)(void *comm);

static void end_list(void *list)
{
    lists_ended++;
    if (steps_ended > 0) lists_ended_late++;
    destroy_list(list);
}

static void end_step(void *comm)
{
    steps_ended++;
    destroy_comm(comm);
}

/* Observe the lists of BOUND, and the communicators of its steps. */
static void observe(weft_bound *bound)
{
    kernel = *bound->kernel;
    destroy_list = kernel.regions_destroy;
    kernel.regions_destroy = end_list;
    bound->kernel = &kernel;
    for (uint32_t i = 0; i < bound->action_count; i++) {
        weft_comm *comm = bound->actions[i].comm;

        if (comm == NULL || comm == bound->team) continue;
        table = *comm->table;
        destroy_comm = table.destroy;
        table.destroy = end_step;
        comm->table = &table;
    }
}

TEST_ON_RANKS(RANKS, a_context_drops_its_moves_before_the_communicators_of_their_steps)
{
    weft_spec *from = spec_of("2x2@0-3", "f32[8,8] S(0),S(1)");
    weft_spec *to = spec_of("2x2@0-3", "f32[8,8] S(0),R");
    float source[16] = {0}, target[32];
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(move_one(context, from, source, to, target, NULL, NULL));
    WF_TRY(weft_barrier(weft_world(context), NULL));
    if (weft_rank(context) < 4) observe(wf_exec_state(context)->moves.movers->oldest->bound);
    weft_spec_release(&from);
    weft_spec_release(&to);
    if (weft_rank(context) == 4) {
        weft_context_release(&context);
        return WEFT_OK;
    }
    weft_context_release(&context);
    EXPECT(lists_ended > 0 && steps_ended > 0);
    EXPECT(lists_ended_late == 0);
    return WEFT_OK;
}
