/* load.c - tensors from a checkpoint. */
#include "store.h"

#include <string.h>

struct load {
    struct wf_store_call call;
    const weft_checkpoint *from;
    const weft_layout *layout;
    weft_load_options options;
    weft_tensor **tensors;
    size_t count;
    struct wf_pieces pieces;
    struct wf_store_digest digest;
};

/* Every rank of the layout's mesh is a rank of the job. */
static weft_status check_mesh(const struct load *load)
{
    const weft_mesh *mesh = weft_layout_mesh(load->layout);

    for (int32_t p = 0; p < weft_mesh_size(mesh); p++)
        if (weft_mesh_rank_at(mesh, p) >= load->call.context->size)
            return wf_fail(
                WEFT_ERR_INVALID,
                "the mesh of the layout has rank %d, but the job has %d ranks, counted from 0",
                weft_mesh_rank_at(mesh, p), load->call.context->size);
    return WEFT_OK;
}

/* Make the tensor of FROM's tensor INDEX, and list its pieces. */
static weft_status make_tensor(struct load *load, size_t index, weft_tensor **out)
{
    const struct wf_tensor *tensor = &load->from->tensors[index];
    const char *placements = NULL;
    weft_spec *spec = NULL;
    weft_status status;

    if (wf_file_dtype(tensor->dtype)->dtype == WEFT_DTYPE_COUNT)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "weft does not compute with dtype %s",
                       wf_file_dtype(tensor->dtype)->name);
    WF_TRY(weft_layout_find(load->layout, tensor->name, &placements));
    WF_TRY(wf_file_spec(weft_layout_mesh(load->layout), tensor->dtype, tensor->dims, tensor->shape,
                        placements, &spec));
    status = wf_tensor_make(load->call.context, spec, tensor->name, NULL, "weft_load", out);
    if (status == WEFT_OK) {
        struct wf_store_shard *shard = &load->pieces.shards[load->pieces.shard_count];
        status = wf_pieces_add(&load->pieces, (*out)->spec, index, 1, 0);
        shard->memory = (*out)->own.memory;
        load->digest.tensors =
            wf_hash(load->digest.tensors, tensor->name, strlen(tensor->name) + 1);
        load->digest.layouts = wf_hash_mix(load->digest.layouts, weft_spec_hash(spec));
    }
    weft_spec_release(&spec);
    return status;
}

static weft_status make_tensors(struct load *load)
{
    for (size_t i = 0; i < load->count; i++) {
        const char *name = "";
        size_t index = i;
        weft_status status;
        if (load->options.names != NULL) {
            name = load->options.names[i];
            if (name == NULL) return wf_fail(WEFT_ERR_INVALID, "name %zu is NULL", i);
            WF_TRY(weft_checkpoint_find(load->from, name, &index));
        }
        name = load->from->tensors[index].name;
        status = make_tensor(load, index, &load->tensors[i]);
        if (status != WEFT_OK) return wf_fail_context(status, "tensor \"%.200s\"", name);
    }
    return WEFT_OK;
}

static weft_status prepare(struct load *load, const weft_load_options *options, weft_tensor **out)
{
    WF_TRY(wf_require_kind(load->from, WF_KIND_CHECKPOINT, "weft_load: from"));
    WF_TRY(wf_require_kind(load->layout, WF_KIND_LAYOUT, "weft_load: layout"));
    WF_TRY(wf_options_read("weft_load_options", options, &load->options, sizeof load->options));
    load->count = load->options.names != NULL ? load->options.count : load->from->tensor_count;
    if (load->count > 0) WF_TRY(wf_require(out, "weft_load: out"));
    WF_TRY(check_mesh(load));
    load->tensors = wf_calloc(load->count, sizeof *load->tensors);
    if (load->tensors == NULL) return wf_fail_memory(load->count * sizeof *load->tensors);
    WF_TRY(wf_pieces_begin(&load->pieces, &load->call, load->count, load->options.jobs));
    return make_tensors(load);
}

static weft_status read_piece(void *state, const struct wf_piece_view *view, struct wf_stage *stage)
{
    const struct load *load = state;
    const struct wf_tensor *tensor = &load->from->tensors[view->shard->index];
    char *target = stage->memory != NULL ? stage->memory : view->memory;
    weft_status status = wf_checkpoint_read_tensor(load->from, tensor, &view->part, target);

    if (status == WEFT_OK && stage->memory != NULL)
        status = wf_stage_copy(stage, stage->memory, view->memory, view->piece->bytes);
    return status == WEFT_OK ? status : wf_fail_context(status, "tensor \"%.200s\"", tensor->name);
}

size_t weft_load_count(const weft_checkpoint *from, const weft_load_options *options)
{
    weft_load_options read = {0};

    if (wf_require_kind(from, WF_KIND_CHECKPOINT, "weft_load_count: from") != WEFT_OK ||
        wf_options_read("weft_load_options", options, &read, sizeof read) != WEFT_OK)
        return 0;
    return read.names != NULL ? read.count : from->tensor_count;
}

weft_status weft_load(weft_context *context, const weft_checkpoint *from, const weft_layout *layout,
                      const weft_load_options *options, weft_tensor **out)
{
    static const char what[] = "weft_load";
    struct load load = {.from = from, .layout = layout};
    weft_status status;
    uint64_t all;

    WF_TRY(wf_store_check(context, what));
    wf_store_begin(&load.call, context, WEFT_OP_LOAD, what);
    status = prepare(&load, options, out);
    wf_store_set_bytes(&load.call, load.pieces.bytes);
    status = wf_store_compare(&load.call, "load", status, &load.digest);
    if (status == WEFT_OK) {
        if (load.options.names == NULL && context->rank == 0) {
            wf_unlisted_warn(from);
            wf_layout_warn(layout, from);
        }
        status = wf_pieces_run(&load.pieces, true, read_piece, &load);
        status = wf_store_meet(&load.call, status, 0, &all);
    }
    for (size_t i = 0; i < load.count && load.tensors != NULL; i++)
        if (status == WEFT_OK)
            out[i] = load.tensors[i];
        else
            weft_tensor_release(&load.tensors[i]);
    wf_pieces_free(&load.pieces);
    wf_free(load.tensors);
    return wf_store_end(&load.call, status);
}
