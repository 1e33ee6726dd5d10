/* use.c - rows that the program computes, for rules with the clause `use`. */
#include "cache.h"
#include "solve.h"

#include <string.h>

enum { MOST = 64, NAME_BYTES = 64, TEXT_BYTES = 8192 };

/* A registered function. */
struct use {
    struct wf_retired retired;
    char name[NAME_BYTES];
    weft_op_rows rows;
    void *user;
};

static _Atomic(struct use *) uses[MOST];
static _Atomic(uint64_t) generation;

uint64_t wf_use_generation(void)
{
    return atomic_load(&generation);
}

/* ---- registration ---- */

static void drop_use(struct wf_retired *item)
{
    wf_free(item);
}

/* The slot of NAME, or a free one; -1: there is neither. */
static int find_slot(const char *name, size_t length, bool or_free)
{
    int found = -1;

    for (int i = 0; i < MOST; i++) {
        const struct use *u = atomic_load(&uses[i]);
        if (u == NULL && or_free && found < 0) found = i;
        if (u != NULL && strlen(u->name) == length && memcmp(u->name, name, length) == 0) return i;
    }
    return found;
}

/* Exchange the function of SLOT for NEXT, which may be NULL.  With the lock held. */
static void exchange(int slot, struct use *next)
{
    struct use *before = atomic_load(&uses[slot]);

    atomic_store(&uses[slot], next);
    atomic_fetch_add(&generation, 1);
    if (before != NULL) wf_published_retire(&wf_op_guard, &before->retired);
}

weft_status weft_op_use_register(const char *name, weft_op_rows rows, void *user)
{
    struct use *next;
    int slot;

    WF_TRY(wf_require(name, "weft_op_use_register: name"));
    if (rows == NULL) return wf_fail_null("weft_op_use_register", "rows");
    if (name[0] == '\0' || strlen(name) >= NAME_BYTES)
        return wf_fail(WEFT_ERR_INVALID, "weft_op_use_register: a name has 1 to %d bytes",
                       NAME_BYTES - 1);
    next = wf_calloc(1, sizeof *next);
    if (next == NULL) return wf_fail_memory(sizeof *next);
    next->retired.drop = drop_use;
    memcpy(next->name, name, strlen(name));
    next->rows = rows;
    next->user = user;
    wf_published_lock(&wf_op_guard);
    slot = find_slot(name, strlen(name), true);
    if (slot >= 0) exchange(slot, next);
    wf_published_unlock(&wf_op_guard);
    if (slot >= 0) return WEFT_OK;
    wf_free(next);
    return wf_fail(WEFT_ERR_INVALID, "weft_op_use_register: %d functions are registered already",
                   MOST);
}

weft_status weft_op_use_remove(const char *name)
{
    int slot;

    WF_TRY(wf_require(name, "weft_op_use_remove: name"));
    wf_published_lock(&wf_op_guard);
    slot = find_slot(name, strlen(name), false);
    if (slot >= 0) exchange(slot, NULL);
    wf_published_unlock(&wf_op_guard);
    if (slot >= 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_NOT_FOUND,
                   "weft_op_use_remove: no function is registered for \"%.64s\"", name);
}

/* ---- rows ---- */

/* Bytes of the placement at AT, which ends before a space, a ";" outside of parentheses, or the end
 * of the line. */
static size_t placement_length(const char *at)
{
    size_t length = 0;
    bool inside = false;

    for (; at[length] != '\0' && at[length] != '\n'; length++) {
        if (!inside && (at[length] == ' ' || at[length] == ';')) break;
        inside = at[length] == '(' || (inside && at[length] != ')');
    }
    return length;
}

weft_status wf_given_settle(const struct wf_op *op, const struct wf_op_tensor *t, int32_t axis,
                            weft_placement *placement)
{
    struct wf_layout layout = {.dims = 0};

    wf_op_begin_layout(op, t->dtype, t->dims, &layout);
    memcpy(layout.shape, t->shape, sizeof layout.shape);
    layout.placements[axis] = *placement;
    WF_TRY(wf_layout_settle(&layout));
    if (!wf_placement_has_sizes(&layout.placements[axis])) {
        weft_placements_free(1, placement);
        *placement = layout.placements[axis];
    }
    placement->turn = 0;
    return WEFT_OK;
}

/* The placement of TENSOR at the scan. */
static weft_status read_placement(const struct wf_op *op, uint32_t tensor, int32_t axis,
                                  struct wf_scan *scan, weft_placement *out)
{
    const struct wf_op_tensor *t = &op->tensors[tensor];
    const char *at;
    size_t length;
    char *text;
    weft_status status;

