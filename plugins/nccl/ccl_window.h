/* ccl_window.h - symmetric memory on the nccl plugin.
 *
 * NCCL has windows, but does not report the addresses of peers to the host.  The addresses
 * therefore come from the driver: each rank's memory is a piece of physical memory that is sent to
 * the other processes of the host as a file descriptor and mapped there.  The same memory is
 * registered with NCCL, whose collectives then use it in place.  Peers on another host, or on a
 * device that this device cannot access, have no address. */
#ifndef WEFT_NCCL_CCL_WINDOW_H
#define WEFT_NCCL_CCL_WINDOW_H

#include "ccl.h"

/* ---- ccl_piece.c: physical memory and its mappings ---- */

struct ccl_piece {
    vendor_piece handle; /* 0: none */
    vendor_address address;
    size_t bytes;
};

/* WEFT_OK if DEVICE can share memory this way; otherwise WEFT_ERR_UNSUPPORTED with the reason. */
weft_status ccl_pieces_work(const struct gpu_device *device);
/* Allocate BYTES, rounded up to the device's granularity.  The caller closes *FILE.  All functions
 * of ccl_piece.c are called within a scope. */
weft_status ccl_piece_make(const struct gpu_device *device, size_t bytes, struct ccl_piece *out,
                           int *file);
/* Map a peer's piece of BYTES from its FILE. */
weft_status ccl_piece_take(const struct gpu_device *device, size_t bytes, int file,
                           struct ccl_piece *out);
void ccl_piece_drop(struct ccl_piece *piece);

/* ---- ccl_endpoint.c: passing of file descriptors between processes ---- */

/* The address to which a rank's files are sent.  Published to peers as bytes. */
struct ccl_endpoint_address {
    uint32_t length;
    char name[12];  /* in the abstract namespace, chosen by the kernel */
    uint64_t nonce; /* messages with another nonce are ignored */
};

struct ccl_endpoint {
    int socket; /* -1: closed */
    struct ccl_endpoint_address address;
};

weft_status ccl_endpoint_open(struct ccl_endpoint *endpoint);
void ccl_endpoint_close(struct ccl_endpoint *endpoint);
/* Send FILE to every rank with WANTED set and receive one file from each of them, within the
 * communicator's time limit.  FILES is -1 for other ranks.  The caller closes all of FILES, also
 * after a failure. */
weft_status ccl_endpoint_run(struct ccl_endpoint *endpoint, struct gpu_comm *comm,
                             const struct ccl_endpoint_address *addresses, const bool *wanted,
                             int file, int *files);

/* ---- ccl_window.c: creation and destruction of windows ---- */

struct gpu_window {
    struct gpu_window *next;
    struct gpu_comm *comm;
    uint64_t bytes;
    uint32_t signals;
    uint32_t number;          /* of the window on its communicator; equal on all ranks */
    struct ccl_piece *pieces; /* of all ranks; empty if inaccessible */
    void **buffers;
    uint64_t **pads;
    void *device_copy;        /* copy of these two arrays in device memory */
    uint64_t control;         /* device address of the struct wk_control of waiting kernels */
    struct wk_report *report; /* pinned */
    void *registered;         /* handle of NCCL; NULL if not registered */
    struct gpu_waits waits;
};

/* ---- ccl_symm.c: windows while their communicator exists and when it ends ---- */

extern const struct ccl_window_calls ccl_window_calls;
/* Fail the communicator if a kernel of a window has failed. */
void ccl_windows_look(struct gpu_comm *comm);

#endif
