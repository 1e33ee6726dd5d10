/* rules.c - rule files: the text becomes rules. */
#include "checkpoint/rules/rules.h"

#include <string.h>

enum { MOST_NESTED = 16, MOST_LIST = 64, MOST_VALUES = 64 };

static const char grammar[] = "rules";

static const struct function {
    const char *name;
    uint8_t function;
    bool has_dim;
    int8_t least, most; /* numbers; -1: any */
} functions[] = {{"cat", WF_RULE_CAT, true, 0, 0},
                 {"split", WF_RULE_SPLIT, true, 0, -1},
                 {"stack", WF_RULE_STACK, true, 0, 0},
                 {"unstack", WF_RULE_UNSTACK, true, 0, 0},
                 {"interleave", WF_RULE_INTERLEAVE, true, 0, 1},
                 {"deinterleave", WF_RULE_DEINTERLEAVE, true, 0, 1},
                 {"slice", WF_RULE_SLICE, true, 2, 2},
                 {"pad", WF_RULE_PAD, true, 1, 1},
                 {"align", WF_RULE_ALIGN, true, 1, 1},
                 {"group", WF_RULE_GROUP, true, 1, 1},
                 {"flatten", WF_RULE_FLATTEN, true, 0, 0},
                 {"transpose", WF_RULE_TRANSPOSE, false, 0, -1},
                 {"reshape", WF_RULE_RESHAPE, false, 0, -1},
                 {"permute_heads", WF_RULE_PERMUTE_HEADS, false, 1, 1},
                 {"unpermute_heads", WF_RULE_UNPERMUTE_HEADS, false, 1, 1},
                 {"cast", WF_RULE_CAST, false, 0, 0},
                 {"tie", WF_RULE_TIE, false, 0, 0}};

struct value {
    const char *name;
    int64_t value;
    bool is_default; /* a line `let` gives it */
    bool known;      /* a line `let` has its name */
    bool missing;    /* a line `let` has its name only */
};

struct reader {
    weft_checkpoint_rules *rules;
    const struct wf_model *model; /* NULL: it is not known yet */
    struct wf_scan scan;
    struct wf_capture_names captures; /* of the rule that is read */
    struct value values[MOST_VALUES];
    size_t value_count;
    int depth;
};

/* ---- tokens ---- */

/* The bytes up to a blank, a comma, a parenthesis or =; those in braces belong to it. */
static size_t token_length(const struct wf_scan *scan)
{
    const char *text = scan->text + scan->at;
    size_t length = 0;

    for (bool inside = false; !wf_is_blank(text[length]); length++) {
        if (text[length] == '{') inside = true;
        if (text[length] == '}') inside = false;
        if (!inside && strchr(",()=", text[length]) != NULL) break;
    }
    return length;
}

/* Turn the error of a part of the text into one with its line. */
static weft_status refuse(const struct wf_scan *at, weft_status status)
{
    if (status == WEFT_OK || status == WEFT_ERR_NO_MEMORY) return status;
    return wf_scan_refuse(at, grammar, "%s", weft_last_error());
}

static weft_status read_pattern(struct reader *r, struct wf_pattern *out)
{
    size_t length = token_length(&r->scan);
    struct wf_scan at = r->scan;

    if (length == 0) return wf_scan_fail(&r->scan, grammar, "expected the name of a tensor");
    r->scan.at += length;
    return refuse(&at,
                  wf_pattern_read(&r->rules->arena, at.text + at.at, length, &r->captures, out));
}

/* ---- values ---- */

static struct value *find_value(struct reader *r, const char *name, size_t length)
{
    for (size_t i = 0; i < r->value_count; i++)
        if (strlen(r->values[i].name) == length && memcmp(r->values[i].name, name, length) == 0)
            return &r->values[i];
    return NULL;
}

