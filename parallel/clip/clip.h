/* clip.h - gradients clipped by their norm, or by value.
 *
 *     clip.c      the calls: arguments, elements of tensors as pieces of a job
 *     distinct.c  the check that tensors have memory of their own
 *     norm.c      the norm of tensors on any meshes
 *     job.c       the work on elements, in stream order: by the device, or else by the host
 *     device.c    the same by kernels of the device
 *     state.c     memory and lists that jobs of a context share */
#ifndef WEFT_PARALLEL_CLIP_CLIP_H
#define WEFT_PARALLEL_CLIP_CLIP_H

#include "system/arguments.h"
#include "system/here.h"
#include "weft/clip.h"
#include "weft/extend.h"

/* ---- state.c ---- */

enum { WF_CLIP_STAGE = 4 << 20 }; /* bytes of elements that the host works on at a time */

/* A list of spans that the device has prepared. */
struct wf_clip_list {
    weft_span *spans;
    uint64_t count;
    uint32_t sums;
    void *list;
    uint64_t used; /* the number of its last use */
};

enum { WF_CLIP_LISTS = 8 };

/* Memory that the device and the host use, one job after the other. */
struct wf_clip_state {
    weft_context *context;
    weft_dependent *dependent;
    bool on_device; /* the device does the work on elements */
    bool reaches;   /* the host can use the device's memory */
    struct wf_clip_list lists[WF_CLIP_LISTS];
    uint64_t uses;
    void *stage;  /* WF_CLIP_STAGE bytes; NULL: not needed yet, or the host uses device memory */
    double *sums; /* SUM_ROOM numbers */
    uint32_t sum_room;
    void *outgrown[32]; /* sums of before; each time the room more than doubles */
    uint32_t outgrown_count;
    weft_stream *stream; /* of the last job */
    weft_work *last;     /* that job; NULL: none yet */
};

/* CONTEXT's state, for a job on STREAM, which begins after the last job. */
weft_status wf_clip_enter(weft_context *context, weft_stream *stream,
                          struct wf_clip_state **out) WF_NODISCARD;
/* The job on STREAM is posted. */
weft_status wf_clip_leave(struct wf_clip_state *state, weft_stream *stream) WF_NODISCARD;
/* Make room for COUNT sums. */
weft_status wf_clip_give_sums(struct wf_clip_state *state, uint32_t count) WF_NODISCARD;

/* The list of COUNT SPANS with SUMS sums: a kept one, or a new one in place of the one that was not
 * used for longest, whose end waits for the device.  The state owns it. */
weft_status wf_clip_list(struct wf_clip_state *state, uint64_t count, const weft_span *spans,
                         uint32_t sums, void **out) WF_NODISCARD;

/* ---- job.c ---- */

/* Elements that are together in memory. */
struct wf_clip_piece {
    struct wf_clip_job *job;
    void *memory;
    uint64_t count;
    uint32_t dtype;
    uint32_t sum; /* to which they are added */
    bool is_read, is_written;
};

struct wf_clip_job {
    weft_context *context;
    struct wf_clip_state *state;
    const weft_device_table *table;
    const weft_kernel_table *kernels; /* of the plugin */
    void *device;
    double p, most; /* MOST: the largest norm or value */
    uint32_t nonfinite;
    bool by_value;
    bool on_device;
    void *stage; /* NULL: the host uses the memory of pieces itself */
    /* SUM_COUNT of this process, then that of all; in host memory of the context, or in device
     * memory of the job. */
    double *sums;
    double *norm; /* in the place of the sum of all, or after it on the device */
    double *seen; /* host memory, where the norm is copied to if the host wants to know it */
    uint32_t sum_count, reduced_count; /* REDUCED_COUNT: of all ranks, in place of the first ones */
    double factor;                     /* of the elements, when the norm is known */
    uint32_t count, room;
    struct wf_clip_piece *pieces;
};

weft_status wf_clip_add(struct wf_clip_job *job, struct wf_clip_piece piece) WF_NODISCARD;
/* Post: add up the powers of elements to the sums. */
weft_status wf_clip_post_sums(struct wf_clip_job *job, weft_stream *stream) WF_NODISCARD;
/* Post: combine the reduced sums. */
weft_status wf_clip_post_total(struct wf_clip_job *job, weft_stream *stream) WF_NODISCARD;
/* Post: find the norm, unless elements are clipped by value, and change the elements. */
weft_status wf_clip_post_change(struct wf_clip_job *job, weft_stream *stream) WF_NODISCARD;
/* Take the memory of the sums of JOB, whose number is known. */
weft_status wf_clip_take_sums(struct wf_clip_job *job, weft_stream *stream) WF_NODISCARD;
/* Make a job. */
weft_status wf_clip_begin(weft_context *context, double p, double most, weft_stream *stream,
                          struct wf_clip_job **out) WF_NODISCARD;
/* JOB frees itself when its work is done; after a failure, when the stream has ended its work.
 * Returns STATUS, or an error of posting. */
weft_status wf_clip_end(struct wf_clip_job *job, weft_stream *stream,
                        weft_status status) WF_NODISCARD;

/* ---- device.c ---- */

/* True if kernels of CONTEXT's device do the work on elements. */
weft_status wf_clip_ask_device(weft_context *context, bool *out) WF_NODISCARD;
weft_status wf_clip_device_sums(const struct wf_clip_job *job, weft_stream *stream) WF_NODISCARD;
weft_status wf_clip_device_total(const struct wf_clip_job *job, weft_stream *stream) WF_NODISCARD;
weft_status wf_clip_device_change(const struct wf_clip_job *job, weft_stream *stream) WF_NODISCARD;

/* ---- clip.c ---- */

/* Add the shards of TENSOR to JOB.  The sum of the shard at place i is number FIRST + i. */
weft_status wf_clip_add_tensor(struct wf_clip_job *job, weft_tensor *tensor, uint32_t first,
                               struct wf_clip_piece piece, weft_stream *stream) WF_NODISCARD;
/* Copy the changed elements of tensors with gaps back. */
weft_status wf_clip_unpack(uint32_t count, weft_tensor *const *tensors,
                           weft_stream *stream) WF_NODISCARD;

/* ---- distinct.c ---- */

/* WEFT_ERR_INVALID: a tensor is listed twice, or the memory here of two shards overlaps. */
weft_status wf_clip_check_distinct(const weft_context *context, uint32_t count,
                                   weft_tensor *const *tensors) WF_NODISCARD;

/* ---- norm.c ---- */

/* As weft_clip_gradient_norm; the arguments are checked, and OPTIONS are complete. */
weft_status wf_clip_by_norm(weft_context *context, uint32_t count, weft_tensor *const *tensors,
                            double max_norm, const weft_clip_options *options, weft_stream *stream,
                            double *total) WF_NODISCARD;

#endif
