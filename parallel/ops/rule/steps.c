/* steps.c - operators that are made of others: "gelu_mlp is linear; gelu; linear". */
#include "registry.h"

#include <string.h>

enum { DEPTH = 8 };

struct listing {
    const struct wf_op_entry *(*find)(const void *, const char *);
    const void *where;
    const struct wf_op_entry *above[DEPTH]; /* whose parts are being listed */
    struct wf_op_step *steps;
    uint32_t count;
};

static weft_status refuse(const struct wf_op_entry *entry, const char *reason, const char *name)
{
    return wf_fail(WEFT_ERR_INVALID, "operator %.*s%.300s: %s%.64s", (int)entry->length,
                   entry->name, entry->rules[0]->body, reason, name);
}

/* Inputs that a call of ENTRY has without the optional ones at the end. */
static uint32_t count_inputs(const struct wf_op_entry *entry)
{
    const struct wf_rule *rule = entry->rules[0];
    uint32_t count = rule->input_count;

    while (count > 0 && rule->slots[count - 1].optional)
        count--;
    return count;
}

/* List the parts of ENTRY, which is a part itself if DEPTH is not 0. */
static weft_status list_parts(struct listing *l, const struct wf_op_entry *entry, uint32_t depth)
{
    const struct wf_rule *rule = entry->rules[0];

    if (depth == DEPTH) return refuse(entry, "its parts have parts in more than 8 levels", "");
    if (entry->rule_count > 1) return refuse(entry, "it has another rule too", "");
    l->above[depth] = entry;
    for (int i = 0; i < rule->step_count; i++) {
        struct wf_word word = rule->names[rule->name_count + i];
        const struct wf_op_entry *part;
        struct wf_op_step *step = &l->steps[l->count];
        if (l->count == WF_OP_STEPS) return refuse(entry, "it has more than 32 parts", "");
        if (word.length >= sizeof step->name) return refuse(entry, "a name is too long", "");
        memcpy(step->name, rule->text + word.at, word.length);
        step->name[word.length] = '\0';
        step->attrs = 0;
        part = l->find(l->where, step->name);
        if (part == NULL) return refuse(entry, "there is no rule for its part ", step->name);
        for (uint32_t d = 0; d <= depth; d++)
            if (l->above[d] == part) return refuse(entry, "it is made of itself, by ", step->name);
        if (wf_op_is_chain(part)) {
            WF_TRY(list_parts(l, part, depth + 1));
            continue;
        }
        step->inputs = rule->parts[i] != 0 ? rule->parts[i] : count_inputs(part);
        l->count++;
    }
    return WEFT_OK;
}

weft_status wf_op_list_steps(const struct wf_op_entry *entry,
                             const struct wf_op_entry *(*find)(const void *, const char *),
                             const void *where, struct wf_op_step *out, uint32_t *count)
{
    struct listing l = {.find = find, .where = where, .steps = out};

    WF_TRY(list_parts(&l, entry, 0));
    *count = l.count;
    return WEFT_OK;
}
