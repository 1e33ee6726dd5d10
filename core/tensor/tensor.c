/* tensor.c - creation, references and properties of tensors. */
#include "tensor.h"

#include "exec/bound.h"

#include <stdio.h>
#include <string.h>

weft_status wf_tensor_check(const weft_tensor *tensor, const char *function, const char *argument)
{
    if (tensor == NULL) return wf_fail_null(function, argument);
    if (wf_is_usable(tensor->made, WF_KIND_TENSOR)) return WEFT_OK;
    if (tensor->made == wf_ended(WF_KIND_TENSOR))
        return wf_fail(WEFT_ERR_INVALID, "%s: %s cannot be used any more: %s", function, argument,
                       tensor->ended);
    return wf_fail_unusable(function, argument, tensor->made, WF_KIND_TENSOR);
}

weft_status wf_tensor_check_writable(const weft_tensor *tensor, const char *function)
{
    if (!tensor->is_read_only) return WEFT_OK;
    return wf_tensor_fail(tensor, wf_fail(WEFT_ERR_INVALID, "the tensor is read-only"), function);
}

weft_status wf_tensor_fail(const weft_tensor *tensor, weft_status status, const char *function)
{
    if (status == WEFT_OK) return WEFT_OK;
    if (tensor->name == NULL) return wf_fail_named(status, function);
    return wf_fail_context(status, "%s: tensor \"%s\"", function, tensor->name);
}

/* ---- the end ---- */

static void drop_memory(weft_tensor *tensor)
{
    wf_dense_free(tensor);
    if (tensor->is_own && weft_free(tensor->context, tensor->memory) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "weft_tensor_release: %s", weft_last_error());
    if (tensor->release != NULL) tensor->release(tensor->argument, tensor->memory);
    tensor->memory = NULL;
    tensor->release = NULL;
    tensor->is_own = false;
}

/* The context is about to end. */
static void end_tensor(struct wf_dependent *dependent, const char *cause)
{
    weft_tensor *tensor = (void *)((char *)dependent - offsetof(weft_tensor, dependent));

    snprintf(tensor->ended, sizeof tensor->ended, "%s", cause);
    drop_memory(tensor);
    tensor->context = NULL;
    tensor->made = wf_ended(WF_KIND_TENSOR);
}

static void free_tensor(weft_tensor *tensor)
{
    weft_spec_release(&tensor->spec);
    weft_tensor_release(&tensor->base);
    wf_free(tensor->items);
    wf_free(tensor->name);
    wf_free(tensor);
}

weft_tensor *weft_tensor_retain(const weft_tensor *tensor)
{
    weft_tensor *mine = (weft_tensor *)(uintptr_t)tensor;

    if (mine != NULL) atomic_fetch_add_explicit(&mine->references, 1, memory_order_relaxed);
    return mine;
}

void weft_tensor_release(weft_tensor **tensor)
{
    weft_tensor *mine;

    if (tensor == NULL || *tensor == NULL) return;
    mine = *tensor;
    *tensor = NULL;
    if (mine->made != wf_ended(WF_KIND_TENSOR) && !wf_is_usable(mine->made, WF_KIND_TENSOR)) {
        wf_warn_unusable("weft_tensor_release", mine->made, WF_KIND_TENSOR);
        return;
    }
    if (atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) > 1) return;
    if (mine->made != wf_ended(WF_KIND_TENSOR)) {
        wf_dependent_remove(&mine->dependent);
        drop_memory(mine);
    }
    free_tensor(mine);
}

/* ---- creation ---- */

static void set_dense_strides(weft_tensor *tensor)
{
    int64_t stride = 1;

    for (int32_t d = tensor->shard.dims - 1; d >= 0; d--) {
        tensor->strides[d] = stride;
        stride *= tensor->shard.shape[d] > 1 ? tensor->shard.shape[d] : 1;
    }
}

static bool is_dense(const weft_tensor *tensor, const int64_t *strides)
{
    for (int32_t d = 0; strides != NULL && d < tensor->shard.dims; d++)
        if (tensor->shard.shape[d] > 1 && strides[d] != tensor->strides[d]) return false;
    return true;
}

