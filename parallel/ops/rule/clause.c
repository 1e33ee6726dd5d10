/* clause.c - the clauses of a rule: what may be split, what may be partial.
 *
 *     clause = reduce F | "whole" F | "own" F | "mask" F | "halo" F | "here" F | "even" F
 *            | "differ" F | "step" F n | "size" F ( attr | n ) | "parts" F [ n ] F
 *            | "lin" G | "aff" G | "mono" G | "anti" G | "pass" G | "hom" kind G
 *            | "turn" kind kind G | "add" T | "shape" T { T } | "same" T { T } | "from" T { T }
 *            | "inplace" T "=" T { T "=" T } | "type" ( dtype | attr | T ) T { T }
 *            | "rand" | "use" ident | "make" ident | "check" ident
 *     F = { factor | NAME | ".." }        G = term { "|" term }        term = T { "+" T } */
#include "rule.h"

#include <string.h>

static const char *const reduce_names[] = {"",     "sum", "avg", "max", "min",
                                           "prod", "all", "any", "norm"};

const char *wf_reduce_name(uint32_t reduce)
{
    return reduce < WF_COUNT(reduce_names) ? reduce_names[reduce] : "";
}

uint32_t wf_reduce_placement(uint32_t reduce)
{
    static const uint8_t placements[] = {
        [WF_REDUCE_SUM] = WEFT_REDUCE_SUM,   [WF_REDUCE_AVG] = WEFT_REDUCE_AVG,
        [WF_REDUCE_MAX] = WEFT_REDUCE_MAX,   [WF_REDUCE_MIN] = WEFT_REDUCE_MIN,
        [WF_REDUCE_PROD] = WEFT_REDUCE_PROD, [WF_REDUCE_ALL] = WEFT_REDUCE_MIN,
        [WF_REDUCE_ANY] = WEFT_REDUCE_MAX,
    };

    return reduce < WF_COUNT(placements) ? placements[reduce] : WEFT_REDUCE_COUNT;
}

/* ---- lists of factors ---- */

/* Take the next symbol of a list; *OUT is -1 at the end of the list. */
static weft_status next_symbol(struct wf_rule_reader *r, int *out)
{
    const struct wf_rule *rule = &r->draft->rule;
    struct wf_scan start;
    struct wf_word name = {0, 0};

    wf_scan_space(&r->scan);
    start = r->scan;
    *out = -1;
    if (!wf_scan_word(&r->scan, "..") && !wf_rule_take_word(r, &name)) return WEFT_OK;
    if (name.length > 0) (void)wf_scan_word(&r->scan, "..");
    *out = wf_rule_find_symbol(r, name);
    if (*out >= 0) return WEFT_OK;
    if (name.length == 0) return wf_scan_refuse(&start, "rule", "no tensor has a run \"..\"");
    return wf_scan_refuse(&start, "rule", "no tensor has a factor %.*s", WF_WORD(rule, name));
}

static weft_status mark_symbols(struct wf_rule_reader *r, uint32_t reduce, uint32_t flag)
{
    int symbol, count = 0;

    for (;; count++) {
        struct wf_symbol *s;
        WF_TRY(next_symbol(r, &symbol));
        if (symbol < 0) break;
        s = &r->draft->rule.symbols[symbol];
        if (reduce != WF_REDUCE_NONE && s->reduce != WF_REDUCE_NONE && s->reduce != reduce)
            return wf_scan_refuse(&r->scan, "rule", "a factor is reduced by %s and by %s",
                                  wf_reduce_name(s->reduce), wf_reduce_name(reduce));
        if (reduce != WF_REDUCE_NONE) s->reduce = (uint8_t)reduce;
        s->flags |= (uint8_t)flag;
    }
    return count > 0 ? WEFT_OK : wf_rule_fail(r, "a factor");
}

static weft_status read_count(struct wf_rule_reader *r, const char *what, int64_t *out)
{
    char c;

    wf_scan_space(&r->scan);
    c = wf_scan_peek(&r->scan);
    if (c < '0' || c > '9') return wf_rule_fail(r, what);
    return wf_scan_int(&r->scan, what, out);
}

static weft_status read_step(struct wf_rule_reader *r)
{
    int64_t step;
    int symbol;

    WF_TRY(next_symbol(r, &symbol));
    if (symbol < 0) return wf_rule_fail(r, "a factor");
    WF_TRY(read_count(r, "a number of indices", &step));
    if (step < 1 || step > INT32_MAX)
        return wf_scan_refuse(&r->scan, "rule", "a step is from 1 to 2147483647");
    r->draft->rule.symbols[symbol].step = (uint32_t)step;
    return WEFT_OK;
}

