/* strides.c - checks the strides of a shard in memory. */
#include "bound.h"

static weft_status refuse_stride(const char *name, int32_t dim, int64_t extent, int64_t stride,
                                 const char *why)
{
    return wf_fail(WEFT_ERR_INVALID, "%s: dimension %d has %lld elements at stride %lld; %s", name,
                   dim, (long long)extent, (long long)stride, why);
}

weft_status wf_strides_check(const char *name, const weft_spec *spec, int32_t rank,
                             const int64_t *strides, bool written)
{
    struct wf_shard shard;
    int64_t reach, bytes = (int64_t)wf_dtype_bytes(spec->layout.dtype), total = bytes;

    if (strides == NULL) return WEFT_OK;
    wf_shard_of(spec, rank, &shard);
    for (int32_t d = 0; shard.elements > 0 && d < shard.dims; d++) {
        int64_t extent = shard.shape[d], stride = strides[d];
        if (extent == 1) continue;
        if (stride < 0)
            return refuse_stride(name, d, extent, stride, "strides must not be negative");
        if (stride == 0 && written)
            return refuse_stride(name, d, extent, stride,
                                 "a target stride of 0 would make elements overlap");
        if (!wf_mul_i64(extent - 1, stride, &reach) || !wf_mul_i64(reach, bytes, &reach) ||
            !wf_add_i64(total, reach, &total))
            return refuse_stride(name, d, extent, stride,
                                 "the last element would be beyond 2^63 bytes");
    }
    return WEFT_OK;
}
