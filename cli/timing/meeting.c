/* meeting.c - see meeting.h. */
#include "timing/meeting.h"

#include "base/base.h"

enum { ROOM = 512 }; /* values that meet at once */

weft_status meeting_open(struct meeting *meeting, weft_context *context, weft_comm *comm)
{
    weft_device_info info = {.struct_size = sizeof info};
    void *memory;

    WF_TRY(weft_context_describe(context, &info));
    WF_TRY(weft_alloc(context, ROOM * sizeof(uint64_t), WEFT_MEMORY_DEVICE, &memory));
    *meeting = (struct meeting){context, comm, (info.features & WEFT_FEATURE_INLINE) != 0, memory};
    return WEFT_OK;
}

weft_status meeting_close(struct meeting *meeting)
{
    return weft_free(meeting->context, meeting->memory);
}

weft_status meeting_finish(const struct meeting *meeting)
{
    return meeting->inline_work ? WEFT_OK : weft_stream_wait(meeting->context, NULL, WEFT_FOREVER);
}

weft_status meeting_maximum(const struct meeting *meeting, uint64_t *values, size_t count)
{
    weft_context *context = meeting->context;

    while (count > 0) {
        size_t part = count < ROOM ? count : ROOM;

        WF_TRY(weft_copy(context, meeting->memory, values, part * sizeof *values, NULL));
        WF_TRY(weft_all_reduce(meeting->comm, meeting->memory, meeting->memory, part,
                               WEFT_DTYPE_U64, WEFT_REDUCE_MAX, NULL));
        WF_TRY(weft_copy(context, values, meeting->memory, part * sizeof *values, NULL));
        WF_TRY(meeting_finish(meeting));
        values += part;
        count -= part;
    }
    return WEFT_OK;
}

static int barrier(void *self)
{
    const struct meeting *meeting = self;

    WF_TRY(weft_barrier(meeting->comm, NULL));
    return meeting_finish(meeting);
}

static int maximum(void *self, uint64_t *values, size_t count)
{
    return meeting_maximum(self, values, count);
}

struct bench_ranks meeting_ranks(struct meeting *meeting)
{
    return (struct bench_ranks){.rank = weft_comm_rank(meeting->comm),
                                .size = weft_comm_size(meeting->comm),
                                .self = meeting,
                                .barrier = barrier,
                                .maximum = maximum};
}
