/* read.c - one line of rule text becomes a rule.
 *
 *     line   = name { name } [ "(" attr { "," attr } ")" ] ":" sig { ";" clause }
 *            | name { name } "is" part { ";" part }
 *     part   = name [ "(" number ")" ]
 *     attr   = ident [ ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) value ]
 *     sig    = { tensor } "->" { tensor }
 *     tensor = ident [ "?" ] [ "*" ] [ "~" ] "[" { dim } "]"
 *     dim    = factor [ "@" attr ] | "(" factor factor { factor } ")" [ "@" attr ]
 *            | "1" [ "@" attr ] | [ NAME ] ".."
 *
 * A rule is read twice: once as written, and once from its printed form, which is the text that it
 * keeps.  Equal rules therefore have equal texts. */
#include "rule.h"

#include <math.h>
#include <string.h>

weft_status wf_rule_fail(const struct wf_rule_reader *r, const char *expected)
{
    if (wf_scan_peek(&r->scan) == '\n')
        return wf_scan_refuse(&r->scan, "rule", "expected %s, found the end of the line", expected);
    return wf_scan_fail(&r->scan, "rule", "expected %s", expected);
}

static weft_status fail_many(const struct wf_rule_reader *r, const char *what, int most)
{
    return wf_scan_refuse(&r->scan, "rule", "a rule has at most %d %s", most, what);
}

bool wf_rule_take_word(struct wf_rule_reader *r, struct wf_word *out)
{
    const char *start;
    size_t length;

    wf_scan_space(&r->scan);
    if (!wf_scan_name(&r->scan, &start, &length)) return false;
    *out = (struct wf_word){(uint16_t)(start - r->draft->rule.text), (uint16_t)length};
    return true;
}

static bool take_char(struct wf_rule_reader *r, char c)
{
    wf_scan_space(&r->scan);
    return wf_scan_char(&r->scan, c);
}

static bool take_text(struct wf_rule_reader *r, const char *text)
{
    wf_scan_space(&r->scan);
    return wf_scan_word(&r->scan, text);
}

int wf_rule_find_symbol(const struct wf_rule_reader *r, struct wf_word name)
{
    const struct wf_rule *rule = &r->draft->rule;

    for (int i = 0; i < rule->symbol_count; i++)
        if (wf_words_same(rule, rule->symbols[i].name, name)) return i;
    return -1;
}

int wf_rule_find_attr(const struct wf_rule_reader *r, struct wf_word name)
{
    const struct wf_rule *rule = &r->draft->rule;

    for (int i = 0; i < rule->attr_count; i++)
        if (wf_words_same(rule, rule->attrs[i].name, name)) return i;
    return -1;
}

/* ---- names and attributes ---- */

/* Names of operators may have dots and colons, as in aten.add.Tensor. */
static bool take_operator(struct wf_rule_reader *r, struct wf_word *out)
{
    const char *start;
    size_t length, end;

    if (!wf_rule_take_word(r, out)) return false;
    for (end = r->scan.at; wf_scan_char(&r->scan, '.'); end = r->scan.at) {
        if (!wf_scan_name(&r->scan, &start, &length)) break;
        out->length = (uint16_t)(out->length + 1 + length);
    }
    r->scan.at = end;
    return true;
}

/* The operators behind "is": "linear(3); gelu". */
static weft_status read_steps(struct wf_rule_reader *r)
{
    struct wf_rule *rule = &r->draft->rule;

    do {
        struct wf_word *step = &rule->names[rule->name_count + rule->step_count];
        int64_t inputs = 0;
        if (rule->name_count + rule->step_count == WF_RULE_NAMES)
            return fail_many(r, "names", WF_RULE_NAMES);
        if (!take_operator(r, step)) return wf_rule_fail(r, "the name of an operator");
        if (take_char(r, '(')) {
            wf_scan_space(&r->scan);
            WF_TRY(wf_scan_int(&r->scan, "the number of inputs", &inputs));
            if (inputs < 1 || inputs > WF_RULE_TENSORS || !take_char(r, ')'))
                return wf_rule_fail(r, "the number of inputs, from 1 to 24, and ')'");
        }
        rule->parts[rule->step_count++] = (uint8_t)inputs;
    } while (take_char(r, ';'));
    rule->part_count = rule->step_count;
    wf_scan_space(&r->scan);
    if (strchr("\n\r#", wf_scan_peek(&r->scan)) == NULL) return wf_rule_fail(r, "';'");
    return WEFT_OK;
}

