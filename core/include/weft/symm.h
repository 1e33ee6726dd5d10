/* symm.h - symmetric memory: the same number of bytes on every rank of a communicator, which all of
 * them reach without the owner's help.
 *
 *     weft_symm *symm;
 *     weft_symm_create(comm, bytes, NULL, &symm);
 *     weft_symm_put_signal_to(symm, source, right, 0, n, 0, round, WEFT_SIGNAL_SET, stream);
 *     weft_symm_wait_from(symm, left, 0, WEFT_COMPARE_GE, round, 0, stream);
 *
 * An address is (peer, offset): offsets are the same on all ranks.  Each rank also has a pad of
 * 64-bit signals, zero at first: one slot for every channel and sender, so that a wait names the
 * rank it waits for.  Calls put work on STREAM and return; in stream order a get has its data and a
 * put may have its source changed.  That puts have arrived is known after quiet; their order at one
 * peer is kept only across fence; whoever sees a signal that was sent after a fence, or with
 * put_signal, sees the data before it.  docs/symmetric-memory.md has the whole model.
 *
 * Arguments are checked here, before the backend sees them.  Errors stick to the communicator as
 * comm.h says; a call on symmetric memory stands in no group.  Where WEFT_BACKEND names a second
 * plugin for it (`nccl,nvshmem`), the memory is that plugin's and so is the communicator below it,
 * which then has errors of its own. */
#ifndef WEFT_SYMM_H
#define WEFT_SYMM_H

#include "comm.h"
#include "symm_device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_symm weft_symm;

/* ---- making it --------------------------------------------------------------- */

#define WEFT_SYMM_CHANNELS 8 /* unless told otherwise */

/* struct_size is sizeof(weft_symm_options); elsewhere zero means default.  The same on all
 * ranks. */
typedef struct weft_symm_options {
    size_t struct_size;
    uint32_t channels; /* of the signal pad; 0: WEFT_SYMM_CHANNELS */
} weft_symm_options;

/* BYTES of zeroed memory on every rank of COMM; 0 gives signals alone.  Collective: ranks that ask
 * for different sizes all get WEFT_ERR_MISMATCH with both, and one rank's failure is the same error
 * on all.  WEFT_ERR_UNSUPPORTED where no backend here has symmetric memory, with the reason.
 * OPTIONS may be NULL.  The caller releases *OUT, before COMM. */
WEFT_API WEFT_NODISCARD weft_status weft_symm_create(weft_comm *comm, uint64_t bytes,
                                                     const weft_symm_options *options,
                                                     weft_symm **out);

/* The same for BYTES of memory there are already, which stay the caller's and must outlive *OUT:
 * until its release weft_free refuses them.  WEFT_ERR_INVALID for more than was allocated, or for
 * memory of other symmetric memory.  WEFT_ERR_UNSUPPORTED where the backend registers no memory, or
 * not this one: what weft_alloc gave is taken by every backend that registers any, as long as it
 * came from the symmetric heap (nvshmem takes the driver's when that is full, and where it is the
 * second plugin weft_alloc gives none of its own). */
WEFT_API WEFT_NODISCARD weft_status weft_symm_register(weft_comm *comm, void *memory,
                                                       uint64_t bytes,
                                                       const weft_symm_options *options,
                                                       weft_symm **out);

/* Collective: it waits until all ranks are here, since they may still reach into this one's memory.
 * Work of this rank must be done, but for waits for signals, which are waited for.  Where these do
 * not end within the communicator's time limit, or a rank does not come, the memory stays until the
 * communicator's end or longer, and the communicator is stuck on all ranks with an error that names
 * the wait or the rank.  If it is stuck already nobody waits.  Accepts NULL. */
WEFT_API void weft_symm_release(weft_symm **symm);

/* ---- asking ------------------------------------------------------------------ */

WEFT_API weft_comm *weft_symm_comm(const weft_symm *symm);     /* borrowed [any thread] */
WEFT_API uint64_t weft_symm_bytes(const weft_symm *symm);      /* [any thread] */
WEFT_API uint32_t weft_symm_channels(const weft_symm *symm);   /* [any thread] */
WEFT_API const char *weft_symm_backend(const weft_symm *symm); /* the plugin's name [any thread] */

