/* tensor.c - creation, memory and references of tensors. */
#include "tensor.h"

#include "comm/check.h"
#include "exec/bound.h"

#include <stdio.h>
#include <string.h>

weft_status wf_tensor_check(const weft_tensor *tensor, const char *function, const char *argument)
{
    if (tensor == NULL) return wf_fail_null(function, argument);
    if (wf_tensor_is_usable(tensor)) return WEFT_OK;
    if (wf_is_usable(tensor->made, WF_KIND_TENSOR))
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: %s cannot be used any more: it is a view of a tensor that lost its "
                       "memory, as by weft_fsdp_reshard",
                       function, argument);
    if (tensor->made == wf_ended(WF_KIND_TENSOR))
        return wf_fail(WEFT_ERR_INVALID, "%s: %s cannot be used any more: %s", function, argument,
                       tensor->ended);
    return wf_fail_unusable(function, argument, tensor->made, WF_KIND_TENSOR);
}

weft_status wf_tensor_check_readable(const weft_tensor *tensor, const char *function)
{
    bool is_of_before = tensor != NULL && tensor->made == wf_ended(WF_KIND_TENSOR) &&
                        tensor->context != NULL && !tensor->comes_and_goes;

    return is_of_before ? WEFT_OK : wf_tensor_check(tensor, function, "tensor");
}

weft_status wf_tensor_refuse_write(const weft_tensor *tensor, const char *argument)
{
    return wf_fail(WEFT_ERR_INVALID, "%s is read-only%s", argument,
                   tensor->overlaps ? ", because its strides make elements overlap" : "");
}

weft_status wf_tensor_check_writable(const weft_tensor *tensor, const char *function)
{
    if (!tensor->is_read_only) return WEFT_OK;
    return wf_tensor_fail(tensor, wf_tensor_refuse_write(tensor, "the tensor"), function);
}

weft_status wf_tensor_fail(const weft_tensor *tensor, weft_status status, const char *function)
{
    char about[256];

    if (status == WEFT_OK || tensor->name == NULL) return wf_fail_named(status, function);
    snprintf(about, sizeof about, "tensor \"%s\"", tensor->name);
    wf_text_clean(about, strlen(about)); /* names may come from files */
    return wf_fail_about(status, function, about);
}

/* ---- the end ---- */

static void release_given(const weft_tensor *tensor)
{
    if (tensor->release == NULL) return;
    if (!tensor->releases_each) {
        tensor->release(tensor->argument, tensor->given);
        return;
    }
    for (int32_t i = 0; i < tensor->local_count; i++)
        tensor->release(tensor->argument, tensor->locals[i].memory);
}

