/* comm.h - contexts and communicators from the inside.
 *
 *     place.c      this rank's number, and its way to the rendezvous
 *     threads.c    ranks as threads of one process
 *     context.c    joining and leaving the job
 *     agree.h      one step that all ranks of a list take together
 *     create.c     making communicators in two phases, and ending them
 *     split.c      communicators out of communicators; groups.c keeps those of groups of ranks
 *     comm.c       what a communicator knows of its ranks
 *     fault.c      what an error on a communicator becomes
 *     coll.c       collectives; message.c point to point; check.h their arguments and memory;
 *                  compare.c calls that no plugin compares
 *     ring.c       recent operations; position.h every rank's, when something hangs
 *     costs.c      what steps cost on this job
 *     ledger.h     memory that is not yet freed
 *     memory.c     memory and streams; work.c handles on what a stream was given
 *     ended.h      what depends on a context or communicator that was released
 *     runs.h       the order in which bound plans run; calls.h the places of collectives
 *     posts.h      what communicators have put on streams, and what became of it
 *     recording.h  records of operations; observe.c the public functions of trace.h
 *     timing.h     times of work on streams, for traces
 *     module.h     modules above comm in the life of a context
 *
 * context.c, place.c, threads.c, costs.c, ledger.[ch], memory.c, work.c, observe.c, timing.[ch],
 * ended.[ch] and module.[ch] are in context/, with room.h and mapped.c, about the size of memory;
 * order.[ch], runs.[ch] and calls.[ch] in order/. */
#ifndef WEFT_COMM_COMM_H
#define WEFT_COMM_COMM_H

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

/* ---- ring.c ---- */

#define WF_RING_ENTRIES 64

/* One operation.  Fields are atomic because another thread may read while it is written. */
struct wf_ring_entry {
    _Atomic uint64_t what;  /* packed: kind, dtype, reduction, root or peer */
    _Atomic uint64_t count; /* elements */
};

/* The last operations of a communicator.  One writer; readers at any time. */
struct wf_ring {
    _Atomic uint64_t posted;   /* operations handed to the plugin */
    _Atomic uint64_t finished; /* those of them known to be complete */
    struct wf_ring_entry entries[WF_RING_ENTRIES];
};

/* Operations in the ring that are not collectives of the ABI. */
enum wf_ring_kind {
    WF_RING_SEND = WEFT_COLL_COUNT,
    WF_RING_RECEIVE,
    WF_RING_PULL,
    WF_RING_SYMM_BARRIER
};

static inline void wf_ring_add(struct wf_ring *ring, uint32_t kind, uint32_t dtype,
                               uint32_t reduction, int32_t root, uint64_t count)
{
    uint64_t n = atomic_load_explicit(&ring->posted, memory_order_relaxed) + 1;
    struct wf_ring_entry *entry = &ring->entries[n % WF_RING_ENTRIES];

    /* Release: a reader that sees this slot reused also sees the previous value of `posted`. */
    atomic_store_explicit(&entry->what,
                          (uint64_t)(kind & 255) << 48 | (uint64_t)(dtype & 255) << 40 |
                              (uint64_t)(reduction & 255) << 32 | (uint32_t)root,
                          memory_order_release);
    atomic_store_explicit(&entry->count, count, memory_order_release);
    atomic_store_explicit(&ring->posted, n, memory_order_release);
}

static inline void wf_ring_finish(struct wf_ring *ring)
{
    atomic_store_explicit(&ring->finished,
                          atomic_load_explicit(&ring->posted, memory_order_relaxed),
                          memory_order_relaxed);
}