static weft_status read_names(struct wf_rule_reader *r)
{
    struct wf_rule *rule = &r->draft->rule;
    struct wf_word name;

    while (take_operator(r, &name)) {
        if (rule->name_count > 0 && wf_word_is(rule, name, "is")) return read_steps(r);
        for (int i = 0; i < rule->name_count; i++)
            if (wf_words_same(rule, rule->names[i], name))
                return wf_scan_refuse(&r->scan, "rule", "the name %.*s stands twice",
                                      WF_WORD(rule, name));
        if (rule->name_count == WF_RULE_NAMES) return fail_many(r, "names", WF_RULE_NAMES);
        rule->names[rule->name_count++] = name;
    }
    if (rule->name_count == 0) return wf_rule_fail(r, "the name of an operator");
    return WEFT_OK;
}

/* Digits with an optional sign, fraction and exponent; or inf. */
weft_status wf_rule_read_number(struct wf_rule_reader *r, double *out)
{
    double value = 0, scale = 1;
    bool negative, digits = false;
    int64_t exponent = 0;

    wf_scan_space(&r->scan);
    negative = wf_scan_char(&r->scan, '-');
    if (wf_scan_word(&r->scan, "inf")) {
        *out = negative ? -INFINITY : INFINITY;
        return WEFT_OK;
    }
    for (char c; (c = wf_scan_peek(&r->scan)) >= '0' && c <= '9'; r->scan.at++, digits = true)
        value = value * 10 + (c - '0');
    if (digits && wf_scan_char(&r->scan, '.'))
        for (char c; (c = wf_scan_peek(&r->scan)) >= '0' && c <= '9'; r->scan.at++)
            value += (c - '0') * (scale /= 10);
    if (!digits) return wf_rule_fail(r, "a number");
    if (wf_scan_char(&r->scan, 'e')) {
        bool below = wf_scan_char(&r->scan, '-');
        WF_TRY(wf_scan_int(&r->scan, "an exponent", &exponent));
        if (exponent > 400) exponent = 400;
        value *= pow(10, below ? -(double)exponent : (double)exponent);
    }
    *out = negative ? -value : value;
    return WEFT_OK;
}

static enum wf_compare take_compare(struct wf_rule_reader *r)
{
    if (take_text(r, "!=")) return WF_IS_OTHER;
    if (take_text(r, "<=")) return WF_IS_LESS_EQUAL;
    if (take_text(r, ">=")) return WF_IS_MORE_EQUAL;
    if (take_text(r, "<")) return WF_IS_LESS;
    if (take_text(r, ">")) return WF_IS_MORE;
    return take_text(r, "=") ? WF_IS_EQUAL : WF_IS_LISTED;
}

static weft_status read_value(struct wf_rule_reader *r, struct wf_rule_attr *attr)
{
    struct wf_scan start;
    char c;

    wf_scan_space(&r->scan);
    start = r->scan;
    c = wf_scan_peek(&r->scan);
    if (c == '-' || (c >= '0' && c <= '9') || strncmp(start.text + start.at, "inf", 3) == 0) {
        WF_TRY(wf_rule_read_number(r, &attr->number));
        attr->is_number = 1;
        attr->value = (struct wf_word){(uint16_t)(start.text + start.at - r->draft->rule.text),
                                       (uint16_t)(r->scan.at - start.at)};
        return WEFT_OK;
    }
    if (!wf_rule_take_word(r, &attr->value)) return wf_rule_fail(r, "a number or a word");
    if (attr->compare > WF_IS_OTHER)
        return wf_scan_refuse(&start, "rule", "only numbers are compared by < and >");
    return WEFT_OK;
}

static weft_status read_attrs(struct wf_rule_reader *r)
{
    struct wf_rule *rule = &r->draft->rule;

    if (!take_char(r, '(')) return WEFT_OK;
    do {
        struct wf_rule_attr attr = {.compare = WF_IS_LISTED};
        if (!wf_rule_take_word(r, &attr.name)) return wf_rule_fail(r, "the name of an attribute");
        if (wf_rule_find_attr(r, attr.name) >= 0)
            return wf_scan_refuse(&r->scan, "rule", "the attribute %.*s stands twice",
                                  WF_WORD(rule, attr.name));
        attr.compare = (uint8_t)take_compare(r);
        if (attr.compare != WF_IS_LISTED) WF_TRY(read_value(r, &attr));
        if (rule->attr_count == WF_RULE_ATTRS) return fail_many(r, "attributes", WF_RULE_ATTRS);
        rule->attrs[rule->attr_count++] = attr;
    } while (take_char(r, ','));
    return take_char(r, ')') ? WEFT_OK : wf_rule_fail(r, "',' or ')'");
}

/* ---- the signature ---- */

static weft_status use_symbol(struct wf_rule_reader *r, struct wf_word name,
                              enum wf_symbol_kind kind, uint8_t *out)
{
    struct wf_rule *rule = &r->draft->rule;
    int found = wf_rule_find_symbol(r, name);

