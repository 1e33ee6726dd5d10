/* buffers.c - the memory that a bound plan runs with, checked before anything moves.
 *
 * Always checked: memory that is needed is not NULL, source and target are not the same memory, and
 * the allocation is as large as the shard, as far as the device knows.
 * At the first run, and when a move is bound: the device can use the memory, as far as it knows.
 * With WEFT_CHECK also: memory is aligned to its elements, the process can read host memory as far
 * as the shard reaches, and a target does not overlap other memory, nor scratch of the caller any
 * memory.  Overlap is detected between shards without gaps only, because strided shards may
 * interleave. */
#include "bound.h"

#include "base/range.h"
#include "comm/check.h"

#include <stdio.h>

void wf_buffers_measure(const weft_spec *spec, int32_t rank, const int64_t *strides,
                        struct wf_extent *out)
{
    uint64_t reach = 1;
    struct wf_shard shard;

    wf_shard_of(spec, rank, &shard);
    *out = (struct wf_extent){.elements = (uint64_t)shard.elements, .strided = strides != NULL};
    if (shard.elements == 0) return;
    for (int32_t d = 0; strides != NULL && d < shard.dims; d++)
        if (shard.shape[d] > 1) reach += (uint64_t)(shard.shape[d] - 1) * (uint64_t)strides[d];
    if (strides == NULL) reach = out->elements;
    out->bytes = reach * wf_dtype_bytes(spec->layout.dtype);
    out->dtype = spec->layout.dtype;
}

enum { SIDE_NAME = 96 };

/* One tensor's side, as the caller gave it. */
struct side {
    const struct wf_extent *extent;
    const void *memory;
    char name[SIDE_NAME]; /* "source", "targets[3]", "the source of w1" */
};

struct question {
    const char *function;
    const weft_bound *bound;
    const void *const *sources;
    void *const *targets;
    const weft_move_item *named; /* NULL: the tensors have no names */
    uint32_t count;
};

/* NAMED: as in struct question.  ALONE: there is one tensor. */
static void name_side(char *out, size_t size, const weft_move_item *named, bool alone,
                      uint32_t tensor, bool is_target)
{
    const char *side = is_target ? "target" : "source";

    if (named != NULL && named[tensor].name != NULL)
        snprintf(out, size, "the %s of %s", side, named[tensor].name);
    else if (named != NULL)
        snprintf(out, size, "items[%u].%s", tensor, side);
    else if (alone)
        snprintf(out, size, "%s", side);
    else
        snprintf(out, size, "%ss[%u]", side, tensor);
}

static struct side side_of(const struct question *q, uint32_t tensor, bool is_target)
{
    const struct wf_memory *memory = wf_bound_memory(q->bound, tensor);
    struct side side = {.extent = is_target ? &memory->target : &memory->source,
                        .memory = is_target ? q->targets[tensor] : q->sources[tensor]};

    name_side(side.name, sizeof side.name, q->named, q->bound->batch == NULL, tensor, is_target);
    return side;
}

static weft_status check_null(const struct question *q, const struct side *side)
{
    if (side->memory != NULL || side->extent->elements == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: %s is NULL, but rank %d's shard of it has %llu elements",
                   q->function, side->name, weft_comm_rank(q->bound->parent),
                   (unsigned long long)side->extent->elements);
}

/* The device can use EXTENT of MEMORY, the argument NAME. */
static weft_status check_place(weft_context *context, const char *function,
                               const struct wf_extent *extent, const void *memory, const char *name)
{
    weft_status status;

    if (extent->bytes == 0 || memory == NULL) return WEFT_OK;
    status = wf_place_check(context, memory, NULL, name, "weft_alloc returns memory of the device");
    if (status == WEFT_OK) return WEFT_OK;
    return wf_fail_context(status, "%s: on rank %d", function, weft_rank(context));
}

weft_status wf_items_check_place(weft_context *context, const char *function, uint32_t count,
                                 const weft_move_item *items)
{
    bool alone = count == 1 && items[0].name == NULL;

    if ((context->features & WEFT_FEATURE_HOST_MEMORY) != 0) return WEFT_OK;
    for (uint32_t i = 0; i < 2 * count; i++) {
        const weft_move_item *item = &items[i / 2];
        bool is_target = i % 2 == 1;
        struct wf_extent extent;
        char name[SIDE_NAME];

        wf_buffers_measure(is_target ? item->to : item->from, context->rank, NULL, &extent);
        name_side(name, sizeof name, alone ? NULL : items, alone, i / 2, is_target);
        WF_TRY(
            check_place(context, function, &extent, is_target ? item->target : item->source, name));
    }
    return WEFT_OK;
}

static weft_status check_alignment(const struct question *q, const struct side *side)
{
    size_t alignment = wf_dtype_alignment(side->extent->dtype);

    if (side->extent->bytes == 0 || (uintptr_t)side->memory % alignment == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: on rank %d, %s is %p, which is not aligned to %zu bytes, as %s requires",
                   q->function, weft_comm_rank(q->bound->parent), side->name, side->memory,
                   alignment, wf_dtype_name(side->extent->dtype));
}

