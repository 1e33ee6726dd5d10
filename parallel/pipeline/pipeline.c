/* pipeline.c - pipelines: their life, and what ranks agree on. */
#include "pipeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char function[] = "weft_pipeline_create";

weft_status wf_pipeline_check(const weft_pipeline *pipeline, const char *name)
{
    return wf_system_check((const struct wf_system *)pipeline, "weft_pipeline", name,
                           "the pipeline");
}

/* ---- life ---- */

static void free_resources(weft_pipeline *pipeline)
{
    wf_channels_close(pipeline); /* waits for messages, which end if the communicator has failed */
    wf_slots_free(pipeline);
}

static void free_pipeline(weft_pipeline *pipeline)
{
    wf_boundaries_free(pipeline);
    weft_mesh_release(&pipeline->stage);
    weft_mesh_release(&pipeline->alone);
    weft_mesh_release(&pipeline->mesh);
    wf_free(pipeline->steps);
    weft_schedule_release(&pipeline->schedule);
    wf_free(pipeline);
}

static void end_with_comm(void *user, const char *cause)
{
    weft_pipeline *pipeline = user;

    free_resources(pipeline);
    pipeline->context = NULL;
    wf_system_end(&pipeline->system, cause);
}

static const weft_dependent_calls dependent_calls = {.struct_size = sizeof dependent_calls,
                                                     .end = end_with_comm};

void weft_pipeline_release(weft_pipeline **pipeline)
{
    weft_pipeline *mine;

    if (pipeline == NULL || *pipeline == NULL) return;
    mine = *pipeline;
    *pipeline = NULL;
    if (wf_pipeline_runs(mine) && wf_pipeline_check(mine, "weft_pipeline_release") == WEFT_OK) {
        wf_log(WF_LOG_WARNING, "weft_pipeline_release: a callback has called it for the pipeline "
                               "that runs; the run fails, and the pipeline is released after it");
        mine->state = WF_PIPELINE_ENDS;
        return;
    }
    if (!wf_system_release(&mine->system, "weft_pipeline", "weft_pipeline_release")) return;
    if (!wf_system_has_ended(&mine->system)) free_resources(mine);
    weft_comm_release(&mine->comm);
    free_pipeline(mine);
}

/* ---- what ranks agree on ---- */

static uint64_t hash_boundary(uint64_t hash, const struct wf_boundary *boundary)
{
    hash = wf_hash_mix(hash, boundary->values.count);
    for (size_t i = 0; i < boundary->values.count; i++) {
        hash = wf_hash_mix(hash, weft_spec_hash(boundary->tensors[i].spec));
        hash = wf_hash_mix(hash, boundary->tensors[i].without_gradient);
    }
    return hash;
}

/* The layouts between stages, if the caller gives them. */
static uint64_t hash_given(const weft_pipeline *pipeline)
{
    uint64_t hash = 0;

    for (int32_t s = 0; pipeline->options.values != NULL && s + 1 < pipeline->stages; s++)
        hash = hash_boundary(hash, &pipeline->boundaries[s]);
    return hash;
}

static const char *set_or_not(bool is_set)
{
    return is_set ? "set" : "not set";
}

static void add_fields(const weft_pipeline *pipeline, const weft_schedule_info *info,
                       struct wf_text *fields)
{
    const weft_pipeline_options *o = &pipeline->options;

    wf_field_add(fields, "unshard", "%s", set_or_not(o->unshard != NULL));
    wf_field_add(fields, "reduce", "%s", set_or_not(o->reduce != NULL));
    wf_field_add(fields, "schedule", "%s of %d stages and %d microbatches, digest %016llx",
                 info->name, info->stages, info->microbatches, (unsigned long long)info->digest);
    wf_field_add(fields, "values", "%s", set_or_not(o->values != NULL));
    wf_field_add(fields, "layouts between stages", "digest %016llx",
                 (unsigned long long)hash_given(pipeline));
    wf_field_add(fields, "loss_scale", "%.17g", o->loss_scale);
}

/* ---- creation ---- */

/* The kinds of actions in SCHEDULE, a bit each. */
static weft_status kinds_of(const weft_schedule *schedule, int32_t ranks, uint32_t *out)
{
    const weft_schedule_action *actions;
    size_t count;

    *out = 0;
    for (int32_t rank = 0; rank < ranks; rank++) {
        WF_TRY(weft_schedule_actions(schedule, rank, &count, &actions, sizeof *actions));
        for (size_t i = 0; i < count; i++)
            *out |= 1u << actions[i].kind;
    }
    return WEFT_OK;
}

