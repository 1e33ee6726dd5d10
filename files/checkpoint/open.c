/* open.c - finds out the format of a checkpoint. */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- folders ---- */

struct listing {
    char **files; /* names that end in .safetensors */
    size_t count, capacity, ranks;
    char *index;
    bool is_dcp;
};

static void free_listing(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        wf_free(listing->files[i]);
    wf_free(listing->files);
    wf_free(listing->index);
}

static weft_status list_file(struct listing *listing, const char *name)
{
    char *copy;

    WF_TRY(wf_grow(&listing->files, sizeof *listing->files, listing->count, &listing->capacity));
    copy = wf_strdup(name);
    if (copy == NULL) return wf_fail_memory(strlen(name) + 1);
    listing->files[listing->count++] = copy;
    listing->ranks += wf_is_rank_file(name);
    return WEFT_OK;
}

/* Of several indexes, transformers' own name wins. */
static weft_status list_index(struct listing *listing, const char *name)
{
    static const char usual[] = "model.safetensors.index.json";

    if (listing->index != NULL && strcmp(listing->index, usual) == 0) return WEFT_OK;
    if (listing->index != NULL && strcmp(name, usual) != 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "the folder has two indexes, %s and %s; give the path of one of them",
                       listing->index, name);
    wf_free(listing->index);
    listing->index = wf_strdup(name);
    return listing->index != NULL ? WEFT_OK : wf_fail_memory(strlen(name) + 1);
}

static weft_status list_folder(const char *path, struct listing *listing)
{
    DIR *folder = opendir(path);
    weft_status status = WEFT_OK;

    if (folder == NULL) return wf_fail(WEFT_ERR_SYSTEM, "%s: %s", path, kit_error_text(errno));
    for (struct dirent *entry; status == WEFT_OK && (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".metadata") == 0) listing->is_dcp = true;
        if (entry->d_name[0] == '.') continue;
        if (wf_ends_with(entry->d_name, ".safetensors"))
            status = list_file(listing, entry->d_name);
        else if (wf_ends_with(entry->d_name, ".safetensors.index.json"))
            status = list_index(listing, entry->d_name);
    }
    closedir(folder);
    return status;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static weft_status open_listing(weft_checkpoint *checkpoint, struct listing *listing)
{
    const char *path = checkpoint->inputs.path;

    if (listing->count > 0)
        qsort(listing->files, listing->count, sizeof *listing->files, compare_names);
    if (listing->is_dcp) return wf_open_dcp(checkpoint);
    if (listing->ranks > 0 && listing->ranks < listing->count)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s has files of ranks (rank-00000-of-...) and other safetensors files; a "
                       "checkpoint has one kind",
                       path);
    if (listing->ranks > 0) return wf_open_ranks(checkpoint, listing->files, listing->count);
    if (listing->index != NULL)
        return wf_open_indexed(checkpoint, listing->index, true, listing->files, listing->count);
    if (listing->count > 0) return wf_open_folder(checkpoint, listing->files, listing->count);
    return wf_fail(WEFT_ERR_NOT_FOUND,
                   "%s has no .safetensors file and no .metadata; it is not a checkpoint that weft "
                   "reads",
                   path);
}

static weft_status open_folder(weft_checkpoint *checkpoint, const char *path)
{
    struct listing listing = {0};
    weft_status status;

    WF_TRY(wf_inputs_begin(&checkpoint->inputs, path));
    status = list_folder(path, &listing);
    if (status == WEFT_OK) status = open_listing(checkpoint, &listing);
    free_listing(&listing);
    return status;
}

/* ---- files ---- */

static weft_status is_npy(struct wf_inputs *inputs, const char *name, bool *out)
{
    char magic[6] = "";
    uint32_t file = 0;

    WF_TRY(wf_inputs_add(inputs, name, &file));
    if (inputs->list[file]->size >= sizeof magic)
        WF_TRY(wf_inputs_read(inputs, file, 0, magic, sizeof magic));
    *out = memcmp(magic, "\x93NUMPY", sizeof magic) == 0;
    return WEFT_OK;
}

/* The file NAME of FOLDER. */
static weft_status open_named(weft_checkpoint *checkpoint, const char *folder, const char *name)
{
    struct wf_inputs probe; /* the folder of the checkpoint is still empty */
    weft_status status;
    bool npy = false;

    WF_TRY(wf_inputs_begin(&checkpoint->inputs, folder));
    if (wf_ends_with(name, ".index.json")) return wf_open_indexed(checkpoint, name, false, NULL, 0);
    if (strcmp(name, ".metadata") == 0) return wf_open_dcp(checkpoint);
    WF_TRY(wf_inputs_begin(&probe, folder));
    status = is_npy(&probe, name, &npy);
    wf_inputs_end(&probe);
    if (status != WEFT_OK) return status;
    return npy ? wf_open_npy(checkpoint, name) : wf_open_safetensors(checkpoint, name);
}

static weft_status open_file(weft_checkpoint *checkpoint, const char *path)
{
    const char *slash = strrchr(path, '/');
    weft_status status;
    char *folder;

    if (slash == NULL) return open_named(checkpoint, ".", path);
    folder = wf_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (folder == NULL) return wf_fail_memory(strlen(path));
    status = open_named(checkpoint, folder, slash + 1);
    wf_free(folder);
    return status;
}

weft_status weft_checkpoint_open(const char *path, weft_checkpoint **out)
{
    weft_checkpoint *checkpoint;
    weft_status status;
    struct stat info;

    WF_TRY(wf_require(path, "weft_checkpoint_open: path"));
    WF_TRY(wf_require(out, "weft_checkpoint_open: out"));
    if (path[0] == '\0') return wf_fail(WEFT_ERR_INVALID, "weft_checkpoint_open: path is empty");
    if (stat(path, &info) != 0)
        return wf_fail(errno == ENOENT || errno == ENOTDIR ? WEFT_ERR_NOT_FOUND : WEFT_ERR_SYSTEM,
                       "weft_checkpoint_open: %s: %s", path, kit_error_text(errno));
    checkpoint = wf_calloc(1, sizeof *checkpoint);
    if (checkpoint == NULL) return wf_fail_memory(sizeof *checkpoint);
    checkpoint->made = WF_OF_KIND(WF_KIND_CHECKPOINT);
    status = S_ISDIR(info.st_mode) ? open_folder(checkpoint, path) : open_file(checkpoint, path);
    if (status != WEFT_OK) {
        weft_checkpoint_close(&checkpoint);
        return wf_fail_named(status, "weft_checkpoint_open");
    }
    *out = checkpoint;
    return WEFT_OK;
}
