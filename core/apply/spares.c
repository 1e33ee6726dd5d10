/* spares.c - outputs that were released, with their memory, for the next output of their layout.
 * Operators make and release the same small tensors again and again; the memory is used in the
 * order of one stream, as freed memory is. */
#include "apply.h"

enum { LARGEST = 1 << 16 /* bytes of a spare tensor */ };

static _Atomic(weft_tensor *) *spares_of(struct wf_apply_state *state, const weft_spec *spec)
{
    uintptr_t bits = (uintptr_t)spec;

    return state->spares[(bits >> 6 ^ bits >> 12) % WF_SPARE_SETS];
}

/* The last reference to TENSOR is gone.  [any thread] */
static bool keep(weft_tensor *tensor)
{
    _Atomic(weft_tensor *) *spares = spares_of(wf_apply_state(tensor->context), tensor->spec);

    if (tensor->last_list != NULL || tensor->own.dense.memory != NULL) return false;
    if (wf_stream_check(tensor->context, tensor->stream, "weft_tensor_release") != WEFT_OK)
        return false;
    tensor->made = 0; /* refused until it is used again */
    for (int i = 0; i < WF_SPARE_WAYS; i++) {
        weft_tensor *none = NULL;

        if (atomic_load_explicit(&spares[i], memory_order_relaxed) == NULL &&
            atomic_compare_exchange_strong(&spares[i], &none, tensor))
            return true;
    }
    tensor->made = wf_made_now(WF_KIND_TENSOR);
    return false;
}

/* True if a kernel may use freed memory of STREAM at once.  A kernel on the host may not wait for
 * the work that still reads the memory. */
static bool is_free(const weft_context *context, weft_stream *stream)
{
    return stream == NULL || (context->features & WEFT_FEATURE_HOST_MEMORY) == 0 ||
           context->plugin->device->stream_query(context->device, stream) == WEFT_OK;
}

/* One thread at a time uses a context, so nobody else takes a spare tensor. */
static weft_tensor *take(struct wf_apply_state *state, const weft_spec *spec,
                         const weft_stream *stream)
{
    _Atomic(weft_tensor *) *spares = spares_of(state, spec);

    for (int i = 0; i < WF_SPARE_WAYS; i++) {
        weft_tensor *tensor = atomic_load_explicit(&spares[i], memory_order_acquire);

        if (tensor == NULL || tensor->spec != spec || tensor->stream != stream) continue;
        atomic_store_explicit(&spares[i], NULL, memory_order_relaxed);
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
    if (!context->is_simulated && wf_local_bytes(*out, &(*out)->own) <= LARGEST)
        (*out)->keep = keep;
    return WEFT_OK;
}

static void free_spares(struct wf_apply_state *state, bool all, const void *stream)
{
    for (int i = 0; i < WF_SPARE_SETS * WF_SPARE_WAYS; i++) {
        _Atomic(weft_tensor *) *spare = &state->spares[i / WF_SPARE_WAYS][i % WF_SPARE_WAYS];
        weft_tensor *tensor = atomic_load(spare);

        if (tensor == NULL || (!all && tensor->stream != stream)) continue;
        atomic_store(spare, NULL);
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
