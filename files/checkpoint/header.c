/* header.c - the header of one safetensors file as pieces of a checkpoint. */
#include "file.h"

#include <stdlib.h>
#include <string.h>

struct reading {
    weft_checkpoint *checkpoint;
    struct wf_header *header;
    bool first;
};

static weft_status add_tensor(void *state, const struct wf_piece *piece)
{
    struct reading *r = state;
    struct wf_piece copy = *piece;

    copy.file = r->header->file;
    return wf_checkpoint_add(r->checkpoint, &copy);
}

static weft_status keep(char **slot, const char *value)
{
    wf_free(*slot);
    *slot = wf_strdup(value);
    return *slot != NULL ? WEFT_OK : wf_fail_memory(strlen(value) + 1);
}

static weft_status add_pair(void *state, const char *key, const char *value)
{
    struct reading *r = state;

    if (strcmp(key, "DCP_SHARDING_INFO") == 0) return keep(&r->header->sharding, value);
    if (strcmp(key, "weft.mesh") == 0) return keep(&r->header->mesh, value);
    if (strcmp(key, "weft.rank") == 0) return keep(&r->header->rank, value);
    if (strcmp(key, "weft.specs") == 0) return keep(&r->header->specs, value);
    if (!r->first || strcmp(key, "DCP_VERSION") == 0) return WEFT_OK;
    return wf_checkpoint_add_pair(r->checkpoint, key, value);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const struct wf_piece *)left)->name, ((const struct wf_piece *)right)->name);
}

weft_status wf_header_read(weft_checkpoint *checkpoint, const char *name, struct wf_header *out)
{
    struct reading r = {checkpoint, out, checkpoint->inputs.count == 0};
    struct wf_header_sink sink = {&r, add_tensor, add_pair};

    *out = (struct wf_header){.first = checkpoint->piece_count};
    WF_TRY(wf_inputs_add(&checkpoint->inputs, name, &out->file));
    WF_TRY(wf_safetensors_read(&checkpoint->inputs, out->file, &sink));
    out->count = checkpoint->piece_count - out->first;
    if (out->count > 0)
        qsort(&checkpoint->pieces[out->first], out->count, sizeof *checkpoint->pieces,
              compare_names);
    return WEFT_OK;
}

void wf_header_free(struct wf_header *header)
{
    wf_free(header->sharding);
    wf_free(header->mesh);
    wf_free(header->rank);
    wf_free(header->specs);
    *header = (struct wf_header){0};
}

struct wf_piece *wf_header_find(weft_checkpoint *checkpoint, const struct wf_header *header,
                                const char *name)
{
    struct wf_piece key = {.name = name};

    if (header->count == 0) return NULL;
    return bsearch(&key, &checkpoint->pieces[header->first], header->count, sizeof key,
                   compare_names);
}

/* The file of one of several ranks has parts of tensors, which must not pass for whole ones. */
static weft_status check_alone(const weft_checkpoint *checkpoint, const struct wf_header *header)
{
    const char *folder = checkpoint->inputs.path;
    weft_mesh *mesh = NULL;
    int32_t ranks;

    if (header->mesh == NULL) return WEFT_OK;
    WF_TRY(weft_mesh_parse(header->mesh, &mesh));
    ranks = weft_mesh_size(mesh);
    weft_mesh_release(&mesh);
    if (ranks == 1) return WEFT_OK;
    return wf_fail(
        WEFT_ERR_INVALID,
        "%s/%s is the file of one of %d ranks and has parts of tensors; open its folder, "
        "%s",
        folder, checkpoint->inputs.list[header->file]->name, ranks, folder);
}

weft_status wf_open_safetensors(weft_checkpoint *checkpoint, const char *name)
{
    struct wf_header header;
    weft_status status = wf_header_read(checkpoint, name, &header);

    if (status == WEFT_OK) status = check_alone(checkpoint, &header);
    if (status == WEFT_OK && header.sharding != NULL)
        status = wf_header_read_offsets(checkpoint, &header);
    wf_header_free(&header);
    checkpoint->format = WEFT_FILE_SAFETENSORS;
    return status == WEFT_OK ? wf_checkpoint_settle(checkpoint) : status;
}