static weft_status check_arguments(const weft_context *context, const weft_spec *spec,
                                   const char *function)
{
    char what[64];

    WF_TRY(wf_context_check(context, function));
    snprintf(what, sizeof what, "%s: spec", function);
    return wf_require_kind(spec, WF_KIND_SPEC, what);
}

/* A tensor without memory. */
static weft_status begin_tensor(weft_context *context, const weft_spec *spec, const char *name,
                                weft_tensor **out)
{
    weft_tensor *tensor;

    tensor = wf_calloc(1, sizeof *tensor);
    if (tensor == NULL) return wf_fail_memory(sizeof *tensor);
    tensor->made = wf_made_now(WF_KIND_TENSOR);
    atomic_store_explicit(&tensor->references, 1, memory_order_relaxed);
    tensor->context = context;
    tensor->spec = weft_spec_retain(spec);
    weft_spec_shard(spec, context->rank, &tensor->shard);
    set_dense_strides(tensor);
    tensor->is_dense = true;
    if (name != NULL && name[0] != '\0') {
        tensor->name = wf_strdup(name);
        if (tensor->name == NULL) {
            free_tensor(tensor);
            return wf_fail_memory(strlen(name) + 1);
        }
    }
    *out = tensor;
    return WEFT_OK;
}

static void finish_tensor(weft_tensor *tensor, weft_tensor **out)
{
    tensor->dependent.end = end_tensor;
    wf_dependent_add(&tensor->dependent, tensor->context->world);
    *out = tensor;
}

weft_status wf_tensor_make(weft_context *context, const weft_spec *spec, const char *name,
                           const char *function, weft_tensor **out)
{
    weft_tensor *tensor = NULL;
    weft_status status = begin_tensor(context, spec, name, &tensor);

    if (status != WEFT_OK) return wf_fail_named(status, function);
    status = weft_alloc(context, weft_spec_shard_bytes(spec, context->rank), WEFT_MEMORY_DEVICE,
                        &tensor->memory);
    if (status != WEFT_OK) {
        status = wf_tensor_fail(tensor, status, function);
        free_tensor(tensor);
        return status;
    }
    tensor->is_own = true;
    finish_tensor(tensor, out);
    return WEFT_OK;
}

/* RANK, then the text of SPEC and its mesh, which all ranks that create the tensor must have. */
static weft_status print_layout(const weft_spec *spec, int32_t rank, struct wf_text *out)
{
    char text[512];

    wf_text_append(out, (const char *)&rank, sizeof rank);
    WF_TRY(weft_spec_print(spec, text, sizeof text, NULL));
    wf_text_add(out, "%s on ", text);
    WF_TRY(weft_mesh_print(spec->layout.mesh, text, sizeof text, NULL));
    wf_text_add(out, "%s", text);
    return wf_text_status(out);
}

/* The text that print_layout has written on a rank. */
struct layout {
    int32_t rank;
    int length;
    const char *text;
};

static struct layout read_layout(const weft_blob *blob)
{
    struct layout out = {.length = (int)(blob->bytes - sizeof out.rank),
                         .text = (const char *)blob->data + sizeof out.rank};

    memcpy(&out.rank, blob->data, sizeof out.rank);
    return out;
}

/* The layouts of all ranks in GOT are equal. */
static weft_status compare_layouts(const struct wf_gathered *got)
{
    for (int32_t i = 1; i < got->count; i++) {
        struct layout a = read_layout(&got->blobs[0]), b = read_layout(&got->blobs[i]);

        if (a.length != b.length || memcmp(a.text, b.text, (size_t)a.length) != 0)
            return wf_fail(WEFT_ERR_MISMATCH, "rank %d has %.*s, but rank %d has %.*s", a.rank,
                           a.length, a.text, b.rank, b.length, b.text);
    }
    return WEFT_OK;
}

/* All ranks of SPEC's mesh have made their tensors of this layout, or none has.  STATUS is this
 * rank's result.  After a failure *TENSOR is released. */
