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

/* Count BYTES as spare, unless they are too many. */
static bool reserve(struct wf_apply_state *state, uint64_t bytes)
{
    if (atomic_fetch_add_explicit(&state->spare_bytes, bytes, memory_order_relaxed) + bytes <= ALL)
        return true;
    atomic_fetch_sub_explicit(&state->spare_bytes, bytes, memory_order_relaxed);
    return false;
}

/* TENSOR is not spare any more, and is freed. */
static void drop(struct wf_apply_state *state, weft_tensor *tensor)
{
    atomic_fetch_sub_explicit(&state->spare_bytes, weft_tensor_bytes(tensor), memory_order_relaxed);
    weft_tensor_reuse(tensor);
    weft_tensor_set_keeper(tensor, NULL, NULL);
    weft_tensor_release(&tensor);
}

/* The last reference to TENSOR is gone.  [any thread] */
static bool keep(void *user, weft_tensor *tensor)
{
    struct wf_apply_state *state = user;
    _Atomic(weft_tensor *) *spares = spares_of(state, weft_tensor_spec(tensor));
    uint64_t bytes = weft_tensor_bytes(tensor);

    if (state->is_leaving || !reserve(state, bytes)) return false;
    for (int i = 0; i < WF_SPARE_WAYS; i++) {
        weft_tensor *none = NULL;

        if (atomic_load_explicit(&spares[i], memory_order_relaxed) == NULL &&
            atomic_compare_exchange_strong(&spares[i], &none, tensor))
            return true;
    }
    atomic_fetch_sub_explicit(&state->spare_bytes, bytes, memory_order_relaxed);
    return false;
}

/* True if a kernel may use freed memory of STREAM at once.  A kernel on the host may not wait for
 * the work that still reads the memory. */
static bool is_free(const struct wf_apply_state *state, weft_stream *stream)
{
    return stream == NULL || !state->waits || weft_stream_test(stream) == WEFT_OK;
}

/* None of the spare tensors at the place of SPEC is of use.  If all places are taken, one of them
 * is freed: its stream may have ended. */
static void make_place(struct wf_apply_state *state, const weft_spec *spec)
{
    _Atomic(weft_tensor *) *spares = spares_of(state, spec);

    for (int i = 0; i < WF_SPARE_WAYS; i++)
        if (atomic_load_explicit(&spares[i], memory_order_relaxed) == NULL) return;
    drop(state, atomic_exchange(&spares[state->replaced++ % WF_SPARE_WAYS], NULL));
}

/* The caller is in weft_moves_enter, so nobody else takes a spare tensor. */
static weft_tensor *take(struct wf_apply_state *state, const weft_spec *spec,
                         const weft_stream *stream)
{
    _Atomic(weft_tensor *) *spares = spares_of(state, spec);

    for (int i = 0; i < WF_SPARE_WAYS; i++) {
        weft_tensor *tensor = atomic_load_explicit(&spares[i], memory_order_acquire);

        if (tensor == NULL || weft_tensor_spec(tensor) != spec ||
            weft_tensor_stream(tensor) != stream)
            continue;
        atomic_store_explicit(&spares[i], NULL, memory_order_relaxed);
        atomic_fetch_sub_explicit(&state->spare_bytes, weft_tensor_bytes(tensor),
                                  memory_order_relaxed);
        return tensor;
    }
    return NULL;
}

weft_status wf_tensor_new(weft_context *context, const weft_spec *spec, const char *name,
                          weft_stream *stream, weft_tensor **out)
{
    const weft_tensor_options options = {
        .struct_size = sizeof options, .name = name[0] != '\0' ? name : NULL, .stream = stream};

    return weft_tensor_create(context, spec, &options, out);
}

weft_status wf_output_make(struct wf_apply_state *state, const weft_spec *spec, weft_stream *stream,
                           weft_tensor **out)
{
    weft_tensor *tensor = is_free(state, stream) ? take(state, spec, stream) : NULL;

    if (tensor != NULL) {
        weft_tensor_reuse(tensor);
        *out = tensor;
        return WEFT_OK;
    }
    make_place(state, spec);
    WF_TRY(wf_tensor_new(state->context, spec, "", stream, out));
    if (!state->is_simulated && weft_tensor_bytes(*out) <= LARGEST)
        weft_tensor_set_keeper(*out, keep, state);
    return WEFT_OK;
}

void wf_spares_free(struct wf_apply_state *state)
{
    for (int i = 0; i < WF_SPARE_SETS * WF_SPARE_WAYS; i++) {
        weft_tensor *tensor =
            atomic_exchange(&state->spares[i / WF_SPARE_WAYS][i % WF_SPARE_WAYS], NULL);

        if (tensor != NULL) drop(state, tensor);
    }
}
