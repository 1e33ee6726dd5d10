/* bound.h - a plan bound to communicators and scratch.
 *
 * bind.c makes the bound plan and its communicators, agree.c compares the ranks' plans, and
 * action.c turns a step into this rank's action.  context/ has what bound plans of a context share:
 * scratch, and the bound plans of moves.  packing.c lays out messages for ranks that cannot read
 * each other's memory, messages.c one side of them.  run/ runs the actions, with records. buffers.c
 * checks the memory that the caller passes, average.c reduces contributions that arrived, scratch.c
 * lays out scratch.  cast.c decides which steps cast while they move data.  batch.c binds and runs
 * a batch, fused.c its common exchange.  strides.c refuses invalid strides.  name.c describes plans
 * and steps in messages. */
#ifndef WEFT_EXEC_BOUND_H
#define WEFT_EXEC_BOUND_H

#include "comm/context/room.h"
#include "exec.h"
#include "weft/exec.h"
#include "ways.h"
#include "weft/move.h"

/* The kind of action that runs a step. */
enum wf_action_kind {
    WF_ACTION_NONE,       /* this rank does not take part */
    WF_ACTION_COPY,       /* local regions */
    WF_ACTION_PULL,       /* read straight out of peers' memory */
    WF_ACTION_EXCHANGE,   /* the same with the peers' help, where they cannot all be read */
    WF_ACTION_COLLECTIVE, /* the plugin's collective, on whole buffers */
    WF_ACTION_PACKED      /* pack, collective, unpack */
};

/* How contributions become one element. */
struct wf_arrival_kind {
    uint32_t dtype, reduction, holders; /* 1 holder: copied unchanged */
    int64_t divisor;                    /* divides an average */
};

/* The `divisor` of a collective or a pull of KIND; 0: the default of the ABI applies. */
static inline uint32_t wf_divisor_of(const struct wf_arrival_kind *kind)
{
    bool given = kind->reduction == WEFT_REDUCE_AVG && kind->divisor != kind->holders;

    return given ? (uint32_t)kind->divisor : 0;
}

/* One side of a packed action: the messages that go out, or those that come in.  Where each message
 * is one run of the tensor itself, there is no staging. */
struct wf_messages {
    uint64_t *counts, *offsets; /* in elements, by rank of the communicator */
    uint64_t staged;            /* elements of staging; 0: the tensor itself */
    void *staging;              /* in the bound plan's pool */
    void *list;                 /* regions between tensor and staging; NULL: none */
};

struct wf_packing {
    uint32_t collective; /* an all-to-all, or an all-gather or reduce-scatter of whole shards */
    struct wf_messages out, in;
    struct wf_arrival_kind kind; /* of incoming messages; several holders if unpacking reduces */
    struct wf_average *average;  /* the host averages; NULL: the backend reduces */
    uint32_t block_count;        /* ranks that unpacking reads from */
    int32_t *blocks;             /* their ranks of the communicator */
    const void **arrivals;       /* where each of their messages arrives in the staging */
};

struct wf_action {
    enum wf_action_kind type;
    uint32_t number; /* number of the plan's step, from 1; 0: not a step of the plan */
    const struct wf_step *step;
    weft_comm *comm; /* of the members; kept with the parent */
    bool member;     /* this rank takes part */
    /* the input is the source, the output the target; otherwise they are in scratch */
    bool from_source, to_target;
    void *in_scratch, *out_scratch;
    struct wf_arrival_kind kind; /* its dtype is that of messages */
    uint32_t from, to;           /* dtypes of the input and the output */
    uint64_t input_bytes;        /* bytes of this rank's input */
    uint64_t elements;           /* elements of its output */
    void *regions;               /* list of regions to read into the output; NULL: none */
    void *served;                /* exchange: list of what others read of the input */
    int32_t *sources;            /* pull, exchange: ranks of COMM, indexed by region sources */
    int32_t *readers;            /* pull, exchange: ranks that read this rank's input */
    uint32_t reader_count;
    struct wf_packing packing;
    weft_collective_args collective;
    weft_record draft; /* what is constant in its records */
    bool filled;
    _Alignas(16) unsigned char identity[16]; /* one element */
};

/* The memory of a shard. */
struct wf_extent {
    uint64_t elements;
    uint64_t bytes; /* from the first element to the end of the last */
    bool strided;   /* may have gaps */
    uint32_t dtype;
};

