/* fsdp.h - parameters that are gathered for their use, and gradients that are reduced to shards.
 *
 *     root.c      streams and communicators, which groups share
 *     group.c     the life of a group
 *     memory.c    memory of the caller for gathered parameters and reduced gradients
 *     layout.c    layouts of gathered parameters and of gradients
 *     exchange.c  a batch of moves, bound to a communicator of its own
 *     gather.c    gathered parameters: their memory and their state
 *     divide.c    what gradients are divided by, and when
 *     elements.c  local arithmetic on tensors
 *     sums.c      gradients added up on this rank, and the memory of gradients
 *     reduce.c    gradients reduced, as one exchange
 *     gradients.c the calls with gradients
 *     state.c     what a group tells of itself */
#ifndef WEFT_PARALLEL_FSDP_FSDP_H
#define WEFT_PARALLEL_FSDP_FSDP_H

#include "system/arguments.h"
#include "system/here.h"
#include "weft/extend.h"
#include "weft/fsdp.h"

/* ---- exchange.c ---- */

/* Moves that run together, always on one stream. */
struct wf_exchange {
    struct wf_exchange *next;
    weft_context *context;
    weft_plan *plan;
    weft_comm *channel; /* NULL: the ranks are simulated, or this one has no part */
    weft_bound *bound;  /* NULL without CHANNEL */
    bool is_local;      /* no communication */
    uint32_t count;
    const void **sources; /* of the next run */
    void **targets;
    void **lists;            /* of simulated ranks: the memory that SOURCES and TARGETS list */
    const weft_spec **pairs; /* FROM and TO of each tensor */
};

/* A list of moves from FROM[i] to TO[i] that is to be found. */
struct wf_exchange_query {
    weft_context *context;
    weft_comm *channel;    /* has the ranks of the world; NULL as in wf_exchange */
    const weft_mesh *mesh; /* the ranks of all meshes */
    const char *name, *function;
    struct wf_text *options; /* fields that must be equal on all ranks; NULL: none */
    uint32_t count;
    const weft_spec *const *from, *const *to;
};

/* Find the exchange of QUERY in *LIST, or add it, which is collective over the ranks of the meshes.
 * STATUS is this rank's result so far. */
weft_status wf_exchange_find(struct wf_exchange **list, const struct wf_exchange_query *query,
                             weft_status status, struct wf_exchange **out) WF_NODISCARD;
/* Tensor INDEX of the next run moves from SOURCE to TARGET. */
weft_status wf_exchange_set(struct wf_exchange *exchange, uint32_t index, const weft_tensor *source,
                            const weft_tensor *target) WF_NODISCARD;
weft_status wf_exchange_run(struct wf_exchange *exchange, weft_stream *stream,
                            const char *function) WF_NODISCARD;
/* This rank cannot run EXCHANGE: the other ranks get an error too.  Returns it. */
weft_status wf_exchange_give_up(struct wf_exchange *exchange, weft_status status,
                                const char *function) WF_NODISCARD;
void wf_exchanges_free(struct wf_exchange **list);

/* ---- root.c ---- */

/* A group whose gathered memory is freed by WORK. */
struct wf_fsdp_freed {
    struct wf_fsdp_freed *next;
    weft_work *work;
};

struct weft_fsdp {
    weft_object object;
    weft_context *context;     /* NULL: it has ended */
    char cause[80];            /* why */
    weft_dependent *dependent; /* of the world communicator */
    weft_fsdp *older, *newer;  /* of the same context */
    char *shard, *replicate;   /* the axes of groups that name none, as texts */
    weft_stream *compute, *gather, *reduce;
    bool owns_streams;
    weft_comm *gather_comm, *reduce_comm; /* NULL if ranks are simulated */
    size_t groups_max, groups_gathered;
    weft_fsdp_group *groups;                  /* that exist */
    bool is_released;                         /* by the caller; it ends with its last group */
    struct wf_fsdp_freed *freed, **freed_end; /* oldest first */
    uint32_t freed_count;
};