static weft_status read_size(struct wf_rule_reader *r)
{
    struct wf_rule *rule = &r->draft->rule;
    struct wf_word name;
    int symbol, attr;

    WF_TRY(next_symbol(r, &symbol));
    if (symbol < 0) return wf_rule_fail(r, "a factor");
    if (!wf_rule_take_word(r, &name)) {
        if (rule->symbols[symbol].kind != WF_SYMBOL_FACTOR)
            return wf_rule_fail(r, "the attribute that lists the sizes");
        return read_count(r, "an attribute or a size", &rule->symbols[symbol].size);
    }
    attr = wf_rule_find_attr(r, name);
    if (attr < 0)
        return wf_scan_refuse(&r->scan, "rule", "%.*s is not an attribute of the operator",
                              WF_WORD(rule, name));
    rule->symbols[symbol].size_attr = (uint8_t)(attr + 1);
    return WEFT_OK;
}

/* parts k j | parts k 3 j */
static weft_status read_parts(struct wf_rule_reader *r)
{
    struct wf_cut *cut = &r->draft->rule.cut;
    int symbol;
    char c;

    if (cut->whole != 0) return wf_scan_refuse(&r->scan, "rule", "a rule has one clause parts");
    WF_TRY(next_symbol(r, &symbol));
    if (symbol < 0) return wf_rule_fail(r, "a factor");
    cut->whole = (uint8_t)(symbol + 1);
    wf_scan_space(&r->scan);
    c = wf_scan_peek(&r->scan);
    if (c >= '0' && c <= '9') WF_TRY(read_count(r, "a number of indices", &cut->skip));
    for (;;) {
        WF_TRY(next_symbol(r, &symbol));
        if (symbol < 0) break;
        if (cut->count == WF_RULE_CUTS)
            return wf_scan_refuse(&r->scan, "rule", "parts lists at most %d factors", WF_RULE_CUTS);
        cut->parts[cut->count++] = (uint8_t)symbol;
    }
    return cut->count > 0 ? WEFT_OK : wf_rule_fail(r, "a factor that is a part");
}

/* ---- lists of tensors ---- */

/* Take a tensor; *OUT is -1 if none follows.  Inputs and outputs count from 0 each. */
static weft_status next_tensor(struct wf_rule_reader *r, bool is_output, int *out)
{
    const struct wf_rule *rule = &r->draft->rule;
    int first = is_output ? rule->input_count : 0;
    int count = is_output ? rule->output_count : rule->input_count;
    struct wf_scan start;
    struct wf_word name;

    wf_scan_space(&r->scan);
    start = r->scan;
    *out = -1;
    if (!wf_rule_take_word(r, &name)) return WEFT_OK;
    for (int i = 0; i < count; i++)
        if (wf_words_same(rule, rule->slots[first + i].name, name)) {
            *out = i;
            return WEFT_OK;
        }
    return wf_scan_refuse(&start, "rule", "%.*s is not an %s", WF_WORD(rule, name),
                          is_output ? "output" : "input");
}

static weft_status expect_tensor(struct wf_rule_reader *r, bool is_output, int *out)
{
    WF_TRY(next_tensor(r, is_output, out));
    return *out >= 0 ? WEFT_OK : wf_rule_fail(r, is_output ? "an output" : "an input");
}

static weft_status read_terms(struct wf_rule_reader *r, struct wf_term pattern)
{
    struct wf_rule *rule = &r->draft->rule;
    int tensor;

    do {
        struct wf_term term = pattern;
        do {
            WF_TRY(expect_tensor(r, false, &tensor));
            term.inputs |= UINT32_C(1) << tensor;
            wf_scan_space(&r->scan);
        } while (wf_scan_char(&r->scan, '+'));
        if (rule->term_count == WF_RULE_TERMS)
            return wf_scan_refuse(&r->scan, "rule", "a rule has at most %d terms", WF_RULE_TERMS);
        rule->terms[rule->term_count++] = term;
        wf_scan_space(&r->scan);
    } while (wf_scan_char(&r->scan, '|'));
    return WEFT_OK;
}

static weft_status read_kind(struct wf_rule_reader *r, uint8_t *out)
{
    struct wf_scan start = r->scan;
    struct wf_word name;

    if (wf_rule_take_word(r, &name))
        for (uint32_t i = WF_REDUCE_SUM; i <= WF_REDUCE_PROD; i++)
            if (wf_word_is(&r->draft->rule, name, reduce_names[i])) {
                *out = (uint8_t)i;
                return WEFT_OK;
            }
    r->scan = start;
    wf_scan_space(&r->scan);
    return wf_rule_fail(r, "sum, avg, max, min or prod");
}