static weft_status check_callbacks(const weft_pipeline_options *o, uint32_t kinds)
{
    const struct {
        const char *name;
        bool is_set;
        uint32_t kinds;
    } needed[] = {
        {"forward", o->forward != NULL, 1u << WEFT_SCHEDULE_ACTION_F},
        {"backward", o->backward != NULL, 7u << WEFT_SCHEDULE_ACTION_B},
        {"unshard", o->unshard != NULL, 1u << WEFT_SCHEDULE_ACTION_UNSHARD},
        {"reshard", o->reshard != NULL, 1u << WEFT_SCHEDULE_ACTION_RESHARD},
        {"reduce", o->reduce != NULL, 1u << WEFT_SCHEDULE_ACTION_REDUCE_GRADIENT},
    };

    for (size_t i = 0; i < WF_COUNT(needed); i++)
        if (!needed[i].is_set && (kinds & needed[i].kinds) != 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "the callback `%s` is NULL, and the schedule has actions for it",
                           needed[i].name);
    return WEFT_OK;
}

/* Set the schedule of PIPELINE: SCHEDULE, lowered. */
static weft_status lower(weft_pipeline *pipeline, const weft_schedule *schedule)
{
    const weft_pipeline_options *o = &pipeline->options;
    weft_schedule_info info = {.struct_size = sizeof info};
    uint32_t kinds, flags;

    WF_TRY(weft_schedule_get(schedule, &info));
    WF_TRY(kinds_of(schedule, info.ranks, &kinds));
    if (kinds >> (WEFT_SCHEDULE_ACTION_W + 1) == 0) {
        flags = (o->unshard != NULL ? (uint32_t)WEFT_LOWER_SHARDED : 0) |
                (o->reduce != NULL ? (uint32_t)WEFT_LOWER_REDUCE : 0);
        WF_TRY(weft_schedule_lower(schedule, flags, &pipeline->schedule));
        WF_TRY(kinds_of(pipeline->schedule, info.ranks, &kinds));
    } else if (info.lowered) {
        pipeline->schedule = weft_schedule_retain(schedule);
    } else {
        return wf_fail(WEFT_ERR_INVALID,
                       "the schedule has other actions than F, B, I and W, but no sends; pass "
                       "compute actions only, or a lowered schedule");
    }
    return check_callbacks(o, kinds);
}

static weft_status check_shapes(const weft_pipeline *pipeline)
{
    const weft_pipeline_options *o = &pipeline->options;
    uint32_t count = (uint32_t)pipeline->stages - 1;

    if (o->values != NULL && o->value_count != count)
        return wf_fail(
            WEFT_ERR_INVALID,
            "`values` has %zu entries (value_count); expected %u, one for each stage but "
            "the last",
            o->value_count, count);
    if (pipeline->stages == 1) return WEFT_OK;
    if (o->values == NULL && o->shapes == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "what stages pass on is missing: set `values` or the callback `shapes`");
    if (o->values != NULL && o->shapes != NULL)
        return wf_fail(WEFT_ERR_INVALID, "both `values` and `shapes` are set; one of them must be "
                                         "NULL");
    return WEFT_OK;
}

/* Set the boundaries from `values` of the options. */
static weft_status take_given(weft_pipeline *pipeline)
{
    const weft_pipeline_values *given = pipeline->options.values;
    void *copy = NULL;
    weft_status status;

    WF_TRY(wf_items_read("weft_pipeline_values", pipeline->options.value_count, given,
                         pipeline->options.value_size, sizeof *given, &copy));
    status = wf_pipeline_shapes_take(pipeline, copy != NULL ? copy : given);
    wf_free(copy);
    return status;
}

