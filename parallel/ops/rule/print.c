/* print.c - a rule as its one text. */
#include "rule.h"

static void add_word(const struct wf_rule *rule, struct wf_word word, struct wf_text *out)
{
    wf_text_append(out, rule->text + word.at, word.length);
}

static void add_symbol(const struct wf_rule *rule, const struct wf_symbol *symbol,
                       struct wf_text *out)
{
    add_word(rule, symbol->name, out);
    if (symbol->kind >= WF_SYMBOL_RUN) wf_text_append(out, "..", 2);
}

static void add_header(const struct wf_rule *rule, struct wf_text *out)
{
    static const char *const signs[] = {"", "=", "!=", "<", "<=", ">", ">="};

    for (int i = 0; i < rule->name_count; i++) {
        if (i > 0) wf_text_char(out, ' ');
        add_word(rule, rule->names[i], out);
    }
    for (int i = 0; i < rule->step_count; i++) {
        wf_text_add(out, i > 0 ? "; " : " is ");
        add_word(rule, rule->names[rule->name_count + i], out);
        if (rule->parts[i] > 0) wf_text_add(out, "(%u)", rule->parts[i]);
    }
    if (rule->step_count > 0) return;
    for (int i = 0; i < rule->attr_count; i++) {
        wf_text_char(out, i > 0 ? ',' : '(');
        add_word(rule, rule->attrs[i].name, out);
        wf_text_add(out, "%s", signs[rule->attrs[i].compare]);
        add_word(rule, rule->attrs[i].value, out);
    }
    wf_text_add(out, "%s:", rule->attr_count > 0 ? ")" : "");
}

static void add_pattern(const struct wf_rule *rule, const struct wf_pattern *p, struct wf_text *out)
{
    if (p->kind == WF_PATTERN_ONE) wf_text_char(out, '1');
    if (p->kind == WF_PATTERN_PRODUCT) wf_text_char(out, '(');
    for (int i = 0; i < p->count; i++) {
        if (i > 0) wf_text_char(out, ' ');
        add_symbol(rule, &rule->symbols[rule->parts[p->first + i]], out);
    }
    if (p->kind == WF_PATTERN_PRODUCT) wf_text_char(out, ')');
    if (p->attr == 0) return;
    wf_text_char(out, '@');
    add_word(rule, rule->attrs[p->attr - 1].name, out);
}

static void add_slot(const struct wf_rule *rule, const struct wf_slot *slot, struct wf_text *out)
{
    wf_text_char(out, ' ');
    add_word(rule, slot->name, out);
    wf_text_add(out, "%s%s%s[", slot->optional ? "?" : "", slot->list ? "*" : "",
                slot->broadcast ? "~" : "");
    for (int i = 0; i < slot->count; i++) {
        if (i > 0) wf_text_char(out, ' ');
        add_pattern(rule, &rule->patterns[slot->first + i], out);
    }
    wf_text_char(out, ']');
}

/* "; NAME" and the symbols with FLAG, or with REDUCE. */
static void add_factors(const struct wf_rule *rule, const char *name, uint32_t flag,
                        uint32_t reduce, struct wf_text *out)
{
    bool any = false;

    for (int i = 0; i < rule->symbol_count; i++) {
        const struct wf_symbol *s = &rule->symbols[i];
        if (flag != 0 ? (s->flags & flag) == 0 : s->reduce != reduce) continue;
        if (!any) wf_text_add(out, "; %s", name);
        any = true;
        wf_text_char(out, ' ');
        add_symbol(rule, s, out);
    }
}

static void add_sizes(const struct wf_rule *rule, struct wf_text *out)
{
    for (int i = 0; i < rule->symbol_count; i++) {
        const struct wf_symbol *s = &rule->symbols[i];
        if (s->step != 0) {
            wf_text_append(out, "; step ", 7);
            add_symbol(rule, s, out);
            wf_text_add(out, " %u", s->step);
        }
        if (s->size < 0 && s->size_attr == 0) continue;
        wf_text_append(out, "; size ", 7);
        add_symbol(rule, s, out);
        wf_text_char(out, ' ');
        if (s->size_attr != 0)
            add_word(rule, rule->attrs[s->size_attr - 1].name, out);
        else
            wf_text_add(out, "%lld", (long long)s->size);
    }
}

static void add_cut(const struct wf_rule *rule, struct wf_text *out)
{
    if (rule->cut.whole == 0) return;
    wf_text_append(out, "; parts ", 8);
    add_symbol(rule, &rule->symbols[rule->cut.whole - 1], out);
    if (rule->cut.skip > 0) wf_text_add(out, " %lld", (long long)rule->cut.skip);
    for (int i = 0; i < rule->cut.count; i++) {
        wf_text_char(out, ' ');
        add_symbol(rule, &rule->symbols[rule->cut.parts[i]], out);
    }
}

static void add_tensors(const struct wf_rule *rule, uint32_t inputs, const char *between,
                        struct wf_text *out)
{
    bool any = false;

    for (int i = 0; i < rule->input_count; i++) {
        if ((inputs >> i & 1) == 0) continue;
        if (any) wf_text_add(out, "%s", between);
        any = true;
        add_word(rule, rule->slots[i].name, out);
    }
}

