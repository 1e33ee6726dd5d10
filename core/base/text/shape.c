/* shape.c - sizes of dimensions. */
#include "base/base.h"

void wf_shape_add_text(int32_t dims, const int64_t *shape, struct wf_text *text)
{
    wf_text_char(text, '[');
    for (int32_t i = 0; i < dims; i++)
        wf_text_add(text, "%s%lld", i > 0 ? "," : "", (long long)shape[i]);
    wf_text_char(text, ']');
}

void wf_row_major(int32_t dims, const int64_t *shape, int64_t *strides)
{
    int64_t stride = 1;

    for (int32_t d = dims - 1; d >= 0; d--) {
        strides[d] = stride;
        if (shape[d] > 0) stride *= shape[d];
    }
}
