/* load.c - tensors from a checkpoint. */
#include "store.h"

#include <stdio.h>
#include <string.h>

struct load {
    struct wf_store_call call;
    const weft_checkpoint *from;
    const weft_layout_file *layout; /* NULL: the tensors' own */
    bool exist;                     /* the tensors do */
    struct wf_placer placer;
    weft_load_options options;
    weft_tensor **tensors;
    size_t count;
    struct wf_pieces pieces;
    struct wf_store_digest digest;
};

/* Every rank of the layout's mesh is a rank of the job. */
static weft_status check_mesh(const struct load *load)
{
    const weft_mesh *mesh =
        load->layout != NULL ? weft_layout_file_mesh(load->layout) : load->from->mesh;
    int32_t size = weft_size(load->call.context);

    for (int32_t p = 0; p < weft_mesh_size(mesh); p++)
        if (weft_mesh_rank_at(mesh, p) >= size)
            return wf_fail(
                WEFT_ERR_INVALID,
                "the mesh of the layout has rank %d, but the job has %d rank%s, counted from 0",
                weft_mesh_rank_at(mesh, p), size, size == 1 ? "" : "s");
    return WEFT_OK;
}

/* Make the tensor of FROM's tensor INDEX. */
static weft_status make_tensor(struct load *load, size_t index, weft_tensor **out)
{
    const struct wf_tensor *tensor = &load->from->tensors[index];
    weft_tensor_options options = {.struct_size = sizeof options, .name = tensor->name};
    weft_spec *spec = NULL;
    weft_status status;

    if (wf_file_dtype(tensor->dtype)->dtype == WEFT_DTYPE_COUNT)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "weft does not compute with dtype %s",
                       wf_file_dtype(tensor->dtype)->name);
    WF_TRY(wf_placer_spec(&load->placer, tensor, &spec));
    status = weft_tensor_create(load->call.context, spec, &options, out);
    weft_spec_release(&spec);
    return status;
}

/* TARGET can take the elements of FROM's tensor INDEX. */
static weft_status check_tensor(const struct load *load, size_t index, const weft_tensor *target)
{
    const struct wf_tensor *tensor = &load->from->tensors[index];
    const weft_spec *spec = weft_tensor_spec(target);

    if (weft_tensor_context(target) != load->call.context)
        return wf_fail(WEFT_ERR_INVALID, "it belongs to another context");
    if (weft_tensor_is_read_only(target)) return wf_fail(WEFT_ERR_INVALID, "it is read-only");
    if (wf_file_dtype(tensor->dtype)->dtype != (uint32_t)weft_spec_dtype(spec))
        return wf_fail(WEFT_ERR_INVALID, "it is %s, but the checkpoint has %s",
                       wf_dtype_name(weft_spec_dtype(spec)), wf_file_dtype(tensor->dtype)->name);
    return wf_spec_check(tensor, spec, "the tensor to load into");
}

/* List the pieces of TENSOR, which has number INDEX in FROM. */
static weft_status list_pieces(struct load *load, size_t index, weft_tensor *tensor)
{
    const char *name = load->from->tensors[index].name;
    const weft_spec *spec = weft_tensor_spec(tensor);

    load->digest.tensors = wf_hash(load->digest.tensors, name, strlen(name) + 1);
    load->digest.layouts = wf_hash_mix(load->digest.layouts, weft_spec_hash(spec));
    WF_TRY(wf_pieces_add(&load->pieces, spec, index, 1, 0));
    return wf_shard_take_memory(&load->pieces.shards[load->pieces.shard_count - 1], tensor);
}

/* The number in FROM of what is loaded to tensor I. */
static weft_status find_source(const struct load *load, size_t i, size_t *index)
{
    const char *name = NULL;

    *index = i;
    if (load->options.names != NULL) {
        name = load->options.names[i];
        if (name == NULL) return wf_fail(WEFT_ERR_INVALID, "name %zu is NULL", i);
    } else if (load->exist) {
        name = weft_tensor_name(load->tensors[i]);
        if (name[0] == '\0')
            return wf_fail(WEFT_ERR_INVALID,
                           "tensors[%zu] has no name; create it with one, or give `names`", i);
    }
    return name != NULL ? weft_checkpoint_find(load->from, name, index) : WEFT_OK;
}

static const char *name_of(const void *state, size_t index)
{
    const struct load *load = state;

    if (load->options.names != NULL) return load->options.names[index];
    return load->exist ? weft_tensor_name(load->tensors[index]) : load->from->tensors[index].name;
}

static weft_status compare(struct load *load, weft_status status)
{
    return wf_store_compare(&load->call, "load", status, &load->digest,
                            &(struct wf_store_words){NULL, load->count, name_of, load});
}

static weft_status take_tensors(struct load *load)
{
    for (size_t i = 0; i < load->count; i++) {
        weft_status status;
        size_t index;

        WF_TRY(find_source(load, i, &index));
        status = load->exist ? check_tensor(load, index, load->tensors[i])
                             : make_tensor(load, index, &load->tensors[i]);
        if (status == WEFT_OK) status = list_pieces(load, index, load->tensors[i]);
        if (status != WEFT_OK)
            return wf_fail_context(status, "tensor \"%.200s\"", load->from->tensors[index].name);
    }
    return WEFT_OK;
}

/* What both calls check first. */
static weft_status begin(struct load *load, const weft_load_options *options)
{
    char from[64];

    snprintf(from, sizeof from, "%s: from", load->call.function);
    WF_TRY(wf_require_kind(load->from, WF_KIND_CHECKPOINT, from));
    return wf_options_read("weft_load_options", options, &load->options, sizeof load->options);
}