static weft_status check_size(const struct question *q, const struct side *side)
{
    weft_comm *comm = q->bound->parent;
    char needs[192];

    if (!q->bound->checked && wf_room_fits(comm, side->memory, side->extent->bytes)) return WEFT_OK;
    if (side->extent->bytes == 0) return WEFT_OK;
    snprintf(needs, sizeof needs, "%s: rank %d's shard needs %llu bytes", q->function,
             weft_comm_rank(comm), (unsigned long long)side->extent->bytes);
    return wf_room_check(comm, side->memory, side->extent->bytes, needs, side->name);
}

static bool sides_overlap(const struct side *a, const struct side *b)
{
    if (a->extent->bytes == 0 || b->extent->bytes == 0) return false;
    if (a->extent->strided || b->extent->strided) return a->memory == b->memory;
    return wf_ranges_overlap(a->memory, a->extent->bytes, b->memory, b->extent->bytes);
}

static weft_status refuse_overlap(const struct question *q, const struct side *a,
                                  const struct side *b, const char *why)
{
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: on rank %d, %s (%llu bytes at %p) and %s (%llu bytes at %p) overlap%s",
                   q->function, weft_comm_rank(q->bound->parent), a->name,
                   (unsigned long long)a->extent->bytes, a->memory, b->name,
                   (unsigned long long)b->extent->bytes, b->memory, why);
}

/* Check the memory of one tensor. */
static weft_status check_pair(const struct question *q, uint32_t tensor)
{
    struct side source = side_of(q, tensor, false), target = side_of(q, tensor, true);
    bool same = source.memory == target.memory;
    bool in_place = q->bound->in_place || (same && q->bound->is_cached); /* a move may do that */

    WF_TRY(check_null(q, &source));
    WF_TRY(check_null(q, &target));
    if (same && source.extent->bytes > 0 && target.extent->bytes > 0 && !in_place)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: %s and %s are the same memory, but the plan was not bound with "
                       "in_place",
                       q->function, source.name, target.name);
    if (q->bound->examined) {
        WF_TRY(
            check_place(q->bound->context, q->function, source.extent, source.memory, source.name));
        WF_TRY(
            check_place(q->bound->context, q->function, target.extent, target.memory, target.name));
    }
    if (q->bound->checked) {
        WF_TRY(check_alignment(q, &source));
        WF_TRY(check_alignment(q, &target));
    }
    WF_TRY(check_size(q, &source));
    WF_TRY(check_size(q, &target));
    if (!q->bound->checked || in_place || !sides_overlap(&source, &target)) return WEFT_OK;
    return refuse_overlap(q, &source, &target,
                          q->bound->is_cached
                              ? "; they may be the same memory, but must not overlap otherwise"
                              : ", but the plan was not bound with in_place");
}

/* The scratch that the caller supplied overlaps no source and no target. */
static weft_status check_scratch(const struct question *q, uint32_t tensor)
{
    struct side source = side_of(q, tensor, false), target = side_of(q, tensor, true);
    struct wf_extent extent = {.bytes = q->bound->scratch_bytes};
    struct side scratch = {&extent, q->bound->given_scratch, "the scratch of the bound plan"};

    if (sides_overlap(&source, &scratch)) return refuse_overlap(q, &source, &scratch, "");
    if (sides_overlap(&target, &scratch)) return refuse_overlap(q, &target, &scratch, "");
    return WEFT_OK;
}

/* A target overlaps no memory of another tensor. */
static weft_status check_others(const struct question *q, uint32_t tensor)
{
    struct side target = side_of(q, tensor, true);

    for (uint32_t i = 0; i < q->count; i++) {
        struct side other = side_of(q, i, true);

        if (i < tensor && sides_overlap(&other, &target))
            return refuse_overlap(q, &other, &target, "");
        other = side_of(q, i, false);
        if (i != tensor && sides_overlap(&other, &target))
            return refuse_overlap(q, &other, &target, "");
    }
    return WEFT_OK;
}

weft_status wf_buffers_check(const char *function, const weft_bound *bound,
                             const void *const *sources, void *const *targets,
                             const weft_move_item *named)
{
    struct question q = {.function = function,
                         .bound = bound,
                         .sources = sources,
                         .targets = targets,
                         .named = named,
                         .count = bound->batch != NULL ? bound->plan->member_count : 1};

    for (uint32_t i = 0; i < q.count; i++)
        WF_TRY(check_pair(&q, i));
    for (uint32_t i = 0; bound->checked && i < q.count && q.count > 1; i++)
        WF_TRY(check_others(&q, i));
    for (uint32_t i = 0; bound->checked && i < q.count && bound->given_scratch != NULL; i++)
        WF_TRY(check_scratch(&q, i));
    return WEFT_OK;
}

weft_status wf_buffers_accept(const char *function, weft_bound *bound, const void *const *sources,
                              void *const *targets)
{
    WF_TRY(wf_buffers_check(function, bound, sources, targets, NULL));
    bound->examined = bound->checked;
    return WEFT_OK;
}