weft_status wf_fsdp_check(const weft_fsdp *fsdp, const char *function) WF_NODISCARD;
/* The time limit of waits. */
int64_t wf_fsdp_timeout(const weft_fsdp *fsdp);
/* True if TENSOR is a parameter of a group of CONTEXT. */
bool wf_fsdp_has(weft_context *context, const weft_tensor *tensor);
/* GROUP is one of FSDP's groups. */
void wf_fsdp_join(weft_fsdp *fsdp, weft_fsdp_group *group);
/* GROUP is not one of FSDP's groups any more, nor in their lists. */
void wf_fsdp_part(weft_fsdp *fsdp, const weft_fsdp_group *group);
/* Free FSDP if the caller has released it and it has no group. */
void wf_fsdp_end_if_unused(weft_fsdp *fsdp);
/* Work on LATER begins after the work that is on EARLIER now. */
weft_status wf_fsdp_follow(weft_fsdp *fsdp, weft_stream *earlier, weft_stream *later,
                           const char *function) WF_NODISCARD;
/* The error of WORK, if it is known now.  WORK may be NULL. */
weft_status wf_fsdp_work_error(weft_work *work) WF_NODISCARD;
/* The limit allows one more group to be gathered. */
bool wf_fsdp_has_room(const weft_fsdp *fsdp);
/* One more group is gathered: wait until the limit allows it. */
weft_status wf_fsdp_enter(weft_fsdp *fsdp, const char *function) WF_NODISCARD;
/* The memory of a gathered group is freed after the work that is on STREAM now. */
weft_status wf_fsdp_leave(weft_fsdp *fsdp, weft_stream *stream, const char *function) WF_NODISCARD;

/* ---- group.c ---- */

/* From which layout to which a gradient of layout GIVEN is reduced in DTYPE. */
struct wf_fsdp_route {
    weft_spec *given, *from, *to; /* FROM has averages where GIVEN has sums; NULL: none yet */
    uint32_t dtype;
    bool stays_partial; /* TO is partial along the replicate axes */
};

struct wf_fsdp_param {
    uint32_t same_as;          /* the first index of the same tensor */
    bool is_shared;            /* of the first one: the tensor is listed again */
    bool frozen, has_gradient; /* HAS_GRADIENT: GRADIENT has been reduced since the last clear */
    bool asked_frozen;         /* by the caller; FROZEN is also a parameter that is not of floats */
    uint32_t shard, replicate; /* axes, a bit each */
    int32_t ranks, replicas;   /* along them */
    weft_tensor *stored;
    weft_tensor *gathered, *kept;      /* their memory comes and goes; KEPT may be NULL */
    uint64_t gathered_room, kept_room; /* in the blocks of the group */
    bool has_memory;                   /* GATHERED is the caller's, and its memory stays */
    bool owns_gradient;                /* GRADIENT is not the caller's */
    weft_spec *gradient_spec;          /* of a gradient that the caller gives; NULL: frozen */
    weft_tensor *gradient;             /* reduced; NULL: none yet */
    weft_tensor *sum;                  /* of gradients that were not reduced; NULL: none */
    weft_tensor *partial;              /* reduced along the shard axes only; NULL: none */
    struct wf_fsdp_route route;        /* of the last reduction */
};

/* The gradient of parameter INDEX. */
struct wf_fsdp_given {
    const weft_tensor *gradient;
    uint32_t index;
};

struct wf_fsdp_list {
    size_t count;
    weft_fsdp_group **groups;
};

struct weft_fsdp_group {
    weft_object object;
    weft_fsdp *fsdp;
    weft_fsdp_group *next; /* of FSDP's groups */
    weft_dependent *dependent;
    bool has_ended; /* with its context, because of CAUSE */
    char cause[80];
    weft_mesh *mesh; /* the ranks of all meshes of its parameters */
    bool has_part;   /* this rank is among them, and ranks are not simulated */
    char *name;
    uint32_t count;
    struct wf_fsdp_param *params;
    int32_t gather_dtype, reduce_dtype, gradient_dtype; /* -1: not given */
    double divide;
    bool sum_only, absent_as_zero;

    enum weft_fsdp_state state;
    enum weft_fsdp_phase phase; /* of the last gather */
    bool was_prefetched; /* the gather was begun for another group; the caller may begin it */
    bool reducing;
    void *gathered_block, *kept_block;
    uint64_t gathered_room, kept_room; /* bytes of the blocks */
    int32_t kept_ranks;                /* of the tensors `kept` */
    struct wf_exchange *gathers, *reductions;
    const weft_spec **from, **to; /* room for the layouts of an exchange */
    struct wf_fsdp_item *items;   /* room for a reduction */
    struct wf_fsdp_given *given;  /* room for its gradients */
    /* A gather until it is dropped; a reduction until the next one, or until gradients are cleared.
     * NULL: it is on the compute stream. */
    weft_work *gather_work, *reduce_work;
    struct wf_fsdp_list prefetch[2]; /* by phase */
    uint64_t bytes_now, bytes_peak;  /* allocated */
};

