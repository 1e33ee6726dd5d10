/* trace.h - records of what a rank does, from the inside.
 *
 *     ticks.c      the processor's counter as a clock
 *     segment.c    the memory of a ring: where it is, and who owns it
 *     folder.h     the folder of run-time files
 *     texts.c      texts that records refer to by number
 *     record.c     records as they are written and finished
 *     observers.c  callbacks
 *     counts.c     counters
 *     export/      traces (WEFT_TRACE); export/export.h
 *
 * A rank has one struct wf_trace.  It knows neither contexts nor communicators: comm fills in the
 * records, and comm/context/observe.c has the public functions. */
#ifndef WEFT_TRACE_TRACE_H
#define WEFT_TRACE_TRACE_H

#include "base/base.h"
#include "weft/trace.h"

#include <pthread.h>
#include <stdatomic.h>

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
#define WF_SEGMENT_VERSION 1u
#define WF_SEGMENT_COMMS   256
#define WF_TEXT_BYTES      65536
#define WF_RECORDS_MOST    65536
#define WF_RECORDS_PRIVATE 256 /* with WEFT_RING=0, for observers */

/* A communicator of the rank. */
struct wf_segment_comm {
    _Atomic uint64_t number;      /* 0: the entry is free */
    _Atomic uint32_t name, ranks; /* texts; RANKS is like "0-3,8" */
    _Atomic int32_t rank, size;
    _Atomic int32_t failed; /* weft_status; WEFT_OK: it has not failed */
    uint32_t reserved;
};

/* The start of a ring's memory.  Another process may read it at any time: the fields above `next`
 * are constant once MAGIC is written, the others are atomic. */
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

/* The facts about a rank that its ring states. */
struct wf_trace_identity {
    uint64_t job;
    int32_t rank, size;
    const char *backend;
};

/* ---- the object ---- */

#define WF_OBSERVERS       16
#define WF_CHAINS          64
#define WF_CHAIN_OF(place) ((uintptr_t)(place) / 64 % WF_CHAINS)

struct wf_observer_slot {
    _Atomic uint32_t running; /* callbacks in progress */
    weft_observer observer;
};

struct wf_text_entry {
    uint64_t hash;
    uint32_t text; /* 0: free */
};

struct wf_trace {
    struct wf_segment *segment;
    weft_record *records;
    uint64_t mask;
    _Atomic uint32_t observing;         /* bit per slot of OBSERVERS */
    uint32_t lasting;                   /* bit per slot: its observer stays until the trace ends */
    bool has_ring;                      /* WEFT_RING is not 0: always active */
    _Atomic uint64_t chains[WF_CHAINS]; /* newest record of the streams of a place */
    struct wf_observer_slot observers[WF_OBSERVERS];
    pthread_mutex_t lock; /* of what follows, and of changes to `observing` */
    int file;             /* -1: the ring is in private memory */
    size_t bytes;         /* of the segment */
    char path[256];       /* of the file; "" without */
    struct wf_text_entry *texts;
    uint32_t text_room, text_count, texts_missed;
    pthread_mutex_t counts_lock;        /* of beginning and ending counts */
    _Atomic(struct wf_counts *) counts; /* NULL: nobody has counted */
    struct wf_export *export;           /* NULL: no trace is written */
    _Atomic uint64_t scratch;           /* bytes that exec has allocated for scratch */
};

/* Create the trace of a rank with a ring of RECORDS records.  0: no ring; observers get records
 * all the same.  If shared memory is not to be had, a notice says why, and the ring is private.
 * Only missing memory is an error. */
weft_status wf_trace_create(const struct wf_trace_identity *identity, uint64_t records,
                            struct wf_trace **out) WF_NODISCARD;
/* Remove the ring.  Accepts NULL. */
void wf_trace_destroy(struct wf_trace *trace);

/* True if records are wanted. */
static inline bool wf_trace_is_active(const struct wf_trace *trace)
{
    return trace->has_ring || atomic_load_explicit(&trace->observing, memory_order_relaxed) != 0;
}

void wf_trace_add_comm(struct wf_trace *trace, uint64_t number, uint32_t name, const int32_t *ranks,
                       int32_t size, int32_t rank);
void wf_trace_fail_comm(struct wf_trace *trace, uint64_t number, weft_status status,
                        const char *text);
void wf_trace_remove_comm(struct wf_trace *trace, uint64_t number);
/* The text of the world ranks of a communicator; 0: not known. */
uint32_t wf_trace_comm_ranks(struct wf_trace *trace, uint64_t number);

/* ---- texts.c ---- */

/* The number of TEXT, which is cut after 255 bytes; 0 for "", for NULL and if there is no room.
 * [any thread] */
uint32_t wf_trace_intern(struct wf_trace *trace, const char *text);
/* The text with NUMBER; "" if there is none. */
const char *wf_trace_text(const struct wf_trace *trace, uint32_t number);

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
void wf_observers_call(struct wf_trace *trace, enum wf_callback callback,
                       const weft_record *record);
void wf_observers_fail(struct wf_trace *trace, uint64_t comm, weft_status status, const char *text);

/* ---- record.c ---- */

/* Fields are stored one by one and atomically, because other threads and processes read records
 * while they are written.  ID is 0 meanwhile. */
#define WF_STORE(record, field, value) __atomic_store_n(&(record)->field, (value), __ATOMIC_RELAXED)
#define WF_LOAD(record, field)         __atomic_load_n(&(record)->field, __ATOMIC_RELAXED)

