/* save.c - tensors to a checkpoint.
 *
 * Rank 0 makes the files before the ranks compare what they save, and commits them after all ranks
 * have flushed what they wrote.  Between these, the ranks meet once more when all have opened the
 * files: no rank can open the files of a later saving. */
#include "store.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is saved ---- */

/* Check that PLACEMENTS of the tensor NAME, whose own layout is SPEC, keep the heads whole that the
 * layout file wants so.  A size that is a number of the model is not known. */
static weft_status check_heads(const struct wf_save *save, const char *name, const weft_spec *spec,
                               const char *placements)
{
    const weft_layout_file *layout = save->options.layout;
    static atomic_bool has_warned;
    weft_spec *written = NULL;
    const char *size = "";
    weft_status status;
    int32_t dim;

    WF_TRY(weft_layout_file_heads(layout, name, &dim, &size));
    if (size[0] == '\0') return WEFT_OK;
    if (strchr(size, '$') != NULL) {
        if (weft_rank(save->call.context) == 0 && !atomic_exchange(&has_warned, true))
            wf_log(WF_LOG_WARNING,
                   "%s: heads that the layout wants whole are not checked, such as heads%d(%s) of "
                   "tensor \"%.200s\": a checkpoint that is written has no config.json with "
                   "numbers; write the number in the layout",
                   save->call.function, dim, size, name);
        return WEFT_OK;
    }
    WF_TRY(weft_spec_parse_placements(weft_layout_file_mesh(layout), weft_spec_dtype(spec),
                                      weft_spec_dims(spec), weft_spec_shape(spec), placements,
                                      &written));
    status = wf_heads_check(written, dim, strtoll(size, NULL, 10));
    weft_spec_release(&written);
    return status;
}

/* Set *OUT to the placements of the tensor NAME by the layout.  SPEC is its own layout, whose parts
 * replace names of numbers: there is no model yet. */
static weft_status place(struct wf_save *save, const char *name, const weft_spec *spec,
                         const char **out)
{
    struct wf_text text = {0};
    weft_status status = WEFT_OK;

    WF_TRY(weft_layout_file_find(save->options.layout, name, out));
    if (strchr(*out, '$') == NULL) return check_heads(save, name, spec, *out);
    if (!wf_placements_fill(*out, spec, &text)) {
        status = wf_fail(WEFT_ERR_INVALID,
                         "the layout has %s for tensor \"%.200s\"; a checkpoint that is written "
                         "has no config.json with numbers, and the tensor's own layout has no such "
                         "parts; write the numbers in the layout",
                         *out, name);
    } else {
        *out = text.failed ? NULL : wf_arena_text(&save->arena, text.data, text.length);
        if (*out == NULL) status = wf_fail_memory(text.length + 1);
    }
    wf_text_free(&text);
    return status == WEFT_OK ? check_heads(save, name, spec, *out) : status;
}

static weft_status take_tensor(struct wf_save *save, size_t index, weft_tensor *tensor)
{
    weft_checkpoint_entry *entry = &save->entries[index];
    const weft_spec *spec = weft_tensor_spec(tensor);
    enum weft_dtype dtype = weft_spec_dtype(spec);

    if (weft_tensor_context(tensor) != save->call.context)
        return wf_fail(WEFT_ERR_INVALID, "it belongs to another context");
    save->tensors[index] = weft_tensor_retain(tensor);
    *entry = (weft_checkpoint_entry){
        .name = save->options.names != NULL ? save->options.names[index] : weft_tensor_name(tensor),
        .dtype = weft_dtype_name(dtype),
        .dims = weft_spec_dims(spec),
        .shape = weft_spec_shape(spec)};
    if (entry->name == NULL || entry->name[0] == '\0')
        return wf_fail(WEFT_ERR_INVALID, "it has no name; create it with one, or give `names`");
    if (save->options.layout != NULL) WF_TRY(place(save, entry->name, spec, &entry->placements));
    save->total += (uint64_t)weft_spec_elements(spec) * wf_dtype_bytes(dtype);
    return weft_spec_gradient(spec, &save->specs[index]);
}

