/* expression.c - expressions of rules become views. */
#include "checkpoint/rules/rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 1 << 20 };

struct evaluation {
    struct wf_mapping *mapping;
    const struct wf_bound *bound;
    size_t wanted;
    bool tied;
};

static weft_status evaluate(struct evaluation *e, const struct wf_rule_term *term,
                            struct wf_view_list *out);

/* ---- names ---- */

/* The number of the first tensor of BASE whose name is not before NAME. */
static size_t first_from(const weft_checkpoint *base, const char *name)
{
    size_t low = 0, high = base->tensor_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(base->tensors[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static weft_status add_source(struct evaluation *e, size_t index, struct wf_view_list *out)
{
    const struct wf_view *view = NULL;
    struct wf_mapping *mapping = e->mapping;

    WF_TRY(wf_view_source(mapping->arena, &mapping->base->tensors[index], index, &view));
    ((struct wf_view *)view)->tied = e->tied;
    mapping->state[index] |= e->tied ? WF_USED_TIED : WF_USED_NAMED;
    if (!e->tied) mapping->lines[index] = mapping->line;
    return wf_view_list_add(out, view);
}

struct numbered {
    int64_t number;
    size_t index;
};

static int compare_numbered(const void *left, const void *right)
{
    const struct numbered *a = left, *b = right;

    return a->number < b->number ? -1 : a->number > b->number;
}

static bool read_digits(const char *text, size_t length, int64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || i == 9) return false;
        *out = *out * 10 + (text[i] - '0');
    }
    return length == 1 || text[0] != '0';
}

/* Add the tensors between FIRST and END whose names match, by the number that the free capture has
 * in them: it must be 0, 1, 2 and so on. */
static weft_status collect(struct evaluation *e, const struct wf_pattern *pattern, size_t choice,
                           size_t first, size_t end, struct wf_view_list *out)
{
    const weft_checkpoint *base = e->mapping->base;
    struct numbered *found = wf_calloc(end - first, sizeof *found);
    weft_status status = WEFT_OK;
    size_t count = 0;

    if (found == NULL) return wf_fail_memory((end - first) * sizeof *found);
    for (size_t i = first; i < end && status == WEFT_OK; i++) {
        struct wf_bound bound = *e->bound;
        if (!wf_pattern_match(pattern, choice, base->tensors[i].name, &bound)) continue;
        for (size_t c = 0; c < WF_MOST_CAPTURES && status == WEFT_OK; c++)
            if (bound.text[c] != NULL && e->bound->text[c] == NULL &&
                !read_digits(bound.text[c], bound.length[c], &found[count].number))
                status = wf_fail(WEFT_ERR_INVALID,
                                 "\"%.200s\" joins tensors by their numbers, but tensor "
                                 "\"%.200s\" has no number there",
                                 pattern->text, base->tensors[i].name);
        found[count++].index = i;
    }
    qsort(found, count, sizeof *found, compare_numbered);
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        if (found[i].number != (int64_t)i)
            status = wf_fail(WEFT_ERR_INVALID,
                             "\"%.200s\" joins tensors by their numbers, but there is no number "
                             "%zu; the next tensor is \"%.200s\"",
                             pattern->text, i, base->tensors[found[i].index].name);
        if (status == WEFT_OK) status = add_source(e, found[i].index, out);
    }
    wf_free(found);
    return status == WEFT_OK && count == 0
               ? wf_fail(WEFT_ERR_NOT_FOUND, "no tensor matches \"%.200s\"", pattern->text)
               : status;
}

static weft_status evaluate_choice(struct evaluation *e, const struct wf_pattern *pattern,
                                   size_t choice, struct wf_view_list *out)
{
    const weft_checkpoint *base = e->mapping->base;
    struct wf_text name = {0};
    bool complete = wf_pattern_name(pattern, choice, e->bound, &name);
    uint32_t free_captures = pattern->captures;
    size_t first, end;
    weft_status status;

    wf_text_append(&name, "", 0);
    status = wf_text_status(&name);
    if (status != WEFT_OK) {
        wf_text_free(&name);
        return status;
    }
    first = end = first_from(base, name.data);
    for (size_t c = 0; c < WF_MOST_CAPTURES; c++)
        if (e->bound->text[c] != NULL) free_captures &= ~(UINT32_C(1) << c);
    if (complete) {
        bool found =
            first < base->tensor_count && strcmp(base->tensors[first].name, name.data) == 0;
        status = found ? add_source(e, first, out)
                       : wf_fail(WEFT_ERR_NOT_FOUND,
                                 "tensor \"%.200s\" is needed, but the "
                                 "checkpoint does not have it",
                                 name.data);
    } else if ((free_captures & (free_captures - 1)) != 0) {
        status =
            wf_fail(WEFT_ERR_INVALID, "\"%.200s\" has several captures that the new name has not",
                    pattern->text);
    } else {
        while (end < base->tensor_count &&
               strncmp(base->tensors[end].name, name.data, name.length) == 0)
            end++;
        status = collect(e, pattern, choice, first, end, out);
    }
    wf_text_free(&name);
    return status;
}

