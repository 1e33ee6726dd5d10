/* listing.c - the names of all operators, and the one that a misspelt name means. */
#include "registry.h"

#include "ops/ops.h"
#include "weft/ops.h"

#include <string.h>

weft_status wf_name_check(const char *function, const char *what, const char *name)
{
    for (size_t i = 0; name[i] != '\0'; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            return wf_fail(WEFT_ERR_INVALID, "%s%s%s has a control character, 0x%02x, at byte %zu",
                           function != NULL ? function : "", function != NULL ? ": " : "", what,
                           (unsigned char)name[i], i);
    return WEFT_OK;
}

/* The length of NAME without "_bwd", if that is an operator; else 0. */
static size_t forward_length(const char *name)
{
    size_t length = strcspn(name, ".");
    char forward[128];

    if (length < 5 || length >= sizeof forward || memcmp(name + length - 4, "_bwd", 4) != 0)
        return 0;
    memcpy(forward, name, length - 4);
    forward[length - 4] = '\0';
    return wf_op_find(forward) != NULL ? length - 4 : 0;
}

weft_status wf_op_refuse_name(const char *function, const char *name)
{
    size_t forward = forward_length(name);
    uint32_t count;
    const struct wf_op_entry *ops = wf_op_all(&count);
    const char **names;
    char *copies;
    int nearest = -1;
    weft_status status;

    WF_TRY(wf_name_check(function, "the name of the operator (name)", name));
    if (forward > 0)
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "%s: there is no rule for operator \"%.100s\"; register one, or take the "
                       "calls of weft_op_backward_create for %.*s",
                       function, name, (int)forward, name);
    names = wf_alloc(count * sizeof *names);
    copies = wf_alloc((size_t)count * 64);
    if (names != NULL && copies != NULL) {
        for (uint32_t i = 0; i < count; i++) {
            size_t length = (size_t)wf_min_i64(ops[i].length, 63);
            names[i] = memcpy(copies + (size_t)i * 64, ops[i].name, length);
            copies[(size_t)i * 64 + length] = '\0';
        }
        nearest = wf_nearest(name, names, count);
    }
    status = wf_fail(WEFT_ERR_NOT_FOUND, "%s: there is no rule for operator \"%.100s\"%s%s%s",
                     function, name, nearest >= 0 ? "; did you mean " : "",
                     nearest >= 0 ? names[nearest] : "", nearest >= 0 ? "?" : "");
    wf_free(names);
    wf_free(copies);
    return status;
}

/* ---- sorted ---- */

static bool is_before(const struct wf_op_entry *a, const struct wf_op_entry *b)
{
    int order = memcmp(a->name, b->name, a->length < b->length ? a->length : b->length);

    return order != 0 ? order < 0 : a->length < b->length;
}

/* Let the entry at AT of a heap of COUNT, the last name first, sink to its place. */
static void sink(const struct wf_op_entry **heap, uint32_t at, uint32_t count)
{
    const struct wf_op_entry *entry = heap[at];

    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(heap[child], heap[child + 1])) child++;
        if (!is_before(entry, heap[child])) break;
        heap[at] = heap[child];
    }
    heap[at] = entry;
}

static void sort_entries(const struct wf_op_entry **entries, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;)
        sink(entries, i, count);
    for (uint32_t left = count; left > 1;) {
        const struct wf_op_entry *last = entries[0];
        entries[0] = entries[--left];
        entries[left] = last;
        sink(entries, 0, left);
    }
}

static weft_status add_names(struct wf_text *out)
{
    uint32_t count;
    const struct wf_op_entry *ops = wf_op_all(&count), **sorted;

    sorted = wf_alloc((count + 1) * sizeof *sorted);
    if (sorted == NULL) return wf_fail_memory((count + 1) * sizeof *sorted);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = &ops[i];
    sort_entries(sorted, count);
    for (uint32_t i = 0; i < count; i++)
        wf_text_add(out, "%s%.*s", i > 0 ? "\n" : "", (int)sorted[i]->length, sorted[i]->name);
    wf_free(sorted);
    return WEFT_OK;
}

weft_status weft_op_names_print(char *text, size_t size, size_t *needed)
{
    struct wf_text out = {0};
    weft_status status;
    uint32_t ticket;

    if (size > 0) WF_TRY(wf_require(text, "weft_op_names_print: text"));
    WF_TRY(wf_op_enter(&ticket));
    status = add_names(&out);
    wf_op_leave(ticket);
    return status == WEFT_OK ? wf_text_copy_out(&out, text, size, needed) : status;
}
