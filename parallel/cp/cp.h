/* cp.h - context parallel: plans, and attention by them.
 *
 *     plan.c      plans: their life, options and figures
 *     balance.c   which indices each coordinate holds, as runs
 *     problems.c  the problems of a step, from runs and mask
 *     cp.c        attention prepared on this rank
 *     run.c       one pass of it
 *     compute.c   the engine's kernel, problem by problem
 *     merge.c     merging of results, and sums of gradients, in host memory
 *     memory.c    the same and other work on elements, by the device or by the host
 *     copies.c    lists of boxes to copy
 *     ring.c      the variants: ring,
 *     gather.c    all-gather,
 *     heads.c     all-to-all
 *     buffers.c   sharding and restoring of buffers */
#ifndef WEFT_PARALLEL_CONTEXT_CP_H
#define WEFT_PARALLEL_CONTEXT_CP_H

#include "base/kinds.h"
#include "system/arguments.h"
#include "weft/context_parallel.h"

#include <stdatomic.h>

/* ---- plans ---- */

/* Consecutive indices of the sequence. */
struct wf_cp_run {
    int64_t start, length;
    int64_t position; /* place of START in the shard */
};

struct weft_cp_plan {
    uint64_t made; /* of kinds.h */
    _Atomic uint32_t references;
    weft_mesh *mesh;
    int32_t axis, ranks;
    int64_t length;
    uint32_t mask, balance, variant;
    int64_t window;
    int64_t *documents; /* the first index of each, then LENGTH; NULL: one document */
    size_t document_count;
    weft_cp_block *blocks; /* by query, then by key */
    size_t block_count;
    int64_t block_length;
    struct wf_cp_run *runs; /* of coordinate 0, then of coordinate 1, ... */
    size_t run_count;
    size_t *first_run; /* of each coordinate, then RUN_COUNT */
    uint64_t digest;
};

static inline int32_t wf_cp_steps(const weft_cp_plan *plan)
{
    return plan->variant == WEFT_CP_RING ? plan->ranks : 1;
}

/* The coordinate whose keys COORDINATE has in STEP of a ring. */
static inline int32_t wf_cp_source(const weft_cp_plan *plan, int32_t coordinate, int32_t step)
{
    return (coordinate - step % plan->ranks + plan->ranks) % plan->ranks;
}

/* ---- plan.c ---- */

/* Add what all ranks must have alike of PLAN. */
void wf_cp_plan_add_fields(const weft_cp_plan *plan, struct wf_text *fields);

/* ---- balance.c ---- */

/* Set the runs of PLAN, which has everything else.  ORDER as in the options. */
weft_status wf_cp_balance(weft_cp_plan *plan, const int64_t *order) WF_NODISCARD;
/* Indices that COORDINATE holds. */
int64_t wf_cp_held(const weft_cp_plan *plan, int32_t coordinate);

/* ---- problems.c ---- */

/* The index of the first block of row ROW or of a later one. */
size_t wf_cp_first_block(const weft_cp_plan *plan, int64_t row);

struct wf_cp_problems {
    weft_cp_problem *items;
    size_t count, room;
};

/* Append the problems of COORDINATE in STEP.  The caller frees the items with wf_free. */
weft_status wf_cp_problems(const weft_cp_plan *plan, int32_t coordinate, int32_t step,
                           struct wf_cp_problems *out) WF_NODISCARD;
/* Pairs of a query and a key that COORDINATE sees in all steps. */
uint64_t wf_cp_work(const weft_cp_plan *plan, int32_t coordinate);

/* ---- attention ---- */

/* Of the options. */
struct wf_cp_sizes {
    int64_t batch, heads, depth, key_heads;
    uint32_t dtype;
    int32_t sequence_dim;
};

/* This rank's shards, or memory in their place. */
struct wf_cp_shards {
    weft_cp_local q, k, v, out, lse, d_out, d_q, d_k, d_v;
};

/* A list of boxes to copy. */
struct wf_cp_copies {
    void *list; /* NULL: nothing */
};

/* What the kernel computes with on this rank: with HEADS, some heads of the whole sequence. */
struct wf_cp_part {
    int64_t heads, key_heads, first_head, first_key_head;
    int64_t queries;   /* of this rank */
    int64_t keys_most; /* of one step */
};

/* Results of the kernel for one problem, and sums in f32 if the caller's memory is not f32 or has
 * gaps. */