static weft_status evaluate_name(struct evaluation *e, const struct wf_pattern *pattern,
                                 struct wf_view_list *out)
{
    if (pattern->choice_count == 0) return evaluate_choice(e, pattern, 0, out);
    for (size_t i = 0; i < pattern->choice_count; i++)
        WF_TRY(evaluate_choice(e, pattern, i, out));
    return WEFT_OK;
}

/* ---- several tensors become one ---- */

/* Rows of all tensors alternate, in blocks of BLOCK rows. */
static weft_status interleave(struct wf_arena *arena, int32_t dim, int64_t block,
                              struct wf_view_list *list, const struct wf_view **out)
{
    if (block == 1) {
        WF_TRY(wf_view_stack(arena, dim + 1, list, out));
        return wf_view_merge(arena, *out, dim, out);
    }
    for (size_t i = 0; i < list->count; i++)
        WF_TRY(wf_view_split(arena, list->items[i], dim, block, &list->items[i]));
    WF_TRY(wf_view_stack(arena, dim + 1, list, out));
    WF_TRY(wf_view_merge(arena, *out, dim + 1, out));
    return wf_view_merge(arena, *out, dim, out);
}

static weft_status join(struct evaluation *e, const struct wf_rule_term *term,
                        struct wf_view_list *list, const struct wf_view **out)
{
    struct wf_arena *arena = e->mapping->arena;

    if (term->function == WF_RULE_CAT) return wf_view_cat(arena, term->dim, list, out);
    if (term->function == WF_RULE_STACK) return wf_view_stack(arena, term->dim, list, out);
    return interleave(arena, term->dim, term->number_count > 0 ? term->numbers[0] : 1, list, out);
}

/* ---- one tensor becomes several ---- */

/* The size of part I of COUNT parts of LENGTH indices. */
static weft_status part_size(const struct wf_rule_term *term, size_t count, int64_t length,
                             size_t i, int64_t *out)
{
    int64_t sum = 0, shared = 0, product;

    if (term->number_count == 0) {
        if (length % (int64_t)count != 0)
            return wf_fail(WEFT_ERR_INVALID, "%" PRId64 " indices are not %zu equal parts", length,
                           count);
        *out = length / (int64_t)count;
        return WEFT_OK;
    }
    for (size_t n = 0; n < count; n++)
        if (term->numbers[n] < 0 || !wf_add_i64(sum, term->numbers[n], &sum))
            return wf_fail(WEFT_ERR_INVALID, "sizes of parts are 0 or more");
        else
            shared = wf_gcd(shared, term->numbers[n]);
    *out = term->numbers[i];
    if (!term->ratio) {
        if (sum == length) return WEFT_OK;
        return wf_fail(WEFT_ERR_INVALID,
                       "the sizes add up to %" PRId64 ", but dimension %d has %" PRId64 " indices",
                       sum, term->dim, length);
    }
    if (shared > 0) {
        sum /= shared;
        *out /= shared;
    }
    if (sum == 0 || length % sum != 0 || !wf_mul_i64(length / sum, *out, &product))
        return wf_fail(WEFT_ERR_INVALID,
                       "dimension %d has %" PRId64 " indices, which cannot be split in %" PRId64
                       " equal shares",
                       term->dim, length, sum);
    *out = product;
    return WEFT_OK;
}

