/* shape.c - checks the shape of a tensor. */
#include "layout.h"

weft_status wf_shape_check(int32_t dims, const int64_t *shape, uint32_t dtype)
{
    int64_t bytes = (int64_t)wf_dtype_bytes(dtype);

    if (bytes == 0)
        return wf_fail(WEFT_ERR_INVALID, "dtype %u is unknown; the dtypes are 0 to %d", dtype,
                       WEFT_DTYPE_COUNT - 1);
    if (dims < 0 || dims > WEFT_MAX_DIMS)
        return wf_fail(WEFT_ERR_INVALID, "the tensor has %d dimensions; the maximum is %d", dims,
                       WEFT_MAX_DIMS);
    for (int32_t i = 0; i < dims; i++) {
        if (shape[i] < 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "dimension %d has size %lld; a size must not be negative", i,
                           (long long)shape[i]);
        if (shape[i] > 0 && !wf_mul_i64(bytes, shape[i], &bytes))
            return wf_fail(
                WEFT_ERR_INVALID,
                "dimension %d, of size %lld, makes the tensor of %s larger than 2^63 - 1 bytes", i,
                (long long)shape[i], wf_dtype_name(dtype));
    }
    return WEFT_OK;
}
