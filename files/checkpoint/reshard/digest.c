/* digest.c - a number for all that decides what a run of resharding writes, and from what. */
#include "checkpoint/reshard/journal.h"
#include "checkpoint/rules/view.h"
#include "outside/texts.h"

#include <string.h>

static uint64_t add_text(uint64_t digest, const char *text)
{
    return text != NULL ? wf_hash(digest, text, strlen(text)) : wf_hash_mix(digest, 1);
}

static uint64_t add_sizes(uint64_t digest, int32_t dims, const int64_t *sizes)
{
    digest = wf_hash_mix(digest, (uint64_t)dims);
    for (int32_t d = 0; d < dims; d++)
        digest = wf_hash_mix(digest, (uint64_t)sizes[d]);
    return digest;
}

static uint64_t add_view(uint64_t digest, const struct wf_view *view)
{
    digest = wf_hash_mix(digest, view->kind);
    digest = wf_hash_mix(digest, view->dtype);
    digest = wf_hash_mix(digest, (uint64_t)view->dim);
    digest = wf_hash_mix(digest, (uint64_t)view->at);
    digest = wf_hash_mix(digest, view->source);
    digest = wf_hash(digest, view->order, sizeof view->order);
    digest = add_sizes(digest, view->dims, view->shape);
    for (size_t i = 0; i < view->count; i++)
        digest = add_view(digest, view->children[i]);
    return digest;
}

/* The files of the source: their names, sizes and times. */
static uint64_t add_files(uint64_t digest, const struct wf_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const struct wf_input *file = inputs->list[i];
        digest = add_text(digest, file->name);
        digest = wf_hash_mix(digest, file->size);
        digest = wf_hash_mix(digest, (uint64_t)file->inode);
        digest = wf_hash_mix(digest, (uint64_t)file->modified.tv_sec);
        digest = wf_hash_mix(digest, (uint64_t)file->modified.tv_nsec);
    }
    return digest;
}

static uint64_t add_checkpoint(uint64_t digest, const weft_checkpoint *from)
{
    for (size_t i = 0; i < from->tensor_count; i++) {
        const struct wf_tensor *tensor = &from->tensors[i];
        digest = add_text(digest, tensor->name);
        digest = wf_hash_mix(digest, tensor->dtype);
        digest = add_sizes(digest, tensor->dims, tensor->shape);
        if (tensor->view != NULL) digest = add_view(digest, tensor->view);
    }
    for (size_t i = 0; i < from->pair_count; i++)
        digest = add_text(add_text(digest, from->pairs[i].key), from->pairs[i].value);
    return from->base != NULL ? add_checkpoint(digest, from->base)
                              : add_files(digest, &from->inputs);
}

static weft_status add_mesh(uint64_t *digest, const weft_mesh *mesh)
{
    struct wf_text text = {0};
    weft_status status;

    wf_text_mesh(&text, mesh);
    status = wf_text_status(&text);
    if (status == WEFT_OK) *digest = add_text(*digest, text.data);
    wf_text_free(&text);
    return status;
}

weft_status wf_reshard_digest(const weft_reshard *reshard, uint64_t *out)
{
    const weft_reshard_options *options = &reshard->options;
    uint64_t digest = wf_hash_mix(options->format, options->file_bytes);

    digest = wf_hash_mix(digest, options->checksums);
    digest = wf_hash_mix(digest, reshard->buffer);
    digest = add_checkpoint(digest, reshard->from);
    for (size_t i = 0; i < reshard->count; i++)
        digest = add_text(digest, reshard->entries[i].placements);
    if (options->layout != NULL) WF_TRY(add_mesh(&digest, weft_layout_file_mesh(options->layout)));
    *out = digest;
    return WEFT_OK;
}
