/* writer.c - a checkpoint that is being written: its tensors, and the public functions. */
#include "writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_FILE_BYTES UINT64_C(5000000000)

/* ---- tensors ---- */

static weft_status make_spec(weft_checkpoint_writer *writer, const weft_checkpoint_entry *entry,
                             struct wf_out_tensor *tensor)
{
    if (entry->placements == NULL)
        return wf_fail(WEFT_ERR_INVALID, "placements is NULL; a file per rank needs placements");
    return wf_file_spec(writer->mesh, tensor->dtype, tensor->dims, tensor->shape, entry->placements,
                        &tensor->spec);
}

static weft_status take_entry(weft_checkpoint_writer *writer, const weft_checkpoint_entry *entry,
                              struct wf_out_tensor *tensor)
{
    size_t places = writer->mesh != NULL ? (size_t)weft_mesh_size(writer->mesh) : 1;
    int dtype;

    if (entry->dtype == NULL) return wf_fail(WEFT_ERR_INVALID, "dtype is NULL");
    dtype = wf_file_dtype_find(entry->dtype);
    if (dtype < 0 || (wf_file_dtype((size_t)dtype)->foreign && writer->format != WEFT_FILE_NPY))
        return wf_fail(WEFT_ERR_INVALID,
                       "\"%.40s\" is not a dtype of %s files; F32, BF16 and I64 are some",
                       entry->dtype, writer->format == WEFT_FILE_NPY ? ".npy" : "safetensors");
    if (entry->dims < 0 || entry->dims > WEFT_MAX_DIMS || (entry->dims > 0 && entry->shape == NULL))
        return wf_fail(WEFT_ERR_INVALID,
                       "it has %d dimensions, or no shape; from 0 to %d are valid", entry->dims,
                       WEFT_MAX_DIMS);
    for (int32_t d = 0; d < entry->dims; d++)
        if (entry->shape[d] < 0)
            return wf_fail(WEFT_ERR_INVALID, "shape[%d] is %lld; it must not be negative", d,
                           (long long)entry->shape[d]);
    tensor->dtype = (uint8_t)dtype;
    tensor->dims = (int8_t)entry->dims;
    if (!wf_file_bytes((size_t)dtype, entry->dims, entry->shape, &tensor->bytes))
        return wf_fail(WEFT_ERR_INVALID,
                       "its elements have 2^62 bits or more, or the last one ends inside a byte");
    tensor->shape = wf_arena_sizes(&writer->arena, entry->dims, entry->shape);
    tensor->at = wf_arena_alloc(&writer->arena, places * sizeof *tensor->at);
    if (tensor->shape == NULL || tensor->at == NULL) return wf_fail_memory(places * 8);
    for (size_t i = 0; i < places; i++)
        tensor->at[i] = UINT64_MAX;
    return writer->mesh != NULL ? make_spec(writer, entry, tensor) : WEFT_OK;
}

static int compare_tensors(const void *left, const void *right)
{
    const struct wf_out_tensor *const *a = left, *const *b = right;

    return strcmp((*a)->name, (*b)->name);
}

static weft_status take_entries(weft_checkpoint_writer *writer,
                                const weft_checkpoint_entry *entries, size_t count)
{
    writer->tensors = wf_calloc(count, sizeof *writer->tensors);
    writer->sorted = wf_calloc(count, sizeof *writer->sorted);
    if (writer->tensors == NULL || writer->sorted == NULL)
        return wf_fail_memory(count * sizeof *writer->tensors);
    writer->count = count;
    for (size_t i = 0; i < count; i++) {
        struct wf_out_tensor *tensor = &writer->tensors[i];
        weft_status status;
        if (entries[i].name == NULL)
            return wf_fail(WEFT_ERR_INVALID, "the name of entry %zu is NULL", i);
        tensor->name = wf_arena_text(&writer->arena, entries[i].name, strlen(entries[i].name));
        if (tensor->name == NULL) return wf_fail_memory(strlen(entries[i].name) + 1);
        if (strcmp(tensor->name, "__metadata__") == 0)
            return wf_fail(WEFT_ERR_INVALID, "no tensor can have the name __metadata__");
        status = take_entry(writer, &entries[i], tensor);
        if (status != WEFT_OK) return wf_fail_context(status, "tensor \"%.200s\"", tensor->name);
        writer->sorted[i] = tensor;
    }
    if (count > 0) qsort(writer->sorted, count, sizeof *writer->sorted, compare_tensors);
    for (size_t i = 1; i < count; i++)
        if (strcmp(writer->sorted[i - 1]->name, writer->sorted[i]->name) == 0)
            return wf_fail(WEFT_ERR_INVALID, "two tensors have the name \"%.200s\"",
                           writer->sorted[i]->name);
    return WEFT_OK;
}

