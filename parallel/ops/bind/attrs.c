/* attrs.c - the arguments of a call that are not tensors, and how a call is refused. */
#include "op.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

weft_status wf_op_refuse(const struct wf_op *op, const char *format, ...)
{
    char reason[WF_ERROR_BYTES];

    KIT_PRINT_REST(reason, format);
    return wf_fail(WEFT_ERR_INVALID, "operator %.100s: %s", op->name, reason);
}

weft_status wf_call_check_size(const char *function, const char *field, size_t size,
                               const char *type, size_t known)
{
    if (size == known) return WEFT_OK;
    return wf_fail(WEFT_ERR_VERSION,
                   "%s: weft_op_call.%s is %zu; set it to sizeof(%s), which is %zu in this version "
                   "of weft",
                   function, field, size, type, known);
}

weft_status wf_attrs_check(const char *function, const weft_op_call *call)
{
    if (call->attr_count == 0) return WEFT_OK;
    if (call->attrs == NULL)
        return wf_fail(WEFT_ERR_INVALID, "%s: weft_op_call.attrs is NULL", function);
    WF_TRY(wf_call_check_size(function, "attr_size", call->attr_size, "weft_op_attr",
                              sizeof *call->attrs));
    for (size_t i = 0; i < call->attr_count; i++) {
        const weft_op_attr *a = &call->attrs[i];
        const char *wrong = a->name == NULL                                                ? "name"
                            : a->kind > WEFT_ATTR_TEXT                                     ? "kind"
                            : a->kind == WEFT_ATTR_TEXT && a->text == NULL                 ? "text"
                            : a->kind == WEFT_ATTR_LIST && a->list == NULL && a->count > 0 ? "list"
                            : a->kind == WEFT_ATTR_LIST && a->count > INT32_MAX            ? "count"
                                                                                           : NULL;

        if (wrong != NULL)
            return wf_fail(WEFT_ERR_INVALID, "%s: attribute %zu, %.50s: its %s is %s", function, i,
                           a->name != NULL ? a->name : "without a name", wrong,
                           a->kind > WEFT_ATTR_TEXT ? "not one of enum weft_attr_kind" : "NULL");
    }
    return WEFT_OK;
}

const weft_op_attr *wf_attr_find(const weft_op_call *call, const char *name, size_t length)
{
    for (uint32_t i = 0; i < call->attr_count; i++)
        if (strncmp(call->attrs[i].name, name, length) == 0 && call->attrs[i].name[length] == '\0')
            return &call->attrs[i];
    return NULL;
}

static uint64_t bits_of(double real)
{
    uint64_t bits;

    memcpy(&bits, &real, sizeof bits);
    return bits;
}

bool wf_attr_same_value(const weft_op_attr *a, const weft_op_attr *b)
{
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case WEFT_ATTR_INT:
        return a->integer == b->integer;
    case WEFT_ATTR_REAL:
        return bits_of(a->real) == bits_of(b->real);
    case WEFT_ATTR_LIST:
        return a->count == b->count &&
               (a->count == 0 || memcmp(a->list, b->list, a->count * sizeof *a->list) == 0);
    default:
        return strcmp(a->text, b->text) == 0;
    }
}

bool wf_attr_number(const weft_op_attr *attr, double *out)
{
    if (attr->kind == WEFT_ATTR_INT)
        *out = (double)attr->integer;
    else if (attr->kind == WEFT_ATTR_REAL)
        *out = attr->real;
    else if (attr->kind == WEFT_ATTR_LIST && attr->count == 1)
        *out = (double)attr->list[0];
    else
        return false;
    return true;
}

bool wf_attr_int(const weft_op_call *call, const char *name, int64_t *out)
{
    const weft_op_attr *attr = wf_attr_find(call, name, strlen(name));
    double number;

    if (attr == NULL || !wf_attr_number(attr, &number)) return false;
    if (attr->kind == WEFT_ATTR_INT) {
        *out = attr->integer;
        return true;
    }
    if (!(fabs(number) < 9e18) || number != floor(number)) return false;
    *out = (int64_t)number;
    return true;
}

