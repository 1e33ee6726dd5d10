/* objects.h - what contexts, communicators and works are; comm.h has what can be done with them. */
#ifndef WEFT_COMM_OBJECTS_H
#define WEFT_COMM_OBJECTS_H

#include "agree.h"
#include "comm/context/ledger.h"
#include "comm/context/module.h"
#include "comm/order/calls.h"
#include "comm/order/runs.h"
#include "config/config.h"
#include "cost/cost.h"
#include "plugin/plugin.h"
#include "posts.h"
#include "rendezvous/rendezvous.h"
#include "trace/trace.h"
#include "weft/comm.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- recent.c ---- */

#define WF_RECENT_ENTRIES 64

/* One operation.  Fields are atomic because another thread may read while it is written. */
struct wf_recent_entry {
    _Atomic uint64_t what;  /* packed: kind, dtype, reduction, root or peer */
    _Atomic uint64_t count; /* elements */
};

/* The last operations of a communicator.  One writer; readers at any time. */
struct wf_recent {
    _Atomic uint64_t posted;   /* operations handed to the plugin */
    _Atomic uint64_t finished; /* those of them known to be complete */
    struct wf_recent_entry entries[WF_RECENT_ENTRIES];
};

/* Recent operations that are not collectives of the ABI. */
enum wf_recent_kind {
    WF_RECENT_SEND = WEFT_COLL_COUNT,
    WF_RECENT_RECEIVE,
    WF_RECENT_PULL,
    WF_RECENT_SYMM_BARRIER
};

static inline void wf_recent_add(struct wf_recent *recent, uint32_t kind, uint32_t dtype,
                                 uint32_t reduction, int32_t root, uint64_t count)
{
    uint64_t n = atomic_load_explicit(&recent->posted, memory_order_relaxed) + 1;
    struct wf_recent_entry *entry = &recent->entries[n % WF_RECENT_ENTRIES];

    /* Release: a reader that sees this slot reused also sees the previous value of `posted`. */
    atomic_store_explicit(&entry->what,
                          (uint64_t)(kind & 255) << 48 | (uint64_t)(dtype & 255) << 40 |
                              (uint64_t)(reduction & 255) << 32 | (uint32_t)root,
                          memory_order_release);
    atomic_store_explicit(&entry->count, count, memory_order_release);
    atomic_store_explicit(&recent->posted, n, memory_order_release);
}

static inline void wf_recent_finish(struct wf_recent *recent)
{
    atomic_store_explicit(&recent->finished,
                          atomic_load_explicit(&recent->posted, memory_order_relaxed),
                          memory_order_relaxed);
}

/* Print operation N: "all_reduce sum of 1024 f32"; "" if it is not recent any more. */
void wf_recent_print(struct wf_recent *recent, uint64_t n, struct wf_text *out);

/* ---- the objects ---- */

#define WF_SPARE_WORKS   32
#define WF_RELEASED      64
#define WF_STREAM_PLACES 64
#define WF_REMNANTS      64

/* A communicator that this rank has released, and the number of collectives it took part in. */
struct wf_released {
    uint64_t number, collectives;
};

/* A stream that was given out. */
struct wf_stream_note {
    struct wf_stream_note *next;
    struct wf_stream_note *next_alike; /* in the table of ended.c */
    weft_context *context;
    void *stream;
    bool is_wrapped; /* the vendor's stream is the user's, who may have destroyed it */
    uint32_t name;   /* a text of the trace; 0: none */
    uint64_t number; /* in records, from 1.  A stream that is made later has another one */
};

#define WF_EARLY_ABORTS 4

/* An abort that arrived before this rank listed its communicator. */
struct wf_early_abort {
    uint64_t number; /* 0: none */
    uint64_t complete;
    weft_status status;
    char text[512];
};