/* 12 or $num_attention_heads in a line `let`.  Any number will do while the model is not known. */
static weft_status read_model_number(struct reader *r, struct wf_scan *scan, struct value *out)
{
    struct wf_scan at = *scan;
    const char *name = NULL;
    size_t length = 0;

    if (!wf_scan_char(scan, '$')) return wf_scan_int(scan, "a number", &out->value);
    if (!wf_scan_name(scan, &name, &length))
        return wf_scan_fail(scan, grammar, "expected a name after $");
    out->value = 1;
    if (find_value(r, out->name, strlen(out->name)) != NULL) return WEFT_OK; /* it is replaced */
    if (r->model == NULL) {
        r->rules->wants_model = true;
        return WEFT_OK;
    }
    if (wf_model_find(r->model, name, length, &out->value) == WEFT_OK) return WEFT_OK;
    return wf_scan_refuse(
        &at, grammar,
        "%s is $%.*s, a number of the model, but %s/config.json does not %s; give "
        "it a value, such as --set %s=32, or in C the argument \"%s=32\"",
        out->name, (int)length, name, r->model->folder, r->model->is_absent ? "exist" : "have it",
        out->name, out->name);
}

/* `name = 12` at the position of SCAN; in the file, `name` alone wants a value. */
static weft_status read_value(struct reader *r, struct wf_scan *scan, const char *kind,
                              struct value *out)
{
    const char *name = NULL;
    size_t length = 0;

    if (!wf_scan_name(scan, &name, &length)) return wf_scan_fail(scan, kind, "expected a name");
    *out = (struct value){.name = wf_arena_text(&r->rules->arena, name, length)};
    if (out->name == NULL) return wf_fail_memory(length + 1);
    wf_scan_space(scan);
    if (!wf_scan_char(scan, '=')) {
        out->missing = true;
        return kind == grammar ? WEFT_OK : wf_scan_fail(scan, kind, "expected =");
    }
    wf_scan_space(scan);
    return kind == grammar ? read_model_number(r, scan, out)
                           : wf_scan_int(scan, "a number", &out->value);
}

static weft_status add_value(struct reader *r, const struct wf_scan *at, const char *kind,
                             const struct value *value)
{
    struct value *old = find_value(r, value->name, strlen(value->name));

    if (old != NULL && (!value->is_default || old->known))
        return wf_scan_refuse(at, kind, "\"%s\" is given twice", value->name);
    if (old != NULL) {
        old->known = true;
        return WEFT_OK;
    }
    if (r->value_count == MOST_VALUES)
        return wf_scan_refuse(at, kind, "at most %d values can be given", MOST_VALUES);
    r->values[r->value_count++] = *value;
    return WEFT_OK;
}

/* "heads=32,kv_heads=8" */
static weft_status read_given(struct reader *r, const char *text)
{
    struct wf_scan scan = {.text = text};
    struct value value;

    do {
        struct wf_scan at = scan;
        WF_TRY(read_value(r, &scan, "values", &value));
        WF_TRY(add_value(r, &at, "values", &value));
    } while (wf_scan_char(&scan, ','));
    return wf_scan_end(&scan) ? WEFT_OK : wf_scan_fail(&scan, "values", "expected a comma");
}

/* ---- numbers ---- */

/* Does the token consist of numbers, $values and colons? */
static bool is_numbers(const struct wf_scan *scan, size_t length)
{
    const char *text = scan->text + scan->at;
    bool in_name = false;

    if (length == 0 || strchr("0123456789-$", text[0]) == NULL) return false;
    for (size_t i = 0; i < length; i++) {
        bool is_letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
                         text[i] == '_';
        if (text[i] == '$')
            in_name = true;
        else if (text[i] == ':')
            in_name = false;
        else if ((is_letter && !in_name) || (!is_letter && strchr("0123456789-", text[i]) == NULL))
            return false;
    }
    return true;
}

static weft_status read_number(struct reader *r, int64_t *out)
{
    struct wf_scan at = r->scan;
    bool negative = wf_scan_char(&r->scan, '-');
    const struct value *value;
    const char *name = NULL;
    size_t length = 0;

    if (!wf_scan_char(&r->scan, '$')) {
        WF_TRY(wf_scan_int(&r->scan, "a number", out));
        if (negative) *out = -*out;
        return WEFT_OK;
    }
    if (!wf_scan_name(&r->scan, &name, &length))
        return wf_scan_fail(&r->scan, grammar, "expected a name after $");
    value = find_value(r, name, length);
    if (value != NULL && value->missing)
        return wf_scan_refuse(&at, grammar,
                              "%s has no value; give one, such as --set %s=32, or in C the "
                              "argument \"%s=32\"",
                              value->name, value->name, value->name);
    if (value == NULL || !(value->is_default || value->known))
        return wf_scan_refuse(&at, grammar,
                              "no line before this one gives $%.*s a value, such as \"let %.*s = "
                              "32\"",
                              (int)length, name, (int)length, name);
    *out = value->value;
    return WEFT_OK;
}

