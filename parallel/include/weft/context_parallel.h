/* context_parallel.h - attention over a sequence that the ranks of a mesh axis share.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 * A plan says which queries and keys each rank holds, and what each rank computes in which step:
 *
 *     weft_cp_options causal = {.struct_size = sizeof causal, .length = 65536,
 *                               .mask = WEFT_CP_CAUSAL, .balance = WEFT_CP_HEAD_TAIL,
 *                               .batch = 1, .heads = 32, .depth = 128, .dtype = WEFT_DTYPE_BF16};
 *     TRY(weft_cp_create(ctx, mesh, "cp", &causal, &cp));
 *     TRY(weft_cp_shard(cp, tokens, 1, my_tokens, NULL, stream, NULL));
 *     TRY(weft_cp_forward(cp, &tensors, attention, engine, stream));
 *     TRY(weft_cp_backward(cp, &tensors, attention, engine, stream));
 *
 * The attention itself is the engine's kernel.  weft moves keys and values, calls the kernel for
 * each problem of a step, and merges the results.  docs/training/context-parallel.md has pictures.
 *
 * Ranks along the axis are named by their coordinate, from 0 to the size of the axis less 1. */
#ifndef WEFT_CONTEXT_PARALLEL_H
#define WEFT_CONTEXT_PARALLEL_H

#include "weft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- plans: pure, no context needed -------------------------------------------- */

#define WEFT_CP_MAX_LENGTH INT64_C(0x80000000) /* of a sequence */

typedef struct weft_cp_plan weft_cp_plan;

/* The keys that a query sees. */
enum weft_cp_mask {
    WEFT_CP_FULL = 0,   /* all */
    WEFT_CP_CAUSAL = 1, /* those with its own index or a lower one */
    WEFT_CP_WINDOW = 2, /* of these, the last `window` ones */
    WEFT_CP_BLOCKS = 3, /* the keys of the listed blocks */
    WEFT_CP_CUSTOM = 4  /* of a block or problem only: the engine decides for each element */
};

/* Which indices of the sequence a rank holds. */
enum weft_cp_balance {
    WEFT_CP_CONTIGUOUS = 0, /* consecutive ones, split as by S */
    /* The sequence is cut into 2n chunks of ceil(length / 2n) indices, where n is the number of
     * ranks; the last ones may be shorter or empty.  Coordinate c holds chunks c and 2n - 1 - c. */
    WEFT_CP_HEAD_TAIL = 1,
    /* The same for each document.  If 2n does not divide a document, the coordinates are turned by
     * one for the next such document, so that no rank has all remainders. */
    WEFT_CP_PER_DOCUMENT = 2,
    /* With WEFT_CP_BLOCKS: rows of blocks in descending order of their number of listed blocks are
     * dealt to the ranks, forward and backward in turn. */
    WEFT_CP_BY_BLOCKS = 3,
    WEFT_CP_PERMUTED = 4 /* the caller's `order`, split as by S */
};

/* How queries and keys come together. */
enum weft_cp_variant {
    WEFT_CP_RING = 0,   /* ring attention: keys and values go around the ring, a shard per step */
    WEFT_CP_GATHER = 1, /* every rank gathers all keys and values */
    WEFT_CP_HEADS = 2   /* every rank gets the whole sequence of some of the heads, and back */
};

/* Queries [query * n, (query + 1) * n) see keys [key * n, (key + 1) * n), where n is
 * `block_length`; the last block of the sequence may be shorter. */
typedef struct weft_cp_block {
    int64_t query, key; /* indices of blocks */
    uint32_t mask;      /* enum weft_cp_mask, within the block: FULL, CAUSAL or CUSTOM */
    uint32_t reserved;  /* 0 */
} weft_cp_block;

/* The same on all ranks.  A plan has the fields up to `block_length`; the others describe the
 * tensors, which weft_cp_create needs and weft_cp_plan_create ignores. */
