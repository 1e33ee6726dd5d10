/* reduce.c - collectives that reduce, for backends that do not.
 *
 * Some devices lack the kernels, and some plugins the collective or averages of integers.  In these
 * cases the backend only moves the contributions, and the host reduces them before the call
 * returns.  All backends therefore give the same result. */
#include "carry.h"

#include "base/number.h"

uint32_t wf_average_by_backend(const weft_comm *comm)
{
    weft_support_query query = {.struct_size = sizeof query,
                                .collective = WEFT_COLL_ALL_REDUCE,
                                .reduction = WEFT_REDUCE_AVG,
                                .size = comm->size};
    uint32_t averages = 0, level;

    for (query.dtype = WEFT_DTYPE_I8; query.dtype < WEFT_DTYPE_COUNT; query.dtype++)
        if (comm->table->support(comm->device, &query, &level) == WEFT_OK &&
            level != WEFT_SUPPORT_NO)
            averages |= UINT32_C(1) << query.dtype;
    return averages;
}

bool wf_average_is_ours(const weft_comm *comm, const weft_collective_args *args)
{
    return wf_collective_reduces(args->collective) && args->reduction == WEFT_REDUCE_AVG &&
           (args->dtype < WEFT_DTYPE_F16 || args->divisor != 0) &&
           !(comm->averages >> args->dtype & 1);
}

/* Every rank's contribution to this rank's result, one after the other. */
struct contributions {
    weft_comm *comm;
    const weft_collective_args *args;
    uint64_t count, element; /* elements of each, and bytes of one */
    void *device, *host;
    uint64_t *counts;     /* of reduce_scatter_v: receive counts, then offsets */
    const void **sources; /* where each rank's lies on the host */
};

static weft_status allocate(struct contributions *all)
{
    size_t size = (size_t)all->comm->size;
    uint64_t bytes = all->count * all->element * size;

    WF_TRY(weft_alloc(all->comm->context, bytes, WEFT_MEMORY_DEVICE, &all->device));
    WF_TRY(weft_alloc(all->comm->context, bytes, WEFT_MEMORY_PINNED, &all->host));
    all->sources = wf_alloc(size * sizeof *all->sources);
    if (all->sources == NULL) return wf_fail_memory(size * sizeof *all->sources);
    for (size_t r = 0; r < size; r++)
        all->sources[r] = (const char *)all->host + r * all->count * all->element;
    if (all->args->collective != WEFT_COLL_REDUCE_SCATTER_V) return WEFT_OK;
    all->counts = wf_alloc(2 * size * sizeof *all->counts);
    if (all->counts == NULL) return wf_fail_memory(2 * size * sizeof *all->counts);
    for (size_t r = 0; r < size; r++) {
        all->counts[r] = all->count;
        all->counts[size + r] = r * all->count;
    }
    return WEFT_OK;
}

static weft_status gather(const struct contributions *all)
{
    const weft_collective_args *args = all->args;
    weft_collective_args move = *args;

    move.reduction = 0;
    move.divisor = 0;
    move.root = -1;
    move.recv = all->device;
    move.collective = WEFT_COLL_ALL_GATHER;
    if (args->collective == WEFT_COLL_REDUCE_SCATTER) move.collective = WEFT_COLL_ALL_TO_ALL;
    if (args->collective == WEFT_COLL_REDUCE_SCATTER_V) {
        move.collective = WEFT_COLL_ALL_TO_ALL_V;
        move.recv_counts = all->counts;
        move.recv_offsets = all->counts + all->comm->size;
    }
    return wf_comm_collective_step(all->comm, &move);
}

/* Reduce into the memory of the first contribution. */
static void reduce(const struct contributions *all)
{
    struct wf_reduction r = {.dtype = all->args->dtype,
                             .reduction = all->args->reduction,
                             .size = (uint32_t)all->comm->size,
                             .divisor = all->args->divisor};

    wf_elements_reduce(&r, all->sources, all->host, all->count);
}

static weft_status run(const struct contributions *all)
{
    weft_context *context = all->comm->context;
    const weft_device_table *device = context->plugin->device;
    const weft_collective_args *args = all->args;
    uint64_t bytes = all->count * all->element;
    bool mine = args->collective != WEFT_COLL_REDUCE || args->root == all->comm->rank;

    WF_TRY(gather(all));
    if (bytes == 0 || !mine) return weft_context_wait(context, args->stream, all->comm->timeout_ns);
    WF_TRY(device->copy(context->device, all->host, all->device, bytes * (uint64_t)all->comm->size,
                        args->stream));
    WF_TRY(weft_context_wait(context, args->stream, all->comm->timeout_ns));
    reduce(all);
    WF_TRY(device->copy(context->device, args->recv, all->host, bytes, args->stream));
    return weft_context_wait(context, args->stream, all->comm->timeout_ns);
}

static weft_status drop(struct contributions *all, weft_status status)
{
    weft_context *context = all->comm->context;

    wf_free(all->counts);
    wf_free(all->sources);
    if (all->device != NULL && weft_free(context, all->device) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "device memory was not freed: %s", weft_last_error());
    if (all->host != NULL && weft_free(context, all->host) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "host memory was not freed: %s", weft_last_error());
    return status;
}

/* Compare the divisors of all ranks, which the backend does not see. */
static weft_status compare(weft_comm *comm, const weft_collective_args *args)
{
    uint32_t divisor = args->divisor != 0 ? args->divisor : (uint32_t)comm->size;
    weft_status status =
        wf_comm_compare(comm, args->collective,
                        &(struct wf_call_identity){args->plan, args->binding, args->step, divisor});

    return status == WEFT_OK ? status
                             : wf_comm_fault(comm, status, wf_collective_name(args->collective));
}

weft_status wf_reduce_collective(weft_comm *comm, const weft_collective_args *args)
{
    struct contributions all = {
        .comm = comm, .args = args, .count = args->count, .element = wf_dtype_bytes(args->dtype)};
    weft_status status;

    if (comm->group_depth > 0) return wf_carry_refuse_group(comm, args);
    if (comm->context->config->check) WF_TRY(compare(comm, args));
    if (args->collective == WEFT_COLL_REDUCE_SCATTER_V) all.count = args->send_counts[comm->rank];
    status = allocate(&all);
    if (status != WEFT_OK) wf_comm_fail(comm, status, weft_last_error());
    if (status == WEFT_OK) status = run(&all);
    return drop(&all, status);
}