static weft_status read_numbers(struct reader *r, struct wf_rule_term *term)
{
    for (bool first = true;; first = false) {
        if (term->number_count == MOST_LIST)
            return wf_scan_refuse(&r->scan, grammar, "at most %d numbers are possible", MOST_LIST);
        WF_TRY(read_number(r, &term->numbers[term->number_count]));
        term->number_count++;
        if (!wf_scan_char(&r->scan, ':')) return WEFT_OK;
        if (first) term->ratio = true;
    }
}

/* ---- expressions ---- */

static weft_status read_term(struct reader *r, struct wf_rule_term **out);

static weft_status find_function(struct reader *r, size_t length, struct wf_rule_term *term,
                                 const struct function **out)
{
    const char *text = r->scan.text + r->scan.at;

    for (size_t i = 0; i < WF_COUNT(functions); i++) {
        size_t own = strlen(functions[i].name);
        bool has_dim = length == own + 1 && text[own] >= '0' && text[own] <= '7';
        if (length < own || memcmp(text, functions[i].name, own) != 0 ||
            (functions[i].has_dim ? !has_dim : length != own))
            continue;
        term->function = functions[i].function;
        if (has_dim) term->dim = text[own] - '0';
        *out = &functions[i];
        return WEFT_OK;
    }
    return wf_scan_refuse(
        &r->scan, grammar,
        "\"%.*s\" is not a function; those with a dimension are, for dimension 0: cat0, split0, "
        "stack0, unstack0, interleave0, deinterleave0, slice0, pad0, align0, group0, flatten0; "
        "those without: transpose, reshape, permute_heads, unpermute_heads, cast, tie",
        (int)length, text);
}

static weft_status read_dtype(struct reader *r, int32_t *out)
{
    size_t length = token_length(&r->scan);
    struct wf_scan at = r->scan;
    char name[16] = "";

    if (length == 0) return wf_scan_fail(&at, grammar, "expected a dtype, such as bf16");
    if (length < sizeof name) memcpy(name, at.text + at.at, length);
    *out = wf_file_dtype_find(name);
    r->scan.at += length;
    if (*out >= 0 && wf_file_dtype((size_t)*out)->dtype < WEFT_DTYPE_COUNT) return WEFT_OK;
    if (*out >= 0) return wf_scan_refuse(&at, grammar, "weft does not cast to %s", name);
    return wf_dtype_refuse(&at, grammar, length);
}

static weft_status read_arguments(struct reader *r, const struct function *function,
                                  struct wf_rule_term *term)
{
    do {
        wf_scan_space(&r->scan);
        if (is_numbers(&r->scan, token_length(&r->scan)) && term->count > 0) {
            WF_TRY(read_numbers(r, term));
        } else if (term->function == WF_RULE_CAST && term->count > 0) {
            WF_TRY(read_dtype(r, &term->dtype));
        } else {
            if (term->count == MOST_LIST)
                return wf_scan_refuse(&r->scan, grammar, "at most %d tensors are possible",
                                      MOST_LIST);
            WF_TRY(read_term(r, &term->terms[term->count]));
            term->count++;
        }
        wf_scan_space(&r->scan);
    } while (wf_scan_char(&r->scan, ','));
    if (!wf_scan_char(&r->scan, ')')) return wf_scan_fail(&r->scan, grammar, "expected , or )");
    if (term->number_count < (size_t)function->least ||
        (function->most >= 0 && term->number_count > (size_t)function->most))
        return wf_scan_refuse(&r->scan, grammar, "%s has %zu numbers; it needs %s%d",
                              function->name, term->number_count,
                              function->most != function->least ? "at least " : "",
                              function->least);
    if (term->function == WF_RULE_CAST && term->dtype < 0)
        return wf_scan_fail(&r->scan, grammar, "expected a dtype, as in cast(x, bf16)");
    return WEFT_OK;
}

