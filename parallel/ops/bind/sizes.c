/* sizes.c - the factors of a call and their sizes. */
#include "op.h"

#include <math.h>
#include <string.h>

/* ---- factors ---- */

/* The factor INDEX of SYMBOL, made if it does not exist; NULL: too many. */
static struct wf_op_factor *use_factor(struct wf_op *op, int symbol, int index)
{
    const struct wf_symbol *s = &op->rule->symbols[symbol];
    struct wf_op_factor *f;

    for (uint32_t i = 0; i < op->factor_count; i++)
        if (op->factors[i].symbol == symbol && op->factors[i].index == index)
            return &op->factors[i];
    if (op->factor_count == WF_OP_FACTORS) return NULL;
    f = &op->factors[op->factor_count++];
    *f = (struct wf_op_factor){s->size,  (uint8_t)symbol, (uint8_t)index,
                               s->flags, s->reduce,       s->step};
    return f;
}

/* "k", "..", "S.. 1" for messages. */
void wf_op_name_factor(const struct wf_op *op, const struct wf_op_factor *f, char *out,
                       size_t bytes)
{
    const struct wf_symbol *s = &op->rule->symbols[f->symbol];
    size_t length = s->name.length < bytes - 3 ? s->name.length : bytes - 3;

    memcpy(out, op->rule->text + s->name.at, length);
    memcpy(out + length, s->kind >= WF_SYMBOL_RUN ? ".." : "", s->kind >= WF_SYMBOL_RUN ? 3 : 1);
}

static const struct wf_op_tensor *first_with(const struct wf_op *op, const struct wf_op_factor *f,
                                             int *dim)
{
    uint8_t id = (uint8_t)(f - op->factors);

    for (uint32_t i = 0; i < op->input_count; i++)
        for (int d = 0; d < op->tensors[i].dims && op->tensors[i].present; d++)
            if (op->tensors[i].dim[d].count == 1 && op->tensors[i].dim[d].factor[0] == id &&
                op->tensors[i].shape[d] == f->size) {
                *dim = d;
                return &op->tensors[i];
            }
    return NULL;
}

/* Append " in dimension 2 of x", or " in dimension 2 of tensor 1 of x" if x is a list. */
static void add_place(const struct wf_op *op, const struct wf_op_tensor *tensor, int dim,
                      struct wf_text *out)
{
    int member = 0;

    while (tensor - member > op->tensors && tensor[-member - 1].slot == tensor->slot)
        member++;
    wf_text_add(out, " in dimension %d of ", dim);
    if (op->rule->slots[tensor->slot].list) wf_text_add(out, "tensor %d of ", member);
    wf_text_add(out, "%.*s", WF_WORD(op->rule, wf_op_name(op, tensor)));
}

static weft_status refuse_size(const struct wf_op *op, const struct wf_op_factor *f,
                               const struct wf_op_tensor *tensor, int dim)
{
    const struct wf_op_tensor *other;
    struct wf_text text = {0};
    weft_status status;
    char name[40];
    int at = 0;

    wf_op_name_factor(op, f, name, sizeof name);
    other = first_with(op, f, &at);
    wf_text_add(&text, "factor %s is %lld", name, (long long)f->size);
    if (other != NULL) add_place(op, other, at, &text);
    wf_text_add(&text, ", and %lld", (long long)tensor->shape[dim]);
    add_place(op, tensor, dim, &text);
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = wf_op_refuse(op, "%s", text.data);
    wf_text_free(&text);
    return status;
}

/* Dimension DIM of TENSOR, of one factor, has its size. */
static weft_status learn_size(struct wf_op *op, const struct wf_op_tensor *tensor, int dim)
{
    struct wf_op_factor *f = &op->factors[tensor->dim[dim].factor[0]];
    const struct wf_slot *slot = &op->rule->slots[tensor->slot];
    uint32_t kind = op->rule->symbols[f->symbol].kind;
    int64_t size = tensor->shape[dim];

    if ((kind == WF_SYMBOL_REST || slot->broadcast) && size == 1) return WEFT_OK;
    if (f->size < 0) f->size = size;
    if (f->size == size) return WEFT_OK;
    if (kind != WF_SYMBOL_RUN && (f->flags & WF_VARIES) == 0)
        return refuse_size(op, f, tensor, dim);
    f->flags |= WF_DIFFERS;
    return WEFT_OK;
}

