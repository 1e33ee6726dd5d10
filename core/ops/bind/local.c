/* local.c - attributes that are sizes of factors.  A kernel gets the size that this rank has: that
 * of a dimension that is the factor, or of one that is the product of it and another factor. */
#include "local.h"

#include "op.h"

/* Find a dimension whose factors are FACTOR, and OTHER unless that is -1. */
static bool find_dim(const struct wf_op *op, int factor, int other, int32_t *tensor, uint8_t *dim)
{
    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const struct wf_op_tensor *t = &op->tensors[i];

        if (!t->present || (i < op->input_count && op->rule->slots[t->slot].shape_only)) continue;
        for (uint8_t d = 0; d < t->dims; d++) {
            const struct wf_op_dim *have = &t->dim[d];
            bool fits = other < 0 ? have->count == 1 && have->factor[0] == factor
                                  : have->count == 2 &&
                                        have->factor[0] + have->factor[1] == factor + other &&
                                        (have->factor[0] == factor || have->factor[1] == factor);
            if (!fits) continue;
            *tensor = (int32_t)i;
            *dim = d;
            return true;
        }
    }
    return false;
}

static bool find_size(const struct wf_op *op, int factor, struct wf_local_size *out)
{
    out->by_tensor = -1;
    if (find_dim(op, factor, -1, &out->tensor, &out->dim)) return true;
    for (int other = 0; other < (int)op->factor_count; other++)
        if (other != factor && find_dim(op, factor, other, &out->tensor, &out->dim) &&
            find_dim(op, other, -1, &out->by_tensor, &out->by_dim))
            return true;
    return false;
}

/* The attribute that has the size of SYMBOL: the one of a clause `size`, or the one with the
 * symbol's name; -1: none. */
static int size_attr(const struct wf_rule *rule, const struct wf_symbol *symbol)
{
    for (int a = 0; a < rule->attr_count && symbol->kind == WF_SYMBOL_FACTOR; a++)
        if (wf_words_same(rule, rule->attrs[a].name, symbol->name)) return a;
    return symbol->size_attr - 1;
}

uint32_t wf_local_sizes_find(const struct wf_op *op, struct wf_local_size out[WF_LOCAL_SIZES])
{
    const struct wf_rule *rule = op->rule;
    uint32_t count = 0;

    for (uint32_t f = 0; f < op->factor_count && count < WF_LOCAL_SIZES; f++) {
        const struct wf_symbol *symbol = &rule->symbols[op->factors[f].symbol];
        struct wf_local_size *size = &out[count];
        int attr = size_attr(rule, symbol);

        if (attr < 0 || !find_size(op, (int)f, size)) continue;
        size->name = rule->text + rule->attrs[attr].name.at;
        size->length = rule->attrs[attr].name.length;
        size->at = op->factors[f].index;
        count++;
    }
    return count;
}
