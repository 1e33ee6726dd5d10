/* symm.h - symmetric memory from the inside.
 *
 *     symm.c      making, asking
 *     release.c   releasing
 *     onesided.c  put, get, signals, order
 *     waits.c     waits on streams, so that one that runs out can be named
 *     second.c    the plugin it comes from, where that is not the one that communicates */
#ifndef WEFT_COMM_SYMM_H
#define WEFT_COMM_SYMM_H

#include "comm.h"
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
    void *window; /* NULL: its communicator is gone, for the reason in `ended` */
    weft_comm *comm;
    weft_comm *carrier; /* whose handle the window was made with: COMM, or what it has for this */
    void *local;
    uint64_t bytes;
    uint32_t channels;
    bool host_memory;
    bool registered; /* LOCAL is the user's */
    uint64_t number; /* the same on all ranks */
    weft_symm_handle handle;
    weft_symm *next; /* in context->windows */
    char ended[WF_CAUSE];

    /* Under the context's lock: */
    struct wf_symm_wait waits[WF_SYMM_WAITS]; /* the last ones on streams */
    uint64_t wait_count;
};

/* OK if SYMM can be used by FUNCTION. */
weft_status wf_symm_check(const weft_symm *symm, const char *function);

/* ---- waits.c ---- */

void wf_symm_note_wait(weft_symm *symm, const struct wf_symm_wait *wait);
/* "channel 2 of rank 1 to be >= 5"; ranks as the world counts them. */
void wf_symm_print_wait(const weft_symm *symm, const struct wf_symm_wait *wait,
                        struct wf_text *out);
/* Those that may be behind what the host found undone on STREAM or, if NULL, anywhere: added to
 * OUT, with "or for" between them.  The context's lock is held. */
void wf_symm_list_waits(const weft_symm *symm, const void *stream, struct wf_text *out);
/* A wait ran out here, for the reason in TEXT: the other ranks are not to wait for this one. */
void wf_symm_tell(const weft_comm *carrier, const char *text);
/* This rank's slot for what rank FROM signals on CHANNEL, where the host may look: host_memory. */
uint64_t wf_symm_slot(const weft_symm *symm, uint32_t channel, int32_t from);
bool wf_symm_compare(uint32_t compare, uint64_t have, uint64_t want);
/* Its number in the plugin's pad. */
static inline uint32_t wf_symm_index(const weft_symm *symm, uint32_t channel, int32_t from)
{
    return channel * (uint32_t)symm->comm->size + (uint32_t)from;
}

/* ---- second.c ---- */

/* The communicator that windows on COMM are made with; where the memory is another plugin's, made
 * on first use and kept with COMM.  NUMBER is fresh and the same on all ranks.  Collective. */
weft_status wf_symm_carrier(weft_comm *comm, uint64_t number, weft_comm **out) WF_NODISCARD;
/* STREAM of the context as one of SYMM's plugin. */
weft_status wf_symm_stream(const weft_symm *symm, weft_stream *stream, void **out) WF_NODISCARD;

#endif
