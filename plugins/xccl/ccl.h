/* ccl.h - communicators on NCCL or RCCL: the comm table.
 *
 * A communicator of weft is two of the library's: `control`, made without blocking so that making
 * it can time out, and `work`, split off it, which blocks and therefore launches without a thread
 * for each call.  The two share one abort flag, so aborting `control` ends what runs on `work`
 * without freeing it under a thread that is still inside. */
#ifndef WEFT_XCCL_CCL_H
#define WEFT_XCCL_CCL_H

#include "ccl_api.h"
#include "gpu_comm.h"

extern struct wf_ccl_api wf_ccl; /* filled by wf_ccl_load */
extern struct wf_library wf_ccl_library;
extern int wf_ccl_version; /* 22809 for 2.28.9 */

/* ---- ccl_load.c ---- */

/* The communication library, opened once.  WEFT_ERR_NO_LIBRARY, _OLD_LIBRARY. */
weft_status wf_ccl_load(void);
weft_status wf_ccl_probe(weft_probe *out);
/* What RESULT means; described unless it is success.  WHAT names the call. */
weft_status wf_ccl_check(ccl_result result, const char *what);

/* ---- ccl_ways.c: how each collective is done ---- */

/* What all ranks of a communicator have; the same on all of them. */
struct wf_means {
    int32_t version;    /* of the library */
    int32_t capability; /* the least of the devices' */
    int32_t size;       /* ranks; 0 where it is not known */
    bool kernels;       /* for every device */
};

enum wf_way_kind {
    WF_WAY_NONE,
    WF_WAY_NATIVE,   /* one call of the library */
    WF_WAY_PIECES,   /* one call for each rank's share, in a group */
    WF_WAY_MESSAGES, /* sends and receives in a group */
    WF_WAY_KEYS,     /* floats as integers of the same order, reduced as such */
    WF_WAY_EXCHANGE  /* parts go to one rank each, which reduces them with a kernel */
};

struct wf_way {
    enum wf_way_kind kind;
    ccl_dtype dtype; /* as the library sees the data */
    ccl_op op;
    uint32_t factor;    /* its elements to each of ours */
    bool premultiplied; /* OP is made for the call */
};

struct wf_way wf_way_find(const struct wf_means *means, uint32_t collective, uint32_t dtype,
                          uint32_t reduction) WF_HOT;
struct wf_way wf_way_of(const struct wf_comm *comm, const struct wf_op *op) WF_HOT;
/* An average that WAY premultiplies: by 1 / its divisor. */
void wf_set_reciprocal(const struct wf_way *way, struct wf_op *op);

/* ---- ccl_comm.c: making and ending communicators ---- */

/* What each rank tells the others before a communicator is made. */
struct wf_facts {
    uint32_t bytes;
    int32_t version, capability;
    uint32_t kernels;
    int32_t process;
    uint32_t is_shared;
    char uuid[64];
};

/* What symmetric memory, where the plugin has some, does as its communicator lives and ends. */
struct wf_window_calls {
    void (*look)(struct wf_comm *comm); /* has any of its work failed?  Then the communicator has */
    void (*stop)(struct wf_comm *comm); /* end what waits */
    void (*drop)(struct wf_comm *comm); /* the communicator ends before it */
};

struct wf_comm {
    /* What every call touches. */
    struct wf_gpu_device *device;
    ccl_comm control, work;
    int32_t rank, size;
    uint32_t flags;
    atomic_bool is_ready;
    bool is_wrapped;                                    /* WORK is the caller's */
    _Atomic weft_status error;                          /* what it is stuck with */
    const struct wf_window_calls *_Atomic window_calls; /* NULL: there have been none */
    struct wf_means means;
    struct wf_group group;
    int64_t timeout_ns;

    /* So is this, of the watch.  MARKS stand for work on streams: the fixed one until it is done,
     * the other for all that came after. */
    _Atomic uint64_t ticket; /* odd while a thread is inside the library */
    pthread_mutex_t lock;    /* of what follows */
    gpu_event marks[2];
    int fixed;
    bool fixed_waits, other_waits;
    bool is_captured;     /* in a graph, whose replays leave no marks */
    uint64_t fixed_since; /* as the watch saw it first; 0: not yet */
    bool is_reaping;
    bool is_quiet; /* aborted with nothing under way, so that it can end as if it were not */
    atomic_bool is_reaped;
    pthread_t reaper;
    struct wf_window *windows;
    char error_text[768];

