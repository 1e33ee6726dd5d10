/* shown.c - the elements that the text of a tensor has: which ones, and their values. */
#include "tensor.h"

#include "exec/host/host.h"

#include <string.h>

/* ---- which ones ---- */

/* First and last indices of each of DIMS dimensions, so that at most some thousand elements are
 * shown: three as in NumPy, fewer in many dimensions. */
static int64_t edge_of(int32_t dims)
{
    return dims <= 4 ? 3 : dims <= 6 ? 2 : 1;
}

void wf_shown_choose(struct wf_shown *shown, int32_t dims, const int64_t *shape, uint32_t dtype)
{
    int64_t elements = 1;

    *shown = (struct wf_shown){.dims = dims, .count = 1, .dtype = dtype};
    for (int32_t d = 0; d < dims; d++) {
        shown->shape[d] = shape[d];
        if (!wf_mul_i64(elements, shape[d], &elements)) elements = INT64_MAX;
    }
    if (elements > WF_SHOWN_ALL) shown->edge = edge_of(dims);
    for (int32_t d = 0; d < dims; d++) {
        bool cut = shown->edge > 0 && shape[d] > 2 * shown->edge;

        shown->counts[d] = cut ? 2 * shown->edge : shape[d];
        shown->count *= shown->counts[d];
    }
}

int64_t wf_shown_index(const struct wf_shown *shown, int32_t dim, int64_t position)
{
    bool is_tail = shown->counts[dim] < shown->shape[dim] && position >= shown->edge;

    return is_tail ? shown->shape[dim] - shown->counts[dim] + position : position;
}

void wf_shown_free(struct wf_shown *shown)
{
    wf_free(shown->elements);
    shown->elements = NULL;
}

static weft_status make_room(struct wf_shown *shown)
{
    size_t bytes = (size_t)shown->count * wf_dtype_bytes(shown->dtype);

    shown->elements = wf_calloc(bytes > 0 ? bytes : 1, 1);
    return shown->elements != NULL ? WEFT_OK : wf_fail_memory(bytes);
}

/* ---- of a shard ---- */

/* For each position of each dimension: the index in a rank's shard, or -1. */
struct places {
    int64_t *at[WEFT_MAX_DIMS];
    int64_t *all;
};

static weft_status make_places(const struct wf_shown *shown, struct places *out)
{
    int64_t total = 1;

    for (int32_t d = 0; d < shown->dims; d++)
        total += shown->counts[d];
    out->all = wf_alloc((size_t)total * sizeof *out->all);
    if (out->all == NULL) return wf_fail_memory((size_t)total * sizeof *out->all);
    total = 0;
    for (int32_t d = 0; d < shown->dims; d++) {
        out->at[d] = out->all + total;
        total += shown->counts[d];
    }
    return WEFT_OK;
}

static void find_places(const struct wf_shown *shown, const weft_tensor *tensor,
                        const struct wf_local *local, bool is_whole, const struct places *places)
{
    for (int32_t d = 0; d < shown->dims; d++) {
        weft_index_run run;

        for (int64_t i = 0; i < shown->counts[d]; i++)
            places->at[d][i] = is_whole ? -1 : wf_shown_index(shown, d, i);
        for (int64_t at = 0; is_whole && weft_spec_run(tensor->spec, local->rank, d, at, &run);
             at += run.length)
            for (int64_t i = 0; i < shown->counts[d]; i++) {
                int64_t index = wf_shown_index(shown, d, i);

                if (index >= run.start && index < run.start + run.length)
                    places->at[d][i] = at + index - run.start;
            }
    }
}

/* The offset in memory of element NUMBER of SHOWN, in elements; -1: the shard does not have it. */
static int64_t offset_of(const struct wf_shown *shown, const struct wf_local *local,
                         const struct places *places, int64_t number)
{
    int64_t offset = 0;

    if (local->shard.elements == 0) return -1;
    for (int32_t d = shown->dims - 1; d >= 0; d--) {
        int64_t index = places->at[d][number % shown->counts[d]];

        if (index < 0) return -1;
        offset += index * local->strides[d];
        number /= shown->counts[d];
    }
    return offset;
}

/* Read the elements that LOCAL has, to their places in SHOWN.  Unless HELD is NULL, HELD[i]
 * tells whether element i is one of them. */
