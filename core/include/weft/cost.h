/* cost.h - kinds of steps, and the tables that say what each costs on a backend.
 *
 *     weft_cost_table *costs;
 *     if (weft_cost_table_find("cpu", &costs) != WEFT_OK) fail(weft_last_error());
 *
 * The planner (plan.h) prices steps by a table.  A job's own table is weft_context_costs
 * (context.h); weft_cost_table_open reads one from a file.  Tables are immutable and shared.  All
 * functions here may be called from any thread. */
#ifndef WEFT_COST_H
#define WEFT_COST_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of steps.  A step changes the placements of its axes only. */
#define WEFT_STEP_LIST(X)                                                                          \
    X(SLICE, 0, "slice")                   /* keep a part of what is there; nothing travels */     \
    X(PARTIAL, 1, "partial")               /* one holder keeps the value, others the identity */   \
    X(ALL_GATHER, 2, "all-gather")         /* shards -> copies */                                  \
    X(REDUCE_SCATTER, 3, "reduce-scatter") /* contributions -> shards */                           \
    X(ALL_REDUCE, 4, "all-reduce")         /* contributions -> copies */                           \
    X(ALL_TO_ALL, 5, "all-to-all")         /* shards of one dimension -> of another */             \
    X(PERMUTE, 6, "permute")               /* whole shards change places */                        \
    X(EXCHANGE, 7, "exchange")             /* anything else: every byte straight to its place */

#define WEFT_STEP_ENUM(name, value, text) WEFT_STEP_##name = value,
enum weft_step_kind { WEFT_STEP_LIST(WEFT_STEP_ENUM) WEFT_STEP_KINDS };
#undef WEFT_STEP_ENUM

/* "all-gather"; NULL for an unknown kind. */
WEFT_API const char *weft_step_name(uint32_t kind);

/* What steps cost on a backend: latency, time per rank met and per byte, for each kind of step
 * within a host and between hosts, and what local copies and reductions cost. */
typedef struct weft_cost_table weft_cost_table;

/* A built-in table: "default", "cpu" (shared memory, one-sided), "dtensor" (the constants
 * of PyTorch's DTensor, local work free).  WEFT_ERR_NOT_FOUND lists them. */
WEFT_API WEFT_NODISCARD weft_status weft_cost_table_find(const char *name, weft_cost_table **out);

/* The table that TEXT describes, as `weft bench calibrate` writes it (docs/cost-model.md). */
WEFT_API WEFT_NODISCARD weft_status weft_cost_table_parse(const char *text, weft_cost_table **out);

/* Write the text of TABLE, as snprintf would; weft_cost_table_parse reads it back. */
WEFT_API WEFT_NODISCARD weft_status weft_cost_table_print(const weft_cost_table *table,
                                                          char *buffer, size_t capacity,
                                                          size_t *length);

/* The name that the table's text gives it; it lives as long as TABLE.  NULL for NULL. */
WEFT_API const char *weft_cost_table_name(const weft_cost_table *table);

/* Equal for equal tables, the same on every machine; ranks compare it. */
WEFT_API uint64_t weft_cost_table_digest(const weft_cost_table *table);

/* One more reference; drop one and set the pointer to NULL, which accepts NULL. */
WEFT_API weft_cost_table *weft_cost_table_retain(const weft_cost_table *table);
WEFT_API void weft_cost_table_release(weft_cost_table **table);

#ifdef __cplusplus
}
#endif
#endif