typedef struct weft_cp_options {
    size_t struct_size;
    int64_t length;    /* of the sequence: 0 to WEFT_CP_MAX_LENGTH */
    uint32_t mask;     /* enum weft_cp_mask, not CUSTOM */
    uint32_t balance;  /* enum weft_cp_balance */
    uint32_t variant;  /* enum weft_cp_variant */
    uint32_t reserved; /* 0 */
    int64_t window;    /* WINDOW: at least 1 */
    /* The lengths of consecutive documents, none negative, which add up to the length of the
     * sequence.  A query sees keys of the same document only.  NULL, with the count 0: one
     * document. [document_count entries] */
    size_t document_count;
    const int64_t *documents;
    /* PERMUTED: place i holds index order[i]; every index once.  [order_count entries] */
    size_t order_count; /* PERMUTED: the length of the sequence */
    const int64_t *order;
    /* BLOCKS: the listed blocks in any order, none twice; and their length.  [block_count entries]
     */
    size_t block_count;
    const weft_cp_block *blocks;
    size_t block_size; /* sizeof(weft_cp_block) if BLOCKS is set */
    int64_t block_length;
    int64_t batch, heads, depth; /* of this rank's queries; at least 1; product below 2^27 */
    int64_t key_heads;           /* divides HEADS; 0: as HEADS.  Query head h uses key head
                                  * h / (heads / key_heads) */
    uint32_t dtype;              /* enum weft_dtype: F32, F16 or BF16 */
    int32_t sequence_dim;        /* 1: [batch, sequence, head, depth]; 2: [batch, head, sequence,
                                  * depth]; 0: as 2 */
} weft_cp_options;

/* Make the plan for axis AXIS of MESH, by name or index.  OPTIONS is copied.  The plan is a
 * function of the arguments alone, so that all ranks have the same.  The caller releases *OUT.
 * WEFT_ERR_NOT_FOUND: MESH has no such axis.  WEFT_ERR_INVALID: the options contradict each other;
 * or the axis has more than WEFT_MAX_SIZES ranks.  WEFT_ERR_UNSUPPORTED: PER_DOCUMENT, BY_BLOCKS,
 * PERMUTED or a mask of BLOCKS with another variant than GATHER.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_cp_plan_create(const weft_mesh *mesh, const char *axis,
                                                        const weft_cp_options *options,
                                                        weft_cp_plan **out);
/* Add a reference and return PLAN; NULL for NULL.  [any thread] */
WEFT_API weft_cp_plan *weft_cp_plan_retain(const weft_cp_plan *plan);
/* Drop a reference and set *PLAN to NULL.  Accepts NULL and a pointer to NULL.  [any thread] */
WEFT_API void weft_cp_plan_release(weft_cp_plan **plan);

typedef struct weft_cp_plan_info {
    size_t struct_size;
    int32_t ranks;   /* of the axis */
    int32_t steps;   /* RING: as many as ranks; otherwise 1 */
    int64_t length;  /* of the sequence */
    int64_t longest; /* length of the largest shard of it */
    /* Pairs of a query and a key that it sees: of the coordinate that has most of them, and of all
     * coordinates.  Elements of custom blocks count as seen.  With HEADS, ranks share the heads:
     * the first number is the second one divided by the ranks, rounded up. */
    uint64_t work_largest, work_total;
} weft_cp_plan_info;

/* Set *OUT, whose struct_size the caller sets.  Takes time in proportion to all problems of all
 * ranks.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_cp_plan_get(const weft_cp_plan *plan,
                                                     weft_cp_plan_info *out);
/* Number of indices that COORDINATE holds; 0 if the axis has no such coordinate.  [any thread] */
WEFT_API int64_t weft_cp_plan_length(const weft_cp_plan *plan, int32_t coordinate);
/* Pairs of a query and a key that COORDINATE computes, as in weft_cp_plan_info.  [any thread] */
WEFT_API uint64_t weft_cp_plan_work(const weft_cp_plan *plan, int32_t coordinate);
/* Write the rest of the run of consecutive indices that contains place POSITION of COORDINATE's
 * shard.  False if POSITION is not in the shard.  Runs are in the order of the shard.  [any thread]
 *     for (int64_t at = 0; weft_cp_plan_run(plan, c, at, &run); at += run.length) ... */
WEFT_API bool weft_cp_plan_run(const weft_cp_plan *plan, int32_t coordinate, int64_t position,
                               weft_index_run *out);

/* One call of the engine's kernel: queries [query, query + queries) of the shard against keys
 * [key, key + keys).  The results are merged with earlier ones of these queries.
 * Let i and j count queries and keys of the problem from 0.  With FULL, query i sees all keys; with
 * CAUSAL, keys j <= i + diagonal; with WINDOW, of these the last `window`: j > i + diagonal -
 * window.  With CUSTOM, the engine decides by the indices query_index + i and key_index + j. */
typedef struct weft_cp_problem {
    uint32_t mask;  /* enum weft_cp_mask, not BLOCKS */
    int32_t source; /* RING: the coordinate whose keys these are, and KEY is a place of its shard.
                     * Otherwise -1, and KEY is an index of the sequence */
    int64_t query, queries;
    int64_t key, keys;
    int64_t diagonal, window;
    /* The index in the sequence of the first query and of the first key.  With CUSTOM all others
     * follow; otherwise a problem may cover several runs. */
    int64_t query_index, key_index;
} weft_cp_problem;

