/* attrs.c - the arguments of a call that are not tensors, and how a call is refused. */
#include "op.h"

#include <math.h>
#include <string.h>

weft_status wf_op_refuse(const struct wf_op *op, const char *format, ...)
{
    struct wf_text reason = {0};
    weft_status status;
    va_list args;

    va_start(args, format);
    wf_text_addv(&reason, format, args);
    va_end(args);
    status = wf_text_status(&reason);
    if (status == WEFT_OK)
        status = wf_fail(WEFT_ERR_INVALID, "operator %.100s: %s", op->name, reason.data);
    wf_text_free(&reason);
    return status;
}

const weft_op_attr *wf_attr_find(const weft_op_call *call, const char *name, size_t length)
{
    for (uint32_t i = 0; i < call->attr_count; i++)
        if (strncmp(call->attrs[i].name, name, length) == 0 && call->attrs[i].name[length] == '\0')
            return &call->attrs[i];
    return NULL;
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

bool wf_attr_list(const weft_op_attr *attr, const int64_t **list, uint32_t *count)
{
    if (attr == NULL || (attr->kind != WEFT_ATTR_INT && attr->kind != WEFT_ATTR_LIST)) return false;
    *list = attr->kind == WEFT_ATTR_INT ? &attr->integer : attr->list;
    *count = attr->kind == WEFT_ATTR_INT ? 1 : attr->count;
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

bool wf_attr_keepdim(const weft_op_call *call)
{
    int64_t keep;

    return wf_attr_int(call, "keepdim", &keep) && keep != 0;
}
