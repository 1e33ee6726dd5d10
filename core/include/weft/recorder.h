/* recorder.h - the recorders of this host's ranks, read from another process.
 *
 *     weft_recorders *recorders;
 *     TRY(weft_recorders_create(&recorders));
 *     for (size_t i = 0; i < weft_recorders_count(recorders); i++) {
 *         const weft_recorder *recorder = weft_recorders_at(recorders, i);
 *         weft_recorder_info info = {.struct_size = sizeof info};
 *         TRY(weft_recorder_get(recorder, &info));
 *         const weft_record *newest = weft_recorder_record(recorder, info.newest);
 *         ...
 *     }
 *     weft_recorders_release(&recorders);
 *
 * A rank keeps the records of its recent operations in its recorder (trace.h), which is a file in
 * $XDG_RUNTIME_DIR/weft or /dev/shm/weft-UID that only its user can read.  The file stays if the
 * rank is killed.  A weft_recorder is a copy of it: records, texts and communicators as they were
 * when they were read.  Reading does not disturb the rank, which may run, be stopped, or have
 * ended.  No context is needed.  Different threads may use different recorders, also those of one
 * list; one thread at a time may use a recorder.  Conventions for NULL and struct_size are those of
 * context.h.  The functions here are a preview: WEFT_PREVIEW. */
#ifndef WEFT_RECORDER_H
#define WEFT_RECORDER_H

#include "trace.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_recorder weft_recorder;
typedef struct weft_recorders weft_recorders;

/* The rank whose recorder it is, when the recorder was read.  Texts live until the recorder is read
 * again, is closed, or its list is released.  Control characters in them are replaced. */
typedef struct weft_recorder_info {
    size_t struct_size;
    const char *path;    /* the file */
    uint64_t job;        /* equal on all ranks of a job */
    int32_t rank, size;  /* in the world of the job */
    int32_t pid;         /* of the rank's process; ranks that are threads share it */
    bool alive;          /* the rank has the recorder open; false: it has ended */
    bool stopped;        /* it is alive, and a signal or a debugger has stopped its process */
    bool removed;        /* the file was removed after it was opened, as a rank does that leaves
                            its job */
    const char *host;    /* name of the rank's host */
    const char *program; /* name of its program, cut after 15 bytes */
    const char *backend; /* name of its plugin */
    uint64_t oldest;     /* id of the oldest record; 0: the rank has no records */
    uint64_t newest;     /* id of the newest record; some between them may be missing */
    uint64_t begun_ns;   /* when the rank joined its job; CLOCK_MONOTONIC, as all times */
    uint64_t read_ns;    /* when the recorder was read */
} weft_recorder_info;

/* A communicator of the rank. */
typedef struct weft_recorder_comm_info {
    size_t struct_size;
    uint64_t number; /* as in records; equal on all its ranks; the parts of a split share it */
    const char *name;
    const char
        *ranks; /* its world ranks, "0-3,8"; a list of more than 2047 bytes ends with ",..." */
    int32_t rank, size;  /* in the communicator */
    weft_status failed;  /* WEFT_OK: it has not failed */
    const char *carrier; /* what carries its data, and why; "" if the plugin does not tell */
} weft_recorder_comm_info;

/* Open and read all recorders of this user on this host, at most 4096, in the order of jobs and
 * ranks.  Files that cannot be read are left out; weft_recorders_problem tells why.  The caller
 * releases *OUT. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_recorders_create(weft_recorders **out);

/* Close all recorders of the list and set *RECORDERS to NULL.  Accepts NULL and a pointer to NULL.
 */
WEFT_API WEFT_PREVIEW void weft_recorders_release(weft_recorders **recorders);

/* Number of recorders; 0 for NULL. */
WEFT_API WEFT_PREVIEW size_t weft_recorders_count(const weft_recorders *recorders);
/* Recorder INDEX; NULL past the last.  It belongs to the list. */
WEFT_API WEFT_PREVIEW weft_recorder *weft_recorders_at(const weft_recorders *recorders,
                                                       size_t index);
/* Number of files and folders that were left out; 0 for NULL. */
WEFT_API WEFT_PREVIEW size_t weft_recorders_problem_count(const weft_recorders *recorders);
/* The reason why file or folder INDEX was left out, a sentence; NULL if INDEX is not below
 * weft_recorders_problem_count, and for NULL.  Borrowed. */
WEFT_API WEFT_PREVIEW const char *weft_recorders_problem(const weft_recorders *recorders,
                                                         size_t index);
/* Number of folders that weft_recorders_create searches; 0 for NULL. */
WEFT_API WEFT_PREVIEW size_t weft_recorders_folder_count(const weft_recorders *recorders);
/* Folder INDEX of them; NULL past the last.  Borrowed. */
WEFT_API WEFT_PREVIEW const char *weft_recorders_folder(const weft_recorders *recorders,
                                                        size_t index);

/* Open and read the recorder in file PATH, which may be a copy of a recorder.  The caller closes
 * *OUT. WEFT_ERR_NOT_FOUND: there is no file.  WEFT_ERR_PARSE: it is not a recorder, is cut short,
 * or its rank has not written it yet.  WEFT_ERR_VERSION: another version of weft wrote it.
 * WEFT_ERR_SYSTEM: it cannot be read. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_recorder_open(const char *path,
                                                                    weft_recorder **out);
/* Close the recorder and set *RECORDER to NULL.  Accepts NULL and a pointer to NULL.  Not for
 * recorders of a list: then it logs a warning and closes nothing. */
WEFT_API WEFT_PREVIEW void weft_recorder_close(weft_recorder **recorder);

/* Read RECORDER again.  Errors as weft_recorder_open; the earlier copy then stays. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_recorder_refresh(weft_recorder *recorder);

/* Copy what is known about the rank to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_recorder_get(const weft_recorder *recorder,
                                                                   weft_recorder_info *out);

/* The record with ID; NULL if the recorder does not have it any more, or had it half written.  Its
 * times are nanoseconds of CLOCK_MONOTONIC.  Valid until RECORDER is read again or closed. */
WEFT_API WEFT_PREVIEW const weft_record *weft_recorder_record(const weft_recorder *recorder,
                                                              uint64_t id);

/* The text with number TEXT in a record of RECORDER; "" for a number past the last text, NULL for
 * NULL.  Only numbers of records are valid; another one may give the end of a text.  Borrowed
 * likewise. */
WEFT_API WEFT_PREVIEW const char *weft_recorder_text(const weft_recorder *recorder, uint32_t text);

/* As weft_record_print, for RECORD of RECORDER. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_recorder_print(const weft_recorder *recorder,
                                                                     const weft_record *record,
                                                                     char *text, size_t size,
                                                                     size_t *needed);

/* Number of communicators that the rank has and has not released, at most 256; 0 for NULL. */
WEFT_API WEFT_PREVIEW size_t weft_recorder_comm_count(const weft_recorder *recorder);
/* Copy the properties of communicator INDEX to *OUT, whose struct_size the caller sets.
 * WEFT_ERR_INVALID: INDEX is past the last. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status
weft_recorder_comm_get(const weft_recorder *recorder, size_t index, weft_recorder_comm_info *out);

#ifdef __cplusplus
}
#endif
#endif