/* ---- metadata and format ---- */

static int compare_pairs(const void *left, const void *right)
{
    return strcmp(((const struct wf_pair *)left)->key, ((const struct wf_pair *)right)->key);
}

static weft_status take_pairs(weft_checkpoint_writer *writer,
                              const weft_checkpoint_writer_options *options)
{
    static const weft_checkpoint_pair torch = {"format", "pt"};
    const weft_checkpoint_pair *pairs = options->metadata != NULL ? options->metadata : &torch;
    size_t count = options->metadata != NULL ? options->metadata_count : 1;

    writer->pairs = wf_arena_alloc(&writer->arena, count * sizeof *writer->pairs);
    if (writer->pairs == NULL) return wf_fail_memory(count * sizeof *writer->pairs);
    for (size_t i = 0; i < count; i++) {
        struct wf_pair *pair = &writer->pairs[i];
        if (pairs[i].key == NULL || pairs[i].value == NULL)
            return wf_fail(WEFT_ERR_INVALID, "the key or value of pair %zu is NULL", i);
        pair->key = wf_arena_text(&writer->arena, pairs[i].key, strlen(pairs[i].key));
        pair->value = wf_arena_text(&writer->arena, pairs[i].value, strlen(pairs[i].value));
        if (pair->key == NULL || pair->value == NULL) return wf_fail_memory(sizeof *pair);
    }
    writer->pair_count = count;
    if (count > 0) qsort(writer->pairs, count, sizeof *writer->pairs, compare_pairs);
    for (size_t i = 1; i < count; i++)
        if (strcmp(writer->pairs[i - 1].key, writer->pairs[i].key) == 0)
            return wf_fail(WEFT_ERR_INVALID, "two pairs of metadata have the key \"%.200s\"",
                           writer->pairs[i].key);
    return WEFT_OK;
}

weft_status wf_writer_choose_format(const char *path, uint32_t given, bool has_mesh, uint32_t *out)
{
    const char *name;

    *out = given;
    if (given == WEFT_FILE_ANY)
        *out = has_mesh                             ? WEFT_FILE_RANKS
               : wf_ends_with(path, ".safetensors") ? WEFT_FILE_SAFETENSORS
               : wf_ends_with(path, ".npy")         ? WEFT_FILE_NPY
                                                    : WEFT_FILE_HUGGING_FACE;
    name = weft_file_format_name((enum weft_file_format) * out);
    if (*out != WEFT_FILE_SAFETENSORS && *out != WEFT_FILE_HUGGING_FACE &&
        *out != WEFT_FILE_RANKS && *out != WEFT_FILE_NPY)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft does not write format %u (%s); it writes safetensors, huggingface, ranks and npy",
            *out, name != NULL ? name : "unknown");
    return WEFT_OK;
}

