/* bound.h - a plan bound to communicators and scratch.
 *
 * bind.c makes it and its communicators, action.c turns a step into what this rank does, packing.c
 * lays out messages where ranks cannot read each other's memory, messages.c one side of them, run.c
 * does it, buffers.c looks at the memory it is given, average.c reduces what arrived, identity.c
 * makes single elements, places.c lays out scratch; batch.c binds and runs a batch, together.c the
 * exchange in which its tensors go together; strides.c refuses strides that cannot be meant. */
#ifndef WEFT_EXEC_BOUND_H
#define WEFT_EXEC_BOUND_H

#include "comm/comm.h"
#include "exec.h"
#include "weft/exec.h"

/* How a step is done. */
enum wf_way {
    WF_NOTHING,    /* this rank has no part in it */
    WF_COPY,       /* local regions */
    WF_PULL,       /* read straight out of the others' memory */
    WF_COLLECTIVE, /* the plugin's own, on whole buffers */
    WF_PACKED      /* pack, collective, unpack */
};

/* How contributions become one element. */
struct wf_arrival_kind {
    uint32_t dtype, reduction, holders; /* 1 holder: as it is */
    int64_t divisor;                    /* of an average */
};

/* One side of the packed way: what goes out, or what comes in.  Where messages lie in the tensor
 * itself, each in one run, there is no staging. */
struct wf_messages {
    uint64_t *counts, *offsets; /* in elements, by rank of the communicator */
    uint64_t staged;            /* elements of staging; 0: the tensor itself */
    void *staging;              /* in the bound plan's pool */
    void *list;                 /* regions between tensor and staging; NULL: none */
};

struct wf_packing {
    uint32_t collective; /* an all-to-all, or a gathering or scattering of whole shards */
    struct wf_messages out, in;
    struct wf_arrival_kind kind; /* of what comes in: several holders where unpacking reduces */
    struct wf_average *average;  /* of it, by the host; NULL: the backend reduces */
    uint32_t block_count;        /* of ranks that unpacking reads from */
    int32_t *blocks;             /* their ranks of the communicator */
    const void **arrivals;       /* where in the staging each of them arrives */
};

struct wf_action {
    enum wf_way way;
    uint32_t number; /* of the plan's step, from 1; 0: none of its */
    const struct wf_step *step;
    weft_comm *comm;             /* of those who take part; kept with the parent */
    bool member;                 /* this rank is one of them */
    bool from_source, to_target; /* of the whole; else its own input, or output, is in scratch */
    void *in_scratch, *out_scratch;
    struct wf_arrival_kind kind;
    uint64_t input_bytes; /* of this rank */
    uint64_t elements;    /* of its output */
    void *regions;        /* list: what is read, from where, to the output; NULL: nothing */
    int32_t *sources;     /* pull: ranks of COMM that region sources count in */
    int32_t *readers;     /* and those that read this rank's input */
    uint32_t reader_count;
    struct wf_packing packing;
    weft_collective_args collective;
    bool filled;
    _Alignas(16) unsigned char identity[16]; /* one element */
};

/* The memory of a shard. */
struct wf_extent {
    uint64_t elements;
    uint64_t bytes; /* from the first element to the end of the last */
    bool strided;   /* perhaps with gaps */
};

/* This rank's shards of one tensor. */
struct wf_memory {
    struct wf_extent source, target;
};

struct weft_bound {
    uint64_t made; /* of fork.h */
    weft_plan *plan;
    weft_context *context;
    weft_comm *parent;             /* NULL: it was released, as ENDED says */
    struct wf_dependent dependent; /* of PARENT */
    char ended[WF_CAUSE];
    void *device;
    const weft_device_table *device_table;
    const weft_kernel_table *kernel;
    uint32_t binding; /* its number on PARENT, the same on all ranks; from 1 */
    void *scratch;    /* NULL: none, or for a tensor of a batch the batch's */
    uint64_t scratch_bytes;
    struct wf_batch *batch;  /* NULL: one tensor */
    struct wf_memory memory; /* of the one */
    bool in_place, packed;
    bool checked;                 /* WEFT_CHECK: memory is compared with what the device knows */
    struct wf_step before, after; /* copies of a shard to and from row-major memory */
    uint32_t action_count;
    struct wf_action actions[];
};

/* ---- bind.c ---- */

/* As weft_plan_bind, for a plan of one tensor.  OF_BATCH: without scratch, which wf_places_set
 * gives it later. */
weft_status wf_bind(const weft_plan *plan, weft_comm *comm, const weft_bind_options *given,
                    bool of_batch, weft_bound **out) WF_NODISCARD;
/* The group of MESH's ranks that goes through RANK and differs in the axes of AXES alone: *COUNT of
 * them in *OUT, the caller's to free; 0 and NULL for a stranger. */
weft_status wf_group_list(const weft_mesh *mesh, uint32_t axes, int32_t rank, int32_t **out,
                          int32_t *count) WF_NODISCARD;
