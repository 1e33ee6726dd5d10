/* cost.h - kinds of steps, and tables of what they cost on a backend.
 *
 *     weft_cost_table *costs;
 *     if (weft_cost_table_open("cpu", &costs) != WEFT_OK) fail(weft_last_error());
 *
 * The planner (plan.h) uses a table to predict the time of steps.  weft_context_costs (context.h)
 * is the table of a job, and the default wherever there is a context.  Tables are immutable and
 * shared.  All functions here may be called from any thread. */
#ifndef WEFT_COST_H
#define WEFT_COST_H

#include "status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of steps.  A step changes the placements of its axes only. */
#define WEFT_STEP_LIST(X)                                                                          \
    X(SLICE, 0, "slice")                   /* keep a part of the shard; no communication */        \
    X(PARTIAL, 1, "partial")               /* one holder keeps the value, others the identity */   \
    X(ALL_GATHER, 2, "all-gather")         /* shards -> replicas */                                \
    X(REDUCE_SCATTER, 3, "reduce-scatter") /* contributions -> shards */                           \
    X(ALL_REDUCE, 4, "all-reduce")         /* contributions -> replicas */                         \
    X(ALL_TO_ALL, 5, "all-to-all")         /* shards of one dimension -> of another */             \
    X(PERMUTE, 6, "permute")               /* whole shards move to other ranks */                  \
    X(EXCHANGE, 7, "exchange")             /* every byte straight to its target rank */            \
    X(BROADCAST, 8, "broadcast")           /* an owner's shard -> replicas */                      \
    X(REDUCE, 9, "reduce")                 /* contributions -> an owner's shard */

#define WEFT_STEP_ENUM(name, value, text) WEFT_STEP_##name = value,
enum weft_step_kind { WEFT_STEP_LIST(WEFT_STEP_ENUM) WEFT_STEP_KINDS };
#undef WEFT_STEP_ENUM

/* The name of KIND, such as "all-gather"; NULL if it is not a kind. */
WEFT_API const char *weft_step_name(enum weft_step_kind kind);

/* The cost of steps on a backend: latency, time per peer and time per byte, for each kind of step,
 * over three classes of links; and the cost of local copies and reductions, and of compute. */
typedef struct weft_cost_table weft_cost_table;

/* Open the cost table NAME: a built-in table, or the file with that path.  The built-in tables are
 * those of machines, such as "h100", "cpu" (shared memory), and "dtensor" (the constants of
 * PyTorch's DTensor, with local work at no cost); "default" is the table "h100"
 * (docs/cost-model.md).  NAME may be NULL: the table that WEFT_COSTS names, or
 * "default" without WEFT_COSTS.  The caller releases *OUT.  WEFT_ERR_NOT_FOUND: NAME is neither a
 * table nor a file; the text lists the tables.  WEFT_ERR_INVALID: the file is not a regular file.
 * WEFT_ERR_PARSE: the file is not a cost table. */
WEFT_API WEFT_NODISCARD weft_status weft_cost_table_open(const char *name, weft_cost_table **out);

/* Create the table that TEXT describes, in the format of `weft bench calibrate`
 * (docs/cost-model.md).  The caller releases *OUT.  WEFT_ERR_PARSE: TEXT is malformed; the error
 * text gives the position in TEXT and the reason. */
WEFT_API WEFT_NODISCARD weft_status weft_cost_table_parse(const char *text, weft_cost_table **out);

/* Write the text of TABLE to TEXT; weft_cost_table_parse makes an equal table from it.  TEXT,
 * SIZE and NEEDED as in weft_mesh_print (mesh.h). */
WEFT_API WEFT_NODISCARD weft_status weft_cost_table_print(const weft_cost_table *table, char *text,
                                                          size_t size, size_t *needed);

/* The name in the table's text.  Valid as long as TABLE; NULL for NULL. */
WEFT_API const char *weft_cost_table_name(const weft_cost_table *table);

/* The name of the built-in table INDEX; NULL: there are fewer. */
WEFT_API const char *weft_cost_table_built_in(size_t index);

/* Where the numbers of TABLE come from, such as the run that they were fitted on; "": not known.
 * Valid as long as TABLE; NULL for NULL. */
WEFT_API const char *weft_cost_table_source(const weft_cost_table *table);

/* A digest that is equal for tables with equal names and numbers, on every machine; 0 for NULL. */
WEFT_API uint64_t weft_cost_table_digest(const weft_cost_table *table);

/* The predicted time of compute that does FLOPS floating-point operations, and reads and writes
 * BYTES: the greater of both, in nanoseconds.  UINT64_MAX: the table does not know compute, or is
 * NULL. */
WEFT_API uint64_t weft_cost_table_compute_ns(const weft_cost_table *table, uint64_t flops,
                                             uint64_t bytes);
/* The same for a product of matrices.  ELEMENTS: elements of its weight on a rank, the matrix that
 * does not grow with the batch.  In a table with `by-size yes` the rate depends on them. */
WEFT_API uint64_t weft_cost_table_product_ns(const weft_cost_table *table, uint64_t flops,
                                             uint64_t bytes, uint64_t elements);
/* Floating-point operations that a rank does in a second; 0: not known, or TABLE is NULL. */
WEFT_API uint64_t weft_cost_table_flops(const weft_cost_table *table);
/* Operations in a second that the maker of the device states, to which utilisation refers; those of
 * weft_cost_table_flops if the table does not know them. */
WEFT_API uint64_t weft_cost_table_peak_flops(const weft_cost_table *table);

typedef struct weft_cost_table_info {
    size_t struct_size;
    uint64_t flops;           /* operations per second of a rank; 0: compute is not known */
    uint64_t attention_flops; /* the same in fused attention */
    uint64_t f8_flops;        /* the same in products in fp8; 0: not known */
    uint64_t peak_flops;      /* as weft_cost_table_peak_flops */
    uint64_t launch;          /* ns: no compute takes less */
    uint32_t compute_beside;  /* percent that compute takes longer while a move runs beside it */
    uint32_t moves_beside;    /* percent that a move takes longer while compute runs beside it */
} weft_cost_table_info;

/* Copy what TABLE says of compute to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_cost_table_get(const weft_cost_table *table,
                                                        weft_cost_table_info *out);

/* The work of a step, on its busiest rank. */
typedef struct weft_cost_step {
    size_t struct_size;
    uint32_t kind;      /* enum weft_step_kind */
    int32_t ranks;      /* that take part in one group, at least 1 */
    bool between_hosts; /* some of them are on different hosts */
    uint64_t received;  /* bytes from other ranks */
    /* Bytes of local work: plain copies, copies with strides, operands of reductions. */
    uint64_t copied, packed, reduced;
    /* Ranks of one group on each host: in tables that state it, their links carry the bytes of a
     * collective together.  0: as 1. */
    int32_t lanes;
    bool beyond; /* some of them are farther away than the links between hosts reach */
} weft_cost_step;

/* Set *NS to the predicted time of STEP in nanoseconds; UINT64_MAX if it is longer than that.
 * WEFT_ERR_INVALID: it has no such kind, less than one rank, or negative lanes. */
WEFT_API WEFT_NODISCARD weft_status weft_cost_table_step_ns(const weft_cost_table *table,
                                                            const weft_cost_step *step,
                                                            uint64_t *ns);

/* Add a reference and return TABLE; NULL for NULL. */
WEFT_API weft_cost_table *weft_cost_table_retain(const weft_cost_table *table);
/* Drop a reference and set *TABLE to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_cost_table_release(weft_cost_table **table);

#ifdef __cplusplus
}
#endif
#endif
