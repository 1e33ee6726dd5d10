/* comm.h - contexts and communicators from the inside.
 *
 *     objects.h    the structs
 *     place.c      this rank's number, and its way to the rendezvous
 *     threads.c    ranks as threads of one process
 *     next.c       the generations of an elastic job; fence.c that lost processes are dead
 *     context.c    joining and leaving the job
 *     agree.h      one step that all ranks of a list take together
 *     create.c     making communicators in two phases, and ending them
 *     split.c      communicators out of communicators; groups.c keeps those of groups of ranks
 *     comm.c       what a communicator knows of its ranks
 *     fault.c      what an error on a communicator becomes
 *     coll.c       collectives; message.c point to point; check.h their arguments and memory;
 *                  compare.c calls that no plugin compares
 *     recent.c     recent operations; position.h every rank's, when something hangs
 *     costs.c      what steps cost on this job
 *     ledger.h     memory that is not yet freed
 *     memory.c     memory and streams; work.c handles on what a stream was given
 *     groups.h     communicators of some ranks, kept with the one they are of
 *     ended.h      what depends on a context or communicator that was released
 *     runs.h       the order in which bound plans run; calls.h the places of collectives
 *     posts.h      what communicators have put on streams, and what became of it
 *     recording.h  records of operations; observe.c the public functions of trace.h
 *     timing.h     times of work on streams, for traces
 *     module.h     modules above comm in the life of a context
 *
 * context.c, place.c, threads.c, next.c, fence.c, costs.c, ledger.[ch], memory.c, work.c,
 * observe.c, timing.[ch], ended.[ch] and module.[ch] are in context/, with room.h and mapped.c,
 * about the size of memory; order.[ch], runs.[ch] and calls.[ch] in order/. */
#ifndef WEFT_COMM_COMM_H
#define WEFT_COMM_COMM_H

#include "comm/context/ended.h"
#include "groups.h"
#include "objects.h"

/* ---- place.c ---- */

/* Set CONTEXT's rank, size, local rank (-1: not known), server and client, and whether its ranks
 * are simulated. */
weft_status wf_place_find(weft_context *context, const weft_init_options *options,
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
weft_status wf_context_create(const weft_init_options *options, const weft_plugin *plugin,
                              weft_context **out) WF_NODISCARD;

/* What is different in later generations of the job is made: the world communicator, and what
 * modules keep.  CONTEXT has its rank, size and client. */
weft_status wf_context_meet(weft_context *context) WF_NODISCARD;

/* ---- fence.c: proof that processes of lost ranks are dead ---- */

/* The process of a rank; PIDFD is -1 if it cannot write this rank's memory, as on another host. */
struct wf_peer {
    int pidfd;
    uint64_t pid;
    bool is_near; /* on this host */
};

/* A process, as its rank shows it to the others. */
struct wf_process {
    uint64_t pid;
    uint64_t space; /* its namespace of processes; 0: not known */
    uint64_t began; /* of wf_process_began */
};

/* Make room for the processes of CONTEXT's ranks, if the job is elastic. */
weft_status wf_fence_begin(weft_context *context) WF_NODISCARD;
/* Note the PROCESS of RANK, which may have ended; NEAR: on this host. */
void wf_fence_note(weft_context *context, int32_t rank, const struct wf_process *process,
                   bool near);
/* This process. */
struct wf_process wf_fence_process(void);
/* Wait until the process of RANK, which WHY describes, is dead; kill it if that is permitted. */
weft_status wf_fence_wait(weft_context *context, int32_t rank, const char *why) WF_NODISCARD;
void wf_fence_end(weft_context *context);

/* ---- next.c: the generations of an elastic job ---- */

/* Set CONTEXT's terms from OPTIONS and the configuration. */
weft_status wf_next_begin(weft_context *context, const weft_init_options *options) WF_NODISCARD;
/* Fail unless the job that CONTEXT has joined, with its device, can be elastic. */
weft_status wf_next_check(const weft_context *context) WF_NODISCARD;
/* Fail unless the device of a newcomer can copy and reduce. */
weft_status wf_next_probe(weft_context *context) WF_NODISCARD;
/* The newcomer CONTEXT waits for a place, and joins the job. */
weft_status wf_next_join(weft_context *context) WF_NODISCARD;
/* This rank's number in the generation that its program knows, or -1: the others get it. */
int32_t wf_next_number(const weft_context *context);
/* RANK shows that its number was OLD. */
void wf_next_note(weft_context *context, int32_t rank, int32_t old);
bool wf_next_has_newcomers(const weft_context *context);
/* The lowest rank that is not new. */
int32_t wf_next_giver(const weft_context *context);
/* Free what only elastic jobs have; CAUSE ends the tensors of earlier generations. */
void wf_next_end(weft_context *context, const char *cause);
/* In place of a context's generation of processes: its generation of the job has ended. */
#define WF_BETWEEN_GENERATIONS wf_made_in(WF_KIND_CONTEXT, UINT32_MAX - 2)

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
/* The same, but the user may have a copy of its pointer. */
void wf_comm_forget(weft_context *context, weft_comm *comm);

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
/* The others want the next generation of the job. */
void wf_fault_asked(void *context);
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
/* Collective.  WEFT_ERR_MISMATCH on all ranks unless all make a call of this KIND (as
 * wf_recent_add) with this identity. */
weft_status wf_comm_compare(weft_comm *comm, uint32_t kind,
                            const struct wf_call_identity *identity) WF_NODISCARD;

/* weft_collective for a step of which the caller has a record: of a plan, or of a collective. */
weft_status wf_comm_collective_step(weft_comm *comm, const weft_collective_args *args);

/* The plugin's exchange if args->served is set, its pull or, if args->dtype is not TO, its
 * pull_cast; it must have it.  ELEMENTS, wanted on this rank, is for the record. */
weft_status wf_comm_pull(weft_comm *comm, const weft_pull_args *args, uint32_t to,
                         uint64_t elements);

/* ---- costs.c ---- */

/* Set the context's costs to those that WEFT_COSTS names, or that suit its plugin. */
weft_status wf_costs_choose(weft_context *context) WF_NODISCARD;
/* Unless WEFT_COSTS is set: adapt the costs to the device, which is open now.  All ranks use the
 * costs of rank 0's plugin. */
weft_status wf_costs_ask(weft_context *context) WF_NODISCARD;
/* All ranks take GIVER's table, because some are newcomers. */
weft_status wf_costs_share(weft_context *context, int32_t giver) WF_NODISCARD;

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
/* WEFT_ERR_INVALID: TIMEOUT_NS of FUNCTION is negative, but not WEFT_FOREVER. */
weft_status wf_limit_check(const char *function, int64_t timeout_ns) WF_NODISCARD;
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