/* Set the meshes of this rank and of its stages. */
static weft_status take_mesh(weft_pipeline *pipeline, const weft_mesh *mesh, const char *axis)
{
    const int32_t one = 1, rank = weft_rank(pipeline->context);
    const weft_mesh_options here = {.struct_size = sizeof here, .ranks = &rank};
    char axes[4 * WEFT_MAX_AXES] = "";

    pipeline->mesh = weft_mesh_retain(mesh);
    WF_TRY(weft_mesh_find_axis(mesh, axis, &pipeline->axis));
    WF_TRY(weft_mesh_create(1, &one, &here, &pipeline->alone));
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (a != pipeline->axis)
            snprintf(axes + strlen(axes), sizeof axes - strlen(axes), "%s%d",
                     axes[0] != '\0' ? "," : "", a);
    if (axes[0] != '\0') return weft_mesh_slice(mesh, axes, rank, &pipeline->stage);
    pipeline->stage = weft_mesh_retain(pipeline->alone);
    return WEFT_OK;
}

/* Check and compute all that needs no other rank. */
static weft_status read_options(weft_pipeline *pipeline, const weft_comm *comm,
                                const weft_pipeline_options *options)
{
    weft_schedule_info info = {.struct_size = sizeof info};
    weft_pipeline_options *o = &pipeline->options;

    WF_TRY(wf_options_read("weft_pipeline_options", options, o, sizeof *o));
    WF_TRY(weft_stream_check(pipeline->context, o->compute, function));
    WF_TRY(weft_schedule_get(o->schedule, &info));
    if (info.ranks != weft_comm_size(comm))
        return wf_fail(WEFT_ERR_INVALID,
                       "the schedule has %d ranks, and %s has %d; create "
                       "the schedule for the ranks of the axis",
                       info.ranks, weft_comm_name(comm), weft_comm_size(comm));
    WF_TRY(wf_messages_require(comm, function, "a pipeline"));
    WF_TRY(lower(pipeline, o->schedule));
    pipeline->ranks = info.ranks;
    pipeline->stages = info.stages;
    pipeline->microbatches = info.microbatches;
    if (isnan(o->loss_scale)) return wf_fail(WEFT_ERR_INVALID, "loss_scale is not a number");
    if (o->loss_scale == 0) o->loss_scale = 1.0 / (double)info.microbatches;
    pipeline->is_inline =
        o->compute == NULL && wf_device_has(pipeline->context, WEFT_FEATURE_INLINE);
    WF_TRY(check_shapes(pipeline));
    pipeline->boundaries = wf_calloc((size_t)info.stages, sizeof *pipeline->boundaries);
    if (pipeline->boundaries == NULL)
        return wf_fail_memory((size_t)info.stages * sizeof *pipeline->boundaries);
    WF_TRY(weft_schedule_actions(pipeline->schedule, pipeline->rank, &pipeline->action_count,
                                 &pipeline->actions, sizeof *pipeline->actions));
    pipeline->steps = wf_calloc(pipeline->action_count + 1, sizeof *pipeline->steps);
    if (pipeline->steps == NULL)
        return wf_fail_memory(pipeline->action_count * sizeof *pipeline->steps);
    return o->values != NULL ? take_given(pipeline) : WEFT_OK;
}

/* All ranks of COMM have the same schedule.  STATUS is how it went here. */
static weft_status agree_on_schedule(weft_comm *comm, const weft_pipeline *pipeline,
                                     weft_status status)
{
    weft_schedule_info info = {.struct_size = sizeof info, .name = ""};
    struct wf_text fields = {0};

    if (status == WEFT_OK) status = weft_schedule_get(pipeline->schedule, &info);
    if (status == WEFT_OK) add_fields(pipeline, &info, &fields);
    return wf_agree_on_fields(comm, NULL, function, status, &fields, NULL);
}

/* A communicator of the ranks of PARENT, in their order. */
static weft_status make_comm(weft_comm *parent, weft_comm **out)
{
    const weft_subcomm_options options = {.struct_size = sizeof options, .name = "pipeline"};

    return wf_fail_named(weft_comm_split(parent, 0, 0, &options, out), function);
}

static weft_status prepare(weft_pipeline *pipeline)
{
    struct wf_order order = {0};
    weft_status status = wf_order_make(pipeline->schedule, &order);

    if (status == WEFT_OK) status = wf_channels_list(pipeline);
    if (status == WEFT_OK) status = wf_slots_make(pipeline, &order);
    wf_order_free(&order);
    if (status != WEFT_OK) return status;
    return weft_dependent_create(pipeline->comm, &dependent_calls, pipeline,
                                 &pipeline->system.dependent);
}

