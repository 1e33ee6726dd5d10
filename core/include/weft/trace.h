/* trace.h - what a rank does, while it does it: records, observers, counters and dumps.
 *
 *     weft_record_counts *counts;
 *     TRY(weft_record_counts_create(ctx, &counts));
 *     train_one_step();
 *     TRY(weft_record_counts_end(counts));
 *     assert(weft_record_counts_operations(counts, WEFT_RECORD_ALL_REDUCE) == 12);
 *     weft_record_counts_release(&counts);
 *
 * weft keeps the records of a rank's recent operations in its recorder, which has a fixed size: a
 * new record replaces the oldest.  The recorder is in shared memory: `weft status` and recorder.h
 * read it while the rank runs, is stopped, or was killed.  Observers get the same records by
 * callback.  Counters, traces and metrics are observers.  A dump is a copy of the recorder.
 * WEFT_RECORDER=0 turns the recorder off.  The functions here are a preview: WEFT_PREVIEW. */
#ifndef WEFT_TRACE_H
#define WEFT_TRACE_H

#include "comm.h"
#include "exec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- records ------------------------------------------------------------------- */

/* The kinds of records.  The collectives have the numbers of enum weft_collective. */
#define WEFT_RECORD_OPERATION_LIST(X)                                                              \
    X(ALL_REDUCE, 0, "all-reduce")                                                                 \
    X(ALL_GATHER, 1, "all-gather")                                                                 \
    X(REDUCE_SCATTER, 2, "reduce-scatter")                                                         \
    X(ALL_TO_ALL, 3, "all-to-all")                                                                 \
    X(BROADCAST, 4, "broadcast")                                                                   \
    X(REDUCE, 5, "reduce")                                                                         \
    X(GATHER, 6, "gather")                                                                         \
    X(SCATTER, 7, "scatter")                                                                       \
    X(BARRIER, 8, "barrier")                                                                       \
    X(ALL_GATHER_V, 9, "all-gather-v")                                                             \
    X(REDUCE_SCATTER_V, 10, "reduce-scatter-v")                                                    \
    X(ALL_TO_ALL_V, 11, "all-to-all-v")                                                            \
    X(GATHER_V, 12, "gather-v")                                                                    \
    X(SCATTER_V, 13, "scatter-v")                                                                  \
    X(AGREE, 20, "agree")     /* of ranks, which wait for each other in a call */                  \
    X(LOAD, 21, "load")       /* of tensors of all ranks, from a checkpoint */                     \
    X(SAVE, 22, "save")       /* of tensors of all ranks, to a checkpoint */                       \
    X(RELEASE, 23, "release") /* of symmetric memory, or of all bound moves */                     \
    X(SEND, 24, "send")                                                                            \
    X(RECEIVE, 25, "receive")                                                                      \
    X(PULL, 26, "pull")                      /* of a plan: reads peers' memory */                  \
    X(COPY, 27, "copy")                      /* of a plan: within this rank's memory */            \
    X(SYMM_BARRIER, 28, "symmetric barrier") /* of symmetric memory */                             \
    X(REDISTRIBUTE, 29, "redistribute")      /* a whole redistribution or move; contains steps */  \
    X(PLAN, 30, "plan")                      /* the binding of a plan */                           \
    X(CREATE, 31, "create")                  /* of a communicator or symmetric memory */

#define WEFT_RECORD_OPERATION_ENUM(name, value, text) WEFT_RECORD_##name = value,
enum weft_record_operation {
    WEFT_RECORD_OPERATION_LIST(WEFT_RECORD_OPERATION_ENUM) WEFT_RECORD_OPERATION_COUNT = 32
};

enum weft_record_state {
    WEFT_RECORD_SUBMITTED = 1, /* handed to the backend, or waiting on a stream */
    WEFT_RECORD_FINISHED = 2,  /* complete, as far as the host knows */
    WEFT_RECORD_FAILED = 3     /* `status` has the error */
};

