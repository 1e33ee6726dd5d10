/* gpu_comm.h - the parts of communicators that all GPU plugins share.
 *
 * Each plugin defines its own struct gpu_comm, in the header that VENDOR_COMM names.  The files
 * below are compiled against it and need these fields:
 *
 *     device, rank, size, flags, timeout_ns, name   the options of its creation
 *     world_ranks, host_ids                         world rank and host of each rank
 *     is_ready                                      committed
 *     lock, error, error_text                       used by gpu_failed.c
 *     look                                          NULL, or a gpu_look
 *     group                                         used by gpu_group.c
 *
 * Functions that differ between plugins are marked "defined by each plugin". */
#ifndef WEFT_GPU_COMM_H
#define WEFT_GPU_COMM_H

#include "kernel/gpu_kernel.h"
#include "onesided_args.h"

struct gpu_comm;

/* ---- gpu_plugin.c: the plugin's tables ---- */

/* Defined by each plugin. */
extern const weft_device_table gpu_device_table;
extern const weft_comm_table gpu_comm_table;

/* Defined by each plugin: entries of the comm table. */
weft_status gpu_comm_prepare(void *device, const weft_comm_options *options, void **comm,
                             weft_blob *address);
weft_status gpu_comm_commit(void *comm, const weft_blob *addresses, const weft_exchange *exchange);
void gpu_comm_destroy(void *comm);
void gpu_comm_abort(void *comm);
weft_status gpu_comm_async_error(void *comm);
weft_status gpu_comm_support(void *device, const weft_support_query *query, uint32_t *level);

/* ---- gpu_comm.c: creation ---- */

/* Allocate a communicator with the fields of OPTIONS.  Other fields are zero.  gpu_comm_destroy
 * ends with gpu_comm_free. */
weft_status gpu_comm_allocate(struct gpu_device *device, const weft_comm_options *options,
                              struct gpu_comm **out);
void gpu_comm_free(struct gpu_comm *comm);

/* ---- gpu_failed.c: failed communicators ---- */

/* Fail the communicator with STATUS unless it has failed already.  The cause is TEXT or, if that is
 * NULL, the text of this thread's last failure.  Returns STATUS. */
weft_status gpu_comm_fail(struct gpu_comm *comm, weft_status status, const char *text);
/* WEFT_OK, or the status of the failed communicator, described with its cause. */
weft_status gpu_comm_cause(struct gpu_comm *comm) PLUG_HOT;
/* WEFT_OK if the communicator is committed and has not failed; else the error, described. */
weft_status gpu_comm_usable(struct gpu_comm *comm) PLUG_HOT;
/* True if the communicator has failed.  Looks at its work on the device. */
bool gpu_comm_has_failed(struct gpu_comm *comm) PLUG_HOT;
/* A plugin's function that fails the communicator if its work on the device has failed. */
typedef void gpu_look(struct gpu_comm *comm);

/* ---- gpu_op.c: parsed and checked calls ---- */

enum { GPU_OP_SEND = WEFT_COLL_COUNT, GPU_OP_RECEIVE, GPU_OP_PULL }; /* not collectives */

/* One checked call.  For messages `root` is the peer, and `send` and `recv` are both the buffer.
 * Arrays that this rank does not have to pass are NULL. */
struct gpu_op {
    uint32_t kind; /* enum weft_collective, or GPU_OP_ */
    uint32_t dtype, reduction;
    uint32_t divisor; /* of an average; default: the number of ranks */
    int32_t root;
    uint64_t bytes; /* per element */
    const void *send;
    void *recv;
    uint64_t count;
    const uint64_t *send_counts, *send_offsets, *recv_counts, *recv_offsets;
    uint64_t *arrays;  /* owned copies of the arrays, in a group */
    uint64_t scale[2]; /* premul_sum: the factor of this rank's data */
    vendor_stream stream;
    uint64_t plan; /* with BINDING and STEP: as in weft_collective_args */
    uint32_t binding, step;
};

const char *gpu_op_name(uint32_t kind) PLUG_HOT;
/* True for premul_sum: each rank scales its own data, then all are added. */
bool gpu_op_scales(const struct gpu_op *op);
/* Check ARGS and write them to *OP.  WEFT_ERR_INVALID or WEFT_ERR_UNSUPPORTED names the argument.
 */
weft_status gpu_op_read(struct gpu_comm *comm, const weft_collective_args *args,
                        struct gpu_op *op) PLUG_HOT;
weft_status gpu_op_read_message(struct gpu_comm *comm, const weft_message *message, uint32_t kind,
                                struct gpu_op *op);
