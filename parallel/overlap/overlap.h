/* overlap.h - AsyncTP: matmuls that run while rows are sent.
 *
 *     overlap.c   preparation on a communicator
 *     choose.c    the number of chunks, from costs; pure
 *     call.c      arguments of calls, and how they would run
 *     run.c       gather and reduce-scatter
 *     windows.c   pieces that are written through symmetric memory
 *     messages.c  pieces that are sent as messages
 *
 * A piece is one chunk of the rows of one rank.  In step s, 1 to ranks - 1, a rank sends its pieces
 * to the rank s places after it, and gets pieces of the rank s places before it. */
#ifndef WEFT_PARALLEL_OVERLAP_OVERLAP_H
#define WEFT_PARALLEL_OVERLAP_OVERLAP_H

#include "system/arguments.h"
#include "weft/overlap.h"
#include "weft/symm.h"

/* ---- choose.c ---- */

struct wf_overlap_question {
    const weft_cost_table *costs;
    uint32_t kind; /* ALL_GATHER or REDUCE_SCATTER */
    bool between_hosts;
    int32_t ranks;
    int64_t rows;        /* of one rank */
    uint64_t bytes;      /* of the whole tensor */
    uint64_t compute_ns; /* of all rows; UINT64_MAX: not known */
    int32_t chunks;      /* 0: any */
};

struct wf_overlap_answer {
    int32_t chunks; /* the best number with overlap, also if it does not pay */
    uint64_t plain_ns, overlapped_ns;
};

struct wf_overlap_answer wf_overlap_choose(const struct wf_overlap_question *question);

/* ---- calls ---- */

struct wf_overlap_run;

/* How pieces are sent. */
struct wf_overlap_way {
    /* Post the piece CHUNK at MEMORY to the rank of STEP, and let the one from the other side
     * arrive. */
    weft_status (*post)(struct wf_overlap_run *run, int32_t step, int32_t chunk,
                        const void *memory);
    /* Wait for the piece CHUNK of the rank STEP places before; by streams, the stream of the call
     * waits. */
    weft_status (*arrive)(struct wf_overlap_run *run, int32_t step, int32_t chunk);
    /* All pieces have arrived, and this rank no longer reads them.  Compare the calls of the ranks.
     */
    weft_status (*end)(struct wf_overlap_run *run);
};

extern const struct wf_overlap_way wf_overlap_windows, wf_overlap_messages;

struct weft_overlap {
    struct wf_system system;
    weft_context *context;
    weft_comm *comm;
    int32_t rank, ranks; /* of COMM */
    weft_stream *side;
    weft_symm *symm;            /* NULL: messages */
    char *memory;               /* of what arrives: of SYMM, or allocated */
    char *products[2];          /* on their way; each has the bytes of one rank */
    weft_work *busy[2];         /* uses the product */
    weft_work **works;          /* messages: of each piece */
    uint64_t *counts, *offsets; /* of all ranks, for the plain sequence */
    const void **sources;       /* of a sum, by rank */
    uint64_t bytes;             /* of the options */
    /* The host cannot read the memory: streams order what arrives, the engine's work, and what is
     * sent.  Otherwise the host waits for each piece. */
    bool by_streams;
    bool concurrent;
    bool adds; /* pieces of a reduce-scatter, by the host or by a kernel of the device */
    bool between_hosts;
    bool is_inline; /* work on the default stream has run when a call returns */
    uint64_t calls; /* that overlapped, counted from 1 */
    /* The layout of the last call, and the rows that the ranks along the axis share of it; NULL:
     * none yet. */
    weft_spec *spec;
    int64_t spec_rows;
};

struct wf_overlap_call {
    int64_t rows, width;
    uint32_t dtype;
    int32_t chunks;
    uint64_t flops;
};

/* One call that overlaps. */
struct wf_overlap_run {
    weft_overlap *overlap;
    const char *function;
    struct wf_overlap_call call;
    bool is_gather;
    int32_t chunks;
    uint64_t row;   /* bytes */
    int64_t share;  /* rows of a rank that has most */
    uint64_t token; /* 16 bits, equal on ranks that make equal calls */
    weft_status (*compute)(void *user, const weft_overlap_rows *rows);
    void *user;
    weft_stream *stream;
};

struct wf_overlap_piece {
    int64_t first, count;   /* rows of the whole tensor */
    uint64_t offset, bytes; /* in the memory of its rank's rows */
};

/* ---- overlap.c ---- */

weft_status wf_overlap_check(const weft_overlap *overlap, const char *function) WF_NODISCARD;
/* Wait for the work on STREAM. */
weft_status wf_overlap_sync(const weft_overlap *overlap, weft_stream *stream) WF_NODISCARD;
/* Let STREAM wait for *WORK, or the host if there is nothing to order by streams, and release it.
 * *WORK may be NULL. */
weft_status wf_overlap_await(const weft_overlap *overlap, weft_stream *stream,
                             weft_work **work) WF_NODISCARD;
/* Set TARGET to the sum of COUNT elements of each of the RANKS sources of OVERLAP. */
weft_status wf_overlap_add(const weft_overlap *overlap, uint32_t dtype, uint32_t ranks,
                           size_t count, void *target, weft_stream *stream) WF_NODISCARD;

/* ---- call.c ---- */

/* Fill RUN but for the engine's function: check the call, and choose the chunks; 0: plain. */
weft_status wf_overlap_prepare(weft_overlap *overlap, const weft_spec *spec,
                               const weft_overlap_call_options *options,
                               struct wf_overlap_run *run) WF_NODISCARD;
/* The piece CHUNK of the rows of OWNER. */
struct wf_overlap_piece wf_overlap_piece_of(const struct wf_overlap_run *run, int32_t owner,
                                            int32_t chunk);
/* All rows of OWNER. */
struct wf_overlap_piece wf_overlap_share_of(const struct wf_overlap_run *run, int32_t owner);

static inline int32_t wf_overlap_after(const struct wf_overlap_run *run, int32_t step)
{
    return (run->overlap->rank + step) % run->overlap->ranks;
}

static inline int32_t wf_overlap_before(const struct wf_overlap_run *run, int32_t step)
{
    return (run->overlap->rank - step + run->overlap->ranks) % run->overlap->ranks;
}

/* The pieces that this rank sends and gets in STEP. */
static inline struct wf_overlap_piece wf_overlap_sent(const struct wf_overlap_run *run,
                                                      int32_t step, int32_t chunk)
{
    return wf_overlap_piece_of(
        run, run->is_gather ? run->overlap->rank : wf_overlap_after(run, step), chunk);
}

static inline struct wf_overlap_piece wf_overlap_got(const struct wf_overlap_run *run, int32_t step,
                                                     int32_t chunk)
{
    return wf_overlap_piece_of(
        run, run->is_gather ? wf_overlap_before(run, step) : run->overlap->rank, chunk);
}

/* Where what SOURCE sends arrives, as an offset in the memory. */
static inline uint64_t wf_overlap_slot(const struct wf_overlap_run *run, int32_t source)
{
    const weft_overlap *o = run->overlap;
    uint64_t half = o->symm != NULL ? o->calls % 2 * o->bytes : 0;

    return half + (uint64_t)source * (uint64_t)run->share * run->row;
}

#endif
