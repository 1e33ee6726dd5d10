/* local.c - the shards that a process holds of a tensor: that of its rank or, if ranks are
 * simulated, those of all ranks. */
#include "tensor.h"

#include <stdlib.h>

static void set_dense_strides(struct wf_local *local)
{
    int64_t stride = 1;

    for (int32_t d = local->shard.dims - 1; d >= 0; d--) {
        local->strides[d] = stride;
        stride *= local->shard.shape[d] > 1 ? local->shard.shape[d] : 1;
    }
}

static weft_status make_lists(weft_tensor *tensor)
{
    size_t count = (size_t)tensor->context->size;
    size_t members = (size_t)tensor->spec->layout.mesh->size;

    tensor->locals = wf_calloc(count, sizeof *tensor->locals);
    if (tensor->locals == NULL) return wf_fail_memory(count * sizeof *tensor->locals);
    tensor->local_count = tensor->context->size;
    tensor->list = wf_calloc(members, sizeof *tensor->list);
    if (tensor->list == NULL) return wf_fail_memory(members * sizeof *tensor->list);
    return WEFT_OK;
}

weft_status wf_locals_make(weft_tensor *tensor)
{
    const weft_context *context = tensor->context;

    tensor->locals = &tensor->own;
    tensor->local_count = 1;
    if (context->is_simulated) WF_TRY(make_lists(tensor));
    for (int32_t i = 0; i < tensor->local_count; i++) {
        struct wf_local *local = &tensor->locals[i];

        local->rank = context->is_simulated ? i : context->rank;
        local->is_dense = true;
        weft_spec_shard(tensor->spec, local->rank, &local->shard);
        set_dense_strides(local);
    }
    return WEFT_OK;
}

void wf_locals_free(weft_tensor *tensor)
{
    if (tensor->locals != &tensor->own) wf_free(tensor->locals);
    wf_free(tensor->list);
}

enum { ALIGNMENT = 64 }; /* of the shards of simulated ranks */

/* Bytes of the shard in a block with those of other ranks. */
static uint64_t room_of(const weft_tensor *tensor, const struct wf_local *local)
{
    uint64_t bytes = wf_local_bytes(tensor, local);

    return bytes > INT64_MAX ? bytes : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t wf_tensor_room(const weft_tensor *tensor)
{
    uint64_t bytes = 0;

    if (tensor->list == NULL) return wf_local_bytes(tensor, &tensor->own);
    for (int32_t i = 0; i < tensor->local_count; i++)
        if (__builtin_add_overflow(bytes, room_of(tensor, &tensor->locals[i]), &bytes))
            return UINT64_MAX;
    return bytes;
}

void wf_locals_place(weft_tensor *tensor, void *block)
{
    uint64_t done = 0;

    if (tensor->list == NULL) {
        tensor->own.memory = block;
        return;
    }
    for (int32_t i = 0; i < tensor->local_count; i++) {
        uint64_t some = room_of(tensor, &tensor->locals[i]);

        if (some > 0) tensor->locals[i].memory = (char *)block + done;
        done += some;
    }
}

void wf_locals_finish(weft_tensor *tensor)
{
    const weft_mesh *mesh = tensor->spec->layout.mesh;

    tensor->is_dense = true;
    for (int32_t i = 0; i < tensor->local_count; i++)
        tensor->is_dense = tensor->is_dense && tensor->locals[i].is_dense;
    tensor->end = 0;
    if (tensor->own.memory != NULL)
        tensor->end = (uintptr_t)tensor->own.memory + wf_local_bytes(tensor, &tensor->own);
    tensor->held = tensor->list != NULL ? (void *)tensor->list : tensor->own.memory;
    for (int32_t i = 0; tensor->list != NULL && i < mesh->size; i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);

        if (rank < tensor->local_count) tensor->list[i] = tensor->locals[rank].memory;
    }
}

struct wf_local *wf_local_of(const weft_tensor *tensor, int32_t rank)
{
    return &tensor->locals[tensor->context->is_simulated ? rank : 0];
}

bool wf_local_is_dense(const struct wf_local *local, const int64_t *strides)
{
    for (int32_t d = 0; strides != NULL && d < local->shard.dims; d++)
        if (local->shard.shape[d] > 1 && strides[d] != local->strides[d]) return false;
    return true;
}

bool wf_local_overlaps(const struct wf_local *local)
{
    const int64_t *shape = local->shard.shape, *strides = local->strides;

    for (int32_t a = 0; a < local->shard.dims; a++)
        for (int32_t b = 0; b < a; b++) {
            int64_t divisor = wf_gcd(strides[a], strides[b]);

            if (shape[a] > 1 && shape[b] > 1 && divisor > 0 && strides[b] / divisor < shape[a] &&
                strides[a] / divisor < shape[b])
                return true;
        }
    return false;
}

