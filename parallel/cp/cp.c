/* cp.c - attention of a plan, prepared on this rank. */
#include "cp.h"

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
    return wf_system_check((const struct wf_system *)cp, "weft_cp", name, "the attention");
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
    const weft_device_table *device = weft_context_plugin(cp->context)->device;
    bool has_ended = true;

    while (cp->used != NULL) {
        struct wf_cp_used *used = cp->used;

        if (weft_stream_check(cp->context, used->stream, "weft_cp_release") == WEFT_OK &&
            device->stream_wait(weft_context_device(cp->context), used->stream,
                                weft_comm_timeout(cp->comm)) == WEFT_ERR_TIMEOUT)
            has_ended = false;
        cp->used = used->next;
        wf_free(used);
    }
    return has_ended;
}

static void free_resources(weft_cp *cp)
{
    /* Rotations that wait for a lost rank end with the communicator's failure. */
    weft_stream_release(&cp->side);
    if (!end_work(cp)) {
        wf_log(WF_LOG_WARNING, "weft_cp_release: memory is not freed: %s", weft_last_error());
        return;
    }
    wf_cp_shapes_free(cp);
    wf_cp_strided_free(cp);
    if (cp->state != NULL && cp->way->clear != NULL) cp->way->clear(cp);
    wf_free(cp->state);
    cp->state = NULL;
    while (cp->piece_count > 0)
        if (weft_free(cp->context, cp->pieces[--cp->piece_count]) != WEFT_OK)
            wf_log(WF_LOG_WARNING, "scratch of an attention is not freed: %s", weft_last_error());
}

static void end_with_comm(void *user, const char *cause)
{
    weft_cp *cp = user;

    free_resources(cp);
    cp->context = NULL;
    cp->comm = NULL;
    wf_system_end(&cp->system, cause);
}

static const weft_dependent_calls dependent_calls = {.struct_size = sizeof dependent_calls,
                                                     .end = end_with_comm};

static void free_cp(weft_cp *cp)
{
    for (int32_t i = 0; cp->steps != NULL && i < wf_cp_steps(cp->plan); i++)
        wf_free(cp->steps[i].items);
    wf_free(cp->steps);
    wf_free(cp->held);
    weft_cp_plan_release(&cp->plan);
    wf_free(cp);
}

void weft_cp_release(weft_cp **cp)
{
    weft_cp *mine;

    if (cp == NULL || *cp == NULL) return;
    mine = *cp;
    *cp = NULL;
    if (!wf_system_release(&mine->system, "weft_cp", "weft_cp_release")) return;
    if (!wf_system_has_ended(&mine->system)) free_resources(mine);
    free_cp(mine);
}

