/* state.c - what groups tell of themselves, and stored parameters replaced. */
#include "fsdp.h"

/* Bytes of what GROUP has allocated between calls. */
static void measure(const weft_fsdp_group *group, weft_fsdp_group_info *out)
{
    const weft_context *context = group->fsdp->context;

    out->bytes_gathered = group->gathered_block != NULL ? group->gathered_room : 0;
    out->bytes_kept = group->kept_block != NULL ? group->kept_room : 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct wf_fsdp_param *param = &group->params[i];

        if (param->owns_gradient) out->bytes_gradients += weft_tensor_bytes(param->gradient);
        out->bytes_sums += weft_tensor_bytes(param->sum) + weft_tensor_bytes(param->partial);
        if (!wf_fsdp_is_first(group, i)) continue;
        for (int32_t j = 0; j < wf_here_count(context); j++)
            out->bytes_shard +=
                weft_spec_shard_bytes(weft_tensor_spec(param->stored), wf_here_rank(context, j));
    }
}

void wf_fsdp_count(weft_fsdp_group *group, int64_t bytes)
{
    group->bytes_now += (uint64_t)bytes;
    if (group->bytes_now > group->bytes_peak) group->bytes_peak = group->bytes_now;
}

weft_status weft_fsdp_group_get(const weft_fsdp_group *group, weft_fsdp_group_info *out)
{
    static const char function[] = "weft_fsdp_group_get";
    weft_plan_info plan = {.struct_size = sizeof plan};
    const struct wf_exchange *gather;
    weft_fsdp_group_info info = {0};

    WF_TRY(wf_fsdp_group_check(group, function));
    if (out == NULL) return wf_fail_null(function, "out");
    measure(group, &info);
    info.count = group->count;
    info.state = group->state;
    info.reducing = group->reducing;
    info.bytes_peak = group->bytes_peak;
    for (gather = group->gathers; gather->next != NULL;) /* the first one that was bound */
        gather = gather->next;
    WF_TRY(wf_fail_named(weft_plan_get(gather->plan, &plan), function));
    info.bytes_received = plan.bytes_received_max;
    return wf_fail_named(wf_info_write("weft_fsdp_group_info", &info, sizeof info, out), function);
}

weft_status weft_fsdp_get(const weft_fsdp *fsdp, weft_fsdp_info *out)
{
    static const char function[] = "weft_fsdp_get";
    weft_fsdp_info info = {0};

    WF_TRY(wf_fsdp_check(fsdp, function));
    if (out == NULL) return wf_fail_null(function, "out");
    for (const weft_fsdp_group *group = fsdp->groups; group != NULL; group = group->next) {
        weft_fsdp_group_info one = {0};

        measure(group, &one);
        info.groups++;
        info.groups_gathered += group->state >= WEFT_FSDP_GATHERING;
        info.bytes_shard += one.bytes_shard;
        info.bytes_gathered += one.bytes_gathered;
        info.bytes_kept += one.bytes_kept;
        info.bytes_gradients += one.bytes_gradients;
        info.bytes_sums += one.bytes_sums;
    }
    return wf_fail_named(wf_info_write("weft_fsdp_info", &info, sizeof info, out), function);
}

size_t weft_fsdp_group_count(const weft_fsdp_group *group)
{
    return wf_fsdp_group_check(group, "weft_fsdp_group_count") == WEFT_OK ? group->count : 0;
}

weft_status weft_fsdp_rebind(weft_fsdp_group *group, size_t index, weft_tensor *tensor)
{
    static const char function[] = "weft_fsdp_rebind";
    bool is_grouped, is_dense;
    weft_tensor *before;

    WF_TRY(wf_fsdp_group_check(group, function));
    WF_TRY(weft_object_check(tensor, "weft_tensor", function, "tensor"));
    if (index >= group->count)
        return wf_fsdp_fail(group,
                            wf_fail(WEFT_ERR_INVALID, "index is %zu; the group has %u parameter%s",
                                    index, group->count, group->count == 1 ? "" : "s"),
                            function);
    before = group->params[index].stored;
    if (tensor == before) return WEFT_OK;
    if (group->state != WEFT_FSDP_SHARDED)
        return wf_fsdp_fail(group,
                            wf_fail(WEFT_ERR_INVALID, "%s; weft_fsdp_reshard first",
                                    group->state == WEFT_FSDP_PART_KEPT
                                        ? "parts of the parameters are kept"
                                        : "the parameters are gathered or being gathered"),
                            function);
    is_grouped = wf_fsdp_has(weft_tensor_context(tensor), tensor);
    is_dense = wf_fsdp_is_dense(tensor);
    if (weft_tensor_context(tensor) != group->fsdp->context ||
        weft_tensor_spec(tensor) != weft_tensor_spec(before) || !is_dense || is_grouped)
        return wf_fsdp_fail(group,
                            wf_fail(WEFT_ERR_INVALID, "parameter %zu cannot become a tensor %s",
                                    index,
                                    is_grouped  ? "that is a parameter of a group already"
                                    : !is_dense ? "with gaps"
                                                : "of another layout or context; "
                                                  "weft_tensors_move_into copies it"),
                            function);
    for (uint32_t i = 0; i < group->count; i++) {
        weft_tensor *stored = group->params[i].stored;

        if (stored != before) continue;
        group->params[i].stored = weft_tensor_retain(tensor);
        weft_tensor_release(&stored);
    }
    return WEFT_OK;
}