/* This rank's shards of one tensor. */
struct wf_memory {
    struct wf_extent source, target;
};

/* The steps of a bound plan: those of the plan, of which at most one is split in two. */
struct wf_bound_steps {
    uint32_t count;
    bool is_split;
    uint32_t split; /* number of the split step, from 0 */
    struct wf_cast_steps cast;
};

struct weft_bound {
    uint64_t made; /* of fork.h */
    weft_plan *plan;
    weft_context *context;
    weft_comm *parent; /* the plan has its rank numbers; NULL: released; ENDED describes how */
    weft_comm *team;   /* its ranks bind and run the plan together: PARENT, or a group of it */
    struct wf_dependent dependent; /* of TEAM */
    char ended[WF_CAUSE];
    void *device;
    const weft_device_table *device_table;
    struct wf_plan_runs own_runs, *runs; /* RUNS: its own, or for a tensor of a batch the batch's */
    const weft_kernel_table *kernel;     /* the plugin's, or the host's: see host/host.h */
    void *kernel_device;                 /* the DEVICE that its functions take */
    weft_record draft;                   /* what is constant in the records of its runs */
    uint32_t label;                      /* text: the caller's name for it, or that of the plan */
    bool is_named;                       /* LABEL is the caller's name */
    bool is_labelled;                    /* the label of DRAFT is another one: a tensor's name */
    uint32_t binding;                    /* its number on TEAM, the same on all ranks; from 1 */
    uint64_t scratch_bytes;
    void *given_scratch;     /* the caller's; NULL: of the context */
    struct wf_place *places; /* pieces of the context's scratch that it has run in */
    struct wf_place *place;  /* the one that the actions use now; NULL: none yet */
    struct wf_pool *held;    /* the current run holds it */
    bool is_cached;          /* a move's; the context releases it */
    bool averages_on_host;
    bool sized_only; /* only the size of its scratch is wanted: see context/size.c */
    weft_comm *sketches;
    struct wf_batch *batch;  /* NULL: one tensor */
    struct wf_memory memory; /* of that tensor */
    bool in_place, packed;
    bool exchanges;               /* where it would be packed, the backend's exchange may serve */
    uint32_t casts;               /* enum wf_cast_ways */
    struct wf_ways ways;          /* see wf_bind_call */
    bool may_alias;               /* the steps may run with the same memory as source and target */
    bool checked;                 /* WEFT_CHECK: memory is compared with its allocation */
    bool examined;                /* the next run asks the device about its memory: always if
                                     `checked`, else before the first run has been accepted */
    struct wf_step before, after; /* copies of a shard to and from row-major memory */
    struct wf_bound_steps steps;
    uint32_t action_count;
    struct wf_action actions[];
};

/* ---- bind.c ---- */

/* A call that binds. */
struct wf_bind_call {
    const char *function;        /* that the user called */
    weft_comm *parent;           /* plans have its rank numbers */
    weft_comm *team;             /* as in weft_bound */
    weft_bind_options given;     /* OPTIONS, completed */
    bool sized_only;             /* only the size of the scratch is wanted; nothing is created */
    bool is_cached;              /* for moves */
    const weft_move_item *named; /* the tensors of a batch that has names; NULL: it has none */
    const weft_kernel_table *kernel; /* NULL: that of wf_kernels_of */
    uint32_t casts;                  /* enum wf_cast_ways that all ranks have */
    struct wf_ways ways;             /* that all ranks have */
    int32_t *room;                   /* for a list of PARENT's ranks */
};

/* As weft_plan_bind, for a plan of one tensor.  OF_BATCH: without scratch, which the batch has. */
weft_status wf_bind(const weft_plan *plan, const struct wf_bind_call *call, bool of_batch,
                    weft_bound **out) WF_NODISCARD;
/* As weft_plan_bind with CALL's arguments.  STATUS is this rank's result so far: a rank that has
 * failed takes part, so that all ranks get its error.  PLAN may then be NULL. */
weft_status wf_plan_bind(const weft_plan *plan, const struct wf_bind_call *call, weft_status status,
                         weft_bound **out) WF_NODISCARD;
