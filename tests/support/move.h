/* move.h - moves of one tensor, and of a list, with the options that most tests use: none. */
#ifndef WEFT_TEST_MOVE_H
#define WEFT_TEST_MOVE_H

#include "weft/tensor.h"

static inline weft_status move_one(weft_context *context, const weft_spec *from, const void *source,
                                   const weft_spec *to, void *target, weft_stream *stream,
                                   weft_work **work)
{
    const weft_move_item item = {.from = from, .source = source, .to = to, .target = target};

    return weft_move(context, 1, &item, sizeof item, NULL, stream, work);
}

static inline weft_status move_items(weft_context *context, size_t count,
                                     const weft_move_item *items, weft_stream *stream,
                                     weft_work **work)
{
    return weft_move(context, count, items, sizeof *items, NULL, stream, work);
}

static inline weft_status move_into(weft_tensor *tensor, weft_tensor *target, weft_stream *stream,
                                    weft_work **work)
{
    return weft_tensors_move_into(1, &tensor, &target, NULL, stream, work);
}

#endif