uint64_t wf_local_bytes(const weft_tensor *tensor, const struct wf_local *local)
{
    return (uint64_t)local->shard.elements * wf_dtype_bytes(tensor->spec->layout.dtype);
}

/* ---- memory of several ranks ---- */

/* Both ranks hold the same elements in the same memory. */
static bool are_replicas(const weft_tensor *tensor, const struct wf_local *a,
                         const struct wf_local *b)
{
    const struct wf_layout *layout = &tensor->spec->layout;
    bool same = a->memory == b->memory;

    for (int32_t d = 0; d < a->shard.dims; d++)
        same = same && a->shard.shape[d] == b->shard.shape[d] &&
               a->shard.offset[d] == b->shard.offset[d] && a->strides[d] == b->strides[d];
    for (int32_t axis = 0; axis < layout->mesh->axes; axis++)
        same = same && layout->placements[axis].kind != WEFT_PLACE_PARTIAL;
    return same;
}

/* By address, then by rank.  Counts the comparisons. */
static int by_memory(const void *a, const void *b, void *comparisons)
{
    const struct wf_local *x = *(const struct wf_local *const *)a;
    const struct wf_local *y = *(const struct wf_local *const *)b;

    ++*(uint64_t *)comparisons;
    if (x->memory != y->memory) return (uintptr_t)x->memory < (uintptr_t)y->memory ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static weft_status refuse_overlap(const struct wf_local *a, const struct wf_local *b)
{
    const struct wf_local *low = a->rank < b->rank ? a : b, *high = low == a ? b : a;

    return wf_fail(WEFT_ERR_INVALID,
                   "the memory of rank %d, from %p on, overlaps that of rank %d, from %p on; each "
                   "rank needs memory of its own",
                   low->rank, low->memory, high->rank, high->memory);
}

/* SORTED has COUNT shards with elements, by memory. */
static weft_status check_sorted(const weft_tensor *tensor, const struct wf_local **sorted,
                                size_t count)
{
    const struct wf_local *farthest = NULL; /* the one without gaps that ends last so far */
    uintptr_t end = 0;

    for (size_t i = 0; i < count; i++) {
        const struct wf_local *local = sorted[i];
        uintptr_t start = (uintptr_t)local->memory;

        if (i > 0 && sorted[i - 1]->memory == local->memory) {
            if (!are_replicas(tensor, sorted[i - 1], local))
                return refuse_overlap(sorted[i - 1], local);
            continue;
        }
        if (!local->is_dense) continue;
        if (start < end) return refuse_overlap(farthest, local);
        farthest = local;
        end = start + wf_local_bytes(tensor, local);
    }
    return WEFT_OK;
}

weft_status wf_locals_check_apart(const weft_tensor *tensor, uint64_t *comparisons)
{
    size_t count = 0, bytes = (size_t)tensor->local_count * sizeof(struct wf_local *);
    const struct wf_local **sorted = wf_alloc(bytes);
    weft_status status;

    if (sorted == NULL) return wf_fail_memory(bytes);
    for (int32_t i = 0; i < tensor->local_count; i++)
        if (tensor->locals[i].shard.elements > 0) sorted[count++] = &tensor->locals[i];
    *comparisons = count;
    if (count > 0) qsort_r(sorted, count, sizeof(struct wf_local *), by_memory, comparisons);
    status = check_sorted(tensor, sorted, count);
    wf_free(sorted);
    return status;
}

weft_status weft_tensor_local_of(const weft_tensor *tensor, int32_t rank,
                                 weft_tensor_local_info *out)
{
    static const char what[] = "weft_tensor_local_of";
    weft_tensor_local_info info = {0};
    const weft_context *context;
    const struct wf_local *local;

    WF_TRY(wf_tensor_check(tensor, what, "tensor"));
    if (out == NULL) return wf_fail_null(what, "out");
    context = tensor->context;
    if (rank < 0 || rank >= context->size)
        return wf_tensor_fail(
            tensor,
            wf_fail(WEFT_ERR_INVALID, "rank is %d; expected 0 to %d", rank, context->size - 1),
            what);
    if (!context->is_simulated && rank != context->rank)
        return wf_tensor_fail(
            tensor,
            wf_fail(WEFT_ERR_UNSUPPORTED,
                    "the shard of rank %d is not in the memory of rank %d; only a "
                    "context with simulated ranks holds all shards",
                    rank, context->rank),
            what);
    local = wf_local_of(tensor, rank);
    info.memory = local->memory;
    info.shard = local->shard;
    for (int32_t d = 0; d < local->shard.dims; d++)
        info.strides[d] = local->strides[d];
    return wf_fail_named(wf_info_write("weft_tensor_local_info", &info, sizeof info, out), what);
}