/* The factors of the dimension at PLACE.  RUN is the length of the tensor's run. */
weft_status wf_op_set_dim(struct wf_op *op, const struct wf_op_tensor *tensor,
                          struct wf_place place, int run, struct wf_op_dim *out)
{
    const struct wf_rule *rule = op->rule;
    const struct wf_slot *slot = &rule->slots[tensor->slot];
    const struct wf_pattern *p;

    out->count = 0;
    if (place.pattern < 0) return WEFT_OK;
    p = &rule->patterns[slot->first + place.pattern];
    for (int i = 0; i < p->count; i++) {
        int symbol = rule->parts[p->first + i], index = place.sub;
        const struct wf_symbol *s = &rule->symbols[symbol];
        struct wf_op_factor *f;
        if (slot->list && (s->flags & WF_WHOLE) != 0) continue; /* each member has its own */
        if (s->kind == WF_SYMBOL_REST) index = run - 1 - place.sub;
        f = use_factor(op, symbol, s->kind == WF_SYMBOL_FACTOR ? 0 : index);
        if (f == NULL) return wf_op_refuse(op, "it has more than %d factors", WF_OP_FACTORS);
        out->factor[out->count++] = (uint8_t)(f - op->factors);
    }
    return WEFT_OK;
}

int wf_op_count_run(const struct wf_op *op, const struct wf_op_tensor *tensor,
                    const struct wf_place *places)
{
    const struct wf_rule *rule = op->rule;
    const struct wf_slot *slot = &rule->slots[tensor->slot];
    int count = 0;

    for (int d = 0; d < tensor->dims; d++) {
        const struct wf_pattern *p;
        if (places[d].pattern < 0) continue;
        p = &rule->patterns[slot->first + places[d].pattern];
        count += p->kind == WF_PATTERN_SYMBOL &&
                 rule->symbols[rule->parts[p->first]].kind >= WF_SYMBOL_RUN;
    }
    return count;
}

weft_status wf_op_bind_input(struct wf_spread *spread, struct wf_op_tensor *tensor)
{
    struct wf_op *op = spread->op;
    struct wf_place places[WEFT_MAX_DIMS];
    int run;

    WF_TRY(wf_spread_input(spread, tensor, places));
    run = wf_op_count_run(op, tensor, places);
    for (int d = 0; d < tensor->dims; d++) {
        const struct wf_pattern *p =
            &op->rule->patterns[op->rule->slots[tensor->slot].first + places[d].pattern];
        if (p->kind == WF_PATTERN_ONE && tensor->shape[d] != 1)
            return wf_op_refuse(op, "dimension %d of %.*s has size %lld; the rule needs 1", d,
                                WF_WORD(op->rule, wf_op_name(op, tensor)),
                                (long long)tensor->shape[d]);
        WF_TRY(wf_op_set_dim(op, tensor, places[d], run, &tensor->dim[d]));
        if (p->kind == WF_PATTERN_SYMBOL && tensor->dim[d].count == 1)
            WF_TRY(learn_size(op, tensor, d));
    }
    return WEFT_OK;
}

/* ---- sizes ---- */

/* Infer the one unknown factor of a product.  *LEARNED is set if there was one. */
weft_status wf_op_learn_product(struct wf_op *op, const struct wf_op_tensor *tensor, int dim,
                                bool *learned)
{
    struct wf_op_factor *unknown = NULL;
    const struct wf_op_dim *d = &tensor->dim[dim];
    int64_t known = 1;

    for (int i = 0; i < d->count; i++) {
        struct wf_op_factor *f = &op->factors[d->factor[i]];
        if (f->size < 0 && unknown != NULL) return WEFT_OK;
        if (f->size < 0)
            unknown = f;
        else if (!wf_mul_i64(known, f->size, &known))
            return wf_op_refuse(op, "the factors of dimension %d of %.*s multiply beyond 2^63", dim,
                                WF_WORD(op->rule, wf_op_name(op, tensor)));
    }
    if (unknown == NULL && known == tensor->shape[dim]) return WEFT_OK;
    if (unknown == NULL || known == 0 || tensor->shape[dim] % known != 0)
        return wf_op_refuse(
            op, "dimension %d of %.*s has size %lld; its factors multiply to %s%lld", dim,
            WF_WORD(op->rule, wf_op_name(op, tensor)), (long long)tensor->shape[dim],
            unknown != NULL ? "a multiple of " : "", (long long)known);
    unknown->size = tensor->shape[dim] / known;
    *learned = true;
    return WEFT_OK;
}

