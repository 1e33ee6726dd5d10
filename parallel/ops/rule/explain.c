/* explain.c - a rule in words. */
#include "registry.h"
#include "rule.h"

#include "weft/ops.h"

#include <string.h>

/* "a", "a and b", "a, b and c": the slots whose bit is set; then "is" or "are". */
static void add_list(const struct wf_rule *rule, uint32_t marked, bool verb, struct wf_text *out)
{
    bool one = (marked & (marked - 1)) == 0;

    for (int i = 0; marked != 0; i++) {
        if ((marked >> i & 1) == 0) continue;
        marked &= ~(UINT32_C(1) << i);
        wf_text_add(out, "%.*s%s", WF_WORD(rule, rule->slots[i].name),
                    marked == 0                    ? ""
                    : (marked & (marked - 1)) == 0 ? " and "
                                                   : ", ");
    }
    if (verb) wf_text_add(out, one ? " is" : " are");
}

static void add_symbol(const struct wf_rule *rule, const struct wf_symbol *s, struct wf_text *out)
{
    if (s->kind != WF_SYMBOL_FACTOR) wf_text_add(out, "each dimension of ");
    wf_text_add(out, "%.*s%s", WF_WORD(rule, s->name), s->kind >= WF_SYMBOL_RUN ? ".." : "");
}

static bool has_symbol(const struct wf_rule *rule, const struct wf_slot *slot, int symbol)
{
    for (int i = 0; i < slot->count; i++) {
        const struct wf_pattern *p = &rule->patterns[slot->first + i];
        for (int j = 0; j < p->count; j++)
            if (rule->parts[p->first + j] == symbol) return true;
    }
    return false;
}

/* Bits of the slots that have SYMBOL. */
static uint32_t slots_with(const struct wf_rule *rule, int symbol)
{
    uint32_t marked = 0;

    for (int i = 0; i < rule->input_count + rule->output_count; i++)
        if (has_symbol(rule, &rule->slots[i], symbol)) marked |= UINT32_C(1) << i;
    return marked;
}

static uint32_t all_inputs(const struct wf_rule *rule)
{
    return (UINT32_C(1) << rule->input_count) - 1;
}

/* ---- the tensors ---- */

static void add_tensors(const struct wf_rule *rule, int first, int count, struct wf_text *out)
{
    for (int i = 0; i < count; i++) {
        const struct wf_slot *slot = &rule->slots[first + i];
        wf_text_add(out, "%s%s%.*s%s",
                    i == 0           ? ""
                    : i + 1 == count ? " and "
                                     : ", ",
                    slot->list ? "the list " : "", WF_WORD(rule, slot->name),
                    slot->optional ? " (may be absent)" : "");
        if (slot->inplace != 0)
            wf_text_add(out, " (in place of %.*s)",
                        WF_WORD(rule, rule->slots[slot->inplace - 1].name));
    }
}

static void add_head(const struct wf_rule *rule, struct wf_text *out)
{
    static const char *const signs[] = {"",           "is",           "is not",     "is less than",
                                        "is at most", "is more than", "is at least"};
    bool any = false;

    for (int i = 0; i < rule->attr_count; i++) {
        const struct wf_rule_attr *a = &rule->attrs[i];
        if (a->compare == WF_IS_LISTED) continue;
        wf_text_add(out, "%s%.*s %s %.*s", any ? " and " : "  It applies if ",
                    WF_WORD(rule, a->name), signs[a->compare], WF_WORD(rule, a->value));
        any = true;
    }
    if (any) wf_text_append(out, ".\n", 2);
    wf_text_add(out, "  It %s", rule->input_count > 0 ? "reads " : "has no input");
    add_tensors(rule, 0, rule->input_count, out);
    wf_text_add(out, "%s", rule->output_count > 0 ? ", and writes " : ", and writes nothing");
    add_tensors(rule, rule->input_count, rule->output_count, out);
    wf_text_append(out, ".\n", 2);
}

/* ---- splits ---- */

