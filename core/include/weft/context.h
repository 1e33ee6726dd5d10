/* context.h - one rank's connection to its job: its rank, its backend, its world communicator.
 *
 *     weft_context *ctx;
 *     if (weft_init(NULL, &ctx) != WEFT_OK) fail(weft_last_error());
 *     weft_all_reduce(weft_world(ctx), in, out, n, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
 *     weft_context_release(&ctx);
 *
 * Conventions of all public headers:
 *  - A function that can fail returns weft_status and sets weft_last_error.  It writes its results
 *    only on success.  NULL for an object or a result is WEFT_ERR_INVALID.  An accessor does not
 *    fail: for NULL it returns the value that its comment names.  TRY in examples checks a call.
 *  - Structs of options and of information begin with struct_size.  The caller sets it to sizeof
 *    of the struct; weft reads and writes no more than that.  An option field that is zero has
 *    its default.  An option that this version does not know is WEFT_ERR_VERSION.  A struct_size of
 *    options that is below the one of weft 0.9.0 is WEFT_ERR_INVALID.
 *  - Time limits are in nanoseconds.  WEFT_FOREVER waits without limit.  0 tests once, unless the
 *    function gives 0 another meaning.  A wait refuses any other limit below 0.
 *  - A borrowed result is not released by the caller.  It is valid as long as the object that it
 *    was obtained from.  The release of that object releases it; do not use it afterwards.
 *  - Indices, ranks, axes and dimensions count from 0.
 *  - Unless marked [any thread], a function may be called by only one thread at a time per object.
 *    A context and its communicators are different objects.
 *  - An object that the caller releases, and whose parent was released before (a communicator of
 *    weft_comm_split, a bound plan of a communicator), refuses every call with WEFT_ERR_INVALID. It
 *    must still be released.
 *  - A child of fork() cannot use the objects of its parent: every call is refused with
 *    WEFT_ERR_INVALID, and a release has no effect.  If the parent has called weft_init, the child
 *    cannot call it, even if the parent has released its context.  A process may fork before
 *    weft_init, and may start other programs at any time. */
#ifndef WEFT_CONTEXT_H
#define WEFT_CONTEXT_H

#include "cost.h"
#include "status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_context weft_context;
typedef struct weft_comm weft_comm; /* an ordered list of ranks that communicate */
typedef struct weft_threads weft_threads;

/* ---- joining and leaving the job ---------------------------------------------- */

typedef struct weft_init_options {
    size_t struct_size;
    const char *backend;     /* NULL: WEFT_BACKEND */
    const char *plugin_path; /* NULL: WEFT_PLUGIN_PATH */
    const int32_t *device;   /* device index; NULL: chosen by local rank */
    int64_t timeout_ns;      /* time limit of every wait on a communicator; 0: WEFT_TIMEOUT */
    int64_t join_timeout_ns; /* time limit for all ranks to join; 0: WEFT_JOIN_TIMEOUT */

    /* This rank's place in the job.  With SIZE 0 it comes from the launcher's variables
     * (docs/launch.md); without a launcher the job has one rank.  With SIZE above 0 this is rank
     * RANK of SIZE ranks, and one of the next three fields says how the ranks find each other. */
    int32_t rank, size;
    const weft_exchange *exchange; /* the caller's all-gather over all ranks, called by weft_init */
    weft_threads *threads;         /* ranks are threads of this process; SIZE may be 0 */
    const char *rendezvous;        /* "host:port", which needs TOKEN, or "unix:name"; rank 0 serves
                                    * it */
    const char *token;             /* the job's secret, at least 16 characters; NULL: WEFT_TOKEN */

    /* Bytes that must be equal on all ranks, such as a digest of the caller's settings.
     * Borrowed for the call. */
    const void *digest;
    size_t digest_bytes;

    /* Above 0: this process is alone and simulates this number of ranks, up to WEFT_SIMULATED_MAX.
     * Its one thread holds the shards of all ranks.  Tensors work (tensor.h); every call on a
     * communicator, and every move of one rank's memory (move.h), is WEFT_ERR_UNSUPPORTED.  0: the
     * number in WEFT_SIMULATED_RANKS, unless one of SIZE and THREADS is set.  docs/laptop.md shows
     * it. */
    int32_t simulated_ranks;

    /* Above 0: the job is elastic (docs/elastic.md): it can lose ranks and continue
     * (weft_context_next) while at least this number is left.  Ranks are processes, at most
     * WEFT_ELASTIC_MAX, of a backend whose memory the host can read.  0: WEFT_ELASTIC. */
    int32_t ranks_min;
    /* A rank of an elastic job whose process is silent for so long, because it is stopped or cannot
     * be reached, is expelled: it leaves the job, and its process is killed on
     * hosts where other ranks run.  At least 100 ms.  0: WEFT_SILENT.  WEFT_FOREVER: no rank is
     * expelled or killed. */
    int64_t silent_ns;
    /* Most ranks of a generation of an elastic job that takes newcomers in (weft_context_grow).  0:
     * WEFT_ELASTIC_MAX, otherwise the number of ranks at the start. */
    int32_t ranks_max;
} weft_init_options;

