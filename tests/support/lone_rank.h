/* lone_rank.h - one rank of a communicator whose other ranks do not exist, for the local part of
 * binding.  Kernels record their regions and move no data. */
#ifndef WEFT_TESTS_LONE_RANK_H
#define WEFT_TESTS_LONE_RANK_H

#include "exec/context/kept.h"
#include "support/fake_world.h"
#include "support/layout.h"

struct kept_regions {
    uint32_t element;
    uint64_t count;
    weft_region regions[];
};

static weft_status keep_regions(void *device, uint32_t element, uint64_t count,
                                const weft_region *regions, void **list)
{
    struct kept_regions *kept = wf_alloc(sizeof *kept + count * sizeof *regions);

    (void)device;
    if (kept == NULL) return wf_fail_memory(sizeof *kept);
    kept->element = element;
    kept->count = count;
    if (count > 0) memcpy(kept->regions, regions, count * sizeof *regions);
    *list = kept;
    return WEFT_OK;
}

static void drop_regions(void *list)
{
    wf_free(list);
}

static const weft_kernel_table keeping_kernel = {.struct_size = sizeof(weft_kernel_table),
                                                 .signature = WEFT_KERNEL_SIGNATURE,
                                                 .regions_create = keep_regions,
                                                 .regions_destroy = drop_regions};

struct lone_rank {
    weft_context *context;
    struct weft_comm comm;
    int32_t ranks[64], room[64];
    struct weft_bound *bound;
    struct wf_action action;
    struct wf_step step;
};

/* RANK of SIZE. */
static inline void lone_begin(struct lone_rank *lone, int32_t rank, int32_t size)
{
    memset(lone, 0, sizeof *lone);
    fake_reset();
    lone->context = world_alone();
    for (int32_t i = 0; i < size; i++)
        lone->ranks[i] = i;
    lone->comm.made = wf_made_now(WF_KIND_COMM);
    lone->comm.context = lone->context;
    lone->comm.plugin = lone->context->plugin;
    lone->comm.table = lone->comm.plugin->comm;
    lone->comm.rank = rank;
    lone->comm.size = size;
    lone->comm.world_ranks = lone->ranks;
    lone->bound = wf_calloc(1, sizeof *lone->bound);
    ck_assert_ptr_nonnull(lone->bound);
    lone->bound->made = wf_made_now(WF_KIND_BOUND);
    lone->bound->context = lone->context;
    lone->bound->parent = lone->bound->team = &lone->comm;
    lone->bound->kernel = &keeping_kernel;
    /* The fake plugin builds reduce-scatters from other operations. */
    lone->bound->ways.denied[WEFT_COLL_REDUCE_SCATTER] = UINT32_MAX;
    lone->bound->ways.denied[WEFT_COLL_REDUCE_SCATTER_V] = UINT32_MAX;
    lone->bound->runs = &lone->bound->own_runs;
}

/* Make the action of one step of KIND along all axes. */
static inline weft_status lone_act(struct lone_rank *lone, uint32_t kind, const char *mesh,
                                   const char *from, const char *to)
{
    lone->step =
        (struct wf_step){.kind = kind, .from = spec_of(mesh, from), .to = spec_of(mesh, to)};
    lone->step.axes = (UINT32_C(1) << lone->step.from->layout.mesh->axes) - 1;
    lone->action = (struct wf_action){.step = &lone->step, .comm = &lone->comm, .member = true};
    return wf_action_set(lone->bound, &lone->action, NULL, NULL);
}

static inline void lone_clear(struct lone_rank *lone)
{
    wf_action_clear(lone->bound, &lone->action);
    weft_spec_release(&lone->step.from);
    weft_spec_release(&lone->step.to);
}

static inline void lone_end(struct lone_rank *lone)
{
    wf_scratch_drop(lone->bound);
    wf_free(lone->bound);
    weft_context_release(&lone->context);
}

#endif
