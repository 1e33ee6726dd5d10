/* trace.h - records of what a rank does, from the inside.
 *
 *     ticks.c      the processor's counter as a clock
 *     segment.c    the memory of a recorder: where it is, and who owns it
 *     folder.h     the folder of run-time files
 *     texts.c      texts that records refer to by number
 *     claim.c      the numbers of records
 *     record.c     records as they are written and finished
 *     observers.c  callbacks, and ranges for the vendor's tools
 *     comms.c      the communicators of the rank
 *     counts.h     counters
 *     export/      traces (WEFT_TRACE); export/export.h
 *     dump/        the recorder as files for people and tools
 *
 * A rank has one struct wf_trace.  It knows neither contexts nor communicators: comm fills in the
 * records, and comm/context/observe.c has the public functions. */
#ifndef WEFT_TRACE_TRACE_H
#define WEFT_TRACE_TRACE_H

#include "base/base.h"
#include "weft/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* ---- ticks.c ---- */

/* The processor's counter.  Ticks of all cores and processes of a host are comparable. */
static inline uint64_t wf_ticks(void)
{
#if defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#elif defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return wf_now_ns();
#endif
}

/* Ticks and nanoseconds of CLOCK_MONOTONIC at one moment. */
struct wf_instant {
    uint64_t ticks, ns;
};

struct wf_instant wf_instant_now(void);
/* The same instant in every call: that of the process's first call. */
struct wf_instant wf_instant_begun(void);
/* The present, at least a millisecond after FIRST. */
struct wf_instant wf_instant_apart(struct wf_instant first);
/* Convert TICKS by the line through two instants, which differ by at least a millisecond.  0 for
 * 0.  A line through instants that are further apart is more exact. */
uint64_t wf_ticks_convert(struct wf_instant first, struct wf_instant last, uint64_t ticks);

/* ---- segment.c ---- */

#define WF_SEGMENT_MAGIC   "weftring"
#define WF_SEGMENT_VERSION 2u
#define WF_SEGMENT_COMMS   256
#define WF_TEXT_BYTES      65536
#define WF_RECORDS_MOST    65536
#define WF_RECORDS_PRIVATE 2048 /* with WEFT_RECORDER=0, for observers */
#define WF_RELEASED_COMMS  64   /* that dumps know */
#define WF_STREAM_NAMES    64   /* of streams; the last ones are known */

/* A communicator of the rank. */
struct wf_segment_comm {
    _Atomic uint64_t number;      /* 0: the entry is free */
    _Atomic uint32_t name, ranks; /* texts; RANKS is like "0-3,8" */
    _Atomic int32_t rank, size;
    _Atomic int32_t failed;    /* weft_status; WEFT_OK: it has not failed */
    _Atomic int32_t waits_for; /* world rank that it waited for when it failed; -1: not known */
    _Atomic uint32_t carrier;  /* text; 0: not known */
    uint32_t reserved;
};

/* The start of a recorder's memory.  Another process may read it at any time: the fields above
 * `next` are constant once MAGIC is written, the others are atomic. */
struct wf_segment {
    char magic[8];
    uint32_t version;
    uint32_t head_bytes;   /* texts begin here */
    uint32_t text_bytes;   /* records begin behind them */
    uint32_t record_bytes; /* of one */
    uint32_t record_count; /* a power of two */
    int32_t rank, size, pid;
    uint64_t job;
    uint64_t begun_ticks, begun_ns; /* an instant */
    char host[64], program[64], backend[32];
    _Alignas(64) _Atomic uint64_t next; /* id of the newest record */
    _Alignas(64) _Atomic uint32_t text_used;
    struct wf_segment_comm comms[WF_SEGMENT_COMMS];
};

/* The facts about a rank that its recorder states. */
struct wf_trace_identity {
    uint64_t job;
    int32_t rank, size;
    const char *backend;
};

/* ---- the object ---- */

#define WF_OBSERVERS    16
#define WF_MARKS_RANGES (1u << 31) /* of `observing`: `ranges` is set */
#define WF_CHAINS       64

struct wf_observer_slot {
    _Atomic uint32_t running; /* callbacks in progress */
    weft_observer observer;
};

#define WF_TEXT_ENTRIES 8192 /* a power of two */

struct wf_text_entry {
    uint32_t hash;
    uint32_t text; /* 0: free */
};

