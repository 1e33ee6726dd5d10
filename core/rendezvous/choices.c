/* choices.c - settings that must be equal on all ranks, and a table of the differences. */
#include "launch.h"

#include <string.h>

#define VALUES_SHOWN 8
#define CELL         200

static void add(struct wf_choices *choices, const char *name, const char *value, bool only_shown)
{
    wf_put_string(&choices->rows, name);
    wf_put_string(&choices->rows, value != NULL ? value : "");
    wf_put_u32(&choices->rows, only_shown);
    choices->count++;
}

void wf_choices_add(struct wf_choices *choices, const char *name, const char *value)
{
    add(choices, name, value, false);
}

void wf_choices_explain(struct wf_choices *choices, const char *name, const char *value)
{
    add(choices, name, value, true);
}

struct row {
    char name[64], value[CELL];
    bool only_shown;
};

static bool next_row(struct wf_reader *reader, struct row *out)
{
    if (reader->left == 0) return false;
    wf_take_string(reader, out->name, sizeof out->name);
    wf_take_string(reader, out->value, sizeof out->value);
    out->only_shown = wf_take_u32(reader) != 0;
    return !reader->failed;
}

static struct wf_reader reader_of(weft_blob blob)
{
    return (struct wf_reader){blob.data, (size_t)blob.bytes, false};
}

/* BLOB's value of row NAME; "(not reported)" if BLOB, from another version of weft, lacks it. */
static void find_value(weft_blob blob, const char *name, char value[CELL])
{
    struct wf_reader reader = reader_of(blob);
    struct row row;

    strncpy(value, "(not reported)", CELL);
    while (next_row(&reader, &row))
        if (strcmp(row.name, name) == 0) memcpy(value, row.value, CELL);
}

static bool differs(const weft_blob *blobs, int32_t count, const struct row *row)
{
    char value[CELL];

    for (int32_t i = 1; i < count; i++) {
        find_value(blobs[i], row->name, value);
        if (strcmp(value, row->value) != 0) return true;
    }
    return false;
}

/* Print each value of ROW that occurs, with the ranks that have it. */
static void print_row(struct wf_text *out, const weft_blob *blobs, int32_t count,
                      const struct row *row, int32_t *ranks, bool *seen)
{
    char value[CELL], other[CELL];
    int shown = 0;

    memset(seen, 0, (size_t)count * sizeof *seen);
    for (int32_t i = 0; i < count; i++) {
        int32_t found = 0;

        if (seen[i]) continue;
        if (shown++ == VALUES_SHOWN) {
            wf_text_add(out, "\n  %-16s (and more)", "");
            return;
        }
        find_value(blobs[i], row->name, value);
        for (int32_t j = i; j < count; j++) {
            find_value(blobs[j], row->name, other);
            if (strcmp(value, other) != 0) continue;
            seen[j] = true;
            ranks[found++] = j;
        }
        wf_text_add(out, "\n  %-16s %-24s ", shown == 1 ? row->name : "",
                    value[0] != '\0' ? value : "(none)");
        wf_ranks_print(out, ranks, found);
    }
}

static weft_status refuse(const weft_blob *blobs, int32_t count)
{
    struct wf_reader reader = reader_of(blobs[0]);
    struct wf_text table = {0};
    int32_t *ranks = wf_alloc((size_t)count * sizeof *ranks);
    bool *seen = wf_alloc((size_t)count * sizeof *seen);
    struct row row;
    weft_status status;

    while (ranks != NULL && seen != NULL && next_row(&reader, &row))
        if (differs(blobs, count, &row)) print_row(&table, blobs, count, &row, ranks, seen);
    status = wf_fail(WEFT_ERR_MISMATCH, "ranks have different settings that must be equal:%s",
                     table.failed || table.data == NULL ? "" : table.data);
    wf_text_free(&table);
    wf_free(seen);
    wf_free(ranks);
    return status;
}

weft_status wf_choices_compare(const weft_blob *blobs, int32_t count)
{
    struct wf_reader reader = reader_of(blobs[0]);
    struct row row;

    for (int32_t i = 1; i < count; i++)
        if (blobs[i].bytes != blobs[0].bytes ||
            memcmp(blobs[i].data, blobs[0].data, (size_t)blobs[0].bytes) != 0)
            break;
        else if (i == count - 1)
            return WEFT_OK;
    while (next_row(&reader, &row))
        if (!row.only_shown && differs(blobs, count, &row)) return refuse(blobs, count);
    return WEFT_OK;
}
