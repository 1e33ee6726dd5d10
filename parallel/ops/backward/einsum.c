/* einsum.c - the gradients of einsum: einsum of the gradient and the other operands.  An ellipsis
 * becomes letters that the equation does not have. */
#include "backward.h"

#include <string.h>

enum { OPERANDS = 16, LETTERS = 52, ELLIPSIS = '.', BROADCAST = '1' };

/* An equation, its operands in order.  Each has a letter per dimension, or BROADCAST for one of
 * size 1 that broadcasts, or, before it is replaced, ELLIPSIS. */
struct equation {
    struct {
        char letters[LETTERS + 2];
    } operand[OPERANDS], out;
    uint32_t count;
};

static weft_status refuse(const char *reason)
{
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "operator einsum: the gradients of an equation with %s are "
                   "not known",
                   reason);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Read the letters at *AT, up to a comma, an arrow or the end. */
static weft_status read_letters(const char **at, char out[LETTERS + 2])
{
    size_t count = 0;

    for (; **at != '\0' && **at != ',' && **at != '-'; ++*at) {
        if (**at == ELLIPSIS)
            *at += 2; /* of three points */
        else if (!is_letter(**at))
            continue; /* a space */
        if (memchr(out, **at, count) != NULL) return refuse("a letter twice in one operand");
        out[count++] = **at;
    }
    out[count] = '\0';
    return WEFT_OK;
}

/* Without an arrow, the result has the ellipsis, and the letters of one operand only, in
 * alphabetical order. */
static void imply_result(struct equation *e)
{
    size_t count = 0;

    for (uint32_t i = 0; i < e->count && count == 0; i++)
        if (strchr(e->operand[i].letters, ELLIPSIS) != NULL) e->out.letters[count++] = ELLIPSIS;
    for (int c = 'A'; c <= 'z'; c++) {
        uint32_t holders = 0;

        for (uint32_t i = 0; i < e->count && is_letter((char)c); i++)
            holders += strchr(e->operand[i].letters, c) != NULL;
        if (holders == 1) e->out.letters[count++] = (char)c;
    }
    e->out.letters[count] = '\0';
}

static weft_status read_equation(const char *text, struct equation *e)
{
    const char *at = text;

    e->count = 0;
    for (;; at++) {
        if (e->count == OPERANDS) return refuse("more than 16 operands");
        WF_TRY(read_letters(&at, e->operand[e->count++].letters));
        if (*at != ',') break;
    }
    if (*at == '\0') {
        imply_result(e);
        return WEFT_OK;
    }
    at += 2;
    return read_letters(&at, e->out.letters);
}

/* ---- the ellipsis ---- */

/* The dimensions of the ellipsis of operand NUMBER; -1: it has none. */
static int32_t ellipsis_dims(const struct equation *e, uint32_t number, const weft_spec *input)
{
    const char *letters = e->operand[number].letters;

    return strchr(letters, ELLIPSIS) == NULL ? -1
                                             : weft_spec_dims(input) - (int32_t)strlen(letters) + 1;
}

/* The first COUNT letters that the equation does not have. */
static weft_status find_unused(const struct equation *e, int32_t count, char *out)
{
    for (int c = 'a'; count > 0; c = c == 'z' ? 'A' : c + 1) {
        bool used = strchr(e->out.letters, c) != NULL;
        if (c == 'Z' + 1) return refuse("more than 52 indices");
        for (uint32_t i = 0; i < e->count; i++)
            used = used || strchr(e->operand[i].letters, c) != NULL;
        if (used) continue;
        *out++ = (char)c;
        count--;
    }
    *out = '\0';
    return WEFT_OK;
}

/* Put WITH in the place of the ellipsis of LETTERS. */
static void replace(char letters[LETTERS + 2], const char *with)
{
    char *at = strchr(letters, ELLIPSIS);
    size_t count = strlen(with);

    if (at == NULL) return;
    memmove(at + count, at + 1, strlen(at + 1) + 1);
    memcpy(at, with, count);
}

/* Dimensions of an ellipsis are aligned from the right, and broadcast. */
static weft_status replace_ellipses(const struct wf_derivation *d, struct equation *e)
{
    weft_spec *const *inputs = d->backward->inputs;
    int64_t sizes[WEFT_MAX_DIMS];
    char fresh[WEFT_MAX_DIMS + 1];
    int32_t most = 0;

    for (uint32_t i = 0; i < e->count; i++)
        most = (int32_t)wf_max_i64(most, ellipsis_dims(e, i, inputs[i]));
    WF_TRY(find_unused(e, most, fresh));
    for (int32_t k = 0; k < most; k++)
        sizes[k] = 1;
    for (int pass = 0; pass < 2; pass++) /* sizes, then letters */
        for (uint32_t i = 0; i < e->count; i++) {
            const int64_t *shape = weft_spec_shape(inputs[i]);
            int32_t count = ellipsis_dims(e, i, inputs[i]), first = 0;
            char own[WEFT_MAX_DIMS + 1];
            if (count < 0) continue;
            while (e->operand[i].letters[first] != ELLIPSIS)
                first++;
            for (int32_t k = 0; k < count; k++) {
                int64_t size = shape[first + k], *full = &sizes[most - count + k];
                if (size != 1) *full = size;
                own[k] = size == *full ? fresh[most - count + k] : BROADCAST;
            }
            own[count] = '\0';
            if (pass == 1) replace(e->operand[i].letters, own);
        }
    replace(e->out.letters, fresh);
    return WEFT_OK;
}