/* The name of a stream.  A signal handler may read it. */
struct wf_stream_name {
    _Atomic uint64_t stream; /* its number and 1; 0: the entry is free */
    _Atomic uint32_t name;   /* a text */
};

struct wf_trace {
    struct wf_segment *segment;
    weft_record *records;
    uint64_t mask;
    _Atomic(const void *) claimer;      /* of claim.c; NULL: there is no record yet */
    atomic_bool claiming;               /* the claimer is about to claim */
    _Atomic uint32_t observing;         /* bit per slot of OBSERVERS, and WF_MARKS_RANGES */
    uint32_t lasting;                   /* bit per slot: its observer stays until the trace ends */
    bool has_recorder;                  /* WEFT_RECORDER is not 0: always active */
    const weft_device_table *ranges;    /* marks ranges; NULL: no tool wants them */
    _Atomic uint64_t chains[WF_CHAINS]; /* newest record of every WF_CHAINS-th stream */
    struct wf_observer_slot observers[WF_OBSERVERS];
    pthread_mutex_t lock;        /* of what follows, and of changes to `observing` */
    int file;                    /* -1: the recorder is in private memory */
    size_t bytes;                /* of the segment */
    char path[256];              /* of the file; "" without */
    struct wf_text_entry *texts; /* WF_TEXT_ENTRIES */
    uint32_t text_count;
    bool texts_missed; /* there was no room, and the warning was logged */
    struct wf_stream_name stream_names[WF_STREAM_NAMES];
    uint32_t stream_name_count;           /* of all times */
    pthread_mutex_t counts_lock;          /* of beginning and ending counts */
    _Atomic(struct wf_counter *) counter; /* NULL: nobody has counted */
    struct wf_metrics *metrics;           /* NULL: none are written */
    struct wf_export *export;             /* NULL: no trace is written */
    _Atomic uint64_t scratch;             /* bytes that exec has allocated for scratch */
    /* Of dumps.  Records of a released communicator may still be in the recorder. */
    struct wf_segment_comm released[WF_RELEASED_COMMS];
    uint32_t released_count;
    _Atomic int64_t limits[WF_SEGMENT_COMMS]; /* time limits of the segment's comms, ns */
    pthread_mutex_t dump_lock;                /* held while a failure is written */
    char *dump_prefix;                        /* NULL: neither failures nor signals write */
    int32_t dump_pid;                         /* of the process that watches for signals */
    _Atomic bool dump_due;                    /* a communicator has failed since */
    uint64_t dumped_ns;                       /* time of the last dump of a failure; 0: none */
    bool dump_has_failed;                     /* the message was logged */
};

/* ---- claim.c: the numbers of records ---- */

/* Called before weft creates threads.  In a process that has one thread, records become cheaper. */
void wf_claims_prepare(void);

/* Identifies the calling thread among those that run. */
static inline const void *wf_thread(void)
{
    const void *thread;

#if defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(thread));
#elif defined(__x86_64__)
    __asm__("mov %%fs:0, %0" : "=r"(thread));
#else
    thread = (const void *)(uintptr_t)pthread_self();
#endif
    return thread;
}

/* The next id, if the calling thread is not the trace's claimer. */
uint64_t wf_trace_claim_shared(struct wf_trace *trace);

/* The next id.  Mostly one thread makes all records, and needs no atomic addition, which costs a
 * third of a record.  The barrier between its store to CLAIMING and its load of CLAIMER is made by
 * the thread that ends this (claim.c). */
