/* plan.h - from two specs to a plan.
 *
 * problem.c reduces two specs on one mesh to a small form, and state.c computes shard sizes in it.
 * edges.c lists the steps out of a state, price.c and exchange.c price them, lower_bound.c computes
 * the lower bound on the remaining cost, and search.c finds the cheapest path.  least_time.c
 * applies the bound to layouts of which there is no spec yet.  search_bytes.c finds the path that
 * loads the busiest rank least.  queue.c orders what both have reached.  plan.c makes the plan
 * object.  cast.c decides where a dtype changes.  cross.c combines plans on two meshes, unless
 * refine.c finds that both are reshapes of one rank list.  batch.c plans many tensors.
 *
 * figures/ counts exactly.  count.c and count_ranks.c count the bytes that ranks receive, sent.c
 * those that they send, from the tables of table.c; scratch.c counts the scratch that binding
 * takes, from the messages of message.c, and loads.c the bytes of each rank during the search.
 * least.c computes the bytes that no method can avoid. */
#ifndef WEFT_PLAN_PLAN_H
#define WEFT_PLAN_PLAN_H

#include "base/base.h"
#include "base/fork.h"
#include "cost/cost.h"
#include "shard/shard.h"
#include "weft/plan.h"

#include <stdatomic.h>

/* ---- the object ---- */

struct wf_step {
    uint32_t kind;        /* enum weft_step_kind */
    uint32_t axes;        /* bit per mesh axis; 0 between meshes */
    uint32_t created;     /* axes: the first part of a split step created their partials */
    weft_spec *from, *to; /* NULL: the common exchange of a batch */
    uint64_t sent, received, scratch, cost_ns;
    uint32_t tensor; /* index in the batch */
    int32_t living;  /* ranks of FROM's mesh from this number on are lost; 0: none is */
};

/* One tensor of a batch. */
struct wf_member {
    weft_spec *from, *to;
    /* its own plan; NULL: it is part of the common exchange, step 0 of the batch */
    weft_plan *alone;
    /* its own plan if it is part of the exchange and casts, for backends that cannot cast while
     * they pack; otherwise NULL */
    weft_plan *spare;
};

struct weft_plan {
    uint64_t made; /* WF_OF_KIND of fork.h */
    _Atomic(int64_t) references;
    weft_spec *from, *to;   /* NULL for a batch */
    weft_cost_table *costs; /* the table that priced it */
    uint64_t cost_ns, received, digest;
    uint64_t peak;             /* scratch, estimated; 0 for a batch */
    _Atomic(uint64_t) scratch; /* counted or estimated; UINT64_MAX: not yet */
    atomic_bool scratch_exact; /* counted; set before it */
    int32_t living;            /* ranks of FROM's mesh from this number on are lost; 0: none is */
    bool exact;                /* the bytes received are counted, not estimated */
    bool least;                /* shown to be the best of the plans that docs/planner.md lists */
    uint32_t member_count, together; /* tensors of a batch, and of its common exchange */
    struct wf_member *members;       /* NULL: not a batch */
    uint32_t step_count;
    struct wf_step steps[];
};

/* ---- plan.c ---- */

/* As weft_plan_create, of valid arguments.  Error texts do not name a function. */
weft_status wf_plan_create(const weft_spec *from, const weft_spec *to,
                           const weft_plan_options *options, weft_plan **out) WF_NODISCARD;
/* Refuse numbers that are not of enum weft_minimize and enum weft_planner.  OPTIONS names their
 * struct. */
weft_status wf_plan_check_choice(const char *options, uint32_t minimize,
                                 uint32_t planner) WF_NODISCARD;
/* A plan with room for STEPS steps, none of which is set. */
weft_status wf_plan_make(const weft_spec *from, const weft_spec *to, uint32_t steps,
                         weft_plan **out) WF_NODISCARD;
/* Set the table that priced PLAN; NULL: the default table. */
void wf_plan_set_costs(weft_plan *plan, const weft_cost_table *costs);
/* Set the totals and the digest, which follow from the steps. */
void wf_plan_add_up(weft_plan *plan);
/* Count the bytes of PLAN, whose totals are set, and pass it on.  Takes ownership of PLAN, also on
 * failure. */
weft_status wf_plan_finish_take(weft_plan *plan, weft_plan **out) WF_NODISCARD;

/* ---- refuse.c ---- */

