/* gpu_match.c - WEFT_COMM_CHECK: compares the calls of all ranks. */
#include "vendor.h"
#include VENDOR_COMM

#include <stdio.h>
#include <string.h>

static uint64_t hash(const uint64_t *values, int32_t count)
{
    uint64_t h = 14695981039346656037u;

    for (int32_t i = 0; i < count; i++)
        h = (h ^ values[i]) * 1099511628211u;
    return h;
}

static bool has_a_root(uint32_t collective)
{
    return (collective >= WEFT_COLL_BROADCAST && collective <= WEFT_COLL_SCATTER) ||
           (collective >= WEFT_COLL_GATHER_V && collective < WEFT_COLL_COUNT);
}

struct gpu_call gpu_call_of(const struct gpu_comm *comm, const struct gpu_op *op)
{
    struct gpu_call call = {
        .kind = op->kind, .plan = op->plan, .binding = op->binding, .step = op->step};

    if (op->kind == WEFT_COLL_BARRIER) return call;
    call.dtype = op->dtype;
    if (kit_collective_reduces(op->kind)) {
        call.reduction = op->reduction;
        if (op->reduction == WEFT_REDUCE_AVG) call.divisor = op->divisor;
    }
    if (op->kind < WEFT_COLL_BARRIER) call.count = op->count;
    if (op->kind == WEFT_COLL_ALL_GATHER_V) call.counts_hash = hash(op->recv_counts, comm->size);
    if (op->kind == WEFT_COLL_REDUCE_SCATTER_V)
        call.counts_hash = hash(op->send_counts, comm->size);
    if (has_a_root(op->kind)) call.root = op->root;
    return call;
}

/* Print "calls all_reduce(f32, count 8, sum)", or for a plan "runs step 1 of plan ... as ...". */
static void print(const struct gpu_call *call, char *out, size_t size)
{
    char step[96] = "calls";
    const char *name = gpu_op_name(call->kind), *dtype = kit_dtype_name(call->dtype);
    char count[40] = "", reduction[32] = "", divisor[24] = "", root[24] = "";

    if (call->kind < WEFT_COLL_BARRIER)
        snprintf(count, sizeof count, ", count %llu", (unsigned long long)call->count);
    if (call->counts_hash != 0)
        snprintf(count, sizeof count, ", counts #%08llx",
                 (unsigned long long)(call->counts_hash & 0xffffffffu));
    if (kit_collective_reduces(call->kind))
        snprintf(reduction, sizeof reduction, ", %s", kit_reduction_name(call->reduction));
    if (call->divisor != 0) snprintf(divisor, sizeof divisor, ", divisor %u", call->divisor);
    if (has_a_root(call->kind)) snprintf(root, sizeof root, ", root %d", call->root);
    if (call->binding == GPU_SYMM) {
        snprintf(out, size, "calls weft_symm_barrier of symmetric memory #%llu",
                 (unsigned long long)call->plan);
        return;
    }
    if (call->binding != 0)
        snprintf(step, sizeof step, "runs step %u of plan %016llx (binding %u) as", call->step,
                 (unsigned long long)call->plan, call->binding);
    if (call->kind == WEFT_COLL_BARRIER)
        snprintf(out, size, "%s %s", step, name);
    else
        snprintf(out, size, "%s %s(%s%s%s%s%s)", step, name, dtype, count, reduction, divisor,
                 root);
}

weft_status gpu_calls_match(struct gpu_comm *comm, const struct gpu_call *calls)
{
    char first[224], other[224];
    bool of_plans;
    weft_status status;

    for (int32_t r = 1; r < comm->size; r++) {
        if (memcmp(&calls[0], &calls[r], sizeof calls[0]) == 0) continue;
        print(&calls[0], first, sizeof first);
        print(&calls[r], other, sizeof other);
        of_plans = (calls[0].plan != calls[r].plan || calls[0].binding != calls[r].binding ||
                    calls[0].step != calls[r].step) &&
                   calls[0].binding != GPU_SYMM && calls[r].binding != GPU_SYMM;
        status = plug_fail(WEFT_ERR_MISMATCH, "on %s rank %d %s, but rank %d %s%s", comm->name,
                           comm->world_ranks[0], first, comm->world_ranks[r], other,
                           of_plans ? "; all ranks must run bound plans in the same order" : "");
        return gpu_comm_fail(comm, status, NULL);
    }
    return WEFT_OK;
}