/* Can COMM carry a redistribution from FROM to TO? */
weft_status wf_bind_check(const weft_spec *from, const weft_spec *to,
                          const weft_comm *comm) WF_NODISCARD;
/* Come out of STEP ("binding") alike on all ranks: OK, or the error of the one that failed first;
 * STATUS is this rank's.  *BINDING, unless it is NULL, becomes the number of a new binding. */
weft_status wf_bind_agree(weft_comm *comm, const char *step, weft_status status,
                          const weft_plan *plan, const weft_bind_options *given,
                          uint32_t *binding) WF_NODISCARD;

/* Set the fields that all bound plans have. */
void wf_bound_begin(struct weft_bound *bound, const weft_plan *plan, weft_comm *comm,
                    const weft_bind_options *given);
/* Why BOUND cannot be used by FUNCTION: it is NULL, what it depends on was released, or it is a
 * parent process's. */
weft_status wf_bound_refuse(const weft_bound *bound, const char *function);

/* ---- buffers.c ---- */

/* The memory of RANK's shard of SPEC with STRIDES, which were checked; NULL: row-major. */
void wf_buffers_measure(const weft_spec *spec, int32_t rank, const int64_t *strides,
                        struct wf_extent *out);
/* Can BOUND be run with this memory, a source and a target for each tensor? */
weft_status wf_buffers_check(const char *function, const weft_bound *bound,
                             const void *const *sources, void *const *targets);

/* The common case without a call: true if SOURCE and TARGET can be MEMORY's, WEFT_CHECK apart. */
static inline bool wf_buffers_fit(const struct wf_memory *memory, const void *source,
                                  const void *target, bool in_place)
{
    bool reads = memory->source.elements > 0, writes = memory->target.elements > 0;

    return !(reads && source == NULL) && !(writes && target == NULL) &&
           (in_place || source != target || !reads || !writes);
}

/* ---- strides.c ---- */

/* Can STRIDES, called NAME by the caller, be those of RANK's shard of SPEC?  NULL can.  WRITTEN:
 * the shard is a target's. */
weft_status wf_strides_check(const char *name, const weft_spec *spec, int32_t rank,
                             const int64_t *strides, bool written) WF_NODISCARD;

/* ---- places.c ---- */

/* Bytes of scratch that BOUND's actions, which are set, need. */
uint64_t wf_places_bytes(const struct weft_bound *bound);
/* Give them their parts of SCRATCH, which is that large. */
void wf_places_set(struct weft_bound *bound, void *scratch);
/* Memory of BYTES for BOUND. */
weft_status wf_scratch_make(struct weft_bound *bound, uint64_t bytes) WF_NODISCARD;
void wf_scratch_free(struct weft_bound *bound);

/* ---- batch.c ---- */

weft_status wf_batch_bind(const weft_plan *plan, weft_comm *comm, const weft_bind_options *given,
                          weft_bound **out) WF_NODISCARD;
void wf_batch_clear(struct weft_bound *bound);
/* Of tensor TENSOR of BOUND, which may be the only one. */
const struct wf_memory *wf_bound_memory(const weft_bound *bound, uint32_t tensor);

/* ---- run.c ---- */

/* weft_redistribute of one tensor, whose memory was looked at, without the work. */
weft_status wf_run(const weft_bound *bound, const void *source, void *target,
                   weft_stream *stream) WF_NODISCARD;

/* ---- together.c ---- */

/* What has been packed or is to be unpacked in one go: the same element size; reduced: the same
 * kind. */
struct wf_parcel {
    uint32_t element; /* bytes */
    struct wf_arrival_kind kind;
    struct wf_region_list regions; /* only while binding */
    void *list;
    struct wf_average *average; /* of what is to be unpacked, by the host; NULL: the backend */
};

struct wf_parcels {
    struct wf_parcel *list;
    uint32_t count;
};

/* The exchange of several tensors.  Counts and offsets are bytes, by rank of the communicator. */
struct wf_together {
    bool member;
    weft_comm *comm;
    uint32_t count;
    uint32_t *tensors; /* which of the batch */
    struct wf_parcels packed, unpacked;
    void *send, *receive; /* in scratch */
    uint64_t send_bytes, receive_bytes;
    uint64_t *send_counts, *send_offsets, *receive_counts, *receive_offsets;
    const void **inputs; /* by tensor; set by each run */
    void **outputs;
    const void **arrivals; /* where in RECEIVE each tensor's part from each of its sources begins */
    uint64_t *arrival_offsets;
    uint32_t arrival_count;
};

/* Bind PLAN's exchange on BOUND's communicator.  Collective; STATUS is how binding went so far. */
weft_status wf_together_set(struct weft_bound *bound, const weft_bind_options *given,
                            weft_status status, struct wf_together *out) WF_NODISCARD;