static weft_status take_tensors(struct wf_save *save, weft_tensor *const *tensors, size_t count)
{
    save->tensors = wf_calloc(count, sizeof(weft_tensor *));
    save->entries = wf_calloc(count, sizeof *save->entries);
    save->specs = wf_calloc(count, sizeof(weft_spec *));
    if (save->tensors == NULL || save->entries == NULL || save->specs == NULL)
        return wf_fail_memory(count * sizeof *save->entries);
    save->count = count;
    for (size_t i = 0; i < count; i++) {
        weft_status status;
        char argument[32];
        snprintf(argument, sizeof argument, "tensors[%zu]", i);
        WF_TRY(weft_object_check(tensors[i], "weft_tensor", save->call.function, argument));
        status = take_tensor(save, i, tensors[i]);
        if (status != WEFT_OK) return wf_fail_context(status, "%s", argument);
    }
    return WEFT_OK;
}

static uint64_t add_text(uint64_t digest, const char *text)
{
    return text != NULL ? wf_hash(digest, text, strlen(text) + 1) : wf_hash_mix(digest, 1);
}

static struct wf_store_digest digest_of(const struct wf_save *save)
{
    const weft_save_options *options = &save->options;
    struct wf_store_digest digest = {.path = add_text(0, save->path), .options = options->format};

    digest.options =
        wf_hash_mix(wf_hash_mix(digest.options, options->file_bytes), options->replace);
    for (size_t i = 0; i < save->count; i++) {
        digest.tensors = add_text(digest.tensors, save->entries[i].name);
        digest.layouts = add_text(digest.layouts, save->entries[i].placements);
        digest.layouts =
            wf_hash_mix(digest.layouts, weft_spec_hash(weft_tensor_spec(save->tensors[i])));
    }
    if (options->layout != NULL) {
        const weft_mesh *mesh = weft_layout_file_mesh(options->layout);
        for (int32_t p = 0; p < weft_mesh_size(mesh); p++)
            digest.layouts = wf_hash_mix(digest.layouts, (uint64_t)weft_mesh_rank_at(mesh, p));
    }
    for (size_t i = 0; options->metadata != NULL && i < options->metadata_count; i++)
        digest.options = add_text(add_text(digest.options, options->metadata[i].key),
                                  options->metadata[i].value);
    return digest;
}

static const char *name_of(const void *state, size_t index)
{
    return ((const struct wf_save *)state)->entries[index].name;
}

static weft_status open_files(struct wf_save *save, enum wf_outputs_mode mode)
{
    const weft_save_options *given = &save->options;
    weft_checkpoint_writer_options options = {.struct_size = sizeof options,
                                              .format = given->format,
                                              .replace = given->replace,
                                              .mesh = weft_layout_file_mesh(given->layout),
                                              .file_bytes = given->file_bytes,
                                              .metadata = given->metadata,
                                              .metadata_count = given->metadata_count};

    return wf_writer_create(save->path, save->count, save->entries, &options, mode, &save->writer);
}

static weft_status check_format(const weft_save_options *options)
{
    const char *name = weft_file_format_name((enum weft_file_format)options->format);

    if (options->format == WEFT_FILE_RANKS && options->layout == NULL)
        return wf_fail(WEFT_ERR_INVALID, "format is ranks, files per rank, which needs a `layout`");
    if (options->layout == NULL || options->format == WEFT_FILE_ANY ||
        options->format == WEFT_FILE_RANKS || name == NULL)
        return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "`layout` is set, but format is %s; only format ranks, files per rank, has one",
                   name);
}