weft_status wf_fsdp_group_check(const weft_fsdp_group *group, const char *function) WF_NODISCARD;
/* Put the group's name, if it has one, before this thread's last failure text. */
weft_status wf_fsdp_fail(const weft_fsdp_group *group, weft_status status, const char *function);
static inline bool wf_fsdp_is_first(const weft_fsdp_group *group, uint32_t index)
{
    return group->params[index].same_as == index;
}

/* The exchange of the first COUNT layouts in GROUP's FROM and TO, on the communicator of LIST,
 * GATHERS or REDUCTIONS.  The first one of GROUP also compares its options.  STATUS is this rank's
 * result so far. */
weft_status wf_fsdp_exchange(weft_fsdp_group *group, struct wf_exchange **list, uint32_t count,
                             const char *function, weft_status status,
                             struct wf_exchange **out) WF_NODISCARD;

/* ---- memory.c ---- */

/* True if all shards of TENSOR here are row-major without gaps. */
bool wf_fsdp_is_dense(const weft_tensor *tensor);

/* The caller's TENSOR, field FIELD of a parameter, is to hold what has layout SPEC: *OUT becomes a
 * reference to it. */
weft_status wf_fsdp_use_memory(const weft_tensor *tensor, const weft_spec *spec, const char *field,
                               weft_tensor **out) WF_NODISCARD;
/* The caller's TENSOR, which may be NULL, is to hold the reduced gradient of PARAM. */
weft_status wf_fsdp_use_gradient(const weft_fsdp_group *group, struct wf_fsdp_param *param,
                                 const weft_tensor *tensor) WF_NODISCARD;
/* Tensors of the caller, and what a gather or a reduction writes, do not overlap. */
weft_status wf_fsdp_check_apart(const weft_fsdp_group *group) WF_NODISCARD;

/* ---- layout.c ---- */

/* The axes of MESH that TEXT lists, a bit each. */
weft_status wf_fsdp_axes(const weft_mesh *mesh, const char *text, uint32_t *out) WF_NODISCARD;
/* No axis of SHARDS, which the text SHARD lists, is one of REPLICATES. */
weft_status wf_fsdp_apart(const weft_mesh *mesh, uint32_t shards, uint32_t replicates,
                          const char *shard, const char *replicate) WF_NODISCARD;
/* SPEC with PLACEMENT on AXES, and DTYPE unless it is -1. */
weft_status wf_fsdp_replace(const weft_spec *spec, uint32_t axes, weft_placement placement,
                            int32_t dtype, weft_spec **out) WF_NODISCARD;
/* SPEC with P(OP) on AXES, and DTYPE unless it is -1. */
weft_status wf_fsdp_partial(const weft_spec *spec, uint32_t axes, uint32_t op, int32_t dtype,
                            weft_spec **out) WF_NODISCARD;
void wf_fsdp_clear_route(struct wf_fsdp_route *route);
/* The layout of the part that is kept of a gathered parameter of layout GATHERED, which is stored
 * with PLACEMENT on AXIS: it is split among each RANKS consecutive ranks of the axis. */
weft_status wf_fsdp_kept_spec(const weft_spec *gathered, const weft_placement *placement,
                              int32_t axis, int32_t ranks, weft_spec **out) WF_NODISCARD;

/* ---- gather.c ---- */

/* Bytes of TENSOR, rounded up, in the block of its group. */
uint64_t wf_fsdp_room(const weft_tensor *tensor);
/* Release the kept part of PARAM, if it has one; other references to it are refused with REASON. */
void wf_fsdp_drop_kept(struct wf_fsdp_param *param, const char *reason);
/* Free what is gathered or kept, after the work that is on the compute stream now. */
weft_status wf_fsdp_drop(weft_fsdp_group *group, const char *function) WF_NODISCARD;
/* GROUP is released: drop it, and wait for all its work. */
void wf_fsdp_wait(weft_fsdp_group *group);

/* ---- divide.c ---- */

