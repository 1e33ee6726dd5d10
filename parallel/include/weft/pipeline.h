/* pipeline.h - run a schedule: the stages of a model on the ranks along a mesh axis.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 *     TRY(weft_schedule_create("1f1b", weft_mesh_axis_size(mesh, axis), 0, 16, &schedule));
 *     weft_pipeline_options options = {.struct_size = sizeof options, .schedule = schedule,
 *                                      .user = model, .forward = forward, .backward = backward,
 *                                      .shapes = shapes};
 *     TRY(weft_pipeline_create(ctx, mesh, "pp", &options, &pipeline));
 *     for each step: TRY(weft_pipeline_run(pipeline)); update the parameters ...
 *
 * The engine computes, in callbacks; weft calls them in the order of the schedule and moves tensors
 * between stages.  The tensors that stage s passes to stage s + 1 for one microbatch are its
 * outputs, and the inputs of stage s + 1.  Their gradients are sent back.  Stage 0 has no inputs
 * here and the last stage no outputs: the engine reads its data and computes the loss itself.
 * docs/training/pipeline.md has an example.
 *
 * One thread at a time may use a pipeline.  Callbacks run on the thread that calls
 * weft_pipeline_run. */
#ifndef WEFT_PIPELINE_H
#define WEFT_PIPELINE_H

#include "weft/schedule.h"
#include "weft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor that a stage passes to the next one. */
typedef struct weft_pipeline_tensor {
    /* The layout, on the mesh of the pipeline and with R on its axis; borrowed.  Each rank passes
     * its shard to the rank of the next stage that has the same other coordinates. */
    const weft_spec *spec;
    /* It is sent forward only.  So is a tensor of integers or booleans. */
    bool without_gradient;
} weft_pipeline_tensor;

/* The tensors that one stage passes to the next one. */
typedef struct weft_pipeline_values {
    size_t count;
    const weft_pipeline_tensor *tensors; /* NULL if there are none [count entries] */
    size_t tensor_size;                  /* sizeof(weft_pipeline_tensor) if TENSORS is set */
} weft_pipeline_values;

/* Parts of a backward action: B has both, I the first, W the second. */
enum weft_pipeline_part { WEFT_PIPELINE_INPUTS = 1, WEFT_PIPELINE_WEIGHTS = 2 };

/* The arguments of a callback.  Arrays have `input_count` and `output_count` entries.  The struct
 * and arrays are valid until the callback returns.  The layout of a tensor is that of
 * weft_pipeline_tensor without the axis of the pipeline: its mesh has the ranks with this rank's
 * coordinate along that axis, as weft_mesh_slice makes it of the other axes.  If there is no other
 * axis, it has this rank alone.  Shards are row-major without gaps.  The inputs, outputs and output
 * gradients are the same tensors, with the same elements, from the first action of a stage and
 * microbatch that has them to the last.  Later they have elements of other microbatches.  A
 * callback may keep a tensor (weft_tensor_retain), and with it the memory. */
typedef struct weft_pipeline_call {
    size_t struct_size;
    /* Inputs are complete in the order of this stream; NULL: the default stream.  The callback
     * posts its work to it, or waits for it and completes its work before it returns. */
    weft_stream *stream;
    int32_t stage;
    int32_t microbatch;  /* -1 for UNSHARD, RESHARD and REDUCE_GRAD */
    uint32_t kind;       /* enum weft_schedule_action_kind */
    uint32_t parts;      /* bits of enum weft_pipeline_part; 0 unless it is a backward action */
    bool is_last;        /* of a stage: its last forward, or its last gradients of weights */
    size_t input_count;  /* 0 in stage 0 */
    size_t output_count; /* 0 in the last stage */
    weft_tensor *const *inputs;  /* of the stage */
    weft_tensor *const *outputs; /* F writes them, backward actions may read them */
    /* Gradients of the outputs, NULL for an output without one; NULL in F [output_count entries] */
    weft_tensor *const *d_outputs;
    /* Gradients of the inputs, NULL for an input without one.  B and I write all of them: a
     * gradient that is zero is filled (weft_tensor_fill).  Otherwise NULL [input_count entries] */
    weft_tensor *const *d_inputs;
    /* The last stage multiplies the gradient of the loss of a microbatch by it. */
    double loss_scale;
} weft_pipeline_call;

typedef weft_status (*weft_pipeline_callback)(void *user, const weft_pipeline_call *call);

/* The numbers and the values are the same on all ranks.  All ranks set the same callbacks among
 * `unshard`, `reduce` and `shapes`.  The work of a callback may differ between ranks.  A callback
 * that returns another status than WEFT_OK sets the text of its error with weft_fail.  A callback
 * must not release the pipeline: the run then fails with WEFT_ERR_INVALID and frees the pipeline.
 */
