/* casts.c - rules `NAME : cast DTYPE`.  They cast new tensors of floating point; the first line
 * that matches a name decides.  A line that has no effect is reported. */
#include "checkpoint/rules/rules.h"

#include <string.h>

weft_status wf_cast_check(int32_t from, int32_t to)
{
    const struct wf_file_dtype *a = wf_file_dtype((size_t)from), *b = wf_file_dtype((size_t)to);
    bool first = a->name[0] == 'C', second = b->name[0] == 'C';

    if (a->dtype < WEFT_DTYPE_COUNT && first == second) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED, "weft does not cast %s to %s", a->name, b->name);
}

static bool is_float(int32_t dtype)
{
    const struct wf_file_dtype *row = wf_file_dtype((size_t)dtype);

    return row->dtype < WEFT_DTYPE_COUNT && (row->name[0] == 'F' || strcmp(row->name, "BF16") == 0);
}

/* All that RULE matches is not of floating point, such as TARGET. */
static weft_status fail_kept(const struct wf_mapping *mapping, const struct wf_rule *rule,
                             const struct wf_target *target)
{
    const struct wf_file_dtype *has = wf_file_dtype((size_t)target->dtype);
    const char *to = wf_dtype_name(wf_file_dtype((size_t)rule->dtype)->dtype), *of = "...";
    bool is_integer = strchr("IUB", has->name[0]) != NULL;
    struct wf_text advice = {0};

    if (target->view->kind == WF_VIEW_SOURCE)
        of = mapping->base->tensors[target->view->source].name;
    if (is_integer)
        wf_text_add(&advice,
                    "; to cast \"%.200s\", make it with \"%.200s = cast(%.200s, %s)\", before line "
                    "%u or in its place",
                    target->name, target->name, of, to, target->line);
    wf_text_append(&advice, "", 0);
    return wf_fail_text(WEFT_ERR_NOT_FOUND, &advice,
                        "\"%.200s\" casts nothing: such a line casts tensors of floating point, "
                        "and \"%.200s\" is %s%s; a rule that begins with ? may cast none",
                        rule->pattern.text, target->name, has->name, advice.data);
}

/* No new tensor matches RULE. */
static weft_status fail_unmatched(const struct wf_mapping *mapping, const struct wf_rule *rule)
{
    const weft_checkpoint *base = mapping->base;
    size_t found = base->tensor_count;
    const char *pattern = rule->pattern.text, *name;
    uint8_t state;

    for (size_t i = 0; i < base->tensor_count; i++) {
        bool is_left = (mapping->state[i] & (WF_USED_NAMED | WF_USED_DROPPED)) == 0;
        if ((found < base->tensor_count && !is_left) ||
            !wf_rule_matches(rule, base->tensors[i].name))
            continue;
        found = i;
        if (is_left) break;
    }
    if (found == base->tensor_count)
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "no new tensor matches \"%.200s\"; a rule that begins with ? may match none",
                       pattern);
    state = mapping->state[found];
    name = base->tensors[found].name;
    if ((state & (WF_USED_NAMED | WF_USED_DROPPED)) == 0)
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "no new tensor matches \"%.200s\", because no rule makes a tensor of "
                       "\"%.200s\"; add the rule \"* = *\" as the last one, which keeps what is "
                       "left",
                       pattern, name);
    return wf_fail(WEFT_ERR_NOT_FOUND,
                   "no new tensor matches \"%.200s\": line %u %s \"%.200s\"; a line with cast "
                   "matches names of new tensors, and one that begins with ? may match none",
                   pattern, mapping->lines[found],
                   (state & WF_USED_DROPPED) != 0 ? "drops" : "makes tensors with other names of",
                   name);
}

weft_status wf_rule_cast(struct wf_mapping *mapping, const struct wf_rule *rule)
{
    const struct wf_target *taken = NULL; /* that an earlier line casts */
    const struct wf_target *kept = NULL;  /* that is not of floating point */
    bool casts = false, is_made = false;  /* this line, or the rule that makes it, casts one */

    for (size_t i = 0; i < mapping->count; i++) {
        struct wf_target *target = &mapping->targets[i];
        weft_status status;
        if (!wf_rule_matches(rule, target->name)) continue;
        if (target->cast != 0) {
            if (target->cast != target->line)
                taken = target;
            else
                is_made = true;
            continue;
        }
        if (!is_float(target->dtype)) {
            kept = target;
            continue;
        }
        status = wf_cast_check(target->dtype, rule->dtype);
        if (status != WEFT_OK) return wf_fail_context(status, "tensor \"%.200s\"", target->name);
        target->dtype = rule->dtype;
        target->cast = rule->line;
        casts = true;
    }
    if (casts) return WEFT_OK;
    if (taken != NULL) {
        wf_rule_warn(mapping, rule,
                     "\"%.200s\" casts nothing: line %u casts \"%.200s\"; the first line that "
                     "matches decides",
                     rule->pattern.text, taken->cast, taken->name);
        return WEFT_OK;
    }
    if (is_made || rule->optional) return WEFT_OK;
    return kept != NULL ? fail_kept(mapping, rule, kept) : fail_unmatched(mapping, rule);
}
