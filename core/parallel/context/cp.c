/* cp.c - attention of a plan, prepared on this rank. */
#include "cp.h"

#include "comm/carry/carry.h"
#include "exec/host/host.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char function[] = "weft_cp_create";

static const struct wf_cp_way *const ways[] = {
    [WEFT_CP_RING] = &wf_cp_ring,
    [WEFT_CP_GATHER] = &wf_cp_gather,
    [WEFT_CP_HEADS] = &wf_cp_heads,
};

/* ---- services of the variants ---- */

weft_status wf_cp_scratch(weft_cp *cp, int64_t count, size_t bytes, void *out)
{
    void *memory;

    if (cp->piece_count == WF_CP_PIECES)
        return wf_fail(WEFT_ERR_INTERNAL, "%s: more than %d pieces of scratch", function,
                       WF_CP_PIECES);
    WF_TRY(weft_alloc(cp->context, (uint64_t)count * bytes, WEFT_MEMORY_DEVICE, &memory));
    cp->pieces[cp->piece_count++] = memory;
    memcpy(out, &memory, sizeof memory);
    return WEFT_OK;
}

weft_status wf_cp_check(const weft_cp *cp, const char *name)
{
    if (cp == NULL) return wf_fail_null(name, "cp");
    if (wf_is_usable(cp->made, WF_KIND_CP)) return WEFT_OK;
    if (cp->made == wf_ended(WF_KIND_CP))
        return wf_fail(WEFT_ERR_INVALID, "%s: %s; the attention ended with it", name, cp->ended);
    return wf_fail_unusable(name, "cp", cp->made, WF_KIND_CP);
}

weft_status wf_cp_use(weft_cp *cp, weft_stream *stream)
{
    struct wf_cp_used *used = cp->used;

    while (used != NULL && used->stream != stream)
        used = used->next;
    if (used != NULL) return WEFT_OK;
    used = wf_alloc(sizeof *used);
    if (used == NULL) return wf_fail_memory(sizeof *used);
    *used = (struct wf_cp_used){cp->used, stream};
    cp->used = used;
    return WEFT_OK;
}

/* ---- life ---- */

/* Wait for the work on the caller's streams, which uses lists and scratch.  False: it goes on.  A
 * stream that was released has ended its work. */
static bool end_work(weft_cp *cp)
{
    const weft_device_table *device = cp->context->plugin->device;
    bool has_ended = true;

    while (cp->used != NULL) {
        struct wf_cp_used *used = cp->used;

        if (wf_stream_check(cp->context, used->stream, "weft_cp_release") == WEFT_OK &&
            device->stream_wait(cp->context->device, used->stream, cp->context->timeout_ns) ==
                WEFT_ERR_TIMEOUT)
            has_ended = false;
        cp->used = used->next;
        wf_free(used);
    }
    return has_ended;
}

static void free_resources(weft_cp *cp)
{
    /* Rotations that wait for a lost rank end with the communicator's failure. */
    weft_stream_release(cp->context, &cp->side);
    if (!end_work(cp)) {
        wf_log(WF_LOG_WARNING, "weft_cp_release: memory is not freed: %s", weft_last_error());
        return;
    }
    wf_cp_shapes_free(cp);
    if (cp->state != NULL && cp->way->clear != NULL) cp->way->clear(cp);
    wf_free(cp->state);
    cp->state = NULL;
    while (cp->piece_count > 0)
        if (weft_free(cp->context, cp->pieces[--cp->piece_count]) != WEFT_OK)
            wf_log(WF_LOG_WARNING, "scratch of an attention is not freed: %s", weft_last_error());
}

static void end_with_comm(struct wf_dependent *self, const char *cause)
{
    weft_cp *cp = (weft_cp *)(void *)((char *)self - offsetof(weft_cp, dependent));

    free_resources(cp);
    cp->context = NULL;
    cp->comm = NULL;
    cp->made = wf_ended(WF_KIND_CP);
    snprintf(cp->ended, sizeof cp->ended, "%s", cause);
}

static void free_cp(weft_cp *cp)
{
    for (int32_t i = 0; cp->steps != NULL && i < wf_cp_steps(cp->plan); i++)
        wf_free(cp->steps[i].items);
    wf_free(cp->steps);
    wf_free(cp->held);
    weft_cp_plan_release(&cp->plan);
    cp->made = wf_released(WF_KIND_CP);
    wf_free(cp);
}

