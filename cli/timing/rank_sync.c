/* rank_sync.c - see rank_sync.h. */
#include "timing/rank_sync.h"

#include "base/base.h"
#include "common/cli.h"

enum { ROOM = 512 }; /* values in one reduction */

/* Pretended hosts share the cores of this one. */
static int32_t place_of(weft_context *context)
{
    return cli_variable("WEFT_HOST_ID") != NULL ? weft_rank(context) : weft_local_rank(context);
}

weft_status rank_sync_open(struct rank_sync *sync, weft_context *context, weft_comm *comm)
{
    weft_device_info info = {.struct_size = sizeof info};
    void *memory;

    bench_pin(place_of(context));
    WF_TRY(weft_device_get(context, &info));
    WF_TRY(weft_alloc(context, ROOM * sizeof(uint64_t), WEFT_MEMORY_DEVICE, &memory));
    *sync = (struct rank_sync){context, comm, (info.features & WEFT_FEATURE_INLINE) != 0, memory};
    return WEFT_OK;
}

weft_status rank_sync_close(struct rank_sync *sync)
{
    return weft_free(sync->context, sync->memory);
}

weft_status rank_sync_finish(const struct rank_sync *sync)
{
    return sync->inline_work ? WEFT_OK : weft_context_wait(sync->context, NULL, WEFT_FOREVER);
}

weft_status rank_sync_maximum(const struct rank_sync *sync, uint64_t *values, size_t count)
{
    weft_context *context = sync->context;

    while (count > 0) {
        size_t part = count < ROOM ? count : ROOM;

        WF_TRY(weft_memory_copy(context, values, sync->memory, part * sizeof *values, NULL));
        WF_TRY(weft_all_reduce(sync->comm, sync->memory, sync->memory, part, WEFT_DTYPE_U64,
                               WEFT_REDUCE_MAX, NULL));
        WF_TRY(weft_memory_copy(context, sync->memory, values, part * sizeof *values, NULL));
        WF_TRY(rank_sync_finish(sync));
        values += part;
        count -= part;
    }
    return WEFT_OK;
}

weft_status rank_sync_gather(const struct rank_sync *sync, const void *mine, void *all,
                             size_t bytes)
{
    size_t total = (size_t)weft_comm_size(sync->comm) * bytes;
    void *send = NULL, *receive = NULL;

    WF_TRY(weft_alloc(sync->context, bytes, WEFT_MEMORY_DEVICE, &send));
    WF_TRY(weft_alloc(sync->context, total, WEFT_MEMORY_DEVICE, &receive));
    WF_TRY(weft_memory_copy(sync->context, mine, send, bytes, NULL));
    WF_TRY(weft_all_gather(sync->comm, send, receive, bytes, WEFT_DTYPE_U8, NULL));
    WF_TRY(weft_memory_copy(sync->context, receive, all, total, NULL));
    WF_TRY(rank_sync_finish(sync));
    WF_TRY(weft_free(sync->context, send));
    return weft_free(sync->context, receive);
}

static int barrier(void *self)
{
    const struct rank_sync *sync = self;

    WF_TRY(weft_barrier(sync->comm, NULL));
    return rank_sync_finish(sync);
}

static int maximum(void *self, uint64_t *values, size_t count)
{
    return rank_sync_maximum(self, values, count);
}

struct bench_ranks rank_sync_ranks(struct rank_sync *sync)
{
    return (struct bench_ranks){.rank = weft_comm_rank(sync->comm),
                                .size = weft_comm_size(sync->comm),
                                .self = sync,
                                .barrier = barrier,
                                .maximum = maximum};
}
