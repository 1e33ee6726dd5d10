/* pipeline.h - execution of schedules.
 *
 *     pipeline.c  pipelines: their life, and what ranks agree on
 *     shapes.c    what stages pass on: given, or learned
 *     order.c     where each action of a schedule is
 *     slots.c     the memory of tensors that are passed on, for the whole run
 *     channels.c  communicators and streams of messages
 *     run.c       one run */
#ifndef WEFT_PARALLEL_PIPELINE_PIPELINE_H
#define WEFT_PARALLEL_PIPELINE_PIPELINE_H

#include "system/arguments.h"
#include "weft/pipeline.h"

#define WF_NO_SLOT UINT32_MAX

/* What a stage passes to the next one, and its layout in memory. */
struct wf_boundary {
    weft_pipeline_values values;
    weft_pipeline_tensor *tensors; /* those of VALUES, with references to their layouts */
    weft_spec **specs;             /* of these on the ranks of a stage, by tensor */
    uint64_t *offsets;
    uint64_t bytes;      /* of all tensors, at least 1 */
    uint64_t grad_bytes; /* of those with a gradient, which come first; at least 1 */
    int32_t like;        /* the first boundary with the same values */
};

/* Where the actions of a stage and microbatch are, as indices into the list of its rank. */
struct wf_places {
    int32_t forward, input, weight; /* F; B or I; B or W */
};

struct wf_order {
    int32_t stages, microbatches;
    struct wf_places *places; /* by stage, then by microbatch */
};

static inline const struct wf_places *wf_places_of(const struct wf_order *order, int32_t stage,
                                                   int32_t microbatch)
{
    return &order->places[(size_t)stage * (size_t)order->microbatches + (size_t)microbatch];
}

/* A piece of memory that holds one microbatch of a boundary, or its gradients, at a time. */
struct wf_slot {
    weft_tensor *all; /* its bytes, which the other tensors keep */
    int32_t boundary; /* of equal ones, the first */
    weft_tensor **values;
    weft_tensor **gradients; /* the same tensors; NULL: those that have none */
    weft_work *arriving;     /* a receive that is not yet waited for */
    weft_work *leaving;      /* the last send from it */
};

/* An action of this rank, with its memory.  SEND and RECV have it in INPUTS. */
struct wf_pipeline_step {
    uint32_t inputs, outputs, d_inputs, d_outputs; /* slots */
    int32_t channel;                               /* of SEND and RECV */
    bool is_last;
};

/* Messages from one rank to another. */
struct wf_channel {
    int32_t from, to; /* ranks of the pipeline */
    weft_comm *comm;  /* of these two; fails with the pipeline's */
    weft_stream *stream;
    int32_t peer; /* the other rank's number in COMM */
};

enum wf_pipeline_state {
    WF_PIPELINE_READY,
    WF_PIPELINE_RUNS,
    WF_PIPELINE_ENDS, /* it runs, and a callback has released it */
    WF_PIPELINE_FAILED
};

struct weft_pipeline {
    struct wf_system system;
    enum wf_pipeline_state state;
    weft_context *context;
    weft_mesh *mesh; /* of weft_pipeline_create */
    int32_t axis;
    weft_mesh *alone, *stage; /* this rank, and the ranks that have its coordinate along AXIS */
    weft_comm *comm;          /* of all ranks of the pipeline, its own */
    weft_schedule *schedule;
    int32_t rank, ranks, stages, microbatches;
    const weft_schedule_action *actions; /* of this rank */
    size_t action_count;
    weft_pipeline_options options;
    bool is_inline;                 /* the work of callbacks is complete when they return */
    struct wf_boundary *boundaries; /* by stage, without the last */
    struct wf_pipeline_step *steps; /* by action */
    struct wf_slot *slots;
    uint32_t slot_count;
    struct wf_channel *channels;
    int32_t channel_count;
};

/* ---- shapes.c ---- */

/* Set the boundaries to GIVEN, one for each stage but the last. */
weft_status wf_pipeline_shapes_take(weft_pipeline *pipeline,
                                    const weft_pipeline_values *given) WF_NODISCARD;
/* Ask the callback `shapes` for them.  Collective. */
weft_status wf_pipeline_shapes_learn(weft_pipeline *pipeline) WF_NODISCARD;
void wf_boundaries_free(weft_pipeline *pipeline);

/* ---- order.c ---- */

weft_status wf_order_make(const weft_schedule *schedule, struct wf_order *out) WF_NODISCARD;
void wf_order_free(struct wf_order *order);

/* ---- slots.c ---- */

/* Set the memory of each action, and allocate it. */
weft_status wf_slots_make(weft_pipeline *pipeline, const struct wf_order *order) WF_NODISCARD;
void wf_slots_free(weft_pipeline *pipeline);

/* ---- channels.c ---- */

/* List the channels of this rank, and set that of each action. */
weft_status wf_channels_list(weft_pipeline *pipeline) WF_NODISCARD;
/* Make their communicators and streams.  Collective. */
weft_status wf_channels_open(weft_pipeline *pipeline) WF_NODISCARD;
/* Wait until nothing uses the memory of messages. */
weft_status wf_channels_drain(weft_pipeline *pipeline) WF_NODISCARD;
void wf_channels_close(weft_pipeline *pipeline);

/* ---- pipeline.c ---- */

weft_status wf_pipeline_check(const weft_pipeline *pipeline, const char *function) WF_NODISCARD;
static inline bool wf_pipeline_runs(const weft_pipeline *pipeline)
{
    return pipeline->state == WF_PIPELINE_RUNS || pipeline->state == WF_PIPELINE_ENDS;
}
#endif