static weft_status prepare(struct load *load, const weft_load_options *options, weft_tensor **out)
{
    WF_TRY(begin(load, options));
    if (load->layout != NULL)
        WF_TRY(wf_require_kind(load->layout, WF_KIND_LAYOUT, "weft_load: layout"));
    else if (load->from->mesh == NULL)
        return wf_fail(WEFT_ERR_INVALID, "weft_load: layout is NULL, but only a checkpoint with a "
                                         "file per rank has a layout of its own");
    if ((load->options.names != NULL) != (load->options.name_count > 0))
        return wf_fail(WEFT_ERR_INVALID,
                       "the options have %s `names`, but name_count is %zu; set both or none",
                       load->options.names != NULL ? "a list" : "no", load->options.name_count);
    load->count = load->options.names != NULL ? load->options.name_count : load->from->tensor_count;
    if (load->count > 0) WF_TRY(wf_require(out, "weft_load: out"));
    WF_TRY(check_mesh(load));
    load->tensors = wf_calloc(load->count, sizeof *load->tensors);
    if (load->tensors == NULL) return wf_fail_memory(load->count * sizeof *load->tensors);
    WF_TRY(wf_pieces_begin(&load->pieces, &load->call, load->count, load->options.jobs,
                           "weft_load_options.jobs"));
    wf_placer_begin(&load->placer, load->from, load->layout);
    return take_tensors(load);
}

static weft_status prepare_into(struct load *load, size_t count, weft_tensor *const *tensors,
                                const weft_load_options *options)
{
    WF_TRY(begin(load, options));
    if (count > 0) WF_TRY(wf_require(tensors, "weft_load_into: tensors"));
    if (load->options.name_count != (load->options.names != NULL ? count : 0))
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_load_options.names has %zu entries (name_count) for %zu tensor%s; "
                       "expected one name per "
                       "tensor, or none",
                       load->options.name_count, count, count == 1 ? "" : "s");
    load->tensors = wf_calloc(count, sizeof *load->tensors);
    if (load->tensors == NULL) return wf_fail_memory(count * sizeof *load->tensors);
    for (size_t i = 0; i < count; i++) {
        char argument[32];

        snprintf(argument, sizeof argument, "tensors[%zu]", i);
        WF_TRY(weft_object_check(tensors[i], "weft_tensor", load->call.function, argument));
        load->tensors[i] = weft_tensor_retain(tensors[i]);
        load->count = i + 1;
    }
    WF_TRY(wf_store_check_stream(&load->call, load->options.stream));
    WF_TRY(wf_pieces_begin(&load->pieces, &load->call, count, load->options.jobs,
                           "weft_load_options.jobs"));
    return take_tensors(load);
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
    return read.names != NULL ? read.name_count : from->tensor_count;
}

static void release_tensors(struct load *load)
{
    for (size_t i = 0; i < load->count && load->tensors != NULL; i++)
        weft_tensor_release(&load->tensors[i]);
}

static weft_status end(struct load *load, weft_status status)
{
    wf_pieces_free(&load->pieces);
    wf_placer_end(&load->placer);
    wf_free(load->tensors);
    wf_store_free(&load->call);
    return wf_store_end(&load->call, status);
}

weft_status weft_load(weft_context *context, const weft_checkpoint *from,
                      const weft_layout_file *layout, const weft_load_options *options,
                      weft_tensor **out)
{
    struct load load = {.from = from, .layout = layout};
    weft_status status;
    uint64_t all;

    WF_TRY(wf_store_check(context, "weft_load"));
    wf_store_begin(&load.call, context, WEFT_RECORD_LOAD, "weft_load");
    status = prepare(&load, options, out);
    wf_store_set_bytes(&load.call, load.pieces.bytes);
    status = compare(&load, status);
    if (status == WEFT_OK) {
        if (load.options.names == NULL && weft_rank(context) == 0) wf_checkpoint_warn(from, layout);
        status = wf_pieces_run(&load.pieces, true, read_piece, &load);
        status = wf_store_meet(&load.call, status, 0, &all);
    }
    if (status != WEFT_OK) release_tensors(&load);
    for (size_t i = 0; i < load.count && status == WEFT_OK; i++)
        out[i] = load.tensors[i];
    return end(&load, status);
}

/* Read the pieces, and copy them to tensors with gaps. */
static weft_status fill_tensors(struct load *load)
{
    weft_stream *stream = load->options.stream;

    WF_TRY(weft_context_wait(load->call.context, stream, WEFT_FOREVER));
    WF_TRY(wf_pieces_run(&load->pieces, true, read_piece, load));
    for (size_t i = 0; i < load->count; i++) {
        const struct wf_store_shard *shard = &load->pieces.shards[i];

        if (shard->packed != NULL)
            WF_TRY(weft_tensor_from_host(load->tensors[i], shard->packed, shard->packed_bytes,
                                         stream));
    }
    return WEFT_OK;
}

weft_status weft_load_into(weft_context *context, const weft_checkpoint *from, size_t count,
                           weft_tensor *const *tensors, const weft_load_options *options)
{
    struct load load = {.from = from, .exist = true};
    weft_status status;
    uint64_t all;

    WF_TRY(wf_store_check(context, "weft_load_into"));
    wf_store_begin(&load.call, context, WEFT_RECORD_LOAD, "weft_load_into");
    status = prepare_into(&load, count, tensors, options);
    wf_store_set_bytes(&load.call, load.pieces.bytes);
    status = compare(&load, status);
    if (status == WEFT_OK) status = wf_store_meet(&load.call, fill_tensors(&load), 0, &all);
    release_tensors(&load);
    return end(&load, status);
}
