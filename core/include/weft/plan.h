/* plan.h - the steps that take a tensor from one layout to another, computed before data moves.
 *
 *     weft_plan *plan;
 *     if (weft_plan_create(from, to, NULL, &plan) != WEFT_OK) fail(weft_last_error());
 *
 * A plan is a list of steps, each from one spec to the next.  It depends only on the two specs, the
 * cost table and the options, so every rank computes the same plan, bit for bit.
 *
 * Plans are immutable and shared.  All functions here may be called from any thread. */
#ifndef WEFT_PLAN_H
#define WEFT_PLAN_H

#include "cost.h"
#include "spec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_plan weft_plan;

/* What the planner minimizes.  Among plans that are equal in it, the second quantity decides. */
enum weft_minimize {
    WEFT_MINIMIZE_TIME = 0,  /* predicted time, then bytes, as the prices of steps assume */
    WEFT_MINIMIZE_BYTES = 1, /* bytes received by the rank that receives most, then time */
    WEFT_MINIMIZE_MEMORY = 2 /* scratch, then time */
};

enum weft_planner {
    WEFT_PLANNER_SEARCH = 0, /* the plan of minimum cost */
    /* one exchange, or a permute where that is the same; before it an all-reduce, if the target
     * keeps a part of an average of integers */
    WEFT_PLANNER_EXCHANGE = 1
};

typedef struct weft_plan_options {
    size_t struct_size;
    uint32_t minimize;            /* enum weft_minimize */
    uint32_t planner;             /* enum weft_planner */
    uint64_t memory_limit;        /* bytes of scratch per rank; 0: no limit */
    const weft_cost_table *costs; /* NULL: the built-in table "h100" */
    uint32_t without;             /* bit k excludes steps of enum weft_step_kind k */
    size_t holder_count;          /* 0: no rank is lost or has another number */
    const int32_t *holders;       /* [holder_count entries] by rank of FROM's mesh; see below */
} weft_plan_options;

/* After a loss of ranks, the mesh of FROM has the ranks of before, and the mesh of TO those of
 * after.  HOLDERS[r] is the rank of after that has the shard of rank r of FROM, or -1 if that shard
 * is lost.  The plan has another source than FROM (weft_plan_get): the same layout on the ranks of
 * after, in which lost ranks have numbers above all others.  If a rank of FROM's mesh is lost, the
 * plan is one exchange.  It takes every element from a living rank that has it, and an element that
 * a rank needs and has from that rank's own shard.  In weft_simulate, the source or
 * target of a lost rank may be NULL.  Only weft_plan_create takes HOLDERS; the others refuse
 * it with WEFT_ERR_UNSUPPORTED. */

/* Create the plan that moves a tensor from layout FROM to layout TO.  FROM and TO must have the
 * same shape.  Their meshes may have different ranks.  If their dtypes differ, the plan casts:
 * floats to floats, and integers to wider integers that hold all their values (docs/dtypes.md).
 * Reductions are computed in the wider dtype, and narrowed once, after the last of them.  OPTIONS
 * may be NULL.  The caller releases *OUT.  Not collective: equal arguments give equal plans on all
 * ranks.
 * WEFT_ERR_INVALID: the shapes differ; every plan exceeds the memory limit; or OPTIONS->holders
 * does not have every rank of FROM's mesh, or names a rank twice.
 * WEFT_ERR_UNSUPPORTED: the cast is not offered, every plan needs a step that OPTIONS excludes, a
 * partial placement would have to become a partial of another reduction, contributions would have
 * to be narrowed before their reduction, or a rank is lost and the dtypes differ.  The error text
 * names the alternatives.  WEFT_ERR_NOT_FOUND: OPTIONS->holders leaves no rank that holds some of
 * the elements; the text names the first one and their number. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_create(const weft_spec *from, const weft_spec *to,
                                                     const weft_plan_options *options,
                                                     weft_plan **out);

/* Set *NS to a time that a plan from FROM to PLACEMENTS, on the mesh of FROM, needs at least: the
 * `cost_ns` of the plan that weft_plan_create makes with the same OPTIONS is not below it.  0: no
 * data need be sent, or no bound is known.  It makes neither a spec nor a plan, so a search that
 * compares many layouts need not plan those whose bound is above the best time that it has found.
 * OPTIONS may be NULL.  WEFT_ERR_INVALID: the tensor cannot have PLACEMENTS.  WEFT_ERR_UNSUPPORTED:
 * there is no such plan, as in weft_plan_create.  [PLACEMENTS: one per mesh axis] */
WEFT_API WEFT_NODISCARD weft_status weft_plan_lower_bound_ns(const weft_spec *from,
                                                             const weft_placement *placements,
                                                             const weft_plan_options *options,
                                                             uint64_t *ns);

/* Add a reference and return PLAN; NULL for NULL. */
WEFT_API weft_plan *weft_plan_retain(const weft_plan *plan);
/* Drop a reference and set *PLAN to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_plan_release(weft_plan **plan);

/* ---- properties ---------------------------------------------------------------- */

typedef struct weft_plan_info {
    size_t struct_size;
    const weft_spec *from, *to;  /* valid as long as the plan; NULL for a batch */
    size_t steps;                /* 0: every rank already holds its target shard */
    uint64_t cost_ns;            /* predicted time */
    uint64_t bytes_received_max; /* of the rank that receives most, in all steps together */
    uint64_t peak_bytes; /* scratch, without source and target, of the rank that needs most, if the
                            backend works as the cost table says; see weft_plan_scratch */
    uint64_t digest;     /* 64-bit hash: equal plans have equal digests */
    size_t tensors;      /* number of tensors: 1, or more for a batch */
    size_t together;     /* tensors of a batch that share one exchange */
    /* True: bytes_received_max is exact.  False: it is an estimate; UINT64_MAX means 2^64 - 1 bytes
     * or more. */
    bool exact;
    bool scratch_exact; /* peak_bytes is exact; false: an estimate */
    /* Proven optimal among the plans that docs/planner.md lists.  False: the search was ended
     * early, bytes were minimized for more than 64 ranks, or the plan is a batch or goes between
     * two meshes whose ranks differ. */
    bool least;
} weft_plan_info;

