/* einsum.c - the gradients of einsum: einsum of the gradient and the other operands. */
#include "backward.h"

#include <string.h>

enum { OPERANDS = 16, LETTERS = 52 };

/* An equation, its operands in order. */
struct equation {
    struct {
        char letters[LETTERS + 1];
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
static weft_status read_letters(const char **at, char out[LETTERS + 1])
{
    size_t count = 0;

    for (; **at != '\0' && **at != ',' && **at != '-'; ++*at) {
        if (**at == '.') return refuse("an ellipsis");
        if (!is_letter(**at)) continue; /* a space */
        if (memchr(out, **at, count) != NULL) return refuse("a letter twice in one operand");
        out[count++] = **at;
    }
    out[count] = '\0';
    return WEFT_OK;
}

/* Without an arrow, the result has the letters of one operand only, in alphabetical order. */
static void imply_result(struct equation *e)
{
    size_t count = 0;

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

/* True if the result or an operand other than NUMBER has LETTER. */
static bool is_elsewhere(const struct equation *e, uint32_t number, char letter)
{
    for (uint32_t i = 0; i < e->count; i++)
        if (i != number && strchr(e->operand[i].letters, letter) != NULL) return true;
    return strchr(e->out.letters, letter) != NULL;
}

/* "ik,jk->ij": the gradient of operand NUMBER in the letters that the others have. */
static weft_status write_equation(const struct equation *e, uint32_t number, struct wf_text *out)
{
    wf_text_add(out, "%s", e->out.letters);
    for (uint32_t i = 0; i < e->count; i++)
        if (i != number) wf_text_add(out, ",%s", e->operand[i].letters);
    wf_text_add(out, "->");
    for (const char *c = e->operand[number].letters; *c != '\0'; c++)
        if (is_elsewhere(e, number, *c)) wf_text_add(out, "%c", *c);
    return wf_text_status(out);
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
        if (i != number) list[operands.count++] = (weft_op_operand){WEFT_OP_FROM_INPUT, i};
    WF_TRY(wf_step_begin(d, "einsum", 6, &call));
    status = write_equation(e, number, &text);
    eq.text = text.data;
    if (status == WEFT_OK) status = wf_value_add(d, "eq", &eq, &call);
    wf_text_free(&text);
    return status == WEFT_OK ? wf_step_add(d, &call, &operands, result) : status;
}

/* Every index of a letter that operand NUMBER alone has gets the same gradient. */
static weft_status spread(struct wf_derivation *d, const struct equation *e, uint32_t number,
                          weft_op_operand *result)
{
    const struct wf_layout *input = &d->backward->inputs[number]->layout;
    weft_op_operand pair[2] = {{WEFT_OP_FROM_INPUT, number}, *result};
    struct wf_operands second = {pair + 1, 1, 1}, both = {pair, 2, 2};
    int64_t shape[WEFT_MAX_DIMS];
    bool alone = false;
    weft_op_call call;

    for (int32_t i = 0; i < input->dims; i++) {
        bool has = is_elsewhere(e, number, e->operand[number].letters[i]);
        shape[i] = has ? input->shape[i] : 1;
        alone = alone || !has;
    }
    if (!alone) return WEFT_OK;
    WF_TRY(wf_step_begin(d, "reshape", 7, &call));
    WF_TRY(wf_value_add_list(d, "shape", shape, (uint32_t)input->dims, &call));
    WF_TRY(wf_step_add(d, &call, &second, &pair[1]));
    WF_TRY(wf_step_begin(d, "copy", 4, &call));
    return wf_step_add(d, &call, &both, result);
}

weft_status wf_einsum_evaluate(struct wf_derivation *d)
{
    const weft_op_attr *eq = wf_attr_find(d->forward, "eq", 2);
    struct equation e;

    WF_TRY(read_equation(eq->text, &e));
    for (uint32_t i = 0; i < e.count; i++) {
        weft_op_operand result;

        if (!wf_derive_wants(d, i)) continue;
        WF_TRY(add_product(d, &e, i, &result));
        WF_TRY(spread(d, &e, i, &result));
        WF_TRY(wf_derive_set(d, i, result));
    }
    return WEFT_OK;
}
