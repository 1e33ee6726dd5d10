/* replicas.c - are the replicas of a tensor in the files of several ranks equal?
 *
 * A replica has the shape of the piece that readers use: the shard of the rank whose coordinates
 * are 0 along the replicated axes.  So the two ranges of bytes are compared. */
#include "checkpoint/rules/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const struct wf_piece *)left)->name, ((const struct wf_piece *)right)->name);
}

/* The rank whose shard readers use in place of RANK's. */
static int32_t first_holder(const weft_spec *spec, int32_t rank)
{
    const weft_placement *placements = weft_spec_placements(spec);
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t coord[WEFT_MAX_AXES], holder = -1;

    if (weft_mesh_coord_of(mesh, rank, coord) != WEFT_OK) return -1;
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (placements[a].kind == WEFT_PLACE_REPLICATE) coord[a] = 0;
    return weft_mesh_rank(mesh, coord, &holder) == WEFT_OK ? holder : -1;
}

static const struct wf_piece *find_piece(const weft_checkpoint *checkpoint,
                                         const struct wf_tensor *tensor, int32_t rank)
{
    for (size_t i = 0; i < tensor->count; i++)
        if (checkpoint->pieces[tensor->first + i].rank == rank)
            return &checkpoint->pieces[tensor->first + i];
    return NULL;
}

static weft_status compare_pieces(const weft_checkpoint *checkpoint, const struct wf_piece *a,
                                  const struct wf_piece *b, char *stage)
{
    struct wf_inputs *inputs = (struct wf_inputs *)&checkpoint->inputs;
    size_t half = WF_STAGE / 2;
    int64_t bytes = 0;

    if (!wf_file_bytes(a->dtype, a->dims, a->shape, &bytes)) return WEFT_OK;
    for (int64_t at = 0, count; at < bytes; at += count) {
        count = wf_min_i64(bytes - at, (int64_t)half);
        WF_TRY(wf_inputs_read(inputs, a->file, a->at + (uint64_t)at, stage, (size_t)count));
        WF_TRY(wf_inputs_read(inputs, b->file, b->at + (uint64_t)at, stage + half, (size_t)count));
        if (memcmp(stage, stage + half, (size_t)count) == 0) continue;
        for (int64_t i = 0; i < count; i++)
            if (stage[i] != stage[half + (size_t)i])
                return wf_fail(WEFT_ERR_MISMATCH,
                               "tensor \"%.200s\" is replicated, but byte %" PRId64
                               " of its shard is 0x%02x in %s and 0x%02x in %s",
                               a->name, at + i, (unsigned char)stage[i],
                               inputs->list[a->file]->name, (unsigned char)stage[half + (size_t)i],
                               inputs->list[b->file]->name);
    }
    return WEFT_OK;
}

/* Compare COUNT replicas of TENSOR. */
static weft_status compare_replicas(const weft_checkpoint *checkpoint,
                                    const struct wf_tensor *tensor, const struct wf_piece *replicas,
                                    size_t count)
{
    char *stage = wf_alloc(WF_STAGE);
    weft_status status = stage != NULL ? WEFT_OK : wf_fail_memory(WF_STAGE);

    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        const struct wf_piece *piece =
            find_piece(checkpoint, tensor, first_holder(tensor->spec, replicas[i].rank));
        if (piece != NULL) status = compare_pieces(checkpoint, piece, &replicas[i], stage);
    }
    wf_free(stage);
    return status;
}

static weft_status check_tensor(const weft_checkpoint *checkpoint, const struct wf_tensor *tensor);

/* All tensors that VIEW uses. */
static weft_status check_view(const weft_checkpoint *base, const struct wf_view *view)
{
    if (view->kind == WF_VIEW_SOURCE) return check_tensor(base, &base->tensors[view->source]);
    for (size_t i = 0; i < view->count; i++)
        WF_TRY(check_view(base, view->children[i]));
    return WEFT_OK;
}

static weft_status check_tensor(const weft_checkpoint *checkpoint, const struct wf_tensor *tensor)
{
    const struct wf_piece *first, *all = checkpoint->replicas;
    struct wf_piece key = {.name = tensor->name};
    size_t count = 0;

    if (tensor->view != NULL) return check_view(checkpoint->base, tensor->view);
    if (tensor->spec == NULL || checkpoint->replica_count == 0) return WEFT_OK;
    first = bsearch(&key, all, checkpoint->replica_count, sizeof key, compare_names);
    if (first == NULL) return WEFT_OK;
    while (first > all && strcmp(first[-1].name, tensor->name) == 0)
        first--;
    while (first + count < all + checkpoint->replica_count &&
           strcmp(first[count].name, tensor->name) == 0)
        count++;
    return compare_replicas(checkpoint, tensor, first, count);
}

weft_status weft_checkpoint_check_replicas(const weft_checkpoint *checkpoint, size_t index)
{
    WF_TRY(wf_require_kind(checkpoint, WF_KIND_CHECKPOINT,
                           "weft_checkpoint_check_replicas: checkpoint"));
    if (index >= checkpoint->tensor_count)
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "weft_checkpoint_check_replicas: index is %zu, but the checkpoint has %zu "
                       "tensors",
                       index, checkpoint->tensor_count);
    return wf_fail_named(check_tensor(checkpoint, &checkpoint->tensors[index]),
                         "weft_checkpoint_check_replicas");
}
