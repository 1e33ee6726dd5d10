/* bound.h - a plan bound to communicators and scratch.
 *
 * bind.c makes it and its communicators, action.c turns a step into what this rank does, run.c does
 * it, identity.c makes single elements. */
#ifndef WEFT_EXEC_BOUND_H
#define WEFT_EXEC_BOUND_H

#include "comm/comm.h"
#include "exec.h"
#include "weft/exec.h"

/* Where an action finds its input and leaves its output. */
enum wf_buffer { WF_SOURCE, WF_TARGET, WF_FIRST_SCRATCH, WF_SECOND_SCRATCH };

/* How a step is done. */
enum wf_way {
    WF_NOTHING,    /* this rank has no part in it */
    WF_COPY,       /* local regions */
    WF_PULL,       /* read straight out of the others' memory */
    WF_COLLECTIVE, /* the plugin's own, on whole buffers */
    WF_PACKED      /* pack, all_to_all_v, unpack */
};

/* The packed way.  Offsets and counts are in elements, by rank of the communicator. */
struct wf_packing {
    void *pack;            /* list: input -> send buffer */
    void *send, *receive;  /* staging, the bound plan's */
    const void **arrivals; /* where in the receive buffer each of the parts' ranks arrives */
    uint64_t *send_counts, *send_offsets, *receive_counts, *receive_offsets;
};

struct wf_action {
    enum wf_way way;
    const struct wf_step *step;
    weft_comm *comm; /* of those who take part; kept with the parent */
    bool member;     /* this rank is one of them */
    enum wf_buffer in, out;
    uint32_t dtype, reduction, holders;
    uint64_t elements; /* of this rank's output */
    void *regions;     /* list: what is read, from where, to the output; NULL: nothing */
    int32_t *sources;  /* pull: ranks of COMM that region sources count in */
    struct wf_packing packing;
    weft_collective_args collective;
    bool scaled, filled;
    _Alignas(16) unsigned char scale[16], identity[16]; /* one element each */
};

struct weft_bound {
    weft_plan *plan;
    weft_context *context;
    weft_comm *parent;
    void *device;
    const weft_device_table *device_table;
    const weft_kernel_table *kernel;
    void *scratch[2];
    uint64_t scratch_bytes; /* with staging */
    bool in_place, packed;
    struct wf_step before, after; /* copies of a shard to and from row-major memory */
    uint32_t action_count;
    struct wf_action actions[];
};

/* ---- action.c ---- */

/* Fill in ACTION, whose step, communicator and places are set.  OUT_STRIDES are those of this
 * rank's output, and IN_STRIDES, which only local steps may have, of its input; NULL: row-major
 * without gaps. */
weft_status wf_action_set(struct weft_bound *bound, struct wf_action *action,
                          const int64_t *in_strides, const int64_t *out_strides) WF_NODISCARD;
void wf_action_clear(struct weft_bound *bound, struct wf_action *action);

/* ---- packing.c ---- */

/* The packed way for an action that reads PARTS (ranks already of the communicator). */
weft_status wf_packing_set(struct weft_bound *bound, struct wf_action *action,
                           const struct wf_parts *parts) WF_NODISCARD;
void wf_packing_clear(struct weft_bound *bound, struct wf_action *action);
weft_status wf_packing_run(const struct weft_bound *bound, const struct wf_action *action,
                           const void *in, void *out, weft_stream *stream) WF_NODISCARD;

/* ---- identity.c ---- */

/* The identity of REDUCTION as one element of DTYPE. */
void wf_element_identity(uint32_t dtype, uint32_t reduction, void *out);
/* 1 / DIVISOR as one element of DTYPE, a float or complex one. */
void wf_element_inverse(uint32_t dtype, int64_t divisor, void *out);

#endif