/* Allocate CALL's room, which the caller frees. */
weft_status wf_bind_give_room(struct wf_bind_call *call) WF_NODISCARD;
/* Check the arguments of CALL, whose communicators are set, and read OPTIONS into it. */
weft_status wf_bind_read(const weft_plan *plan, const weft_bind_options *options, const void *out,
                         struct wf_bind_call *call) WF_NODISCARD;
/* Bytes of scratch that PLAN, of one tensor, needs on this rank. */
weft_status wf_bind_size(const weft_plan *plan, const struct wf_bind_call *call,
                         uint64_t *bytes) WF_NODISCARD;
/* WEFT_OK if COMM can run a redistribution from FROM to TO; otherwise FUNCTION's error states why
 * not. */
weft_status wf_bind_check(const char *function, const weft_spec *from, const weft_spec *to,
                          const weft_comm *comm) WF_NODISCARD;

/* Set the fields that all bound plans have. */
void wf_bound_begin(struct weft_bound *bound, const weft_plan *plan,
                    const struct wf_bind_call *call);
/* Free BOUND, which the user has never had: a part of a batch, a move's, or one whose binding
 * failed.  NULL: nothing. */
void wf_bound_free(weft_bound *bound);
/* The error with which FUNCTION refuses BOUND: it is NULL, it or an object that it depends on was
 * released, or it belongs to a parent process. */
weft_status wf_bound_refuse(const weft_bound *bound, const char *function);

/* ---- agree.c ---- */

/* Results of a step that differ between ranks before it. */
struct wf_bind_outcome {
    uint32_t binding;    /* the number of the next binding */
    uint32_t casts;      /* enum wf_cast_ways that all ranks have */
    struct wf_ways ways; /* as in wf_bind_call */
};

/* Make the outcome of STEP ("binding") collective: WEFT_OK, or the error of the rank that failed
 * first.  STATUS is this rank's. */
weft_status wf_bind_agree(const struct wf_bind_call *call, const char *step, weft_status status,
                          const weft_plan *plan, struct wf_bind_outcome *out) WF_NODISCARD;

/* ---- buffers.c ---- */

/* The memory of RANK's shard of SPEC with STRIDES, which are valid; NULL: row-major. */
void wf_buffers_measure(const weft_spec *spec, int32_t rank, const int64_t *strides,
                        struct wf_extent *out);
/* WEFT_OK if BOUND can run with this memory, one source and one target per tensor; otherwise the
 * error of FUNCTION.  NAMED has the tensors' names; NULL: they have none. */
weft_status wf_buffers_check(const char *function, const weft_bound *bound,
                             const void *const *sources, void *const *targets,
                             const weft_move_item *named);

/* The same for a function that runs a bound plan of the caller, whose tensors have no names.
 * Without WEFT_CHECK, the device is not asked again where memory is, once a run has passed. */
weft_status wf_buffers_accept(const char *function, weft_bound *bound, const void *const *sources,
                              void *const *targets);
/* WEFT_OK if the device of CONTEXT can use the memory of ITEMS, of which this rank holds shards
 * without gaps, as far as the device knows; otherwise the error of FUNCTION. */
weft_status wf_items_check_place(weft_context *context, const char *function, uint32_t count,
                                 const weft_move_item *items) WF_NODISCARD;

/* Inline fast path of wf_buffers_check: true if SOURCE and TARGET may be MEMORY's, and are large
 * enough.  Not if memory is examined. */
static inline bool wf_buffers_fit(weft_comm *comm, const struct wf_memory *memory,
                                  const void *source, const void *target, bool in_place)
{
    bool reads = memory->source.elements > 0, writes = memory->target.elements > 0;

    return (in_place || source != target || !reads || !writes) && /* nothing is known of NULL */
           wf_room_fits(comm, source, memory->source.bytes) &&
           wf_room_fits(comm, target, memory->target.bytes);
}

/* ---- strides.c ---- */

/* WEFT_OK if STRIDES, which the caller knows as NAME, are valid for RANK's shard of SPEC, or NULL.
 * WRITTEN: the shard is a target's. */
weft_status wf_strides_check(const char *name, const weft_spec *spec, int32_t rank,
                             const int64_t *strides, bool written) WF_NODISCARD;

/* ---- cast.c ---- */

/* How a backend can cast while it moves data. */
enum wf_cast_ways { WF_CASTS_REGIONS = 1, WF_CASTS_PULLS = 2 };

