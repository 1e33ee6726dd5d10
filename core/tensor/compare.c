/* compare.c - two tensors compared, in whichever layouts they are. */
#include "tensor.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

/* The result of one rank.  GLOBAL is the number of the element in the whole tensor. */
struct finding {
    uint64_t differing;
    double largest, first[2], second[2];
    int64_t global;
    int32_t rank;
};

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* The distance of two parts of elements that are not the same. */
static double distance_of(double a, double b)
{
    if (is_same(a, b)) return 0;
    return isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
}

static double difference_of(uint32_t dtype, const struct wf_number *a, const struct wf_number *b)
{
    bool less;

    if (wf_dtype_is_complex(dtype))
        return hypot(distance_of(a->re, b->re), distance_of(a->im, b->im));
    if (wf_dtype_is_float(dtype)) return distance_of(a->re, b->re);
    less = wf_dtype_is_signed(dtype) ? (int64_t)a->integer < (int64_t)b->integer
                                     : a->integer < b->integer;
    return (double)(less ? b->integer - a->integer : a->integer - b->integer);
}

static void set_values(uint32_t dtype, const struct wf_number *number, double out[2])
{
    bool is_float = wf_dtype_is_float(dtype) || wf_dtype_is_complex(dtype);

    out[0] = is_float                    ? number->re
             : wf_dtype_is_signed(dtype) ? (double)(int64_t)number->integer
                                         : (double)number->integer;
    out[1] = wf_dtype_is_complex(dtype) ? number->im : 0;
}

/* Compare LENGTH elements; the first one has the number GLOBAL. */
static void compare_run(uint32_t dtype, const char *first, const char *second, int64_t length,
                        int64_t global, struct finding *found)
{
    size_t bytes = wf_dtype_bytes(dtype);

    if (memcmp(first, second, (size_t)length * bytes) == 0) return;
    for (int64_t i = 0; i < length; i++) {
        struct wf_number a = wf_number_load(dtype, first + (size_t)i * bytes);
        struct wf_number b = wf_number_load(dtype, second + (size_t)i * bytes);
        double difference = difference_of(dtype, &a, &b);

        if (difference == 0) continue;
        found->differing++;
        if (difference <= found->largest) continue;
        found->largest = difference;
        found->global = global + i;
        set_values(dtype, &a, found->first);
        set_values(dtype, &b, found->second);
    }
}

/* Compare this rank's shards of two tensors of one layout. */
static weft_status compare_shards(weft_tensor *first, weft_tensor *second, weft_stream *stream,
                                  struct finding *found)
{
    uint32_t dtype = first->spec->layout.dtype;
    int64_t bytes = (int64_t)wf_dtype_bytes(dtype);
    void *a = NULL, *b = NULL;
    weft_segment part;
    weft_status status;

    WF_TRY(wf_tensor_read(first, stream, &a));
    status = wf_tensor_read(second, stream, &b);
    if (status == WEFT_OK) {
        for (int64_t at = 0; weft_spec_segment(first->spec, first->context->rank, NULL, at, &part);
             at += part.length)
            compare_run(dtype, (char *)a + part.local * bytes, (char *)b + part.local * bytes,
                        part.length, part.global, found);
        wf_tensor_unread(second, b);
    }
    wf_tensor_unread(first, a);
    return status;
}

/* Move both tensors to the layout of FIRST without partials, and compare them. */
static weft_status compare_here(weft_tensor *first, weft_tensor *second, weft_stream *stream,
                                const char *function, struct finding *found)
{
    weft_tensor *a = NULL, *b = NULL;
    weft_spec *spec = NULL;
    weft_status status = weft_spec_gradient(first->spec, &spec);

    if (status == WEFT_OK) status = wf_tensor_in(first, spec, stream, function, &a);
    if (status == WEFT_OK) status = wf_tensor_in(second, spec, stream, function, &b);
    if (status == WEFT_OK) status = compare_shards(a, b, stream, found);
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    weft_spec_release(&spec);
    return status;
}

/* Put together what all ranks have found. */
static void merge(const struct wf_gathered *got, const weft_spec *spec, weft_difference_info *out)
{
    int64_t global = -1;

    for (int32_t i = 0; i < got->count; i++) {
        struct finding found;

        memcpy(&found, got->blobs[i].data, sizeof found);
        out->ranks++;
        out->differing += found.differing;
        if (found.differing == 0 || found.largest < out->largest) continue;
        if (found.largest == out->largest && global >= 0 && found.global >= global) continue;
        out->largest = found.largest;
        global = found.global;
        out->rank = found.rank;
        memcpy(out->first, found.first, sizeof out->first);
        memcpy(out->second, found.second, sizeof out->second);
    }
    out->equal = out->differing == 0;
    if (global < 0) return;
    for (int32_t d = spec->layout.dims - 1; d >= 0; d--) {
        out->index[d] = global % spec->layout.shape[d];
        global /= spec->layout.shape[d];
    }
}

static weft_status check_pair(const weft_tensor *first, const weft_tensor *second)
{
    const struct wf_layout *a = &first->spec->layout, *b = &second->spec->layout;

    if (first->context != second->context)
        return wf_fail(WEFT_ERR_INVALID, "second belongs to another context");
    if (a->dtype != b->dtype)
        return wf_fail(WEFT_ERR_INVALID, "first has %s, but second has %s",
                       weft_dtype_name((enum weft_dtype)a->dtype),
                       weft_dtype_name((enum weft_dtype)b->dtype));
    if (a->dims != b->dims || memcmp(a->shape, b->shape, (size_t)a->dims * sizeof *a->shape) != 0) {
        char one[256], other[256];

        WF_TRY(weft_spec_print(first->spec, one, sizeof one, NULL));
        WF_TRY(weft_spec_print(second->spec, other, sizeof other, NULL));
        return wf_fail(WEFT_ERR_INVALID, "first is %s, but second is %s; the shapes differ", one,
                       other);
    }
    return WEFT_OK;
}

weft_status weft_tensor_compare(weft_tensor *first, weft_tensor *second, weft_stream *stream,
                                weft_difference_info *out)
{
    static const char what[] = "weft_tensor_compare";
    weft_difference_info info = {0};
    struct finding found = {0};
    struct wf_gathered got = {0};
    weft_status status;

    WF_TRY(wf_tensor_check(first, what, "first"));
    WF_TRY(wf_tensor_check(second, what, "second"));
    if (out == NULL) return wf_fail_null(what, "out");
    WF_TRY(wf_stream_check(first->context, stream, what));
    WF_TRY(wf_tensor_fail(first, check_pair(first, second), what));
    found.rank = first->context->rank;
    status = compare_here(first, second, stream, what, &found);
    status = wf_move_agree(first->context, first->spec, second->spec, what, status,
                           (weft_blob){&found, sizeof found}, &got);
    if (status == WEFT_OK) merge(&got, first->spec, &info);
    wf_gathered_free(&got);
    if (status != WEFT_OK) return wf_tensor_fail(first, status, what);
    return wf_fail_named(wf_info_write("weft_difference_info", &info, sizeof info, out), what);
}
