/* figures.h - exact figures of plans: bytes received and sent, scratch, and lower bounds. */
#ifndef WEFT_PLAN_FIGURES_H
#define WEFT_PLAN_FIGURES_H

#include "plan/plan.h"

/* What figures are counted for.  Beyond these limits they are estimates, or there are none. */
enum {
    WF_DISTINCT_MAX = 65536, /* ranks whose shards may differ */
    WF_LISTED_RANKS = 1024,  /* ranks of a mesh whose messages are compared, rank by rank */
    WF_LOADS_MAX = 64,       /* ranks whose bytes a search follows */
    /* runs of two shards that are compared, and of all shards of a figure */
    WF_RUNS_MAX = 4096,
    WF_RUNS_WALKED = 1 << 22,
    /* messages, sent and received, that are compared for scratch: those of 256 ranks that exchange
     * with each other */
    WF_SCRATCH_MESSAGES = 2 * 256 * 256,
    /* of a batch: tensors times ranks, and pairs of shards that are compared */
    WF_BATCH_COUNTS = 1 << 20,
    WF_BATCH_PAIRS = 1 << 20,
    /* ranks that stand for all in an estimate, and in the price of an exchange between meshes */
    WF_SAMPLES = 1024,
    WF_PRICE_SAMPLES = 64
};

/* ---- visit.c ---- */

/* A visit of ranks, one after another.  It keeps its address. */
struct wf_visit {
    /* The rank that is visited, and its coordinates in the meshes of the step.  NULL: it is in the
     * other mesh only.  Within one mesh, both are the same. */
    int32_t rank;
    const int32_t *source, *target;
    uint64_t alike;      /* ranks for which it stands, if only distinct ones are visited; 1 */
    int64_t count, left; /* ranks of the target's mesh that are visited, and those still to visit */
    /* private */
    const weft_mesh *from, *to;
    bool is_distinct;
    int32_t others; /* ranks of the source's mesh that are not visited yet */
    int32_t range[WEFT_MAX_AXES], room[2][WEFT_MAX_AXES];
};

/* Visit the ranks of the mesh of COUNT STEPS, but of ranks with equal shards only one.  Returns
 * their number, or WF_DISTINCT_MAX + 1 if there are more. */
int64_t wf_visit_distinct(struct wf_visit *visit, const struct wf_step *steps, uint32_t count);
/* Visit the ranks of the target's mesh of STEP; if there are more than MOST, so many of them,
 * spread over the mesh. */
void wf_visit_readers(struct wf_visit *visit, const struct wf_step *step, int32_t most);
/* Visit the ranks of both meshes of STEP. */
void wf_visit_ranks(struct wf_visit *visit, const struct wf_step *step);
/* False: all ranks were visited. */
bool wf_visit_next(struct wf_visit *visit);

/* ---- table.c ---- */

/* One dimension of two layouts of one mesh, for all coordinates of the axes that split it. */
struct wf_table {
    uint32_t axes;
    int64_t count;                 /* entries */
    int32_t stride[WEFT_MAX_AXES]; /* the entry of a coordinate is the sum of coordinate * stride */
};

/* The axes, longer than 1, on which dimension DIM of the shards of LAYOUT depends. */
uint32_t wf_layout_axes(const struct wf_layout *layout, int32_t dim);
/* Runs of a dimension of a shard, at most: of the layout that has fewer there, or of EITHER. */
int64_t wf_layouts_runs(const struct wf_layout *a, const struct wf_layout *b, bool either);
/* True if SHARDS shards before and after each of COUNT steps may be compared run by run. */
bool wf_steps_walk(const struct wf_step *steps, uint32_t count, int64_t shards);
/* Dimensions that tables list: those of LAYOUT; a scalar is listed as one dimension. */
static inline int32_t wf_table_dims(const struct wf_layout *layout)
{
    return layout->dims > 0 ? layout->dims : 1;
}
/* Indices of dimension DIM that A and B have in common; estimated if both have more than
 * WF_RUNS_MAX runs. */