/* Bytes of scratch that it needs. */
uint64_t wf_together_bytes(const struct wf_together *together);
/* Give it SCRATCH, which is that large. */
void wf_together_place(struct wf_together *together, void *scratch);
void wf_together_clear(struct weft_bound *bound, struct wf_together *together);
weft_status wf_together_run(const struct weft_bound *bound, struct wf_together *together,
                            const void *const *sources, void *const *targets,
                            weft_stream *stream) WF_NODISCARD;

/* ---- action.c ---- */

/* Fill in ACTION, whose step, communicator and places are set.  OUT_STRIDES are those of this
 * rank's output, and IN_STRIDES, which only local steps may have, of its input; NULL: row-major
 * without gaps. */
weft_status wf_action_set(struct weft_bound *bound, struct wf_action *action,
                          const int64_t *in_strides, const int64_t *out_strides) WF_NODISCARD;
void wf_action_clear(struct weft_bound *bound, struct wf_action *action);
/* The divisor of a collective or a pull of KIND; 0: it says nothing that the others do not. */
uint32_t wf_divisor_of(const struct wf_arrival_kind *kind);

/* ---- run.c ---- */

/* ACTION's collective on this memory. */
weft_status wf_action_collective(const struct weft_bound *bound, const struct wf_action *action,
                                 const void *in, void *out, weft_stream *stream) WF_NODISCARD;

/* ---- packing.c ---- */

/* The packed way for an action that reads PARTS (ranks already of the communicator). */
weft_status wf_packing_set(struct weft_bound *bound, struct wf_action *action,
                           const struct wf_parts *parts) WF_NODISCARD;
void wf_packing_clear(struct weft_bound *bound, struct wf_action *action);
/* Bytes of staging that ACTION needs. */
uint64_t wf_packing_bytes(const struct wf_action *action);
/* Give ACTION its staging. */
void wf_packing_place(struct wf_action *action, void *staging);
weft_status wf_packing_run(const struct weft_bound *bound, const struct wf_action *action,
                           const void *in, void *out, weft_stream *stream) WF_NODISCARD;

/* ---- average.c ---- */

/* Is it an average that plugin ABI 1.0 does not define: of integers, or divided by another number
 * than that of the holders? */
bool wf_average_is_own(const struct wf_arrival_kind *kind);
/* Do the backend's collectives and pulls reduce KIND as the plan means it? */
bool wf_average_is_native(const struct weft_bound *bound, const struct wf_arrival_kind *kind);
/* For a backend without a kernel for KIND: let the host average what REGIONS read, whose other ends
 * lie in the staging.  NULL: the backend has one. */
weft_status wf_average_make(struct weft_bound *bound, const struct wf_arrival_kind *kind,
                            uint64_t count, const weft_region *regions,
                            struct wf_average **out) WF_NODISCARD;
/* Host memory for a staging of BYTES; AVERAGE may be NULL. */
weft_status wf_average_give_room(struct weft_bound *bound, struct wf_average *average,
                                 uint64_t bytes) WF_NODISCARD;
void wf_average_free(struct weft_bound *bound, struct wf_average *average);

/* The messages of a step after their arrival. */
struct wf_arrivals {
    void *list;            /* of regions, from arrivals to the tensors */
    const void *const *at; /* by region source */
    void *staging;         /* that the arrivals lie in */
    struct wf_average *average;
};

/* Put it, or its reduction, into place. */
weft_status wf_arrivals_unpack(const struct weft_bound *bound, const struct wf_arrivals *given,
                               const struct wf_arrival_kind *kind, void *const *targets,
                               weft_stream *stream) WF_NODISCARD;

/* ---- messages.c ---- */

/* Change the ranks of PARTS from those of PARENT to those of COMM. */
weft_status wf_parts_renumber(struct wf_parts *parts, const weft_comm *parent,
                              const weft_comm *comm) WF_NODISCARD;

/* Which side of its region lies in the tensor. */
enum wf_end { WF_END_SOURCE, WF_END_TARGET };

/* How a tensor's regions become messages: PEERS names, by its other end's index, the rank of the
 * communicator that a region goes to or comes from; with HOLDERS, the first of so many. */
struct wf_letter {
    enum wf_end end;
    const int32_t *peers;
    int32_t size; /* of the communicator */
    uint32_t holders;
    bool in_rank_order; /* the collective has all messages at equal distances, by rank */
    bool is_shard;      /* the other end of a message is the peer's whole shard, in its own order */
};

/* Lay out REGIONS as MESSAGES, whose counts and offsets are allocated and zero.  Where staging is
 * needed, the regions' other ends are changed to it, and no list is made yet. */
void wf_messages_lay(const struct wf_letter *letter, uint64_t count, weft_region *regions,
                     struct wf_messages *messages);

/* ---- identity.c ---- */

/* The identity of REDUCTION as one element of DTYPE. */
void wf_element_identity(uint32_t dtype, uint32_t reduction, void *out);

#endif
