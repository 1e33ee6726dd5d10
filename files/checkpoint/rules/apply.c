/* apply.c - rules are applied to the tensors of a checkpoint.
 *
 * Rules are taken in the order of the file.  The first name of a rule's expression is matched
 * against all tensors that are not wholly used yet; each way in which it matches makes new tensors.
 * So a last rule `* = *` keeps what is left. */
#include "checkpoint/rules/rules.h"

#include <stdio.h>
#include <string.h>

/* ---- targets ---- */

static size_t slot_of(const struct wf_mapping *mapping, const char *name)
{
    size_t mask = mapping->table_size - 1, slot = (size_t)wf_hash(0, name, strlen(name)) & mask;

    while (mapping->table[slot] != 0 &&
           strcmp(mapping->targets[mapping->table[slot] - 1].name, name) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

struct wf_target *wf_mapping_find(const struct wf_mapping *mapping, const char *name)
{
    uint32_t number = mapping->table_size > 0 ? mapping->table[slot_of(mapping, name)] : 0;

    return number != 0 ? &mapping->targets[number - 1] : NULL;
}

/* Room for one more target, with a table that is at most half full. */
static weft_status reserve(struct wf_mapping *mapping)
{
    size_t capacity = mapping->capacity != 0 ? 2 * mapping->capacity : 64;
    struct wf_target *targets;
    uint32_t *table;

    if (mapping->count < mapping->capacity) return WEFT_OK;
    table = wf_calloc(2 * capacity, sizeof *table);
    if (table == NULL) return wf_fail_memory(2 * capacity * sizeof *table);
    targets = wf_realloc(mapping->targets, capacity * sizeof *targets);
    if (targets == NULL) {
        wf_free(table);
        return wf_fail_memory(capacity * sizeof *targets);
    }
    wf_free(mapping->table);
    mapping->table = table;
    mapping->table_size = 2 * capacity;
    mapping->targets = targets;
    mapping->capacity = capacity;
    for (size_t i = 0; i < mapping->count; i++)
        table[slot_of(mapping, targets[i].name)] = (uint32_t)i + 1;
    return WEFT_OK;
}

static weft_status count_use(void *state, const struct wf_view *leaf, const struct wf_view_box *box)
{
    struct wf_mapping *mapping = state;
    int64_t elements = 1;

    for (int32_t d = 0; d < leaf->dims; d++)
        elements *= box->size[d];
    if (leaf->kind == WF_VIEW_SOURCE && !leaf->tied) mapping->used[leaf->source] += elements;
    return WEFT_OK;
}

static weft_status add_target(struct wf_mapping *mapping, const struct wf_rule *rule,
                              const char *name, const struct wf_view *view, int32_t dtype)
{
    const struct wf_target *other = wf_mapping_find(mapping, name);
    struct wf_view_box whole;
    bool is_cast = dtype >= 0;
    int64_t bytes = 0;

    if (other != NULL)
        return wf_fail(WEFT_ERR_INVALID, "tensor \"%.200s\" is made here and in line %u", name,
                       other->line);
    if (!is_cast) dtype = view->dtype;
    if (dtype != view->dtype) WF_TRY(wf_cast_check(view->dtype, dtype));
    if (!wf_file_bytes((size_t)dtype, view->dims, view->shape, &bytes))
        return wf_fail(WEFT_ERR_INVALID,
                       "tensor \"%.200s\" would have 2^62 bits or more, or half a byte", name);
    WF_TRY(reserve(mapping));
    name = wf_arena_text(mapping->arena, name, strlen(name));
    if (name == NULL) return wf_fail_memory(sizeof *other);
    mapping->table[slot_of(mapping, name)] = (uint32_t)mapping->count + 1;
    mapping->targets[mapping->count++] =
        (struct wf_target){name, view, dtype, rule->line, is_cast ? rule->line : 0};
    wf_view_whole(view, &whole);
    return bytes > 0 ? wf_view_visit(view, &whole, count_use, mapping) : WEFT_OK;
}

/* ---- rules that make tensors ---- */

struct application {
    struct wf_mapping *mapping;
    const struct wf_rule *rule;
    const struct wf_pattern *driver;
    int generated; /* the capture of the new name that numbers values; -1: none */
    bool sees_all; /* tensors that are used, too */
    bool matched;
};

static const struct wf_rule_term *first_name(const struct wf_rule_term *term, bool *tied)
{
    while (term->function != WF_RULE_NAME) {
        *tied |= term->function == WF_RULE_TIE;
        term = term->terms[0];
    }
    return term;
}

static bool is_used(const struct wf_mapping *mapping, size_t index)
{
    const struct wf_tensor *tensor = &mapping->base->tensors[index];
    int64_t elements = 1;

    if ((mapping->state[index] & WF_USED_DROPPED) != 0) return true;
    if ((mapping->state[index] & WF_USED_NAMED) == 0) return false;
    for (int32_t d = 0; d < tensor->dims; d++)
        elements *= tensor->shape[d];
    return mapping->used[index] >= elements;
}

/* The new name of value NUMBER. */
static weft_status new_name(const struct application *a, const struct wf_bound *bound,
                            size_t number, struct wf_text *out)
{
    struct wf_bound named = *bound;
    char digits[24];

    out->length = 0;
    if (a->generated >= 0) {
        snprintf(digits, sizeof digits, "%zu", number);
        named.text[a->generated] = digits;
        named.length[a->generated] = strlen(digits);
    }
    wf_pattern_name(&a->rule->pattern, number, &named, out);
    wf_text_append(out, "", 0);
    return wf_text_status(out);
}

static weft_status add_values(struct application *a, const struct wf_bound *bound,
                              const struct wf_view_list *values, int32_t dtype)
{
    size_t wanted = a->rule->pattern.choice_count;
    struct wf_text name = {0};
    weft_status status = WEFT_OK;

    if (wanted == 0 && a->generated < 0) wanted = 1;
    if (wanted > 0 && values->count != wanted)
        return wf_fail(WEFT_ERR_INVALID,
                       "the expression has %zu values, but the new name \"%.200s\" has room for "
                       "%zu",
                       values->count, a->rule->pattern.text, wanted);
    for (size_t i = 0; i < values->count && status == WEFT_OK; i++) {
        status = new_name(a, bound, i, &name);
        if (status == WEFT_OK)
            status = add_target(a->mapping, a->rule, name.data, values->items[i], dtype);
    }
    wf_text_free(&name);
    return status;
}

/* The driver matches a tensor, with captures BOUND. */
static weft_status apply_match(struct application *a, struct wf_bound *bound)
{
    struct wf_view_list values = {0};
    struct wf_text name = {0};
    const struct wf_target *known;
    int32_t dtype = -1;
    weft_status status;

    for (size_t c = 0; c < WF_MOST_CAPTURES; c++)
        if ((a->rule->pattern.captures >> c & 1) == 0) bound->text[c] = NULL;
    a->matched = true;
    status = new_name(a, bound, 0, &name);
    if (status == WEFT_OK) {
        known = wf_mapping_find(a->mapping, name.data);
        if (known == NULL || known->line != a->rule->line) { /* otherwise made by this match */
            status = wf_rule_evaluate(a->mapping, a->rule->term, bound,
                                      a->rule->pattern.choice_count, &values, &dtype);
            if (status == WEFT_OK) status = add_values(a, bound, &values, dtype);
            if (status != WEFT_OK) wf_fail_context(status, "tensor \"%.200s\"", name.data);
        }
    }
    wf_view_list_free(&values);
    wf_text_free(&name);
    return status;
}

/* Call apply_match for the tensors that match the driver with CHOICE. */
static weft_status apply_choice(struct application *a, size_t choice)
{
    const weft_checkpoint *base = a->mapping->base;
    struct wf_text prefix = {0};
    struct wf_bound bound = {0};
    weft_status status;

    wf_pattern_name(a->driver, choice, &bound, &prefix);
    wf_text_append(&prefix, "", 0);
    status = wf_text_status(&prefix);
    for (size_t i = 0; i < base->tensor_count && status == WEFT_OK; i++) {
        int order = strncmp(base->tensors[i].name, prefix.data, prefix.length);
        if (order > 0) break;
        if (order < 0 || (!a->sees_all && is_used(a->mapping, i))) continue;
        bound = (struct wf_bound){0};
        if (wf_pattern_match(a->driver, choice, base->tensors[i].name, &bound))
            status = apply_match(a, &bound);
    }
    wf_text_free(&prefix);
    return status;
}

static weft_status apply_map(struct wf_mapping *mapping, const struct wf_rule *rule, bool *matched)
{
    struct application a = {.mapping = mapping, .rule = rule, .generated = -1};
    uint32_t unknown;
    size_t choices;

    a.driver = &first_name(rule->term, &a.sees_all)->pattern;
    unknown = rule->pattern.captures & ~a.driver->captures;
    if ((unknown & (unknown - 1)) != 0 || (unknown != 0 && rule->pattern.choice_count > 0))
        return wf_fail(WEFT_ERR_INVALID,
                       "the new name \"%.200s\" has captures that \"%.200s\" has not; at most one "
                       "is possible, which then numbers several values",
                       rule->pattern.text, a.driver->text);
    if (unknown != 0) a.generated = __builtin_ctz(unknown);
    choices = a.driver->choice_count > 0 ? a.driver->choice_count : 1;
    for (size_t i = 0; i < choices; i++)
        WF_TRY(apply_choice(&a, i));
    *matched = a.matched;
    return WEFT_OK;
}

/* ---- other rules ---- */

static void apply_drop(struct wf_mapping *mapping, const struct wf_rule *rule, bool *matched)
{
    for (size_t i = 0; i < mapping->base->tensor_count; i++)
        if (!is_used(mapping, i) && wf_rule_matches(rule, mapping->base->tensors[i].name)) {
            mapping->state[i] |= WF_USED_DROPPED;
            mapping->lines[i] = rule->line;
            *matched = true;
        }
}

static weft_status apply_rule(struct wf_mapping *mapping, const struct wf_rule *rule)
{
    bool matched = false;

    mapping->line = rule->line;
    if (rule->kind == WF_RULE_CASTS) return wf_rule_cast(mapping, rule);
    if (rule->kind == WF_RULE_DROP)
        apply_drop(mapping, rule, &matched);
    else
        WF_TRY(apply_map(mapping, rule, &matched));
    return matched ? WEFT_OK : wf_rule_unmatched(mapping, rule);
}

weft_status wf_mapping_make(const weft_checkpoint *base, const weft_checkpoint_rules *rules,
                            struct wf_arena *arena, struct wf_mapping *out)
{
    size_t count = base->tensor_count;

    *out = (struct wf_mapping){.base = base, .rules = rules, .arena = arena};
    out->state = wf_calloc(count, sizeof *out->state);
    out->used = wf_calloc(count, sizeof *out->used);
    out->lines = wf_calloc(count, sizeof *out->lines);
    if (out->state == NULL || out->used == NULL || out->lines == NULL)
        return wf_fail_memory(count * sizeof *out->used);
    for (int casts = 0; casts < 2; casts++) /* casts are for tensors that the others have made */
        for (size_t i = 0; i < rules->count; i++) {
            weft_status status = WEFT_OK;
            if ((rules->rules[i].kind == WF_RULE_CASTS) == (casts == 1))
                status = apply_rule(out, &rules->rules[i]);
            if (status != WEFT_OK)
                return wf_fail_context(status, "rules, line %u", rules->rules[i].line);
        }
    return WEFT_OK;
}

void wf_mapping_free(struct wf_mapping *mapping)
{
    wf_free(mapping->targets);
    wf_free(mapping->table);
    wf_free(mapping->state);
    wf_free(mapping->used);
    wf_free(mapping->lines);
    *mapping = (struct wf_mapping){0};
}