struct weft_context {
    uint64_t made; /* of fork.h */
    struct wf_config *config;
    weft_backends *backends; /* NULL: the caller gave the plugin */
    const weft_plugin *plugin;
    void *device; /* the plugin's; NULL before it is open */
    uint64_t features;
    void *kept[WF_MODULE_COUNT]; /* the state of modules above this one */
    int32_t rank, size, local_rank, local_size;
    bool is_simulated;  /* this process holds the shards of all ranks; RANK is 0 */
    uint64_t *host_ids; /* one per rank */
    uint64_t job;
    int64_t timeout_ns;
    weft_cost_table *costs;

    struct wf_server *server; /* NULL: another process has it */
    struct wf_client *client; /* NULL in a world of one */
    _Atomic uint64_t solo_serial;

    weft_comm *world;
    bool is_made;         /* weft_init has succeeded */
    pthread_mutex_t lock; /* of the lists and of every communicator's cause_text */
    weft_comm *comms;
    struct wf_remains *remains;     /* communicators whose failure is unreported, newest first */
    weft_work *works;               /* with the spare ones */
    struct wf_stream_note *streams; /* not yet released */
    uint64_t stream_count;          /* of all times */
    _Atomic(const void *) known_streams[WF_STREAM_PLACES]; /* by place: one that is in the list */
    atomic_bool uses_streams;  /* some communicator has put work on one that is done later */
    _Atomic uint64_t clock;    /* of posts.h */
    _Atomic uint64_t reported; /* failures that were reported and are not acknowledged */
    struct wf_released released[WF_RELEASED];            /* the last ones; under `lock` */
    uint64_t released_count;                             /* of all times */
    struct wf_early_abort early_aborts[WF_EARLY_ABORTS]; /* the last ones; under `lock` */
    uint64_t early_abort_count;                          /* of all times */
    pthread_mutex_t describe_lock; /* held while communicators are described */
    _Atomic(weft_work *) spare_works[WF_SPARE_WORKS];
    struct wf_ledger ledger;     /* memory that is not yet freed */
    _Atomic uint64_t live_bound; /* not yet released */
    _Atomic uint32_t carried;    /* a bit per collective: the log says how weft carries it */
    void *remnants[WF_REMNANTS]; /* objects that were released last, not yet freed; under `lock` */
    uint64_t remnant_count;      /* of all times */
    weft_context *next_ended;    /* in the list of ended.c */
    struct wf_trace *trace;      /* NULL before the rank has joined */
    _Atomic(struct wf_trace *) tracing; /* TRACE while records are wanted; NULL: they are not */
    uint32_t default_stream_name;       /* as in wf_stream_note; under `lock` */
    weft_observation *observations;     /* of weft_observe; under `lock` */
    weft_record_counts *counts;         /* for WEFT_COUNTS; NULL: it is not set */
    struct wf_timing *timing;           /* of timing.h; NULL: work on streams is not timed */

    /* Of an elastic job: */
    struct wf_elastic_terms terms; /* RANKS_MIN is 0 unless the job is elastic */
    uint64_t generation;           /* 0 unless the job is elastic */
    struct wf_text choices;        /* what this rank shows the others at their beginning */
    struct wf_newcomer *newcomer; /* while it waits for a place, and until its generation has met */
    struct wf_peer *peers;        /* by rank */
    weft_comm *before;            /* it has the tensors of generations that have ended */
    struct wf_next *next;         /* what the last weft_context_next told the caller */
};

/* As weft_last_error_vendor has it. */
struct wf_vendor {
    char name[32]; /* "": none */
    int64_t code;
};

