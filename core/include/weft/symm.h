/* symm.h - symmetric memory: the same number of bytes on every rank of a communicator, which each
 * of these ranks can read and write without the owner's participation.
 *
 *     weft_symm *symm;
 *     weft_symm_create(comm, bytes, NULL, &symm);
 *     weft_symm_put_signal_to(symm, source, right, 0, n, 0, round, WEFT_SIGNAL_SET, stream);
 *     weft_symm_wait_from(symm, left, 0, WEFT_COMPARE_GE, round, 0, stream);
 *
 * An address is a peer and an offset in bytes; offsets are the same on all ranks.  Each rank also
 * has a pad of 64-bit signals, initially 0, with one slot per channel and sender.
 *
 * Calls post work to STREAM and return.  After a get, in stream order, its target holds the data.
 * After a put, its source may be changed; the data has arrived only after a later quiet.  Puts and
 * signals to one peer arrive in any order, unless a fence is between them.  A rank that observes
 * the signal of a put_signal_to also observes the data of that put.  A rank that observes a signal
 * posted after a fence also observes the puts before the fence.  docs/symmetric-memory.md has the
 * whole model.
 *
 * An error fails the communicator as comm.h says.  Calls on symmetric memory are not allowed inside
 * a call group.  If WEFT_BACKEND names a second plugin for symmetric memory (`nccl,nvshmem`), that
 * plugin provides the memory and has its own communicator for it, which can fail separately.  The
 * functions here are a preview: WEFT_PREVIEW. */
#ifndef WEFT_SYMM_H
#define WEFT_SYMM_H

#include "comm.h"
#include "symm_device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_symm weft_symm;

/* ---- creating ------------------------------------------------------------------ */

#define WEFT_SYMM_CHANNELS 8 /* default number of channels */

/* The same on all ranks. */
typedef struct weft_symm_options {
    size_t struct_size;
    uint32_t channels; /* of the signal pad; 0: WEFT_SYMM_CHANNELS */
} weft_symm_options;

/* Allocate BYTES of zeroed symmetric memory on every rank of COMM; 0 bytes give signals only.
 * Collective: a failure of one rank is the same error on all.  OPTIONS may be NULL.  The caller
 * releases *OUT before COMM.
 * WEFT_ERR_MISMATCH: ranks pass different sizes; the text has both.  WEFT_ERR_UNSUPPORTED: no
 * backend of this job has symmetric memory; the text gives the reason. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_symm_create(weft_comm *comm, uint64_t bytes,
                                                                  const weft_symm_options *options,
                                                                  weft_symm **out);

/* Make BYTES at MEMORY symmetric.  Their contents stay as they are.  The memory stays the caller's
 * and must outlive *OUT; weft_free refuses it until *OUT is released.  Otherwise as
 * weft_symm_create.
 * WEFT_ERR_INVALID: BYTES exceed the allocation, or the memory is symmetric already.
 * WEFT_ERR_UNSUPPORTED: the backend cannot register memory at all, or not this memory.  Backends
 * that can register accept all device memory of weft_alloc, except nvshmem: there weft_alloc falls
 * back to plain device memory when the symmetric heap is full, and always does so when nvshmem is
 * the second plugin; such memory cannot be registered.  The caller releases *OUT.  OPTIONS may be
 * NULL. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status
weft_symm_register(weft_comm *comm, void *memory, uint64_t bytes, const weft_symm_options *options,
                   weft_symm **out);

/* Release *SYMM and set it to NULL.  Accepts NULL and a pointer to NULL.  Collective: it blocks
 * until every rank has called it, because peers may still access this rank's memory.  It also waits
 * for signal waits that are pending on streams.  All other work of this rank on the memory must be
 * complete before the call.  If a signal wait does not finish, or a rank does not call, within the
 * communicator's time limit, the communicator fails on all ranks; the error names the wait or the
 * rank.  If the communicator has already failed, the call does not block.  In both cases peers may
 * still access the memory: weft frees memory of weft_symm_create with the communicator, and the
 * caller must not free registered memory before the communicator is released. */
WEFT_API WEFT_PREVIEW void weft_symm_release(weft_symm **symm);

/* ---- properties ---------------------------------------------------------------- */

/* The communicator that SYMM was created with.  Borrowed; NULL for NULL.  [any thread] */
WEFT_API WEFT_PREVIEW weft_comm *weft_symm_comm(const weft_symm *symm);
/* Size of each rank's memory; 0 for NULL.  [any thread] */
WEFT_API WEFT_PREVIEW uint64_t weft_symm_bytes(const weft_symm *symm);
/* Number of channels; 0 for NULL.  [any thread] */
WEFT_API WEFT_PREVIEW uint32_t weft_symm_channels(const weft_symm *symm);
/* Name of the plugin that provides the memory; NULL for NULL.  [any thread] */
WEFT_API WEFT_PREVIEW const char *weft_symm_backend(const weft_symm *symm);