/* Append the names of the kinds of steps in KINDS, one bit each: "all-gather, exchange". */
void wf_plan_add_step_names(struct wf_text *out, uint32_t kinds);
/* WEFT_ERR_INVALID: no plan fits into LIMIT bytes of scratch; LEAST bytes are needed.  WHICH
 * qualifies the plans: "" or " between the meshes". */
weft_status wf_plan_refuse_memory(const char *which, uint64_t limit, uint64_t least) WF_NODISCARD;

/* ---- holders.c ---- */

/* FROM on the ranks that OPTIONS->holders names, where lost ranks have numbers from *LIVING on,
 * above those of TO.  *LIVING is 0 if no rank is lost.  WEFT_ERR_NOT_FOUND: elements are lost.  The
 * caller releases *OUT. */
weft_status wf_plan_source(const weft_spec *from, const weft_spec *to,
                           const weft_plan_options *options, int32_t *living,
                           weft_spec **out) WF_NODISCARD;
/* WEFT_ERR_UNSUPPORTED if OPTIONS has holders, which FUNCTION does not take. */
weft_status wf_plan_refuse_holders(const char *function,
                                   const weft_plan_options *options) WF_NODISCARD;

/* ---- cross.c ---- */

weft_status wf_plan_cross(const weft_spec *from, const weft_spec *to,
                          const weft_plan_options *options, weft_plan **out) WF_NODISCARD;
/* The plan of one exchange from FROM, whose ranks from LIVING on are lost. */
weft_status wf_plan_exchange(const weft_spec *from, const weft_spec *to, int32_t living,
                             const weft_plan_options *options, weft_plan **out) WF_NODISCARD;
/* The next best plan; WEFT_ERR_NOT_FOUND if no other plan exists. */
weft_status wf_plan_cross_runner_up(const weft_spec *from, const weft_spec *to,
                                    const weft_plan_options *options, weft_plan **out) WF_NODISCARD;
/* The work, under COSTS, of the exchange STEP between two meshes if everything is packed.  Sets the
 * bytes that STEP sends and receives. */
void wf_cross_work(const weft_cost_table *costs, struct wf_step *step, struct wf_work *out);

/* ---- refine.c ---- */

/* FROM and TO as specs of one mesh with the same shards, if their meshes list the same ranks in the
 * same order; NULL otherwise.  The caller releases both. */
weft_status wf_refine(const weft_spec *from, const weft_spec *to, weft_spec **from_out,
                      weft_spec **to_out) WF_NODISCARD;

/* ---- batch.c ---- */

/* The ranks of the common exchange of PLAN, a batch: the axis groups of *MESH along *AXES or, if
 * *MESH is NULL, all ranks of all meshes. */
weft_status wf_batch_group(const weft_plan *plan, const weft_mesh **mesh,
                           uint32_t *axes) WF_NODISCARD;

/* ---- states: placements of the axes longer than 1, in a few bytes ---- */

enum wf_code_kind {
    WF_CODE_REPLICATE,
    WF_CODE_SHARD,
    WF_CODE_STRIDED_FROM, /* with the factor or the sizes that the source has on this axis */
    WF_CODE_STRIDED_TO,   /* with the factor or the sizes that the target has on this axis */
    WF_CODE_PARTIAL,
    WF_CODE_OWNER
};

/* One axis: its kind, the dimension that it splits, its pending reduction or the side whose owner
 * it has (0: the source), and its turn, from 1, among the axes that split the dimension. */
struct wf_code {
    uint8_t kind, value, turn, zero;
};

struct wf_state { /* compared and hashed as bytes */
    struct wf_code axis[WEFT_MAX_AXES];
    uint64_t cast; /* 1: the data has the target's dtype, and that is not the source's */
};

/* The axes that split each dimension, outermost first. */
struct wf_orders {
    int8_t count[WEFT_MAX_DIMS];
    int8_t axis[WEFT_MAX_DIMS][WEFT_MAX_AXES];
};

/* The effect of a change of dtype on values. */
enum wf_cast_kind {
    WF_CAST_NONE,
    WF_CAST_NARROWS, /* it may round */
    WF_CAST_WIDENS,  /* every value stays as it is */
    WF_CAST_REFUSED  /* not offered */
};

/* Two specs of one mesh.  Axes of size 1 are left out and the others counted from 0: "axis" below
 * means such an axis, and mesh_axis maps it to the mesh. */