    if (found >= 0) {
        if (rule->symbols[found].kind != kind)
            return wf_scan_refuse(&r->scan, "rule", "%.*s stands with and without \"..\"",
                                  WF_WORD(rule, name));
        *out = (uint8_t)found;
        return WEFT_OK;
    }
    if (rule->symbol_count == WF_RULE_SYMBOLS) return fail_many(r, "factors", WF_RULE_SYMBOLS);
    *out = rule->symbol_count;
    rule->symbols[rule->symbol_count++] =
        (struct wf_symbol){.name = name, .kind = (uint8_t)kind, .size = -1};
    return WEFT_OK;
}

static weft_status add_part(struct wf_rule_reader *r, struct wf_word name, enum wf_symbol_kind kind)
{
    struct wf_rule *rule = &r->draft->rule;

    if (rule->part_count == WF_RULE_PARTS) return fail_many(r, "factors", WF_RULE_PARTS);
    return use_symbol(r, name, kind, &rule->parts[rule->part_count++]);
}

static bool is_upper(const struct wf_rule *rule, struct wf_word name)
{
    char c = rule->text[name.at];

    return c >= 'A' && c <= 'Z';
}

static weft_status read_product(struct wf_rule_reader *r)
{
    const struct wf_rule *rule = &r->draft->rule;
    struct wf_word name;
    int count = 0;

    for (; wf_rule_take_word(r, &name); count++) {
        if (is_upper(rule, name))
            return wf_scan_refuse(&r->scan, "rule",
                                  "%.*s is a group; a product has factors (lower case) only",
                                  WF_WORD(rule, name));
        WF_TRY(add_part(r, name, WF_SYMBOL_FACTOR));
    }
    if (count < 2) return wf_rule_fail(r, "at least two factors between the parentheses");
    return take_char(r, ')') ? WEFT_OK : wf_rule_fail(r, "a factor or ')'");
}

/* One entry between the brackets; *END is set at the end of the list. */
static weft_status read_entry(struct wf_rule_reader *r, struct wf_pattern *out, bool *end)
{
    const struct wf_rule *rule = &r->draft->rule;
    struct wf_word name = {0, 0};

    out->first = rule->part_count;
    if (take_text(r, "..")) return add_part(r, name, WF_SYMBOL_REST);
    if (take_char(r, '(')) {
        out->kind = WF_PATTERN_PRODUCT;
        return read_product(r);
    }
    if (take_char(r, '1')) {
        out->kind = WF_PATTERN_ONE;
        return WEFT_OK;
    }
    if (!wf_rule_take_word(r, &name)) {
        *end = true;
        return WEFT_OK;
    }
    if (!is_upper(rule, name)) return add_part(r, name, WF_SYMBOL_FACTOR);
    return add_part(r, name, wf_scan_word(&r->scan, "..") ? WF_SYMBOL_RUN : WF_SYMBOL_GROUP);
}

static weft_status read_position(struct wf_rule_reader *r, struct wf_pattern *pattern)
{
    const struct wf_rule *rule = &r->draft->rule;
    struct wf_word name;
    int attr;

    if (!wf_scan_char(&r->scan, '@')) return WEFT_OK;
    if (pattern->kind == WF_PATTERN_SYMBOL &&
        rule->symbols[rule->parts[pattern->first]].kind >= WF_SYMBOL_RUN)
        return wf_scan_refuse(&r->scan, "rule", "a run of dimensions has no position");
    if (!wf_rule_take_word(r, &name)) return wf_rule_fail(r, "an attribute behind '@'");
    attr = wf_rule_find_attr(r, name);
    if (attr < 0)
        return wf_scan_refuse(&r->scan, "rule",
                              "%.*s is not an attribute; list it behind the name: NAME(%.*s)",
                              WF_WORD(rule, name), WF_WORD(rule, name));
    pattern->attr = (uint8_t)(attr + 1);
    return WEFT_OK;
}

static weft_status read_patterns(struct wf_rule_reader *r, struct wf_slot *slot)
{
    struct wf_rule *rule = &r->draft->rule;

    slot->first = rule->pattern_count;
    for (bool end = false;;) {
        struct wf_pattern pattern = {.kind = WF_PATTERN_SYMBOL};
        WF_TRY(read_entry(r, &pattern, &end));
        if (end) break;
        pattern.count = (uint8_t)(rule->part_count - pattern.first);
        WF_TRY(read_position(r, &pattern));
        if (rule->pattern_count == WF_RULE_PATTERNS)
            return fail_many(r, "dimensions", WF_RULE_PATTERNS);
        rule->patterns[rule->pattern_count++] = pattern;
        slot->count++;
    }
    return take_char(r, ']') ? WEFT_OK : wf_rule_fail(r, "a dimension or ']'");
}