/* What happens to outputs that lack the symbol, and depend on an input that has it. */
static void add_left(const struct wf_rule *rule, int symbol, struct wf_text *out)
{
    const struct wf_symbol *s = &rule->symbols[symbol];
    uint32_t in = slots_with(rule, symbol) & all_inputs(rule), left = 0;
    const char *kind = (s->flags & WF_MASK) != 0     ? "P(sum)"
                       : s->reduce == WF_REDUCE_ALL  ? "P(min)"
                       : s->reduce == WF_REDUCE_ANY  ? "P(max)"
                       : s->reduce == WF_REDUCE_NORM ? "the partial that the attribute p gives"
                                                     : NULL;

    for (int i = 0; i < rule->output_count; i++) {
        const struct wf_slot *slot = &rule->slots[rule->input_count + i];
        if (!has_symbol(rule, slot, symbol) && (slot->depends & in) != 0)
            left |= UINT32_C(1) << (rule->input_count + i);
    }
    if (left == 0 || (s->reduce == WF_REDUCE_NONE && (s->flags & WF_MASK) == 0)) return;
    for (int i = 0; i < rule->input_count; i++)
        if (rule->slots[i].adds && (in >> i & 1) == 0) left |= UINT32_C(1) << i;
    wf_text_append(out, ", ", 2);
    add_list(rule, left, true, out);
    if (kind != NULL)
        wf_text_add(out, " %s", kind);
    else
        wf_text_add(out, " P(%s)", wf_reduce_name(s->reduce));
}

static void add_split(const struct wf_rule *rule, int symbol, struct wf_text *out)
{
    const struct wf_symbol *s = &rule->symbols[symbol];
    uint32_t split = slots_with(rule, symbol), others = all_inputs(rule) & ~split;

    for (int i = 0; i < rule->input_count; i++)
        if (rule->slots[i].adds || rule->slots[i].shape_only) others &= ~(UINT32_C(1) << i);
    wf_text_add(out, "  - split ");
    add_symbol(rule, s, out);
    if ((s->flags & WF_EVEN) != 0) wf_text_add(out, " into equal parts");
    if (s->step != 0) wf_text_add(out, " at multiples of %u", s->step);
    if ((s->flags & WF_VARIES) != 0) wf_text_add(out, " where it has one size");
    wf_text_add(out, ": ");
    add_list(rule, split, true, out);
    wf_text_add(out, " split");
    if (others != 0) {
        wf_text_append(out, ", ", 2);
        add_list(rule, others, true, out);
        wf_text_add(out, " R");
    }
    add_left(rule, symbol, out);
    if ((s->flags & WF_MASK) != 0) wf_text_add(out, "; a lookup outside of the part gives 0");
    if ((s->flags & (WF_OWN | WF_HERE)) != 0) wf_text_add(out, "; the kernel needs its offset");
    wf_text_char(out, '\n');
}

static bool is_split(const struct wf_rule *rule, int symbol)
{
    const struct wf_symbol *s = &rule->symbols[symbol];

    if ((s->flags & (WF_WHOLE | WF_HALO)) != 0) return false;
    return (s->flags & WF_OWN) != 0 || (slots_with(rule, symbol) & all_inputs(rule)) != 0;
}

static void add_whole(const struct wf_rule *rule, struct wf_text *out)
{
    bool any = false;

    for (int i = 0; i < rule->symbol_count; i++) {
        if (is_split(rule, i)) continue;
        wf_text_add(out, "%s", any ? ", " : "  These are never split: ");
        add_symbol(rule, &rule->symbols[i], out);
        if ((rule->symbols[i].flags & WF_HALO) != 0) wf_text_add(out, " (windows overlap)");
        any = true;
    }
    if (any) wf_text_append(out, "\n", 1);
}

static void add_cut(const struct wf_rule *rule, struct wf_text *out)
{
    if (rule->cut.whole == 0) return;
    wf_text_add(out, "  - split each part of ");
    add_symbol(rule, &rule->symbols[rule->cut.whole - 1], out);
    wf_text_add(out, ": the whole is B, and the parts are S or B\n");
}

/* ---- partials ---- */

static void add_term(const struct wf_rule *rule, const struct wf_term *t, struct wf_text *out)
{
    static const struct {
        const char *given, *left;
    } ways[] = {{"P(sum) or P(avg)", "the same (it is linear in finite numbers)"},
                {"P(avg)", "P(avg) (it is linear in finite numbers, up to a constant)"},
                {"P(max) or P(min)", "the same (it is increasing)"},
                {"P(max) or P(min)", "P(min) or P(max) (it is decreasing)"},
                {"any P", "the same (values pass unchanged)"}};
    uint32_t others = all_inputs(rule) & ~t->inputs, outputs = 0;

    for (int i = 0; i < rule->input_count; i++)
        if (rule->slots[i].shape_only) others &= ~(UINT32_C(1) << i);
    for (int i = 0; i < rule->output_count; i++)
        if ((rule->slots[rule->input_count + i].depends & t->inputs) != 0)
            outputs |= UINT32_C(1) << (rule->input_count + i);
    wf_text_add(out, "  - take contributions: ");
    add_list(rule, t->inputs, true, out);
    if (t->clause < WF_HOM)
        wf_text_add(out, " %s, ", ways[t->clause].given);
    else
        wf_text_add(out, " P(%s), ", wf_reduce_name(t->from));
    if (others != 0) {
        add_list(rule, others, true, out);
        wf_text_add(out, " R, ");
    }
    add_list(rule, outputs, true, out);
    if (t->clause < WF_HOM)
        wf_text_add(out, " %s\n", ways[t->clause].left);
    else
        wf_text_add(out, " P(%s)\n", wf_reduce_name(t->to));
}

