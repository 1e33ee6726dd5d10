/* indexed.c - a Hugging Face folder: safetensors files, and an index that names the file of each
 * tensor.  The index decides: a tensor that two files have is taken from the file that the index
 * names, and tensors that it does not list are left out (unlisted.c). */
#include "file.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 20 }; /* bytes of a name */

struct listed {
    const char *tensor, *file;
    bool found;
};

struct index {
    const char *what; /* the name of the index */
    struct wf_arena arena;
    struct listed *list; /* sorted by tensor */
    size_t count, capacity;
    bool is_alone; /* the index was opened, not its folder: nobody asks for the rest */
};

static weft_status add_listed(struct index *index, const char *tensor, const char *file)
{
    WF_TRY(wf_grow(&index->list, sizeof *index->list, index->count, &index->capacity));
    index->list[index->count++] = (struct listed){tensor, file, false};
    return WEFT_OK;
}

static weft_status read_weights(struct wf_json_reader *json, struct index *index)
{
    enum wf_json_event event;
    const char *tensor, *file;

    WF_TRY(wf_json_expect(json, WF_EVENT_OBJECT));
    for (;;) {
        WF_TRY(wf_json_next(json, &event));
        if (event == WF_EVENT_OBJECT_END) return WEFT_OK;
        tensor = wf_arena_text(&index->arena, json->text.data, json->text.length);
        if (tensor == NULL) return wf_fail_memory(json->text.length + 1);
        WF_TRY(wf_json_expect(json, WF_EVENT_STRING));
        WF_TRY(wf_file_name_check(json->text.data, index->what));
        file = index->count > 0 ? index->list[index->count - 1].file : "";
        if (strcmp(file, json->text.data) != 0)
            file = wf_arena_text(&index->arena, json->text.data, json->text.length);
        if (file == NULL) return wf_fail_memory(json->text.length + 1);
        WF_TRY(add_listed(index, tensor, file));
    }
}

static weft_status read_index(struct wf_json_reader *json, struct index *index)
{
    enum wf_json_event event;
    bool has_map = false;

    WF_TRY(wf_json_expect(json, WF_EVENT_OBJECT));
    for (;;) {
        WF_TRY(wf_json_next(json, &event));
        if (event == WF_EVENT_OBJECT_END) break;
        if (strcmp(json->text.data, "weight_map") == 0) {
            has_map = true;
            WF_TRY(read_weights(json, index));
        } else {
            WF_TRY(wf_json_skip(json));
        }
    }
    WF_TRY(wf_json_expect(json, WF_EVENT_END));
    if (has_map) return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE, "%s has no \"weight_map\"", index->what);
}

static int compare_listed(const void *left, const void *right)
{
    return strcmp(((const struct listed *)left)->tensor, ((const struct listed *)right)->tensor);
}

static int compare_files(const void *left, const void *right)
{
    return strcmp(((const struct listed *)left)->file, ((const struct listed *)right)->file);
}

static struct listed *find_listed(const struct index *index, const char *tensor)
{
    struct listed key = {.tensor = tensor};

    if (index->count == 0) return NULL;
    return bsearch(&key, index->list, index->count, sizeof key, compare_listed);
}

/* Keep those pieces of the file NAME that the index takes from it. */
static weft_status keep_pieces(weft_checkpoint *checkpoint, const struct wf_header *header,
                               struct index *index, const char *name)
{
    size_t kept = header->first;

    for (size_t i = 0; i < header->count; i++) {
        struct wf_piece piece = checkpoint->pieces[header->first + i];
        struct listed *listed = find_listed(index, piece.name);
        if (listed == NULL && !index->is_alone)
            WF_TRY(wf_unlisted_add(checkpoint, &piece, checkpoint->inputs.list[piece.file]->name));
        if (listed == NULL || strcmp(listed->file, name) != 0) continue;
        listed->found = true;
        checkpoint->pieces[kept++] = piece;
    }
    checkpoint->piece_count = kept;
    return WEFT_OK;
}

static weft_status read_file(weft_checkpoint *checkpoint, struct index *index, const char *name)
{
    struct wf_header header = {0};
    weft_status status = wf_header_read(checkpoint, name, &header);

    if (status == WEFT_OK) status = keep_pieces(checkpoint, &header, index, name);
    wf_header_free(&header);
    return status;
}

/* Read each file of the index once. */
static weft_status read_files(weft_checkpoint *checkpoint, struct index *index)
{
    const char **files = wf_arena_alloc(&index->arena, index->count * sizeof *files);
    size_t count = 0;

    if (files == NULL) return wf_fail_memory(index->count * sizeof *files);
    if (index->count > 0) qsort(index->list, index->count, sizeof *index->list, compare_files);
    for (size_t i = 0; i < index->count; i++)
        if (count == 0 || strcmp(files[count - 1], index->list[i].file) != 0)
            files[count++] = index->list[i].file;
    if (index->count > 0) qsort(index->list, index->count, sizeof *index->list, compare_listed);
    for (size_t i = 0; i < count; i++)
        WF_TRY(read_file(checkpoint, index, files[i]));
    for (size_t i = 0; i < index->count; i++)
        if (!index->list[i].found)
            return wf_fail(WEFT_ERR_PARSE, "%s lists tensor \"%s\" in %s, which does not have it",
                           index->what, index->list[i].tensor, index->list[i].file);
    return WEFT_OK;
}

/* Read the index from a file of its own, since it has no elements. */
static weft_status read_document(weft_checkpoint *checkpoint, struct index *index)
{
    struct wf_inputs folder;
    struct wf_input_stream stream = {.inputs = &folder};
    struct wf_json_reader json;
    weft_status status;

    WF_TRY(wf_inputs_begin(&folder, checkpoint->inputs.path));
    status = wf_inputs_add(&folder, index->what, &stream.index);
    if (status == WEFT_OK) {
        stream.left = folder.list[0]->size;
        wf_json_reader_stream(&json, index->what, wf_input_fill, &stream);
        json.longest = LONGEST;
        status = read_index(&json, index);
        wf_json_reader_end(&json);
    }
    wf_inputs_end(&folder);
    return status;
}

static weft_status keep_name(weft_checkpoint *checkpoint, const char *name)
{
    checkpoint->index = wf_arena_text(&checkpoint->arena, name, strlen(name));
    return checkpoint->index != NULL ? WEFT_OK : wf_fail_memory(strlen(name) + 1);
}

static bool is_listed(const void *index, const char *tensor)
{
    return find_listed(index, tensor) != NULL;
}

weft_status wf_open_indexed(weft_checkpoint *checkpoint, const char *name, bool is_folder,
                            char **names, size_t count)
{
    struct index index = {.what = name, .is_alone = !is_folder};
    weft_status status;

    checkpoint->format = WEFT_FILE_HUGGING_FACE;
    status = read_document(checkpoint, &index);
    if (status == WEFT_OK) status = read_files(checkpoint, &index);
    if (status == WEFT_OK) status = keep_name(checkpoint, name);
    if (status == WEFT_OK && is_folder)
        status = wf_unlisted_find(checkpoint, names, count, is_listed, &index);
    wf_free(index.list);
    wf_arena_free(&index.arena);
    return status == WEFT_OK ? wf_checkpoint_settle(checkpoint) : status;
}