static inline uint64_t wf_trace_claim_id(struct wf_trace *trace)
{
    const void *self = wf_thread();
    _Atomic uint64_t *next = &trace->segment->next;
    uint64_t id;

    if (__builtin_expect(atomic_load_explicit(&trace->claimer, memory_order_relaxed) == self, 1)) {
        atomic_store_explicit(&trace->claiming, true, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        if (__builtin_expect(atomic_load_explicit(&trace->claimer, memory_order_relaxed) == self,
                             1)) {
            id = atomic_load_explicit(next, memory_order_relaxed) + 1;
            atomic_store_explicit(next, id, memory_order_relaxed);
            atomic_store_explicit(&trace->claiming, false, memory_order_release);
            return id;
        }
        atomic_store_explicit(&trace->claiming, false, memory_order_release);
    }
    return wf_trace_claim_shared(trace);
}

/* Create the trace of a rank with a recorder of RECORDS records.  0: no recorder; observers get
 * records too.  If the file cannot be made, a notice says why, and the recorder is in private
 * memory. Only missing memory is an error. */
weft_status wf_trace_create(const struct wf_trace_identity *identity, uint64_t records,
                            struct wf_trace **out) WF_NODISCARD;
/* Remove the recorder.  Accepts NULL. */
/* The rank goes on in another generation of its job.  Files keep the rank in their names. */
void wf_trace_set_place(struct wf_trace *trace, uint64_t job, int32_t rank, int32_t size);
void wf_trace_destroy(struct wf_trace *trace);

/* True if records are wanted. */
static inline bool wf_trace_is_active(const struct wf_trace *trace)
{
    return trace->has_recorder ||
           atomic_load_explicit(&trace->observing, memory_order_relaxed) != 0;
}

/* The text "0-3,8" of COUNT ranks. */
uint32_t wf_trace_list_ranks(struct wf_trace *trace, const int32_t *ranks, int32_t count);
void wf_trace_add_comm(struct wf_trace *trace, uint64_t number, uint32_t name, const int32_t *ranks,
                       int32_t size, int32_t rank);
void wf_trace_fail_comm(struct wf_trace *trace, uint64_t number, weft_status status,
                        const char *text);
void wf_trace_remove_comm(struct wf_trace *trace, uint64_t number);
/* CARRIER, a text, carries the data of the communicator. */
void wf_trace_set_carrier(struct wf_trace *trace, uint64_t number, uint32_t carrier);
/* The time limit of operations of the communicator, in ns, or WEFT_FOREVER. */
void wf_trace_set_limit(struct wf_trace *trace, uint64_t number, int64_t limit_ns);
/* 0: not known. */
int64_t wf_trace_limit_of(const struct wf_trace *trace, uint64_t number);
/* The communicator waits for world rank RANK.  ID, if it is the number of one of its operations
 * that has not ended, does so too. */
void wf_trace_set_wait(struct wf_trace *trace, uint64_t number, uint64_t id, int32_t rank);
/* What wf_trace_set_wait set for the communicator; -1: nothing. */
int32_t wf_trace_wait_of(struct wf_trace *trace, uint64_t number);
/* Why the communicator failed; WEFT_OK: it has not failed, or is not known. */
weft_status wf_trace_failure_of(struct wf_trace *trace, uint64_t number);
/* The text of the world ranks of a communicator; 0: not known. */
uint32_t wf_trace_comm_ranks(struct wf_trace *trace, uint64_t number);

/* ---- texts.c ---- */

/* The number of TEXT, which is cut after 255 bytes, between two characters of UTF-8; 0 for "", for
 * NULL and if there is no room.  [any thread] */
uint32_t wf_trace_intern(struct wf_trace *trace, const char *text);
/* The same for a text of up to MOST bytes. */
uint32_t wf_trace_intern_long(struct wf_trace *trace, const char *text, size_t most);
/* The text with NUMBER; "" for an unknown one. */
const char *wf_trace_text(const struct wf_trace *trace, uint32_t number);

/* The stream with number STREAM is called NAME, a text.  [any thread] */
void wf_trace_name_stream(struct wf_trace *trace, uint64_t stream, uint32_t name);
/* Its name; "": it has none. */
const char *wf_trace_stream_name(const struct wf_trace *trace, uint64_t stream);

/* ---- observers.c ---- */

enum wf_callback {
    WF_CALL_SUBMITTED,
    WF_CALL_STARTED,
    WF_CALL_FINISHED,
    WF_CALL_PLANNED,
    WF_CALL_REDISTRIBUTES
};

/* Set *SLOT to that of a copy of OBSERVER.  WEFT_ERR_NO_MEMORY: all slots are taken. */
weft_status wf_observers_add(struct wf_trace *trace, const weft_observer *observer,
                             uint32_t *slot) WF_NODISCARD;
/* The observer in SLOT, which was just added, stays until no call can run: its calls are not
 * counted. */
void wf_observers_keep(struct wf_trace *trace, uint32_t slot);
void wf_observers_remove(struct wf_trace *trace, uint32_t slot);
/* True if this thread runs a callback of TRACE. */
bool wf_observers_is_inside(const struct wf_trace *trace);
/* Record ID, at RECORD in the recorder, was submitted or has changed.  Observers get a copy,
 * because the recorder's may change meanwhile.  If other records have taken its place, they get
 * nothing. */
void wf_observers_call(struct wf_trace *trace, enum wf_callback callback, const weft_record *record,
                       uint64_t id);
void wf_observers_fail(struct wf_trace *trace, uint64_t comm, weft_status status, const char *text);

/* Mark every submission as a range of TABLE, which has range_begin and range_end, until TRACE ends.
 * No record may have been submitted. */
void wf_ranges_mark(struct wf_trace *trace, const weft_device_table *table);

/* ---- record.c ---- */

/* Fields are stored one by one and atomically, because other threads and processes read records
 * while they are written.  ID is WF_WRITING meanwhile, so that they can tell.
 *
 * Threads share the recorder without a lock.  A thread that finds its place being written, or taken
 * by a newer record, gives its record up: other threads have written the whole recorder since it
 * got its number.  Between a check of ID and the stores that follow it, a thread may be stopped for
 * as long; then one record of the recorder is wrong.  An atomic operation more would prevent that,
 * and cost a third of the time of a record. */
#define WF_WRITING                     UINT64_MAX
#define WF_STORE(record, field, value) __atomic_store_n(&(record)->field, (value), __ATOMIC_RELAXED)
#define WF_LOAD(record, field)         __atomic_load_n(&(record)->field, __ATOMIC_RELAXED)

/* The words of 64 bits of a record that WF_STORE_PAIR stores, two at a time.  A word may have
 * several fields. */
typedef uint64_t __attribute__((may_alias)) wf_record_word;

/* Store FIRST to the word that begins with FIELD, and SECOND to the next one.  Each is stored at
 * once; neither has an order.  Fewer instructions make a record a tenth cheaper. */
#if defined(__aarch64__)
#define WF_STORE_PAIR(record, field, first, second)                                                \
    __asm__ volatile("stp %x1, %x2, [%0, %3]"                                                      \
                     :                                                                             \
                     : "r"(record), "rZ"((uint64_t)(first)), "rZ"((uint64_t)(second)),             \
                       "i"(offsetof(weft_record, field))                                           \
                     : "memory")
#else
#define WF_STORE_PAIR(record, field, first, second)                                                \
    (__atomic_store_n((wf_record_word *)(void *)&(record)->field, (first), __ATOMIC_RELAXED),      \
     __atomic_store_n((wf_record_word *)(void *)&(record)->field + 1, (second), __ATOMIC_RELAXED))
#endif
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the words of wf_record_write");
_Static_assert(offsetof(weft_record, sequence) == 16 && offsetof(weft_record, sent) == 24 &&
                   offsetof(weft_record, received) == 32 && offsetof(weft_record, plan) == 40 &&
                   offsetof(weft_record, submitted) == 48 && offsetof(weft_record, started) == 56 &&
                   offsetof(weft_record, finished) == 64 && offsetof(weft_record, stream) == 72 &&
                   offsetof(weft_record, reserved) == 80,
               "the words of wf_record_write");
_Static_assert(offsetof(weft_record, binding) == 88 && offsetof(weft_record, step_kind) == 95 &&
                   offsetof(weft_record, dtype) == 96 && offsetof(weft_record, state) == 98 &&
                   offsetof(weft_record, peer) == 100 && offsetof(weft_record, waits_for) == 104 &&
                   offsetof(weft_record, axes) == 112 && offsetof(weft_record, status) == 120 &&
                   offsetof(weft_record, parent) == 124,
               "the words of wf_record_write");

/* Stores before it are visible before stores after it. */
static inline void wf_order_stores(void)
{
#if defined(__aarch64__)
    __asm__ volatile("dmb ishst" ::: "memory"); /* C's fences order loads too, and take longer */
#else
    atomic_thread_fence(memory_order_release);
#endif
}

/* Write DRAFT to RECORD as ID.  Without CHAIN, the operation starts at its submission.  `reserved`
 * is the id of the record before it in CHAIN. */
static inline __attribute__((always_inline)) void
wf_record_write(weft_record *record, _Atomic uint64_t *chain, const weft_record *draft, uint64_t id)
{
    uint64_t previous = 0, now;

    if (__builtin_expect(WF_LOAD(record, id) > id, 0)) return;
    WF_STORE(record, id, WF_WRITING);
    wf_order_stores();
    if (chain != NULL) previous = atomic_exchange_explicit(chain, id, memory_order_release);
    now = wf_ticks();
    WF_STORE(record, comm, draft->comm);
    WF_STORE_PAIR(record, sequence, draft->sequence, draft->sent);
    WF_STORE_PAIR(record, received, draft->received, draft->plan);
    WF_STORE_PAIR(record, submitted, now, chain == NULL ? now : 0);
    WF_STORE_PAIR(record, finished, 0, draft->stream);
    WF_STORE_PAIR(record, reserved, previous,
                  draft->binding | (uint64_t)draft->step << 32 | (uint64_t)draft->operation << 48 |
                      (uint64_t)draft->step_kind << 56);
    WF_STORE_PAIR(record, dtype,
                  draft->dtype | (uint64_t)draft->reduction << 8 |
                      (uint64_t)WEFT_RECORD_SUBMITTED << 16 | (uint64_t)draft->flags << 24 |
                      (uint64_t)(uint32_t)draft->peer << 32,
                  UINT32_MAX | (uint64_t)draft->comm_name << 32);
    WF_STORE_PAIR(record, axes, draft->axes | (uint64_t)draft->label << 32,
                  (uint64_t)draft->parent << 32);
    __atomic_store_n(&record->id, id, __ATOMIC_RELEASE);
}

/* A record that was submitted.  RECORD may belong to a newer id by now: the recorder wraps. */
struct wf_submitted {
    weft_record *record;
    uint64_t id;
};

/* The place of the next record, which the caller submits at once. */
static inline struct wf_submitted wf_trace_claim(struct wf_trace *trace)
{
    uint64_t id = wf_trace_claim_id(trace);

    return (struct wf_submitted){&trace->records[id & trace->mask], id};
}

/* Write DRAFT to the recorder, to the place that CLAIMED is.  The fields id, times, reserved,
 * state, waits_for and status of DRAFT are ignored.  CHAIN links records that finish together;
 * NULL: the operation is complete when its call returns. */
static inline __attribute__((always_inline)) void
wf_trace_submit_claimed(struct wf_trace *trace, struct wf_submitted claimed,
                        _Atomic uint64_t *chain, enum wf_callback callback,
                        const weft_record *draft)
{
    wf_record_write(claimed.record, chain, draft, claimed.id);
    if (__builtin_expect(atomic_load_explicit(&trace->observing, memory_order_relaxed) != 0, 0))
        wf_observers_call(trace, callback, claimed.record, claimed.id);
}

static inline __attribute__((always_inline)) struct wf_submitted
wf_trace_submit(struct wf_trace *trace, _Atomic uint64_t *chain, enum wf_callback callback,
                const weft_record *draft)
{
    struct wf_submitted claimed = wf_trace_claim(trace);

    wf_trace_submit_claimed(trace, claimed, chain, callback, draft);
    return claimed;
}

/* The host knows that the work of a record starts now. */
void wf_trace_start(struct wf_trace *trace, struct wf_submitted submitted);

/* The operation is complete.  It ran in the calling thread, from its submission on. */
static inline void wf_trace_finish(struct wf_trace *trace, struct wf_submitted submitted)
{
    weft_record *record = submitted.record;

    if (__builtin_expect(WF_LOAD(record, id) != submitted.id, 0)) return;
    WF_STORE(record, finished, wf_ticks());
    __atomic_store_n(&record->state, WEFT_RECORD_FINISHED, __ATOMIC_RELEASE);
    if (__builtin_expect(atomic_load_explicit(&trace->observing, memory_order_relaxed) != 0, 0))
        wf_observers_call(trace, WF_CALL_FINISHED, record, submitted.id);
}

/* The call that submitted a record returns, on the same thread, whether it succeeded or not.  It
 * comes before the record's end, if the call ends it. */
static inline void wf_trace_return(const struct wf_trace *trace)
{
    if (__builtin_expect(trace->ranges != NULL, 0)) trace->ranges->range_end();
}

/* The operation failed with STATUS, which is returned. */
weft_status wf_trace_fail(struct wf_trace *trace, struct wf_submitted submitted,
                          weft_status status);

/* Start the records of a chain, from the one with id NEWEST back. */
void wf_trace_start_chain(struct wf_trace *trace, uint64_t newest);
/* Finish the records of a chain, from the one with id NEWEST back: those of STREAM, or with ALL all
 * of the chain. */
void wf_trace_finish_chain(struct wf_trace *trace, uint64_t newest, uint64_t stream, bool all);
/* Fail those of them whose communicator has failed. */
void wf_trace_fail_chain(struct wf_trace *trace, uint64_t newest, uint64_t stream);
/* Fail with STATUS all operations of communicator COMM that were submitted after record FIRST and
 * have not ended. */
void wf_trace_fail_since(struct wf_trace *trace, uint64_t first, uint64_t comm, weft_status status);

/* The chain of the stream with number STREAM. */
static inline _Atomic uint64_t *wf_trace_chain(struct wf_trace *trace, uint64_t stream)
{
    return &trace->chains[stream % WF_CHAINS];
}

/* True if RECORD is a creation, a release, a load or a save, or an agreement.  These are counted
 * apart from collectives, and agreements apart from the others. */
static inline bool wf_record_is_creation(const weft_record *record)
{
    return record->operation == WEFT_RECORD_CREATE || record->operation == WEFT_RECORD_RELEASE ||
           record->operation == WEFT_RECORD_LOAD || record->operation == WEFT_RECORD_SAVE ||
           record->operation == WEFT_RECORD_AGREE;
}

/* Copy RECORD to *OUT.  False if it is not the one with ID, or is being written. */
bool wf_record_copy(const weft_record *record, uint64_t id, weft_record *out);
/* "all-gather tp 8.0 MiB", where ALONG is "tp"; as snprintf. */
size_t wf_record_describe(const weft_record *record, const char *along, char *buffer,
                          size_t capacity);
/* The same as FUNCTION, which is like weft_record_print. */
weft_status wf_record_print(const char *function, const weft_record *record, const char *along,
                            char *text, size_t size, size_t *needed) WF_NODISCARD;
/* "all-gather": the name of the step's kind or of the operation.  A constant. */
const char *wf_record_kind(const weft_record *record);
/* Copy record ID to *OUT.  False if the recorder no longer has it, or it is being written. */
bool wf_trace_read(const struct wf_trace *trace, uint64_t id, weft_record *out);

/* ---- export/: the trace as a file ---- */

/* Write the operations of TRACE to the file PATTERN from now on.  "%r" in PATTERN becomes the rank,
 * else it is appended.  Where that fails, a message says why, and TRACE has no export. */
void wf_export_begin(struct wf_trace *trace, const char *pattern,
                     const struct wf_trace_identity *identity);
/* Complete the file. */
void wf_export_end(struct wf_trace *trace);
/* Step STEP of the plan with digest PLAN, from 1, takes NS by the plan; 0: the whole plan. */
void wf_export_predict(struct wf_export *export, uint64_t plan, uint32_t step, uint64_t ns);
/* At NS of CLOCK_MONOTONIC, the rendezvous server's clock was OFFSET_NS ahead of this rank's, with
 * an error of at most BOUND_NS. */
void wf_export_clock(struct wf_export *export, uint64_t ns, int64_t offset_ns, uint64_t bound_ns);
/* A communicator was made: the texts of its name, its ranks and its carrier. */
void wf_export_comm(struct wf_export *export, uint32_t name, uint32_t ranks, uint32_t carrier);
/* The name of the stream with number STREAM has changed. */
void wf_export_name_stream(struct wf_export *export, uint64_t stream);
/* The stream was released, and has no slices any more. */
void wf_export_forget_stream(struct wf_export *export, uint64_t stream);
/* From now on, wf_export_slice reports the work on streams. */
void wf_export_time_streams(struct wf_export *export);
/* RECORD, a copy, ran from STARTED to FINISHED on its stream, in nanoseconds of CLOCK_MONOTONIC.
 * PARENT is the redistribution that contains it, or NULL.  Sets the ticks of RECORD. */
void wf_export_slice(struct wf_export *export, weft_record *record, uint64_t started,
                     uint64_t finished, const weft_record *parent);
/* RECORD is on its stream, and wf_export_slice or wf_export_drop follows.  NULL: neither does, and
 * the trace will not have its slice. */
void wf_export_post(struct wf_export *export, const weft_record *record);
/* RECORD, a copy, has no times. */
void wf_export_drop(struct wf_export *export, const weft_record *record);

#endif
