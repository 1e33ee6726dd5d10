/* ring.h - the rings of this host's ranks, read from another process.
 *
 *     weft_rings *rings;
 *     TRY(weft_rings_create(&rings));
 *     for (size_t i = 0; i < weft_rings_count(rings); i++) {
 *         const weft_ring *ring = weft_rings_at(rings, i);
 *         weft_ring_info info = {.struct_size = sizeof info};
 *         TRY(weft_ring_get(ring, &info));
 *         const weft_record *newest = weft_ring_record(ring, info.newest);
 *         ...
 *     }
 *     weft_rings_release(&rings);
 *
 * A rank keeps records of its operations in a ring (trace.h), which is a file in
 * $XDG_RUNTIME_DIR/weft or /dev/shm/weft-UID that only its user can read.  The file stays if the
 * rank is killed.  A weft_ring is a copy of it: records, texts and communicators as they were when
 * they were read.  Reading does not disturb the rank, which may run, be stopped, or have ended.  No
 * context is needed.  Different threads may use different rings, also those of one list; one thread
 * at a time may use a ring.  Conventions for NULL and struct_size are those of context.h. */
#ifndef WEFT_RING_H
#define WEFT_RING_H

#include "trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_ring weft_ring;
typedef struct weft_rings weft_rings;

/* The rank whose ring it is, when the ring was read.  Texts live until the ring is read again, is
 * closed, or its list is released.  Control characters in them are replaced. */
typedef struct weft_ring_info {
    size_t struct_size;
    const char *path;    /* the file */
    uint64_t job;        /* equal on all ranks of a job */
    int32_t rank, size;  /* in the world of the job */
    int32_t pid;         /* of the rank's process; ranks that are threads share it */
    uint32_t alive;      /* 1: the rank has the ring open; 0: it has ended */
    uint32_t stopped;    /* 1: it is alive, and a signal or a debugger has stopped its process */
    uint32_t removed;    /* 1: the file was removed after it was opened, as a rank does that
                            leaves its job */
    const char *host;    /* name of the rank's host */
    const char *program; /* name of its program, cut after 15 bytes */
    const char *backend; /* name of its plugin */
    uint64_t oldest;     /* id of the oldest record; 0: the rank has no records */
    uint64_t newest;     /* id of the newest record; some between them may be missing */
    uint64_t begun_ns;   /* when the rank joined its job; CLOCK_MONOTONIC, as all times */
    uint64_t read_ns;    /* when the ring was read */
} weft_ring_info;

/* A communicator of the rank. */
typedef struct weft_ring_comm_info {
    size_t struct_size;
    uint64_t number; /* as in records; equal on all its ranks; the parts of a split share it */
    const char *name;
    const char
        *ranks; /* its world ranks, "0-3,8"; a list of more than 2047 bytes ends with ",..." */
    int32_t rank, size; /* in the communicator */
    weft_status failed; /* WEFT_OK: it has not failed */
} weft_ring_comm_info;

/* Open and read all rings of this user on this host, at most 4096, in the order of jobs and ranks.
 * Files that cannot be read are left out; weft_rings_problem tells why.  The caller releases *OUT.
 */
WEFT_API WEFT_NODISCARD weft_status weft_rings_create(weft_rings **out);

/* Close all rings of the list and set *RINGS to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_rings_release(weft_rings **rings);

/* Number of rings; 0 for NULL. */
WEFT_API size_t weft_rings_count(const weft_rings *rings);
/* Ring INDEX; NULL past the last.  It belongs to the list. */
WEFT_API weft_ring *weft_rings_at(const weft_rings *rings, size_t index);
/* Why a file or a folder was left out: a sentence; NULL past the last.  Borrowed. */
WEFT_API const char *weft_rings_problem(const weft_rings *rings, size_t index);
/* Folder INDEX of those that weft_rings_create searches; NULL past the last.  Borrowed. */
WEFT_API const char *weft_rings_folder(const weft_rings *rings, size_t index);

/* Open and read the ring in file PATH, which may be a copy of a ring.  The caller closes *OUT.
 * WEFT_ERR_NOT_FOUND: there is no file.  WEFT_ERR_PARSE: it is not a ring, is cut short, or its
 * rank has not written it yet.  WEFT_ERR_VERSION: another version of weft wrote it.
 * WEFT_ERR_SYSTEM: it cannot be read. */
WEFT_API WEFT_NODISCARD weft_status weft_ring_open(const char *path, weft_ring **out);
/* Close the ring and set *RING to NULL.  Accepts NULL and a pointer to NULL.  Not for rings of a
 * list: then it logs a warning and closes nothing. */
WEFT_API void weft_ring_close(weft_ring **ring);

/* Read RING again.  Errors as weft_ring_open; the earlier copy then stays. */
WEFT_API WEFT_NODISCARD weft_status weft_ring_refresh(weft_ring *ring);

/* Copy what is known about the rank to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_ring_get(const weft_ring *ring, weft_ring_info *out);

/* The record with ID; NULL if the ring does not have it any more, or had it half written.  Its
 * times are nanoseconds of CLOCK_MONOTONIC.  Valid until RING is read again or closed. */
WEFT_API const weft_record *weft_ring_record(const weft_ring *ring, uint64_t id);

/* The text with number TEXT in a record of RING; "" for a number past the last text, NULL for NULL.
 * A number that no record has may be inside a text, and gives the rest of it.  Borrowed likewise.
 */
WEFT_API const char *weft_ring_text(const weft_ring *ring, uint32_t text);

/* As weft_record_print, for RECORD of RING.  0 for NULL. */
WEFT_API size_t weft_ring_print(const weft_ring *ring, const weft_record *record, char *buffer,
                                size_t capacity);

/* Number of communicators that the rank has and has not released, at most 256; 0 for NULL. */
WEFT_API size_t weft_ring_comm_count(const weft_ring *ring);
/* Copy the properties of communicator INDEX to *OUT, whose struct_size the caller sets.
 * WEFT_ERR_INVALID: INDEX is past the last. */
WEFT_API WEFT_NODISCARD weft_status weft_ring_comm_get(const weft_ring *ring, size_t index,
                                                       weft_ring_comm_info *out);

#ifdef __cplusplus
}
#endif
#endif