enum weft_record_flag {
    WEFT_RECORD_IMPLICIT = 1,    /* redistribute: weft_op_apply made the move */
    WEFT_RECORD_ON_STREAM = 2,   /* `finished` is when the host noticed, not when the work ended */
    WEFT_RECORD_CACHED = 4,      /* redistribute: the move found its bound plan in the cache;
                                    plan: a move made this bound plan, and the cache keeps it */
    WEFT_RECORD_DEVICE_TIMES = 8 /* `started` and `finished` were measured on the device */
};

#define WEFT_NO_STEP_KIND 255

/* One operation of this rank.  Later versions append fields.  Times are ticks of the processor's
 * counter, and weft_ticks_to_ns converts them; records of weft_recorder_record have nanoseconds
 * instead.  Texts are numbers; weft_trace_text converts them. */
typedef struct weft_record {
    uint64_t id;        /* 1, 2, 3 ... on this rank */
    uint64_t comm;      /* number of the communicator, equal on all its ranks and unique on each
                           of them; the parts of a split share it; 0: none */
    uint64_t sequence;  /* number of the collective on its communicator, of the message to or from
                           PEER, of the creation, release, load or save by these ranks, or of
                           their agreement; equal on all ranks that take part; 0: none */
    uint64_t sent;      /* bytes of this rank's input, with the part that stays on this rank; of a
                           save: those that this rank writes, 0 until it knows them */
    uint64_t received;  /* bytes of this rank's output, with the part that was on this rank; of a
                           load: those of this rank's shards, 0 until it knows them */
    uint64_t plan;      /* digest of the plan; 0: not part of a plan */
    uint64_t submitted; /* ticks */
    uint64_t started;   /* ticks; 0: not known */
    uint64_t finished;  /* ticks; 0 until the operation is complete.  A failed operation keeps 0:
                           weft does not record when it failed */
    uint64_t stream;    /* number of the stream on this rank, from 1; 0: the default stream */
    uint64_t reserved;  /* weft's own */
    uint32_t binding;   /* number of the bound plan on its communicator; 0: none */
    uint16_t step;      /* number of the plan's step, from 1; 0: none */
    uint8_t operation;  /* enum weft_record_operation */
    uint8_t step_kind;  /* enum weft_step_kind, or WEFT_NO_STEP_KIND */
    uint8_t dtype;      /* enum weft_dtype, of the data that is sent; no meaning without data */
    uint8_t reduction;  /* enum weft_reduction, if the operation reduces */
    uint8_t state;      /* enum weft_record_state */
    uint8_t flags;      /* enum weft_record_flag */
    int32_t peer;       /* world rank of the message's peer or of the root; -1: none */
    int32_t waits_for;  /* world rank that this rank waited for when it failed; -1: not known */
    uint32_t comm_name; /* text: the communicator */
    uint32_t axes;      /* text: the mesh axes along which data is sent, such as "tp"; of a
                           creation, release or agreement by some ranks of the communicator:
                           their world ranks, "0-3,8"; 0: none, or all ranks of it */
    uint32_t label;     /* text: the name of the tensor, of the bound plan or of the FSDP group;
                           of a move that an operator needs: "matmul: weights"; of an unnamed
                           plan, a creation, release, load, save or agreement: the function, such as
                           "weft_comm_split" */
    int32_t status;     /* weft_status of a failed operation */
    uint32_t parent;    /* low 32 bits of the id of the redistribution that contains it; 0: none */
} weft_record;

/* The name of OPERATION, such as "all-gather"; NULL for an unknown one.  [any thread] */
WEFT_API WEFT_PREVIEW const char *weft_record_operation_name(enum weft_record_operation operation);

/* Convert TICKS of a record of this host to nanoseconds of CLOCK_MONOTONIC.  0 for 0.  The
 * first call of a process may take a millisecond.  [any thread] */
