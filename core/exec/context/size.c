/* size.c - the scratch that a plan needs, before it is bound.
 *
 * The plan is bound as usual, but without effects: steps get sketches of communicators (sketch.c),
 * and no list of regions is made.  The size is therefore the one that binding finds. */
#include "kept.h"

#include "exec/host/host.h"

#include <string.h>

static weft_status make_no_list(void *device, uint32_t element_bytes, uint64_t count,
                                const weft_region *regions, void **list)
{
    (void)device;
    (void)element_bytes;
    (void)count;
    (void)regions;
    *list = NULL;
    return WEFT_OK;
}

weft_status weft_plan_scratch(const weft_plan *plan, weft_comm *comm,
                              const weft_bind_options *options, uint64_t *bytes)
{
    weft_kernel_table kernel = {0};
    struct wf_bind_call call = {.function = "weft_plan_scratch",
                                .parent = comm,
                                .team = comm,
                                .sized_only = true,
                                .kernel = &kernel};
    const weft_kernel_table *real;
    weft_status status;

    if (comm == NULL) return wf_fail_null("weft_plan_scratch", "comm");
    WF_TRY(wf_comm_check(comm, "weft_plan_scratch"));
    if (bytes == NULL) return wf_fail_null("weft_plan_scratch", "bytes");
    WF_TRY(wf_bind_read(plan, options, bytes, &call));
    WF_TRY(wf_casts_find(plan, comm, &call.casts));
    wf_ways_find(plan, comm, &call.ways);
    real = wf_kernels_of(comm->context);
    memcpy(&kernel, real, real->struct_size < sizeof kernel ? real->struct_size : sizeof kernel);
    kernel.regions_create = make_no_list;
    WF_TRY(wf_bind_give_room(&call));
    status = plan->members != NULL ? wf_batch_size(plan, &call, bytes)
                                   : wf_bind_size(plan, &call, bytes);
    wf_free(call.room);
    return status;
}