static weft_status agree_on_tensor(weft_context *context, const weft_spec *spec, weft_status status,
                                   const char *function, weft_tensor **tensor)
{
    struct wf_gathered got = {0};
    struct wf_text text = {0};

    if (status == WEFT_OK) status = print_layout(spec, context->rank, &text);
    status = wf_move_agree(context, spec, spec, function, status,
                           (weft_blob){text.data, text.length}, &got);
    wf_text_free(&text);
    if (status == WEFT_OK) status = wf_fail_named(compare_layouts(&got), function);
    wf_gathered_free(&got);
    if (status != WEFT_OK && *tensor != NULL) (*tensor)->release = NULL; /* as if never wrapped */
    if (status != WEFT_OK) weft_tensor_release(tensor);
    return status;
}

weft_status weft_tensor_create(weft_context *context, const weft_spec *spec,
                               const weft_tensor_options *options, weft_tensor **out)
{
    weft_tensor_options wanted = {0};
    weft_tensor *tensor = NULL;
    weft_status status;

    WF_TRY(wf_fail_named(wf_options_read("weft_tensor_options", options, &wanted, sizeof wanted),
                         "weft_tensor_create"));
    if (out == NULL) return wf_fail_null("weft_tensor_create", "out");
    WF_TRY(check_arguments(context, spec, "weft_tensor_create"));
    status = wf_tensor_make(context, spec, wanted.name, "weft_tensor_create", &tensor);
    if (wanted.agree)
        status = agree_on_tensor(context, spec, status, "weft_tensor_create", &tensor);
    if (status == WEFT_OK) *out = tensor;
    return status;
}

/* Bytes from the first element to the end of the last one. */
static uint64_t extent_of(const weft_tensor *tensor)
{
    uint64_t elements = 1;

    if (tensor->shard.elements == 0) return 0;
    for (int32_t d = 0; d < tensor->shard.dims; d++)
        elements += (uint64_t)(tensor->shard.shape[d] - 1) * (uint64_t)tensor->strides[d];
    return elements * wf_dtype_bytes(tensor->spec->layout.dtype);
}

/* Check the caller's memory as far as the device knows it. */
static weft_status check_memory(weft_tensor *tensor, void *memory)
{
    size_t element = wf_dtype_bytes(tensor->spec->layout.dtype);
    weft_pointer_info info = {.struct_size = sizeof info};
    uint64_t bytes = extent_of(tensor), rest;

    if (bytes == 0) return WEFT_OK;
    if (memory == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "memory is NULL, but the shard of rank %d has %lld elements",
                       tensor->context->rank, (long long)tensor->shard.elements);
    if ((uintptr_t)memory % (element < 16 ? element : 16) != 0)
        return wf_fail(WEFT_ERR_INVALID, "memory, %p, is not aligned to its elements of %zu bytes",
                       memory, element);
    WF_TRY(weft_pointer_get(tensor->context, memory, &info));
    if (info.base == NULL || info.bytes == 0) return WEFT_OK;
    rest = info.bytes - (uint64_t)((char *)memory - (char *)info.base);
    if (rest >= bytes) return WEFT_OK;
    return wf_fail(
        WEFT_ERR_INVALID, "memory has %llu bytes from %p on, but the shard of rank %d needs %llu",
        (unsigned long long)rest, memory, tensor->context->rank, (unsigned long long)bytes);
}

static void add_shape(struct wf_text *text, int32_t dims, const int64_t *shape)
{
    wf_text_char(text, '[');
    for (int32_t d = 0; d < dims; d++)
        wf_text_add(text, "%s%lld", d == 0 ? "" : ",", (long long)shape[d]);
    wf_text_char(text, ']');
}

/* The caller's memory has the shape of the shard. */
static weft_status check_shape(const weft_tensor *tensor, const int64_t *shape)
{
    const weft_shard *shard = &tensor->shard;
    struct wf_text text = {0};
    bool same = true;

    for (int32_t d = 0; d < shard->dims && shard->member; d++)
        same = same && shape[d] == shard->shape[d];
    if (same) return WEFT_OK;
    wf_text_add(&text, "the memory of rank %d has the shape ", tensor->context->rank);
    add_shape(&text, shard->dims, shape);
    wf_text_add(&text, ", but its shard has ");
    add_shape(&text, shard->dims, shard->shape);
    wf_fail(WEFT_ERR_INVALID, "%s", wf_text_status(&text) == WEFT_OK ? text.data : "shape");
    wf_text_free(&text);
    return WEFT_ERR_INVALID;
}