weft_status weft_cp_get(const weft_cp *cp, weft_cp_info *out)
{
    static const char name[] = "weft_cp_get";
    weft_cp_info info;

    WF_TRY(wf_cp_check(cp, name));
    if (out == NULL) return wf_fail_null(name, "out");
    info = (weft_cp_info){.struct_size = sizeof info,
                          .plan = cp->plan,
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

static weft_status check_sizes(const struct wf_cp_sizes *s)
{
    int64_t elements;

    if (s->batch < 1 || s->heads < 1 || s->depth < 1 || s->key_heads < 1 ||
        s->heads % s->key_heads != 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_cp_options: batch is %lld, heads %lld, key_heads %lld, depth %lld; "
                       "all must be at least 1, "
                       "and key_heads must divide heads",
                       (long long)s->batch, (long long)s->heads, (long long)s->key_heads,
                       (long long)s->depth);
    if (s->dtype != WEFT_DTYPE_F32 && s->dtype != WEFT_DTYPE_F16 && s->dtype != WEFT_DTYPE_BF16)
        return wf_fail(
            WEFT_ERR_INVALID, "weft_cp_options.dtype is %s; attention has f32, f16 or bf16",
            s->dtype < WEFT_DTYPE_COUNT ? weft_dtype_name((enum weft_dtype)s->dtype) : "not known");
    if (s->sequence_dim != 1 && s->sequence_dim != 2)
        return wf_fail(WEFT_ERR_INVALID, "weft_cp_options.sequence_dim is %d; it must be 1 or 2",
                       s->sequence_dim);
    if (!wf_mul_i64(s->batch, s->heads, &elements) || !wf_mul_i64(elements, s->depth, &elements))
        elements = INT64_MAX;
    if (elements > INT64_MAX / 32 / WEFT_CP_MAX_LENGTH)
        return wf_fail(WEFT_ERR_INVALID, "batch x heads x depth is %s%lld; it must be below 2^27",
                       elements == INT64_MAX ? "at least " : "", (long long)elements);
    return WEFT_OK;
}

static weft_status check_heads(const weft_cp_plan *plan, const struct wf_cp_sizes *s)
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

/* STATUS is how creation went here. */
static weft_status agree_on_sizes(const weft_cp *cp, weft_status status)
{
    const struct wf_cp_sizes *s = &cp->sizes;
    struct wf_text fields = {0};

    wf_cp_plan_add_fields(cp->plan, &fields);
    wf_field_add(&fields, "batch", "%lld", (long long)s->batch);
    wf_field_add(&fields, "heads", "%lld", (long long)s->heads);
    wf_field_add(&fields, "key_heads", "%lld", (long long)s->key_heads);
    wf_field_add(&fields, "depth", "%lld", (long long)s->depth);
    wf_field_add(&fields, "sequence_dim", "%d", s->sequence_dim);
    wf_field_add(&fields, "dtype", "%s", weft_dtype_name((enum weft_dtype)s->dtype));
    return wf_agree_on_fields(cp->comm, NULL, function, status, &fields, NULL);
}

static weft_status read_sizes(weft_cp *cp, const weft_cp_options *o)
{
    cp->sizes = (struct wf_cp_sizes){o->batch, o->heads,
                                     o->depth, o->key_heads != 0 ? o->key_heads : o->heads,
                                     o->dtype, o->sequence_dim != 0 ? o->sequence_dim : 2};
    WF_TRY(check_sizes(&cp->sizes));
    if (cp->plan->variant == WEFT_CP_RING)
        WF_TRY(wf_messages_require(cp->comm, function,
                                   "WEFT_CP_RING, unlike WEFT_CP_GATHER and WEFT_CP_HEADS,"));
    WF_TRY(wf_cp_ask_merges(cp));
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
    cp->coordinate = weft_comm_rank(cp->comm);
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
    WF_TRY(cp->way->prepare(cp));
    return weft_dependent_create(cp->comm, &dependent_calls, cp, &cp->system.dependent);
}

static weft_status make(weft_cp *cp, const weft_cp_options *options)
{
    WF_TRY(agree_on_sizes(cp, read_sizes(cp, options)));
    return wf_agree_on_status(cp->comm, function, prepare(cp));
}

/* Make the attention of PLAN, which becomes the attention's. */
static weft_status make_on(weft_context *context, weft_comm *comm, const weft_cp_options *options,
                           weft_cp_plan *plan, weft_cp **out)
{
    weft_cp *cp = wf_calloc(1, sizeof *cp);
    weft_status status;

    if (cp == NULL) {
        weft_cp_plan_release(&plan);
        return wf_agree_on_status(comm, function, wf_fail_memory(sizeof *cp));
    }
    weft_object_begin(&cp->system.object, "weft_cp");
    cp->context = context;
    cp->on_device = !wf_device_has(context, WEFT_FEATURE_HOST_MEMORY);
    cp->is_inline = wf_device_has(context, WEFT_FEATURE_INLINE);
    cp->comm = comm;
    cp->plan = plan;
    cp->way = ways[plan->variant];
    status = make(cp, options);
    if (status != WEFT_OK) {
        weft_cp_release(&cp);
        return status;
    }
    *out = cp;
    return WEFT_OK;
}

weft_status weft_cp_create(weft_context *context, const weft_mesh *mesh, const char *axis,
                           const weft_cp_options *options, weft_cp **out)
{
    weft_cp_options o = {0};
    weft_cp_plan *plan = NULL;
    weft_comm *comm = NULL;
    weft_status status;

    WF_TRY(weft_object_check(context, "weft_context", function, "context"));
    if (options == NULL) return wf_fail_null(function, "options");
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(wf_fail_named(wf_options_read("weft_cp_options", options, &o, sizeof o), function));
    WF_TRY(weft_object_check(mesh, "weft_mesh", function, "mesh"));
    if (axis == NULL) return wf_fail_null(function, "axis");
    WF_TRY(wf_fail_named(weft_cp_plan_create(mesh, axis, options, &plan), function));
    status = wf_axis_comm(context, mesh, axis, function, &comm);
    if (status == WEFT_OK) return make_on(context, comm, &o, plan, out);
    weft_cp_plan_release(&plan);
    return status;
}
