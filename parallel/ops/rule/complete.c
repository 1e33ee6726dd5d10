/* complete.c - a rule that loses an index is refused when it is loaded.
 *
 * A factor that may be split must reach every output that depends on it: the output has it, or it
 * is reduced over it. */
#include "rule.h"

static bool slot_has(const struct wf_rule *rule, const struct wf_slot *slot, int symbol)
{
    for (int i = 0; i < slot->count; i++) {
        const struct wf_pattern *p = &rule->patterns[slot->first + i];
        for (int j = 0; j < p->count; j++)
            if (rule->parts[p->first + j] == symbol) return true;
    }
    return false;
}

static const char *symbol_dots(const struct wf_symbol *symbol)
{
    return symbol->kind >= WF_SYMBOL_RUN ? ".." : "";
}

/* WF_RULE "name" and the reason. */
WF_PRINTF(2, 3)
static weft_status refuse_rule(const struct wf_rule *rule, const char *format, ...)
{
    char reason[WF_ERROR_BYTES];

    KIT_PRINT_REST(reason, format);
    return wf_fail(WEFT_ERR_INVALID, "rule of %.*s: %s", WF_WORD(rule, rule->names[0]), reason);
}

/* SYMBOL must not get lost between INPUT, which has it, and OUTPUT, which depends on INPUT. */
static weft_status check_loss(const struct wf_rule *rule, int symbol, const struct wf_slot *input,
                              const struct wf_slot *output)
{
    const struct wf_symbol *s = &rule->symbols[symbol];

    if (slot_has(rule, output, symbol)) return WEFT_OK;
    return refuse_rule(rule,
                       "factor %.*s%s of %.*s may be split, but output %.*s neither has it nor is "
                       "reduced over it; add \"sum %.*s%s\", \"whole %.*s%s\" or a from clause",
                       WF_WORD(rule, s->name), symbol_dots(s), WF_WORD(rule, input->name),
                       WF_WORD(rule, output->name), WF_WORD(rule, s->name), symbol_dots(s),
                       WF_WORD(rule, s->name), symbol_dots(s));
}

static weft_status check_symbol(const struct wf_rule *rule, int symbol)
{
    const struct wf_symbol *s = &rule->symbols[symbol];
    bool in_inputs = false;

    for (int i = 0; i < rule->input_count; i++) {
        if (!slot_has(rule, &rule->slots[i], symbol) || rule->slots[i].shape_only) continue;
        in_inputs = true;
        if ((s->flags & (WF_WHOLE | WF_HALO | WF_MASK)) != 0 || s->reduce != WF_REDUCE_NONE)
            continue;
        for (int j = 0; j < rule->output_count; j++) {
            const struct wf_slot *output = &rule->slots[rule->input_count + j];
            if ((output->depends >> i & 1) != 0)
                WF_TRY(check_loss(rule, symbol, &rule->slots[i], output));
        }
    }
    for (int i = 0; i < rule->input_count; i++)
        in_inputs = in_inputs || slot_has(rule, &rule->slots[i], symbol);
    if (s->reduce != WF_REDUCE_NONE && !in_inputs)
        return refuse_rule(rule, "factor %.*s%s is reduced, but no input has it",
                           WF_WORD(rule, s->name), symbol_dots(s));
    if (s->reduce == WF_REDUCE_NONE && !in_inputs &&
        (s->flags & (WF_WHOLE | WF_OWN | WF_HALO)) == 0)
        return refuse_rule(rule,
                           "only outputs have factor %.*s%s; add \"own %.*s%s\" if a kernel can "
                           "compute a part of it, otherwise \"whole %.*s%s\"",
                           WF_WORD(rule, s->name), symbol_dots(s), WF_WORD(rule, s->name),
                           symbol_dots(s), WF_WORD(rule, s->name), symbol_dots(s));
    if ((s->flags & WF_WHOLE) != 0 && (s->flags & (WF_OWN | WF_MASK | WF_HERE)) != 0)
        return refuse_rule(rule, "factor %.*s%s is whole, and may be split by another clause",
                           WF_WORD(rule, s->name), symbol_dots(s));
    return WEFT_OK;
}

/* A factor is one dimension of a tensor, or a part of one. */
static weft_status check_repeats(const struct wf_rule *rule, const struct wf_slot *slot)
{
    for (int s = 0; s < rule->symbol_count; s++) {
        int count = 0;
        for (int i = 0; i < slot->count; i++) {
            const struct wf_pattern *p = &rule->patterns[slot->first + i];
            for (int j = 0; j < p->count; j++)
                count += rule->parts[p->first + j] == s;
        }
        if (count > 1 && rule->symbols[s].kind < WF_SYMBOL_RUN)
            return refuse_rule(rule, "factor %.*s stands twice in tensor %.*s",
                               WF_WORD(rule, rule->symbols[s].name), WF_WORD(rule, slot->name));
    }
    return WEFT_OK;
}

