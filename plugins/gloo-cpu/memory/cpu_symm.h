/* cpu_symm.h - windows: memory and signals that every rank of a communicator can access. */
#ifndef WEFT_CPU_SYMM_H
#define WEFT_CPU_SYMM_H

#include "cpu_comm.h"

struct cpu_window {
    struct cpu_window *next;
    struct cpu_comm *comm;
    uint64_t bytes;
    uint32_t signals;
    uint32_t number;        /* of the window on its communicator; equal on all ranks */
    void *memory;           /* this rank's, in its heap */
    _Atomic(uint64_t) *pad; /* this rank's signals */
    bool registered;        /* MEMORY belongs to the user */
    void **buffers;         /* the memory of all ranks, as mapped here; NULL: on another host */
    uint64_t **pads;
    _Atomic(uint64_t) under_way; /* operations on streams */
    _Atomic(bool) ran_out;       /* a wait on a stream timed out */
    bool is_left;                /* destroyed, but its memory is kept */
};

/* ---- cpu_window.c ---- */

weft_status cpu_window_create(void *comm, uint64_t bytes, uint32_t signals, void **window,
                              void **local);
weft_status cpu_window_destroy(void *window);
weft_status cpu_window_register(void *comm, void *memory, uint64_t bytes, uint32_t signals,
                                void **window);
weft_status cpu_window_handle(void *window, weft_symm_handle *out);

/* True if this rank has no pending operation on the windows of COMM. */
bool cpu_windows_are_idle(const struct cpu_comm *comm);
/* Drop the windows of a communicator that ends.  Their memory is freed when no peer can access
 * it. */
void cpu_windows_drop(struct cpu_comm *comm);

/* ---- cpu_symm.c ---- */

/* Copy BYTES.  An aligned word is read and written at once. */
void cpu_window_copy(void *target, const void *source, uint64_t bytes);
/* Change SIGNAL of PAD, which belongs to the rank at PLACE of the host, and wake it. */
void cpu_window_signal(struct cpu_window *window, _Atomic(uint64_t) *pad, int32_t place,
                       uint32_t signal, uint32_t op, uint64_t value);

weft_status cpu_symm_put(void *window, uint64_t target_offset, const void *source, uint64_t bytes,
                         int32_t peer, void *stream);
weft_status cpu_symm_get(void *window, void *target, uint64_t source_offset, uint64_t bytes,
                         int32_t peer, void *stream);
weft_status cpu_symm_put_signal(void *window, uint64_t target_offset, const void *source,
                                uint64_t bytes, uint32_t signal, uint64_t value, uint32_t op,
                                int32_t peer, void *stream);
weft_status cpu_symm_signal(void *window, uint32_t signal, uint64_t value, uint32_t op,
                            int32_t peer, void *stream);
weft_status cpu_symm_wait_signal(void *window, uint32_t signal, uint32_t compare, uint64_t value,
                                 int64_t timeout_ns, void *stream);
weft_status cpu_symm_fence(void *window, void *stream);
weft_status cpu_symm_quiet(void *window, void *stream);
weft_status cpu_symm_barrier(void *window, void *stream);

#endif