static weft_status read_tensor(struct wf_rule_reader *r, struct wf_word name, bool is_output)
{
    struct wf_rule *rule = &r->draft->rule;
    struct wf_slot slot = {.name = name};
    int first = is_output ? rule->input_count : 0, count = rule->input_count + rule->output_count;

    for (int i = first; i < count; i++)
        if (wf_words_same(rule, rule->slots[i].name, name))
            return wf_scan_refuse(&r->scan, "rule", "the tensor %.*s stands twice on one side",
                                  WF_WORD(rule, name));
    if (count == WF_RULE_TENSORS) return fail_many(r, "tensors", WF_RULE_TENSORS);
    slot.optional = wf_scan_char(&r->scan, '?');
    slot.list = wf_scan_char(&r->scan, '*');
    slot.broadcast = wf_scan_char(&r->scan, '~');
    if (!take_char(r, '[')) return wf_rule_fail(r, "'['");
    WF_TRY(read_patterns(r, &slot));
    rule->slots[count] = slot;
    if (is_output)
        rule->output_count++;
    else
        rule->input_count++;
    return WEFT_OK;
}

static weft_status read_signature(struct wf_rule_reader *r)
{
    struct wf_rule *rule = &r->draft->rule;
    struct wf_word name;

    while (wf_rule_take_word(r, &name))
        WF_TRY(read_tensor(r, name, false));
    if (!take_text(r, "->")) return wf_rule_fail(r, "a tensor or '->'");
    while (wf_rule_take_word(r, &name))
        WF_TRY(read_tensor(r, name, true));
    for (int i = 0; i < rule->output_count; i++)
        rule->slots[rule->input_count + i].depends = (UINT32_C(1) << rule->input_count) - 1;
    return WEFT_OK;
}

static weft_status read_line(struct wf_rule_reader *r)
{
    WF_TRY(read_names(r));
    if (r->draft->rule.step_count > 0) return WEFT_OK;
    WF_TRY(read_attrs(r));
    if (!take_char(r, ':')) return wf_rule_fail(r, "a name, '(' or ':'");
    WF_TRY(read_signature(r));
    return wf_rule_read_clauses(r);
}

static void begin_draft(struct wf_rule_draft *d, const char *text)
{
    memset(d, 0, sizeof *d);
    d->rule.text = text;
    d->rule.names = d->names;
    d->rule.attrs = d->attrs;
    d->rule.slots = d->slots;
    d->rule.symbols = d->symbols;
    d->rule.patterns = d->patterns;
    d->rule.parts = d->parts;
    d->rule.terms = d->terms;
}

/* ---- rules ---- */

/* Read the printed form of DRAFT and keep that. */
static weft_status settle_rule(struct wf_rule_draft *draft, struct wf_rule **out)
{
    struct wf_text printed = {0};
    struct wf_rule_reader again = {.draft = draft};
    weft_status status;

    wf_rule_print(&draft->rule, &printed);
    status = wf_text_status(&printed);
    if (status == WEFT_OK && printed.length > WF_RULE_TEXT)
        status = wf_fail(WEFT_ERR_INVALID, "a rule has %zu bytes; the maximum is %d",
                         printed.length, WF_RULE_TEXT);
    if (status == WEFT_OK) {
        begin_draft(draft, printed.data);
        again.scan.text = printed.data;
        status = read_line(&again);
    }
    if (status == WEFT_OK && draft->rule.step_count == 0) status = wf_rule_complete(&draft->rule);
    if (status == WEFT_OK) status = wf_rule_pack(&draft->rule, out);
    wf_text_free(&printed);
    return status;
}

weft_status wf_rule_read(const char *text, size_t *at, struct wf_rule **out)
{
    size_t length = strcspn(text + *at, "\n"), used = 0;
    struct wf_rule_draft *draft;
    struct wf_rule_reader r = {.scan = {text, *at}};
    weft_status status;

    used = length + (text[*at + length] == '\n');
    *out = NULL;
    wf_scan_space(&r.scan);
    if (r.scan.at >= *at + length || wf_scan_peek(&r.scan) == '#' ||
        wf_scan_peek(&r.scan) == '\r') {
        *at += used;
        return WEFT_OK;
    }
    if (length > WF_RULE_TEXT)
        return wf_scan_refuse(&r.scan, "rule", "a rule has at most %d bytes", WF_RULE_TEXT);
    draft = wf_alloc(sizeof *draft);
    if (draft == NULL) return wf_fail_memory(sizeof *draft);
    begin_draft(draft, text + *at);
    r.draft = draft;
    status = read_line(&r);
    if (status == WEFT_OK) status = settle_rule(draft, out);
    if (status == WEFT_OK) *at += used;
    wf_free(draft);
    return status;
}
