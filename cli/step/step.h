/* step.h - the time and the memory of a training step, before any machine is rented.
 *
 *     work.c      what a line of a graph computes: operations and time
 *     gathers.c   the moves of parameters
 *     model.c     lines -> costs of stages
 *     simulate.c  costs of stages and a schedule -> times of all ranks
 *     report.c    the result as text and as JSON; trace.c as a trace */
#ifndef WEFT_CLI_STEP_H
#define WEFT_CLI_STEP_H

#include "graph/graph.h"

/* One stage on one rank, for one microbatch. */
struct step_stage {
    uint64_t forward, input, weight; /* ns, communication included */
    uint64_t communication;          /* ns of these in which compute waits for communication */
    uint64_t reduce, update;         /* ns, once a step */
    uint64_t unshard;                /* ns of one UNSHARD */
    uint64_t gathered;               /* bytes of gathered parameters, from UNSHARD to RESHARD */
    uint64_t activation;             /* bytes that a microbatch keeps from F to B or W */
    uint64_t parameters;             /* bytes of parameters and optimizer state */
    uint64_t gradients;              /* bytes */
    double flops;                    /* of F, I and W */
};

struct step_request {
    weft_mesh *mesh;         /* all axes */
    weft_mesh *inner;        /* the ranks of a stage */
    int32_t pipeline;        /* the axis of stages; -1: none */
    weft_schedule *schedule; /* compute actions, or all */
    const weft_cost_table *costs;
    uint64_t memory_limit; /* bytes on a rank; 0: none */
    double jitter;         /* a rank is slower by a random share up to this */
    uint64_t seed;
    struct {
        int32_t rank;
        double factor;
    } stragglers[16];
    uint32_t straggler_count;
};

struct step_rank {
    uint64_t busy, end, exposed, peak; /* ns and bytes; of the ranks of one pipeline coordinate */
};

struct step_result {
    weft_schedule *schedule;
    bool sharded;      /* the schedule has UNSHARD */
    int32_t unreduced; /* stages whose gradients the graph reduces, and the schedule does not */
    weft_timeline *timeline; /* of the slowest pipeline */
    struct step_stage *stages;
    struct step_rank *ranks; /* by coordinate on the pipeline axis */
    uint64_t *update;        /* ns, by the same */
    uint32_t layers;         /* that stages share; 0: the graph has no repeated lines */
    uint64_t boundary;       /* bytes that a stage sends to the next */
    uint64_t time;           /* ns of the step */
    uint64_t bubble;         /* ns without compute and update, on average over pipeline ranks */
    uint64_t exposed;        /* ns of waiting for communication, on the rank that waits most */
    uint64_t peak;           /* bytes on the rank that holds most */
    int32_t pipelines;       /* simulated */
    uint32_t sync_axes;      /* bit per axis of the inner mesh whose ranks wait for each other */
    double flops;            /* of the step, of all ranks */
    double utilisation;      /* of the operations that the ranks could do; 0: not known */
};

/* ---- batch.c ---- */

/* Refuse inputs of GRAPH whose dimension 0, the batch, the ranks that split it do not divide. */
weft_status step_check_batch(const struct graph *graph) WF_NODISCARD;

/* ---- work.c ---- */

/* Operations of one repetition of LINE on a rank. */
double step_flops(const struct graph *graph, const struct graph_line *line);
/* Compute time of one repetition, without moves.  WEFT_ERR_INVALID: neither a clause nor the cost
 * table gives it. */
weft_status step_compute_ns(const struct graph *graph, const struct graph_line *line,
                            const weft_cost_table *costs, uint64_t *out) WF_NODISCARD;

/* ---- gathers.c ---- */

/* The moves of parameters in the forward and the backward pass. */
struct step_gathers {
    struct step_target *targets; /* parameters and the layouts to which they are moved */
    struct step_use *uses;       /* lines that do so */
    uint32_t target_count, use_count;
    uint32_t *copies;  /* by tensor: repetitions of a parameter, moved or not; 0: it is none */
    uint64_t *line_ns; /* by line: moves of parameters of one repetition */
};

/* Find the moves of GRAPH, which is checked.  The caller frees *OUT, also after a failure. */
weft_status step_gathers_find(const struct graph *graph, struct step_gathers *out) WF_NODISCARD;
/* Set `unshard` and `gathered` of the STAGES stages OUT; OWNER as in step_share, by line. */
weft_status step_gathers_price(const struct step_gathers *gathers, const struct graph *graph,
                               const int32_t *owner, int32_t stages,
                               struct step_stage *out) WF_NODISCARD;
void step_gathers_free(struct step_gathers *gathers);

/* ---- model.c ---- */

/* How many of the repetitions of LINE are in STAGE of STAGES.  OWNER: the stage that has all of
 * them; -1: they are dealt evenly. */
static inline uint64_t step_share(const struct graph_line *line, int32_t owner, int32_t stage,
                                  int32_t stages)
{
    uint32_t count = (uint32_t)stages;

    if (owner >= 0) return owner == stage ? line->repeat : 0;
    return line->repeat / count + ((uint32_t)stage < line->repeat % count);
}

/* Set the costs of the STAGES stages of OUT, and its layers, boundary and sync_axes, from GRAPH,
 * which is checked; OUT->stages has room for them.  If OUT->sharded, moves of parameters are in
 * `unshard`; otherwise they are in the times of F, I and W. */
weft_status step_model(const struct graph *graph, const weft_cost_table *costs, int32_t stages,
                       struct step_result *out) WF_NODISCARD;

/* ---- simulate.c ---- */

/* Simulate a step of GRAPH, which is checked on REQUEST->inner.  The caller frees *OUT, also after
 * a failure. */
weft_status step_simulate(const struct graph *graph, const struct step_request *request,
                          struct step_result *out) WF_NODISCARD;
void step_free(struct step_result *result);

/* ---- report.c, trace.c ---- */

weft_status step_add_text(const struct step_request *request, const struct step_result *result,
                          struct wf_text *out) WF_NODISCARD;
weft_status step_add_json(const struct step_request *request, const struct step_result *result,
                          struct wf_text *out) WF_NODISCARD;
weft_status step_add_trace(const struct step_result *result, struct wf_text *out) WF_NODISCARD;

#endif