static weft_status read_held(struct wf_shown *shown, const weft_tensor *tensor,
                             const struct wf_local *local, const struct places *places,
                             weft_stream *stream, bool *held)
{
    weft_context *context = tensor->context;
    bool readable = (context->features & WEFT_FEATURE_HOST_MEMORY) != 0;
    size_t bytes = wf_dtype_bytes(shown->dtype);
    weft_status status = wf_host_wait(context, stream), waited;

    for (int64_t i = 0; i < shown->count && status == WEFT_OK; i++) {
        int64_t offset = offset_of(shown, local, places, i);
        char *target = shown->elements + (size_t)i * bytes;
        const char *source;

        if (held != NULL) held[i] = offset >= 0;
        if (offset < 0) continue;
        source = (const char *)local->memory + offset * (int64_t)bytes;
        if (readable)
            memcpy(target, source, bytes);
        else
            status = context->plugin->device->copy(context->device, target, source, bytes, stream);
    }
    waited = wf_host_wait(context, stream);
    return status != WEFT_OK ? status : waited;
}

weft_status wf_shown_read(struct wf_shown *shown, const weft_tensor *tensor,
                          const struct wf_local *local, weft_stream *stream)
{
    struct places places = {0};
    weft_status status = make_room(shown);

    if (status == WEFT_OK) status = make_places(shown, &places);
    if (status == WEFT_OK) {
        find_places(shown, tensor, local, false, &places);
        status = read_held(shown, tensor, local, &places, stream, NULL);
    }
    wf_free(places.all);
    return status;
}

/* ---- of the whole tensor ---- */

/* The elements of LOCAL are sent: its rank has coordinate 0 where the tensor is replicated. */
static bool is_sent(const weft_tensor *tensor, const struct wf_local *local)
{
    const struct wf_layout *layout = &tensor->spec->layout;
    int32_t coord[WEFT_MAX_AXES] = {0};

    if (!wf_mesh_coord(layout->mesh, local->rank, coord)) return false;
    for (int32_t a = 0; a < layout->mesh->axes; a++)
        if (layout->placements[a].kind == WEFT_PLACE_REPLICATE && coord[a] != 0) return false;
    return true;
}

/* Write the elements of LOCAL to OUT, each with its number before it. */
static weft_status collect(struct wf_shown *shown, const weft_tensor *tensor,
                           const struct wf_local *local, weft_stream *stream, struct wf_text *out)
{
    size_t bytes = wf_dtype_bytes(shown->dtype);
    struct places places = {0};
    weft_status status = make_places(shown, &places);
    bool *held = wf_calloc((size_t)shown->count + 1, sizeof *held);

    if (held == NULL && status == WEFT_OK) status = wf_fail_memory((size_t)shown->count + 1);
    if (status == WEFT_OK) {
        find_places(shown, tensor, local, true, &places);
        status = read_held(shown, tensor, local, &places, stream, held);
    }
    for (int64_t i = 0; status == WEFT_OK && i < shown->count; i++) {
        if (!held[i]) continue;
        wf_text_append(out, (const char *)&i, sizeof i);
        wf_text_append(out, shown->elements + (size_t)i * bytes, bytes);
    }
    wf_free(places.all);
    wf_free(held);
    return status == WEFT_OK ? wf_text_status(out) : status;
}

static void spread(struct wf_shown *shown, const struct wf_gathered *got)
{
    size_t bytes = wf_dtype_bytes(shown->dtype);

    for (int32_t i = 0; i < got->count; i++) {
        const char *data = got->blobs[i].data;
        uint64_t rest = got->blobs[i].bytes;

        for (; rest >= sizeof(int64_t) + bytes; rest -= sizeof(int64_t) + bytes) {
            int64_t number;

            memcpy(&number, data, sizeof number);
            if (number >= 0 && number < shown->count)
                memcpy(shown->elements + (size_t)number * bytes, data + sizeof number, bytes);
            data += sizeof number + bytes;
        }
    }
}

weft_status wf_shown_gather(struct wf_shown *shown, const weft_tensor *tensor, weft_stream *stream,
                            const char *function, weft_status status, bool *member)
{
    struct wf_gathered got = {0};
    struct wf_text mine = {0};

    if (status == WEFT_OK) status = make_room(shown);
    for (int32_t i = 0; i < tensor->local_count && status == WEFT_OK; i++)
        if (is_sent(tensor, &tensor->locals[i]))
            status = collect(shown, tensor, &tensor->locals[i], stream, &mine);
    status = wf_carrier_of(tensor->context)
                 ->agree(tensor->context, tensor->spec, tensor->spec, function, status,
                         (weft_blob){mine.data != NULL ? mine.data : "", mine.length}, &got);
    wf_text_free(&mine);
    if (status == WEFT_OK) spread(shown, &got);
    *member = got.count > 0;
    wf_gathered_free(&got);
    return status;
}
