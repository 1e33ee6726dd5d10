/* shmem_match.c - small things told by every rank to all, through the arena; and WEFT_COMM_CHECK,
 * by which ranks compare their calls before each collective. */
#include "shmem.h"

/* The memory holds what all ranks said, then what this rank says.  Within a scope. */
static weft_status make_memory(struct wf_comm *comm)
{
    if (comm->side == NULL)
        WF_TRY(wf_gpu_check(wf_gpu.stream_create(&comm->side, GPU_STREAM_NON_BLOCKING),
                            "creating a stream"));
    if (comm->match_memory != NULL) return WEFT_OK;
    return wf_arena_take(((uint64_t)comm->size + 1) * WF_GATHER_MOST, &comm->match_memory);
}

/* Within a scope. */
static weft_status gather(struct wf_comm *comm, const void *mine, void *all, uint64_t bytes)
{
    gpu_stream stream = comm->side;
    char *memory = comm->match_memory, *own = memory + (uint64_t)comm->size * WF_GATHER_MOST;
    struct wf_op op = {.kind = WEFT_COLL_ALL_GATHER,
                       .dtype = WEFT_DTYPE_U8,
                       .bytes = 1,
                       .send = own,
                       .recv = memory,
                       .count = bytes,
                       .stream = stream};

    WF_TRY(wf_turn_begin(comm, stream));
    WF_TRY(wf_gpu_check(wf_vendor_copy(own, mine, bytes, stream), "telling all ranks something"));
    WF_TRY(wf_collective_run_alone(comm, &op));
    WF_TRY(wf_turn_await(comm, stream));
    WF_TRY(wf_gpu_check(wf_vendor_copy(all, memory, bytes * (uint64_t)comm->size, stream),
                        "hearing what all ranks say"));
    return wf_turn_await(comm, stream);
}

weft_status wf_gather_small(struct wf_comm *comm, const void *mine, void *all, uint64_t bytes)
{
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(comm->device, &scope));
    status = make_memory(comm);
    if (status == WEFT_OK) status = gather(comm, mine, all, bytes);
    wf_leave(&scope);
    return status;
}

/* ---- calls ---- */

_Static_assert(sizeof(struct wf_call) <= WF_GATHER_MOST, "a call is a small thing");

weft_status wf_match(struct wf_comm *comm, const struct wf_op *op)
{
    struct wf_call mine = wf_call_of(comm, op), *calls;
    weft_status status;

    if (comm->size == 1 || wf_is_capturing(op->stream)) return WEFT_OK;
    calls = wf_new((size_t)comm->size * sizeof *calls);
    if (calls == NULL) return WEFT_ERR_NO_MEMORY;
    status = wf_gather_small(comm, &mine, calls, sizeof mine);
    if (status == WEFT_OK) status = wf_calls_match(comm, calls);
    wf_delete(calls);
    return status;
}