static weft_status split(struct evaluation *e, const struct wf_rule_term *term,
                         const struct wf_view *of, struct wf_view_list *out)
{
    size_t count = term->number_count > 0 ? term->number_count : e->wanted;
    int64_t at = 0, size = 0;
    const struct wf_view *part = NULL;

    if (count == 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "the number of parts is not known; list them in the new name ({q,k,v}), or "
                       "give their sizes");
    if (term->dim >= of->dims) return wf_view_slice(e->mapping->arena, of, term->dim, 0, 0, &part);
    for (size_t i = 0; i < count; i++) {
        WF_TRY(part_size(term, count, of->shape[term->dim], i, &size));
        WF_TRY(wf_view_slice(e->mapping->arena, of, term->dim, at, at + size, &part));
        WF_TRY(wf_view_list_add(out, part));
        at += size;
    }
    return WEFT_OK;
}

static weft_status unstack(struct evaluation *e, const struct wf_view *of, int32_t dim,
                           struct wf_view_list *out)
{
    const struct wf_view *part = NULL;

    if (dim >= of->dims) return wf_view_select(e->mapping->arena, of, dim, 0, &part);
    if (of->shape[dim] > MOST_PARTS)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "dimension %d has %" PRId64 " indices; at most %d can be unstacked", dim,
                       of->shape[dim], MOST_PARTS);
    for (int64_t i = 0; i < of->shape[dim]; i++) {
        WF_TRY(wf_view_select(e->mapping->arena, of, dim, i, &part));
        WF_TRY(wf_view_list_add(out, part));
    }
    return WEFT_OK;
}

static weft_status deinterleave(struct evaluation *e, const struct wf_rule_term *term,
                                const struct wf_view *of, struct wf_view_list *out)
{
    struct wf_arena *arena = e->mapping->arena;
    int64_t block = term->number_count > 0 ? term->numbers[0] : 1;
    const struct wf_view *part = NULL;

    if (e->wanted == 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "the number of parts is not known; list them in the new name ({gate,up})");
    if (block != 1) WF_TRY(wf_view_split(arena, of, term->dim, block, &of));
    WF_TRY(wf_view_split(arena, of, term->dim, (int64_t)e->wanted, &of));
    for (size_t i = 0; i < e->wanted; i++) {
        WF_TRY(wf_view_select(arena, of, term->dim + 1, (int64_t)i, &part));
        if (block != 1) WF_TRY(wf_view_merge(arena, part, term->dim, &part));
        WF_TRY(wf_view_list_add(out, part));
    }
    return WEFT_OK;
}

/* ---- one tensor becomes another ---- */

static weft_status transpose(struct wf_arena *arena, const struct wf_rule_term *term,
                             const struct wf_view *of, const struct wf_view **out)
{
    int64_t order[WEFT_MAX_DIMS];

    if (term->number_count > 0)
        return wf_view_permute(arena, of, term->numbers, term->number_count, out);
    if (of->dims < 2)
        return wf_fail(WEFT_ERR_INVALID, "a tensor with %d dimensions cannot be transposed",
                       of->dims);
    for (int32_t d = 0; d < of->dims; d++)
        order[d] = d;
    order[of->dims - 2] = of->dims - 1;
    order[of->dims - 1] = of->dims - 2;
    return wf_view_permute(arena, of, order, (size_t)of->dims, out);
}

/* Dimension 0 is HEADS heads of rows.  In each, pairs of neighbours become two halves, or the other
 * way round. */
static weft_status permute_heads(struct wf_arena *arena, const struct wf_view *of, int64_t heads,
                                 bool to_halves, const struct wf_view **out)
{
    int64_t order[WEFT_MAX_DIMS] = {0, 2, 1}, rows = of->dims > 0 ? of->shape[0] : 0;

    if (of->dims == 0 || heads < 1 || (rows > 0 && heads > rows / 2) ||
        (rows > 0 && rows % (2 * heads) != 0))
        return wf_fail(WEFT_ERR_INVALID, "%" PRId64 " rows are not %" PRId64 " heads of pairs",
                       rows, heads);
    if (rows == 0) {
        *out = of;
        return WEFT_OK;
    }
    WF_TRY(wf_view_split(arena, of, 0, rows / heads, &of));
    WF_TRY(wf_view_split(arena, of, 1, to_halves ? 2 : rows / heads / 2, &of));
    for (int32_t d = 3; d < of->dims; d++)
        order[d] = d;
    WF_TRY(wf_view_permute(arena, of, order, (size_t)of->dims, &of));
    WF_TRY(wf_view_merge(arena, of, 1, &of));
    return wf_view_merge(arena, of, 0, out);
}

