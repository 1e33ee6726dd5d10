/* experts.h - MoE dispatch and combine.
 *
 *     experts.c   experts on the ranks of an axis: their life
 *     routing.c   the counts of one step
 *     travel.c    dispatch and combine
 *
 * A rank has at most CHUNK experts: expert e is expert e % chunk of rank e / chunk. */
#ifndef WEFT_PARALLEL_EXPERTS_EXPERTS_H
#define WEFT_PARALLEL_EXPERTS_EXPERTS_H

#include "system/arguments.h"
#include "weft/experts.h"

/* What a rank sends to each other one: whether its counts are usable, then CHUNK counts. */
enum { WF_EXPERTS_FAULT, WF_EXPERTS_VALUE, WF_EXPERTS_COUNTS };

struct weft_experts {
    struct wf_system system;
    weft_context *context;
    weft_comm *comm;     /* of the axis */
    int32_t rank, ranks; /* of COMM */
    weft_mesh *mesh;     /* of its ranks */
    weft_experts_options options;
    int32_t chunk, first, mine;        /* the last two: experts of this rank */
    bool has_messages;                 /* the backend has */
    bool is_direct;                    /* the host reads the device's memory */
    bool is_inline;                    /* work on the default stream has run when a call returns */
    size_t words;                      /* that all ranks get together */
    int64_t *sent, *got;               /* words, on the host */
    int64_t *device_sent, *device_got; /* the same if IS_DIRECT */
    uint64_t *lists;                   /* counts and offsets of a weft_all_to_all_v, 4 x ranks */
    weft_routing *spares;
    uint32_t routings; /* not yet released; the memory of this object is freed after them */
    bool is_released;
};

struct weft_routing {
    weft_object object;
    weft_experts *experts;
    weft_routing *next; /* spare one */
    int64_t *start;     /* by expert: its first token on this rank; then the number of tokens */
    int64_t capacity;   /* 0: none */
    int64_t sent, received;
    int64_t *counts, *by_rank; /* of the public info */
};

/* ---- experts.c ---- */

weft_status wf_experts_check(const weft_experts *experts, const char *function) WF_NODISCARD;
/* A routing of EXPERTS was released. */
void wf_experts_forget(weft_experts *experts);
/* Have every rank get the words that the others have for it, or, if GATHER, the first word of each.
 * Wait for it. */
weft_status wf_experts_exchange(weft_experts *experts, bool gather,
                                weft_stream *stream) WF_NODISCARD;

/* ---- routing.c ---- */

weft_status wf_routing_check(const weft_routing *routing, const char *function) WF_NODISCARD;
void wf_routings_free(weft_routing *spares);

static inline int64_t wf_routing_tokens(const weft_routing *routing)
{
    return routing->start[routing->experts->options.experts];
}

/* Tokens of this rank that are sent to EXPERT. */
static inline int64_t wf_routing_kept(const weft_routing *routing, int32_t expert)
{
    int64_t count = routing->start[expert + 1] - routing->start[expert];

    return routing->capacity == 0 ? count : wf_min_i64(count, routing->capacity);
}

#endif
