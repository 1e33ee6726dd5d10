/* shmem_match.c - all-gather of small data through the arena, and WEFT_COMM_CHECK, which compares
 * the calls of all ranks before each collective. */
#include "shmem.h"

/* The memory holds the data of all ranks, then the data of this rank. */
weft_status shmem_gather_prepare(struct gpu_comm *comm)
{
    uint64_t bytes = ((uint64_t)comm->size + 1) * SHMEM_GATHER_MAX;

    PLUG_TRY(gpu_check(gpu_api.stream_create(&comm->side, GPU_STREAM_NON_BLOCKING),
                       "creating a stream"));
    return shmem_arena_take(SHMEM_OWN, bytes, &comm->match_memory);
}

static weft_status speak(struct gpu_comm *comm, void *own, const void *mine, uint64_t bytes)
{
    PLUG_TRY(shmem_turn_begin(comm, comm->side));
    return gpu_check(gpu_vendor_copy(own, mine, bytes, comm->side), "gathering small data");
}

/* Within a scope. */
static weft_status gather(struct gpu_comm *comm, const void *mine, uint64_t bytes)
{
    vendor_stream stream = comm->side;
    char *memory = comm->match_memory, *own = memory + (uint64_t)comm->size * SHMEM_GATHER_MAX;
    struct gpu_op op = {.kind = WEFT_COLL_ALL_GATHER,
                        .dtype = WEFT_DTYPE_U8,
                        .bytes = 1,
                        .send = own,
                        .recv = memory,
                        .count = bytes,
                        .stream = stream};
    weft_status status = speak(comm, own, mine, bytes);

    if (status != WEFT_OK) return shmem_decline(comm, status, stream);
    PLUG_TRY(shmem_collective_run_alone(comm, &op));
    PLUG_TRY(shmem_turn_await(comm, stream));
    PLUG_TRY(gpu_check(gpu_vendor_copy(comm->heard, memory, bytes * (uint64_t)comm->size, stream),
                       "reading gathered data"));
    return shmem_turn_await(comm, stream);
}

weft_status shmem_gather_small(struct gpu_comm *comm, const void *mine, uint64_t bytes,
                               const void **all)
{
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(comm->device, &scope));
    status = gather(comm, mine, bytes);
    gpu_leave(&scope);
    *all = comm->heard;
    return status;
}

/* ---- WEFT_COMM_CHECK ---- */

_Static_assert(sizeof(struct gpu_call) <= SHMEM_GATHER_MAX, "a call must fit in a gather");

weft_status shmem_match(struct gpu_comm *comm, const struct gpu_op *op)
{
    struct gpu_call mine = gpu_call_of(comm, op);
    const void *calls;

    if (comm->size == 1 || gpu_is_capturing(op->stream)) return WEFT_OK;
    PLUG_TRY(shmem_gather_small(comm, &mine, sizeof mine, &calls));
    return gpu_calls_match(comm, calls);
}