/* Find the problems of COORDINATE in step STEP.  Set *COUNT to the number of all problems.  Write
 * the first CAPACITY of them to PROBLEMS.  PROBLEMS may be NULL if CAPACITY is 0.  PROBLEM_SIZE is
 * sizeof(weft_cp_problem).  Every pair of a query and a key that it sees is in exactly one problem.
 * With HEADS a query is an index of the sequence.  WEFT_ERR_INVALID: COORDINATE or STEP is out of
 * range, or PROBLEM_SIZE is another size.  [any thread]  [PROBLEMS: CAPACITY entries] */
WEFT_API WEFT_NODISCARD weft_status weft_cp_plan_problems(const weft_cp_plan *plan,
                                                          int32_t coordinate, int32_t step,
                                                          size_t capacity,
                                                          weft_cp_problem *problems,
                                                          size_t problem_size, size_t *count);

/* ---- attention ------------------------------------------------------------------ */

typedef struct weft_cp weft_cp;

/* Prepare the attention of OPTIONS along axis AXIS (a name or an index) of MESH on this rank: its
 * plan, its communicator, a stream for communication, and scratch.  One thread at a time may use a
 * weft_cp, and no other thread uses its communicator then.  The calls are calls on the communicator
 * that weft_comm_along returns for the axis.  If it fails, it fails for all its users.  Collective
 * over the ranks of MESH.  Of the ranks along the axis, either all succeed or all get the same
 * error.  NULL arguments, an axis that MESH lacks, a rank outside MESH and options that
 * weft_cp_plan_create refuses fail on this rank alone.  The other ranks then get WEFT_ERR_TIMEOUT.
 * The caller releases *OUT before CONTEXT.  WEFT_ERR_INVALID: this rank is not in MESH, or the
 * options contradict each other; with HEADS, the number of ranks does not divide the heads or the
 * key heads.  WEFT_ERR_MISMATCH: ranks have different options.  WEFT_ERR_UNSUPPORTED: the backend
 * has no kernel that merges results, and the host cannot read its memory; or ranks are simulated.
 * Other errors as weft_cp_plan_create. */
WEFT_API WEFT_NODISCARD weft_status weft_cp_create(weft_context *context, const weft_mesh *mesh,
                                                   const char *axis, const weft_cp_options *options,
                                                   weft_cp **out);
/* Wait for the work of *CP, free it and set *CP to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_cp_release(weft_cp **cp);

typedef struct weft_cp_info {
    size_t struct_size;
    const weft_cp_plan *plan;               /* valid as long as the weft_cp */
    int64_t batch, heads, depth, key_heads; /* of the options */
    uint32_t dtype;                         /* enum weft_dtype */
    int32_t sequence_dim;                   /* 1 or 2 */
    int64_t length;                         /* of this rank's part of the sequence */
} weft_cp_info;

/* Set *OUT, whose struct_size the caller sets.  Local. */
WEFT_API WEFT_NODISCARD weft_status weft_cp_get(const weft_cp *cp, weft_cp_info *out);

/* A part of a shard, or of memory of weft, for one problem: its first element, and the strides in
 * elements of batch, head and sequence. The depth has stride 1. */
typedef struct weft_cp_local {
    void *memory;
    int64_t batch, head, sequence;
} weft_cp_local;

/* What the engine's kernel computes.  The struct and the problem are valid until it returns.  The
 * memory of tensors stays valid for the work that the kernel has posted to `stream`. */
typedef struct weft_cp_call {
    size_t struct_size;
    weft_context *context;
    weft_stream *stream; /* the kernel posts its work to it, or completes it before it returns */
    const weft_cp_problem *problem;
    int64_t batch, heads, key_heads, depth;
    int64_t first_head, first_key_head; /* HEADS: the first ones of this rank; otherwise 0 */
    uint32_t dtype;                     /* enum weft_dtype; of all tensors but LSE, which is f32 */
    bool backward;
    weft_cp_local q, k, v; /* at the first query and the first key of the problem */
    /* Forward: written.  OUT is softmax(q k^T) v over the keys of the problem alone, and LSE the
     * natural logarithm of the sum of exp(q k^T), with the engine's scale, per query, whose depth
     * is absent.  A query that sees no key has OUT 0 and LSE -infinity.
     * Backward: of the whole attention. */
    weft_cp_local out, lse;
    /* Backward: the gradient of the whole output; and the gradients that this problem contributes,
     * written: with P = exp(q k^T - lse), the docs page has their formulas. */
    weft_cp_local d_out, d_q, d_k, d_v;
} weft_cp_call;

/* The engine's attention.  Another result than WEFT_OK fails the call that calls it. */
typedef weft_status (*weft_cp_kernel)(void *user, const weft_cp_call *call);