struct wf_problem {
    const weft_spec *from, *to;
    const weft_cost_table *costs;
    uint32_t minimize, without; /* as in weft_plan_options */
    uint64_t memory_limit;      /* UINT64_MAX: none */
    bool wide;                  /* more states are visited: see edges.c */
    uint32_t steps_max;         /* of a plan */
    int32_t axes, dims;
    int32_t mesh_axis[WEFT_MAX_AXES];
    int64_t size[WEFT_MAX_AXES];
    uint32_t link[WEFT_MAX_AXES]; /* enum wf_link */
    int32_t lanes[WEFT_MAX_AXES]; /* ranks of the axis on each host that it reaches */
    /* of the source and the target, by axis: splits other than S, owners */
    struct wf_split split[2][WEFT_MAX_AXES];
    int64_t most[2][WEFT_MAX_AXES], least[2][WEFT_MAX_AXES]; /* of the sizes of a G */
    int32_t owner[2][WEFT_MAX_AXES];
    int64_t shape[WEFT_MAX_DIMS];
    uint64_t elements[2];   /* bytes of the source's and of the target's dtype */
    enum wf_cast_kind cast; /* from the one to the other */
    struct wf_state source, target;
};

/* One step of the search. */
struct wf_edge {
    uint32_t kind;
    uint32_t axes; /* bit per axis of the problem */
    struct wf_state to;
};

/* The cost of a step; each number is that of the rank that has the most of it. */
struct wf_price {
    uint64_t ns, received, sent, scratch; /* scratch: with intermediate tensors */
};

/* ---- problem.c ---- */

/* The class of the links between the ranks A and B, by the domains of COSTS and the hosts of MESH.
 */
uint32_t wf_link_between(const weft_mesh *mesh, const weft_cost_table *costs, int32_t a, int32_t b);

/* WEFT_ERR_UNSUPPORTED: a partial would have to change its reduction. */
weft_status wf_problem_set(struct wf_problem *problem, const weft_spec *from, const weft_spec *to,
                           const weft_plan_options *options) WF_NODISCARD;
/* The spec of STATE; FROM or TO themselves if STATE is the source or the target. */
weft_status wf_problem_spec(const struct wf_problem *problem, const struct wf_state *state,
                            weft_spec **out) WF_NODISCARD;
/* The layout of STATE, settled. */
weft_status wf_problem_layout(const struct wf_problem *problem, const struct wf_state *state,
                              struct wf_layout *out) WF_NODISCARD;
/* True if PROBLEM minimizes or limits scratch, and has at most 64 ranks. */
bool wf_problem_counts(const struct wf_problem *problem);
/* Set the scratch of PRICE, for EDGE out of FROM, to the exact one, if wf_problem_counts.  Adds the
 * messages that were compared for it to *MESSAGES. */
weft_status wf_problem_scratch(const struct wf_problem *problem, const struct wf_state *from,
                               const struct wf_edge *edge, struct wf_price *price,
                               int64_t *messages) WF_NODISCARD;
uint32_t wf_problem_mesh_axes(const struct wf_problem *problem, uint32_t axes);

/* ---- state.c ---- */

static inline bool wf_code_splits(struct wf_code code)
{
    return code.kind >= WF_CODE_SHARD && code.kind <= WF_CODE_STRIDED_TO;
}
bool wf_code_same(struct wf_code a, struct wf_code b);
/* The split of AXIS that CODE stands for; NULL: S, or none. */
static inline const struct wf_split *wf_code_split(const struct wf_problem *problem, int32_t axis,
                                                   struct wf_code code)
{
    if (code.kind != WF_CODE_STRIDED_FROM && code.kind != WF_CODE_STRIDED_TO) return NULL;
    return &problem->split[code.kind - WF_CODE_STRIDED_FROM][axis];
}
/* True if CODE splits AXIS by listed sizes. */
static inline bool wf_code_lists(const struct wf_problem *problem, int32_t axis,
                                 struct wf_code code)
{
    const struct wf_split *split = wf_code_split(problem, axis, code);

    return split != NULL && split->sizes != NULL;
}
/* True if CODE splits AXIS into single runs. */
static inline bool wf_code_is_run(const struct wf_problem *problem, int32_t axis,
                                  struct wf_code code)
{
    const struct wf_split *split = wf_code_split(problem, axis, code);

    return code.kind == WF_CODE_SHARD || (split != NULL && split->kind == WEFT_PLACE_SIZES);
}
bool wf_state_same(const struct wf_state *a, const struct wf_state *b);
uint64_t wf_state_hash(const struct wf_state *state);
void wf_state_orders(const struct wf_state *state, int32_t axes, struct wf_orders *out);
/* True if AXIS may become a partial of REDUCTION beside the partials that STATE has. */
bool wf_state_takes_partial(const struct wf_problem *problem, const struct wf_state *state,
                            uint32_t reduction);