/* This rank's part, before the ranks compare. */
static weft_status check(struct wf_save *save, const char *path, weft_tensor *const *tensors,
                         size_t count, const weft_save_options *options)
{
    WF_TRY(wf_require(path, "path"));
    if (count == 0)
        return wf_fail(WEFT_ERR_INVALID, "count is 0; a checkpoint has at least one tensor");
    WF_TRY(wf_require(tensors, "tensors"));
    WF_TRY(wf_options_read("weft_save_options", options, &save->options, sizeof save->options));
    if (save->options.layout != NULL)
        WF_TRY(wf_require_kind(save->options.layout, WF_KIND_LAYOUT, "weft_save_options: layout"));
    WF_TRY(check_format(&save->options));
    if (save->options.name_count != (save->options.names != NULL ? count : 0))
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_save_options.names has %zu entries (name_count) for %zu tensor%s; "
                       "expected one name per "
                       "tensor, or none",
                       save->options.name_count, count, count == 1 ? "" : "s");
    WF_TRY(wf_store_check_stream(&save->call, save->options.stream));
    save->path = wf_strdup(path);
    if (save->path == NULL) return wf_fail_memory(strlen(path) + 1);
    WF_TRY(take_tensors(save, tensors, count));
    return weft_rank(save->call.context) == 0 ? open_files(save, WF_OUTPUT_NEW) : WEFT_OK;
}

/* ---- pieces ---- */

/* How many ranks have this rank's shard under SPEC, and which of them this is. */
static void count_replicas(const struct wf_save *save, const weft_spec *spec, int32_t *replicas,
                           int32_t *replica)
{
    const weft_placement *placements = weft_spec_placements(spec);
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t coord[WEFT_MAX_AXES];

    *replicas = 1;
    *replica = 0;
    if (weft_mesh_coord_of(mesh, weft_rank(save->call.context), coord) != WEFT_OK) return;
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++) {
        if (placements[a].kind != WEFT_PLACE_REPLICATE) continue;
        *replica = *replica * weft_mesh_axis_size(mesh, a) + coord[a];
        *replicas *= weft_mesh_axis_size(mesh, a);
    }
}

/* The elements of this rank's shard of TENSOR, row-major without gaps. */
static weft_status take_elements(weft_tensor *tensor, weft_stream *stream,
                                 struct wf_store_shard *shard)
{
    WF_TRY(wf_shard_take_memory(shard, tensor));
    if (shard->packed == NULL) return WEFT_OK;
    return weft_tensor_to_host(tensor, shard->packed, shard->packed_bytes, stream);
}

/* Reduce partial tensors, and list what this rank writes. */
static weft_status list_pieces(struct wf_save *save)
{
    weft_stream *stream = save->options.stream;

    WF_TRY(wf_pieces_begin(&save->pieces, &save->call, save->count, save->options.jobs,
                           "weft_save_options.jobs"));
    for (size_t i = 0; i < save->count; i++) {
        weft_tensor *given = save->tensors[i];
        int32_t replicas, replica;
        size_t before = save->pieces.count;
        if (weft_tensor_spec(given) != save->specs[i]) {
            WF_TRY(weft_tensor_move(given, save->specs[i], NULL, stream, &save->tensors[i]));
            weft_tensor_release(&given);
        }
        count_replicas(save, save->specs[i], &replicas, &replica);
        WF_TRY(wf_pieces_add(&save->pieces, save->specs[i], i, replicas, replica));
        if (save->pieces.count > before)
            WF_TRY(take_elements(save->tensors[i], stream, &save->pieces.shards[i]));
    }
    wf_store_set_bytes(&save->call, save->pieces.bytes);
    return weft_context_wait(save->call.context, stream, WEFT_FOREVER);
}

static weft_status copy_piece(void *state, const struct wf_piece_view *view, struct wf_stage *stage)
{
    const struct wf_save *save = state;
    const char *source = view->memory;

    if (stage->memory != NULL) {
        WF_TRY(wf_stage_copy(stage, view->memory, stage->memory, view->piece->bytes));
        source = stage->memory;
    }
    memcpy(save->copy + view->piece->at, source, (size_t)view->piece->bytes);
    return WEFT_OK;
}

static void drop_tensors(struct wf_save *save)
{
    for (size_t i = 0; save->tensors != NULL && i < save->count; i++)
        weft_tensor_release(&save->tensors[i]);
    wf_free((void *)save->tensors);
    save->tensors = NULL;
}