int64_t wf_shards_common(const struct wf_shard *a, const struct wf_shard *b, int32_t dim);
/* Elements that A and B have in common. */
uint64_t wf_shards_common_elements(const struct wf_shard *a, const struct wf_shard *b);
void wf_table_set(struct wf_table *table, const weft_mesh *mesh, uint32_t axes);
/* Write the lengths of dimension DIM in TO, and the number of indices that FROM has in common. */
void wf_table_fill(const struct wf_table *table, const struct wf_layout *from,
                   const struct wf_layout *to, int32_t dim, int64_t *wants, int64_t *common);
/* Advance COORD along AXES of MESH, in row-major order; false after the last one. */
bool wf_coord_next(const weft_mesh *mesh, uint32_t axes, int32_t *coord);

/* ---- rules.c ---- */

/* The axes on which dimension DIM depends before or after STEP. */
uint32_t wf_step_dim_axes(const struct wf_step *step, int32_t dim);
/* True if STEP sends nothing. */
static inline bool wf_step_stays(const struct wf_step *step)
{
    return step->kind == WEFT_STEP_SLICE || step->kind == WEFT_STEP_PARTIAL;
}
/* True if AXIS, of the only mesh of STEP, is partial before and after it. */
bool wf_step_keeps_partial(const struct wf_step *step, int32_t axis);
/* The axes of the target's mesh whose partials STEP creates, such that only coordinate 0 receives
 * the value. */
uint32_t wf_step_made(const struct wf_step *step);
/* Contributions that STEP reduces to one element. */
uint64_t wf_step_holders(const struct wf_step *step);
/* Bytes that a rank receives if it wants WANTS elements, each from HOLDERS ranks, and holds HELD of
 * them.  UINT64_MAX: as many, or more. */
static inline uint64_t wf_bytes_from(uint64_t wants, uint64_t holders, uint64_t held,
                                     uint64_t element)
{
    return wf_add_capped(wf_mul_capped(wants * element, holders - 1), (wants - held) * element);
}
/* Ranks that take part in STEP together. */
uint64_t wf_step_ranks(const struct wf_step *step);
/* Is STEP an all-gather under any name: every rank of a group reads the whole shards of all
 * members, on one mesh?  The answer depends on the step alone, so ranks agree. */
bool wf_step_gathers_shards(const struct wf_step *step);
/* Does STEP, which reduces nothing, send an element of a shard to several ranks of one mesh? */
bool wf_step_sends_copies(const struct wf_step *step);
/* Is STEP a reduce-scatter: every rank's shard is the reduction of a part of all shards of its
 * group? */
bool wf_step_scatters_shards(const struct wf_step *step);
/* True if plain splits cut every dimension evenly: all shards have one size. */
bool wf_layout_is_regular(const struct wf_layout *layout);

/* ---- count.c ---- */

struct wf_counted_dim {
    struct wf_table table;
    int64_t *wants, *common;
};

struct wf_counted_step {
    uint32_t kind, made;
    uint64_t element, holders, ranks; /* element: bytes; 0: no communication */
    int32_t dims;
    struct wf_counted_dim dim[WEFT_MAX_DIMS];
    uint64_t most; /* largest count so far */
};

/* Counts the bytes that ranks receive in steps of one mesh. */
struct wf_counter {
    const weft_mesh *mesh;
    uint32_t count;
    struct wf_counted_step *steps;
    int64_t *room;
};

weft_status wf_counter_open(struct wf_counter *counter, const struct wf_step *steps,
                            uint32_t count) WF_NODISCARD;
void wf_counter_close(struct wf_counter *counter);
/* Bytes that the rank at COORD receives in all steps. */
uint64_t wf_counter_at(struct wf_counter *counter, const int32_t *coord);

/* Replace the bytes received in PLAN and in its steps, which were estimated, by exact ones, unless
 * there are too many distinct shards. */
weft_status wf_plan_count(weft_plan *plan) WF_NODISCARD;

/* ---- sent.c ---- */

/* Bytes that the rank that sends most sends in STEP.  False: estimated, because there are too many
 * distinct shards. */
weft_status wf_step_sent(const struct wf_step *step, uint64_t *bytes, bool *exact) WF_NODISCARD;
/* Add the bytes that each rank sends in STEP, an exchange, to SENT[rank]. */
weft_status wf_exchange_add_sent(const struct wf_step *step, uint64_t *sent) WF_NODISCARD;

