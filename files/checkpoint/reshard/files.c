/* files.c - how many bytes a plan reads from each file and writes to each file. */
#include "checkpoint/reshard/reshard.h"
#include "checkpoint/rules/view.h"
#include "checkpoint/writer.h"

#include <string.h>

struct counting {
    const weft_checkpoint *from;
    const struct wf_tensor *tensor;
    uint64_t *bits; /* per file, or of all files */
    bool per_file;
    uint32_t file;
};

static weft_status add_block(void *state, const struct wf_block *block)
{
    struct counting *c = state;
    uint64_t bits = wf_file_dtype(c->tensor->dtype)->bits;

    for (int32_t d = 0; d < block->dims; d++)
        bits *= (uint64_t)block->shape[d];
    c->bits[c->file] += bits;
    return WEFT_OK;
}

static weft_status count_part(struct counting *c, const struct wf_part *part);

/* A box of a tensor of the base. */
static weft_status count_leaf(void *state, const struct wf_view *leaf,
                              const struct wf_view_box *box)
{
    const struct counting *c = state;
    struct counting below = {.from = c->from->base, .bits = c->bits, .per_file = c->per_file};
    struct wf_part part;

    if (leaf->kind != WF_VIEW_SOURCE) return WEFT_OK; /* zeros */
    below.tensor = &below.from->tensors[leaf->source];
    wf_part_of_box(&part, leaf->dims, box->start, box->size);
    return count_part(&below, &part);
}

/* PART is a box of the tensor. */
static weft_status count_part(struct counting *c, const struct wf_part *part)
{
    struct wf_view_box box = {.at = 0};

    if (c->tensor->view == NULL && !c->per_file) {
        uint64_t bits = wf_file_dtype(c->tensor->dtype)->bits;
        for (int32_t d = 0; d < part->dims; d++)
            bits *= (uint64_t)part->shape[d];
        *c->bits += bits;
        return WEFT_OK;
    }
    if (c->tensor->view == NULL) {
        for (size_t i = 0; i < c->tensor->count; i++) {
            const struct wf_piece *piece = &c->from->pieces[c->tensor->first + i];
            struct wf_part held;
            wf_part_of_piece(c->tensor, piece, &held);
            c->file = piece->file;
            WF_TRY(wf_part_overlaps(&held, part, add_block, c));
        }
        return WEFT_OK;
    }
    memcpy(box.start, part->start, (size_t)part->dims * sizeof *box.start);
    memcpy(box.size, part->shape, (size_t)part->dims * sizeof *box.size);
    memcpy(box.stride, part->strides, (size_t)part->dims * sizeof *box.stride);
    return wf_view_visit(c->tensor->view, &box, count_leaf, c);
}

static weft_status count_tensor(struct counting *c)
{
    struct wf_part whole;

    if (c->tensor->bytes == 0) return WEFT_OK;
    wf_part_of_box(&whole, c->tensor->dims, NULL, c->tensor->shape);
    return count_part(c, &whole);
}

weft_status wf_reshard_count_read(const weft_checkpoint *from, const struct wf_tensor *tensor,
                                  uint64_t *bits)
{
    struct counting c = {.from = from, .tensor = tensor, .bits = bits};

    return count_tensor(&c);
}

static weft_status count_sources(const weft_reshard *reshard, uint64_t *bits)
{
    for (size_t i = 0; i < reshard->count; i++) {
        struct counting c = {.from = reshard->from,
                             .tensor = &reshard->from->tensors[i],
                             .bits = bits,
                             .per_file = true};
        WF_TRY(count_tensor(&c));
    }
    return WEFT_OK;
}

/* ---- the list ---- */

static weft_status add_file(weft_reshard *reshard, const char *folder, const char *name,
                            uint64_t read, uint64_t written)
{
    struct wf_reshard_file *file = &reshard->files[reshard->file_count];
    struct wf_text text = {0};

    if (folder != NULL) wf_text_add(&text, "%s/", folder);
    wf_text_add(&text, "%s", name);
    WF_TRY(wf_text_take(&text, &file->path));
    file->read = read;
    file->written = written;
    reshard->file_count++;
    return WEFT_OK;
}

static weft_status add_files(weft_reshard *reshard, const weft_checkpoint_writer *writer,
                             const struct wf_inputs *inputs, const uint64_t *bits)
{
    size_t count = inputs->count + writer->output.count;

    reshard->files = wf_calloc(count, sizeof *reshard->files);
    if (reshard->files == NULL) return wf_fail_memory(count * sizeof *reshard->files);
    for (size_t i = 0; i < inputs->count; i++)
        if (bits[i] > 0)
            WF_TRY(add_file(reshard, inputs->path, inputs->list[i]->name, bits[i] / 8, 0));
    for (size_t i = 0; i < writer->output.count; i++)
        WF_TRY(add_file(reshard, writer->output.is_folder ? reshard->path : NULL,
                        writer->output.files[i].name, 0, writer->output.files[i].bytes));
    return WEFT_OK;
}

static weft_status list_files(weft_reshard *reshard)
{
    const weft_checkpoint *files = reshard->from;
    weft_checkpoint_writer *writer = NULL;
    weft_status status;
    uint64_t *bits;

    while (files->base != NULL)
        files = files->base;
    bits = wf_calloc(files->inputs.count, sizeof *bits);
    if (bits == NULL) return wf_fail_memory(files->inputs.count * sizeof *bits);
    status = count_sources(reshard, bits);
    if (status == WEFT_OK) status = wf_reshard_writer(reshard, WF_OUTPUT_NONE, &writer);
    if (status == WEFT_OK) status = add_files(reshard, writer, &files->inputs, bits);
    weft_checkpoint_writer_release(&writer);
    wf_free(bits);
    if (status != WEFT_OK) wf_reshard_drop_files(reshard);
    return status;
}

void wf_reshard_drop_files(weft_reshard *reshard)
{
    for (size_t i = 0; i < reshard->file_count; i++)
        wf_free(reshard->files[i].path);
    wf_free(reshard->files);
    reshard->files = NULL;
    reshard->file_count = 0;
}

weft_status weft_reshard_file_get(weft_reshard *reshard, size_t index, weft_reshard_file_info *out)
{
    static const char function[] = "weft_reshard_file_get";
    weft_reshard_file_info info = {.struct_size = sizeof info};

    WF_TRY(wf_require_kind(reshard, WF_KIND_RESHARD, "weft_reshard_file_get: reshard"));
    WF_TRY(wf_require(out, "weft_reshard_file_get: out"));
    if (reshard->files == NULL) WF_TRY(wf_fail_named(list_files(reshard), function));
    if (index >= reshard->file_count)
        return wf_fail(WEFT_ERR_NOT_FOUND, "%s: index is %zu, but there are %zu files", function,
                       index, reshard->file_count);
    info.path = reshard->files[index].path;
    info.read = reshard->files[index].read;
    info.written = reshard->files[index].written;
    return wf_info_write("weft_reshard_file_info", &info, sizeof info, out);
}