static weft_status choose_format(weft_checkpoint_writer *writer, const char *path,
                                 const weft_checkpoint_writer_options *options)
{
    const char *name;

    WF_TRY(wf_writer_choose_format(path, options->format, options->mesh != NULL, &writer->format));
    name = weft_file_format_name((enum weft_file_format)writer->format);
    if (writer->format == WEFT_FILE_RANKS && options->mesh == NULL)
        return wf_fail(WEFT_ERR_INVALID, "format is ranks, files per rank, which needs a `mesh`");
    if (writer->format != WEFT_FILE_RANKS && options->mesh != NULL)
        return wf_fail(
            WEFT_ERR_INVALID,
            "`mesh` is set, but format is %s; only format ranks, files per rank, has one", name);
    if (writer->format == WEFT_FILE_RANKS &&
        (wf_ends_with(path, ".safetensors") || wf_ends_with(path, ".npy")))
        return wf_fail(WEFT_ERR_INVALID,
                       "a file per rank needs a folder, but %s is the name of a file", path);
    if (options->mesh != NULL)
        WF_TRY(
            wf_require_kind(options->mesh, WF_KIND_MESH, "weft_checkpoint_writer_options: mesh"));
    writer->mesh = weft_mesh_retain(options->mesh);
    writer->file_bytes = options->file_bytes != 0 ? options->file_bytes : DEFAULT_FILE_BYTES;
    return WEFT_OK;
}

/* ---- the public functions ---- */

static weft_status plan_files(weft_checkpoint_writer *writer)
{
    switch (writer->format) {
    case WEFT_FILE_SAFETENSORS:
        return wf_writer_plan_single(writer);
    case WEFT_FILE_HUGGING_FACE:
        return wf_writer_plan_folder(writer);
    case WEFT_FILE_RANKS:
        return wf_writer_plan_ranks(writer);
    default:
        return wf_writer_plan_npy(writer);
    }
}

static weft_status begin_files(weft_checkpoint_writer *writer, const char *path, bool replace,
                               enum wf_outputs_mode mode)
{
    bool is_folder = writer->format == WEFT_FILE_HUGGING_FACE || writer->format == WEFT_FILE_RANKS;
    size_t files = writer->format == WEFT_FILE_HUGGING_FACE ? wf_writer_count_files(writer)
                   : writer->format == WEFT_FILE_RANKS      ? (size_t)weft_mesh_size(writer->mesh)
                                                            : 1;

    WF_TRY(wf_outputs_begin(&writer->output, path, is_folder, replace, mode, files));
    WF_TRY(plan_files(writer));
    return wf_outputs_allocate(&writer->output);
}

weft_status wf_writer_create(const char *path, size_t count, const weft_checkpoint_entry *entries,
                             const weft_checkpoint_writer_options *options,
                             enum wf_outputs_mode mode, weft_checkpoint_writer **out)
{
    weft_checkpoint_writer_options given = {.struct_size = sizeof given};
    weft_checkpoint_writer *writer;
    weft_status status;

    WF_TRY(wf_require(path, "weft_checkpoint_writer_create: path"));
    if (count > 0) WF_TRY(wf_require(entries, "weft_checkpoint_writer_create: entries"));
    WF_TRY(wf_require(out, "weft_checkpoint_writer_create: out"));
    WF_TRY(wf_options_read("weft_checkpoint_writer_options", options, &given, sizeof given));
    writer = wf_calloc(1, sizeof *writer);
    if (writer == NULL) return wf_fail_memory(sizeof *writer);
    writer->made = WF_OF_KIND(WF_KIND_CHECKPOINT_WRITER);
    writer->output.lock = -1;
    status = choose_format(writer, path, &given);
    if (status == WEFT_OK) status = take_pairs(writer, &given);
    if (status == WEFT_OK) status = take_entries(writer, entries, count);
    if (status == WEFT_OK) status = begin_files(writer, path, given.replace, mode);
    if (status != WEFT_OK) {
        weft_checkpoint_writer_release(&writer);
        return status;
    }
    *out = writer;
    return WEFT_OK;
}