/* Write the coordinate of the replica of FROM that RANK, at TARGET_COORD of TO's mesh, reads: its
 * own if it is in FROM's mesh; otherwise the replicas in turn. */
void wf_copy_choose(const weft_spec *from, const weft_spec *to, int32_t rank,
                    const int32_t *target_coord, int32_t *coord);
/* Change COORD of FROM's mesh to that of a living replica, if its rank is lost: ranks from LIVING
 * on are; 0: none is.  Nothing changes if no replica lives. */
void wf_copy_revive(const struct wf_layout *from, int32_t living, int32_t *coord);

/* ---- count_ranks.c ---- */

/* Elements that ranks receive in an exchange between two meshes. */
struct wf_cross_count {
    uint64_t most, total; /* by one rank, by all */
    bool exact;
};

/* Count exactly if the target's mesh has at most RANKS_MAX ranks, or if all ranks receive the same;
 * otherwise estimate by some ranks. */
void wf_cross_count(const struct wf_step *step, int32_t ranks_max, struct wf_cross_count *out);
/* True if all ranks of one mesh are smaller than those of the other.  False may also mean that this
 * is not known. */
bool wf_meshes_are_apart(const weft_mesh *a, const weft_mesh *b);
/* Add the bytes that each rank receives in STEP, an exchange, to RECEIVED[rank]. */
void wf_exchange_add_received(const struct wf_step *step, uint64_t *received);
/* As wf_plan_count, for a plan whose step EXCHANGE is between two meshes. */
weft_status wf_plan_count_cross(weft_plan *plan, const struct wf_step *exchange) WF_NODISCARD;

/* The number of ranks from 0 to the greatest one of COUNT MEMBERS of a batch. */
int64_t wf_members_ranks(const struct wf_member *members, uint32_t count);
/* As wf_plan_count, for a batch.  Sets the bytes received in its common exchange too. */
weft_status wf_batch_count(weft_plan *plan) WF_NODISCARD;
/* Set *BYTES to the bytes that the rank that sends most sends in the common exchange of PLAN, a
 * batch.  *EXACT is false, and *BYTES unchanged, if there are more than WF_LISTED_RANKS ranks. */
weft_status wf_batch_sent(const weft_plan *plan, uint64_t *bytes, bool *exact) WF_NODISCARD;
/* Set *BYTES to the scratch of the common exchange of those of COUNT MEMBERS that JOINS marks, or
 * that have no plan of their own if it is NULL, on the rank that takes most.  *EXACT is false, and
 * *BYTES unchanged, if there are too many ranks; also if *BYTES is UINT64_MAX, because it is as
 * much or more. */
weft_status wf_batch_scratch(const struct wf_member *members, uint32_t count, const bool *joins,
                             uint64_t *bytes, bool *exact) WF_NODISCARD;

/* ---- message.c ---- */

/* The indices of one dimension that two shards share, as the pieces that move together: runs, and
 * combs of equal runs at equal distances on both sides.  Seen from the first shard. */
struct wf_dim_pieces {
    int64_t count, start, end;
    int64_t total; /* indices */
    bool adjacent; /* each one begins where the one before ends */
    bool dense;    /* none has gaps */
    bool single;   /* each one has one index */
    /* the last one */
    int64_t at, other, length, teeth, step, other_step;
};

/* A message between two shards, seen from one of them. */
struct wf_message {
    uint64_t elements;
    bool in_run; /* its regions follow one another in the shard */
    int64_t offset;
};

/* The pieces of each dimension. */
struct wf_cuts {
    uint32_t fixed; /* dimensions whose pieces are the same for all messages of a side */
    uint32_t done;  /* those of them that are known */
    struct wf_dim_pieces list[WEFT_MAX_DIMS];
};

/* Set OUT to the message between MINE and THEIRS, seen from MINE. */
void wf_message_lay(const struct wf_shard *mine, const struct wf_shard *theirs,
                    struct wf_cuts *cuts, struct wf_message *out);

/* ---- scratch.c ---- */

enum { WF_SCRATCH_UNIT = 256 }; /* bytes; pieces of scratch are multiples of it */