struct wf_division {
    double before; /* each contribution is multiplied by it; 1: it is not */
    uint32_t shard_op, replicate_op;
    double after; /* the result is multiplied by it; 1: it is not */
};

/* The division of a gradient that is added up in DTYPE over RANKS times REPLICAS ranks.  DIVIDE is
 * the caller's; 0: not given. */
struct wf_division wf_fsdp_division(uint32_t dtype, int32_t ranks, int32_t replicas, double divide,
                                    bool sum_only);

/* ---- elements.c: on all shards here, in the order of STREAM ---- */

/* Multiply by FACTOR, which is rounded to the dtype. */
weft_status wf_fsdp_scale(weft_tensor *tensor, double factor, weft_stream *stream) WF_NODISCARD;
/* Add SOURCE, of the same layout and dtype without gaps, to TARGET. */
weft_status wf_fsdp_add(weft_tensor *source, weft_tensor *target, weft_stream *stream) WF_NODISCARD;
/* Set TARGET, of the same layout without gaps, to SOURCE in the dtype of TARGET. */
weft_status wf_fsdp_cast(weft_tensor *source, weft_tensor *target,
                         weft_stream *stream) WF_NODISCARD;

/* ---- sums.c ---- */

/* The dtype in which gradients of PARAM are added up.  GRADIENT may be NULL. */
uint32_t wf_fsdp_reduce_dtype(const weft_fsdp_group *group, const struct wf_fsdp_param *param,
                              const weft_tensor *gradient);
/* Make a tensor that counts as memory of GROUP.  NAME may be NULL. */
weft_status wf_fsdp_make(weft_fsdp_group *group, const weft_spec *spec, const char *name,
                         const char *function, weft_tensor **out) WF_NODISCARD;
/* Release *TENSOR of wf_fsdp_make, which may be NULL. */
void wf_fsdp_free(weft_fsdp_group *group, weft_tensor **tensor);
/* Make a tensor with the elements of GRADIENT in DTYPE; or with zeros. */
weft_status wf_fsdp_make_cast(weft_fsdp_group *group, weft_tensor *gradient, uint32_t dtype,
                              const char *function, weft_tensor **out) WF_NODISCARD;
weft_status wf_fsdp_make_zeros(weft_fsdp_group *group, const weft_spec *spec, const char *function,
                               weft_tensor **out) WF_NODISCARD;
/* Add GRADIENT, or zeros if it is NULL and zeros are wanted, to the sum of PARAM. */
weft_status wf_fsdp_sum(weft_fsdp_group *group, struct wf_fsdp_param *param, weft_tensor *gradient,
                        const char *function) WF_NODISCARD;
/* The gradients of a parameter that is listed again are added to the sum of the first one. */
weft_status wf_fsdp_sum_shared(weft_fsdp_group *group, weft_tensor *const *gradients,
                               const char *function) WF_NODISCARD;

/* ---- reduce.c ---- */

/* The dtype of the reduced gradient of PARAM. */
static inline uint32_t wf_fsdp_gradient_dtype(const weft_fsdp_group *group,
                                              const struct wf_fsdp_param *param)
{
    return group->gradient_dtype >= 0 ? (uint32_t)group->gradient_dtype
                                      : weft_spec_dtype(weft_tensor_spec(param->stored));
}
/* Reduce GRADIENTS, or the sums of parameters that have one; then, without WEFT_FSDP_SHARD_ONLY,
 * reduce what was reduced along the shard axes only along the replicate axes too.  STATUS is this
 * rank's result so far: if it fails, the other ranks do not wait for it. */
weft_status wf_fsdp_reduce(weft_fsdp_group *group, weft_tensor *const *gradients, uint32_t flags,
                           weft_status status, const char *function) WF_NODISCARD;

/* A gradient on its way from one layout to another. */
struct wf_fsdp_item {
    uint32_t index;               /* of the parameter */
    weft_tensor *source, *target; /* SOURCE is borrowed until IS_SET */
    bool is_set, owns_source;     /* IS_SET: a reference; OWNS_SOURCE: the reduction has made it */
    weft_spec *from, *to;         /* FROM has the averages, which the layout of SOURCE has not */
    struct wf_division division;
    bool stays_partial; /* TO is partial along the replicate axes */
};

/* ---- state.c ---- */

/* GROUP has allocated BYTES more, or less. */
void wf_fsdp_count(weft_fsdp_group *group, int64_t bytes);

#endif