/* Set *CASTS to the ways in which this rank's backend can make all casts of PLAN. */
weft_status wf_casts_find(const weft_plan *plan, const weft_comm *comm,
                          uint32_t *casts) WF_NODISCARD;

/* Set the steps of PLAN for COMM.  A step that casts is split if the backend cannot cast while it
 * moves data.  PACKED: messages are packed.  CASTS: enum wf_cast_ways that all ranks have.  The
 * answer is the same on all ranks.  The caller clears *OUT. */
weft_status wf_bound_steps_set(const weft_plan *plan, const weft_comm *comm, bool packed,
                               uint32_t casts, struct wf_bound_steps *out) WF_NODISCARD;
void wf_bound_steps_clear(struct wf_bound_steps *steps);
/* Step INDEX; *NUMBER, unless NULL, becomes the number of the plan's step that it is part of, from
 * 1. */
const struct wf_step *wf_bound_step(const weft_plan *plan, const struct wf_bound_steps *steps,
                                    uint32_t index, uint32_t *number);
/* True if STEP needs dense memory because the backend casts dense memory only. */
bool wf_cast_is_dense(uint32_t casts, const struct wf_step *step);
/* Cast from IN to OUT, in one local pass. */
weft_status wf_cast_run(const struct weft_bound *bound, const struct wf_action *action,
                        const void *in, void *out, weft_stream *stream) WF_NODISCARD;

/* ---- scratch.c ---- */

/* Bytes of scratch that BOUND's actions need.  The actions are set. */
uint64_t wf_scratch_bytes(const struct weft_bound *bound);
/* Assign the actions their parts of SCRATCH, which has that size; for a batch, those of all its
 * tensors. */
void wf_scratch_assign(struct weft_bound *bound, void *scratch);

/* ---- batch.c ---- */

weft_status wf_batch_bind(const weft_plan *plan, const struct wf_bind_call *call,
                          weft_bound **out) WF_NODISCARD;
/* Bytes of scratch that PLAN, a batch, needs on this rank. */
weft_status wf_batch_size(const weft_plan *plan, const struct wf_bind_call *call,
                          uint64_t *bytes) WF_NODISCARD;
void wf_batch_clear(struct weft_bound *bound);
/* Run a batch, or one tensor, for FUNCTION.  The memory and the stream are checked, and BOUND has
 * its scratch.  ROOM: see wf_run_aliased. */
weft_status wf_batch_run(weft_bound *bound, const void *const *sources, void *const *targets,
                         void *room, weft_stream *stream, weft_work **work,
                         const char *function) WF_NODISCARD;
/* True if the memory of every tensor passes the fast check.  IN_PLACE is the same in all calls for
 * BOUND. */
bool wf_batch_fits(weft_bound *bound, const void *const *sources, void *const *targets,
                   bool in_place);

/* ---- run.c ---- */

/* Run BOUND, which has one tensor, without creating a work.  The memory is checked. */
weft_status wf_run(const weft_bound *bound, const void *source, void *target,
                   weft_stream *stream) WF_NODISCARD;
/* Bytes for a copy of the source that a run of BOUND with this memory needs: 0, unless source and
 * target are the same memory and BOUND, which has one tensor, was not bound with in_place. */
uint64_t wf_run_room(const weft_bound *bound, const void *source, const void *target);
/* As wf_run; source and target may be the same memory.  ROOM has that many bytes. */
weft_status wf_run_aliased(const weft_bound *bound, const void *source, void *target, void *room,
                           weft_stream *stream) WF_NODISCARD;

/* ---- fused.c ---- */

/* Regions that are packed or unpacked in one call: equal element size and, if they are reduced or
 * cast, equal kind or dtypes. */
struct wf_region_group {
    uint32_t element;  /* bytes in a message */
    uint32_t from, to; /* dtypes of a cast; equal: none */
    struct wf_arrival_kind kind;
    struct wf_region_list regions; /* only while binding */
    void *list;
    struct wf_average *average; /* the host averages; NULL: the backend does */
};

struct wf_region_groups {
    struct wf_region_group *list;
    uint32_t count;
};