#define WEFT_SIMULATED_MAX 4096
#define WEFT_ELASTIC_MAX   64

/* Join the job: choose the backend, connect to the other ranks, compare the settings that all
 * ranks must share, and create the world communicator.  Collective: every rank of the job calls
 * it once.  OPTIONS may be NULL.  The caller releases *OUT.
 * A failure of one rank is the same error on all ranks.  WEFT_ERR_TIMEOUT lists the ranks that did
 * not join.  WEFT_ERR_MISMATCH lists the settings that differ, by rank.  WEFT_ERR_NO_BACKEND gives
 * the reason of every candidate.  WEFT_ERR_INVALID: there are less than 1 or more than
 * WEFT_SIMULATED_MAX simulated ranks, or this process is also a rank of a job.
 * WEFT_ERR_UNSUPPORTED: the ranks are simulated, and the host cannot read the backend's memory; or
 * the job is elastic, and its ranks are threads, simulated, too many or of another backend.
 * [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_init(const weft_init_options *options, weft_context **out);

/* Leave the job and set *CONTEXT to NULL.  Accepts NULL and a pointer to NULL.  The call reports
 * the departure to the other ranks, so that they do not treat it as a failure.  It does not wait
 * for these ranks. The caller should have released the context's communicators, bound plans,
 * streams, works and memory before.  For those that remain, a warning gives their number and the
 * functions that created the works.  Their backend resources are freed now, and unfinished work on
 * remaining streams is aborted.  The world communicator is released with the context: the caller
 * must not use the pointer that weft_world returned. */
WEFT_API void weft_context_release(weft_context **context);

/* ---- properties ---------------------------------------------------------------- */

/* This rank's number in the job; 0 with simulated ranks, -1 for NULL.  [any thread] */
WEFT_API int32_t weft_rank(const weft_context *context);

/* Number of ranks of the job, also of simulated ones; 0 for NULL.  [any thread] */
WEFT_API int32_t weft_size(const weft_context *context);

/* This rank's number among the ranks on this host; 0 with simulated ranks, -1 for NULL.  [any
 * thread] */
WEFT_API int32_t weft_local_rank(const weft_context *context);

/* Number of ranks on this host; with simulated ranks, of all of them; 0 for NULL.  [any thread] */
WEFT_API int32_t weft_local_size(const weft_context *context);

/* Whether the ranks are simulated: this process holds the shards of all of them.  False for NULL.
 * [any thread] */
WEFT_API bool weft_is_simulated(const weft_context *context);

/* The communicator of all ranks.  With simulated ranks, weft_comm_size returns their number; every
 * other call is refused. Borrowed: weft_context_release releases it, and it must not be used
 * afterwards.  NULL for NULL.  [any thread] */
WEFT_API weft_comm *weft_world(weft_context *context);

/* The plugin that communicates for this context.  Borrowed.  NULL for NULL.  [any thread] */
WEFT_API const weft_plugin *weft_context_plugin(const weft_context *context);

/* The plugin's handle for the context's device, to pass to functions in the tables of
 * weft_context_plugin.  Borrowed.  NULL for NULL.  [any thread] */
WEFT_API void *weft_context_device(const weft_context *context);

/* The cost table of this job, for weft_plan_options.costs.  It is the table that WEFT_COSTS names.
 * Without WEFT_COSTS it is made from the costs that rank 0's plugin reports.  It is the same on all
 * ranks.
 * Borrowed.  NULL for NULL.  [any thread] */
WEFT_API const weft_cost_table *weft_context_costs(const weft_context *context);

/* Prepare the calling thread for the context's device.  weft_init does this for the thread that
 * calls it.  Every other thread must call it once before it uses the context; further calls have no
 * effect.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_context_bind_thread(weft_context *context);

/* ---- elastic jobs ---------------------------------------------------------------- */

typedef struct weft_next_options {
    size_t struct_size;
    uint64_t step; /* that this rank has completed; weft does not interpret it */
} weft_next_options;

/* How a generation of an elastic job follows from the one before.  The arrays are borrowed: they
 * are valid until the next weft_context_next, or the release of the context. */
typedef struct weft_next_info {
    size_t struct_size;
    uint64_t generation;      /* the first is 1; numbers increase, but not always by 1 */
    uint64_t step;            /* the largest that a rank of the generation has completed */
    int32_t rank, size;       /* this rank's, from now on */
    size_t old_count;         /* SIZE, as weft_mesh_follow takes it */
    const int32_t *old_ranks; /* [old_count entries] by rank: its number before; -1: it is new */
    size_t lost_count;
    const int32_t *lost;        /* [lost_count entries] the ranks that are left out, by their number
                                 * before, ascending */
    const char *const *reasons; /* [lost_count entries] why: "is gone: ...", "was expelled: ..." */
    /* What the call took: until all had called it and agreed; until the lost processes were dead;
     * until the ranks had met; until their world communicator was made. */
    uint64_t agree_ns, fence_ns, meet_ns, world_ns;
} weft_next_info;

