/* copy.c - copies between a tensor and host memory, and fill. */
#include "tensor.h"

#include "base/number.h"
#include "exec/host/host.h"

#include <math.h>
#include <string.h>

/* Bytes of all shards here without gaps. */
static uint64_t bytes_of(const weft_tensor *tensor)
{
    uint64_t bytes = 0;

    for (int32_t i = 0; i < tensor->local_count; i++)
        bytes += wf_local_bytes(tensor, &tensor->locals[i]);
    return bytes;
}

static bool is_host_readable(const weft_tensor *tensor)
{
    return (tensor->context->features & WEFT_FEATURE_HOST_MEMORY) != 0;
}

/* Copy BYTES on STREAM, and wait for it. */
static weft_status copy_and_wait(const weft_tensor *tensor, const void *source, void *target,
                                 uint64_t bytes, weft_stream *stream)
{
    weft_context *context = tensor->context;
    weft_status status = WEFT_OK, waited;

    if (bytes > 0)
        status = context->plugin->device->copy(context->device, target, source, bytes, stream);
    waited = wf_host_wait(context, stream);
    return status != WEFT_OK ? status : waited;
}

/* HOST has BYTES bytes, and the shards here have others. */
static weft_status refuse_bytes(const weft_tensor *tensor, uint64_t bytes, const char *help,
                                const char *function)
{
    unsigned long long given = bytes, wanted = bytes_of(tensor);

    if (tensor->context->is_simulated)
        (void)wf_fail(WEFT_ERR_INVALID,
                      "host has %llu bytes, but the shards of all ranks have %llu%s", given, wanted,
                      help);
    else
        (void)wf_fail(WEFT_ERR_INVALID, "host has %llu bytes, but the shard of rank %d has %llu%s",
                      given, tensor->context->rank, wanted, help);
    return wf_tensor_fail(tensor, WEFT_ERR_INVALID, function);
}

static weft_status check_host(const weft_tensor *tensor, const void *host, uint64_t bytes,
                              weft_stream *stream, const char *function)
{
    if (host == NULL && (bytes > 0 || bytes_of(tensor) > 0)) return wf_fail_null(function, "host");
    WF_TRY(wf_stream_check(tensor->context, stream, function));
    if (bytes >= bytes_of(tensor)) return WEFT_OK;
    return refuse_bytes(tensor, bytes, "", function);
}

weft_status weft_tensor_to_host(weft_tensor *tensor, void *host, uint64_t bytes,
                                weft_stream *stream)
{
    static const char what[] = "weft_tensor_to_host";
    char *to = host;
    weft_status status = WEFT_OK;

    WF_TRY(wf_tensor_check_readable(tensor, what));
    WF_TRY(check_host(tensor, host, bytes, stream, what));
    wf_tensor_use(tensor, stream);
    for (int32_t i = 0; i < tensor->local_count && status == WEFT_OK; i++) {
        struct wf_local *local = &tensor->locals[i];
        uint64_t some = wf_local_bytes(tensor, local);
        void *dense = NULL;

        status = wf_local_pack(tensor, local, stream, &dense);
        if (status == WEFT_OK) status = copy_and_wait(tensor, dense, to, some, stream);
        if (some > 0) to += some;
    }
    return wf_tensor_fail(tensor, status, what);
}

static weft_status read_local(weft_tensor *tensor, struct wf_local *local, const char *from,
                              weft_stream *stream)
{
    void *dense = NULL;

    WF_TRY(wf_local_begin(tensor, local, stream, &dense));
    WF_TRY(copy_and_wait(tensor, from, dense, wf_local_bytes(tensor, local), stream));
    return wf_local_unpack(tensor, local, stream);
}

weft_status weft_tensor_from_host(weft_tensor *tensor, const void *host, uint64_t bytes,
                                  weft_stream *stream)
{
    static const char what[] = "weft_tensor_from_host";
    const char *from = host;
    weft_status status = WEFT_OK;

    WF_TRY(wf_tensor_check(tensor, what, "tensor"));
    WF_TRY(check_host(tensor, host, bytes, stream, what));
    if (bytes > bytes_of(tensor) && bytes_of(tensor) > 0)
        return refuse_bytes(tensor, bytes, "; to distribute an array, call weft_tensor_from_full",
                            what);
    WF_TRY(wf_tensor_check_writable(tensor, what));
    wf_tensor_use(tensor, stream);
    for (int32_t i = 0; i < tensor->local_count && status == WEFT_OK; i++) {
        uint64_t some = wf_local_bytes(tensor, &tensor->locals[i]);

        status = read_local(tensor, &tensor->locals[i], from, stream);
        if (some > 0) from += some;
    }
    if (status == WEFT_OK) status = wf_host_wait(tensor->context, stream);
    return wf_tensor_fail(tensor, status, what);
}

