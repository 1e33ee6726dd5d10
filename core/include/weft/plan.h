/* plan.h - how a tensor gets from one layout to another, found before anything moves.
 *
 *     weft_plan *plan;
 *     if (weft_plan_create(from, to, NULL, &plan) != WEFT_OK) fail(weft_last_error());
 *
 * A plan is a list of steps, each from one spec to the next; it is the same on every rank, bit for
 * bit, because it follows from the two specs, the cost table and the options alone.  Plans are
 * immutable and shared.  All functions here may be called from any thread. */
#ifndef WEFT_PLAN_H
#define WEFT_PLAN_H

#include "cost.h"
#include "spec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_plan weft_plan;

enum weft_minimize {
    WEFT_MINIMIZE_TIME = 0,  /* predicted; then bytes */
    WEFT_MINIMIZE_BYTES = 1, /* received by the rank that receives most; then time */
    WEFT_MINIMIZE_MEMORY = 2 /* scratch besides source and target; then time */
};

enum weft_planner {
    WEFT_PLANNER_SEARCH = 0,  /* the cheapest plan there is */
    WEFT_PLANNER_EXCHANGE = 1 /* always the one-step exchange */
};

/* struct_size is sizeof(weft_plan_options); elsewhere zero means default. */
typedef struct weft_plan_options {
    size_t struct_size;
    uint32_t minimize;            /* enum weft_minimize */
    uint32_t planner;             /* enum weft_planner */
    uint64_t memory_limit;        /* bytes of scratch per rank; 0: none is set */
    const weft_cost_table *costs; /* NULL: "default" */
    uint32_t without;             /* bit per weft_step_kind that the search may not use */
} weft_plan_options;

/* The plan from FROM to TO, which have the same shape and dtype; their meshes may be any two sets
 * of ranks.  OPTIONS may be NULL.  The caller releases *OUT.
 * WEFT_ERR_UNSUPPORTED: a partial cannot become another kind of partial.  WEFT_ERR_INVALID: a
 * memory limit under what is possible (the text says what is); shapes or dtypes that differ. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_create(const weft_spec *from, const weft_spec *to,
                                                     const weft_plan_options *options,
                                                     weft_plan **out);

/* One more reference; drop one and set the pointer to NULL, which accepts NULL. */
WEFT_API weft_plan *weft_plan_retain(const weft_plan *plan);
WEFT_API void weft_plan_release(weft_plan **plan);

typedef struct weft_plan_info {
    size_t struct_size;
    const weft_spec *from, *to;  /* live as long as the plan */
    uint32_t steps;              /* 0: nothing to do */
    uint64_t cost_ns;            /* predicted */
    uint64_t bytes_received_max; /* by the rank that receives most */
    uint64_t peak_bytes; /* scratch besides source and target, on the rank that needs most */
    uint64_t digest;     /* equal on ranks with the same plan */
    uint32_t tensors;    /* 1, or of a batch; then FROM and TO are NULL */
    uint32_t together;   /* how many of a batch travel in one exchange */
} weft_plan_info;

/* What PLAN comes to as a whole. */
WEFT_API void weft_plan_get(const weft_plan *plan, weft_plan_info *out);

typedef struct weft_step_info {
    size_t struct_size;
    uint32_t kind; /* enum weft_step_kind */
    uint32_t axes; /* bit per mesh axis that takes part; 0 between meshes */
    /* Live as long as the plan.  Of a plan between two meshes that count the same ranks, in the
     * same order, in different ways (8 and 2x4), the steps are on one mesh that has the axes of
     * both. */
    const weft_spec *from, *to;
    uint64_t bytes_sent; /* largest over ranks, each */
    uint64_t bytes_received;
    uint64_t scratch_bytes;
    uint64_t cost_ns;
    uint32_t tensor; /* of a batch: whose step it is, unless FROM is NULL */
} weft_step_info;

/* Step INDEX; false past the last. */
WEFT_API bool weft_plan_step_get(const weft_plan *plan, uint32_t index, weft_step_info *out);

/* The table that PLAN's costs are from.  Borrowed from the plan; NULL for NULL. */
WEFT_API const weft_cost_table *weft_plan_costs(const weft_plan *plan);

/* The plan that would be taken if PLAN, which was made with OPTIONS, did not exist: the best one
 * without the kind of step that PLAN spends most time on; between two meshes, the next best.  No
 * memory limit holds for it.  For showing why PLAN was chosen.  The caller releases *OUT.
 * WEFT_ERR_NOT_FOUND: no other plan exists.  WEFT_ERR_INVALID: PLAN is a batch. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_create_runner_up(const weft_plan *plan,
                                                               const weft_plan_options *options,
                                                               weft_plan **out);

/* ---- many tensors as one ---- */

/* One plan for COUNT tensors, from FROM[i] to TO[i], whatever their shapes, dtypes and meshes.
 * Those for which waiting would cost more than moving travel together, in one exchange for all of
 * them; the others take the steps that weft_plan_create finds for each.  Which is which follows
 * from the costs.  The exchange is step 0, with FROM and TO NULL.  OPTIONS, COUNT at least 1,
 * errors and *OUT as in weft_plan_create; an error names the tensor.  A memory limit holds for the
 * batch as a whole. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_create_batch(uint32_t count,
                                                           const weft_spec *const *from,
                                                           const weft_spec *const *to,
                                                           const weft_plan_options *options,
                                                           weft_plan **out);

typedef struct weft_plan_tensor_info {
    size_t struct_size;
    const weft_spec *from, *to; /* live as long as the plan */
    const weft_plan *alone;     /* its own plan; NULL: it travels with others.  Borrowed. */
} weft_plan_tensor_info;

/* Tensor INDEX of PLAN; false past the last.  A plan that is no batch has one, itself. */
WEFT_API bool weft_plan_tensor_get(const weft_plan *plan, uint32_t index,
                                   weft_plan_tensor_info *out);

/* Write PLAN for people, one line per step, as snprintf would: at most CAPACITY bytes with the end;
 * *LENGTH, if wanted, is the whole length. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_print(const weft_plan *plan, char *buffer,
                                                    size_t capacity, size_t *length);

/* ---- plans kept ---- */

/* Plans by what they were asked for, so that asking again takes no time to speak of. */
typedef struct weft_plan_cache weft_plan_cache;

/* A cache of at most PLANS plans (0: 4096); the one longest unused makes room for the next.  The
 * caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_cache_create(uint32_t plans, weft_plan_cache **out);

/* As weft_plan_create, from the cache where it is there.  One thread at a time per cache. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_cache_find(weft_plan_cache *cache,
                                                         const weft_spec *from, const weft_spec *to,
                                                         const weft_plan_options *options,
                                                         weft_plan **out);

/* Drops its plans; those that were handed out live on. */
WEFT_API void weft_plan_cache_release(weft_plan_cache **cache);

#ifdef __cplusplus
}
#endif
#endif