static weft_status read_term(struct reader *r, struct wf_rule_term **out)
{
    size_t length = token_length(&r->scan);
    struct wf_arena *arena = &r->rules->arena;
    const struct function *function = NULL;
    struct wf_rule_term *term = wf_arena_alloc(arena, sizeof *term);

    if (term == NULL) return wf_fail_memory(sizeof *term);
    *out = term;
    *term = (struct wf_rule_term){.function = WF_RULE_NAME, .dtype = -1};
    if (r->scan.text[r->scan.at + length] != '(') return read_pattern(r, &term->pattern);
    if (++r->depth > MOST_NESTED)
        return wf_scan_refuse(&r->scan, grammar, "more than %d functions are nested", MOST_NESTED);
    WF_TRY(find_function(r, length, term, &function));
    term->terms = wf_arena_alloc(arena, MOST_LIST * sizeof(struct wf_rule_term *));
    term->numbers = wf_arena_alloc(arena, MOST_LIST * sizeof *term->numbers);
    if (term->terms == NULL || term->numbers == NULL) return wf_fail_memory(MOST_LIST * 8);
    r->scan.at += length + 1;
    WF_TRY(read_arguments(r, function, term));
    r->depth--;
    return WEFT_OK;
}

/* ---- lines ---- */

static weft_status end_line(struct wf_scan *scan)
{
    wf_scan_space(scan);
    if (wf_scan_end(scan) || strchr("#\r\n", wf_scan_peek(scan)) != NULL) return WEFT_OK;
    return wf_scan_fail(scan, grammar, "expected the end of the line");
}

static weft_status read_action(struct reader *r, struct wf_rule *rule)
{
    wf_scan_space(&r->scan);
    if (wf_scan_word(&r->scan, "drop")) {
        rule->kind = WF_RULE_DROP;
        return WEFT_OK;
    }
    if (!wf_scan_word(&r->scan, "cast"))
        return wf_scan_fail(&r->scan, grammar, "expected drop, or cast and a dtype");
    rule->kind = WF_RULE_CASTS;
    wf_scan_space(&r->scan);
    return read_dtype(r, &rule->dtype);
}

static weft_status add_rule(weft_checkpoint_rules *rules, const struct wf_rule *rule)
{
    WF_TRY(wf_grow(&rules->rules, sizeof *rules->rules, rules->count, &rules->capacity));
    rules->rules[rules->count++] = *rule;
    return WEFT_OK;
}

static weft_status read_rule(struct reader *r)
{
    struct wf_rule rule = {.kind = WF_RULE_MAP, .line = wf_scan_line(&r->scan), .dtype = -1};

    r->captures.count = 0;
    r->depth = 0;
    rule.optional = wf_scan_char(&r->scan, '?');
    wf_scan_space(&r->scan);
    WF_TRY(read_pattern(r, &rule.pattern));
    wf_scan_space(&r->scan);
    if (wf_scan_char(&r->scan, '=')) {
        wf_scan_space(&r->scan);
        WF_TRY(read_term(r, &rule.term));
    } else if (wf_scan_char(&r->scan, ':')) {
        WF_TRY(read_action(r, &rule));
    } else {
        return wf_scan_fail(&r->scan, grammar, "expected = or :");
    }
    WF_TRY(end_line(&r->scan));
    return add_rule(r->rules, &rule);
}

static weft_status read_let(struct reader *r)
{
    struct wf_scan at = r->scan;
    struct value value;

    WF_TRY(read_value(r, &r->scan, grammar, &value));
    value.is_default = value.known = true;
    WF_TRY(add_value(r, &at, grammar, &value));
    return end_line(&r->scan);
}

static weft_status read_rules(struct reader *r, const char *text, const char *values)
{
    r->scan = (struct wf_scan){.text = text};
    if (values != NULL && values[0] != '\0') WF_TRY(read_given(r, values));
    while (wf_scan_next_line(&r->scan)) {
        size_t at = r->scan.at;
        if (wf_scan_word(&r->scan, "let") && wf_is_blank(wf_scan_peek(&r->scan))) {
            wf_scan_space(&r->scan);
            WF_TRY(read_let(r));
        } else {
            r->scan.at = at;
            WF_TRY(read_rule(r));
        }
    }
    for (size_t i = 0; i < r->value_count; i++)
        if (!r->values[i].known)
            return wf_fail(WEFT_ERR_INVALID,
                           "a value is given to \"%s\", but no line \"let %s = "
                           "...\" has that name",
                           r->values[i].name, r->values[i].name);
    return wf_rules_check_order(r->rules);
}