static void drop_memory(weft_tensor *tensor)
{
    wf_dense_free(tensor);
    if (wf_memory_give(tensor->context, tensor->block, tensor->stream, "weft_tensor_release") !=
        WEFT_OK)
        wf_log(WF_LOG_WARNING, "%s", weft_last_error());
    release_given(tensor);
    for (int32_t i = 0; i < tensor->local_count; i++)
        tensor->locals[i].memory = NULL;
    tensor->block = NULL;
    tensor->release = NULL;
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

/* Its generation of the job ends, but its memory stays: it can be read until it is released. */
static bool outlive(struct wf_dependent *dependent, const char *cause)
{
    weft_tensor *tensor = (void *)((char *)dependent - offsetof(weft_tensor, dependent));

    if (!wf_is_usable(tensor->made, WF_KIND_TENSOR) || tensor->comes_and_goes) return false;
    snprintf(tensor->ended, sizeof tensor->ended, "%s; its memory can be read until its release",
             cause);
    tensor->keeper = NULL;
    tensor->made = wf_ended(WF_KIND_TENSOR);
    return true;
}

/* "w" (f32[8,4] S(0), 64 bytes). */
static bool list_tensor(const struct wf_dependent *dependent, struct wf_text *out)
{
    const weft_tensor *tensor =
        (const void *)((const char *)dependent - offsetof(weft_tensor, dependent));
    char name[128] = "", layout[256] = "";
    uint64_t bytes = 0;
    size_t length;

    if (!wf_is_usable(tensor->made, WF_KIND_TENSOR)) return false; /* a spare one */
    if (out == NULL) return true;
    if (tensor->name != NULL) snprintf(name, sizeof name, "\"%s\" ", tensor->name);
    wf_text_clean(name, strlen(name));
    if (weft_spec_print(tensor->spec, layout, sizeof layout, &length) != WEFT_OK)
        snprintf(layout, sizeof layout, "%s", wf_dtype_name(tensor->spec->layout.dtype));
    for (int32_t i = 0; i < tensor->local_count; i++)
        bytes += wf_local_bytes(tensor, &tensor->locals[i]);
    wf_text_add(out, "%s(%s, %s%llu bytes)", name, layout, tensor->base != NULL ? "a view of " : "",
                (unsigned long long)bytes);
    return true;
}

static const struct wf_dependent_tensor as_dependent = {list_tensor, outlive};

static void free_tensor(weft_tensor *tensor)
{
    weft_spec_release(&tensor->spec);
    weft_tensor_release(&tensor->base);
    wf_locals_free(tensor);
    wf_free(tensor->last_list);
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
    if (mine->made == wf_ended(WF_KIND_TENSOR) && mine->context == NULL) {
        free_tensor(mine);
        return;
    }
    wf_tensor_forget(mine->context);
    if (mine->keeper != NULL && wf_tensor_keep(mine)) return;
    wf_dependent_remove(&mine->dependent);
    drop_memory(mine);
    free_tensor(mine);
}

/* ---- creation ---- */

weft_status wf_tensor_check_spec(const weft_context *context, const weft_spec *spec,
                                 const char *function)
{
    char what[64];

    WF_TRY(wf_context_check(context, function));
    if (wf_is_kind(spec, WF_KIND_SPEC)) return wf_bind_check(function, spec, spec, context->world);
    snprintf(what, sizeof what, "%s: spec", function);
    return wf_refuse_kind(spec, WF_KIND_SPEC, what);
}

weft_status wf_tensor_begin(weft_context *context, const weft_spec *spec, const char *name,
                            weft_tensor **out)
{
    weft_tensor *tensor;
    weft_status status;

    tensor = wf_calloc(1, sizeof *tensor);
    if (tensor == NULL) return wf_fail_memory(sizeof *tensor);
    tensor->made = wf_made_now(WF_KIND_TENSOR);
    atomic_store_explicit(&tensor->references, 1, memory_order_relaxed);
    tensor->context = context;
    tensor->spec = weft_spec_retain(spec);
    status = wf_locals_make(tensor);
    if (status != WEFT_OK) {
        free_tensor(tensor);
        return status;
    }
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

void wf_tensor_finish(weft_tensor *tensor, weft_tensor **out)
{
    wf_locals_finish(tensor);
    tensor->dependent.end = end_tensor;
    tensor->dependent.tensor = &as_dependent;
    wf_dependent_add(&tensor->dependent, tensor->context->world);
    *out = tensor;
}

/* Allocate one block for all shards here. */
static weft_status allocate(weft_tensor *tensor, const char *function)
{
    WF_TRY(wf_memory_take(tensor->context, wf_tensor_room(tensor), tensor->stream, function,
                          &tensor->block));
    wf_locals_place(tensor, tensor->block);
    return WEFT_OK;
}

/* TENSOR is complete if STATUS is WEFT_OK; otherwise it ends here. */
static weft_status finish_or_free(weft_tensor *tensor, weft_status status, const char *function,
                                  weft_tensor **out)
{
    if (status != WEFT_OK) {
        status = wf_tensor_fail(tensor, status, function);
        free_tensor(tensor);
        return status;
    }
    wf_tensor_finish(tensor, out);
    return WEFT_OK;
}

weft_status wf_tensor_make(weft_context *context, const weft_spec *spec, const char *name,
                           weft_stream *stream, const char *function, weft_tensor **out)
{
    weft_tensor *tensor = NULL;
    weft_status status = wf_tensor_begin(context, spec, name, &tensor);

    if (status != WEFT_OK) return wf_fail_named(status, function);
    tensor->stream = stream;
    status = allocate(tensor, function);
    return finish_or_free(tensor, status, function, out);
}

/* All ranks of SPEC's mesh have made their tensors of this layout, or none has.  STATUS is this
 * rank's result.  After a failure *TENSOR is released. */
static weft_status agree_on_tensor(weft_context *context, const weft_spec *spec, weft_status status,
                                   const char *function, weft_tensor **tensor)
{
    status = wf_tensors_agree(context, &(struct wf_passed){.from = spec}, function, status);
    if (status != WEFT_OK && *tensor != NULL) (*tensor)->release = NULL; /* as if never wrapped */
    if (status != WEFT_OK) weft_tensor_release(tensor);
    return status;
}

/* Options about the caller's memory are not set. */
static weft_status check_creation(const weft_tensor_options *options)
{
    const char *name = options->strides != NULL   ? "strides"
                       : options->release != NULL ? "release"
                       : options->shape != NULL   ? "shape"
                       : options->ranks != NULL   ? "ranks"
                                                  : NULL;

    if (name == NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "weft_tensor_create: weft_tensor_options.%s is set, but it is about memory of "
                   "the caller (weft_tensor_wrap)",
                   name);
}

weft_status weft_tensor_create(weft_context *context, const weft_spec *spec,
                               const weft_tensor_options *options, weft_tensor **out)
{
    weft_tensor_options wanted = {0};
    weft_tensor *tensor = NULL;
    weft_status status;

    WF_TRY(wf_fail_named(wf_options_read("weft_tensor_options", options, &wanted, sizeof wanted),
                         "weft_tensor_create"));
    WF_TRY(check_creation(&wanted));
    if (out == NULL) return wf_fail_null("weft_tensor_create", "out");
    WF_TRY(wf_tensor_check_spec(context, spec, "weft_tensor_create"));
    WF_TRY(wf_stream_check(context, wanted.stream, "weft_tensor_create"));
    status =
        wf_tensor_make(context, spec, wanted.name, wanted.stream, "weft_tensor_create", &tensor);
    if (wanted.agree)
        status = agree_on_tensor(context, spec, status, "weft_tensor_create", &tensor);
    if (status == WEFT_OK) *out = tensor;
    return status;
}

/* Bytes from the first element to the end of the last one. */
static uint64_t extent_of(const weft_tensor *tensor, const struct wf_local *local)
{
    uint64_t elements = 1;

    if (local->shard.elements == 0) return 0;
    for (int32_t d = 0; d < local->shard.dims; d++)
        elements += (uint64_t)(local->shard.shape[d] - 1) * (uint64_t)local->strides[d];
    return elements * wf_dtype_bytes(tensor->spec->layout.dtype);
}

/* Check the caller's memory as far as the device knows it. */
static weft_status check_memory(const weft_tensor *tensor, const struct wf_local *local,
                                void *memory)
{
    size_t element = wf_dtype_bytes(tensor->spec->layout.dtype);
    weft_pointer_info info = {.struct_size = sizeof info};
    uint64_t bytes = extent_of(tensor, local), offset;

    if (bytes == 0) return WEFT_OK;
    if (memory == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "memory is NULL, but the shard of rank %d has %lld elements", local->rank,
                       (long long)local->shard.elements);
    if ((uintptr_t)memory % (element < 16 ? element : 16) != 0)
        return wf_fail(WEFT_ERR_INVALID, "memory, %p, is not aligned to its elements of %zu bytes",
                       memory, element);
    WF_TRY(weft_pointer_get(tensor->context, memory, &info));
    WF_TRY(wf_place_check(tensor->context, memory, &info, "memory",
                          "weft_tensor_from_host copies from it"));
    if (info.base == NULL || info.bytes == 0) return WEFT_OK;
    offset = (uint64_t)((char *)memory - (char *)info.base);
    if (wf_room_has(&(struct wf_room){info.bytes, offset}, bytes)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "memory has %llu bytes from %p on, but the shard of rank %d needs %llu",
                   (unsigned long long)(offset < info.bytes ? info.bytes - offset : 0), memory,
                   local->rank, (unsigned long long)bytes);
}

static void add_shape(struct wf_text *text, int32_t dims, const int64_t *shape)
{
    wf_text_char(text, '[');
    for (int32_t d = 0; d < dims; d++)
        wf_text_add(text, "%s%lld", d == 0 ? "" : ",", (long long)shape[d]);
    wf_text_char(text, ']');
}

/* The caller's memory has the shape of the shard. */
static weft_status check_shape(const struct wf_local *local, const int64_t *shape)
{
    const weft_shard *shard = &local->shard;
    struct wf_text text = {0};
    bool same = true;

    for (int32_t d = 0; d < shard->dims && shard->member; d++)
        same = same && shape[d] == shard->shape[d];
    if (same) return WEFT_OK;
    wf_text_add(&text, "the memory of rank %d has the shape ", local->rank);
    add_shape(&text, shard->dims, shape);
    wf_text_add(&text, ", but its shard has ");
    add_shape(&text, shard->dims, shard->shape);
    wf_fail(WEFT_ERR_INVALID, "%s", wf_text_status(&text) == WEFT_OK ? text.data : "shape");
    wf_text_free(&text);
    return WEFT_ERR_INVALID;
}

static weft_status set_memory(weft_tensor *tensor, struct wf_local *local,
                              const weft_tensor_rank_memory *given)
{
    if (given->shape != NULL) WF_TRY(check_shape(local, given->shape));
    local->is_dense = local->shard.elements == 0 || wf_local_is_dense(local, given->strides);
    if (!local->is_dense) {
        WF_TRY(wf_strides_check("strides", tensor->spec, local->rank, given->strides,
                                !tensor->is_read_only));
        memcpy(local->strides, given->strides, (size_t)local->shard.dims * sizeof *local->strides);
        tensor->overlaps = tensor->overlaps || wf_local_overlaps(local);
        tensor->is_read_only = tensor->is_read_only || tensor->overlaps;
    }
    WF_TRY(check_memory(tensor, local, given->memory));
    local->memory = given->memory;
    return WEFT_OK;
}

/* Set the memory of all shards here. */
static weft_status set_memories(weft_tensor *tensor, const struct wf_wrapping *wrapping)
{
    const weft_tensor_options *options = wrapping->options;
    const weft_tensor_rank_memory one = {wrapping->memory, options->strides, options->shape},
                                  none = {0};
    uint64_t comparisons;

    if (options->ranks != NULL &&
        (wrapping->memory != NULL || options->strides != NULL || options->shape != NULL))
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_tensor_options.ranks is set; memory, strides and shape must be NULL");
    for (int32_t i = 0; i < tensor->local_count; i++) {
        struct wf_local *local = &tensor->locals[i];
        bool is_other = tensor->context->is_simulated && local->rank != wrapping->rank;

        if (options->ranks == NULL && is_other && local->shard.elements > 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "ranks are simulated and memory is that of rank %d alone, but the shard "
                           "of rank %d has %lld elements; %s",
                           wrapping->rank, local->rank, (long long)local->shard.elements,
                           wrapping->help);
        if (options->ranks != NULL)
            WF_TRY(set_memory(tensor, local, &options->ranks[local->rank]));
        else
            WF_TRY(set_memory(tensor, local, is_other ? &none : &one));
    }
    if (options->ranks != NULL) WF_TRY(wf_locals_check_apart(tensor, &comparisons));
    tensor->given = options->ranks != NULL ? tensor->locals[0].memory : wrapping->memory;
    tensor->releases_each = options->ranks != NULL;
    tensor->release = options->release;
    tensor->argument = options->user;
    return WEFT_OK;
}

/* The options may have structs of another size for the memory of ranks. */
static weft_status set_given(weft_tensor *tensor, const struct wf_wrapping *wrapping)
{
    weft_tensor_options options = *wrapping->options;
    struct wf_wrapping read = *wrapping;
    void *copy = NULL;
    weft_status status;

    if (options.ranks == NULL) return set_memories(tensor, wrapping);
    WF_TRY(wf_items_read("weft_tensor_rank_memory", (size_t)tensor->context->size, options.ranks,
                         options.rank_size, sizeof *options.ranks, &copy));
    if (copy != NULL) options.ranks = copy;
    read.options = &options;
    status = set_memories(tensor, &read);
    wf_free(copy);
    return status;
}

weft_status wf_tensor_wrap(weft_context *context, const weft_spec *spec,
                           const struct wf_wrapping *wrapping, const char *function,
                           weft_tensor **out)
{
    weft_tensor *tensor = NULL;
    weft_status status = wf_tensor_begin(context, spec, wrapping->options->name, &tensor);

    if (status != WEFT_OK) return wf_fail_named(status, function);
    tensor->is_read_only = wrapping->is_read_only;
    status = set_given(tensor, wrapping);
    return finish_or_free(tensor, status, function, out);
}

weft_status weft_tensor_wrap(weft_context *context, const weft_spec *spec, void *memory,
                             const weft_tensor_options *options, weft_tensor **out)
{
    weft_tensor_options wanted = {0};
    const struct wf_wrapping wrapping = {
        .options = &wanted,
        .memory = memory,
        .help = "weft_tensor_options.ranks takes the memory of every rank"};
    weft_tensor *tensor = NULL;
    weft_status status;

    WF_TRY(wf_fail_named(wf_options_read("weft_tensor_options", options, &wanted, sizeof wanted),
                         "weft_tensor_wrap"));
    if (out == NULL) return wf_fail_null("weft_tensor_wrap", "out");
    WF_TRY(wf_tensor_check_spec(context, spec, "weft_tensor_wrap"));
    status = wf_tensor_wrap(context, spec, &wrapping, "weft_tensor_wrap", &tensor);
    if (wanted.agree) status = agree_on_tensor(context, spec, status, "weft_tensor_wrap", &tensor);
    if (status == WEFT_OK) *out = tensor;
    return status;
}

/* Set the shard LOCAL of a view. */
static weft_status place_local(const weft_tensor *base, wf_view_place *place, const void *self,
                               struct wf_local *local)
{
    const struct wf_local *old = wf_local_of(base, local->rank);
    int64_t strides[WEFT_MAX_DIMS], offset = 0;

    if (local->shard.elements == 0) return WEFT_OK;
    memcpy(strides, old->strides, sizeof strides);
    WF_TRY(place(self, base, old, &local->shard, &offset, strides));
    local->memory =
        (char *)old->memory + offset * (int64_t)wf_dtype_bytes(base->spec->layout.dtype);
    local->is_dense = wf_local_is_dense(local, strides);
    if (!local->is_dense)
        memcpy(local->strides, strides, (size_t)local->shard.dims * sizeof *strides);
    return WEFT_OK;
}

weft_status wf_tensor_view(weft_tensor *base, const weft_spec *spec, wf_view_place *place,
                           const void *self, weft_tensor **out)
{
    weft_tensor *tensor = NULL;
    weft_status status;

    WF_TRY(wf_tensor_begin(base->context, spec, base->name, &tensor));
    for (int32_t i = 0; i < tensor->local_count; i++) {
        status = place_local(base, place, self, &tensor->locals[i]);
        if (status == WEFT_OK) continue;
        free_tensor(tensor);
        return status;
    }
    tensor->is_read_only = base->is_read_only;
    tensor->overlaps = base->overlaps;
    tensor->base = weft_tensor_retain(base);
    tensor->base_vacated = base->vacated;
    wf_tensor_finish(tensor, out);
    return WEFT_OK;
}