/* Defined by each plugin: WEFT_OK, or WEFT_ERR_UNSUPPORTED with the reason.  OP is not a barrier.
 */
weft_status gpu_op_supported(const struct gpu_comm *comm, const struct gpu_op *op) PLUG_HOT;

/* ---- gpu_group.c: single and grouped calls ---- */

struct gpu_group {
    uint32_t depth; /* of open groups */
    weft_status status;
    struct gpu_op *ops;
    size_t count, room;
};
void gpu_group_free(struct gpu_group *group);

weft_status gpu_comm_collective(void *comm, const weft_collective_args *args) PLUG_HOT;
weft_status gpu_comm_send(void *comm, const weft_message *message);
weft_status gpu_comm_receive(void *comm, const weft_message *message);
weft_status gpu_comm_group_begin(void *comm);
weft_status gpu_comm_group_end(void *comm);
/* Defined by each plugin: run COUNT calls in this order.  Within a scope. */
weft_status gpu_ops_run(struct gpu_comm *comm, const struct gpu_op *ops, size_t count) PLUG_HOT;

/* ---- gpu_match.c: WEFT_COMM_CHECK ---- */

/* Arguments that must be equal on all ranks.  Unused fields are zero. */
struct gpu_call {
    uint32_t kind, dtype, reduction;
    int32_t root;
    uint64_t count, counts_hash;
    uint64_t plan;
    uint32_t binding, step;
    uint32_t divisor, unused; /* DIVISOR: of an average */
};
/* In the binding field: the call is the barrier of a window, whose number is in `plan`. */
#define GPU_SYMM UINT32_MAX
struct gpu_call gpu_call_of(const struct gpu_comm *comm, const struct gpu_op *op);
/* CALLS has one call per rank.  WEFT_ERR_MISMATCH names two ranks that differ and fails the
 * communicator. */
weft_status gpu_calls_match(struct gpu_comm *comm, const struct gpu_call *calls);

/* ---- gpu_symm.c: one-sided operations on windows, for plugins that have windows ---- */

/* Each plugin defines its own struct gpu_window, with at least these fields:
 *
 *     comm, bytes, signals   the arguments of its creation
 *     number                 of the window on its communicator; equal on all ranks
 *     buffers, pads          each rank's memory and signals as mapped here; NULL if inaccessible.
 *                            A pad has one extra word per rank, for gpu_window_part
 *     device_copy            copy of these two arrays in device memory
 *     waits                  used by gpu_waits.c */
struct gpu_window;

extern const weft_symm_table gpu_symm_table;
/* Text for the report of a kernel that waited for a signal until the time limit. */
void gpu_describe_no_signal(const struct gpu_comm *comm, const struct wk_report *report, char *out,
                            size_t size);

/* This rank releases WINDOW.  Waits until all ranks that can access its memory have released it
 * too.  The ranks synchronize through the words behind their signals, so only a release of this
 * window counts.  While a rank may still use the memory, its word in this rank's pad is PRESENT.
 * STREAM belongs to the plugin and is idle.  Within a scope. */
weft_status gpu_window_part(struct gpu_window *window, uint64_t present, vendor_stream stream);

/* Defined by each plugin: create and destroy windows.  VENDOR_WINDOW_REGISTER, which may be NULL,
 * creates a window of the caller's memory. */
weft_status gpu_window_create(void *comm, uint64_t bytes, uint32_t signals, void **window,
                              void **local);
weft_status gpu_window_destroy(void *window);
/* Defined by each plugin: the flag by which the host stops a kernel that waits, and the flag by
 * which the kernel reports that it stopped.  The caller sets the time limit. */
struct wk_channel gpu_window_channel(const struct gpu_window *window);

/* ---- gpu_waits.c: pending waits for signals ---- */

struct gpu_waits {
    struct gpu_wait *list; /* one per stream */
    size_t count;
};

/* Record that a wait was posted to STREAM.  Within a scope. */
weft_status gpu_waits_note(struct gpu_waits *waits, vendor_stream stream);
/* True if no wait is pending.  Within a scope. */
bool gpu_waits_are_over(const struct gpu_waits *waits);
/* Waits until all waits have ended.  Returns the communicator's error if it has failed, or if it
 * fails because the waits do not end within its time limit: memory that they read must then be
 * kept.  Within a scope. */
weft_status gpu_waits_end(struct gpu_comm *comm, struct gpu_waits *waits);
/* Drop all waits, also pending ones.  The driver keeps an event until it completes.  Within a
 * scope. */
void gpu_waits_drop(struct gpu_waits *waits);

#endif