/* The common exchange of a batch.  Counts and offsets are bytes, by rank of the communicator. */
struct wf_fused {
    bool member;
    weft_comm *comm;
    uint32_t count;
    uint32_t *tensors; /* indices in the batch */
    struct wf_region_groups packed, unpacked;
    void *send, *receive; /* in scratch */
    uint64_t send_bytes, receive_bytes;
    uint64_t *send_counts, *send_offsets, *receive_counts, *receive_offsets;
    const void **inputs; /* by tensor; set by each run */
    void **outputs;
    const void **arrivals; /* where each tensor's part from each of its sources begins in RECEIVE */
    uint64_t *arrival_offsets;
    uint32_t arrival_count;
    weft_record draft; /* what is constant in its records */
};

/* The plan of MEMBER's own steps; NULL: it is part of the common exchange.  CASTS: enum
 * wf_cast_ways that all ranks have. */
static inline const weft_plan *wf_member_plan(const struct wf_member *member, uint32_t casts)
{
    bool casts_alone = member->spare != NULL && (casts & WF_CASTS_REGIONS) == 0;

    return casts_alone ? member->spare : member->alone;
}

/* The tensors of a batch. */
struct wf_batch {
    struct wf_fused fused;
    uint32_t together;  /* tensors of the common exchange */
    weft_bound **alone; /* by tensor; NULL: part of the common exchange */
    struct wf_memory *memory;
    /* The addresses that passed wf_batch_fits last, sources before targets, and how often memory
     * had been freed then; UINT64_MAX: none have passed. */
    const void **passed;
    uint64_t frees;
    const weft_move_item *named; /* the tensors of the current call, which has names; may be NULL */
    const char *made_for;        /* the operator that needs the current call; NULL: none */
    bool is_labelled;            /* the records of the steps have these names, and no operator */
};

/* The memory of tensor TENSOR of BOUND, which may be the only one. */
static inline const struct wf_memory *wf_bound_memory(const weft_bound *bound, uint32_t tensor)
{
    return bound->batch != NULL ? &bound->batch->memory[tensor] : &bound->memory;
}

/* Bind the common exchange of BOUND's plan.  Collective; STATUS is the outcome of binding so far.
 * ROOM is that of wf_bind_call. */
weft_status wf_fused_set(struct weft_bound *bound, const weft_bind_options *given, int32_t *room,
                         weft_status status, struct wf_fused *out) WF_NODISCARD;
/* Bytes of scratch that the exchange needs. */
uint64_t wf_fused_bytes(const struct wf_fused *fused);
/* Assign SCRATCH, which has that size. */
void wf_fused_assign(struct wf_fused *fused, void *scratch);
void wf_fused_clear(struct weft_bound *bound, struct wf_fused *fused);
weft_status wf_fused_run(const struct weft_bound *bound, struct wf_fused *fused,
                         const void *const *sources, void *const *targets,
                         weft_stream *stream) WF_NODISCARD;

/* ---- action.c ---- */

/* Set ACTION, whose step, communicator, input and output are set.  OUT_STRIDES are those of this
 * rank's output; IN_STRIDES, for local steps only, those of its input.  NULL: row-major without
 * gaps. */
weft_status wf_action_set(struct weft_bound *bound, struct wf_action *action,
                          const int64_t *in_strides, const int64_t *out_strides) WF_NODISCARD;
void wf_action_clear(struct weft_bound *bound, struct wf_action *action);

/* ---- packing.c ---- */

/* The collective of ACTION as a packed action.  All members make the same choice: it follows from
 * the step, their shards' sizes, and what the backends of all ranks have. */
uint32_t wf_packing_collective(const struct weft_bound *bound, const struct wf_action *action);
/* Set up ACTION, which reads PARTS, as a packed action.  The ranks of PARTS are already those of
 * the communicator. */
weft_status wf_packing_set(struct weft_bound *bound, struct wf_action *action,
                           const struct wf_parts *parts) WF_NODISCARD;
void wf_packing_clear(struct weft_bound *bound, struct wf_action *action);
/* Bytes of staging that ACTION needs. */
uint64_t wf_packing_bytes(const struct wf_action *action);
/* Assign ACTION its staging. */
void wf_packing_place(struct wf_action *action, void *staging);

/* ---- average.c ---- */

/* Is KIND an average of integers, or with a divisor that is not the number of holders?  Vendors'
 * libraries have none. */