/* True if one step may reduce the partials of AXES.  An average of integers rounds, and a sum of
 * some of its contributions may wrap.  If the source has an average of integers, a step therefore
 * reduces all partials of the source or none.  Partials that a step created are replicas or zeros,
 * which every reduction restores exactly. */
bool wf_state_reduces(const struct wf_problem *problem, const struct wf_state *state,
                      uint32_t axes);
/* Local shape at the coordinate that holds the least on the axes of LAST, and the most on all
 * others: the last and the first one, the extremes of G, or a rank that owns nothing and the
 * owner. */
void wf_state_shape(const struct wf_problem *problem, const struct wf_state *state, uint32_t last,
                    int64_t *shape);
/* Elements and bytes of the largest shard. */
uint64_t wf_state_elements(const struct wf_problem *problem, const struct wf_state *state);
uint64_t wf_state_bytes(const struct wf_problem *problem, const struct wf_state *state);
/* Number of indices, out of LENGTH, that coordinate AT of RANKS holds after a split by FACTOR. */
int64_t wf_split_length(int64_t length, int64_t ranks, int64_t factor, int64_t at);

/* ---- edges.c ---- */

/* Call TAKE for every step out of STATE except the exchange, in a fixed order. */
void wf_edges(const struct wf_problem *problem, const struct wf_state *state,
              void (*take)(void *self, const struct wf_edge *edge), void *self);
/* Call TAKE for every exchange, or permute, out of STATE, in a fixed order: to the target, if that
 * is allowed, and in a wide problem also to states from which local steps and all-gathers lead
 * there. */
void wf_exchanges(const struct wf_problem *problem, const struct wf_state *state,
                  void (*take)(void *self, const struct wf_edge *edge), void *self);
/* In a wide problem, the axes, not partial in the source, that become replicas in the target (SUMS
 * false), or contributions to a sum.  An exchange may split a dimension by them instead. */
uint32_t wf_axes_to_spread(const struct wf_problem *problem, bool sums);
/* The step from STATE straight to the target: a permute if it is one, otherwise an exchange. */
void wf_edge_exchange(const struct wf_problem *problem, const struct wf_state *state,
                      struct wf_edge *out);

/* True if an exchange from STATE to the target is allowed. */
bool wf_may_exchange(const struct wf_problem *problem, const struct wf_state *state);

/* ---- cast.c ---- */

enum wf_cast_kind wf_cast_kind(uint32_t from, uint32_t to);
/* WEFT_ERR_UNSUPPORTED; the text lists the casts that are offered. */
weft_status wf_cast_refuse(uint32_t from, uint32_t to) WF_NODISCARD;
/* True if A and B are the same but for their dtypes. */
bool wf_state_same_codes(const struct wf_problem *problem, const struct wf_state *a,
                         const struct wf_state *b);
/* Set the dtype of the state that EDGE, out of FROM, leads to.  False: EDGE must not precede the
 * cast, and the cast cannot happen yet. */
bool wf_cast_mark(const struct wf_problem *problem, const struct wf_state *from,
                  struct wf_edge *edge);
/* True if TO has partials whose identity depends on the dtype.  Such partials are created in the
 * dtype of the target, because a cast does not change one identity into the other. */
bool wf_cast_precedes_partials(const weft_spec *to);
/* True if a backend can cast in the pass in which a step of KIND packs, unpacks or pulls.  An
 * all-gather or broadcast that casts before would cast each element once per reader. */
bool wf_cast_fuses(uint32_t kind, uint32_t place, bool reduces);

/* What a change of dtype adds to the work of a step. */
struct wf_cast_work {
    uint64_t element;         /* bytes of an element that travels */
    uint64_t copied, scratch; /* bytes; both 0 if the step does not cast */
};

void wf_cast_price(const struct wf_problem *problem, const struct wf_state *from,
                   const struct wf_edge *edge, struct wf_cast_work *out);

/* True if STEP reduces contributions.  Its specs may be on two meshes. */
bool wf_step_reduces(const struct wf_step *step);
/* Where STEP casts: enum weft_cast. */
uint32_t wf_step_cast(const struct wf_step *step);
/* The dtype in which the data of STEP travels. */
uint32_t wf_step_dtype(const struct wf_step *step);

/* ---- price.c ---- */

void wf_price_edge(const struct wf_problem *problem, const struct wf_state *from,
                   const struct wf_edge *edge, struct wf_price *out);

/* ---- exchange.c ---- */