static weft_status mark_inputs(struct wf_rule_reader *r, bool shape)
{
    int tensor, count = 0;

    for (;; count++) {
        WF_TRY(next_tensor(r, false, &tensor));
        if (tensor < 0) break;
        if (shape)
            r->draft->slots[tensor].shape_only = 1;
        else
            r->draft->slots[tensor].adds = 1;
    }
    return count > 0 ? WEFT_OK : wf_rule_fail(r, "an input");
}

/* same a b: a group of inputs of its own */
static weft_status read_same(struct wf_rule_reader *r)
{
    struct wf_rule *rule = &r->draft->rule;
    int tensor, count = 0, group = 1;

    for (int i = 0; i < rule->input_count; i++)
        if (rule->slots[i].same >= group) group = rule->slots[i].same + 1;
    for (;;) {
        struct wf_slot *slot;
        WF_TRY(next_tensor(r, false, &tensor));
        if (tensor < 0) break;
        slot = &rule->slots[tensor];
        if (slot->same != 0)
            return wf_scan_refuse(&r->scan, "rule", "two clauses same have input %.*s",
                                  WF_WORD(rule, slot->name));
        slot->same = (uint8_t)group;
        count += slot->list ? 2 : 1;
    }
    return count > 1 ? WEFT_OK : wf_rule_fail(r, "two inputs, or a list");
}

static weft_status read_from(struct wf_rule_reader *r)
{
    struct wf_rule *rule = &r->draft->rule;
    struct wf_slot *output;
    int tensor;

    WF_TRY(expect_tensor(r, true, &tensor));
    output = &rule->slots[rule->input_count + tensor];
    output->depends = 0;
    output->has_from = 1;
    for (;;) {
        WF_TRY(next_tensor(r, false, &tensor));
        if (tensor < 0) return WEFT_OK;
        output->depends |= UINT32_C(1) << tensor;
    }
}

static weft_status read_inplace(struct wf_rule_reader *r)
{
    struct wf_rule *rule = &r->draft->rule;
    int output, input;

    WF_TRY(expect_tensor(r, true, &output));
    do {
        wf_scan_space(&r->scan);
        if (!wf_scan_char(&r->scan, '=')) return wf_rule_fail(r, "'='");
        WF_TRY(expect_tensor(r, false, &input));
        for (int i = 0; i < rule->output_count; i++)
            if (rule->slots[rule->input_count + i].inplace == input + 1 && i != output)
                return wf_scan_refuse(&r->scan, "rule", "two outputs are in place of %.*s",
                                      WF_WORD(rule, rule->slots[input].name));
        rule->slots[rule->input_count + output].inplace = (uint8_t)(input + 1);
        WF_TRY(next_tensor(r, true, &output));
    } while (output >= 0);
    return WEFT_OK;
}

static weft_status read_type(struct wf_rule_reader *r)
{
    static const char *const words[] = {"join", "float", "wide", "complex", "real"};
    struct wf_rule *rule = &r->draft->rule;
    struct wf_slot *output;
    struct wf_word name;
    uint32_t kind = WF_TYPE_FIRST, value = 0;
    int tensor, attr;

    if (!wf_rule_take_word(r, &name)) return wf_rule_fail(r, "a dtype, an attribute or an input");
    attr = wf_rule_find_attr(r, name);
    if (attr >= 0) {
        kind = WF_TYPE_ATTR;
        value = (uint32_t)attr;
    } else if (wf_dtype_find(rule->text + name.at, name.length, &value)) {
        kind = WF_TYPE_DTYPE;
    }
    for (int i = 0; i < rule->input_count && kind == WF_TYPE_FIRST; i++)
        if (wf_words_same(rule, rule->slots[i].name, name)) {
            kind = WF_TYPE_TENSOR;
            value = (uint32_t)i;
        }
    for (size_t i = 0; i < WF_COUNT(words) && kind == WF_TYPE_FIRST; i++)
        if (wf_word_is(rule, name, words[i])) kind = WF_TYPE_JOIN + (uint32_t)i;
    if (kind == WF_TYPE_FIRST)
        return wf_scan_refuse(&r->scan, "rule",
                              "%.*s is not a dtype, an attribute, an input, join, float, wide, "
                              "complex or real",
                              WF_WORD(rule, name));
    WF_TRY(expect_tensor(r, true, &tensor));
    for (; tensor >= 0;) {
        output = &rule->slots[rule->input_count + tensor];
        output->type = (uint8_t)kind;
        output->type_value = (uint8_t)value;
        WF_TRY(next_tensor(r, true, &tensor));
    }
    return WEFT_OK;
}

/* ---- clauses ---- */

static weft_status read_ident(struct wf_rule_reader *r, struct wf_word *out)
{
    return wf_rule_take_word(r, out) ? WEFT_OK : wf_rule_fail(r, "a name");
}

