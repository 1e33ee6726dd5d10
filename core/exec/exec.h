/* exec.h - plans carried out.
 *
 * peers.c finds a rank's peers in a step, regions.c the boxes of memory that move between two
 * ranks, and parts.c combines both for one rank.  share.c applies this to a step of a plan.  sim.c
 * runs a plan for all ranks of a mesh in one thread. */
#ifndef WEFT_EXEC_EXEC_H
#define WEFT_EXEC_EXEC_H

#include "base/base.h"
#include "plan/plan.h"
#include "shard/shard.h"

/* ---- parts.c: one rank's share of a step ---- */

/* The regions that one rank reads, or that others read from it, in a change from one spec to
 * another.  The meshes may differ.
 *
 * Ranks come in blocks of HOLDERS ranks whose contributions are reduced to one value, in order.  A
 * region's `source` (reading) or `target` (being read) is the index of its block's first rank in
 * RANKS.  The other side is 0, this rank's own buffer.  Shards of others are row-major without
 * gaps.
 *
 * A reader that is in the source's mesh uses its own coordinate on the replicated axes, so it reads
 * elements that it already holds from its own memory.  Non-members of the source's mesh are
 * assigned to the replicas by their position in the target's mesh, so that the replicas share the
 * load.  On axes that have an owner, all read from the owner. */
struct wf_parts {
    uint32_t holders;   /* 1: plain copies */
    uint32_t reduction; /* of the holders' contributions */
    int64_t divisor;    /* of an average; less than HOLDERS if some axes sum */
    uint32_t rank_count;
    int32_t *ranks;
    uint64_t region_count;
    weft_region *regions;
    bool identity; /* reading: this rank holds the identity of its partial, and reads nothing */
};

/* The regions that RANK reads to hold its shard of TO.  STRIDES are those of that shard in memory,
 * in elements; NULL: row-major without gaps.  LIVING: as in struct wf_step. */
weft_status wf_parts_read(const weft_spec *from, const weft_spec *to, int32_t living, int32_t rank,
                          const int64_t *strides, struct wf_parts *out) WF_NODISCARD;
/* The regions that others read of RANK's shard of FROM, whose memory has STRIDES.  Each reader is a
 * block of its own, whether it reduces or not. */
weft_status wf_parts_serve(const weft_spec *from, const weft_spec *to, int32_t living, int32_t rank,
                           const int64_t *strides, struct wf_parts *out) WF_NODISCARD;
void wf_parts_free(struct wf_parts *parts);

/* ---- share.c: one rank's share of a step of a plan ---- */

struct wf_share {
    struct wf_parts parts;
    /* the output is filled with FILL's identity before anything is read into it */
    bool filled;
    uint32_t fill;    /* a reduction */
    int64_t elements; /* of this rank's output */
};

/* True if every rank needs only its own input. */
bool wf_step_is_local(const struct wf_step *step);
/* Must the output be one run of elements on some rank, because it is filled or reduced as a
 * whole? */
bool wf_step_needs_dense_output(const struct wf_step *step);
/* The axes of the target's mesh whose partials STEP creates. */
uint32_t wf_step_created_partials(const struct wf_step *step);
/* RANK's share of STEP.  OUT_STRIDES are those of its output; IN_STRIDES, for local steps only,
 * those of its input.  NULL: row-major without gaps. */
weft_status wf_share_of(const struct wf_step *step, int32_t rank, const int64_t *in_strides,
                        const int64_t *out_strides, struct wf_share *out) WF_NODISCARD;
void wf_share_free(struct wf_share *share);

/* ---- sim.c: a step of a plan on all ranks ---- */

/* INPUTS and OUTPUTS are shards by position in the mesh.  FUNCTION names the caller in errors. */
weft_status wf_simulate_step(const char *function, const struct wf_step *step,
                             const void *const *inputs, void *const *outputs) WF_NODISCARD;

/* ---- cast.c: a step that casts, as two ---- */

struct wf_cast_steps {
    struct wf_step steps[2]; /* one casts, the other moves */
    weft_spec *between;
};

/* Split STEP, which casts and does more.  If the cast is the second part, it stores the identities
 * of the partials that STEP creates, which differ between dtypes.  The caller clears *OUT. */
weft_status wf_cast_split(const struct wf_step *step, struct wf_cast_steps *out) WF_NODISCARD;
void wf_cast_clear(struct wf_cast_steps *steps);
/* True if STEP changes the dtype, and nothing else. */
bool wf_step_only_casts(const struct wf_step *step);

/* ---- measure.c ---- */

/* Bytes received over all steps of a plan. */
struct wf_measure {
    uint64_t most; /* by the rank that receives most */
    uint64_t total;
    bool exact; /* counted, not estimated */
};

/* Count what PLAN, which has one tensor, makes ranks receive.  With more than WF_DISTINCT_MAX
 * distinct shards it is estimated. */
struct wf_measure wf_plan_measure(const weft_plan *plan);
/* The same for any plan. */
struct wf_measure wf_plan_total(const weft_plan *plan);
/* The most bytes that a rank of STEP sends, and the most that one receives; exact.  The bytes sent
 * are counted from the reads of every rank, which takes as long as binding all ranks.  With more
 * than 1024 ranks *SENT stays as the plan has it, with more than WF_DISTINCT_MAX *RECEIVED too. */
weft_status wf_step_measure(const struct wf_step *step, uint64_t *sent,
                            uint64_t *received) WF_NODISCARD;

/* ---- peers.c: a rank's peers ---- */

/* How a peer's coordinate on an axis follows from this rank's. */
enum wf_peer_relation {
    WF_PEER_SAME,     /* equal to this rank's */
    WF_PEER_ANY,      /* every coordinate */
    WF_PEER_BY_INDEX, /* coordinates whose indices intersect this rank's */
    WF_PEER_ONE       /* the one coordinate that the query gives */
};

struct wf_peer_query {
    const struct wf_layout *theirs; /* layout of the peers' shards */
    const struct wf_shard *mine;    /* this rank's shard, in the other layout */
    int32_t coord[WEFT_MAX_AXES];   /* this rank's coordinate */
    /* enum wf_peer_relation; an axis that splits BY_INDEX may be SAME */
    uint32_t relation[WEFT_MAX_AXES];
    int32_t one[WEFT_MAX_AXES]; /* WF_PEER_ONE: the coordinate */
};

/* Call TAKE with the coordinate of every peer, in a fixed order.  ANY axes in SKIP stay at 0; the
 * caller iterates over them.  Stops at the first failure. */
weft_status wf_peers_each(const struct wf_peer_query *query, uint32_t skip,
                          weft_status (*take)(void *self, const int32_t *coord),
                          void *self) WF_NODISCARD;

/* ---- regions.c: the boxes that two shards share ---- */

struct wf_region_list {
    weft_region *regions;
    uint64_t count, room;
};

uint64_t wf_region_elements(const weft_region *region);
/* Write the STRIDES of REGION in packed memory. */
void wf_region_pack(const weft_region *region, int64_t *strides);

/* Append the boxes that shards A and B share, in row-major order of the whole tensor: from A with
 * A_STRIDES to B with B_STRIDES, both in elements. */
weft_status wf_regions_add(struct wf_region_list *list, const struct wf_shard *a,
                           const int64_t *a_strides, const struct wf_shard *b,
                           const int64_t *b_strides, uint32_t source, uint32_t target) WF_NODISCARD;

#endif
