/* ccl.h - communicators on NCCL or RCCL: the comm table.
 *
 * A communicator of weft consists of two of the library.  `control` is created without blocking, so
 * that its creation can time out.  `work` is split off it and blocks, so calls launch without one
 * thread per call.  The two share one abort flag: an abort of `control` ends the operations on
 * `work` without freeing it while a thread uses it. */
#ifndef WEFT_XCCL_CCL_H
#define WEFT_XCCL_CCL_H

#include "ccl_api.h"
#include "comm/gpu_comm.h"

extern struct ccl_api ccl_api; /* filled by ccl_load */
extern struct gpu_library ccl_library;
extern int ccl_version; /* 22809 for 2.28.9 */

/* ---- ccl_load.c ---- */

/* Open the communication library, once.  WEFT_ERR_NO_LIBRARY, _OLD_LIBRARY. */
weft_status ccl_load(void);
weft_status ccl_probe(weft_probe *out);
/* Status for RESULT.  A failure is described; WHAT names the call. */
weft_status ccl_check(ccl_result result, const char *what);

/* ---- ccl_method.c: the method that runs a collective ---- */

/* Capabilities that all ranks of a communicator have.  Equal on all ranks. */
struct ccl_means {
    int32_t version;    /* of the library */
    int32_t capability; /* minimum over all devices */
    int32_t size;       /* number of ranks; 0 if unknown */
    bool kernels;       /* every device has kernels */
};

enum ccl_method_kind {
    CCL_METHOD_NONE,
    CCL_METHOD_NATIVE,   /* one call of the library */
    CCL_METHOD_PIECES,   /* one call per rank's share, in a group */
    CCL_METHOD_MESSAGES, /* sends and receives in a group */
    CCL_METHOD_KEYS,     /* floats as integers of the same order, reduced as integers */
    CCL_METHOD_EXCHANGE  /* each rank gets one part of all data and reduces it with a kernel */
};

struct ccl_method {
    enum ccl_method_kind kind;
    ccl_dtype dtype; /* the dtype that the library uses */
    ccl_op op;
    uint32_t factor;    /* library elements per element */
    bool premultiplied; /* OP is created for the call */
};

struct ccl_method ccl_method_find(const struct ccl_means *means, uint32_t collective,
                                  uint32_t dtype, uint32_t reduction) PLUG_HOT;
struct ccl_method ccl_method_of(const struct gpu_comm *comm, const struct gpu_op *op) PLUG_HOT;
/* For an average that WAY premultiplies: set the factor to 1 / divisor. */
void ccl_set_reciprocal(const struct ccl_method *way, struct gpu_op *op);

/* ---- ccl_comm.c: creation of communicators ---- */

/* Properties of a rank that its peers need before a communicator is created. */
struct ccl_facts {
    uint32_t bytes;
    int32_t version, capability;
    uint32_t kernels;
    int32_t process;
    uint32_t is_shared;
    char uuid[64];
};

/* Hooks of symmetric memory, in plugins that have it. */
struct ccl_window_calls {
    void (*stop)(struct gpu_comm *comm); /* stop waiting kernels */
    void (*drop)(struct gpu_comm *comm); /* drop the windows of a communicator that ends */
};

struct gpu_comm {
    /* Fields that every call uses. */
    struct gpu_device *device;
    ccl_comm control, work;
    int32_t rank, size;
    uint32_t flags;
    atomic_bool is_ready;
    bool is_wrapped;           /* WORK belongs to the caller */
    _Atomic weft_status error; /* status of the cause; WEFT_OK until it fails */
    gpu_look *_Atomic look;    /* with WINDOW_CALLS, NULL: no window exists yet */
    const struct ccl_window_calls *_Atomic window_calls;
    struct ccl_means means;
    struct gpu_group group;
    int64_t timeout_ns;

    /* Fields that every call and the watch use.  MARKS are events on streams.  The fixed mark stays
     * until it is complete.  The other mark follows all later work. */
    _Atomic uint64_t ticket; /* odd while a thread is inside the library */
    pthread_mutex_t lock;    /* protects the following fields */
    vendor_event marks[2];
    int fixed;
    bool fixed_waits, other_waits;
    bool is_captured;     /* work is in a graph, whose replays record no marks */
    uint64_t fixed_since; /* when the watch first saw it; 0: not yet */
    bool is_reaping;
    bool is_quiet; /* aborted while idle, so it can be destroyed normally */
    atomic_bool is_reaped;
    pthread_t reaper;
    struct gpu_window *windows;
    char error_text[768];

    pthread_mutex_t gate;             /* held during calls of the library if `work` is `control` */
    uint64_t seen_ticket, seen_since; /* used by the watch only */
    struct gpu_comm *next;
    bool is_lost;              /* a call on WORK never returned, so WORK cannot be freed */
    atomic_bool is_handed_out; /* other code may call WORK too */
    int32_t *world_ranks;
    uint64_t *host_ids;
    char name[96];
    struct ccl_facts facts;
    void *token;                   /* small device memory for barriers */
    void *talk_device, *talk_host; /* used by ccl_talk.c */
};