typedef struct weft_pipeline_options {
    size_t struct_size;
    /* For the ranks along the axis; it may be released after the call.  Must not be NULL. */
    const weft_schedule *schedule;
    void *user;           /* the first argument of every callback */
    weft_stream *compute; /* on which callbacks compute; NULL: the default stream */
    /* 0: 1 / microbatches, which gives the gradients of the mean loss.  Not NaN. */
    double loss_scale;
    weft_pipeline_callback forward;  /* F */
    weft_pipeline_callback backward; /* B, I and W; gradients of weights add up over microbatches */
    /* F, and B or I, that may run together (OVERLAP_F_B), in the order of the schedule.  NULL: both
     * callbacks above, one after the other. */
    weft_status (*overlap)(void *user, const weft_pipeline_call *first,
                           const weft_pipeline_call *second);
    weft_pipeline_callback unshard; /* begin to gather the parameters of the stage */
    weft_pipeline_callback reshard; /* free the gathered parameters */
    weft_pipeline_callback reduce;  /* reduce the gradients of the stage over data-parallel ranks */
    /* What stage s passes to stage s + 1, for each stage but the last; read during the call only.
     * NULL: SHAPES states it.  One of `values` and SHAPES is NULL; with one stage, both may be.
     * [value_count entries] */
    size_t value_count; /* the number of stages - 1; not used if `values` is NULL */
    const weft_pipeline_values *values;
    size_t value_size; /* sizeof(weft_pipeline_values) if VALUES is set */
    /* Set *OUT to what STAGE passes on if it gets *IN, for each stage but the last, in order; only
     * on the rank of the stage.  *OUT is zero before: a stage that sets nothing passes nothing.
     * The array and the layouts of *OUT belong to the callback, and stay valid until it is called
     * again or weft_pipeline_create returns. */
    weft_status (*shapes)(void *user, int32_t stage, const weft_pipeline_values *in,
                          weft_pipeline_values *out);
} weft_pipeline_options;

typedef struct weft_pipeline weft_pipeline;

/* Prepare the schedule on this rank: coordinate r of axis AXIS (a name or an index) of MESH runs
 * the actions of rank r.  A schedule of compute actions only is lowered first, with
 * WEFT_LOWER_SHARDED if there is `unshard`, and WEFT_LOWER_REDUCE if there is `reduce`.  The call
 * makes a communicator of all ranks, one for each direction between two ranks that exchange
 * messages, and a stream for each of the latter, and allocates the memory of all tensors that are
 * passed on.  Collective over the ranks of MESH: of the ranks along the axis, either all succeed,
 * or all get the same error, before any callback but `shapes` is called.  NULL arguments, an axis
 * that MESH lacks and a rank outside MESH fail on this rank alone.  The other ranks then get
 * WEFT_ERR_TIMEOUT.  OPTIONS is copied; `user` and `compute` outlive the pipeline.  The caller
 * releases *OUT before CONTEXT.  WEFT_ERR_NOT_FOUND: the mesh has no such axis.  WEFT_ERR_INVALID:
 * this rank is not in MESH; the axis has another number of ranks than the schedule; a callback or
 * the shapes are missing; `values` and `shapes` are both set; a layout is on another mesh than
 * MESH, or has another placement than R on AXIS; or the loss scale is not a number.
 * WEFT_ERR_MISMATCH: ranks have different schedules, callbacks among those above, shapes or loss
 * scales.  WEFT_ERR_UNSUPPORTED: ranks are simulated. */
WEFT_API WEFT_NODISCARD weft_status weft_pipeline_create(weft_context *context,
                                                         const weft_mesh *mesh, const char *axis,
                                                         const weft_pipeline_options *options,
                                                         weft_pipeline **out);
/* Wait for the messages of *PIPELINE, free it and set *PIPELINE to NULL.  Not collective.  Accepts
 * NULL and a pointer to NULL. */
WEFT_API void weft_pipeline_release(weft_pipeline **pipeline);

/* Run all actions of this rank, once each.  Collective over the ranks of PIPELINE: the call returns
 * when the actions of all ranks are complete.  It allocates nothing, except that a backend may for
 * messages.  If a callback fails, all ranks get an error: this rank the status of the callback, the
 * others WEFT_ERR_ABORTED.  If the status is WEFT_ERR_MISMATCH, all ranks get WEFT_ERR_MISMATCH.
 * The texts name the rank, the stage and, if the action has one, the microbatch.  A lost rank is
 * WEFT_ERR_PEER.  WEFT_ERR_TIMEOUT: a rank does not make the call within the time limit.  After an
 * error PIPELINE can only be released. */
WEFT_API WEFT_NODISCARD weft_status weft_pipeline_run(weft_pipeline *pipeline);

typedef struct weft_pipeline_info {
    size_t struct_size;
    const weft_schedule *schedule; /* lowered; valid as long as the pipeline */
    size_t actions;                /* of this rank */
    size_t directions;             /* directions in which this rank sends or receives */
    size_t pieces;                 /* of memory for tensors that are passed on */
    uint64_t bytes;                /* of the memory for tensors that are passed on */
    uint64_t sent;                 /* bytes that this rank sends in a run */
    uint64_t received;             /* bytes that this rank receives in a run */
} weft_pipeline_info;

/* Copy the properties of PIPELINE on this rank to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_pipeline_get(const weft_pipeline *pipeline,
                                                      weft_pipeline_info *out);
/* Set *OUT to what STAGE passes on.  Its array and layouts are valid as long as PIPELINE.
 * WEFT_ERR_INVALID: it is not a stage, or the last one. */
WEFT_API WEFT_NODISCARD weft_status weft_pipeline_values_get(const weft_pipeline *pipeline,
                                                             int32_t stage,
                                                             weft_pipeline_values *out);

#ifdef __cplusplus
}
#endif
#endif
