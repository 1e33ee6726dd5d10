/* prediction.h - the time and the memory of a training step, before any machine is rented.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 *     weft_graph_options how = {.struct_size = sizeof how, .mesh = mesh};
 *     weft_prediction_options options = {.struct_size = sizeof options, .schedule = schedule};
 *     weft_prediction *prediction;
 *     TRY(weft_graph_parse(text, NULL, &graph));
 *     TRY(weft_graph_check(graph, &how));
 *     TRY(weft_prediction_create(graph, &options, &prediction));
 *
 * The graph is of one microbatch; docs/training/planning-a-run.md lists what is counted.
 * Predictions are immutable.  Nothing here communicates, and equal arguments give equal results on
 * all ranks and platforms. */
#ifndef WEFT_PREDICTION_H
#define WEFT_PREDICTION_H

#include "weft/graph.h"
#include "weft/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A slow rank. */
typedef struct weft_straggler {
    int32_t rank;  /* of the mesh */
    double factor; /* its compute takes so many times as long; at least 1 */
} weft_straggler;

/* What runs beside the compute of a stage.  Without a flag, moves of parameters and reductions of
 * gradients run beside nothing, unless the graph or the schedule starts them earlier. */
enum weft_prediction_flag {
    /* Moves of parameters run beside the layer before, and each microbatch reduces the gradients of
     * a layer beside the next ones.  A rank has two gathered layers at once. */
    WEFT_PREDICTION_FSDP = 1 << 0,
    /* The last backward pass of a stage reduces the gradients of a layer beside the next ones. */
    WEFT_PREDICTION_DDP = 1 << 1
};

typedef struct weft_prediction_options {
    size_t struct_size;
    /* With compute actions, or with all of them.  NULL: "1f1b" of two microbatches for each rank of
     * `pp`, and of one without `pp`. */
    const weft_schedule *schedule;
    double jitter; /* a rank is slower by a random share up to this; 0.1 is 10 % */
    uint64_t seed; /* of these shares */
    size_t straggler_count;
    const weft_straggler *stragglers; /* [straggler_count entries] */
    size_t straggler_size;            /* sizeof(weft_straggler) if STRAGGLERS is set */
    uint32_t flags;                   /* bits of enum weft_prediction_flag, at most one */
    size_t stage_count;               /* stages of the schedule; 0: layers are dealt evenly */
    const uint32_t *stage_layers;     /* [stage_count entries] layers of the graph in each stage */
} weft_prediction_options;

typedef struct weft_prediction weft_prediction;

/* Simulate a step of GRAPH, which is checked, on all ranks of its mesh, with the cost table of the
 * check.  OPTIONS may be NULL.  The caller releases *OUT.  WEFT_ERR_INVALID: GRAPH is not checked;
 * the schedule has another number of ranks than the axis `pp`; the graph has no layers that stages
 * could share; `stage_count` is not the number of stages of the schedule, or the sum of
 * `stage_layers` is not the number of layers; neither a clause nor the cost table gives the time of
 * a line; times exceed 2^60 ns; a straggler is not a rank, or more than 4096 ranks differ; or both
 * flags are set, or WEFT_PREDICTION_FSDP and the schedule has UNSHARD. */
WEFT_API WEFT_NODISCARD weft_status weft_prediction_create(const weft_graph *graph,
                                                           const weft_prediction_options *options,
                                                           weft_prediction **out);