bool wf_average_is_own(const struct wf_arrival_kind *kind);
/* True if the collectives and pulls of the backend reduce KIND as the plan requires. */
bool wf_average_is_native(const struct weft_bound *bound, const struct wf_arrival_kind *kind);
/* For a backend without a kernel for KIND: let the host average the elements that REGIONS read.
 * The other ends of REGIONS are in the staging.  NULL: the backend has a kernel. */
weft_status wf_average_make(struct weft_bound *bound, const struct wf_arrival_kind *kind,
                            uint64_t count, const weft_region *regions,
                            struct wf_average **out) WF_NODISCARD;
/* Allocate host memory for a staging of BYTES; AVERAGE may be NULL. */
weft_status wf_average_give_room(struct weft_bound *bound, struct wf_average *average,
                                 uint64_t bytes) WF_NODISCARD;
void wf_average_free(struct weft_bound *bound, struct wf_average *average);

/* The messages of a step after their arrival. */
struct wf_arrivals {
    void *list;            /* regions, from arrivals to the tensors */
    const void *const *at; /* by region source */
    void *staging;         /* memory of the arrivals */
    struct wf_average *average;
    uint32_t to; /* dtype of the tensors */
};

/* Copy the arrivals, or their reduction, into the tensors. */
weft_status wf_arrivals_unpack(const struct weft_bound *bound, const struct wf_arrivals *given,
                               const struct wf_arrival_kind *kind, void *const *targets,
                               weft_stream *stream) WF_NODISCARD;

/* ---- messages.c ---- */

/* Renumber the ranks of PARTS from PARENT to COMM. */
weft_status wf_parts_renumber(struct wf_parts *parts, const weft_comm *parent,
                              const weft_comm *comm) WF_NODISCARD;

/* The side of a region that is in the tensor. */
enum wf_end { WF_END_SOURCE, WF_END_TARGET };

/* How the regions of a tensor become messages.  PEERS maps the index of a region's other end to the
 * rank of the communicator that the region goes to or comes from; with HOLDERS, to the first of
 * that many. */
struct wf_message_layout {
    enum wf_end end;
    const int32_t *peers;
    int32_t size; /* ranks of the communicator */
    uint32_t holders;
    bool in_rank_order; /* the collective needs messages at equal distances, by rank */
    bool is_cast;       /* the tensor has another dtype than messages */
    /* the other end of a message is the peer's whole shard, in row-major order */
    bool is_shard;
};

/* Lay out REGIONS as MESSAGES, whose counts and offsets are allocated and zero.  Where staging is
 * needed, the regions' other ends are changed to it, and no list is made yet. */
void wf_messages_lay(const struct wf_message_layout *layout, uint64_t count, weft_region *regions,
                     struct wf_messages *messages);

/* ---- name.c ---- */

/* Write PLAN, "f32[8] S(0) -> f32[8] R on 4, by all-gather", as far as it fits; "" without memory
 * for it.  Of a batch, WITH_STEPS adds the first tensor. */
void wf_plan_name(const weft_plan *plan, bool with_steps, char *out, size_t bytes);
/* The same for one tensor of a batch. */
void wf_tensor_name(const struct wf_member *member, char *out, size_t bytes);
/* ACTION of BOUND failed with STATUS, which is returned: name the plan and the step before the
 * thread's last error. */
weft_status wf_step_failed(const weft_bound *bound, const struct wf_action *action,
                           weft_status status);
/* FUNCTION failed with STATUS.  Put the caller's NAME of a tensor, or of a batch, into the text; ""
 * and NULL: the caller gave no name. */
weft_status wf_fail_tensor(weft_status status, const char *function, const char *what,
                           const char *name);
/* The caller's name of BOUND, which is usable; "" without one. */
const char *wf_bound_name(const weft_bound *bound);
/* The run of BOUND by FUNCTION failed with STATUS, which is returned.  LAST: see wf_runs_undo. */
weft_status wf_run_failed(const weft_bound *bound, uint64_t last, weft_status status,
                          const char *function);
/* Refuse a run of BOUND by FUNCTION, because a call group is open. */
weft_status wf_run_refuse_group(const weft_bound *bound, const char *function);

/* The trace, while records are wanted; NULL: they are not. */
static inline struct wf_trace *wf_tracing(const weft_bound *bound)
{
    return atomic_load_explicit(&bound->context->tracing, memory_order_relaxed);
}

#endif