/* Parts of the creation that splitting shares.  _NEW allocates without a native communicator.
 * _JOIN creates the native communicators with the ranks that have ID.  _MAKE_WORK creates `work`
 * only, after `control` is ready.  _READY makes the communicator usable and watched.  All but _NEW
 * are called within a scope. */
weft_status ccl_comm_new(struct gpu_device *device, const weft_comm_options *options,
                         struct gpu_comm **comm);
/* NAME is that of the communicator; "": none. */
ccl_config ccl_comm_config(const char *name, bool blocking, bool split_share);
int64_t ccl_making_limit(const struct gpu_comm *comm);
weft_status ccl_comm_join(struct gpu_comm *comm, ccl_id id);
weft_status ccl_comm_make_work(struct gpu_comm *comm);
weft_status ccl_comm_ready(struct gpu_comm *comm);
weft_status ccl_comm_wrap(void *device, void *native, const weft_comm_options *options,
                          void **comm);
void *ccl_comm_native(void *comm);

/* ---- ccl_split.c ---- */

weft_status ccl_comm_split(void *parent, const weft_comm_options *options, void **comm);

/* ---- ccl_errors.c: errors of the library, and the end of failed work ---- */

/* Wait until NATIVE has completed the call that returned RESULT, at most LIMIT.  A failure fails
 * the communicator.  WHAT names the call. */
weft_status ccl_settle(struct gpu_comm *comm, ccl_comm native, ccl_result result, int64_t limit_ns,
                       const char *what) PLUG_HOT;
/* Abort the work of a failed communicator. */
void ccl_comm_kill(struct gpu_comm *comm);
/* Stop kernels that wait for signals. */
void ccl_windows_stop(struct gpu_comm *comm);

/* ---- ccl_watch.c: time limits of calls and work ---- */

/* Minimum time limits.  Creating a communicator, and the first call that connects it, take long. */
#define CCL_MIN_MAKING_NS  INT64_C(20000000000)
#define CCL_MIN_CALLING_NS INT64_C(2000000000)

weft_status ccl_watch(struct gpu_comm *comm);
void ccl_unwatch(struct gpu_comm *comm);
/* Begin and end calls of the library that may wait for other ranks.  Refused on a failed
 * communicator. */
weft_status ccl_inside(struct gpu_comm *comm) PLUG_HOT;
void ccl_outside(struct gpu_comm *comm) PLUG_HOT;
/* Watch work posted to STREAM that depends on other ranks.  Within a scope. */
void ccl_mark(struct gpu_comm *comm, vendor_stream stream) PLUG_HOT;
/* True if no call and no work on a stream is pending. */
bool ccl_is_idle(struct gpu_comm *comm);

/* ---- ccl_match.c: WEFT_COMM_CHECK ---- */

/* Compare this call with those of all ranks.  WEFT_ERR_MISMATCH names two ranks that differ. Waits.
 */
weft_status ccl_match(struct gpu_comm *comm, const struct gpu_op *op);

/* ---- ccl_talk.c: blocking all-gather of a few bytes ---- */

#define CCL_TALK_BYTES 160 /* maximum per rank */

/* *ALL receives size x BYTES and is valid until the next call.  Called between ccl_inside and
 * ccl_outside, within a scope, on STREAM. */
weft_status ccl_talk(struct gpu_comm *comm, vendor_stream stream, const void *mine, size_t bytes,
                     const void **all);
void ccl_talk_end(struct gpu_comm *comm);

/* ---- ccl_batch.c, ccl_native.c, ccl_reduce.c: execution of calls ---- */

struct ccl_task {
    struct gpu_op op;
    struct ccl_method way;
    bool is_first; /* in the first batch of a group */
    void *scratch; /* borrowed until the whole group is posted */
};

/* Post the library calls (and kernels) of stage 0 or 1 to the stream.  Several calls are inside a
 * group of the library. */
ccl_result ccl_issue_native(struct gpu_comm *comm, struct ccl_task *task) PLUG_HOT;
ccl_result ccl_issue_pieces(struct gpu_comm *comm, const struct ccl_task *task);
weft_status ccl_issue_messages(struct gpu_comm *comm, struct ccl_task *task, ccl_result *result);
weft_status ccl_issue_keys(struct gpu_comm *comm, struct ccl_task *task, int stage,
                           ccl_result *result);
weft_status ccl_issue_exchange(struct gpu_comm *comm, struct ccl_task *task, int stage,
                               ccl_result *result);
/* The first of two results that is not success. */
static inline ccl_result ccl_first(ccl_result a, ccl_result b)
{
    return a != CCL_SUCCESS && a != CCL_IN_PROGRESS ? a : b;
}

#endif