static weft_status change(struct evaluation *e, const struct wf_rule_term *term,
                          const struct wf_view *of, const struct wf_view **out)
{
    struct wf_arena *arena = e->mapping->arena;
    const int64_t *n = term->numbers;
    int64_t length = term->dim < of->dims ? of->shape[term->dim] : 0;

    switch (term->function) {
    case WF_RULE_SLICE:
        return wf_view_slice(arena, of, term->dim, n[0], n[1], out);
    case WF_RULE_PAD:
        return wf_view_pad(arena, of, term->dim, n[0], out);
    case WF_RULE_ALIGN:
        if (n[0] < 1 || n[0] > INT32_MAX)
            return wf_fail(WEFT_ERR_INVALID, "%" PRId64 " is not from 1 to 2^31 - 1", n[0]);
        return wf_view_pad(arena, of, term->dim, (length + n[0] - 1) / n[0] * n[0], out);
    case WF_RULE_GROUP:
        if (n[0] < 1 || length % n[0] != 0)
            return wf_fail(WEFT_ERR_INVALID, "%" PRId64 " indices are not %" PRId64 " groups",
                           length, n[0]);
        return wf_view_split(arena, of, term->dim, wf_max_i64(1, length / n[0]), out);
    case WF_RULE_FLATTEN:
        return wf_view_merge(arena, of, term->dim, out);
    case WF_RULE_TRANSPOSE:
        return transpose(arena, term, of, out);
    case WF_RULE_RESHAPE:
        return wf_view_reshape(arena, of, n, term->number_count, out);
    case WF_RULE_PERMUTE_HEADS:
    case WF_RULE_UNPERMUTE_HEADS:
        return permute_heads(arena, of, n[0], term->function == WF_RULE_PERMUTE_HEADS, out);
    default: /* tie */
        *out = of;
        return WEFT_OK;
    }
}

/* ---- all functions ---- */

static weft_status apply_function(struct evaluation *e, const struct wf_rule_term *term,
                                  struct wf_view_list *list, struct wf_view_list *out)
{
    const struct wf_view *made = NULL;

    switch (term->function) {
    case WF_RULE_CAT:
    case WF_RULE_STACK:
    case WF_RULE_INTERLEAVE:
        WF_TRY(join(e, term, list, &made));
        return wf_view_list_add(out, made);
    case WF_RULE_CAST:
        return wf_fail(WEFT_ERR_INVALID, "cast must be the outermost function of a rule");
    default:
        break;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct wf_view *of = list->items[i];
        if (term->function == WF_RULE_SPLIT) {
            WF_TRY(split(e, term, of, out));
        } else if (term->function == WF_RULE_UNSTACK) {
            WF_TRY(unstack(e, of, term->dim, out));
        } else if (term->function == WF_RULE_DEINTERLEAVE) {
            WF_TRY(deinterleave(e, term, of, out));
        } else {
            WF_TRY(change(e, term, of, &made));
            WF_TRY(wf_view_list_add(out, made));
        }
    }
    return WEFT_OK;
}

static weft_status evaluate(struct evaluation *e, const struct wf_rule_term *term,
                            struct wf_view_list *out)
{
    struct wf_view_list list = {0};
    weft_status status = WEFT_OK;
    bool tied = e->tied;

    if (term->function == WF_RULE_NAME) return evaluate_name(e, &term->pattern, out);
    e->tied |= term->function == WF_RULE_TIE;
    for (size_t i = 0; i < term->count && status == WEFT_OK; i++)
        status = evaluate(e, term->terms[i], &list);
    e->tied = tied;
    if (status == WEFT_OK) status = apply_function(e, term, &list, out);
    wf_view_list_free(&list);
    return status;
}

weft_status wf_rule_evaluate(struct wf_mapping *mapping, const struct wf_rule_term *term,
                             const struct wf_bound *bound, size_t wanted, struct wf_view_list *out,
                             int32_t *dtype)
{
    struct evaluation e = {.mapping = mapping, .bound = bound, .wanted = wanted};

    *dtype = -1;
    if (term->function != WF_RULE_CAST) return evaluate(&e, term, out);
    *dtype = term->dtype;
    return evaluate(&e, term->terms[0], out);
}
