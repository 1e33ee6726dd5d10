/* write_header.c - the header of a safetensors file, byte for byte as the reference writer's:
 * tensors by dtype (the last of the enumeration first), then by name; compact JSON; metadata first;
 * blanks to a multiple of eight.  The reference writer has no order of metadata; here keys
 * ascend. */
#include "writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void wf_header_quote(struct wf_text *out, const char *text)
{
    wf_text_char(out, '"');
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
        const char *found = strchr(plain, *at);
        if (found != NULL)
            wf_text_add(out, "\\%c", letters[found - plain]);
        else if (*at < 0x20)
            wf_text_add(out, "\\u%04x", *at);
        else
            wf_text_char(out, (char)*at);
    }
    wf_text_char(out, '"');
}

static int compare_entries(const void *left, const void *right)
{
    const struct wf_out_entry *a = left, *b = right;

    if (a->dtype != b->dtype) return a->dtype > b->dtype ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void add_entry(struct wf_text *out, const struct wf_out_entry *entry)
{
    wf_header_quote(out, entry->name);
    wf_text_add(out, ":{\"dtype\":\"%s\",\"shape\":[", wf_file_dtype(entry->dtype)->name);
    for (int32_t d = 0; d < entry->dims; d++)
        wf_text_add(out, "%s%" PRId64, d > 0 ? "," : "", entry->shape[d]);
    wf_text_add(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", entry->at,
                entry->at + (uint64_t)entry->bytes);
}

static void add_pairs(struct wf_text *out, const struct wf_pair *pairs, size_t count)
{
    wf_text_add(out, "\"__metadata__\":{");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) wf_text_char(out, ',');
        wf_header_quote(out, pairs[i].key);
        wf_text_char(out, ':');
        wf_header_quote(out, pairs[i].value);
    }
    wf_text_char(out, '}');
}

weft_status wf_header_layout(struct wf_out_entry *entries, size_t count,
                             const struct wf_pair *pairs, size_t pair_count, struct wf_text *out,
                             uint64_t *bytes)
{
    uint64_t at = 0, length;

    if (count > 0) qsort(entries, count, sizeof *entries, compare_entries);
    wf_text_append(out, "\0\0\0\0\0\0\0\0", 8);
    wf_text_char(out, '{');
    if (pair_count > 0) add_pairs(out, pairs, pair_count);
    for (size_t i = 0; i < count; i++) {
        entries[i].at = at;
        at += (uint64_t)entries[i].bytes;
        if (i > 0 || pair_count > 0) wf_text_char(out, ',');
        add_entry(out, &entries[i]);
    }
    wf_text_char(out, '}');
    while (out->length % 8 != 0 && !out->failed)
        wf_text_char(out, ' ');
    WF_TRY(wf_text_status(out));
    length = out->length - 8;
    if (length > WF_SAFETENSORS_HEADER)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "the header of a file would have %" PRIu64
                       " bytes; safetensors allows %" PRIu64,
                       length, WF_SAFETENSORS_HEADER);
    for (int i = 0; i < 8; i++)
        out->data[i] = (char)(length >> (8 * i) & 255);
    *bytes = at;
    return WEFT_OK;
}