/* Start of this rank's memory, which weft_free refuses as long as SYMM is. [any thread] */
WEFT_API void *weft_symm_local(const weft_symm *symm);
/* Start of PEER's memory for loads and stores from here; NULL where there is no such way, or for a
 * PEER that is no rank. [any thread] */
WEFT_API void *weft_symm_peer(const weft_symm *symm, int32_t peer);
/* One address whose stores reach all ranks, or NULL, as with every plugin of today.
 * [any thread] */
WEFT_API void *weft_symm_multicast(const weft_symm *symm);
/* The offset of POINTER, which lies with its BYTES in this rank's memory; else WEFT_ERR_INVALID
 * says where it lies instead. [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_symm_offset(const weft_symm *symm, const void *pointer,
                                                     uint64_t bytes, uint64_t *out);
/* What kernels take: see symm_device.h.  WEFT_ERR_UNSUPPORTED where the backend keeps no addresses
 * that kernels can read. [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_symm_device_get(const weft_symm *symm,
                                                         weft_symm_device *out);

/* ---- moving ------------------------------------------------------------------ */

/* BYTES from SOURCE, which the device can read, to OFFSET of PEER's memory.  PEER may be this
 * rank. */
WEFT_API WEFT_NODISCARD weft_status weft_symm_put_to(weft_symm *symm, const void *source,
                                                     int32_t peer, uint64_t offset, uint64_t bytes,
                                                     weft_stream *stream);
/* BYTES at OFFSET of PEER's memory to TARGET. */
WEFT_API WEFT_NODISCARD weft_status weft_symm_get_from(weft_symm *symm, int32_t peer,
                                                       uint64_t offset, void *target,
                                                       uint64_t bytes, weft_stream *stream);
/* A put, then a signal that only shows when the data is there. */
WEFT_API WEFT_NODISCARD weft_status weft_symm_put_signal_to(weft_symm *symm, const void *source,
                                                            int32_t peer, uint64_t offset,
                                                            uint64_t bytes, uint32_t channel,
                                                            uint64_t value, uint32_t op,
                                                            weft_stream *stream);

/* ---- signals ----------------------------------------------------------------- */

/* Set this rank's slot of CHANNEL at PEER to VALUE, or add VALUE to it: OP is WEFT_SIGNAL_SET or
 * _ADD.  Earlier puts may arrive later: put_signal, or a fence before it, orders them. */
WEFT_API WEFT_NODISCARD weft_status weft_symm_signal_to(weft_symm *symm, int32_t peer,
                                                        uint32_t channel, uint64_t value,
                                                        uint32_t op, weft_stream *stream);
/* Later work on STREAM starts only when the slot of CHANNEL that PEER signals here compares true
 * with VALUE; COMPARE is a WEFT_COMPARE_.  After TIMEOUT_NS (0: the communicator's limit) it fails
 * with WEFT_ERR_TIMEOUT, which names both and sticks to the communicator: said by this call, or
 * where it waits on a stream by that stream's wait. */
WEFT_API WEFT_NODISCARD weft_status weft_symm_wait_from(weft_symm *symm, int32_t peer,
                                                        uint32_t channel, uint32_t compare,
                                                        uint64_t value, int64_t timeout_ns,
                                                        weft_stream *stream);
/* The same asked once, by the host: OK, or WEFT_IN_PROGRESS.  What is on streams is not waited
 * for. */
WEFT_API WEFT_NODISCARD weft_status weft_symm_test_from(weft_symm *symm, int32_t peer,
                                                        uint32_t channel, uint32_t compare,
                                                        uint64_t value);

/* ---- order ------------------------------------------------------------------- */

/* Puts and signals of this rank before it arrive, at each peer, before those after it. */
WEFT_API WEFT_NODISCARD weft_status weft_symm_fence(weft_symm *symm, weft_stream *stream);
/* Puts and signals of this rank before it have arrived. */
WEFT_API WEFT_NODISCARD weft_status weft_symm_quiet(weft_symm *symm, weft_stream *stream);
/* Quiet, and later work on STREAM starts only after every rank has come here.  Collective. */
WEFT_API WEFT_NODISCARD weft_status weft_symm_barrier(weft_symm *symm, weft_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