weft_status wf_local_read(weft_tensor *tensor, struct wf_local *local, weft_stream *stream,
                          void **out)
{
    uint64_t bytes = wf_local_bytes(tensor, local);
    void *dense = NULL;
    weft_status status;

    wf_tensor_use(tensor, stream);
    WF_TRY(wf_local_pack(tensor, local, stream, &dense));
    if (bytes == 0 || is_host_readable(tensor)) {
        *out = dense;
        return wf_host_wait(tensor->context, stream);
    }
    *out = wf_alloc(bytes);
    if (*out == NULL) return wf_fail_memory(bytes);
    status = copy_and_wait(tensor, dense, *out, bytes, stream);
    if (status != WEFT_OK) wf_local_unread(tensor, local, *out);
    return status;
}

void wf_local_unread(const weft_tensor *tensor, const struct wf_local *local, void *elements)
{
    if (wf_local_bytes(tensor, local) > 0 && !is_host_readable(tensor)) wf_free(elements);
}

/* ---- fill ---- */

/* DTYPE, an integer or bool, does not have VALUE. */
static weft_status refuse_value(uint32_t dtype, double value, double begin, double end)
{
    const char *name = weft_dtype_name((enum weft_dtype)dtype);
    struct wf_exact given = wf_exact(value);

    if (end > 0x1p53)
        return wf_fail(WEFT_ERR_INVALID,
                       "value is %s; expected an integer from %s to 2^%d - 1, for %s", given.text,
                       begin < 0 ? "-2^63" : "0", begin < 0 ? 63 : 64, name);
    return wf_fail(WEFT_ERR_INVALID, "value is %s; expected an integer from %.0f to %.0f, for %s",
                   given.text, begin, end - 1, name);
}

/* VALUE as an element of DTYPE. */
static weft_status make_element(uint32_t dtype, double value, void *out)
{
    bool is_float = wf_dtype_is_float(dtype) || wf_dtype_is_complex(dtype);
    uint32_t bits = dtype == WEFT_DTYPE_BOOL ? 1 : 8 * (uint32_t)wf_dtype_bytes(dtype);
    bool has_sign = wf_dtype_is_signed(dtype);
    double end = ldexp(1, (int)(bits - has_sign)), begin = has_sign ? -end : 0;
    struct wf_number number = {.re = value};

    if (!is_float) {
        if (!(value >= begin && value < end && trunc(value) == value))
            return refuse_value(dtype, value, begin, end);
        number.integer = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
    }
    wf_number_store(dtype, number, out);
    return WEFT_OK;
}

weft_status wf_local_fill(weft_tensor *tensor, struct wf_local *local, const void *element,
                          weft_stream *stream)
{
    weft_context *context = tensor->context;
    void *dense = NULL;

    if (local->shard.elements == 0) return WEFT_OK;
    WF_TRY(wf_local_begin(tensor, local, stream, &dense));
    WF_TRY(wf_kernels_of(context)->fill(wf_kernels_device(context), tensor->spec->layout.dtype,
                                        (uint64_t)local->shard.elements, element, dense, stream));
    return wf_local_unpack(tensor, local, stream);
}

weft_status weft_tensor_fill(weft_tensor *tensor, double value, weft_stream *stream)
{
    static const char what[] = "weft_tensor_fill";
    _Alignas(16) char element[16];
    weft_status status;

    WF_TRY(wf_tensor_check(tensor, what, "tensor"));
    WF_TRY(wf_tensor_check_writable(tensor, what));
    WF_TRY(wf_stream_check(tensor->context, stream, what));
    wf_tensor_use(tensor, stream);
    status = make_element(tensor->spec->layout.dtype, value, element);
    for (int32_t i = 0; i < tensor->local_count && status == WEFT_OK; i++)
        status = wf_local_fill(tensor, &tensor->locals[i], element, stream);
    return wf_tensor_fail(tensor, status, what);
}