/* ---- gradients ---- */

/* True if the result or an operand other than NUMBER has LETTER. */
static bool is_elsewhere(const struct equation *e, uint32_t number, char letter)
{
    if (letter == BROADCAST) return false;
    for (uint32_t i = 0; i < e->count; i++)
        if (i != number && strchr(e->operand[i].letters, letter) != NULL) return true;
    return strchr(e->out.letters, letter) != NULL;
}

/* "ik,jk->ij": the gradient of operand NUMBER in the letters that the others have. */
static weft_status write_equation(const struct equation *e, uint32_t number, struct wf_text *out)
{
    wf_text_add(out, "%s", e->out.letters);
    for (uint32_t i = 0; i < e->count; i++) {
        if (i == number) continue;
        wf_text_char(out, ',');
        for (const char *c = e->operand[i].letters; *c != '\0'; c++)
            if (*c != BROADCAST) wf_text_char(out, *c);
    }
    wf_text_add(out, "->");
    for (const char *c = e->operand[number].letters; *c != '\0'; c++)
        if (is_elsewhere(e, number, *c)) wf_text_add(out, "%c", *c);
    return wf_text_status(out);
}

/* Operand NUMBER without the dimensions that broadcast. */
static weft_status add_operand(struct wf_derivation *d, const struct equation *e, uint32_t number,
                               weft_op_operand *out)
{
    const weft_spec *input = d->backward->inputs[number];
    weft_op_operand from = {WEFT_OP_FROM_INPUT, number};
    struct wf_operands operands = {&from, 1, 1};
    int64_t shape[WEFT_MAX_DIMS];
    uint32_t dims = 0;
    weft_op_call call;

    for (int32_t i = 0; i < weft_spec_dims(input); i++)
        if (e->operand[number].letters[i] != BROADCAST) shape[dims++] = weft_spec_shape(input)[i];
    *out = from;
    if ((int32_t)dims == weft_spec_dims(input)) return WEFT_OK;
    WF_TRY(wf_step_begin(d, "reshape", 7, &call));
    WF_TRY(wf_value_add_list(d, "shape", shape, dims, &call));
    return wf_step_add(d, &call, &operands, out);
}

static weft_status add_product(struct wf_derivation *d, const struct equation *e, uint32_t number,
                               weft_op_operand *result)
{
    weft_op_operand list[OPERANDS] = {{WEFT_OP_FROM_GRADIENT, 0}};
    struct wf_operands operands = {list, 1, OPERANDS};
    weft_op_attr eq = {.name = "eq", .kind = WEFT_ATTR_TEXT};
    struct wf_text text = {0};
    weft_status status;
    weft_op_call call;

    for (uint32_t i = 0; i < e->count; i++)
        if (i != number) WF_TRY(add_operand(d, e, i, &list[operands.count++]));
    WF_TRY(wf_step_begin(d, "einsum", 6, &call));
    status = write_equation(e, number, &text);
    eq.text = text.data;
    if (status == WEFT_OK) status = wf_value_add(d, "eq", &eq, &call);
    wf_text_free(&text);
    return status == WEFT_OK ? wf_step_add(d, &call, &operands, result) : status;
}

/* Every index of a letter that operand NUMBER alone has gets the same gradient, and dimensions that
 * broadcast have size 1. */
static weft_status spread(struct wf_derivation *d, const struct equation *e, uint32_t number,
                          weft_op_operand *result)
{
    const weft_spec *input = d->backward->inputs[number];
    weft_op_operand pair[2] = {{WEFT_OP_FROM_INPUT, number}, *result};
    struct wf_operands second = {pair + 1, 1, 1}, both = {pair, 2, 2};
    int64_t shape[WEFT_MAX_DIMS];
    bool alone = false, broadcasts = false;
    weft_op_call call;

    for (int32_t i = 0; i < weft_spec_dims(input); i++) {
        char letter = e->operand[number].letters[i];
        bool has = is_elsewhere(e, number, letter);
        shape[i] = has ? weft_spec_shape(input)[i] : 1;
        alone = alone || (!has && letter != BROADCAST);
        broadcasts = broadcasts || letter == BROADCAST;
    }
    if (!alone && !broadcasts) return WEFT_OK;
    WF_TRY(wf_step_begin(d, "reshape", 7, &call));
    WF_TRY(wf_value_add_list(d, "shape", shape, (uint32_t)weft_spec_dims(input), &call));
    WF_TRY(wf_step_add(d, &call, &second, alone ? &pair[1] : result));
    if (!alone) return WEFT_OK;
    WF_TRY(wf_step_begin(d, "copy", 4, &call));
    return wf_step_add(d, &call, &both, result);
}

weft_status wf_einsum_evaluate(struct wf_derivation *d)
{
    const weft_op_attr *eq = wf_attr_find(d->forward, "eq", 2);
    struct equation e;

    WF_TRY(read_equation(eq->text, &e));
    WF_TRY(replace_ellipses(d, &e));
    for (uint32_t i = 0; i < e.count; i++) {
        weft_op_operand result;

        if (!wf_derive_wants(d, i)) continue;
        WF_TRY(add_product(d, &e, i, &result));
        WF_TRY(spread(d, &e, i, &result));
        WF_TRY(wf_derive_set(d, i, result));
    }
    return WEFT_OK;
}