struct weft_comm {
    /* Fields that every operation uses: */
    uint64_t made; /* of fork.h; ended: its context was released, and is NULL; simulated: all calls
                      are refused */
    const weft_comm_table *table;
    void *handle;
    _Atomic weft_status cause; /* WEFT_OK: it has not failed */
    _Atomic weft_status limit; /* why `may_post` is limited: WEFT_ERR_PEER: a rank has departed;
                                  another error: the cause on another rank.  WEFT_OK: it is not */
    _Atomic bool parted; /* no more steps together: a time limit passed on a rank, or this rank
                            has reported the cause in a step */
    _Atomic uint64_t collectives; /* posted on this rank */
    _Atomic uint64_t may_post; /* last collective that can complete: UINT64_MAX, 0 once failed, or
                                  the last one that a departed rank took part in, or that is
                                  complete on a rank where this communicator has failed */
    int32_t rank, size;
    bool done_on_return; /* work on stream NULL is complete when the call returns */
    bool checked;        /* WEFT_CHECK: all memory is checked, in all ways */
    bool compares;       /* weft compares the identity of calls, because the plugins do not */
    int32_t group_depth;
    weft_status group_status;            /* first error inside the group */
    uint64_t group_first;                /* operations posted before the group */
    uint64_t most[WEFT_DTYPE_COUNT];     /* of the fast check: maximum count per rank, so that all
                                            ranks' bytes < 2^63; 0 with WEFT_CHECK */
    uint32_t defined[WEFT_REDUCE_COUNT]; /* bit per dtype; 0 for premul_sum, which needs more */
    uint32_t averages;                   /* bit per dtype: the backend averages it, not weft */
    uint32_t transport;                  /* enum wf_transport */
    weft_context *context;
    _Atomic(struct wf_trace *) tracing;   /* the context's */
    struct wf_last_call last_call;        /* of check.h */
    struct wf_known_room rooms[WF_ROOMS]; /* by address */
    struct wf_recent recent;
    struct wf_calls calls;
    struct wf_posts_list posts;
    struct wf_posts_list onesided_posts; /* under the context's lock */

    weft_comm *next;                  /* in context->comms */
    weft_comm *groups, *next_group;   /* that wf_comm_group made; they end with this one */
    weft_comm *axis_groups;           /* that wf_comm_axis_group made; so do they */
    struct wf_known_axes *known_axes; /* on which weft_comm_along has agreed */
    struct wf_creations *creations;   /* how often some of its ranks have created something, or have
                                         agreed */
    uint64_t common_creations;        /* how often all of them have created something */
    uint64_t common_agreements;
    weft_comm *attached; /* of the same ranks on another plugin; it fails and ends with this one */
    weft_comm *owner;    /* if this is a group or attached: it ends with its owner */
    bool fails_alone;    /* an axis group: it does not fail with its owner */
    bool is_tied;        /* a group that the program releases: it fails with its owner, but outlives
                            it */
    struct wf_dependent *dependents; /* under the context's lock */
    struct {
        _Atomic(const void *) calls; /* NULL: none yet */
        _Atomic(void *) user;        /* NULL: look for it in the list */
    } found[4];                      /* the newest dependents with some calls (extend.h) */
    const weft_plugin *plugin;       /* the plugin of TABLE */
    void *device;                    /* PLUGIN's */
    uint64_t number;                 /* the same on all its ranks, and unique on each of them */
    uint32_t bindings;               /* number of plans bound to it so far; exec numbers them */
    struct wf_runs runs;
    int64_t timeout_ns;
    int32_t *world_ranks;
    /* Room for two lists of its ranks, after WORLD_RANKS: a rank without memory can still list the
     * ranks of a group, and tell them. */
    int32_t *room;
    uint64_t *host_ids;
    uint32_t name_text;                        /* NAME as a text of the trace */
    _Atomic uint64_t last_record, group_chain; /* newest record; that of the call group, or 0 */
    uint64_t group_record;    /* newest record before the call group, or WF_NO_RECORD */
    uint64_t *message_counts; /* sends to each rank, then receives; NULL: none was recorded */
    char cause_text[1024], group_text[512], limit_text[1024];
    struct wf_vendor cause_vendor; /* with cause_text */
    char name[128];
    uint64_t generation; /* it ended with that generation of an elastic job; 0: it did not */
};

struct weft_work {
    uint64_t made;         /* of fork.h */
    weft_context *context; /* NULL: it was released */
    void *event;
    bool is_wrapped;          /* EVENT is the caller's */
    struct wf_span span;      /* the posts that it covers */
    const char *maker;        /* the public function that returned it */
    weft_work *next, *before; /* in context->works */
};

#endif