static weft_status set_memory(weft_tensor *tensor, void *memory, const weft_tensor_options *wanted)
{
    if (wanted->shape != NULL) WF_TRY(check_shape(tensor, wanted->shape));
    tensor->is_dense = tensor->shard.elements == 0 || is_dense(tensor, wanted->strides);
    if (!tensor->is_dense) {
        WF_TRY(wf_strides_check("strides", tensor->spec, tensor->context->rank, wanted->strides,
                                !tensor->is_read_only));
        memcpy(tensor->strides, wanted->strides,
               (size_t)tensor->shard.dims * sizeof *tensor->strides);
    }
    WF_TRY(check_memory(tensor, memory));
    tensor->memory = memory;
    tensor->release = wanted->release;
    tensor->argument = wanted->argument;
    return WEFT_OK;
}

weft_status wf_tensor_wrap(weft_context *context, const weft_spec *spec, void *memory,
                           const weft_tensor_options *wanted, bool is_read_only,
                           const char *function, weft_tensor **out)
{
    weft_tensor *tensor = NULL;
    weft_status status = begin_tensor(context, spec, wanted->name, &tensor);

    if (status != WEFT_OK) return wf_fail_named(status, function);
    tensor->is_read_only = is_read_only;
    status = set_memory(tensor, memory, wanted);
    if (status != WEFT_OK) {
        status = wf_tensor_fail(tensor, status, function);
        free_tensor(tensor);
        return status;
    }
    finish_tensor(tensor, out);
    return WEFT_OK;
}

weft_status weft_tensor_wrap(weft_context *context, const weft_spec *spec, void *memory,
                             const weft_tensor_options *options, weft_tensor **out)
{
    weft_tensor_options wanted = {0};
    weft_tensor *tensor = NULL;
    weft_status status;

    WF_TRY(wf_fail_named(wf_options_read("weft_tensor_options", options, &wanted, sizeof wanted),
                         "weft_tensor_wrap"));
    if (out == NULL) return wf_fail_null("weft_tensor_wrap", "out");
    WF_TRY(check_arguments(context, spec, "weft_tensor_wrap"));
    status = wf_tensor_wrap(context, spec, memory, &wanted, false, "weft_tensor_wrap", &tensor);
    if (wanted.agree) status = agree_on_tensor(context, spec, status, "weft_tensor_wrap", &tensor);
    if (status == WEFT_OK) *out = tensor;
    return status;
}

weft_status wf_tensor_view(weft_tensor *base, const weft_spec *spec, int64_t offset,
                           const int64_t *strides, weft_tensor **out)
{
    weft_tensor *tensor = NULL;

    WF_TRY(begin_tensor(base->context, spec, base->name, &tensor));
    if (tensor->shard.elements > 0) {
        tensor->memory =
            (char *)base->memory + offset * (int64_t)wf_dtype_bytes(spec->layout.dtype);
        tensor->is_dense = is_dense(tensor, strides);
    }
    if (!tensor->is_dense)
        memcpy(tensor->strides, strides, (size_t)tensor->shard.dims * sizeof *strides);
    tensor->is_read_only = base->is_read_only;
    tensor->base = weft_tensor_retain(base);
    finish_tensor(tensor, out);
    return WEFT_OK;
}

/* ---- properties ---- */

const weft_spec *weft_tensor_spec(const weft_tensor *tensor)
{
    return tensor != NULL ? tensor->spec : NULL;
}

weft_context *weft_tensor_context(const weft_tensor *tensor)
{
    return tensor != NULL ? tensor->context : NULL;
}

const char *weft_tensor_name(const weft_tensor *tensor)
{
    if (tensor == NULL) return NULL;
    return tensor->name != NULL ? tensor->name : "";
}

void *weft_tensor_memory(const weft_tensor *tensor)
{
    return tensor != NULL ? tensor->memory : NULL;
}

const int64_t *weft_tensor_strides(const weft_tensor *tensor)
{
    return tensor != NULL ? tensor->strides : NULL;
}

const weft_shard *weft_tensor_shard(const weft_tensor *tensor)
{
    return tensor != NULL ? &tensor->shard : NULL;
}