static weft_status make(weft_pipeline *pipeline, weft_comm *parent, const weft_mesh *mesh,
                        const char *axis, const weft_pipeline_options *options)
{
    weft_status status = take_mesh(pipeline, mesh, axis);

    if (status == WEFT_OK) status = read_options(pipeline, parent, options);
    WF_TRY(agree_on_schedule(parent, pipeline, status));
    WF_TRY(make_comm(parent, &pipeline->comm));
    if (pipeline->options.values == NULL) WF_TRY(wf_pipeline_shapes_learn(pipeline));
    pipeline->options.values = NULL;
    WF_TRY(wf_agree_on_status(pipeline->comm, function, prepare(pipeline)));
    return wf_agree_on_status(pipeline->comm, function, wf_channels_open(pipeline));
}

weft_status weft_pipeline_create(weft_context *context, const weft_mesh *mesh, const char *axis,
                                 const weft_pipeline_options *options, weft_pipeline **out)
{
    weft_pipeline_options wanted = {0};
    weft_comm *comm = NULL;
    weft_pipeline *pipeline;
    weft_status status;

    WF_TRY(weft_object_check(context, "weft_context", function, "context"));
    if (options == NULL) return wf_fail_null(function, "options");
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(wf_fail_named(wf_options_read("weft_pipeline_options", options, &wanted, sizeof wanted),
                         function));
    if (wanted.schedule == NULL) return wf_fail_null(function, "weft_pipeline_options.schedule");
    WF_TRY(wf_axis_comm(context, mesh, axis, function, &comm));
    pipeline = wf_calloc(1, sizeof *pipeline);
    if (pipeline == NULL)
        return wf_agree_on_status(comm, function, wf_fail_memory(sizeof *pipeline));
    weft_object_begin(&pipeline->system.object, "weft_pipeline");
    pipeline->context = context;
    pipeline->rank = weft_comm_rank(comm);
    status = make(pipeline, comm, mesh, axis, options);
    if (status != WEFT_OK) {
        weft_pipeline_release(&pipeline);
        return status;
    }
    *out = pipeline;
    return WEFT_OK;
}

/* ---- properties ---- */

weft_status weft_pipeline_get(const weft_pipeline *pipeline, weft_pipeline_info *out)
{
    weft_pipeline_info info = {.struct_size = sizeof info};

    WF_TRY(wf_pipeline_check(pipeline, "weft_pipeline_get"));
    if (out == NULL) return wf_fail_null("weft_pipeline_get", "out");
    info.schedule = pipeline->schedule;
    info.actions = pipeline->action_count;
    info.directions = (size_t)pipeline->channel_count;
    info.pieces = pipeline->slot_count;
    for (uint32_t i = 0; i < pipeline->slot_count; i++)
        info.bytes += pipeline->boundaries[pipeline->slots[i].boundary].bytes;
    for (size_t i = 0; i < pipeline->action_count; i++) {
        uint8_t kind = pipeline->actions[i].kind;
        const struct wf_boundary *boundary;

        if (pipeline->steps[i].channel < 0) continue;
        boundary = &pipeline->boundaries[pipeline->slots[pipeline->steps[i].inputs].boundary];
        if (kind == WEFT_SCHEDULE_ACTION_SEND_F) info.sent += boundary->bytes;
        if (kind == WEFT_SCHEDULE_ACTION_SEND_B) info.sent += boundary->grad_bytes;
        if (kind == WEFT_SCHEDULE_ACTION_RECV_F) info.received += boundary->bytes;
        if (kind == WEFT_SCHEDULE_ACTION_RECV_B) info.received += boundary->grad_bytes;
    }
    return wf_fail_named(wf_info_write("weft_pipeline_info", &info, sizeof info, out),
                         "weft_pipeline_get");
}

weft_status weft_pipeline_values_get(const weft_pipeline *pipeline, int32_t stage,
                                     weft_pipeline_values *out)
{
    const char *name = "weft_pipeline_values_get";

    WF_TRY(wf_pipeline_check(pipeline, name));
    if (out == NULL) return wf_fail_null(name, "out");
    if (stage < 0 || stage + 1 >= pipeline->stages)
        return wf_fail(WEFT_ERR_INVALID, "%s: stage %d passes nothing on; the last stage is %d",
                       name, stage, pipeline->stages - 1);
    *out = pipeline->boundaries[stage].values;
    return WEFT_OK;
}