/* Print operation N: "all_reduce sum of 1024 f32"; "" if the ring no longer has it. */
void wf_ring_print(struct wf_ring *ring, uint64_t n, struct wf_text *out);

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
    struct wf_stream_note *next_alike; /* in context->streams_by_place */
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
    pthread_mutex_t lock; /* of the lists and of every communicator's cause_text */
    weft_comm *comms;
    struct wf_remains *remains;     /* communicators whose failure is unreported, newest first */
    weft_work *works;               /* with the spare ones */
    struct wf_stream_note *streams; /* not yet released */
    uint64_t stream_count;          /* of all times */
    struct wf_stream_note *streams_by_place[WF_STREAM_PLACES]; /* the same, by wf_stream_place */
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
    struct wf_timing *timing;           /* of timing.h; NULL: work on streams is not timed */
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
    uint64_t group_first;                /* operations in the ring before the group */
    uint64_t most[WEFT_DTYPE_COUNT];     /* of the fast check: maximum count per rank, so that all
                                            ranks' bytes < 2^63; 0 with WEFT_CHECK */
    uint32_t defined[WEFT_REDUCE_COUNT]; /* bit per dtype; 0 for premul_sum, which needs more */
    uint32_t averages;                   /* bit per dtype: the backend averages it, not weft */
    uint32_t transport;                  /* enum wf_transport */
    weft_context *context;
    _Atomic(struct wf_trace *) tracing;   /* the context's */
    struct wf_last_call last_call;        /* of check.h */
    struct wf_known_room rooms[WF_ROOMS]; /* by address */
    struct wf_ring ring;
    struct wf_calls calls;
    struct wf_posts_list posts;
    struct wf_posts_list onesided_posts; /* under the context's lock */

    weft_comm *next;                  /* in context->comms */
    weft_comm *groups, *next_group;   /* that wf_comm_group made; they end with this one */
    weft_comm *axis_groups;           /* that wf_comm_axis_group made; so do they */
    struct wf_known_axes *known_axes; /* on which weft_comm_along has agreed */
    struct wf_creations *creations;   /* how often some of its ranks have created something */
    uint64_t common_creations;        /* how often all of them have */
    weft_comm *attached; /* of the same ranks on another plugin; it fails and ends with this one */
    weft_comm *owner;    /* if this is a group or attached: it ends with its owner */
    bool fails_alone;    /* an axis group: it does not fail with its owner */
    struct wf_dependent *dependents; /* under the context's lock */
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
    char name[128];
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

#include "comm/context/ended.h"
#include "groups.h"

/* ---- place.c ---- */

/* Set CONTEXT's rank, size, local rank (-1: not known), server and client, and whether its ranks
 * are simulated. */
weft_status wf_place_find(weft_context *context, const weft_options *options,
                          int64_t join_timeout_ns,
                          const struct wf_client_events *events) WF_NODISCARD;

/* ---- threads.c ---- */

struct weft_threads {
    uint64_t made; /* of fork.h */
    int32_t size;
    struct wf_server *server;
    struct wf_job_key key;
};

/* The world of weft_threads_run in which the calling thread is a rank, or NULL. */
weft_threads *wf_threads_current(int32_t *rank);

/* ---- context.c ---- */

/* As weft_init, with PLUGIN; NULL: choose one. */
weft_status wf_context_create(const weft_options *options, const weft_plugin *plugin,
                              weft_context **out) WF_NODISCARD;

/* Open a device of PLUGIN, which may set variables for its vendor's library. */
static inline weft_status wf_device_open(const weft_plugin *plugin,
                                         const weft_device_options *wanted, void **device)
{
    weft_status status;

    wf_environment_lock();
    status = plugin->device->open(wanted, device);
    wf_environment_unlock();
    return status;
}

/* ---- create.c ---- */

/* A communicator to be created.  The ranks in AGREE create it, or several such communicators,
 * together.  RANKS are its members; this rank is one of them. */
struct wf_comm_request {
    weft_comm *parent;            /* the plugin may split it; NULL: none */
    weft_comm *origin;            /* fails if the time limit passes; NULL for the world */
    const int32_t *agree, *ranks; /* world ranks; RANKS NULL: this rank is a non-member */
    int32_t agree_count, count;
    uint64_t number;
    const char *name;          /* of the communicator */
    const char *what;          /* names the common call of AGREE: "split#7" */
    int64_t timeout_ns;        /* of the communicator */
    uint64_t deadline_ns;      /* of all steps, by wf_now_ns; UINT64_MAX: none */
    weft_status status;        /* result of the earlier steps on this rank */
    const weft_plugin *plugin; /* NULL: the context's, and its device */
    void *device;
    void *native; /* the vendor's communicator to wrap; NULL: one is made */
};

weft_status wf_comm_make(weft_context *context, const struct wf_comm_request *request,
                         weft_comm **out) WF_NODISCARD;
