/* pack.c - a rule as one block of memory, shared by those who use it. */
#include "rule.h"

#include <string.h>

/* Copy the array FROM behind *AT and move *AT. */
static void *place_array(char **at, const void *from, size_t bytes)
{
    void *to = *at;

    if (bytes > 0) memcpy(to, from, bytes);
    *at += (bytes + 7) & ~(size_t)7;
    return to;
}

static size_t array_bytes(const struct wf_rule *rule)
{
    size_t tensors = (size_t)rule->input_count + rule->output_count, bytes = 0;

#define ROOM(count, array) (((size_t)(count) * sizeof *rule->array + 7) & ~(size_t)7)
    bytes += ROOM(rule->name_count + rule->step_count, names) + ROOM(rule->attr_count, attrs);
    bytes += ROOM(tensors, slots) + ROOM(rule->symbol_count, symbols);
    bytes += ROOM(rule->pattern_count, patterns) + ROOM(rule->part_count, parts);
    return bytes + ROOM(rule->term_count, terms);
#undef ROOM
}

size_t wf_rule_bytes(const struct wf_rule *rule)
{
    return sizeof *rule + array_bytes(rule) + strlen(rule->text) + 1;
}

weft_status wf_rule_pack(const struct wf_rule *from, struct wf_rule **out)
{
    size_t bytes = wf_rule_bytes(from), tensors = (size_t)from->input_count + from->output_count;
    struct wf_rule *rule = wf_alloc(bytes);
    char *at;

    if (rule == NULL) return wf_fail_memory(bytes);
    at = (char *)(rule + 1);
    *rule = *from;
    atomic_init(&rule->references, 1);
    rule->attrs = place_array(&at, from->attrs, from->attr_count * sizeof *from->attrs);
    rule->symbols = place_array(&at, from->symbols, from->symbol_count * sizeof *from->symbols);
    rule->slots = place_array(&at, from->slots, tensors * sizeof *from->slots);
    rule->terms = place_array(&at, from->terms, from->term_count * sizeof *from->terms);
    rule->names = place_array(&at, from->names,
                              (size_t)(from->name_count + from->step_count) * sizeof *from->names);
    rule->patterns = place_array(&at, from->patterns, from->pattern_count * sizeof *from->patterns);
    rule->parts = place_array(&at, from->parts, from->part_count);
    rule->text = memcpy(at, from->text, strlen(from->text) + 1);
    rule->hash = wf_hash(0, rule->text, strlen(rule->text));
    rule->body = rule->text + rule->names[rule->name_count - 1].at +
                 rule->names[rule->name_count - 1].length;
    *out = rule;
    return WEFT_OK;
}

struct wf_rule *wf_rule_retain(struct wf_rule *rule)
{
    atomic_fetch_add_explicit(&rule->references, 1, memory_order_relaxed);
    return rule;
}

void wf_rule_drop(struct wf_rule *rule)
{
    if (rule == NULL) return;
    if (atomic_fetch_sub_explicit(&rule->references, 1, memory_order_acq_rel) == 1) wf_free(rule);
}