static weft_status copy_tensors(struct wf_save *save)
{
    save->copy = wf_alloc((size_t)save->pieces.bytes);
    if (save->copy == NULL) return wf_fail_memory((size_t)save->pieces.bytes);
    WF_TRY(wf_pieces_run(&save->pieces, true, copy_piece, save));
    drop_tensors(save);
    return WEFT_OK;
}

static weft_status open_and_list(struct wf_save *save, bool copies)
{
    weft_status status = list_pieces(save); /* collective for partial tensors */

    if (status == WEFT_OK && weft_rank(save->call.context) != 0)
        status = open_files(save, WF_OUTPUT_JOIN);
    return status == WEFT_OK && copies ? copy_tensors(save) : status;
}

weft_status wf_save_prepare(struct wf_save *save, const char *path, weft_tensor *const *tensors,
                            size_t count, const weft_save_options *options, bool copies)
{
    struct wf_store_digest digest = {0};
    weft_status status = check(save, path, tensors, count, options);
    uint64_t all;

    if (status == WEFT_OK) digest = digest_of(save);
    WF_TRY(wf_store_compare(&save->call, "save", status, &digest,
                            &(struct wf_store_words){path, count, name_of, save}));
    status = open_and_list(save, copies);
    return wf_store_meet(&save->call, status, 0, &all);
}

/* ---- writing ---- */

static weft_status write_piece(void *state, const struct wf_piece_view *view,
                               struct wf_stage *stage)
{
    struct wf_save *save = state;
    const char *source = save->copy != NULL ? save->copy + view->piece->at : view->memory;

    if (stage->memory != NULL) {
        WF_TRY(wf_stage_copy(stage, view->memory, stage->memory, view->piece->bytes));
        source = stage->memory;
    }
    WF_TRY(wf_writer_write(save->writer, view->shard->index, &view->part, source));
    atomic_fetch_add(&save->written, view->piece->bytes);
    return WEFT_OK;
}

/* All bytes of all tensors were written, by all ranks together. */
static weft_status commit(struct wf_save *save)
{
    for (size_t i = 0; i < save->count; i++)
        atomic_store(&save->writer->tensors[i].written, save->writer->tensors[i].bytes);
    return weft_checkpoint_writer_commit(save->writer);
}

static void goes_on(void *self)
{
    wf_store_goes_on(self);
}

weft_status wf_save_finish(struct wf_save *save)
{
    weft_status status = wf_pieces_run(&save->pieces, save->copy == NULL, write_piece, save);
    uint64_t all = 0;

    if (status == WEFT_OK) status = wf_outputs_flush(&save->writer->output, goes_on, &save->call);
    WF_TRY(wf_store_meet(&save->call, status, atomic_load(&save->written), &all));
    if (all != save->total)
        return wf_fail(WEFT_ERR_INTERNAL,
                       "%s: the tensors have %" PRIu64 " bytes, but %" PRIu64 " were written",
                       save->call.function, save->total, all);
    if (weft_rank(save->call.context) == 0) status = commit(save);
    return wf_store_meet(&save->call, status, 0, &all);
}

void wf_save_end(struct wf_save *save)
{
    drop_tensors(save);
    weft_checkpoint_writer_release(&save->writer);
    for (size_t i = 0; save->specs != NULL && i < save->count; i++)
        weft_spec_release(&save->specs[i]);
    wf_pieces_free(&save->pieces);
    wf_free((void *)save->specs);
    wf_free(save->entries);
    wf_arena_free(&save->arena);
    wf_free(save->copy);
    wf_free(save->path);
    wf_store_free(&save->call);
}

weft_status weft_save(weft_context *context, const char *path, size_t count,
                      weft_tensor *const *tensors, const weft_save_options *options)
{
    struct wf_save save = {0};
    weft_status status;

    WF_TRY(wf_store_check(context, "weft_save"));
    wf_store_begin(&save.call, context, WEFT_RECORD_SAVE, "weft_save");
    status = wf_save_prepare(&save, path, tensors, count, options, false);
    if (status == WEFT_OK) status = wf_save_finish(&save);
    wf_save_end(&save);
    return wf_store_end(&save.call, status);
}