static inline __attribute__((always_inline)) weft_record *wf_trace_write(struct wf_trace *trace,
                                                                         _Atomic uint64_t *chain,
                                                                         const weft_record *draft,
                                                                         uint64_t *number)
{
    uint64_t id = atomic_fetch_add_explicit(&trace->segment->next, 1, memory_order_relaxed) + 1;
    weft_record *record = &trace->records[id & trace->mask];

    WF_STORE(record, id, 0);
    atomic_thread_fence(memory_order_release);
    WF_STORE(record, comm, draft->comm);
    WF_STORE(record, sequence, draft->sequence);
    WF_STORE(record, sent, draft->sent);
    WF_STORE(record, received, draft->received);
    WF_STORE(record, plan, draft->plan);
    WF_STORE(record, submitted, wf_ticks());
    WF_STORE(record, started, 0);
    WF_STORE(record, finished, 0);
    WF_STORE(record, stream, draft->stream);
    WF_STORE(record, previous,
             chain != NULL ? atomic_exchange_explicit(chain, id, memory_order_relaxed) : 0);
    WF_STORE(record, binding, draft->binding);
    WF_STORE(record, step, draft->step);
    WF_STORE(record, operation, draft->operation);
    WF_STORE(record, step_kind, draft->step_kind);
    WF_STORE(record, dtype, draft->dtype);
    WF_STORE(record, reduction, draft->reduction);
    WF_STORE(record, state, WEFT_RECORD_SUBMITTED);
    WF_STORE(record, flags, draft->flags);
    WF_STORE(record, peer, draft->peer);
    WF_STORE(record, waits_for, -1);
    WF_STORE(record, comm_name, draft->comm_name);
    WF_STORE(record, axes, draft->axes);
    WF_STORE(record, label, draft->label);
    WF_STORE(record, status, WEFT_OK);
    WF_STORE(record, parent, draft->parent);
    __atomic_store_n(&record->id, id, __ATOMIC_RELEASE);
    *number = id;
    return record;
}

/* A record that was submitted.  RECORD may belong to a newer id by now: the ring wraps. */
struct wf_submitted {
    weft_record *record;
    uint64_t id;
};

/* Write DRAFT to the ring.  The fields id, times, previous, state, waits_for and status of DRAFT
 * are ignored.  CHAIN links records that finish together; NULL: none. */
static inline __attribute__((always_inline)) struct wf_submitted
wf_trace_submit(struct wf_trace *trace, _Atomic uint64_t *chain, enum wf_callback callback,
                const weft_record *draft)
{
    struct wf_submitted out;

    out.record = wf_trace_write(trace, chain, draft, &out.id);
    if (__builtin_expect(atomic_load_explicit(&trace->observing, memory_order_relaxed) != 0, 0))
        wf_observers_call(trace, callback, out.record);
    return out;
}

/* The host knows that the work of a record has started now, or at its submission. */
void wf_trace_start(struct wf_trace *trace, struct wf_submitted submitted);

/* The operation is complete.  It ran in the calling thread, from its submission on. */
static inline void wf_trace_finish(struct wf_trace *trace, struct wf_submitted submitted)
{
    weft_record *record = submitted.record;

    if (WF_LOAD(record, id) != submitted.id) return;
    WF_STORE(record, started, WF_LOAD(record, submitted));
    WF_STORE(record, finished, wf_ticks());
    __atomic_store_n(&record->state, WEFT_RECORD_FINISHED, __ATOMIC_RELEASE);
    if (__builtin_expect(atomic_load_explicit(&trace->observing, memory_order_relaxed) != 0, 0))
        wf_observers_call(trace, WF_CALL_FINISHED, record);
}

/* The operation failed with STATUS, which is returned. */
weft_status wf_trace_fail(struct wf_trace *trace, struct wf_submitted submitted,
                          weft_status status);

/* Finish the records of a chain, from the one with id NEWEST back.  STREAM limits them to the
 * records of that stream; NULL with ALL: all of the chain. */
void wf_trace_finish_chain(struct wf_trace *trace, uint64_t newest, const void *stream, bool all);

static inline _Atomic uint64_t *wf_trace_chain(struct wf_trace *trace, const void *stream)
{
    return &trace->chains[WF_CHAIN_OF(stream)];
}

/* The operation with ID waits for world rank RANK. */
void wf_trace_set_wait(struct wf_trace *trace, uint64_t id, int32_t rank);

/* Copy RECORD to *OUT.  False if it is not the one with ID, or is being written. */
bool wf_record_copy(const weft_record *record, uint64_t id, weft_record *out);
/* "all-gather tp 8.0 MiB", where ALONG is "tp"; as weft_record_print. */
size_t wf_record_describe(const weft_record *record, const char *along, char *buffer,
                          size_t capacity);
/* Copy record ID to *OUT.  False if the ring no longer has it, or it is being written. */
bool wf_trace_read(const struct wf_trace *trace, uint64_t id, weft_record *out);

/* ---- counts.c ---- */

/* CALLER identifies the count. */
weft_status wf_counts_begin(struct wf_trace *trace, const weft_counts *caller) WF_NODISCARD;
weft_status wf_counts_end(struct wf_trace *trace, const weft_counts *caller,
                          weft_counts *out) WF_NODISCARD;
void wf_counts_free(struct wf_counts *counts);

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
/* STREAM is called NAME, which is cut after 31 bytes. */
void wf_export_name_stream(struct wf_export *export, const void *stream, const char *name);
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