/* A sum of infinities of both signs, or an infinity times a contribution of 0, is a NaN where the
 * result of the whole is not. */
static void add_infinities(const struct wf_rule *rule, struct wf_text *out)
{
    for (int i = 0; i < rule->term_count; i++)
        if (rule->terms[i].clause == WF_LIN || rule->terms[i].clause == WF_AFF) {
            wf_text_add(out, "  Contributions must stay finite: an infinity in one, as of a "
                             "quotient by 0, can make their sum NaN.\n");
            return;
        }
}

/* ---- the rest ---- */

static void add_same(const struct wf_rule *rule, struct wf_text *out)
{
    for (int group = 1; group <= rule->input_count; group++) {
        uint32_t inputs = 0;

        for (int i = 0; i < rule->input_count; i++)
            if (rule->slots[i].same == group) inputs |= UINT32_C(1) << i;
        if (inputs == 0) return;
        wf_text_add(out, "  ");
        add_list(rule, inputs, false, out);
        wf_text_add(out, (inputs & (inputs - 1)) != 0
                             ? " have one dtype, unless the call permits several.\n"
                             : " has tensors of one dtype, unless the call permits several.\n");
    }
}

static void add_rest(const struct wf_rule *rule, struct wf_text *out)
{
    for (int i = 0; i < rule->input_count; i++)
        if (rule->slots[i].shape_only)
            wf_text_add(out, "  Only the shape of %.*s is used: it may have any layout.\n",
                        WF_WORD(rule, rule->slots[i].name));
    for (int i = 0; i < rule->output_count; i++) {
        const struct wf_slot *slot = &rule->slots[rule->input_count + i];
        if (!slot->has_from) continue;
        wf_text_add(out, "  %.*s depends on ", WF_WORD(rule, slot->name));
        add_list(rule, slot->depends, false, out);
        wf_text_add(out, "%s.\n", slot->depends == 0 ? "no input" : " only");
    }
    add_same(rule, out);
    if (rule->random) wf_text_add(out, "  Random numbers are drawn by global index.\n");
    if (rule->use.length > 0)
        wf_text_add(out, "  The program may add rows by a function for \"%.*s\".\n",
                    WF_WORD(rule, rule->use));
}

static void explain(const struct wf_rule *rule, struct wf_text *out)
{
    bool any = rule->term_count > 0 || rule->cut.whole != 0;

    if (rule->step_count > 0) {
        wf_text_add(out,
                    "  Its parts run one after another.  Each reads the result of the part before "
                    "it, and the next\n  inputs.  No move is made between them.\n");
        return;
    }
    add_head(rule, out);
    if (rule->make.length > 0) {
        wf_text_add(out, "  The signature depends on shapes; weft writes it for each call.\n");
        add_same(rule, out);
        return;
    }
    for (int i = 0; i < rule->symbol_count; i++)
        any = any || is_split(rule, i);
    wf_text_add(out, "  Along each mesh axis, all ranks do the same (all tensors are R)%s\n",
                any ? ", or they" : ".");
    for (int i = 0; i < rule->symbol_count; i++)
        if (is_split(rule, i)) add_split(rule, i, out);
    add_cut(rule, out);
    for (int i = 0; i < rule->term_count; i++)
        add_term(rule, &rule->terms[i], out);
    add_infinities(rule, out);
    add_whole(rule, out);
    add_rest(rule, out);
}

static void add_meaning(const struct wf_op_entry *op, const char *name, struct wf_text *out)
{
    for (uint32_t i = 0; i < op->rule_count; i++) {
        wf_text_add(out, "%.*s%s\n", (int)op->length, op->name, op->rules[i]->body);
        explain(op->rules[i], out);
    }
    if (strcmp(name + strlen(name) - 1, "_") == 0 && op->name[op->length - 1] != '_')
        wf_text_add(out,
                    "%s writes its first output in the memory of its first input, which is "
                    "never moved.\n",
                    name);
}

weft_status weft_op_meaning_print(const char *name, char *text, size_t size, size_t *needed)
{
    return wf_op_describe("weft_op_meaning_print", name, add_meaning, text, size, needed);
}