/* Entries with "@" stand in tensors with runs on both sides or a run before them, or alone. */
static weft_status check_slot(const struct wf_rule *rule, const struct wf_slot *slot)
{
    int runs = 0, first = -1;

    for (int i = 0; i < slot->count; i++) {
        const struct wf_pattern *p = &rule->patterns[slot->first + i];
        int symbol = p->count > 0 ? rule->parts[p->first] : -1;
        if (p->kind != WF_PATTERN_SYMBOL || rule->symbols[symbol].kind < WF_SYMBOL_RUN) continue;
        if (runs++ > 0 && symbol != first)
            return refuse_rule(rule, "tensor %.*s has two different runs of dimensions",
                               WF_WORD(rule, slot->name));
        first = symbol;
    }
    if (runs > 2)
        return refuse_rule(rule, "tensor %.*s has %d runs of dimensions; the maximum is 2",
                           WF_WORD(rule, slot->name), runs);
    return WEFT_OK;
}

/* A group has a factor for each dimension that an attribute lists. */
static weft_status check_groups(const struct wf_rule *rule)
{
    for (int s = 0; s < rule->symbol_count; s++) {
        bool placed = rule->symbols[s].kind != WF_SYMBOL_GROUP;
        for (int i = 0; i < rule->pattern_count && !placed; i++) {
            const struct wf_pattern *p = &rule->patterns[i];
            for (int j = 0; j < p->count; j++)
                placed = placed || (p->attr != 0 && rule->parts[p->first + j] == s);
        }
        if (!placed)
            return refuse_rule(rule,
                               "%.*s is a group of dimensions; write %.*s@ and the attribute that "
                               "lists them, or a factor in small letters",
                               WF_WORD(rule, rule->symbols[s].name),
                               WF_WORD(rule, rule->symbols[s].name));
    }
    return WEFT_OK;
}

static weft_status check_lists(const struct wf_rule *rule)
{
    for (int i = 0; i < rule->output_count; i++)
        if (rule->slots[rule->input_count + i].optional)
            return refuse_rule(rule, "output %.*s cannot be optional",
                               WF_WORD(rule, rule->slots[rule->input_count + i].name));
    for (int i = 0; i < rule->input_count; i++)
        if (rule->slots[i].list && rule->slots[i].optional)
            return refuse_rule(rule, "a list of tensors (%.*s) cannot be optional",
                               WF_WORD(rule, rule->slots[i].name));
    return WEFT_OK;
}

/* How many tensors from FIRST on have SYMBOL as a dimension by itself. */
static int count_alone(const struct wf_rule *rule, int first, int count, int symbol)
{
    int found = 0;

    for (int i = first; i < first + count; i++)
        for (int j = 0; j < rule->slots[i].count; j++) {
            const struct wf_pattern *p = &rule->patterns[rule->slots[i].first + j];
            found += p->count == 1 && rule->parts[p->first] == symbol;
        }
    return found;
}

/* The whole and its parts are whole factors, and dimensions by themselves: the whole of one tensor,
 * the parts of tensors on the other side of the arrow. */
static weft_status check_cut(const struct wf_rule *rule)
{
    int whole = rule->cut.whole - 1, in = rule->input_count, out = rule->output_count;
    bool joins;

    if (whole < 0) return WEFT_OK;
    joins = count_alone(rule, in, out, whole) == 1;
    if (count_alone(rule, 0, in + out, whole) != 1)
        return refuse_rule(rule, "parts: one tensor must have %.*s as a dimension",
                           WF_WORD(rule, rule->symbols[whole].name));
    for (int i = -1; i < rule->cut.count; i++) {
        const struct wf_symbol *s = &rule->symbols[i < 0 ? whole : rule->cut.parts[i]];
        if (s->kind != WF_SYMBOL_FACTOR || (s->flags & WF_WHOLE) == 0)
            return refuse_rule(rule, "parts: add \"whole %.*s\"", WF_WORD(rule, s->name));
        if (i >= 0 &&
            (count_alone(rule, joins ? 0 : in, joins ? in : out, rule->cut.parts[i]) == 0 ||
             count_alone(rule, joins ? in : 0, joins ? out : in, rule->cut.parts[i]) > 0))
            return refuse_rule(rule, "parts: %s must have %.*s as a dimension",
                               joins ? "inputs alone" : "outputs alone", WF_WORD(rule, s->name));
    }
    return WEFT_OK;
}

weft_status wf_rule_complete(const struct wf_rule *rule)
{
    bool is_made = rule->make.length > 0;

    for (int i = 0; i < rule->input_count + rule->output_count; i++) {
        WF_TRY(check_slot(rule, &rule->slots[i]));
        WF_TRY(check_repeats(rule, &rule->slots[i]));
    }
    WF_TRY(check_lists(rule));
    WF_TRY(check_cut(rule));
    WF_TRY(check_groups(rule));
    for (int i = 0; i < rule->symbol_count && !is_made; i++)
        WF_TRY(check_symbol(rule, i));
    for (int i = 0; i < rule->output_count; i++) {
        const struct wf_slot *output = &rule->slots[rule->input_count + i];
        if (output->inplace != 0 && rule->slots[output->inplace - 1].optional)
            return refuse_rule(rule, "input %.*s is written in place and cannot be optional",
                               WF_WORD(rule, rule->slots[output->inplace - 1].name));
    }
    return WEFT_OK;
}