/* Tensors of any layouts that give this rank the right shards: [batch, heads, length, depth] in the
 * order of `sequence_dim`, with key_heads for K and V and their gradients, where length is this
 * rank's part of the sequence.  LSE is f32[batch, heads, length], without gaps.  The others may
 * have any strides, but the depth has stride 1: q, k and v may be views of one packed tensor.
 * WEFT_ERR_INVALID: a shard has another shape or dtype; or an output of the pass overlaps another
 * tensor of the call.  Of a shard with gaps only the first row is compared. */
typedef struct weft_cp_tensors {
    size_t struct_size;
    weft_tensor *q, *k, *v;
    weft_tensor *out;             /* forward writes it, backward reads it */
    weft_tensor *lse;             /* the same */
    weft_tensor *d_out;           /* backward */
    weft_tensor *d_q, *d_k, *d_v; /* backward writes them */
} weft_cp_tensors;

/* Compute the attention of TENSORS.  The call first waits for the work on STREAM, and passes STREAM
 * to KERNEL.  It returns when this rank's results are complete, so there is no work to wait for.
 * Collective over the ranks along the axis.  KERNEL is called
 * with USER for each problem of this rank, in order; it fails the call, and the communicator of CP
 * on all ranks, if it returns another result than WEFT_OK, and sets the text of its error with
 * weft_fail.  Accumulation is in f32.  A query that sees no key gets OUT 0 and LSE -infinity.
 * After an error no work of the call uses the tensors.
 * A call allocates nothing, except that a backend may do so for a call group of RING, and that the
 * first call with new strides prepares lists that CP keeps.  RING: one
 * rotation of keys and values per step but the last, while the kernel computes.  GATHER: one
 * all-gather.  HEADS: two all-to-alls. */
WEFT_API WEFT_NODISCARD weft_status weft_cp_forward(weft_cp *cp, const weft_cp_tensors *tensors,
                                                    weft_cp_kernel kernel, void *user,
                                                    weft_stream *stream);
/* Compute the gradients of the attention, from OUT and LSE of weft_cp_forward and the gradient
 * D_OUT.  RING: rotations as forward, and one rotation of f32 gradients per step.  GATHER: one
 * all-gather and one reduce-scatter.  HEADS: two all-to-alls.  Otherwise as weft_cp_forward. */
WEFT_API WEFT_NODISCARD weft_status weft_cp_backward(weft_cp *cp, const weft_cp_tensors *tensors,
                                                     weft_cp_kernel kernel, void *user,
                                                     weft_stream *stream);

/* ---- buffers ---------------------------------------------------------------------- */

typedef struct weft_cp_copy_options {
    size_t struct_size;
    /* weft_cp_restore: device memory for the whole buffer, in which the parts are gathered.  It
     * stays the caller's, until the work is complete.  NULL: the call allocates it in the order of
     * its stream.  weft_cp_shard does not use it. */
    void *staging;
    uint64_t staging_bytes; /* at least the whole buffer's if STAGING is set */
} weft_cp_copy_options;

/* Copy this rank's indices of dimension DIM of a whole buffer to TARGET, in the order of STREAM.
 * This rank's shard of SOURCE is the whole buffer, whose size in DIM is the length of the plan. The
 * shard of TARGET has the same shape, but in DIM the length of this rank's part.  Both are without
 * gaps and have one dtype.  Not collective.  The first call for a shape prepares a list that CP
 * keeps.  OPTIONS may be NULL.  Unless WORK is NULL, *WORK records the copy; the caller releases
 * it. WEFT_ERR_INVALID: a shape does not fit the plan, or the shards overlap. */
WEFT_API WEFT_NODISCARD weft_status weft_cp_shard(weft_cp *cp, weft_tensor *source, int32_t dim,
                                                  weft_tensor *target,
                                                  const weft_cp_copy_options *options,
                                                  weft_stream *stream, weft_work **work);
/* The reverse: make the whole buffer TARGET, on every rank, of the parts SOURCE.  Collective over
 * the ranks along the axis: one all-gather.  SOURCE may lie in TARGET.  OPTIONS may be NULL.  A
 * failure after the checks of arguments fails the communicator.  Unless WORK is NULL, *WORK records
 * the work; the caller releases it.  WEFT_ERR_INVALID also: `staging` is too small, or overlaps a
 * shard. */
WEFT_API WEFT_NODISCARD weft_status weft_cp_restore(weft_cp *cp, weft_tensor *source, int32_t dim,
                                                    weft_tensor *target,
                                                    const weft_cp_copy_options *options,
                                                    weft_stream *stream, weft_work **work);

#ifdef __cplusplus
}
#endif
#endif
