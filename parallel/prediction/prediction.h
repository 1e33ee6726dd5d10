/* prediction.h - a training step in the parts that are simulated.
 *
 *     work.c      what a line of a graph computes: operations and time
 *     gathers.c   the moves of parameters
 *     model.c     lines -> costs of stages
 *     overlap.c   communication beside compute
 *     lines.c     the times of lines that run one after the other, and of moves beside them
 *     simulate.c  costs of stages and a schedule -> times of all ranks
 *     report.c    the result as text and as JSON; trace.c as a trace */
#ifndef WEFT_PREDICTION_PREDICTION_H
#define WEFT_PREDICTION_PREDICTION_H

#include "graph/graph.h"
#include "weft/prediction.h"

struct weft_prediction {
    weft_prediction_info info;
    weft_cost_table *costs;
    weft_mesh *mesh; /* all axes */
    weft_schedule *schedule;
    weft_timeline *timeline; /* of the slowest pipeline */
    weft_prediction_stage_info *stages;
    weft_prediction_rank_info *ranks; /* by coordinate on the axis of stages */
    bool even;                        /* layers are dealt evenly to stages */
    uint32_t sync_axes; /* bit per axis of the inner mesh whose ranks wait for each other */
};

/* ---- work.c ---- */

/* Operations of one repetition of LINE on a rank. */
double wf_step_flops(const weft_graph *graph, const struct wf_graph_line *line);
/* Compute time of one repetition, without moves.  WEFT_ERR_INVALID: neither a clause nor the cost
 * table gives it. */
weft_status wf_step_compute_ns(const weft_graph *graph, const struct wf_graph_line *line,
                               uint64_t *out) WF_NODISCARD;

/* ---- shares of stages ---- */

/* How many of the layers each stage has. */
struct wf_step_deal {
    int32_t stages;
    const uint32_t *layers; /* by stage; NULL: they are dealt evenly */
};

/* How many of the repetitions of LINE are in STAGE.  OWNER: the stage that has all of them; -1:
 * LINE is in the layers. */
static inline uint64_t wf_step_share(const struct wf_graph_line *line, int32_t owner, int32_t stage,
                                     const struct wf_step_deal *deal)
{
    uint32_t count = (uint32_t)deal->stages;

    if (owner >= 0) return owner == stage ? line->repeat : 0;
    if (deal->layers != NULL) return deal->layers[stage];
    return line->repeat / count + ((uint32_t)stage < line->repeat % count);
}

/* ---- gathers.c ---- */

/* The moves of parameters in the forward and the backward pass. */
struct wf_step_gathers {
    struct wf_step_target *targets; /* parameters and the layouts to which they are moved */
    struct wf_step_use *uses;       /* lines that do so */
    uint32_t target_count, use_count;
    uint32_t *copies;  /* by tensor: repetitions of a parameter, moved or not; 0: it is none */
    uint64_t *line_ns; /* by line: moves of parameters of one repetition */
};

/* Find the moves of GRAPH, which is checked.  The caller frees *OUT, also after a failure. */
weft_status wf_step_gathers_find(const weft_graph *graph, struct wf_step_gathers *out) WF_NODISCARD;
/* Set `unshard` and `gathered` of the stages OUT; OWNER as in wf_step_share, by line.  A rank has
 * the gathered parameters of AT_ONCE layers at once. */
weft_status wf_step_gathers_price(const struct wf_step_gathers *gathers, const weft_graph *graph,
                                  const int32_t *owner, const struct wf_step_deal *deal,
                                  uint64_t at_once, weft_prediction_stage_info *out) WF_NODISCARD;
void wf_step_gathers_free(struct wf_step_gathers *gathers);

/* ---- overlap.c ---- */

/* Percent that compute, and a move, take longer while they run beside each other. */
struct wf_step_slowdown {
    uint32_t compute, moves;
};

/* Run *COMPUTE and *MOVE, nanoseconds that they take alone, beside each other until one of them
 * ends.  Returns the time of that; sets them to what is left. */
uint64_t wf_step_beside(const struct wf_step_slowdown *slow, uint64_t *compute, uint64_t *move);

/* A part of a pass that is gathered and reduced at once: one layer, or what is before or behind
 * them. */
struct wf_step_unit {
    uint64_t compute, gather, reduce; /* ns */
};

/* A pass of a stage: what is before the layers, LAYERS equal layers, what is behind them. */
struct wf_step_pass {
    struct wf_step_unit before, layer, behind;
    uint64_t layers;
};

/* The time of PASS on two lanes, compute and communication.  The gather of a unit begins with the
 * compute of the unit before it, and its reduction after its own compute. */
uint64_t wf_step_overlap(const struct wf_step_pass *pass, const struct wf_step_slowdown *slow);

/* ---- lines.c ---- */

/* The time of a phase of a stage so far. */
struct wf_step_clock {
    uint64_t now;
    uint64_t started;     /* what is left of started moves, alone */
    uint64_t pieces;      /* moves in pieces, for the call that uses their results */
    uint32_t pieces_line; /* the last of them */
    uint32_t call;        /* the last line that computed; 0: none */
    uint64_t beside;      /* compute of that line that moves in pieces can run beside */
    uint64_t compute;     /* all compute of that line; 0: BESIDE is set */
};

/* What happens in line INDEX of GRAPH: its compute and its moves, in ns. */
struct wf_step_spent {
    uint32_t index;
    uint64_t compute, travel;
    uint32_t maker; /* of a move: the line that makes what it moves */
    uint32_t user;  /* of a move: the first line that uses its result; 0: none */
};

/* Add a line to CLOCK; return its time, with what it waits for. */
uint64_t wf_step_spend(const weft_graph *graph, const struct wf_step_spent *line,
                       const struct wf_step_slowdown *slow, struct wf_step_clock *clock);

/* ---- model.c ---- */

/* Set the costs of the stages of OUT, and its layers, boundary and sync_axes, from GRAPH, which is
 * checked; OUT->stages has room for those of DEAL.  If OUT->info.sharded, moves of parameters are
 * in `unshard`; otherwise they are in the times of F, I and W, beside compute as FLAGS say (enum
 * weft_prediction_flag).  WEFT_ERR_INVALID: the layers of DEAL are not those of GRAPH. */
weft_status wf_step_model(const weft_graph *graph, const struct wf_step_deal *deal, uint32_t flags,
                          weft_prediction *out) WF_NODISCARD;

/* What a rank holds of STAGE from the beginning of the step to its end. */
static inline uint64_t wf_step_held(const weft_prediction_stage_info *stage)
{
    return wf_add_capped(wf_add_capped(stage->parameters, stage->optimizer), stage->gradients);
}

/* ---- simulate.c ---- */

/* Simulate a step of GRAPH, which is checked.  OUT is new. */
weft_status wf_step_simulate(const weft_graph *graph, const weft_prediction_options *options,
                             weft_prediction *out) WF_NODISCARD;

/* ---- report.c, trace.c ---- */

weft_status wf_step_add_text(const weft_prediction *p, struct wf_text *out) WF_NODISCARD;
weft_status wf_step_add_json(const weft_prediction *p, struct wf_text *out) WF_NODISCARD;
weft_status wf_step_add_trace(const weft_prediction *p, struct wf_text *out) WF_NODISCARD;

#endif