/* Copy the properties of PLAN to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_get(const weft_plan *plan, weft_plan_info *out);

/* The predicted time alone, in nanoseconds: weft_plan_get also counts scratch, which takes longer.
 * 0 for NULL. */
WEFT_API uint64_t weft_plan_cost_ns(const weft_plan *plan);
/* True if a step of PLAN communicates; false for NULL. */
WEFT_API bool weft_plan_communicates(const weft_plan *plan);

/* Where a step changes the dtype.  At most one step per tensor does. */
enum weft_cast {
    WEFT_CAST_NONE = 0,
    WEFT_CAST_BEFORE = 1, /* first; the data is sent in the dtype of the step's target */
    WEFT_CAST_AFTER = 2   /* last; the data is sent in the dtype of the step's source */
};

typedef struct weft_plan_step_info {
    size_t struct_size;
    uint32_t kind; /* enum weft_step_kind */
    uint32_t axes; /* bit per mesh axis that takes part; 0 between two meshes, for the shared
                      exchange of a batch, and for a step that only casts */
    /* Valid as long as the plan; NULL for the shared exchange of a batch.  If the two meshes of the
     * plan are reshapes of the same rank list (8 and 2x4), the steps refer to their common
     * refinement. */
    const weft_spec *from, *to;
    uint64_t bytes_sent;     /* by the rank that sends most */
    uint64_t bytes_received; /* by the rank that receives most */
    uint64_t scratch_bytes;
    uint64_t cost_ns; /* predicted time */
    size_t tensor;    /* index of the tensor in a batch; without meaning if FROM is NULL */
    uint32_t cast;    /* enum weft_cast; FROM and TO have the two dtypes */
    /* True: exact.  False: an estimate; UINT64_MAX means 2^64 - 1 bytes or more. */
    bool exact;         /* bytes_sent and bytes_received, both */
    bool scratch_exact; /* scratch_bytes */
} weft_plan_step_info;

/* Copy the properties of step INDEX to *OUT, whose struct_size the caller sets.  WEFT_ERR_INVALID:
 * PLAN has no such step. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_step_get(const weft_plan *plan, size_t index,
                                                       weft_plan_step_info *out);

/* Set *BYTES to a lower bound on the bytes that the busiest rank receives in any method, by weft's
 * steps or others, if only ranks of the plan's meshes take part.  It follows from the indices that
 * ranks hold and want, and from the number of contributions that are reduced.  No method may reach
 * the bound.  0: no data must be sent, or no bound is known.  Takes some hundred nanoseconds per
 * distinct shard. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_lower_bound(const weft_plan *plan, uint64_t *bytes);

/* The cost table that PLAN was created with.  Borrowed; NULL for NULL. */
WEFT_API const weft_cost_table *weft_plan_costs(const weft_plan *plan);

/* Create the second-best plan, to explain why PLAN was chosen: the best plan without the kind of
 * step that PLAN spends most time on; between two meshes, the next best plan.  OPTIONS are those
 * that PLAN was created with; the memory limit is ignored.  OPTIONS may be NULL; without a cost
 * table, that of PLAN is used.  The caller releases *OUT. WEFT_ERR_NOT_FOUND: no other plan exists,
 * PLAN moves no data, or OPTIONS->planner is not WEFT_PLANNER_SEARCH.  WEFT_ERR_INVALID: PLAN is a
 * batch. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_create_runner_up(const weft_plan *plan,
                                                               const weft_plan_options *options,
                                                               weft_plan **out);

/* Write PLAN as text to TEXT: a line for each step and one with the sums.  It is for people: of
 * more than eight sizes of a B or G it has the first eight.  TEXT, SIZE and NEEDED as in
 * weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_print(const weft_plan *plan, char *text, size_t size,
                                                    size_t *needed);

/* ---- batches ------------------------------------------------------------------- */

/* Create one plan for COUNT tensors, at least 1, from FROM[i] to TO[i].  Shapes, dtypes and meshes
 * may differ between tensors.  Tensors for which latency would cost more than bytes share one
 * exchange, which is step 0; each other tensor takes the steps of its separate plan.  Otherwise as
 * weft_plan_create.  An error names the tensor.  The memory limit applies to the whole batch.  The
 * caller releases *OUT.  [FROM, TO: COUNT entries]  OPTIONS may be NULL. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_create_batch(size_t count,
                                                           const weft_spec *const *from,
                                                           const weft_spec *const *to,
                                                           const weft_plan_options *options,
                                                           weft_plan **out);

typedef struct weft_plan_tensor_info {
    size_t struct_size;
    const weft_spec *from, *to; /* valid as long as the plan */
    const weft_plan *alone;     /* the tensor's own plan, borrowed; NULL: in the shared exchange */
} weft_plan_tensor_info;

/* Copy the properties of tensor INDEX of PLAN to *OUT, whose struct_size the caller sets.  A plan
 * that is not a batch has one tensor.  WEFT_ERR_INVALID: PLAN has no such tensor. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_tensor_get(const weft_plan *plan, size_t index,
                                                         weft_plan_tensor_info *out);

#ifdef __cplusplus
}
#endif
#endif