/* Clauses that mark factors.  *KNOWN is false if NAME is not one. */
static weft_status read_factor_clause(struct wf_rule_reader *r, struct wf_word name, bool *known)
{
    static const struct {
        const char *name;
        uint8_t flag;
    } flags[] = {{"whole", WF_WHOLE}, {"own", WF_OWN},   {"mask", WF_MASK},    {"halo", WF_HALO},
                 {"here", WF_HERE},   {"even", WF_EVEN}, {"differ", WF_VARIES}};
    const struct wf_rule *rule = &r->draft->rule;

    for (size_t i = 0; i < WF_COUNT(flags); i++)
        if (wf_word_is(rule, name, flags[i].name))
            return mark_symbols(r, WF_REDUCE_NONE, flags[i].flag);
    for (uint32_t i = WF_REDUCE_SUM; i < WF_COUNT(reduce_names); i++)
        if (wf_word_is(rule, name, reduce_names[i])) return mark_symbols(r, i, 0);
    if (wf_word_is(rule, name, "step")) return read_step(r);
    if (wf_word_is(rule, name, "size")) return read_size(r);
    if (wf_word_is(rule, name, "parts")) return read_parts(r);
    *known = false;
    return WEFT_OK;
}

static weft_status read_term_clause(struct wf_rule_reader *r, struct wf_word name, bool *known)
{
    static const char *const names[] = {"lin", "aff", "mono", "anti", "pass", "hom", "turn"};
    struct wf_term term = {0};

    for (size_t i = 0; i < WF_COUNT(names); i++) {
        if (!wf_word_is(&r->draft->rule, name, names[i])) continue;
        term.clause = (uint8_t)i;
        if (i >= WF_HOM) {
            WF_TRY(read_kind(r, &term.from));
            term.to = term.from;
        }
        if (i == WF_TURN) WF_TRY(read_kind(r, &term.to));
        return read_terms(r, term);
    }
    *known = false;
    return WEFT_OK;
}

static weft_status refuse_clause(const struct wf_scan *start, const struct wf_rule *rule,
                                 struct wf_word name)
{
    static const char *const names[] = {
        "sum",  "avg",  "max",     "min",  "prod", "all",    "any",  "norm", "whole",
        "own",  "mask", "halo",    "here", "even", "differ", "step", "size", "parts",
        "lin",  "aff",  "mono",    "anti", "pass", "hom",    "turn", "add",  "shape",
        "same", "from", "inplace", "type", "rand", "use",    "make", "check"};
    size_t length = name.length < 31 ? name.length : 31;
    char word[32];
    int nearest;

    memcpy(word, rule->text + name.at, length);
    word[length] = '\0';
    nearest = wf_nearest(word, names, WF_COUNT(names));
    return wf_scan_refuse(start, "rule", "%.*s is not a clause%s%s%s", WF_WORD(rule, name),
                          nearest >= 0 ? "; did you mean " : "", nearest >= 0 ? names[nearest] : "",
                          nearest >= 0 ? "?" : "");
}

static weft_status read_clause(struct wf_rule_reader *r)
{
    struct wf_rule *rule = &r->draft->rule;
    struct wf_scan start;
    struct wf_word name;
    bool known = true;

    wf_scan_space(&r->scan);
    start = r->scan;
    if (!wf_rule_take_word(r, &name)) return wf_rule_fail(r, "a clause");
    WF_TRY(read_factor_clause(r, name, &known));
    if (known) return WEFT_OK;
    known = true;
    WF_TRY(read_term_clause(r, name, &known));
    if (known) return WEFT_OK;
    if (wf_word_is(rule, name, "add")) return mark_inputs(r, false);
    if (wf_word_is(rule, name, "shape")) return mark_inputs(r, true);
    if (wf_word_is(rule, name, "same")) return read_same(r);
    if (wf_word_is(rule, name, "from")) return read_from(r);
    if (wf_word_is(rule, name, "inplace")) return read_inplace(r);
    if (wf_word_is(rule, name, "type")) return read_type(r);
    if (wf_word_is(rule, name, "use")) return read_ident(r, &rule->use);
    if (wf_word_is(rule, name, "make")) return read_ident(r, &rule->make);
    if (wf_word_is(rule, name, "check")) return read_ident(r, &rule->check);
    if (!wf_word_is(rule, name, "rand")) return refuse_clause(&start, rule, name);
    rule->random = 1;
    return WEFT_OK;
}

weft_status wf_rule_read_clauses(struct wf_rule_reader *r)
{
    for (;;) {
        char c;
        wf_scan_space(&r->scan);
        c = wf_scan_peek(&r->scan);
        if (c == '\0' || c == '\n' || c == '\r' || c == '#') return WEFT_OK;
        if (!wf_scan_char(&r->scan, ';'))
            return wf_rule_fail(r, "';' and a clause, or the end of the line");
        WF_TRY(read_clause(r));
    }
}