weft_status wf_attr_read_int(const struct wf_op *op, const weft_op_call *call, const char *name,
                             int64_t *out)
{
    if (wf_attr_find(call, name, strlen(name)) == NULL || wf_attr_int(call, name, out))
        return WEFT_OK;
    return wf_op_refuse(op, "attribute %s must be an integer", name);
}

bool wf_attr_list(const weft_op_attr *attr, const int64_t **list, uint32_t *count)
{
    if (attr == NULL || (attr->kind != WEFT_ATTR_INT && attr->kind != WEFT_ATTR_LIST)) return false;
    *list = attr->kind == WEFT_ATTR_INT ? &attr->integer : attr->list;
    *count = attr->kind == WEFT_ATTR_INT ? 1 : (uint32_t)attr->count;
    return true;
}

static bool compare_numbers(double a, enum wf_compare compare, double b)
{
    switch (compare) {
    case WF_IS_EQUAL:
        return a == b;
    case WF_IS_OTHER:
        return a != b;
    case WF_IS_LESS:
        return a < b;
    case WF_IS_LESS_EQUAL:
        return a <= b;
    case WF_IS_MORE:
        return a > b;
    case WF_IS_MORE_EQUAL:
        return a >= b;
    default:
        return true;
    }
}

static bool guard_holds(const struct wf_rule *rule, const struct wf_rule_attr *guard,
                        const weft_op_call *call)
{
    const weft_op_attr *attr = wf_attr_find(call, rule->text + guard->name.at, guard->name.length);
    double number;

    if (guard->compare == WF_IS_LISTED) return true;
    if (attr == NULL) return false;
    if (guard->is_number)
        return wf_attr_number(attr, &number)
                   ? compare_numbers(number, guard->compare, guard->number)
                   : guard->compare == WF_IS_OTHER;
    return (attr->kind == WEFT_ATTR_TEXT && wf_word_is(rule, guard->value, attr->text)) ==
           (guard->compare == WF_IS_EQUAL);
}

bool wf_attr_guards_hold(const struct wf_rule *rule, const weft_op_call *call)
{
    for (int i = 0; i < rule->attr_count; i++)
        if (!guard_holds(rule, &rule->attrs[i], call)) return false;
    return true;
}

/* ---- names ---- */

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

bool wf_attr_is_known(const struct wf_op_entry *entry, const char *name)
{
    /* no choice depends on these; docs/operators.md lists them */
    static const char *const ignored[] = {"eps",           "seed",         "generator",
                                          "device",        "layout",       "pin_memory",
                                          "memory_format", "non_blocking", "requires_grad"};
    static const char *const common[] = {"keepdim", "count"};

    for (uint32_t i = 0; i < entry->rule_count; i++)
        for (int j = 0; j < entry->rules[i]->attr_count; j++)
            if (wf_word_is(entry->rules[i], entry->rules[i]->attrs[j].name, name)) return true;
    return entry->takes_any || is_one_of(name, common, WF_COUNT(common)) ||
           is_one_of(name, ignored, WF_COUNT(ignored));
}

/* True if a line of ENTRY before line RULE, or RULE before its attribute ATTR, lists the name. */
static bool is_listed_before(const struct wf_op_entry *entry, uint32_t rule, int attr)
{
    const struct wf_rule *here = entry->rules[rule];
    struct wf_word name = here->attrs[attr].name;

    for (uint32_t i = 0; i <= rule; i++) {
        const struct wf_rule *r = entry->rules[i];
        for (int j = 0; j < (i < rule ? r->attr_count : attr); j++)
            if (r->attrs[j].name.length == name.length &&
                memcmp(r->text + r->attrs[j].name.at, here->text + name.at, name.length) == 0)
                return true;
    }
    return false;
}

void wf_attr_add_names(const struct wf_op_entry *entry, struct wf_text *out)
{
    for (uint32_t i = 0; i < entry->rule_count; i++)
        for (int j = 0; j < entry->rules[i]->attr_count; j++)
            if (!is_listed_before(entry, i, j))
                wf_text_add(out, "%s%.*s", out->length > 0 ? ", " : "",
                            WF_WORD(entry->rules[i], entry->rules[i]->attrs[j].name));
}

