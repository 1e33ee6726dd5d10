/* exec.h - plans carried out.
 *
 * peers.c finds whom a rank has to do with in a step, regions.c which boxes of memory move between
 * the two, parts.c puts both together for one rank, share.c says what that means for a step of a
 * plan; sim.c runs a plan for all ranks of a mesh in one thread. */
#ifndef WEFT_EXEC_EXEC_H
#define WEFT_EXEC_EXEC_H

#include "base/base.h"
#include "plan/plan.h"
#include "shard/shard.h"

/* ---- parts.c: one rank's share of a step ---- */

/* Everything that one rank reads, or everything that others read from it, in going from one spec
 * to the other; their meshes may differ.
 *
 * Ranks come in blocks of HOLDERS: those whose contributions are reduced to one value, in order.
 * A region's `source` (reading) or `target` (being read) is the index of its block's first rank in
 * RANKS; the other side is 0, this rank's own buffer.  Others' shards are row-major without gaps.
 *
 * A reader takes its own coordinate on the axes that hold copies, if it is in the source's mesh:
 * what it has itself it reads at home.  A stranger's place in the target's mesh says which copy it
 * reads, so that the copies share the work. */
struct wf_parts {
    uint32_t holders;   /* 1: plain copies */
    uint32_t reduction; /* of the holders' contributions */
    int64_t divisor;    /* of an average; less than HOLDERS where some axes add up */
    uint32_t rank_count;
    int32_t *ranks;
    uint64_t region_count;
    weft_region *regions;
    bool identity; /* reading: this rank holds the identity of its partial, and reads nothing */
};

/* What RANK reads to hold its shard of TO.  STRIDES are those of that shard in memory, in
 * elements; NULL: row-major without gaps. */
weft_status wf_parts_read(const weft_spec *from, const weft_spec *to, int32_t rank,
                          const int64_t *strides, struct wf_parts *out) WF_NODISCARD;
/* What others read of RANK's shard of FROM, whose memory has STRIDES.  Each reader is a block of
 * its own, whether it reduces or not. */
weft_status wf_parts_serve(const weft_spec *from, const weft_spec *to, int32_t rank,
                           const int64_t *strides, struct wf_parts *out) WF_NODISCARD;
void wf_parts_free(struct wf_parts *parts);

/* ---- share.c: one rank's share of a step of a plan ---- */

struct wf_share {
    struct wf_parts parts;
    bool filled;      /* the whole output is FILL's identity before anything is read into it */
    uint32_t fill;    /* a reduction */
    int64_t elements; /* of this rank's output */
};

/* Does no rank need another's input? */
bool wf_step_is_local(const struct wf_step *step);
/* Is the output's memory, on some rank, filled or reduced as one run of elements? */
bool wf_step_needs_dense_output(const struct wf_step *step);
/* Does every rank of a group read the whole shards of all, on one mesh: an all-gather by any name?
 * Depends on the step alone, so ranks agree. */
bool wf_step_gathers_shards(const struct wf_step *step);
/* Is every rank's shard the reduction of a part of all its group's: a reduce-scatter? */
bool wf_step_scatters_shards(const struct wf_step *step);
/* RANK's share of STEP.  OUT_STRIDES are those of its output and IN_STRIDES, which only local steps
 * may have, of its input; NULL: row-major without gaps. */
weft_status wf_share_of(const struct wf_step *step, int32_t rank, const int64_t *in_strides,
                        const int64_t *out_strides, struct wf_share *out) WF_NODISCARD;
void wf_share_free(struct wf_share *share);

/* ---- measure.c ---- */

/* Bytes received over all steps of a plan. */
struct wf_measure {
    uint64_t most; /* by the rank that receives most */
    uint64_t total;
};

/* Exact.  Some hundred nanoseconds per rank and step; PLAN is of one tensor. */
struct wf_measure wf_plan_measure(const weft_plan *plan);
/* What STEP's ranks send and receive, those that do most of each; exact.  Sending is found by
 * listing what every rank reads, so it takes as long as binding all of them; with more than 1024
 * ranks it is left as the plan has it. */
weft_status wf_step_measure(const struct wf_step *step, uint64_t *sent,
                            uint64_t *received) WF_NODISCARD;

/* ---- peers.c: whom a rank has to do with ---- */

/* How the peer's coordinate on an axis follows from one's own. */
enum wf_relation {
    WF_SAME,     /* it is one's own */
    WF_ANY,      /* each one is a peer */
    WF_BY_INDEX, /* those whose indices meet one's own */
    WF_FIRST     /* only coordinate 0 */
};

struct wf_meeting {
    const struct wf_layout *theirs;   /* layout that the peers' shards have */
    const struct wf_shard *mine;      /* one's own shard, in the other layout */
    int32_t coord[WEFT_MAX_AXES];     /* one's own */
    uint32_t relation[WEFT_MAX_AXES]; /* enum wf_relation; axes that split BY_INDEX may be SAME */
};

/* Call TAKE with the coordinate of every peer, in a fixed order; ANY axes in SKIP stay at 0 for the
 * caller to count through.  Stops at the first failure. */
weft_status wf_meet(const struct wf_meeting *meeting, uint32_t skip,
                    weft_status (*take)(void *self, const int32_t *coord), void *self) WF_NODISCARD;

/* ---- regions.c: the boxes that two shards share ---- */

struct wf_region_list {
    weft_region *regions;
    uint64_t count, room;
};

uint64_t wf_region_elements(const weft_region *region);
/* Write the STRIDES that REGION has where it lies packed. */
void wf_region_pack(const weft_region *region, int64_t *strides);

/* Append the boxes that shards A and B share, in row-major order of the whole tensor: from A with
 * A_STRIDES to B with B_STRIDES, both in elements. */
weft_status wf_regions_add(struct wf_region_list *list, const struct wf_shard *a,
                           const int64_t *a_strides, const struct wf_shard *b,
                           const int64_t *b_strides, uint32_t source, uint32_t target) WF_NODISCARD;

#endif
