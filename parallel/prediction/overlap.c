/* overlap.c - communication beside compute: both take longer than alone.
 */
#include "prediction/prediction.h"

/* NS, PERCENT longer. */
static uint64_t longer(uint64_t ns, uint32_t percent)
{
    return wf_add_capped(ns,
                         wf_add_capped(wf_mul_capped(ns / 100, percent), ns % 100 * percent / 100));
}

/* What is done of a time in NS that is PERCENT longer. */
static uint64_t done_in(uint64_t ns, uint32_t percent)
{
    uint64_t whole = 100 + (uint64_t)percent;

    return ns / whole * 100 + ns % whole * 100 / whole;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

uint64_t wf_step_beside(const struct wf_step_slowdown *slow, uint64_t *compute, uint64_t *move)
{
    uint64_t computes = longer(*compute, slow->compute), moves = longer(*move, slow->moves);

    if (computes <= moves) {
        *compute = 0;
        *move = less(*move, done_in(computes, slow->moves));
        return computes;
    }
    *move = 0;
    *compute = less(*compute, done_in(moves, slow->compute));
    return moves;
}

/* ---- gathers of parameters and reductions of gradients beside the compute of other layers ---- */

/* The time, and the moves that wait for the link, the first of which runs. */
struct lanes {
    const struct wf_step_slowdown *slow;
    uint64_t clock;
    uint64_t moves[3]; /* reductions, a gather, reductions */
    int count;
    int gather; /* moves until the parameters of the next unit are gathered; 0: they are */
};

static void push_gather(struct lanes *lanes, uint64_t move)
{
    lanes->gather = 0;
    if (move == 0) return;
    lanes->moves[lanes->count++] = move;
    lanes->gather = lanes->count;
}

/* Reductions that wait behind each other are one move. */
static void push_reduction(struct lanes *lanes, uint64_t move)
{
    if (lanes->count == lanes->gather) lanes->moves[lanes->count++] = 0;
    lanes->moves[lanes->count - 1] = wf_add_capped(lanes->moves[lanes->count - 1], move);
}

static void pop(struct lanes *lanes)
{
    lanes->count--;
    if (lanes->gather > 0) lanes->gather--;
    for (int i = 0; i < lanes->count; i++)
        lanes->moves[i] = lanes->moves[i + 1];
}

/* Move while nothing computes, until at most LEFT moves are left. */
static void drain(struct lanes *lanes, int left)
{
    while (lanes->count > left) {
        lanes->clock = wf_add_capped(lanes->clock, lanes->moves[0]);
        pop(lanes);
    }
}

/* Compute UNIT, gather NEXT beside it, and reduce the gradients of UNIT behind that. */
static void run_unit(struct lanes *lanes, const struct wf_step_unit *unit,
                     const struct wf_step_unit *next)
{
    uint64_t compute = unit->compute;

    drain(lanes, lanes->count - lanes->gather); /* its parameters are there */
    push_gather(lanes, next->gather);
    while (compute > 0 && lanes->count > 0) {
        uint64_t time = wf_step_beside(lanes->slow, &compute, &lanes->moves[0]);
        lanes->clock = wf_add_capped(lanes->clock, time);
        if (lanes->moves[0] == 0) pop(lanes);
    }
    lanes->clock = wf_add_capped(lanes->clock, compute);
    push_reduction(lanes, unit->reduce);
}

uint64_t wf_step_overlap(const struct wf_step_pass *pass, const struct wf_step_slowdown *slow)
{
    const struct wf_step_unit *first = pass->layers > 0 ? &pass->layer : &pass->behind;
    struct lanes lanes = {.slow = slow, .clock = pass->before.gather};

    run_unit(&lanes, &pass->before, first);
    for (uint64_t i = 0; i < pass->layers; i++)
        run_unit(&lanes, &pass->layer, i + 1 < pass->layers ? &pass->layer : &pass->behind);
    run_unit(&lanes, &pass->behind, &(struct wf_step_unit){.compute = 0});
    drain(&lanes, 0);
    return lanes.clock;
}
