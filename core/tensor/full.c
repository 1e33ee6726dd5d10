/* full.c - whole tensors: a tensor from memory in which every rank has all of it. */
#include "tensor.h"

#include <string.h>

static const char what[] = "weft_tensor_from_full";

/* The bytes from the first to the last element of a tensor of SPEC in memory with STRIDES. */
static uint64_t span_of(const weft_spec *spec, const int64_t *strides)
{
    const struct wf_layout *layout = &spec->layout;
    uint64_t elements = (uint64_t)weft_spec_elements(spec), last = 0;

    if (strides == NULL || elements == 0) return elements * wf_dtype_bytes(layout->dtype);
    for (int32_t d = 0; d < layout->dims; d++)
        last += (uint64_t)(layout->shape[d] - 1) * (uint64_t)strides[d];
    return (last + 1) * wf_dtype_bytes(layout->dtype);
}

/* True if the device cannot work in MEMORY. */
static bool is_foreign(weft_context *context, const void *memory)
{
    weft_pointer_info about = {.struct_size = sizeof about};

    if ((context->features & WEFT_FEATURE_HOST_MEMORY) != 0 || memory == NULL) return false;
    return weft_pointer_get(context, memory, &about) == WEFT_OK && about.kind == WEFT_MEMORY_HOST;
}

/* *OUT has the memory of every rank, if ranks are simulated; else it is NULL. */
static weft_status list_memory(const weft_context *context, const weft_tensor_rank_memory *one,
                               weft_tensor_rank_memory **out)
{
    *out = NULL;
    if (!context->is_simulated) return WEFT_OK;
    *out = wf_calloc((size_t)context->size, sizeof **out);
    if (*out == NULL) return wf_fail_memory((size_t)context->size * sizeof **out);
    for (int32_t i = 0; i < context->size; i++)
        (*out)[i] = *one;
    return WEFT_OK;
}

/* A read-only tensor of WHOLE's layout in MEMORY. */
static weft_status wrap_whole(weft_context *context, const weft_spec *whole, void *memory,
                              const weft_tensor_options *given, weft_tensor **out)
{
    weft_tensor_options options = {.name = given->name, .strides = given->strides};
    struct wf_wrapping wrapping = {.options = &options, .memory = memory, .is_read_only = true};
    weft_tensor_rank_memory *ranks = NULL;
    weft_status status;

    WF_TRY(list_memory(context, &(weft_tensor_rank_memory){memory, given->strides, NULL}, &ranks));
    if (ranks != NULL) {
        options =
            (weft_tensor_options){.name = given->name, .ranks = ranks, .rank_size = sizeof *ranks};
        wrapping.memory = NULL;
    }
    status = wf_tensor_wrap(context, whole, &wrapping, what, out);
    wf_free(ranks);
    return status;
}

/* Move the whole tensor in MEMORY, which the device can use, to SPEC. */
static weft_status move_whole(weft_context *context, const weft_spec *spec, const weft_spec *whole,
                              void *memory, const weft_tensor_options *options, weft_stream *stream,
                              weft_tensor **out)
{
    weft_tensor *all = NULL;
    weft_status status;

    WF_TRY(wrap_whole(context, whole, memory, options, &all));
    status = wf_tensor_move(all, spec, NULL, stream, what, WEFT_OK, out);
    weft_tensor_release(&all);
    return status;
}

/* The same for host memory that the device cannot use: a copy of it. */
static weft_status move_copy(weft_context *context, const weft_spec *spec, const weft_spec *whole,
                             const void *memory, const weft_tensor_options *options,
                             weft_stream *stream, weft_tensor **out)
{
    uint64_t bytes = span_of(whole, options->strides);
    void *copy = NULL;
    weft_status status, freed;

    WF_TRY(weft_alloc_on(context, bytes, stream, &copy));
    status = weft_memory_copy(context, memory, copy, bytes, stream);
    if (status == WEFT_OK) status = move_whole(context, spec, whole, copy, options, stream, out);
    freed = weft_free_on(context, copy, stream);
    return status != WEFT_OK ? status : freed;
}

static weft_status read_options(const weft_tensor_options *options, weft_tensor_options *out)
{
    WF_TRY(wf_options_read("weft_tensor_options", options, out, sizeof *out));
    if (out->release == NULL && out->shape == NULL && out->ranks == NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "weft_tensor_options.%s is set; only name and strides are used here",
                   out->release != NULL ? "release"
                   : out->shape != NULL ? "shape"
                                        : "ranks");
}

weft_status weft_tensor_from_full(weft_context *context, const weft_spec *spec, const void *memory,
                                  const weft_tensor_options *options, weft_stream *stream,
                                  weft_tensor **out)
{
    weft_placement replicated[WEFT_MAX_AXES] = {{0}};
    weft_tensor_options wanted = {0};
    weft_spec *whole = NULL;
    weft_status status;

    if (out == NULL) return wf_fail_null(what, "out");
    WF_TRY(wf_tensor_check_spec(context, spec, what));
    WF_TRY(wf_stream_check(context, stream, what));
    WF_TRY(wf_fail_named(read_options(options, &wanted), what));
    status = weft_spec_create(spec->layout.mesh, (enum weft_dtype)spec->layout.dtype,
                              spec->layout.dims, spec->layout.shape, replicated, &whole);
    if (status != WEFT_OK) return wf_fail_named(status, what);
    if (is_foreign(context, memory))
        status = move_copy(context, spec, whole, memory, &wanted, stream, out);
    else
        status = move_whole(context, spec, whole, (void *)(uintptr_t)memory, &wanted, stream, out);
    weft_spec_release(&whole);
    return status == WEFT_OK ? status : wf_fail_named(status, what);
}
