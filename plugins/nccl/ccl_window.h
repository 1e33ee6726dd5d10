/* ccl_window.h - symmetric memory on the nccl plugin.
 *
 * NCCL has windows, but does not report the addresses of peers to the host.  So the addresses come
 * from the driver: each rank's memory is a piece of physical memory that is sent to the other
 * processes of the host as a file descriptor and mapped there.  The same memory is registered with
 * NCCL, whose collectives then use it in place.  Peers on another host, or on a device that this
 * device cannot access, have no address. */
#ifndef WEFT_NCCL_CCL_WINDOW_H
#define WEFT_NCCL_CCL_WINDOW_H

#include "ccl.h"

/* ---- ccl_piece.c: physical memory and where it is seen ---- */

struct ccl_piece {
    vendor_piece handle; /* 0: none */
    vendor_address address;
    size_t bytes;
};

/* WEFT_OK if DEVICE can share memory this way; otherwise WEFT_ERR_UNSUPPORTED with the reason. */
weft_status ccl_pieces_work(const struct gpu_device *device);
/* BYTES, rounded up to what the device deals in; *FILE is the caller's to close.  Within a scope,
 * as all here. */
weft_status ccl_piece_make(const struct gpu_device *device, size_t bytes, struct ccl_piece *out,
                           int *file);
/* A peer's piece of BYTES, by its FILE. */
weft_status ccl_piece_take(const struct gpu_device *device, size_t bytes, int file,
                           struct ccl_piece *out);
void ccl_piece_drop(struct ccl_piece *piece);

/* ---- ccl_courier.c: file descriptors between processes ---- */

/* Where a rank can be sent files.  Bytes that travel. */
struct ccl_courier_address {
    uint32_t length;
    char name[12];  /* within the kernel's own namespace, as it chose */
    uint64_t nonce; /* messages without it are ignored */
};

struct ccl_courier {
    int socket; /* -1: closed */
    struct ccl_courier_address address;
};

weft_status ccl_courier_open(struct ccl_courier *courier);
void ccl_courier_close(struct ccl_courier *courier);
/* Send FILE to every rank whose WANTED is set and get one from each of them, within the
 * communicator's time limit.  FILES has -1 for the others and is the caller's to close, all of it,
 * also after a failure. */
weft_status ccl_courier_run(struct ccl_courier *courier, struct gpu_comm *comm,
                            const struct ccl_courier_address *addresses, const bool *wanted,
                            int file, int *files);

/* ---- ccl_window.c: making and ending windows ---- */

struct gpu_window {
    struct gpu_window *next;
    struct gpu_comm *comm;
    uint64_t bytes;
    uint32_t signals;
    uint32_t number;          /* of those on the communicator, the same on all ranks */
    struct ccl_piece *pieces; /* of all ranks; those out of reach are empty */
    void **buffers;
    uint64_t **pads;
    void *device_copy;        /* of these two arrays */
    uint64_t control;         /* struct wk_control on the device, for kernels that wait */
    struct wk_report *report; /* pinned */
    void *registered;         /* with NCCL; NULL: not */
    struct gpu_waits waits;
};

/* ---- ccl_symm.c: windows as their communicator lives and ends ---- */

extern const struct ccl_window_calls ccl_window_calls;

#endif