WEFT_API WEFT_PREVIEW uint64_t weft_ticks_to_ns(uint64_t ticks);

/* The text with number TEXT in a record of CONTEXT; "" for an unknown one, NULL for NULL.  Valid
 * until CONTEXT is released.  [any thread] */
WEFT_API WEFT_PREVIEW const char *weft_trace_text(weft_context *context, uint32_t text);

/* Write RECORD of CONTEXT in a few words to TEXT: "all-gather tp 8.0 MiB".  A step of a plan has
 * the name of its kind (weft_step_name).  TEXT, SIZE and NEEDED as in weft_mesh_print (mesh.h).
 * Allocates nothing.  [any thread] */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_record_print(weft_context *context,
                                                                   const weft_record *record,
                                                                   char *text, size_t size,
                                                                   size_t *needed);

/* ---- observers ----------------------------------------------------------------- */

typedef struct weft_observation weft_observation;

/* Callbacks; any of them may be NULL.  RECORD is valid during the call.  A callback runs on the
 * thread that submits the operation or waits for it; `failed` may also run on a thread of weft.
 * weft may hold locks of the context.  A callback must not call weft except for the functions
 * above, those of status.h that return a name, and weft_observation_release.  It should return
 * within a microsecond.  Callbacks of one observer may run on several threads at once. */
typedef struct weft_observer {
    size_t struct_size;
    void *user; /* the first argument of each callback */
    /* An operation is about to be handed to the backend, or a creation, release, load, save or
     * agreement begins.  Not called for plans and redistributions: they have `planned` and
     * `redistributes`. */
    void (*submitted)(void *user, const weft_record *record);
    /* The operation starts now: it is in a call group on the default stream of a backend that runs
     * it in weft_group_end.  Others have no such call: they start when they are submitted, or on a
     * stream, where the host does not see it. */
    void (*started)(void *user, const weft_record *record);
    /* An operation is complete or has failed.  For work on a stream: a test or a wait of the host
     * has reported it. */
    void (*finished)(void *user, const weft_record *record);
    /* weft begins to bind a plan (WEFT_RECORD_PLAN).  `finished` reports the end of the binding.
     * The search for the plan has no record. */
    void (*planned)(void *user, const weft_record *record);
    /* A redistribution or a move begins; its steps follow.  `finished` reports its end. */
    void (*redistributes)(void *user, const weft_record *record);
    /* A communicator has failed on this rank.  COMM is its number. */
    void (*failed)(void *user, uint64_t comm, weft_status status, const char *text);
} weft_observer;

/* Call OBSERVER, which is copied, for every operation of CONTEXT from now on.  Operations that were
 * submitted before have `finished` only.  The caller releases *OUT.  WEFT_ERR_NO_MEMORY: there are
 * 16 observers.  WEFT_TRACE and WEFT_METRICS use one each, and all counting together uses one.
 * [any thread] */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_observe(weft_context *context,
                                                              const weft_observer *observer,
                                                              weft_observation **out);

/* End the calls and set *OBSERVATION to NULL.  Waits for callbacks that run on other threads, so
 * the caller must hold no lock that a callback takes.  A callback may release its own observation,
 * but no other one.  Only one thread may release it.  Accepts NULL and a pointer to NULL.
 * If the context was released before, only the handle is freed. */
WEFT_API WEFT_PREVIEW void weft_observation_release(weft_observation **observation);

/* ---- counters ------------------------------------------------------------------ */

/* The operations of a context from the creation of the object to its end. */
typedef struct weft_record_counts weft_record_counts;

/* Sums over the operations. */
typedef struct weft_record_counts_info {
    size_t struct_size;
    uint64_t sent, received;           /* sums over the records, including what stays on this
                                          rank; `copy` and `redistribute` do not count */
    uint64_t implicit_moves;           /* moves of inputs that functions of apply.h and phases.h
                                          made, also without communication; a batch is one */
    uint64_t cache_hits, cache_misses; /* of moves */
    uint64_t failed;                   /* operations that failed */
    uint64_t axes_missed;              /* operations along axes for which there was no room */
} weft_record_counts_info;

