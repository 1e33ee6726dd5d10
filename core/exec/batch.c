/* batch.c - a batch of tensors bound and run: the exchange of those that go together, then the
 * others one by one, all in the same scratch. */
#include "bound.h"

#include <stdio.h>
#include <string.h>

struct wf_batch {
    struct wf_together together;
    weft_bound **alone; /* by tensor; NULL for those that go together */
};

static weft_status check(const weft_plan *plan, const weft_comm *comm,
                         const weft_bind_options *given)
{
    for (uint32_t i = 0; i < plan->member_count; i++)
        WF_TRY(wf_bind_check(plan->members[i].from, plan->members[i].to, comm));
    if (given->source_strides != NULL || given->target_strides != NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "a batch of %u tensors has strides by tensor: "
                       "batch_source_strides and batch_target_strides",
                       plan->member_count);
    return WEFT_OK;
}

static const int64_t *strides_of(const int64_t *const *list, uint32_t tensor)
{
    return list != NULL ? list[tensor] : NULL;
}

static weft_status check_strides(const weft_plan *plan, int32_t rank,
                                 const weft_bind_options *given)
{
    for (uint32_t i = 0; i < plan->member_count; i++) {
        const struct wf_member *member = &plan->members[i];
        char name[48];
        snprintf(name, sizeof name, "batch_source_strides[%u]", i);
        WF_TRY(wf_strides_check(name, member->from, rank,
                                strides_of(given->batch_source_strides, i), false));
        snprintf(name, sizeof name, "batch_target_strides[%u]", i);
        WF_TRY(wf_strides_check(name, member->to, rank, strides_of(given->batch_target_strides, i),
                                true));
    }
    return WEFT_OK;
}

static weft_status make_bound(const weft_plan *plan, weft_comm *comm, weft_bound **out)
{
    struct weft_bound *bound = wf_calloc(1, sizeof *bound);

    if (bound == NULL) return wf_fail_memory(sizeof *bound);
    bound->plan = weft_plan_retain(plan);
    bound->slabs = &bound->own;
    bound->parent = comm;
    bound->context = comm->context;
    atomic_fetch_add(&bound->context->live_bound, 1);
    bound->device = comm->context->device;
    bound->device_table = comm->context->plugin->device;
    bound->kernel = comm->context->plugin->kernel;
    *out = bound;
    bound->batch = wf_calloc(1, sizeof *bound->batch);
    if (bound->batch == NULL) return wf_fail_memory(sizeof *bound->batch);
    bound->batch->alone = wf_calloc(plan->member_count, sizeof *bound->batch->alone);
    if (bound->batch->alone == NULL)
        return wf_fail_memory(plan->member_count * sizeof *bound->batch->alone);
    return WEFT_OK;
}

static weft_status bind_alone(struct weft_bound *bound, const weft_bind_options *given,
                              uint32_t tensor)
{
    weft_bind_options mine = *given;

    if (given->batch_source_strides != NULL)
        mine.source_strides = given->batch_source_strides[tensor];
    if (given->batch_target_strides != NULL)
        mine.target_strides = given->batch_target_strides[tensor];
    wf_slabs_rewind(bound->slabs);
    return wf_bind(bound->plan->members[tensor].alone, bound->parent, &mine, bound->slabs,
                   &bound->batch->alone[tensor]);
}

/* Those that need most scratch come first, so that the others find enough. */
static weft_status bind_all_alone(struct weft_bound *bound, const weft_bind_options *given)
{
    const weft_plan *plan = bound->plan;

    for (;;) {
        uint32_t next = plan->member_count;
        for (uint32_t i = 0; i < plan->member_count; i++) {
            const weft_plan *alone = plan->members[i].alone;
            if (alone == NULL || bound->batch->alone[i] != NULL) continue;
            if (next == plan->member_count || alone->peak > plan->members[next].alone->peak)
                next = i;
        }
        if (next == plan->member_count) return WEFT_OK;
        WF_TRY(bind_alone(bound, given, next));
    }
}

weft_status wf_batch_bind(const weft_plan *plan, weft_comm *comm, const weft_bind_options *given,
                          weft_bound **out)
{
    weft_bound *bound = NULL;
    weft_status status = check(plan, comm, given);

    if (status == WEFT_OK) status = check_strides(plan, comm->rank, given);
    if (status == WEFT_OK) status = make_bound(plan, comm, &bound);
    status = wf_bind_agree(comm, "preparing", status, plan);
    if (status == WEFT_OK) status = bind_all_alone(bound, given);
    if (status == WEFT_OK && plan->together > 0) {
        wf_slabs_rewind(bound->slabs);
        status = wf_together_set(bound, given, status, &bound->batch->together);
        status = wf_bind_agree(comm, "binding", status, plan);
    }
    if (status != WEFT_OK) {
        weft_bound_release(&bound);
        return status;
    }
    *out = bound;
    return WEFT_OK;
}

void wf_batch_clear(struct weft_bound *bound)
{
    if (bound->batch == NULL) return;
    for (uint32_t i = 0; bound->batch->alone != NULL && i < bound->plan->member_count; i++)
        weft_bound_release(&bound->batch->alone[i]);
    wf_together_clear(bound, &bound->batch->together);
    wf_free(bound->batch->alone);
    wf_free(bound->batch);
    bound->batch = NULL;
}

weft_status weft_redistribute_batch(weft_bound *bound, const void *const *sources,
                                    void *const *targets, weft_stream *stream, weft_work **work)
{
    if (bound == NULL || sources == NULL || targets == NULL)
        return wf_fail_null("weft_redistribute_batch", "bound, sources or targets");
    if (bound->batch == NULL) return weft_redistribute(bound, sources[0], targets[0], stream, work);
    if (bound->plan->together > 0)
        WF_TRY(wf_together_run(bound, &bound->batch->together, sources, targets, stream));
    for (uint32_t i = 0; i < bound->plan->member_count; i++)
        if (bound->batch->alone[i] != NULL)
            WF_TRY(weft_redistribute(bound->batch->alone[i], sources[i], targets[i], stream, NULL));
    return work != NULL ? weft_work_record(bound->context, stream, work) : WEFT_OK;
}