    pthread_mutex_t gate;             /* held while inside the library, where `work` is `control` */
    uint64_t seen_ticket, seen_since; /* by the watch alone */
    struct wf_comm *next;
    bool is_lost;              /* a call on WORK never came back: it cannot be freed */
    atomic_bool is_handed_out; /* others may call WORK too, unseen */
    int32_t *world_ranks;
    uint64_t *host_ids;
    char name[96];
    struct wf_facts facts;
    void *token;                   /* a little device memory, for barriers */
    void *talk_device, *talk_host; /* of ccl_talk.c */
};

/* The parts of making that splitting shares.  _NEW has its memory but no communicator; _JOIN makes
 * that with the ranks that have ID, _MAKE_WORK only what comes after `control`, which has settled;
 * _READY lets it be used and watched.  All but _NEW within a scope. */
weft_status wf_comm_new(struct wf_gpu_device *device, const weft_comm_options *options,
                        struct wf_comm **comm);
ccl_config wf_comm_config(bool blocking, bool split_share);
int64_t wf_making_limit(const struct wf_comm *comm);
weft_status wf_comm_join(struct wf_comm *comm, ccl_id id);
weft_status wf_comm_make_work(struct wf_comm *comm);
weft_status wf_comm_ready(struct wf_comm *comm);
weft_status wf_comm_wrap(void *device, void *native, const weft_comm_options *options, void **comm);
void *wf_comm_native(void *comm);

/* ---- ccl_split.c ---- */

weft_status wf_comm_split(void *parent, const weft_comm_options *options, void **comm);

/* ---- ccl_life.c: errors of the library, aborting, the end ---- */

/* Wait until NATIVE, after a call that gave RESULT, has done what it was asked, at most LIMIT; a
 * failure stays.  WHAT names the call. */
weft_status wf_settle(struct wf_comm *comm, ccl_comm native, ccl_result result, int64_t limit_ns,
                      const char *what) WF_HOT;
/* End what runs on a communicator that is stuck already. */
void wf_comm_kill(struct wf_comm *comm);

/* ---- ccl_watch.c: work that lasts too long ---- */

/* Making a communicator, and a first call that connects it, take a while of their own: their time
 * limit is at least this. */
#define WF_LEAST_MAKING_NS  INT64_C(20000000000)
#define WF_LEAST_CALLING_NS INT64_C(2000000000)

weft_status wf_watch(struct wf_comm *comm);
void wf_unwatch(struct wf_comm *comm);
/* Around calls into the library that may wait for other ranks.  Refused when stuck. */
weft_status wf_inside(struct wf_comm *comm) WF_HOT;
void wf_outside(struct wf_comm *comm) WF_HOT;
/* Work was put on STREAM that other ranks may keep from ending.  Within a scope. */
void wf_mark(struct wf_comm *comm, gpu_stream stream) WF_HOT;
/* Is nothing under way, neither in a call nor on a stream? */
bool wf_is_idle(struct wf_comm *comm);

/* ---- ccl_match.c: WEFT_COMM_CHECK ---- */

/* Do all ranks call the same collective?  WEFT_ERR_MISMATCH names two that differ.  Waits. */
weft_status wf_match(struct wf_comm *comm, const struct wf_op *op);

/* ---- ccl_talk.c: a few bytes among all ranks, waited for ---- */

#define WF_TALK_BYTES 160 /* at most from each rank */

/* *ALL, size x BYTES, holds until the next talk.  Inside and within a scope, on STREAM. */
weft_status wf_talk(struct wf_comm *comm, gpu_stream stream, const void *mine, size_t bytes,
                    const void **all);
void wf_talk_end(struct wf_comm *comm);

/* ---- ccl_batch.c, ccl_native.c, ccl_reduce.c: calls as they run ---- */

struct wf_task {
    struct wf_op op;
    struct wf_way way;
    bool is_first; /* in the first batch of a group */
    void *scratch; /* borrowed until all of the group is on its way */
};

/* Put the library calls (and kernels) of stage 0 or 1 on the stream, inside a group of the
 * library where there is more than one call. */
ccl_result wf_issue_native(struct wf_comm *comm, struct wf_task *task) WF_HOT;
ccl_result wf_issue_pieces(struct wf_comm *comm, const struct wf_task *task);
weft_status wf_issue_messages(struct wf_comm *comm, struct wf_task *task, ccl_result *result);
weft_status wf_issue_keys(struct wf_comm *comm, struct wf_task *task, int stage,
                          ccl_result *result);
weft_status wf_issue_exchange(struct wf_comm *comm, struct wf_task *task, int stage,
                              ccl_result *result);
/* The first of two results that is not success. */
static inline ccl_result wf_first(ccl_result a, ccl_result b)
{
    return a != CCL_SUCCESS && a != CCL_IN_PROGRESS ? a : b;
}

#endif