weft_status weft_checkpoint_writer_create(const char *path, size_t count,
                                          const weft_checkpoint_entry *entries, size_t entry_size,
                                          const weft_checkpoint_writer_options *options,
                                          weft_checkpoint_writer **out)
{
    static const char what[] = "weft_checkpoint_writer_create";
    weft_status status = WEFT_OK;
    void *copy = NULL;

    if (count > 0 && entries != NULL)
        status = wf_items_read("weft_checkpoint_entry", count, entries, entry_size, sizeof *entries,
                               &copy);
    if (status == WEFT_OK)
        status = wf_writer_create(path, count, copy != NULL ? copy : entries, options,
                                  WF_OUTPUT_NEW, out);
    wf_free(copy);
    return wf_fail_named(status, what);
}

struct writing {
    weft_checkpoint_writer *writer;
    const struct wf_out_tensor *tensor;
    size_t file;
    uint64_t at;
    const char *source;
    char *stage;
};

static weft_status write_block(void *state, const struct wf_block *block)
{
    struct writing *w = state;
    struct wf_output_file *file = &w->writer->output.files[w->file];
    struct wf_byte_block bytes;

    WF_TRY(wf_block_to_bytes(block, wf_file_dtype(w->tensor->dtype)->bits, &bytes));
    WF_TRY(wf_block_write(file->fd, file->name, w->at, &bytes, w->source, w->stage));
    atomic_store(&file->written, true); /* after the bytes: a flush in between does not count */
    return WEFT_OK;
}

/* Write PART to all files that have a part of it. */
static weft_status write_part(struct writing *w, const struct wf_part *part)
{
    const weft_mesh *mesh = w->writer->mesh;
    int32_t places = mesh != NULL ? weft_mesh_size(mesh) : 1;
    struct wf_part held;

    for (int32_t p = 0; p < places; p++) {
        w->at = w->tensor->at[p];
        w->file = mesh != NULL ? (size_t)p : w->tensor->file;
        if (w->at == UINT64_MAX) continue;
        if (mesh != NULL)
            wf_part_of_shard(&held, w->tensor->spec, weft_mesh_rank_at(mesh, p));
        else
            wf_part_of_box(&held, w->tensor->dims, NULL, w->tensor->shape);
        WF_TRY(wf_part_overlaps(&held, part, write_block, w));
    }
    return WEFT_OK;
}

weft_status wf_writer_write(weft_checkpoint_writer *writer, size_t index,
                            const struct wf_part *part, const void *source)
{
    struct wf_out_tensor *tensor = &writer->tensors[index];
    struct writing w = {.writer = writer, .tensor = tensor, .source = source};
    weft_status status;
    int64_t bytes = 0;

    w.stage = wf_alloc(WF_STAGE);
    if (w.stage == NULL) return wf_fail_memory(WF_STAGE);
    status = write_part(&w, part);
    wf_free(w.stage);
    if (status != WEFT_OK) return wf_fail_context(status, "tensor \"%.200s\"", tensor->name);
    if (wf_file_bytes(tensor->dtype, tensor->dims, part->shape, &bytes))
        atomic_fetch_add_explicit(&tensor->written, bytes, memory_order_relaxed);
    return WEFT_OK;
}

int32_t weft_checkpoint_writer_dims(const weft_checkpoint_writer *writer, size_t index)
{
    if (wf_require_kind(writer, WF_KIND_CHECKPOINT_WRITER, "weft_checkpoint_writer_dims: writer") !=
            WEFT_OK ||
        index >= writer->count)
        return 0;
    return writer->tensors[index].dims;
}

uint64_t weft_checkpoint_writer_box_bytes(const weft_checkpoint_writer *writer, size_t index,
                                          const int64_t *offset, const int64_t *sizes)
{
    static const char function[] = "weft_checkpoint_writer_box_bytes";
    const struct wf_out_tensor *tensor;

    if (wf_require_kind(writer, WF_KIND_CHECKPOINT_WRITER,
                        "weft_checkpoint_writer_box_bytes: writer") != WEFT_OK ||
        index >= writer->count)
        return 0;
    tensor = &writer->tensors[index];
    return wf_box_bytes(function, tensor->name, wf_file_dtype(tensor->dtype)->bits, tensor->dims,
                        tensor->shape, offset, sizes);
}