/* ---- the public functions ---- */

/* Keep what it takes to read RULES again. */
static weft_status keep_source(weft_checkpoint_rules *rules, const char *text, const char *path,
                               const char *values)
{
    struct {
        const char *from, **to;
    } all[] = {{path, &rules->path}, {text, &rules->text}, {values, &rules->values}};

    for (size_t i = 0; i < WF_COUNT(all); i++) {
        if (all[i].from == NULL) continue;
        *all[i].to = wf_arena_text(&rules->arena, all[i].from, strlen(all[i].from));
        if (*all[i].to == NULL) return wf_fail_memory(strlen(all[i].from) + 1);
    }
    return WEFT_OK;
}

/* PATH is NULL for a TEXT that is not of a file, and MODEL as long as it is not known. */
static weft_status make_rules(const char *text, const char *path, const char *values,
                              const struct wf_model *model, weft_checkpoint_rules **out)
{
    weft_checkpoint_rules *rules = wf_calloc(1, sizeof *rules);
    struct reader *reader = wf_calloc(1, sizeof *reader);
    weft_status status = WEFT_OK;

    if (rules == NULL || reader == NULL) status = wf_fail_memory(sizeof *rules + sizeof *reader);
    if (status == WEFT_OK) {
        rules->made = WF_OF_KIND(WF_KIND_RULES);
        reader->rules = rules;
        reader->model = model;
        status = keep_source(rules, text, path, values);
        if (status == WEFT_OK) status = read_rules(reader, text, values);
    }
    wf_free(reader);
    if (status == WEFT_OK)
        *out = rules;
    else if (rules != NULL && rules->made != 0)
        weft_checkpoint_rules_release(&rules);
    else
        wf_free(rules);
    return status;
}

weft_status wf_rules_for(const weft_checkpoint_rules *rules, const weft_checkpoint *of,
                         weft_checkpoint_rules **out)
{
    struct wf_model model;
    weft_status status = wf_model_read(of, &model);

    if (status == WEFT_OK)
        status = make_rules(rules->text, rules->path, rules->values, &model, out);
    wf_model_free(&model);
    return status;
}

extern const struct wf_shipped_list wf_shipped_rules; /* cmake/weft_shipped.cmake */

weft_status weft_checkpoint_rules_parse(const char *text, const char *values,
                                        weft_checkpoint_rules **out)
{
    WF_TRY(wf_require(text, "weft_checkpoint_rules_parse: text"));
    WF_TRY(wf_require(out, "weft_checkpoint_rules_parse: out"));
    return wf_fail_named(make_rules(text, NULL, values, NULL, out), "weft_checkpoint_rules_parse");
}

weft_status weft_checkpoint_rules_open(const char *path, const char *values,
                                       weft_checkpoint_rules **out)
{
    struct wf_text text = {0};
    weft_status status;

    WF_TRY(wf_require(path, "weft_checkpoint_rules_open: path"));
    WF_TRY(wf_require(out, "weft_checkpoint_rules_open: out"));
    status = wf_shipped_read(&wf_shipped_rules, path, &text);
    if (status == WEFT_OK) {
        status = make_rules(text.data, path, values, NULL, out);
        if (status != WEFT_OK) wf_fail_context(status, "%s", path);
    }
    wf_text_free(&text);
    return wf_fail_named(status, "weft_checkpoint_rules_open");
}

void weft_checkpoint_rules_release(weft_checkpoint_rules **rules)
{
    weft_checkpoint_rules *object = wf_take(rules, WF_KIND_RULES, "weft_checkpoint_rules_release");

    if (object == NULL) return;
    wf_arena_free(&object->arena);
    wf_free(object->rules);
    object->made = wf_released(WF_KIND_RULES);
    wf_free(object);
}