    wf_scan_space(scan);
    at = scan->text + scan->at;
    length = placement_length(at);
    if (length == 0) return wf_scan_refuse(scan, "row", "expected a placement");
    if (!t->present && (length != 1 || *at != '-'))
        return wf_scan_refuse(scan, "row", "the input is absent: expected \"-\"");
    text = wf_alloc(length + 1);
    if (text == NULL) return wf_fail_memory(length + 1);
    memcpy(text, at, length);
    text[length] = '\0';
    status = t->present ? weft_placements_parse(text, 1, out) : WEFT_OK;
    if (status == WEFT_OK && t->present) status = wf_given_settle(op, t, axis, out);
    if (status == WEFT_ERR_INVALID)
        status = wf_fail_context(status, "%.60s is not a placement of %.*s here", text,
                                 WF_WORD(op->rule, wf_op_name(op, t)));
    wf_free(text);
    scan->at += length;
    wf_scan_space(scan);
    return status;
}

/* "S(0) ; R -> S(0)", on AXIS */
static weft_status read_row(struct wf_op *op, int32_t axis, struct wf_scan *scan,
                            struct wf_rows *out)
{
    uint32_t count = op->input_count + op->output_count;
    size_t bytes = sizeof(struct wf_given) + count * sizeof(weft_placement);
    struct wf_given *given = wf_calloc(1, bytes);

    if (given == NULL) return wf_fail_memory(bytes);
    given->next = op->given;
    op->given = given;
    for (uint32_t i = 0; i <= count; i++) {
        wf_scan_space(scan);
        if (i == op->input_count && !wf_scan_word(scan, "->"))
            return wf_scan_fail(scan, "row", "expected -> behind %u input%s", op->input_count,
                                WF_PLURAL(op->input_count));
        if (i == count) break;
        if (i > 0 && i != op->input_count && !wf_scan_char(scan, ';'))
            return wf_scan_fail(scan, "row", "expected ;");
        WF_TRY(read_placement(op, i, axis, scan, &given->placements[i]));
    }
    if (!wf_scan_end(scan) && !wf_scan_char(scan, '\n'))
        return wf_scan_fail(scan, "row", "expected the end of the line");
    if (out->count < WF_ROWS)
        out->row[out->count++] = (struct wf_row){.kind = WF_ROW_GIVEN, .given = given->placements};
    return WEFT_OK;
}

/* Ask U for its rows along AXIS. */
static weft_status ask(const struct use *u, const weft_op_call *call, struct wf_op *op,
                       const weft_op_tensor *tensors, int32_t axis, struct wf_rows *out)
{
    weft_op_query query = {.struct_size = sizeof query,
                           .call = call,
                           .mesh = op->mesh,
                           .input_count = op->input_count,
                           .output_count = op->output_count,
                           .tensor_size = sizeof *tensors,
                           .tensors = tensors,
                           .axis = axis,
                           .parts = op->ranks[axis]};
    char *text = wf_alloc(TEXT_BYTES);
    struct wf_scan scan = {text, 0};
    uint64_t failures = wf_failure_count();
    weft_status status;

    if (text == NULL) return wf_fail_memory(TEXT_BYTES);
    text[0] = text[TEXT_BYTES - 1] = '\0';
    status = u->rows(u->user, &query, text, TEXT_BYTES - 1);
    if (status != WEFT_OK) status = wf_fail_callback(status, failures, "it");
    while (status == WEFT_OK && !wf_scan_end(&scan))
        status = read_row(op, axis, &scan, out);
    if (status != WEFT_OK)
        status = wf_fail_context(status, "operator %.100s: the function of \"use %s\"", op->name,
                                 u->name);
    wf_free(text);
    return status;
}

weft_status wf_use_add_rows(const weft_op_call *call, struct wf_op *op, struct wf_rows *rows)
{
    uint32_t count = op->input_count + op->output_count;
    struct wf_word name = op->rule->use;
    weft_op_tensor *tensors;
    weft_status status = WEFT_OK;
    const struct use *u;
    int slot;

    if (name.length == 0) return WEFT_OK;
    slot = find_slot(op->rule->text + name.at, name.length, false);
    u = slot >= 0 ? atomic_load(&uses[slot]) : NULL;
    if (u == NULL) return WEFT_OK;
    tensors = wf_calloc(count + 1, sizeof *tensors);
    if (tensors == NULL) return wf_fail_memory((count + 1) * sizeof *tensors);
    for (uint32_t i = 0; i < count; i++) {
        tensors[i].dtype = op->tensors[i].dtype;
        tensors[i].dims = op->tensors[i].dims;
        memcpy(tensors[i].shape, op->tensors[i].shape, sizeof tensors[i].shape);
    }
    for (int32_t a = 0; status == WEFT_OK && a < op->axes; a++)
        status = ask(u, call, op, tensors, a, &rows[a]);
    wf_free(tensors);
    return status;
}