weft_status wf_op_learn_products(struct wf_op *op)
{
    bool learned;

    do {
        learned = false;
        for (uint32_t i = 0; i < op->input_count; i++) {
            const struct wf_op_tensor *t = &op->tensors[i];
            for (int d = 0; d < t->dims && t->present; d++)
                if (t->dim[d].count > 1) WF_TRY(wf_op_learn_product(op, t, d, &learned));
        }
    } while (learned);
    return WEFT_OK;
}

/* Sizes that the text or attributes give. */
weft_status wf_op_learn_attrs(struct wf_spread *spread)
{
    struct wf_op *op = spread->op;
    const struct wf_rule *rule = op->rule;

    for (int i = 0; i < rule->symbol_count; i++) {
        const struct wf_symbol *s = &rule->symbols[i];
        const weft_op_attr *attr = NULL;
        const int64_t *list;
        uint32_t count;
        if (s->size_attr != 0) {
            struct wf_word name = rule->attrs[s->size_attr - 1].name;
            attr = wf_attr_find(spread->call, rule->text + name.at, name.length);
        }
        for (int a = 0; a < rule->attr_count && s->kind == WF_SYMBOL_FACTOR; a++)
            if (wf_words_same(rule, rule->attrs[a].name, s->name))
                attr = wf_attr_find(spread->call, rule->text + s->name.at, s->name.length);
        if (attr == NULL || !wf_attr_list(attr, &list, &count)) continue;
        if (s->kind == WF_SYMBOL_FACTOR && count != 1) continue; /* one per member of a list */
        if (count > WEFT_MAX_DIMS)
            return wf_op_refuse(op, "attribute %.50s lists %u sizes; the maximum is %d", attr->name,
                                count, WEFT_MAX_DIMS);
        if (s->kind == WF_SYMBOL_RUN) spread->lengths[i] = (int8_t)count;
        for (uint32_t j = 0; j < count; j++) {
            struct wf_op_factor *f = use_factor(op, i, (int)j);
            if (list[j] < 0)
                return wf_op_refuse(op, "attribute %.50s has the size %lld", attr->name,
                                    (long long)list[j]);
            if (f != NULL) f->size = list[j];
        }
    }
    return WEFT_OK;
}

/* Reductions and flags that depend on attributes. */
void wf_op_settle_factors(struct wf_op *op, const weft_op_call *call)
{
    const weft_op_attr *attr = wf_attr_find(call, "p", 1);
    double p = 2;

    if (attr != NULL) (void)wf_attr_number(attr, &p);
    for (uint32_t i = 0; i < op->factor_count; i++) {
        struct wf_op_factor *f = &op->factors[i];
        if ((f->flags & (WF_DIFFERS | WF_HALO)) != 0) f->flags |= WF_WHOLE;
        if (f->size < 0 && op->rule->symbols[f->symbol].kind == WF_SYMBOL_REST) f->size = 1;
        if (f->reduce != WF_REDUCE_NORM) continue;
        f->reduce = p == INFINITY      ? WF_REDUCE_MAX
                    : p == -INFINITY   ? WF_REDUCE_MIN
                    : p == 0 || p == 1 ? WF_REDUCE_SUM
                                       : WF_REDUCE_NONE;
        if (f->reduce == WF_REDUCE_NONE) f->flags |= WF_WHOLE;
    }
}

/* A tensor of size 1 where others are longer lacks the factor. */
void wf_op_drop_broadcast(struct wf_op *op, struct wf_op_tensor *tensor)
{
    const struct wf_slot *slot = &op->rule->slots[tensor->slot];

    for (int d = 0; d < tensor->dims; d++) {
        struct wf_op_factor *f;
        if (tensor->dim[d].count != 1) continue;
        f = &op->factors[tensor->dim[d].factor[0]];
        if (f->size < 0 && slot->broadcast) f->size = tensor->shape[d];
        if ((f->flags & WF_DIFFERS) != 0 || f->size != tensor->shape[d]) tensor->dim[d].count = 0;
    }
}