/* The same for ranks that are simulated: the communicator knows them and refuses all calls. */
weft_status wf_comm_make_simulated(weft_context *context, const struct wf_comm_request *request,
                                   weft_comm **out) WF_NODISCARD;
/* Remove COMM from its context and free it.  Its dependents end with CAUSE. */
void wf_comm_unmake(weft_comm *comm, const char *cause);
/* The same, but leave an object that refuses calls until it is released. */
void wf_comm_end(weft_comm *comm, const char *cause);
/* Free COMM, which has ended. */
void wf_comm_free(weft_comm *comm);

/* ---- fault.c ---- */

/* Keep the first error inside a group for its end.  Returns STATUS. */
weft_status wf_comm_note(weft_comm *comm, weft_status status);

/* The error for the caller after the plugin's WHAT on COMM returned STATUS, which is not OK.  Fails
 * COMM unless the call was refused. */
weft_status wf_comm_fault(weft_comm *comm, weft_status status, const char *what);
/* The same for a collective.  The first COMPLETE collectives of COMM are complete on this rank, so
 * that a mismatch does not fail them on the other ranks. */
weft_status wf_comm_fault_collective(weft_comm *comm, weft_status status, const char *what,
                                     uint64_t complete);
/* Wait until COMM has failed, at most MAX_NS: a backend may notice that a rank is gone before the
 * cause arrives. */
void wf_comm_wait_cause(weft_comm *comm, int64_t most_ns);
/* Write this rank's departure record: its collectives on each communicator, as a number and
 * notes. */
void wf_fault_write_record(weft_context *context, struct wf_text *out);
/* The next collective of COMM cannot complete: fail COMM, if it has not failed, with its limit.
 * Returns the cause. */
weft_status wf_comm_fail_limited(weft_comm *comm);
/* Make COMM's cause the thread's last error, and return its status; OK: it has not failed.  If COMM
 * has failed on another rank, it fails here now. */
weft_status wf_comm_cause(weft_comm *comm);
/* Fail COMM with STATUS and TEXT, unless it has failed already, and end its work. */
void wf_comm_fail(weft_comm *comm, weft_status status, const char *text);
/* The same with the context's lock held. */
void wf_comm_fail_locked(weft_comm *comm, weft_status status, const char *text);
/* COMM has just been listed: fail it if an abort arrived before.  The context's lock is held. */
void wf_fault_apply_early(weft_comm *comm);
/* Events of the client: a rank is gone, a communicator was aborted or failed elsewhere. */
void wf_fault_gone(void *context, const struct wf_departure *departure);
void wf_fault_abort(void *context, uint64_t comm, weft_status status, const char *text,
                    uint64_t complete);

/* True if COMM has failed on another rank.  Collectives up to `may_post` can still complete here;
 * all other calls fail. */
static inline bool wf_comm_is_doomed(const weft_comm *comm)
{
    weft_status limit = atomic_load_explicit(&comm->limit, memory_order_acquire);

    return limit != WEFT_OK && limit != WEFT_ERR_PEER;
}

/* True if COMM has failed, here or on another rank. */
static inline bool wf_comm_has_failed(const weft_comm *comm)
{
    return atomic_load_explicit(&comm->cause, memory_order_acquire) != WEFT_OK ||
           wf_comm_is_doomed(comm);
}

/* ---- posts.c: for the rest see posts.h ---- */

static inline void wf_posts_extend(struct wf_posts *posts, uint64_t now)
{
    if (atomic_load_explicit(&posts->last, memory_order_relaxed) <
        atomic_load_explicit(&posts->settled, memory_order_relaxed))
        atomic_store_explicit(&posts->first, now, memory_order_relaxed);
    atomic_store_explicit(&posts->last, now, memory_order_relaxed);
}

/* COMM has posted work to STREAM.  Called after the plugin has it, so that a wait that began
 * earlier does not cover it. */
static inline void wf_posts_add(weft_comm *comm, const void *stream)
{
    struct wf_posts_list *posts = &comm->posts;

    if (comm->done_on_return && stream == NULL) return;
    if (__builtin_expect(posts->recent == NULL || posts->recent->stream != stream ||
                             atomic_load_explicit(&comm->context->reported, memory_order_relaxed) !=
                                 0,
                         0))
        wf_posts_find(comm, stream);
    wf_posts_extend(posts->recent, atomic_load(&comm->context->clock));
    if (comm->group_depth > 0) posts->recent->in_group = true;
}