/* UINT64_MAX: as many bytes, or more. */
static inline uint64_t wf_scratch_align(uint64_t bytes)
{
    uint64_t sum = wf_add_capped(bytes, WF_SCRATCH_UNIT - 1);

    return sum == UINT64_MAX ? sum : sum / WF_SCRATCH_UNIT * WF_SCRATCH_UNIT;
}

/* Scratch that binding STEP takes on the rank that takes most, if the backend reads peers' memory
 * (ONE_SIDED) or packs messages.  FIRST and LAST: the input is the source, the output the target.
 * *MESSAGES is the number of messages that were compared.  *COUNTED is false if there are too many
 * ranks, and *BYTES is unchanged; or if *BYTES is UINT64_MAX, because it is as much or more. */
weft_status wf_step_scratch(const struct wf_step *step, bool one_sided, bool first, bool last,
                            uint64_t *bytes, int64_t *messages, bool *counted) WF_NODISCARD;

/* ---- plan.c ---- */

/* Scratch that binding PLAN takes on the rank that takes most, by the way that its cost table
 * assumes.  *EXACT is false if it is an estimate, for many ranks.  Counted when it is asked for
 * first. */
weft_status wf_plan_scratch(const weft_plan *plan, uint64_t *bytes, bool *exact) WF_NODISCARD;
/* The same for step INDEX. */
weft_status wf_plan_step_scratch(const weft_plan *plan, uint32_t index, uint64_t *bytes,
                                 bool *exact) WF_NODISCARD;

/* ---- least.c ---- */

/* As weft_plan_lower_bound. */
weft_status wf_plan_least(const weft_plan *plan, uint64_t *bytes) WF_NODISCARD;

/* ---- loads.c ---- */

/* One dimension of a state, by rank. */
struct wf_load_dim {
    struct wf_code key[WEFT_MAX_AXES];
    int32_t dim;
    int64_t lengths[WF_LOADS_MAX], common[WF_LOADS_MAX]; /* common: with the target */
};

/* The ranks of a problem, or some of them, and what they want. */
struct wf_loads {
    const struct wf_problem *problem;
    struct wf_layout target;
    int32_t ranks, dims;
    bool all; /* every rank is visited */
    int32_t coord[WF_LOADS_MAX][WEFT_MAX_AXES];
    uint64_t wants[WF_LOADS_MAX]; /* elements */
    uint64_t element;             /* bytes of the narrower dtype */
    /* Ranks along the target's sums form a group; its leader is the first one. */
    int32_t groups, group[WF_LOADS_MAX], leader[WF_LOADS_MAX];
    int64_t group_size;
    bool idle[WF_LOADS_MAX];     /* the rank need not receive anything */
    uint64_t part[WF_LOADS_MAX]; /* elements that some rank of a group must hold, at least */
    struct wf_load_dim *lists;
    int32_t list_count, list_room;
};

/* What follows from a state. */
struct wf_load_state {
    int32_t list[WEFT_MAX_DIMS]; /* of each dimension */
    uint64_t elements[WF_LOADS_MAX], common[WF_LOADS_MAX];
    uint64_t missing[WF_LOADS_MAX]; /* bytes that a group must still receive, at least */
    uint64_t total;                 /* bytes that all ranks must still receive, at least */
    bool pending;                   /* no rank has an element of the target */
};

weft_status wf_loads_open(struct wf_loads *loads, const struct wf_problem *problem) WF_NODISCARD;
void wf_loads_close(struct wf_loads *loads);
weft_status wf_loads_measure(struct wf_loads *loads, const struct wf_state *state,
                             struct wf_load_state *out) WF_NODISCARD;
/* A lower bound on the bytes of the busiest rank, which has received LOADED[rank] so far. */
uint64_t wf_loads_bound(const struct wf_loads *loads, const uint64_t *loaded,
                        const struct wf_load_state *state);
/* Write the bytes that each rank receives in EDGE, out of FROM, to RECEIVED. */
weft_status wf_loads_edge(const struct wf_loads *loads, const struct wf_state *from,
                          const struct wf_load_state *before, const struct wf_edge *edge,
                          const struct wf_load_state *after, uint64_t *received) WF_NODISCARD;

#endif