static void add_terms(const struct wf_rule *rule, struct wf_text *out)
{
    static const char *const names[] = {"lin", "aff", "mono", "anti", "pass", "hom", "turn"};

    for (int i = 0; i < rule->term_count; i++) {
        const struct wf_term *t = &rule->terms[i], *before = t - 1;
        bool same =
            i > 0 && before->clause == t->clause && before->from == t->from && before->to == t->to;
        wf_text_add(out, same ? " |" : "; %s", names[t->clause]);
        if (!same && t->clause >= WF_HOM) wf_text_add(out, " %s", wf_reduce_name(t->from));
        if (!same && t->clause == WF_TURN) wf_text_add(out, " %s", wf_reduce_name(t->to));
        wf_text_char(out, ' ');
        add_tensors(rule, t->inputs, "+", out);
    }
}

static uint32_t inputs_of_dtype(const struct wf_rule *rule, int group)
{
    uint32_t inputs = 0;

    for (int i = 0; i < rule->input_count; i++)
        if (rule->slots[i].same == group) inputs |= UINT32_C(1) << i;
    return inputs;
}

/* The clauses are printed in the order in which they were read. */
static void add_same(const struct wf_rule *rule, struct wf_text *out)
{
    for (int group = 1; inputs_of_dtype(rule, group) != 0; group++) {
        wf_text_append(out, "; same ", 7);
        add_tensors(rule, inputs_of_dtype(rule, group), " ", out);
    }
}

static uint32_t marked_inputs(const struct wf_rule *rule, bool shape)
{
    uint32_t marked = 0;

    for (int i = 0; i < rule->input_count; i++)
        if (shape ? rule->slots[i].shape_only : rule->slots[i].adds) marked |= UINT32_C(1) << i;
    return marked;
}

static void add_type(const struct wf_rule *rule, const struct wf_slot *slot, struct wf_text *out)
{
    static const char *const words[] = {"join", "float", "wide", "complex", "real"};

    if (slot->type == WF_TYPE_FIRST) return;
    wf_text_append(out, "; type ", 7);
    if (slot->type >= WF_TYPE_JOIN) wf_text_add(out, "%s", words[slot->type - WF_TYPE_JOIN]);
    if (slot->type == WF_TYPE_DTYPE) wf_text_add(out, "%s", wf_dtype_name(slot->type_value));
    if (slot->type == WF_TYPE_ATTR) add_word(rule, rule->attrs[slot->type_value].name, out);
    if (slot->type == WF_TYPE_TENSOR) add_word(rule, rule->slots[slot->type_value].name, out);
    wf_text_char(out, ' ');
    add_word(rule, slot->name, out);
}

static void add_outputs(const struct wf_rule *rule, struct wf_text *out)
{
    const struct wf_slot *outputs = rule->slots + rule->input_count;
    bool any = false;

    for (int i = 0; i < rule->output_count; i++) {
        if (!outputs[i].has_from) continue;
        wf_text_append(out, "; from ", 7);
        add_word(rule, outputs[i].name, out);
        if (outputs[i].depends != 0) wf_text_char(out, ' ');
        add_tensors(rule, outputs[i].depends, " ", out);
    }
    for (int i = 0; i < rule->output_count; i++) {
        if (outputs[i].inplace == 0) continue;
        wf_text_add(out, any ? " " : "; inplace ");
        any = true;
        add_word(rule, outputs[i].name, out);
        wf_text_char(out, '=');
        add_word(rule, rule->slots[outputs[i].inplace - 1].name, out);
    }
    for (int i = 0; i < rule->output_count; i++)
        add_type(rule, &outputs[i], out);
}

static void add_marked(const struct wf_rule *rule, const char *name, bool shape,
                       struct wf_text *out)
{
    uint32_t marked = marked_inputs(rule, shape);

    if (marked == 0) return;
    wf_text_add(out, "; %s ", name);
    add_tensors(rule, marked, " ", out);
}

static void add_name(const struct wf_rule *rule, const char *clause, struct wf_word name,
                     struct wf_text *out)
{
    if (name.length == 0) return;
    wf_text_add(out, "; %s ", clause);
    add_word(rule, name, out);
}

void wf_rule_print(const struct wf_rule *rule, struct wf_text *out)
{
    static const struct {
        const char *name;
        uint8_t flag;
    } flags[] = {{"whole", WF_WHOLE}, {"own", WF_OWN},   {"mask", WF_MASK},    {"halo", WF_HALO},
                 {"here", WF_HERE},   {"even", WF_EVEN}, {"differ", WF_VARIES}};

    add_header(rule, out);
    if (rule->step_count > 0) return;
    for (int i = 0; i < rule->input_count; i++)
        add_slot(rule, &rule->slots[i], out);
    wf_text_append(out, " ->", 3);
    for (int i = 0; i < rule->output_count; i++)
        add_slot(rule, &rule->slots[rule->input_count + i], out);
    for (uint32_t i = WF_REDUCE_SUM; i <= WF_REDUCE_NORM; i++)
        add_factors(rule, wf_reduce_name(i), 0, i, out);
    for (size_t i = 0; i < WF_COUNT(flags); i++)
        add_factors(rule, flags[i].name, flags[i].flag, 0, out);
    add_sizes(rule, out);
    add_cut(rule, out);
    add_marked(rule, "add", false, out);
    add_terms(rule, out);
    add_marked(rule, "shape", true, out);
    add_same(rule, out);
    add_outputs(rule, out);
    if (rule->random) wf_text_append(out, "; rand", 6);
    add_name(rule, "use", rule->use, out);
    add_name(rule, "make", rule->make, out);
    add_name(rule, "check", rule->check, out);
}