struct wf_cp_results {
    void *out, *d_q, *d_k, *d_v; /* in the dtype of the tensors */
    float *lse;
    float *sum; /* of OUT or D_Q; NULL: none yet */
};

struct wf_cp_pass;

/* How a variant runs.  It keeps its state in weft_cp.state. */
struct wf_cp_way {
    weft_status (*prepare)(weft_cp *cp);
    weft_status (*run)(struct wf_cp_pass *pass);
    void (*clear)(weft_cp *cp); /* NULL: nothing; STATE itself is freed */
};

extern const struct wf_cp_way wf_cp_ring, wf_cp_gather, wf_cp_heads;

enum { WF_CP_PIECES = 24 };

/* A stream of the caller on which work of an attention was posted. */
struct wf_cp_used {
    struct wf_cp_used *next;
    weft_stream *stream;
};

struct weft_cp {
    struct wf_system system;
    weft_context *context;
    weft_comm *comm; /* of the axis */
    weft_cp_plan *plan;
    weft_stream *side; /* for rotations */
    bool on_device;    /* kernels merge results; else the host does, in the memory of the backend */
    bool is_inline;    /* work on the default stream has run when a call returns */
    struct wf_cp_sizes sizes;
    uint32_t element; /* bytes of one */
    int32_t coordinate;
    int64_t *held;     /* by coordinate: indices that it holds */
    int64_t held_most; /* by one coordinate */
    struct wf_cp_problems *steps;
    struct wf_cp_part part;
    struct wf_cp_results results;
    void *pieces[WF_CP_PIECES]; /* of scratch */
    uint32_t piece_count;
    const struct wf_cp_way *way;
    void *state;
    struct wf_cp_shape *shapes;    /* of buffers.c */
    struct wf_cp_strided *strided; /* of copies.c */
    struct wf_cp_used *used;       /* each stream once */
};

/* One pass of an attention. */
struct wf_cp_pass {
    weft_cp *cp;
    struct wf_cp_shards t; /* in the layout in which the kernel computes */
    float *sum;            /* of OUT or D_Q; NULL: it is summed in place */
    weft_status (*kernel)(void *user, const weft_cp_call *call);
    void *user;
    weft_stream *stream;
    bool backward;
};

/* The keys of a step. */
struct wf_cp_keys {
    const void *k, *v;
    int64_t length;
    float *d_k, *d_v;    /* backward: sums */
    weft_work *arriving; /* of the sums; NULL: they are here */
};

/* ---- cp.c ---- */

/* Allocate scratch of COUNT items, which ends with CP. */
weft_status wf_cp_scratch(weft_cp *cp, int64_t count, size_t bytes, void *out) WF_NODISCARD;
/* CP is about to post work to STREAM, which weft_cp_release then waits for. */
weft_status wf_cp_use(weft_cp *cp, weft_stream *stream) WF_NODISCARD;
weft_status wf_cp_check(const weft_cp *cp, const char *function) WF_NODISCARD;

/* ---- compute.c ---- */

weft_status wf_cp_results_make(weft_cp *cp) WF_NODISCARD;
/* Elements of the queries, and of LENGTH keys, that the kernel computes with. */
int64_t wf_cp_query_elements(const weft_cp *cp);
int64_t wf_cp_key_elements(const weft_cp *cp, int64_t length);
/* Begin and end the sums over the problems of a pass. */
weft_status wf_cp_begin(struct wf_cp_pass *pass) WF_NODISCARD;
weft_status wf_cp_end(const struct wf_cp_pass *pass) WF_NODISCARD;
/* Set SHARD, of HEADS heads and LENGTH indices, to SUMS, in the dtype of the tensors. */
weft_status wf_cp_give(const struct wf_cp_pass *pass, const float *sums, const weft_cp_local *shard,
                       int64_t heads, int64_t length) WF_NODISCARD;
/* Compute the problems of STEP with KEYS. */
weft_status wf_cp_compute(const struct wf_cp_pass *pass, int32_t step,
                          struct wf_cp_keys *keys) WF_NODISCARD;

/* ---- merge.c: host memory ---- */

/* [batch][heads][count][depth] of memory. */
struct wf_cp_box {
    int64_t batch, heads, count, depth;
};

