/* state.c - what a group tells of itself, and its stored parameters replaced. */
#include "fsdp.h"

uint64_t wf_fsdp_bytes(const weft_tensor *tensor)
{
    return tensor != NULL ? wf_tensor_room(tensor) : 0;
}

/* Bytes of what GROUP has allocated between calls. */
static void measure(const weft_fsdp_group *group, weft_fsdp_group_info *out)
{
    out->bytes_gathered = group->gathered_block != NULL ? group->gathered_room : 0;
    out->bytes_kept = group->kept_block != NULL ? group->kept_room : 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct wf_fsdp_param *param = &group->params[i];

        out->bytes_gradients += wf_fsdp_bytes(param->gradient);
        out->bytes_sums += wf_fsdp_bytes(param->sum) + wf_fsdp_bytes(param->partial);
        if (!wf_fsdp_is_first(group, i)) continue;
        for (int32_t j = 0; j < param->stored->local_count; j++)
            out->bytes_shard += wf_local_bytes(param->stored, &param->stored->locals[j]);
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

uint32_t weft_fsdp_group_count(const weft_fsdp_group *group)
{
    return wf_fsdp_group_check(group, "weft_fsdp_group_count") == WEFT_OK ? group->count : 0;
}

weft_status weft_fsdp_rebind(weft_fsdp_group *group, uint32_t index, weft_tensor *tensor)
{
    static const char function[] = "weft_fsdp_rebind";
    weft_tensor *before;

    WF_TRY(wf_fsdp_group_check(group, function));
    WF_TRY(wf_tensor_check(tensor, function, "tensor"));
    if (index >= group->count)
        return wf_fsdp_fail(group,
                            wf_fail(WEFT_ERR_INVALID, "index is %u; the group has %u parameters",
                                    index, group->count),
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
    if (tensor->context != group->fsdp->context || tensor->spec != before->spec ||
        !tensor->is_dense || tensor->is_grouped)
        return wf_fsdp_fail(group,
                            wf_fail(WEFT_ERR_INVALID, "parameter %u cannot become a tensor %s",
                                    index,
                                    tensor->is_grouped  ? "that is a parameter of a group already"
                                    : !tensor->is_dense ? "with gaps"
                                                        : "of another layout or context; "
                                                          "weft_tensor_move_into copies it"),
                            function);
    before->is_grouped = false;
    tensor->is_grouped = true;
    for (uint32_t i = 0; i < group->count; i++) {
        weft_tensor *stored = group->params[i].stored;

        if (stored != before) continue;
        group->params[i].stored = weft_tensor_retain(tensor);
        weft_tensor_release(&stored);
    }
    return WEFT_OK;
}
