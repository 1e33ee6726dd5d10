/* symm.h - symmetric memory from the inside.
 *
 *     symm.c         making windows, and what a window knows
 *     release.c      the end of windows
 *     onesided.c     put, get, signals, order
 *     waits.c        waits for signals, so that a failed one can be named
 *     second.c       symmetric memory from a second plugin
 *     device_word.c  reading one word of device memory from the host
 *     module.c       symmetric memory in the life of a context */
#ifndef WEFT_SYMM_SYMM_H
#define WEFT_SYMM_SYMM_H

#include "comm/comm.h"
#include "weft/symm.h"

#define WF_SYMM_WAITS 8

/* A wait that was put on a stream. */
struct wf_symm_wait {
    const void *stream;
    uint64_t value;
    uint32_t channel, compare;
    int32_t peer;
};

struct weft_symm {
    uint64_t made; /* of fork.h */
    const weft_symm_table *table;
    const weft_plugin *plugin;
    void *device; /* the plugin's */
    void *window; /* NULL: its communicator has ended, because of `ended` */
    weft_comm *comm;
    weft_comm *symm_comm; /* the window was made with its handle: COMM, or the one attached to it */
    void *local;
    uint64_t bytes;
    uint32_t channels;
    bool host_memory;
    bool registered; /* LOCAL is the user's */
    uint64_t number; /* the same on all ranks */
    weft_symm_handle handle;
    weft_symm *next; /* in the state's `windows` */
    char ended[WF_CAUSE];

    /* Under the context's lock: */
    struct wf_symm_wait waits[WF_SYMM_WAITS]; /* the last ones on streams */
    uint64_t wait_count;
};

/* Reads words of device memory; see device_word.c. */
struct wf_device_reader {
    pthread_mutex_t lock;
    void *stream, *word; /* NULL before the first read; WORD is pinned memory */
};

/* What a context keeps for symmetric memory. */
struct wf_symm_state {
    const weft_plugin *plugin; /* the context's, a second one, or NULL: none, because of `reason` */
    void *device;              /* the context's, or the second plugin's own; NULL: not open */
    struct wf_wrapped *wrapped; /* streams of the vendor as streams of the second plugin */
    struct wf_device_reader reader;
    weft_symm *windows;           /* under the context's lock */
    _Atomic uint64_t noted_waits; /* on streams; 0: certainly none */
    char reason[1024];
};

static inline struct wf_symm_state *wf_symm_state(const weft_context *context)
{
    return context->kept[WF_MODULE_SYMM];
}

extern const struct wf_module wf_symm_module;

/* ---- symm.c ---- */

/* OK if FUNCTION can use SYMM. */
weft_status wf_symm_check(const weft_symm *symm, const char *function);

/* ---- release.c ---- */

/* COMM is about to end because of CAUSE: windows on it can no longer be used. */
void wf_symm_comm_ends(weft_comm *comm, const char *cause);
/* End pending waits for signals: a communicator that waits for the device must not wait for them.
 */
void wf_symm_stop(weft_context *context);
/* WEFT_ERR_INVALID if freeing POINTER would free memory of a window. */
weft_status wf_symm_check_free(weft_context *context, const void *pointer) WF_NODISCARD;
/* WEFT_ERR_INVALID if MEMORY belongs to a window that would free it. */
weft_status wf_symm_check_register(weft_context *context, const void *memory,
                                   uint64_t bytes) WF_NODISCARD;

/* ---- waits.c ---- */

void wf_symm_note_wait(weft_symm *symm, const struct wf_symm_wait *wait);
/* "channel 2 of rank 1 to be >= 5"; ranks are world ranks. */
void wf_symm_print_wait(const weft_symm *symm, const struct wf_symm_wait *wait,
                        struct wf_text *out);
/* Add to OUT the waits on STREAM (NULL: on any stream) that may be unsatisfied, with ", or for "
 * between them.  The context's lock is held. */
void wf_symm_list_waits(const weft_symm *symm, const void *stream, struct wf_text *out);
/* A wait for STREAM (with ANY: for a work on some stream) ended with STATUS.  If that is OK, checks
 * that no signal wait on the stream failed: the device does not stop at one that timed out.  If it
 * is a timeout, names the signal waits that may have caused it and fails their communicator. */
weft_status wf_symm_check_wait(weft_context *context, const void *stream, bool any,
                               weft_status status);
/* Report to the other ranks of SYMM_COMM that it failed here with STATUS because of TEXT.  They
 * fail with WEFT_ERR_TIMEOUT if that is STATUS, otherwise with WEFT_ERR_ABORTED. */
void wf_symm_report(const weft_comm *symm_comm, weft_status status, const char *text);
/* Value of this rank's slot for signals of rank FROM on CHANNEL; needs host_memory. */
uint64_t wf_symm_slot(const weft_symm *symm, uint32_t channel, int32_t from);
/* Number of that slot in the plugin's pad. */
static inline uint32_t wf_symm_index(const weft_symm *symm, uint32_t channel, int32_t from)
{
    return channel * (uint32_t)symm->comm->size + (uint32_t)from;
}

/* ---- second.c ---- */

/* Open the plugin's device and attach its communicator to the world.  Collective. */
weft_status wf_symm_start(weft_context *context) WF_NODISCARD;
/* The communicator that windows on COMM are made with: COMM, or one of the second plugin, which is
 * made on first use and attached to COMM.  NUMBER is new and the same on all ranks.  Collective. */
weft_status wf_symm_find_comm(weft_comm *comm, uint64_t number, weft_comm **out) WF_NODISCARD;
/* STREAM, which FUNCTION was given, as a stream of SYMM's plugin. */
weft_status wf_symm_stream(const weft_symm *symm, const char *function, weft_stream *stream,
                           void **out) WF_NODISCARD;
/* Close what `start` opened. */
void wf_symm_close(weft_context *context);

/* ---- device_word.c ---- */

/* Read the word AT an address of symmetric memory's device, without waiting for the user's streams.
 */
weft_status wf_device_read_u64(weft_context *context, const uint64_t *at, int64_t timeout_ns,
                               uint64_t *out) WF_NODISCARD;
void wf_device_reader_close(weft_context *context);

#endif