/* Merge OUT of DTYPE and LSE into the sums TOTAL and TOTAL_LSE, which are f32. */
void wf_cp_merge(const struct wf_cp_box *box, uint32_t dtype, const weft_cp_local *out,
                 const weft_cp_local *lse, const weft_cp_local *total,
                 const weft_cp_local *total_lse);
/* Add VALUES of DTYPE to TOTAL, which is f32. */
void wf_cp_add(const struct wf_cp_box *box, uint32_t dtype, const weft_cp_local *values,
               const weft_cp_local *total);

/* ---- memory.c ---- */

/* Wait for the work on STREAM. */
weft_status wf_cp_sync(const weft_cp *cp, weft_stream *stream) WF_NODISCARD;
/* Wait for *WORK, unless it is NULL, and release it. */
weft_status wf_cp_wait(weft_work **work) WF_NODISCARD;
/* WEFT_ERR_UNSUPPORTED if neither the host nor the device merges results of the dtype of CP in the
 * backend's memory. */
weft_status wf_cp_ask_merges(const weft_cp *cp) WF_NODISCARD;
/* These are in the order of the stream of PASS if the device does the work.  Otherwise the stream
 * is empty, and the work has been done when they return. */
weft_status wf_cp_clear(const struct wf_cp_pass *pass, float *memory, size_t count) WF_NODISCARD;
/* Set COUNT numbers to -infinity. */
weft_status wf_cp_unsee(const struct wf_cp_pass *pass, float *lse, size_t count) WF_NODISCARD;
/* Convert sums to the dtype of the tensors. */
weft_status wf_cp_convert(const struct wf_cp_pass *pass, const float *sums, void *target,
                          size_t count) WF_NODISCARD;
/* As wf_cp_merge; without LSE, as wf_cp_add.  Before the host does the work, it waits for the
 * stream. */
weft_status wf_cp_combine(const struct wf_cp_pass *pass, const struct wf_cp_box *box,
                          const weft_cp_local *out, const weft_cp_local *lse,
                          const weft_cp_local *total, const weft_cp_local *total_lse) WF_NODISCARD;

/* ---- copies.c ---- */

/* Strides of a dense tensor with HEADS heads and LENGTH indices; dim 1 or 2 is the sequence. */
weft_cp_local wf_cp_dense(int32_t sequence_dim, int64_t heads, int64_t length, int64_t depth,
                          const void *memory);

/* Whether LOCAL, with HEADS heads and LENGTH indices, is dense. */
bool wf_cp_is_dense(const weft_cp *cp, const weft_cp_local *local, int64_t heads, int64_t length);
/* Copy HEADS heads and LENGTH indices between LOCAL, which has gaps, and DENSE, in the order of
 * STREAM: to DENSE if PACK.  The first call for the sizes and strides prepares a list. */
weft_status wf_cp_copy_strided(weft_cp *cp, bool pack, const weft_cp_local *local, int64_t heads,
                               int64_t length, void *dense, weft_stream *stream) WF_NODISCARD;
/* Set *OUT to the keys or values LOCAL of this rank without gaps: its memory, or ROOM. */
weft_status wf_cp_pack_keys(const struct wf_cp_pass *pass, const weft_cp_local *local, void *room,
                            const void **out) WF_NODISCARD;
void wf_cp_strided_free(weft_cp *cp);

/* Boxes under construction.  Zero-initialise; the caller frees the items with wf_free. */
struct wf_cp_boxes {
    weft_region *items;
    uint64_t count, room;
};

/* One end of a copy: an offset and strides in elements; the depth has stride 1. */
struct wf_cp_side {
    uint32_t buffer;
    int64_t offset;
    weft_cp_local strides;
};

weft_status wf_cp_boxes_add(struct wf_cp_boxes *boxes, const struct wf_cp_box *box,
                            const struct wf_cp_side *from,
                            const struct wf_cp_side *to) WF_NODISCARD;
weft_status wf_cp_copies_make(const weft_cp *cp, uint32_t element, const struct wf_cp_boxes *boxes,
                              struct wf_cp_copies *out) WF_NODISCARD;
weft_status wf_cp_copies_run(const weft_cp *cp, const struct wf_cp_copies *copies,
                             const void *const *sources, void *const *targets,
                             weft_stream *stream) WF_NODISCARD;
void wf_cp_copies_free(const weft_cp *cp, struct wf_cp_copies *copies);

/* ---- buffers.c ---- */

void wf_cp_shapes_free(weft_cp *cp);

#endif