/* Free PREDICTION and set it to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_prediction_release(weft_prediction **prediction);

typedef struct weft_prediction_info {
    size_t struct_size;
    uint64_t time;    /* ns of the step */
    uint64_t bubble;  /* ns without compute and update, on average over the ranks of `pp` */
    uint64_t exposed; /* ns in which compute waits for communication, on the rank that waits most */
    uint64_t peak;    /* bytes on the rank that holds most */
    uint64_t boundary;  /* bytes that a stage sends to the next */
    double flops;       /* of the step, of all ranks: operations of forward and backward */
    double recomputed;  /* of these, operations of lines with the clause `recompute` */
    double peak_flops;  /* operations per second of a rank at most; 0: not known */
    double utilisation; /* of the model: (flops - recomputed) / (time * peak_flops * ranks) */
    double hardware_utilisation; /* flops / (time * peak_flops * ranks); 0: not known */
    int32_t ranks;               /* of the mesh */
    int32_t stages, pipeline_ranks, microbatches;
    uint32_t layers;    /* that stages share; 0: the graph has no repeated lines */
    int32_t pipelines;  /* simulated one by one, because ranks differ */
    int32_t unreduced;  /* stages whose gradients the graph reduces, and the schedule does not */
    bool sharded;       /* the schedule has UNSHARD */
    const char *costs;  /* the name of the cost table; valid as long as the prediction */
    const char *source; /* where its numbers come from, and how far they were checked; likewise */
} weft_prediction_info;

/* Copy the figures of PREDICTION to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_prediction_get(const weft_prediction *prediction,
                                                        weft_prediction_info *out);

/* One stage on one rank.  Times are in ns and memory in bytes, those of microbatches for one. */
typedef struct weft_prediction_stage_info {
    size_t struct_size;
    uint64_t forward, input, weight; /* of F, I and W, communication included */
    uint64_t communication;          /* of these, what compute waits for communication */
    uint64_t reduce, update;         /* once a step */
    uint64_t unshard;                /* of one UNSHARD */
    uint64_t gathered;               /* parameters from UNSHARD to RESHARD, or of two layers */
    uint64_t activation;             /* what a microbatch keeps from F to B or W, without LOGITS */
    uint64_t parameters;             /* parameters that forward and backward read */
    uint64_t optimizer;              /* parameters that only the update reads */
    uint64_t gradients;
    double flops;      /* of F, I and W */
    double recomputed; /* of these, operations of lines with the clause `recompute` */
    int32_t rank;      /* on the axis `pp` */
    uint64_t logits; /* what a microbatch keeps of the lines behind the layers: not in ACTIVATION */
    uint64_t logit_gradients; /* the results of their backward pass, one microbatch at a time */
} weft_prediction_stage_info;

/* Copy the figures of STAGE to *OUT, whose struct_size the caller sets.  WEFT_ERR_INVALID: there is
 * no such stage. */
WEFT_API WEFT_NODISCARD weft_status weft_prediction_stage_get(const weft_prediction *prediction,
                                                              int32_t stage,
                                                              weft_prediction_stage_info *out);

/* The ranks at one coordinate on the axis `pp`. */
typedef struct weft_prediction_rank_info {
    size_t struct_size;
    uint64_t busy;    /* ns of compute */
    uint64_t end;     /* ns until the last action ends */
    uint64_t update;  /* ns of the optimizer, after it */
    uint64_t exposed; /* ns in which compute waits for communication */
    uint64_t peak;    /* bytes */
} weft_prediction_rank_info;

/* Copy the figures of the ranks at COORDINATE on the axis `pp` to *OUT, whose struct_size the
 * caller sets.  WEFT_ERR_INVALID: there is no such coordinate. */
WEFT_API WEFT_NODISCARD weft_status weft_prediction_rank_get(const weft_prediction *prediction,
                                                             int32_t coordinate,
                                                             weft_prediction_rank_info *out);

/* Write the figures of PREDICTION and a table of its stages to TEXT.  TEXT, SIZE and NEEDED as in
 * weft_mesh_print (mesh.h). */
WEFT_API WEFT_NODISCARD weft_status weft_prediction_print(const weft_prediction *prediction,
                                                          char *text, size_t size, size_t *needed);

/* As weft_prediction_print, as JSON.  TEXT, SIZE and NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_prediction_json_print(const weft_prediction *prediction,
                                                               char *text, size_t size,
                                                               size_t *needed);

/* Write the times of all actions as a trace in JSON that Perfetto opens to TEXT.  TEXT, SIZE and
 * NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_prediction_trace_print(const weft_prediction *prediction,
                                                                char *text, size_t size,
                                                                size_t *needed);

#ifdef __cplusplus
}
#endif

#endif