weft_status weft_checkpoint_writer_write(weft_checkpoint_writer *writer, size_t index,
                                         const int64_t *offset, const int64_t *sizes,
                                         const void *source)
{
    static const char function[] = "weft_checkpoint_writer_write";
    int64_t start[WEFT_MAX_DIMS], extent[WEFT_MAX_DIMS];
    const struct wf_out_tensor *tensor;
    struct wf_part part;

    WF_TRY(
        wf_require_kind(writer, WF_KIND_CHECKPOINT_WRITER, "weft_checkpoint_writer_write: writer"));
    WF_TRY(wf_require(source, "weft_checkpoint_writer_write: source"));
    if (index >= writer->count)
        return wf_fail(WEFT_ERR_INVALID, "%s: index is %zu, but the checkpoint has %zu tensor%s",
                       function, index, writer->count, writer->count == 1 ? "" : "s");
    if (writer->output.committed)
        return wf_fail(WEFT_ERR_INVALID, "%s: the checkpoint was committed before", function);
    tensor = &writer->tensors[index];
    WF_TRY(wf_box_check(function, tensor->name, tensor->dims, tensor->shape, offset, sizes, start,
                        extent));
    wf_part_of_box(&part, tensor->dims, start, extent);
    return wf_fail_named(wf_writer_write(writer, index, &part, source), function);
}

static weft_status check_written(weft_checkpoint_writer *writer)
{
    for (size_t i = 0; i < writer->count; i++) {
        struct wf_out_tensor *tensor = &writer->tensors[i];
        int64_t written = atomic_load_explicit(&tensor->written, memory_order_relaxed);
        if (written < tensor->bytes)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_checkpoint_writer_commit: tensor \"%.200s\" has %" PRId64
                           " bytes, of which %" PRId64 " were written",
                           tensor->name, tensor->bytes, written);
    }
    return WEFT_OK;
}

static weft_status write_headers(weft_checkpoint_writer *writer)
{
    for (size_t i = 0; i < writer->output.count; i++) {
        const struct wf_text *text = &writer->headers[i];
        bool is_index = text->length == 0;
        if (is_index) text = &writer->index;
        WF_TRY(wf_outputs_write(&writer->output, i, 0, text->data, text->length));
    }
    return WEFT_OK;
}

weft_status weft_checkpoint_writer_commit(weft_checkpoint_writer *writer)
{
    weft_status status;

    WF_TRY(wf_require_kind(writer, WF_KIND_CHECKPOINT_WRITER,
                           "weft_checkpoint_writer_commit: writer"));
    if (writer->output.committed)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_checkpoint_writer_commit: the checkpoint was committed before");
    WF_TRY(check_written(writer));
    status = write_headers(writer);
    if (status == WEFT_OK) status = wf_outputs_commit(&writer->output);
    return wf_fail_named(status, "weft_checkpoint_writer_commit");
}

void weft_checkpoint_writer_release(weft_checkpoint_writer **writer)
{
    weft_checkpoint_writer *object =
        wf_take(writer, WF_KIND_CHECKPOINT_WRITER, "weft_checkpoint_writer_release");

    if (object == NULL) return;
    for (size_t i = 0; i < object->output.count && object->headers != NULL; i++)
        wf_text_free(&object->headers[i]);
    for (size_t i = 0; i < object->count; i++)
        weft_spec_release(&object->tensors[i].spec);
    if (object->output.path != NULL) wf_outputs_end(&object->output);
    wf_text_free(&object->index);
    wf_free(object->headers);
    wf_free(object->tensors);
    wf_free(object->sorted);
    weft_mesh_release(&object->mesh);
    wf_arena_free(&object->arena);
    object->made = wf_released(WF_KIND_CHECKPOINT_WRITER);
    wf_free(object);
}
