/* lines.c - the times of lines that run one after the other, and of moves that run beside them.
 *
 * A started move runs beside all lines until its wait.  A move in pieces runs beside one call, as
 * the ring of context parallel does: one piece is there from the beginning, or remains, and the
 * compute of the other pieces hides the moves. */
#include "prediction/prediction.h"

/* Compute beside what has been started. */
static void compute(struct wf_step_clock *clock, const struct wf_step_slowdown *slow, uint64_t ns)
{
    while (ns > 0 && clock->started > 0) {
        uint64_t time = wf_step_beside(slow, &ns, &clock->started);
        clock->now = wf_add_capped(clock->now, time);
    }
    clock->now = wf_add_capped(clock->now, ns);
}

/* Time passes in which nothing computes: what has been started goes on. */
static void pass(struct wf_step_clock *clock, uint64_t ns)
{
    clock->now = wf_add_capped(clock->now, ns);
    clock->started = clock->started > ns ? clock->started - ns : 0;
}

/* Wait for what has been started. */
static void wait(struct wf_step_clock *clock)
{
    clock->now = wf_add_capped(clock->now, clock->started);
    clock->started = 0;
}

/* The ranks among which LINE moves: as many pieces does it have. */
static uint64_t pieces_of(const weft_graph *g, const struct wf_graph_line *line)
{
    weft_plan_step_info step = {.struct_size = sizeof step};
    uint64_t ranks = 1;
    uint32_t axes = 0;

    for (uint32_t s = 0; line->after != NULL && line->after[0] != NULL &&
                         weft_plan_step_get(line->after[0], s, &step) == WEFT_OK;
         s++)
        axes |= step.axes;
    for (int32_t a = 0; a < weft_mesh_axes(g->mesh); a++)
        if (axes >> a & 1) ranks *= (uint64_t)weft_mesh_axis_size(g->mesh, a);
    return ranks;
}

/* *MOVE beside *FREE ns of compute, which have passed already or not: what both take. */
static uint64_t take_both(const struct wf_step_slowdown *slow, uint64_t *free, uint64_t move)
{
    uint64_t time = 0;

    if (*free > 0 && move > 0) time = wf_step_beside(slow, free, &move);
    return wf_add_capped(time, move);
}

/* A call that uses the results of moves in pieces. */
static void compute_pieces(const weft_graph *g, const struct wf_step_slowdown *slow,
                           struct wf_step_clock *clock, uint64_t ns)
{
    uint64_t own = ns / pieces_of(g, &g->lines[clock->pieces_line]), rest = ns - own;
    uint64_t time = take_both(slow, &rest, clock->pieces);

    pass(clock, wf_add_capped(own, wf_add_capped(time, rest)));
    clock->pieces = 0;
    clock->beside = rest;
    clock->compute = 0;
}

/* A move in pieces of a result of the last call. */
static void move_pieces(struct wf_step_clock *clock, const struct wf_step_slowdown *slow,
                        uint64_t pieces, uint64_t travel)
{
    uint64_t passed, time;

    if (clock->compute > 0) clock->beside = clock->compute - clock->compute / pieces;
    clock->compute = 0;
    passed = clock->beside;
    time = take_both(slow, &clock->beside, travel);
    passed -= clock->beside; /* compute that the clock has already, beside which the move ran */
    pass(clock, time > passed ? time - passed : 0);
}

static bool uses_pieces(const weft_graph *g, const struct wf_step_spent *line,
                        const struct wf_step_clock *clock)
{
    const struct wf_graph_line *call = &g->lines[line->index],
                               *move = &g->lines[clock->pieces_line];

    for (uint32_t i = 0; clock->pieces > 0 && i < call->input_count; i++)
        if (call->inputs[i] >= 0 && call->inputs[i] == move->outputs[0]) return true;
    return false;
}

static void spend_call(const weft_graph *g, const struct wf_step_spent *line,
                       const struct wf_step_slowdown *slow, struct wf_step_clock *clock)
{
    if (uses_pieces(g, line, clock)) {
        compute_pieces(g, slow, clock, line->compute);
    } else {
        compute(clock, slow, line->compute);
        clock->compute = line->compute;
        clock->beside = 0;
    }
    clock->call = line->index;
    pass(clock, line->travel);
}

static void spend_move(const weft_graph *g, const struct wf_step_spent *line,
                       const struct wf_step_slowdown *slow, struct wf_step_clock *clock)
{
    const struct wf_graph_line *move = &g->lines[line->index], *user = &g->lines[line->user];
    uint64_t pieces = move->pieces ? pieces_of(g, move) : 1;

    if (pieces > 1 && line->maker == clock->call && clock->call > 0) {
        move_pieces(clock, slow, pieces, line->travel);
    } else if (pieces > 1 && line->user > 0 && user->kind == WF_GRAPH_CALL &&
               user->phase == move->phase) {
        clock->pieces = wf_add_capped(clock->pieces, line->travel);
        clock->pieces_line = line->index;
    } else {
        pass(clock, line->travel);
    }
}

uint64_t wf_step_spend(const weft_graph *graph, const struct wf_step_spent *line,
                       const struct wf_step_slowdown *slow, struct wf_step_clock *clock)
{
    uint64_t before = clock->now;

    switch (graph->lines[line->index].kind) {
    case WF_GRAPH_START:
        clock->started = wf_add_capped(clock->started, line->travel);
        break;
    case WF_GRAPH_WAIT:
        compute(clock, slow, line->compute);
        wait(clock);
        break;
    case WF_GRAPH_CALL:
        spend_call(graph, line, slow, clock);
        break;
    default:
        spend_move(graph, line, slow, clock);
        break;
    }
    return clock->now - before;
}