/* ---- coll.c ---- */

/* Count the next collective; false if it cannot end (wf_comm_fail_limited has the cause).
 *
 * A departure, or a failure on another rank, sets a limit (wf_comm_limit) while another thread may
 * be here.  Both write, then read the other's value, in the one order of sequentially consistent
 * operations, so at least one of them sees the other.  The exchange costs 5 ns; the count has one
 * writer and needs no other atomicity.  A communicator of one rank has no departures. */
static inline bool wf_comm_may_begin(weft_comm *comm)
{
    uint64_t number = atomic_load_explicit(&comm->collectives, memory_order_relaxed) + 1;

    if (comm->size > 1)
        (void)atomic_exchange_explicit(&comm->collectives, number, memory_order_seq_cst);
    else
        atomic_store_explicit(&comm->collectives, number, memory_order_relaxed);
    if (__builtin_expect(number <= atomic_load_explicit(&comm->may_post, memory_order_seq_cst), 1))
        return true;
    atomic_store_explicit(&comm->collectives, number - 1, memory_order_relaxed);
    return false;
}

/* Collectives past the COUNT-th cannot complete.  Returns true if one has begun. */
static inline bool wf_comm_limit(weft_comm *comm, uint64_t count)
{
    atomic_store_explicit(&comm->may_post, count, memory_order_seq_cst);
    return atomic_load_explicit(&comm->collectives, memory_order_seq_cst) > count;
}

/* ---- compare.c ---- */

/* Which step of which bound plan a call is, as in weft_collective_args. */
struct wf_call_identity {
    uint64_t plan;
    uint32_t binding, step, divisor;
};
/* Collective.  WEFT_ERR_MISMATCH on all ranks unless all make a call of this KIND (as in the ring)
 * with this identity. */
weft_status wf_comm_compare(weft_comm *comm, uint32_t kind,
                            const struct wf_call_identity *identity) WF_NODISCARD;

/* weft_collective for a step of which the caller has a record: of a plan, or of a collective. */
weft_status wf_comm_collective_step(weft_comm *comm, const weft_collective_args *args);

/* The plugin's pull or, if args->dtype is not TO, its pull_cast; it must have it.  ELEMENTS, wanted
 * on this rank, is for the record. */
weft_status wf_comm_pull(weft_comm *comm, const weft_pull_args *args, uint32_t to,
                         uint64_t elements);

/* ---- costs.c ---- */

/* Set the context's costs to those that WEFT_COSTS names, or that suit its plugin. */
weft_status wf_costs_choose(weft_context *context) WF_NODISCARD;
/* Unless WEFT_COSTS is set: adapt the costs to the device, which is open now.  All ranks use the
 * costs of rank 0's plugin. */
weft_status wf_costs_ask(weft_context *context) WF_NODISCARD;

/* ---- memory.c ---- */

/* As weft_alloc_on and weft_free_on, for FUNCTION.  If STREAM has ended, its work is complete. */
weft_status wf_memory_take(weft_context *context, uint64_t bytes, weft_stream *stream,
                           const char *function, void **out) WF_NODISCARD;
weft_status wf_memory_give(weft_context *context, void *pointer, weft_stream *stream,
                           const char *function) WF_NODISCARD;

/* WEFT_ERR_TIMEOUT: FUNCTION has waited for TIMEOUT_NS, for the stream with the name STREAM, or "".
 * After a long wait, log every rank's position. */
weft_status wf_context_waited(weft_context *context, const char *function, const char *stream,
                              int64_t timeout_ns);
/* Fail the communicators of CONTEXT if its streams may be waiting for their work. */
void wf_streams_stop(weft_context *context);

/* ---- work.c ---- */

/* weft_work_record on behalf of MAKER, the function that the user called. */
weft_status wf_work_record(weft_context *context, weft_stream *stream, const char *maker,
                           weft_work **out) WF_NODISCARD;
/* End the works of CONTEXT: free the spare ones, and log a warning about the others. */
void wf_works_end(weft_context *context);

static inline bool wf_comm_is_inline(const weft_comm *comm, const void *stream)
{
    return comm->done_on_return && stream == NULL && comm->group_depth == 0;
}

#endif
