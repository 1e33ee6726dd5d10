/* folder.c - a folder of safetensors files without an index: whole tensors, or the boxes of DCP's
 * sharded files.  A sharded file states the offsets of its tensors in the metadata
 * DCP_SHARDING_INFO, {"NAME": {"saved_offsets": [..]}}. */
#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char suffix[] = ".safetensors";

/* ---- are all files there? ---- */

/* A name PREFIX-00001-of-00003.safetensors. */
struct numbered {
    size_t prefix; /* length, with the last "-" */
    long number, total;
    int digits;
};

static bool is_numbered(const char *name, struct numbered *out)
{
    size_t length = strlen(name), at;
    const char *of;

    if (length < sizeof suffix || strcmp(name + length - (sizeof suffix - 1), suffix) != 0)
        return false;
    length -= sizeof suffix - 1;
    for (at = length; at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9';)
        at--;
    out->digits = (int)(length - at);
    if (out->digits == 0 || out->digits > 9 || at < 4 || memcmp(name + at - 4, "-of-", 4) != 0)
        return false;
    out->total = strtol(name + at, NULL, 10);
    of = name + at - 4;
    for (at -= 4; at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9';)
        at--;
    if (of - (name + at) != out->digits || at == 0 || name[at - 1] != '-') return false;
    out->number = strtol(name + at, NULL, 10);
    out->prefix = at;
    return true;
}

static bool has_name(char **names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* If a name says that it is one of N files, the others must be there. */
static weft_status check_numbers(const weft_checkpoint *checkpoint, char **names, size_t count)
{
    struct numbered n;

    for (size_t i = 0; i < count; i++) {
        if (!is_numbered(names[i], &n) || n.number != 1) continue;
        for (long k = 2; k <= n.total; k++) {
            char other[4096];
            snprintf(other, sizeof other, "%.*s%0*ld-of-%0*ld%s", (int)n.prefix, names[i], n.digits,
                     k, n.digits, n.total, suffix);
            if (!has_name(names, count, other))
                return wf_fail(WEFT_ERR_NOT_FOUND, "%s/%s: this file is missing",
                               checkpoint->inputs.path, other);
        }
    }
    for (size_t i = 0; i < count; i++) {
        char first[4096];
        if (!is_numbered(names[i], &n)) continue;
        snprintf(first, sizeof first, "%.*s%0*d-of-%0*ld%s", (int)n.prefix, names[i], n.digits, 1,
                 n.digits, n.total, suffix);
        if (!has_name(names, count, first))
            return wf_fail(WEFT_ERR_NOT_FOUND, "%s/%s: this file is missing",
                           checkpoint->inputs.path, first);
    }
    return WEFT_OK;
}

/* ---- offsets of DCP ---- */

static weft_status read_offsets(weft_checkpoint *checkpoint, struct wf_json_reader *json,
                                struct wf_piece *piece)
{
    int64_t offsets[WEFT_MAX_DIMS];
    enum wf_json_event event;
    size_t count = SIZE_MAX;

    WF_TRY(wf_json_expect(json, WF_EVENT_OBJECT));
    for (;;) {
        WF_TRY(wf_json_next(json, &event));
        if (event == WF_EVENT_OBJECT_END) break;
        if (strcmp(json->text.data, "saved_offsets") == 0)
            WF_TRY(wf_json_read_ints(json, WEFT_MAX_DIMS, offsets, &count));
        else
            WF_TRY(wf_json_skip(json));
    }
    if (piece == NULL) return WEFT_OK; /* a tensor of another file */
    if (count != (size_t)piece->dims)
        return wf_json_refuse(json,
                              "tensor \"%.200s\" has %d dimensions; saved_offsets must have as "
                              "many numbers",
                              piece->name, piece->dims);
    piece->offset = wf_arena_sizes(&checkpoint->arena, piece->dims, offsets);
    return piece->offset != NULL ? WEFT_OK : wf_fail_memory(sizeof offsets);
}

weft_status wf_header_read_offsets(weft_checkpoint *checkpoint, const struct wf_header *header)
{
    struct wf_json_reader json;
    enum wf_json_event event;
    weft_status status;

    wf_json_reader_begin(&json, "DCP_SHARDING_INFO", header->sharding, strlen(header->sharding));
    status = wf_json_expect(&json, WF_EVENT_OBJECT);
    while (status == WEFT_OK) {
        status = wf_json_next(&json, &event);
        if (status != WEFT_OK || event == WF_EVENT_OBJECT_END) break;
        status =
            read_offsets(checkpoint, &json, wf_header_find(checkpoint, header, json.text.data));
    }
    if (status == WEFT_OK) status = wf_json_expect(&json, WF_EVENT_END);
    wf_json_reader_end(&json);
    if (status == WEFT_OK) return WEFT_OK;
    return wf_fail_context(status, "%s/%s", checkpoint->inputs.path,
                           checkpoint->inputs.list[header->file]->name);
}

/* Pieces without offsets begin at zero. */
static void set_zeros(weft_checkpoint *checkpoint)
{
    static const int64_t none[WEFT_MAX_DIMS] = {0};

    for (size_t i = 0; i < checkpoint->piece_count; i++)
        if (checkpoint->pieces[i].offset == NULL) checkpoint->pieces[i].offset = none;
}

weft_status wf_open_folder(weft_checkpoint *checkpoint, char **names, size_t count)
{
    bool sharded = false;

    for (size_t i = 0; i < count; i++) {
        struct wf_header header = {0};
        weft_status status = wf_header_read(checkpoint, names[i], &header);
        if (status == WEFT_OK && header.sharding != NULL) {
            sharded = true;
            status = wf_header_read_offsets(checkpoint, &header);
        }
        wf_header_free(&header);
        if (status != WEFT_OK) return status;
    }
    checkpoint->format = sharded ? WEFT_FILE_DCP_SAFETENSORS : WEFT_FILE_HUGGING_FACE;
    if (sharded)
        set_zeros(checkpoint);
    else
        WF_TRY(check_numbers(checkpoint, names, count));
    return wf_checkpoint_settle(checkpoint);
}