void weft_cp_release(weft_cp **cp)
{
    weft_cp *mine;

    if (cp == NULL || *cp == NULL) return;
    mine = *cp;
    *cp = NULL;
    if (mine->made == wf_ended(WF_KIND_CP)) {
        free_cp(mine);
        return;
    }
    if (!wf_is_usable(mine->made, WF_KIND_CP)) {
        wf_warn_unusable("weft_cp_release", mine->made, WF_KIND_CP);
        return;
    }
    wf_dependent_remove(&mine->dependent);
    free_resources(mine);
    free_cp(mine);
}

weft_status weft_cp_get(const weft_cp *cp, weft_cp_info *out)
{
    static const char name[] = "weft_cp_get";
    weft_cp_info info;

    WF_TRY(wf_cp_check(cp, name));
    if (out == NULL) return wf_fail_null(name, "out");
    info = (weft_cp_info){.struct_size = sizeof info,
                          .batch = cp->sizes.batch,
                          .heads = cp->sizes.heads,
                          .depth = cp->sizes.depth,
                          .key_heads = cp->sizes.key_heads,
                          .dtype = cp->sizes.dtype,
                          .sequence_dim = cp->sizes.sequence_dim,
                          .length = cp->held[cp->coordinate]};
    return wf_fail_named(wf_info_write("weft_cp_info", &info, sizeof info, out), name);
}

/* ---- creation ---- */

static weft_status check_sizes(const weft_cp_sizes *s)
{
    int64_t elements;

    if (s->batch < 1 || s->heads < 1 || s->depth < 1 || s->key_heads < 1 ||
        s->heads % s->key_heads != 0)
        return wf_fail(
            WEFT_ERR_INVALID,
            "batch %lld, heads %lld, key_heads %lld, depth %lld; all must be at least 1, "
            "and key_heads must divide heads",
            (long long)s->batch, (long long)s->heads, (long long)s->key_heads, (long long)s->depth);
    if (s->dtype != WEFT_DTYPE_F32 && s->dtype != WEFT_DTYPE_F16 && s->dtype != WEFT_DTYPE_BF16)
        return wf_fail(WEFT_ERR_INVALID, "dtype %s; attention has f32, f16 or bf16",
                       s->dtype < WEFT_DTYPE_COUNT ? weft_dtype_name((enum weft_dtype)s->dtype)
                                                   : "is not known");
    if (s->sequence_dim != 1 && s->sequence_dim != 2)
        return wf_fail(WEFT_ERR_INVALID, "sequence_dim is %d; it must be 1 or 2", s->sequence_dim);
    if (!wf_mul_i64(s->batch, s->heads, &elements) || !wf_mul_i64(elements, s->depth, &elements))
        elements = INT64_MAX;
    if (elements > INT64_MAX / 32 / WEFT_CP_MAX_LENGTH)
        return wf_fail(WEFT_ERR_INVALID, "batch x heads x depth is %s%lld; it must be below 2^27",
                       elements == INT64_MAX ? "at least " : "", (long long)elements);
    return WEFT_OK;
}

static weft_status check_heads(const weft_cp_plan *plan, const weft_cp_sizes *s)
{
    if (plan->variant != WEFT_CP_HEADS ||
        (s->heads % plan->ranks == 0 && s->key_heads % plan->ranks == 0))
        return WEFT_OK;
    return wf_fail(
        WEFT_ERR_INVALID,
        "%lld heads and %lld key heads do not divide among %d ranks, as the variant HEADS "
        "needs; RING and GATHER take any number of heads, and HEADS takes an axis whose "
        "size divides both",
        (long long)s->heads, (long long)s->key_heads, plan->ranks);
}

/* These values must be equal on all ranks along the axis. */
struct name {
    uint64_t plan;
    int64_t length;
    uint32_t mask, balance, variant;
    weft_cp_sizes sizes;
};