/* Whether a rank is lost, or another rank has called weft_context_next.  False without an elastic
 * job.  False for NULL. */
WEFT_API bool weft_context_wants_next(const weft_context *context);

/* The generation of the job that the context is of: 1 from weft_init on; 0 without an elastic job,
 * and for NULL. */
WEFT_API uint64_t weft_context_generation(const weft_context *context);

/* Make the next generation of an elastic job from the ranks that are left.  Collective over these:
 * each calls it, after a communicator has failed with WEFT_ERR_PEER, WEFT_ERR_TIMEOUT or
 * WEFT_ERR_ABORTED, or at a point that the program chooses.  When a rank calls it, the
 * communicators of the others fail with WEFT_ERR_ABORTED.  A rank that does not call it within the
 * time limit of its communicators, while others wait, is expelled. CONTEXT becomes the context of
 * the next generation, with the same device and memory, where this rank may have another number.
 * Streams, works and memory of weft_alloc continue.  Tensors keep their memory until they are
 * released; only weft_tensor_memory, weft_tensor_spec and weft_tensor_to_host read it.
 * Communicators, bound plans, symmetric memory and training systems of before refuse every call
 * with a text that names their generation, and must still be released.  On success no lost process
 * can write memory of this rank: on this host it is dead.  One that still runs is killed first,
 * unless silent_ns is WEFT_FOREVER.  OPTIONS may be NULL.  OUT may be NULL. After a failure CONTEXT
 * may be passed to weft_context_next and weft_context_release only; tensors can be read as above.
 * WEFT_ERR_INVALID: the job is not elastic.  WEFT_ERR_PEER: this rank was expelled, fewer than
 * ranks_min are left, or the rendezvous has ended.  WEFT_ERR_TIMEOUT: the rendezvous does not
 * answer, or a process that may not be expelled or killed, which the text names, does not call or
 * lives; another call waits on. */
WEFT_API WEFT_NODISCARD weft_status weft_context_next(weft_context *context,
                                                      const weft_next_options *options,
                                                      weft_next_info *out);

/* Take newcomers into an elastic job: processes that its launcher has started later, with
 * WEFT_SPARE.  Collective over all ranks, at a point that the program chooses, where no work of a
 * communicator is unfinished.  If processes wait for a place and fewer than ranks_max ranks are
 * left, the next generation begins with them, as by weft_context_next.  They take the numbers of
 * lost ranks.  Otherwise *OUT describes the generation of before, which goes on untouched; also if
 * the newcomers fail before all ranks and they have agreed.  In a newcomer, weft_init returns with
 * the context of that generation.  A loss of ranks takes newcomers in, too, without this call.
 * OPTIONS may be NULL.  OUT may be NULL.  Errors are those of weft_context_next; after
 * WEFT_ERR_TIMEOUT the generation goes on. */
WEFT_API WEFT_NODISCARD weft_status weft_context_grow(weft_context *context,
                                                      const weft_next_options *options,
                                                      weft_next_info *out);

/* How the context's generation has come about, as the last weft_context_next or weft_context_grow
 * told it; in a newcomer, as these told the other ranks, without lost ranks.  In the first
 * generation, and without an elastic job, there are no old ranks.  Arrays as in weft_next_info. */
WEFT_API WEFT_NODISCARD weft_status weft_context_origin_get(const weft_context *context,
                                                            weft_next_info *out);

/* ---- ranks as threads of one process ------------------------------------------- */

/* The function of a rank.  USER is the argument beside it. */
typedef weft_status (*weft_threads_main)(void *user);

/* Run RANK_MAIN(USER) as SIZE ranks, each on its own thread.  In RANK_MAIN, weft_init(NULL,
 * &ctx) joins the job of these threads and ignores the launcher's variables.  Returns when all
 * ranks have returned: WEFT_OK, or the status of the rank that failed first, with its rank and text
 * in weft_last_error.  A number that is not an error of weft becomes WEFT_ERR_INVALID.  When a rank
 * fails, its communicators fail on all ranks, so that no rank
 * waits for it.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_threads_run(int32_t size, weft_threads_main rank_main,
                                                     void *user);

/* The same for threads that the caller creates: each calls weft_init with `threads` and `rank`.
 * The caller releases *OUT after the contexts made from it.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_threads_create(int32_t size, weft_threads **out);
WEFT_API void weft_threads_release(weft_threads **threads);

#ifdef __cplusplus
}
#endif
#endif
