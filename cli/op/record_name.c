/* record_name.c - which operator a record calls, and in which order it takes the tensors. */
#include "record.h"

#include <string.h>

/* Functions that run several operators of PyTorch, and are one here. */
static const struct {
    const char *theirs, *ours;
} composites[] = {
    {"chunk", "chunk"},
    {"einsum", "einsum"},
    {"flatten", "flatten"},
    {"hstack", "cat"},
    {"layer_norm_fn", "layer_norm"},
    {"linear", "linear"},
    {"movedim", "permute"},
    {"mse_loss_fn", "mse_loss"},
    {"narrow", "narrow"},
    {"one_hot", "one_hot"},
    {"outer_fn", "outer"},
    {"repeat_interleave", "repeat_interleave"},
    {"rms_norm_fn", "rms_norm"},
    {"sdpa", "sdpa"},
    {"softmax_fn", "softmax"},
    {"std_fn", "std"},
    {"tile", "tile"},
    {"unflatten", "unflatten"},
};

static void set_name(struct op_record *r, const char *name)
{
    snprintf(r->name, sizeof r->name, "%s", name);
}

/* The product of two tensors, one of which may be a vector. */
static weft_status name_matmul(struct op_record *r)
{
    int32_t a = r->in_count == 2 ? r->in[0].dims : 0, b = r->in_count == 2 ? r->in[1].dims : 0;
    const char *batch = "abcdef";

    if (a == 0 || b == 0) return wf_fail(WEFT_ERR_INVALID, "matmul takes two tensors");
    set_name(r, a == 1 && b == 1 ? "dot" : a > 1 && b > 1 ? "matmul" : "einsum");
    if (a == 1)
        snprintf(r->equation, sizeof r->equation, "k,%.*skn->%.*sn", b - 2, batch, b - 2, batch);
    else
        snprintf(r->equation, sizeof r->equation, "%.*smk,k->%.*sm", a - 2, batch, a - 2, batch);
    return WEFT_OK;
}

static weft_status name_composite(struct op_record *r)
{
    for (size_t i = 0; i < WF_COUNT(composites); i++)
        if (strcmp(composites[i].theirs, r->op) == 0) {
            set_name(r, composites[i].ours);
            return WEFT_OK;
        }
    if (strcmp(r->op, "matmul") == 0) return name_matmul(r);
    return wf_fail(WEFT_ERR_UNSUPPORTED, "%.100s runs several operators", r->op);
}

static void name_grouped(struct op_record *r)
{
    const struct wf_json_value *form = wf_json_find(r->params, "form");
    const char *text = form != NULL && form->kind == WF_JSON_STRING ? form->text : "2d3d";

    set_name(r, strcmp(text, "3d3d") == 0   ? "grouped_mm_3d"
                : strcmp(text, "2d2d") == 0 ? "grouped_mm_k"
                : strcmp(text, "3d2d") == 0 ? "grouped_mm_t"
                                            : "grouped_mm");
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), more = strlen(end);

    return length >= more && strcmp(text + length - more, end) == 0;
}

static bool is_known(const char *name)
{
    return weft_op_print(name, NULL, 0, NULL) == WEFT_OK;
}

weft_status op_record_name(struct op_record *r)
{
    if (strcmp(r->op, "index_bool") == 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "the size of the output depends on data");
    if (strcmp(r->aten, "composite") == 0)
        WF_TRY(name_composite(r));
    else if (strcmp(r->op, "grouped_mm") == 0)
        name_grouped(r);
    else if (strcmp(r->op, "bernoulli_") == 0)
        set_name(r, "uniform_"); /* with a probability that is a number */
    else if (r->aten[0] == '\0' || (ends_with(r->op, "_scalar") && is_known(r->op)))
        set_name(r, r->op);
    else
        set_name(r, r->aten);
    return weft_op_print(r->name, r->rules, sizeof r->rules, NULL);
}

/* ---- tensors ---- */

/* Operators with optional inputs, and how many inputs their rules have. */
static const struct {
    const char *op;
    uint32_t count;
} optional[] = {
    {"batch_norm", 5},
    {"conv1d", 3},
    {"conv2d", 3},
    {"group_norm", 3},
    {"group_norm_backward", 5},
    {"layer_norm", 3},
    {"layer_norm_backward", 6},
    {"nll_loss", 3},
    {"nll_loss2d", 3},
    {"nll_loss_backward", 5},
    {"rms_norm", 2},
};

/* The number of the tensor that argument A is; -1: A is null; -2: something else. */
static int32_t tensor_of(const struct op_record *r, const struct wf_json_value *a)
{
    const struct wf_json_value *t = wf_json_find(a, "t");

    if (a->kind == WF_JSON_NULL) return -1;
    if (t == NULL || t->kind != WF_JSON_INT || t->integer < 0 || t->integer >= r->in_count)
        return -2;
    return (int32_t)t->integer;
}

uint32_t op_record_order(const struct op_record *r, int32_t *out, uint32_t room)
{
    uint32_t most = 0, count = 0;
    bool backward =
        strcmp(r->op, "sdpa_flash_backward") == 0 || strcmp(r->op, "sdpa_efficient_backward") == 0;

    for (size_t i = 0; i < WF_COUNT(optional); i++)
        if (strcmp(optional[i].op, r->op) == 0) most = optional[i].count;
    if (strncmp(r->op, "nll_loss", 8) == 0 && r->in_count == 2) most = 2;
    if (most > 0 && r->args != NULL) {
        for (const struct wf_json_value *a = r->args->first; a != NULL && count < most; a = a->next)
            if (tensor_of(r, a) > -2) out[count++] = tensor_of(r, a);
        return count;
    }
    count = r->in_count < room ? r->in_count : room;
    if (backward && count > 6) count = 6; /* the others are the state of random numbers */
    for (uint32_t i = 0; i < count; i++)
        out[i] = (int32_t)i;
    if (strcmp(r->op, "searchsorted") == 0 && count == 2) { /* the sorted one comes first there */
        out[0] = 1;
        out[1] = 0;
    }
    return count;
}