/* Operations whose data is sent along AXES. */
typedef struct weft_record_axes_info {
    size_t struct_size;
    const char *axes;        /* "tp", "dp,tp"; a communicator's name if it is not of a mesh axis;
                                cut after 31 bytes; lives as long as the counts */
    uint64_t operations;     /* number */
    uint64_t sent, received; /* bytes of this rank's inputs and outputs, as in records */
} weft_record_axes_info;

/* Begin to count the operations of CONTEXT.  Several counts may be made at once, and end in any
 * order.  The caller releases *OUT.  WEFT_ERR_NO_MEMORY also: there are 16 observers.
 * [any thread] */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status
weft_record_counts_create(weft_context *context, weft_record_counts **out);
/* End the counting, so that the functions below return the operations submitted since the creation
 * of COUNTS, and those that failed since then.  The release of the context ends it too.
 * WEFT_ERR_INVALID: it has ended. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_record_counts_end(weft_record_counts *counts);
/* Free COUNTS, which need not have ended, and set *COUNTS to NULL.  Accepts NULL and a pointer to
 * NULL. */
WEFT_API WEFT_PREVIEW void weft_record_counts_release(weft_record_counts **counts);

/* Number of operations of the kind OPERATION, and of steps of plans of KIND.  0 for an unknown
 * kind, until the counting has ended, and for NULL. */
WEFT_API WEFT_PREVIEW uint64_t weft_record_counts_operations(const weft_record_counts *counts,
                                                             enum weft_record_operation operation);
WEFT_API WEFT_PREVIEW uint64_t weft_record_counts_steps(const weft_record_counts *counts,
                                                        enum weft_step_kind kind);
/* Copy the sums to *OUT, whose struct_size the caller sets.  They are 0 until the counting has
 * ended. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status
weft_record_counts_get(const weft_record_counts *counts, weft_record_counts_info *out);
/* Number of the axes, and sets of axes, along which data was sent.  0 until the counting has
 * ended, and for NULL. */
WEFT_API WEFT_PREVIEW size_t weft_record_counts_axes_count(const weft_record_counts *counts);
/* Copy the counts of axes INDEX to *OUT, whose struct_size the caller sets.  WEFT_ERR_INVALID:
 * INDEX is past the last. */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_record_counts_axes_get(
    const weft_record_counts *counts, size_t index, weft_record_axes_info *out);

/* ---- names --------------------------------------------------------------------- */

/* Give STREAM a name, which is copied and cut after 31 bytes.  Messages, dumps and traces use it.
 * STREAM NULL is the default stream.  NAME "" removes the name.  weft keeps the names of the last
 * 64 named streams.  Communicators get their name when they are created (weft_subcomm_options),
 * bound plans from weft_bind_options.  [any thread] */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_stream_set_name(weft_context *context,
                                                                      weft_stream *stream,
                                                                      const char *name);

/* ---- dumps --------------------------------------------------------------------- */

/* Write the recorder of CONTEXT as PREFIX.RANK, a pickle that PyTorch's flight-recorder analyser
 * reads, and as PREFIX-RANK.json.  The first "%r" in PREFIX becomes the rank instead, and the names
 * differ by ".json" only.  PREFIX may be NULL if WEFT_DUMP is set.  The value of WEFT_DUMP stands
 * for NULL and for "".  Each file appears complete or not at all.  WEFT_ERR_INVALID: there is no
 * prefix, or it ends with '/'.  WEFT_ERR_SYSTEM: a file cannot be written.  [any thread] */
WEFT_API WEFT_PREVIEW WEFT_NODISCARD weft_status weft_dump(weft_context *context,
                                                           const char *prefix);

#ifdef __cplusplus
}
#endif
#endif
