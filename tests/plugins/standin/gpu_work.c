/* gpu_work.c - work of the simulated device's streams besides kernels: copies, fills, calls. */
#include "gpu.h"

#include <string.h>

static void run_box(void *self)
{
    const struct sg_box *box = self;

    for (size_t row = 0; row < box->height; row++)
        memmove((char *)box->target + row * box->target_pitch,
                (const char *)box->source + row * box->source_pitch, box->width);
}

int sg_copy_2d(const struct sg_box *box, struct sg_stream *stream)
{
    if (box->width > box->target_pitch || box->width > box->source_pitch) return SG_INVALID_VALUE;
    return sg_enqueue(stream, run_box, box, sizeof *box);
}

/* Plain host memory is accessed before the call returns, as the real libraries do with memory that
 * they do not know. */
int sg_copy(void *target, const void *source, size_t bytes, struct sg_stream *stream)
{
    struct sg_box box = {target, source, bytes, bytes, bytes, 1};
    bool wait = sg_find(target).kind == SG_UNKNOWN || sg_find(source).kind == SG_UNKNOWN;
    int result = sg_enqueue(stream, run_box, &box, sizeof box);

    return result == SG_OK && wait ? sg_stream_sync(stream) : result;
}

struct fill {
    void *target;
    size_t bytes;
    unsigned char byte;
};

static void run_fill(void *self)
{
    const struct fill *fill = self;

    memset(fill->target, fill->byte, fill->bytes);
}

int sg_fill(void *target, unsigned char byte, size_t bytes, struct sg_stream *stream)
{
    struct fill fill = {target, bytes, byte};

    if (sg_find(target).kind == SG_UNKNOWN) return SG_INVALID_VALUE;
    return sg_enqueue(stream, run_fill, &fill, sizeof fill);
}

struct call {
    void (*fn)(void *);
    void *argument;
};

static _Thread_local bool is_calling;

bool sg_is_calling(void)
{
    return is_calling;
}

static void run_call(void *self)
{
    const struct call *call = self;

    is_calling = true;
    call->fn(call->argument);
    is_calling = false;
}

int sg_call(struct sg_stream *stream, void (*fn)(void *), void *argument)
{
    struct call call = {fn, argument};

    return sg_enqueue(stream, run_call, &call, sizeof call);
}