static weft_status refuse_plan(const weft_cp *cp, int32_t rank, const struct name *first,
                               const struct name *other)
{
    const char *what = first->length != other->length     ? "lengths"
                       : first->mask != other->mask       ? "masks"
                       : first->balance != other->balance ? "balances"
                       : first->variant != other->variant ? "variants"
                                                          : "windows, documents, orders or blocks";

    return wf_fail(WEFT_ERR_MISMATCH, "%s: ranks 0 and %d of %s have plans with different %s",
                   function, rank, cp->comm->name, what);
}

/* Name the first size that differs. */
static weft_status refuse_sizes(const weft_cp *cp, int32_t rank, const weft_cp_sizes *first,
                                const weft_cp_sizes *other)
{
    const struct {
        const char *name;
        int64_t first, other;
    } sizes[] = {{"batch", first->batch, other->batch},
                 {"heads", first->heads, other->heads},
                 {"key_heads", first->key_heads, other->key_heads},
                 {"depth", first->depth, other->depth},
                 {"sequence_dim", first->sequence_dim, other->sequence_dim}};

    for (size_t i = 0; i < WF_COUNT(sizes); i++)
        if (sizes[i].first != sizes[i].other)
            return wf_fail(WEFT_ERR_MISMATCH,
                           "%s: ranks 0 and %d of %s have different sizes: %s is %lld and %lld",
                           function, rank, cp->comm->name, sizes[i].name, (long long)sizes[i].first,
                           (long long)sizes[i].other);
    return wf_fail(WEFT_ERR_MISMATCH,
                   "%s: ranks 0 and %d of %s have different sizes: dtype is %s and %s", function,
                   rank, cp->comm->name, weft_dtype_name((enum weft_dtype)first->dtype),
                   weft_dtype_name((enum weft_dtype)other->dtype));
}

/* All ranks compare with the first, so that all have the same error. */
static weft_status compare(const weft_cp *cp, const struct wf_gathered *got)
{
    struct name first, other;

    for (int32_t i = 0; i < got->count; i++) {
        if (got->blobs[i].bytes != sizeof other)
            return wf_fail(WEFT_ERR_MISMATCH, "%s: rank %d sent no attention", function, i);
        memcpy(&other, got->blobs[i].data, sizeof other);
        if (i == 0) first = other;
        if (other.plan != first.plan) return refuse_plan(cp, i, &first, &other);
        if (memcmp(&other.sizes, &first.sizes, sizeof other.sizes) != 0)
            return refuse_sizes(cp, i, &first.sizes, &other.sizes);
    }
    return WEFT_OK;
}

/* STATUS is how creation went here. */
static weft_status agree(const weft_cp *cp, const char *step, weft_status status)
{
    struct name mine;
    struct wf_gathered got;
    char label[200];

    memset(&mine, 0, sizeof mine);
    mine.plan = cp->plan->digest;
    mine.length = cp->plan->length;
    mine.mask = cp->plan->mask;
    mine.balance = cp->plan->balance;
    mine.variant = cp->plan->variant;
    mine.sizes = cp->sizes;
    snprintf(label, sizeof label, "%s on %s (%s)", function, cp->comm->name, step);
    status = wf_comm_agree(cp->comm, label, status, (weft_blob){&mine, sizeof mine}, &got);
    if (status != WEFT_OK) return wf_fail_named(status, function);
    status = compare(cp, &got);
    wf_gathered_free(&got);
    return status;
}

static weft_status read_sizes(weft_cp *cp, const weft_cp_sizes *sizes)
{
    if (sizes == NULL) return wf_fail_null(function, "sizes");
    WF_TRY(wf_options_read("weft_cp_sizes", sizes, &cp->sizes, sizeof cp->sizes));
    cp->sizes.struct_size = sizeof cp->sizes;
    if (cp->sizes.key_heads == 0) cp->sizes.key_heads = cp->sizes.heads;
    if (cp->sizes.sequence_dim == 0) cp->sizes.sequence_dim = 2;
    WF_TRY(check_sizes(&cp->sizes));
    if (cp->plan->variant == WEFT_CP_RING)
        WF_TRY(wf_messages_require(cp->comm, function,
                                   "WEFT_CP_RING, unlike WEFT_CP_GATHER and WEFT_CP_HEADS,"));
    WF_TRY(wf_cp_ask_merges(cp->context, cp->sizes.dtype));
    return check_heads(cp->plan, &cp->sizes);
}