/* The work of an exchange if everything is packed. */
weft_status wf_exchange_work(const struct wf_problem *problem, const struct wf_state *from,
                             const struct wf_edge *edge, struct wf_work *out) WF_NODISCARD;
weft_status wf_price_exchange(const struct wf_problem *problem, const struct wf_state *from,
                              const struct wf_edge *edge, struct wf_price *out) WF_NODISCARD;

/* ---- lower_bound.c ---- */

/* Bytes that must still travel and be reduced, as a mean over ranks. */
struct wf_transfers {
    uint64_t bytes;         /* of a share: the tensor, in the narrower dtype, over all ranks */
    uint64_t rate;          /* the fewest femtoseconds per byte of any step */
    uint64_t ns, reduce_ns; /* least time to receive a share, and to reduce one */
};

/* A lower bound on the remaining cost of states. */
struct wf_lower_bound {
    const struct wf_problem *problem;
    bool counts;       /* false: the bound is 0 */
    bool parts;        /* an exchange of fewer axes may precede other steps */
    uint64_t base;     /* ns, the least start-up of a communicating step */
    uint64_t exchange; /* ns, peer latency of a final exchange without partials */
    bool alone;        /* a final exchange has no axes besides partials */
    struct wf_transfers transfers;
    struct wf_latency {
        uint64_t leave, scatter, reduce, exchange; /* ns, along this axis alone */
    } latency[2][WEFT_MAX_AXES];                   /* without start-ups, and with them */
};

void wf_lower_bound_set(struct wf_lower_bound *bound, const struct wf_problem *problem);
/* Shares of the tensor that each rank must still receive in the mean; *HOLDERS becomes the number
 * of contributions that must be reduced. */
uint64_t wf_lower_bound_shares(const struct wf_problem *problem, const struct wf_state *state,
                               uint64_t *holders);
/* Admissible and consistent: never above the true remaining cost, and drops along an edge by at
 * most the edge's cost. */
uint64_t wf_lower_bound_ns(const struct wf_lower_bound *bound, const struct wf_state *state);
/* The part of it that is latency: what the remaining steps cost besides their bytes. */
uint64_t wf_lower_bound_latency(const struct wf_lower_bound *bound, const struct wf_state *state);

/* ---- search.c ---- */

enum {
    WF_PATH_MAX = 32,
    WF_STEPS_MAX = 6 /* of a plan that is not shown to be the best */
};

/* The path found: edges[i] leads from the state before it (the source, for the first). */
struct wf_path {
    uint32_t count;
    bool least; /* it is shown that no path is better */
    struct wf_edge edges[WF_PATH_MAX];
    struct wf_price prices[WF_PATH_MAX];
};

weft_status wf_search(const struct wf_problem *problem, struct wf_path *out) WF_NODISCARD;

/* ---- path.c ---- */

/* Find the path of PROBLEM.  PLANNER: enum weft_planner. */
weft_status wf_path_find(struct wf_problem *problem, uint32_t planner,
                         struct wf_path *out) WF_NODISCARD;

/* ---- search_bytes.c ---- */

/* Sets what is minimized of PATH, such as the exact bytes that the busiest rank receives, and its
 * time. */
typedef weft_status wf_path_rate(const struct wf_problem *problem, const struct wf_path *path,
                                 uint64_t *quantity, uint64_t *ns);

/* As wf_search, by bytes.  The path is empty if no plan was found. */
weft_status wf_search_bytes(const struct wf_problem *problem, wf_path_rate *rate_path,
                            struct wf_path *out) WF_NODISCARD;
/* The plan that takes the steps of PATH (plan.c). */
weft_status wf_plan_from_path(const struct wf_problem *problem, const struct wf_path *path,
                              weft_plan **out) WF_NODISCARD;

/* ---- cache.c: plans by request ---- */

/* One thread at a time per cache. */
struct wf_plan_cache;

/* A cache of at most ROOM plans; a full one releases its least recently used plan. */
weft_status wf_plan_cache_create(uint32_t room, struct wf_plan_cache **out) WF_NODISCARD;
/* As weft_plan_create, but return the cached plan if there is one, otherwise add the new one.
 * OPTIONS has costs.  The caller releases *OUT in both cases. */
weft_status wf_plan_cache_find(struct wf_plan_cache *cache, const weft_spec *from,
                               const weft_spec *to, const weft_plan_options *options,
                               weft_plan **out) WF_NODISCARD;
void wf_plan_cache_release(struct wf_plan_cache **cache); /* accepts a pointer to NULL */

#endif