/* Start of this rank's memory; NULL for NULL.  Memory of weft_symm_create is valid until SYMM is
 * released, which frees it; do not call weft_free.  [any thread] */
WEFT_API WEFT_PREVIEW void *weft_symm_local(const weft_symm *symm);
/* Start of PEER's memory in this rank's address space, for loads and stores by kernels, or by the
 * host on a backend with WEFT_FEATURE_HOST_MEMORY.  Valid until SYMM is released.  NULL if this
 * rank cannot address the memory, or if PEER is not a rank of the communicator.  [any thread] */
WEFT_API WEFT_PREVIEW void *weft_symm_peer(const weft_symm *symm, int32_t peer);
/* Set *OUT to the offset of POINTER in this rank's memory, in bytes.  WEFT_ERR_INVALID: the BYTES
 * bytes at POINTER do not lie in that memory; the text has both address ranges.  [any thread] */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_symm_offset(const weft_symm *symm,
                                                                  const void *pointer,
                                                                  uint64_t bytes, uint64_t *out);
/* Fill *OUT with what kernels need to address SYMM (symm_device.h).  It is valid until SYMM is
 * released.  WEFT_ERR_UNSUPPORTED: the backend has no arrays of addresses that kernels can read.
 * [any thread] */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_symm_device_get(const weft_symm *symm,
                                                                      weft_symm_device *out);

/* ---- data ---------------------------------------------------------------------- */

/* Copy BYTES from SOURCE, memory that the device can read, to OFFSET of PEER's memory.  PEER may be
 * this rank. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_symm_put_to(weft_symm *symm,
                                                                  const void *source, int32_t peer,
                                                                  uint64_t offset, uint64_t bytes,
                                                                  weft_stream *stream);
/* Copy BYTES at OFFSET of PEER's memory to TARGET, memory that the device can write.  PEER may be
 * this rank. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_symm_get_from(weft_symm *symm, int32_t peer,
                                                                    uint64_t offset, void *target,
                                                                    uint64_t bytes,
                                                                    weft_stream *stream);
/* A put, then a signal (weft_symm_signal_to) that arrives after the data of this put.  Other puts
 * may arrive later than the signal, unless a fence is between them and this call. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_symm_put_signal_to(
    weft_symm *symm, const void *source, int32_t peer, uint64_t offset, uint64_t bytes,
    uint32_t channel, uint64_t value, enum weft_signal_op op, weft_stream *stream);

/* ---- signals ------------------------------------------------------------------- */

/* Post a signal to PEER.  In PEER's pad, the slot of CHANNEL for signals from this rank is set to
 * VALUE, or VALUE is added to it, as OP states.  Earlier puts may arrive later than the signal,
 * unless a fence is between them and this call. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_symm_signal_to(weft_symm *symm, int32_t peer,
                                                                     uint32_t channel,
                                                                     uint64_t value,
                                                                     enum weft_signal_op op,
                                                                     weft_stream *stream);
/* Make STREAM wait for a signal: work that is posted to STREAM later does not start before the
 * condition "slot COMPARE VALUE" is true, where slot is the slot of CHANNEL in this rank's pad that
 * has PEER as its sender.  The wait fails with WEFT_ERR_TIMEOUT after TIMEOUT_NS (0: the
 * communicator's time limit).  The error names slot and value and fails the communicator on all
 * ranks.  On the default stream of a backend with WEFT_FEATURE_INLINE (gloo-cpu), this call waits
 * and returns the error; otherwise a later wait for STREAM returns it. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status
weft_symm_wait_from(weft_symm *symm, int32_t peer, uint32_t channel, enum weft_compare compare,
                    uint64_t value, int64_t timeout_ns, weft_stream *stream);
/* Test the condition of weft_symm_wait_from once, on the host.  WEFT_OK: it is true.
 * WEFT_IN_PROGRESS: not yet.  The call waits neither for the signal nor for streams. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_symm_test_from(weft_symm *symm, int32_t peer,
                                                                     uint32_t channel,
                                                                     enum weft_compare compare,
                                                                     uint64_t value);

/* ---- order --------------------------------------------------------------------- */

/* Order the puts and signals that this rank posts to STREAM through SYMM: at each peer, those
 * posted before the fence arrive before those posted after it. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_symm_fence(weft_symm *symm,
                                                                 weft_stream *stream);
/* Make STREAM wait until all puts and signals that this rank posted to STREAM before, through SYMM,
 * have arrived at their peers. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_symm_quiet(weft_symm *symm,
                                                                 weft_stream *stream);
/* Make STREAM wait until the earlier puts and signals of all ranks have arrived: a weft_symm_quiet
 * on every rank, then a barrier.  Collective. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_symm_barrier(weft_symm *symm,
                                                                   weft_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
