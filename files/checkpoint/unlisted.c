/* unlisted.c - tensors in files of a folder whose index does not list them.  They are not tensors
 * of the checkpoint.  Whoever takes all its tensors is warned. */
#include "file.h"

#include <stdlib.h>
#include <string.h>

struct scan {
    weft_checkpoint *checkpoint;
    bool (*is_listed)(const void *state, const char *name);
    const void *state;
    const char *file;
};

weft_status wf_unlisted_add(weft_checkpoint *checkpoint, const struct wf_piece *piece,
                            const char *file)
{
    struct wf_unlisted *item;

    if (checkpoint->unlisted_count == checkpoint->unlisted_capacity) {
        size_t capacity =
            checkpoint->unlisted_capacity != 0 ? 2 * checkpoint->unlisted_capacity : 8;
        struct wf_unlisted *grown =
            wf_realloc(checkpoint->unlisted, capacity * sizeof *checkpoint->unlisted);
        if (grown == NULL) return wf_fail_memory(capacity * sizeof *grown);
        checkpoint->unlisted = grown;
        checkpoint->unlisted_capacity = capacity;
    }
    item = &checkpoint->unlisted[checkpoint->unlisted_count];
    *item = (struct wf_unlisted){
        .name = wf_arena_text(&checkpoint->arena, piece->name, strlen(piece->name)),
        .file = file,
        .shape = wf_arena_sizes(&checkpoint->arena, piece->dims, piece->shape),
        .dtype = piece->dtype,
        .dims = piece->dims};
    if (item->name == NULL || item->shape == NULL) return wf_fail_memory(strlen(piece->name) + 1);
    if (!wf_file_bytes(piece->dtype, piece->dims, piece->shape, &item->bytes)) item->bytes = 0;
    checkpoint->unlisted_count++;
    return WEFT_OK;
}

static weft_status add_tensor(void *state, const struct wf_piece *piece)
{
    struct scan *scan = state;

    if (scan->is_listed(scan->state, piece->name)) return WEFT_OK;
    return wf_unlisted_add(scan->checkpoint, piece, scan->file);
}

static weft_status ignore_pair(void *state, const char *key, const char *value)
{
    (void)state, (void)key, (void)value;
    return WEFT_OK;
}

/* A file beside the checkpoint that is not what its name says does not spoil the checkpoint. */
static weft_status scan_file(struct scan *scan, struct wf_inputs *folder, const char *name)
{
    struct wf_header_sink sink = {scan, add_tensor, ignore_pair};
    size_t before = scan->checkpoint->unlisted_count;
    weft_status status;
    uint32_t file = 0;

    scan->file = wf_arena_text(&scan->checkpoint->arena, name, strlen(name));
    if (scan->file == NULL) return wf_fail_memory(strlen(name) + 1);
    status = wf_inputs_add(folder, name, &file);
    if (status == WEFT_OK) status = wf_safetensors_read(folder, file, &sink);
    if (status == WEFT_OK || status == WEFT_ERR_NO_MEMORY) return status;
    wf_log(WF_LOG_WARNING, "a file that %s does not name cannot be read: %s",
           scan->checkpoint->index, weft_last_error());
    scan->checkpoint->unlisted_count = before;
    return WEFT_OK;
}

static int compare(const void *left, const void *right)
{
    const struct wf_unlisted *a = left, *b = right;
    int order = strcmp(a->file, b->file);

    return order != 0 ? order : strcmp(a->name, b->name);
}

weft_status wf_unlisted_find(weft_checkpoint *checkpoint, char **names, size_t count,
                             bool (*is_listed)(const void *state, const char *name),
                             const void *state)
{
    struct scan scan = {.checkpoint = checkpoint, .is_listed = is_listed, .state = state};
    weft_status status = WEFT_OK;
    struct wf_inputs folder; /* files of the checkpoint itself are counted */

    WF_TRY(wf_inputs_begin(&folder, checkpoint->inputs.path));
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        bool is_read = false;
        for (size_t k = 0; k < checkpoint->inputs.count && !is_read; k++)
            is_read = strcmp(checkpoint->inputs.list[k]->name, names[i]) == 0;
        if (!is_read) status = scan_file(&scan, &folder, names[i]);
    }
    wf_inputs_end(&folder);
    if (checkpoint->unlisted_count > 0)
        qsort(checkpoint->unlisted, checkpoint->unlisted_count, sizeof *checkpoint->unlisted,
              compare);
    return status;
}

const struct wf_unlisted *wf_unlisted_named(const weft_checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->unlisted_count; i++)
        if (strcmp(checkpoint->unlisted[i].name, name) == 0) return &checkpoint->unlisted[i];
    return NULL;
}

weft_status weft_checkpoint_unlisted_get(const weft_checkpoint *checkpoint, size_t index,
                                         weft_checkpoint_unlisted_info *out)
{
    static const char function[] = "weft_checkpoint_unlisted_get";
    weft_checkpoint_unlisted_info info = {.struct_size = sizeof info};
    const struct wf_unlisted *item;

    WF_TRY(wf_require_kind(checkpoint, WF_KIND_CHECKPOINT,
                           "weft_checkpoint_unlisted_get: checkpoint"));
    WF_TRY(wf_require(out, "weft_checkpoint_unlisted_get: out"));
    while (checkpoint->base != NULL)
        checkpoint = checkpoint->base;
    if (index >= checkpoint->unlisted_count)
        return wf_fail(WEFT_ERR_NOT_FOUND, "%s: index is %zu, but %zu tensor%s not listed",
                       function, index, checkpoint->unlisted_count,
                       checkpoint->unlisted_count == 1 ? " is" : "s are");
    item = &checkpoint->unlisted[index];
    info.name = item->name;
    info.file = item->file;
    info.dtype_name = wf_file_dtype(item->dtype)->name;
    info.dims = item->dims;
    info.shape = item->shape;
    info.bytes = (uint64_t)item->bytes;
    return wf_info_write("weft_checkpoint_unlisted_info", &info, sizeof info, out);
}
