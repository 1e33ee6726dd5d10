/* spares.c - outputs that were released, with their memory, for the next output of their layout.
 * Operators make and release the same small tensors again and again; the memory is used in the
 * order of one stream, as freed memory is. */
#include "apply.h"

enum {
    LARGEST = 1 << 20, /* bytes of a spare tensor */
    ALL = 1 << 24      /* of the spare tensors of a context */
};

static _Atomic(weft_tensor *) *spares_of(struct wf_apply_state *state, const weft_spec *spec)
{
    uintptr_t bits = (uintptr_t)spec;

    return state->spares[(bits >> 6 ^ bits >> 12) % WF_SPARE_SETS];
}

static uint64_t bytes_of(const weft_tensor *tensor)
{
    return wf_local_bytes(tensor, &tensor->own);
}

/* Count BYTES as spare, unless they are too many. */
static bool reserve(struct wf_apply_state *state, uint64_t bytes)
{
    if (atomic_fetch_add_explicit(&state->spare_bytes, bytes, memory_order_relaxed) + bytes <= ALL)
        return true;
    atomic_fetch_sub_explicit(&state->spare_bytes, bytes, memory_order_relaxed);
    return false;
}

/* The last reference to TENSOR is gone.  [any thread] */
static bool keep(weft_tensor *tensor)
{
    struct wf_apply_state *state = wf_apply_state(tensor->context);
    _Atomic(weft_tensor *) *spares = spares_of(state, tensor->spec);
    uint64_t bytes = bytes_of(tensor);

    if (tensor->last_list != NULL || tensor->own.dense.memory != NULL) return false;
    if (wf_stream_check(tensor->context, tensor->stream, "weft_tensor_release") != WEFT_OK)
        return false;
    if (!reserve(state, bytes)) return false;
    tensor->made = 0; /* refused until it is used again */
    for (int i = 0; i < WF_SPARE_WAYS; i++) {
        weft_tensor *none = NULL;

        if (atomic_load_explicit(&spares[i], memory_order_relaxed) == NULL &&
            atomic_compare_exchange_strong(&spares[i], &none, tensor))
            return true;
    }
    tensor->made = wf_made_now(WF_KIND_TENSOR);
    atomic_fetch_sub_explicit(&state->spare_bytes, bytes, memory_order_relaxed);
    return false;
}

/* True if a kernel may use freed memory of STREAM at once.  A kernel on the host may not wait for
 * the work that still reads the memory. */
static bool is_free(const weft_context *context, weft_stream *stream)
{
    return stream == NULL || (context->features & WEFT_FEATURE_HOST_MEMORY) == 0 ||
           context->plugin->device->stream_query(context->device, stream) == WEFT_OK;
}

/* The caller is in wf_apply_enter, so nobody else takes a spare tensor. */
static weft_tensor *take(struct wf_apply_state *state, const weft_spec *spec,
                         const weft_stream *stream)
{
    _Atomic(weft_tensor *) *spares = spares_of(state, spec);

    for (int i = 0; i < WF_SPARE_WAYS; i++) {
        weft_tensor *tensor = atomic_load_explicit(&spares[i], memory_order_acquire);

        if (tensor == NULL || tensor->spec != spec || tensor->stream != stream) continue;
        atomic_store_explicit(&spares[i], NULL, memory_order_relaxed);
        atomic_fetch_sub_explicit(&state->spare_bytes, bytes_of(tensor), memory_order_relaxed);
        return tensor;
    }
    return NULL;
}

weft_status wf_output_make(weft_context *context, const weft_spec *spec, weft_stream *stream,
                           const char *function, weft_tensor **out)
{
    weft_tensor *tensor = NULL;

    if (is_free(context, stream)) tensor = take(wf_apply_state(context), spec, stream);
    if (tensor != NULL) {
        atomic_store_explicit(&tensor->references, 1, memory_order_relaxed);
        tensor->made = wf_made_now(WF_KIND_TENSOR);
        *out = tensor;
        return WEFT_OK;
    }
    WF_TRY(wf_tensor_make(context, spec, NULL, stream, function, out));
    if (!context->is_simulated && bytes_of(*out) <= LARGEST) (*out)->keep = keep;
    return WEFT_OK;
}

static void free_spares(struct wf_apply_state *state, bool all, const void *stream)
{
    for (int i = 0; i < WF_SPARE_SETS * WF_SPARE_WAYS; i++) {
        _Atomic(weft_tensor *) *spare = &state->spares[i / WF_SPARE_WAYS][i % WF_SPARE_WAYS];
        weft_tensor *tensor = atomic_load(spare);

        if (tensor == NULL || (!all && tensor->stream != stream)) continue;
        atomic_store(spare, NULL);
        atomic_fetch_sub(&state->spare_bytes, bytes_of(tensor));
        wf_tensor_free(tensor);
    }
}

void wf_spares_stream_ends(weft_context *context, void *stream)
{
    free_spares(wf_apply_state(context), false, stream);
}

void wf_spares_free(weft_context *context)
{
    free_spares(wf_apply_state(context), true, NULL);
}