static weft_status refuse_name(const struct wf_op_entry *entry, const char *name,
                               const struct wf_op *op)
{
    struct wf_text names = {0};
    weft_status status;

    WF_TRY(wf_name_check(NULL, "the name of an attribute (weft_op_call.attrs)", name));
    wf_attr_add_names(entry, &names);
    if (names.length == 0) wf_text_add(&names, "none");
    status = wf_text_status(&names);
    if (status == WEFT_OK)
        status = wf_op_refuse(op, "it has no attribute %.50s; the attributes of its rules: %s",
                              name, names.data);
    wf_text_free(&names);
    return status;
}

/* The numbers of weft's own optimizers and of operators with factors. */
static bool is_rate(const char *name)
{
    static const char *const rates[] = {"lr",       "beta1",    "beta2",     "weight_decay",
                                        "maximize", "momentum", "dampening", "nesterov",
                                        "alpha",    "beta"};

    return is_one_of(name, rates, WF_COUNT(rates));
}

weft_status wf_attr_check(const struct wf_op_entry *entry, const weft_op_call *call,
                          const struct wf_op *op)
{
    for (uint32_t i = 0; i < call->attr_count; i++) {
        const weft_op_attr *a = &call->attrs[i];
        if (!wf_attr_is_known(entry, a->name)) return refuse_name(entry, a->name, op);
        if (strcmp(a->name, "keepdim") == 0 && a->kind == WEFT_ATTR_TEXT)
            return wf_op_refuse(op, "attribute keepdim is %.50s; it must be true or false",
                                a->text);
        if (a->kind == WEFT_ATTR_TEXT && !entry->registered && is_rate(a->name))
            return wf_op_refuse(op, "attribute %.50s is the text \"%.50s\"; it must be a number",
                                a->name, a->text);
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(call->attrs[j].name, a->name) == 0)
                return wf_op_refuse(op, "the call has attribute %.50s twice", a->name);
    }
    return WEFT_OK;
}

bool wf_attr_keepdim(const weft_op_call *call)
{
    int64_t keep;

    return wf_attr_int(call, "keepdim", &keep) && keep != 0;
}

/* ---- attributes that change nothing ---- */

static bool is_used(const struct wf_rule *rule, int attr)
{
    const struct wf_slot *outputs = rule->slots + rule->input_count;

    if (rule->attrs[attr].compare != WF_IS_LISTED) return true;
    for (int i = 0; i < rule->pattern_count; i++)
        if (rule->patterns[i].attr == attr + 1) return true;
    for (int i = 0; i < rule->symbol_count; i++)
        if (rule->symbols[i].size_attr == attr + 1 ||
            wf_words_same(rule, rule->symbols[i].name, rule->attrs[attr].name) ||
            rule->symbols[i].reduce == WF_REDUCE_NORM)
            return true;
    for (int i = 0; i < rule->output_count; i++) /* the dtype may depend on a fraction */
        if (outputs[i].type == WF_TYPE_ATTR || outputs[i].type == WF_TYPE_JOIN ||
            outputs[i].type == WF_TYPE_FLOAT)
            return true;
    return false;
}

static bool matters_to(const struct wf_op_entry *entry, const char *attr)
{
    if (wf_op_is_chain(entry) || entry->uses) return true;
    for (uint32_t i = 0; i < entry->rule_count; i++) {
        const struct wf_rule *rule = entry->rules[i];

        if (rule->make.length > 0 || rule->check.length > 0) return true;
        for (int j = 0; j < rule->attr_count; j++)
            if (wf_word_is(rule, rule->attrs[j].name, attr) && is_used(rule, j)) return true;
    }
    return strcmp(attr, "keepdim") == 0 || strcmp(attr, "count") == 0 || strcmp(attr, "p") == 0;
}

bool wf_op_attr_matters(const char *name, const char *attr)
{
    const struct wf_op_entry *entry;
    uint32_t ticket;
    bool matters;

    if (wf_op_enter(&ticket) != WEFT_OK) return true;
    entry = wf_op_find_form(name);
    matters = entry == NULL || matters_to(entry, attr);
    wf_op_leave(ticket);
    return matters;
}
