/* shmem_match.c - small things told by every rank to all, through the arena; and WEFT_COMM_CHECK,
 * by which ranks compare their calls before each collective. */
#include "shmem.h"

/* The memory holds what all ranks said, then what this rank says. */
weft_status wf_gather_prepare(struct wf_comm *comm)
{
    uint64_t bytes = ((uint64_t)comm->size + 1) * WF_GATHER_MOST;

    WF_TRY(wf_gpu_check(wf_gpu.stream_create(&comm->side, GPU_STREAM_NON_BLOCKING),
                        "creating a stream"));
    return wf_arena_take(WF_OWN, bytes, &comm->match_memory);
}

static weft_status speak(struct wf_comm *comm, void *own, const void *mine, uint64_t bytes)
{
    WF_TRY(wf_turn_begin(comm, comm->side));
    return wf_gpu_check(wf_vendor_copy(own, mine, bytes, comm->side),
                        "telling all ranks something");
}

/* Within a scope. */
static weft_status gather(struct wf_comm *comm, const void *mine, uint64_t bytes)
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
    weft_status status = speak(comm, own, mine, bytes);

    if (status != WEFT_OK) return wf_decline(comm, status, stream);
    WF_TRY(wf_collective_run_alone(comm, &op));
    WF_TRY(wf_turn_await(comm, stream));
    WF_TRY(wf_gpu_check(wf_vendor_copy(comm->heard, memory, bytes * (uint64_t)comm->size, stream),
                        "hearing what all ranks say"));
    return wf_turn_await(comm, stream);
}

weft_status wf_gather_small(struct wf_comm *comm, const void *mine, uint64_t bytes,
                            const void **all)
{
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(comm->device, &scope));
    status = gather(comm, mine, bytes);
    wf_leave(&scope);
    *all = comm->heard;
    return status;
}

/* ---- calls ---- */

_Static_assert(sizeof(struct wf_call) <= WF_GATHER_MOST, "a call is a small thing");

weft_status wf_match(struct wf_comm *comm, const struct wf_op *op)
{
    struct wf_call mine = wf_call_of(comm, op);
    const void *calls;

    if (comm->size == 1 || wf_is_capturing(op->stream)) return WEFT_OK;
    WF_TRY(wf_gather_small(comm, &mine, sizeof mine, &calls));
    return wf_calls_match(comm, calls);
}