static void set_part(weft_cp *cp)
{
    const weft_cp_plan *plan = cp->plan;
    int64_t shares = plan->variant == WEFT_CP_HEADS ? plan->ranks : 1;

    cp->part.heads = cp->sizes.heads / shares;
    cp->part.key_heads = cp->sizes.key_heads / shares;
    cp->part.queries = cp->held[cp->coordinate];
    cp->part.keys_most = plan->variant == WEFT_CP_RING ? cp->held_most : plan->length;
    if (plan->variant != WEFT_CP_HEADS) return;
    cp->part.first_head = cp->coordinate * cp->part.heads;
    cp->part.first_key_head = cp->coordinate * cp->part.key_heads;
    cp->part.queries = plan->length;
}

static weft_status prepare(weft_cp *cp)
{
    const weft_cp_plan *plan = cp->plan;

    cp->element = (uint32_t)wf_dtype_bytes(cp->sizes.dtype);
    cp->coordinate = cp->comm->rank;
    cp->held = wf_calloc((size_t)plan->ranks, sizeof *cp->held);
    cp->steps = wf_calloc((size_t)wf_cp_steps(plan), sizeof *cp->steps);
    if (cp->held == NULL || cp->steps == NULL)
        return wf_fail_memory((size_t)plan->ranks * sizeof *cp->steps);
    for (int32_t c = 0; c < plan->ranks; c++) {
        cp->held[c] = wf_cp_held(plan, c);
        cp->held_most = wf_max_i64(cp->held_most, cp->held[c]);
    }
    for (int32_t i = 0; i < wf_cp_steps(plan); i++)
        WF_TRY(wf_cp_problems(plan, cp->coordinate, i, &cp->steps[i]));
    set_part(cp);
    WF_TRY(weft_stream_create(cp->context, &cp->side));
    WF_TRY(wf_cp_results_make(cp));
    return cp->way->prepare(cp);
}

static weft_status make(weft_cp *cp, const weft_cp_sizes *sizes)
{
    WF_TRY(agree(cp, "sizes", read_sizes(cp, sizes)));
    return agree(cp, "memory", prepare(cp));
}

static weft_status check_context(weft_context *context, const weft_cp_plan *plan)
{
    int32_t coord[WEFT_MAX_AXES];

    if (context->is_simulated)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "%s: ranks are simulated and do not communicate; the functions of "
                       "weft_cp_plan work without ranks",
                       function);
    if (weft_mesh_coord_of(plan->mesh, context->rank, coord) != WEFT_OK)
        return wf_fail_about(WEFT_ERR_INVALID, function, "the mesh of the plan");
    return WEFT_OK;
}

weft_status weft_cp_create(weft_context *context, const weft_cp_plan *plan,
                           const weft_cp_sizes *sizes, weft_cp **out)
{
    char axis[16];
    weft_comm *comm;
    weft_status status;
    weft_cp *cp;

    WF_TRY(wf_context_check(context, function));
    WF_TRY(wf_require_kind(plan, WF_KIND_CP_PLAN, "weft_cp_create: plan"));
    if (sizes == NULL) return wf_fail_null(function, "sizes");
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(check_context(context, plan));
    snprintf(axis, sizeof axis, "%d", plan->axis);
    WF_TRY(wf_fail_named(weft_comm_along(context->world, plan->mesh, axis, &comm), function));
    cp = wf_calloc(1, sizeof *cp);
    if (cp == NULL) {
        struct wf_gathered got;
        return wf_fail_named(
            wf_comm_agree(comm, function, wf_fail_memory(sizeof *cp), (weft_blob){"", 0}, &got),
            function);
    }
    cp->made = wf_made_now(WF_KIND_CP);
    cp->context = context;
    cp->on_device = (context->features & WEFT_FEATURE_HOST_MEMORY) == 0;
    cp->comm = comm;
    cp->plan = weft_cp_plan_retain(plan);
    cp->way = ways[plan->variant];
    status = make(cp, sizes);
    if (status != WEFT_OK) {
        free_resources(cp);
        free_cp(cp);
        return status;
    }
    cp->dependent.end = end_with_comm;
    wf_dependent_add(&cp->dependent, comm);
    *out = cp;
    return WEFT_OK;
}
