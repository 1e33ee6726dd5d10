/* wrong_wrapping_cast.c - a cast to a small integer that wraps around.
 * Runs: --only kernel/cast
 * Fails: kernel/cast/f32/i8 */
#include "wrong.h"

static weft_status cast(void *device, uint32_t from, uint32_t to, uint64_t count,
                        const void *source, void *target, void *stream)
{
    const float *in = source;
    int8_t *out = target;

    if (from != WEFT_DTYPE_F32 || to != WEFT_DTYPE_I8)
        return right.kernel.cast(device, from, to, count, source, target, stream);
    for (uint64_t i = 0; i < count; i++)
        out[i] = in[i] > -1e9f && in[i] < 1e9f ? (int8_t)(int32_t)in[i] : 0;
    return WEFT_OK;
}

INSTALL(wrong.kernel.cast = cast)
