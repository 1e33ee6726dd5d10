/* local.c - attributes that are sizes.  A kernel gets the size that this rank has: that of a
 * dimension that is a factor, or of one that is the product of it and another factor. */
#include "local.h"

#include "op.h"

#include <string.h>

int32_t wf_op_dim_of(const struct wf_op *op, uint32_t tensor, uint32_t symbol)
{
    const struct wf_op_tensor *t = &op->tensors[tensor];
    const struct wf_slot *slot = &op->rule->slots[t->slot];
    int32_t runs = 0;

    for (int32_t i = 0; t->present && i < slot->count; i++) {
        const struct wf_pattern *p = &op->rule->patterns[slot->first + i];
        uint32_t first = p->count > 0 ? op->rule->parts[p->first] : UINT32_MAX;
        if (p->attr != 0) return -1;
        if (p->count == 1 && first == symbol)
            return runs == 0 ? i : runs == 1 ? t->dims - (slot->count - i) : -1;
        runs += p->count == 1 && op->rule->symbols[first].kind != WF_SYMBOL_FACTOR;
    }
    return -1;
}

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
    *out = (struct wf_local_size){.kind = WF_LOCAL_SIZE, .by_tensor = -1};
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

static void set_name(const struct wf_rule *rule, int attr, struct wf_local_size *out)
{
    out->name = rule->text + rule->attrs[attr].name.at;
    out->length = rule->attrs[attr].name.length;
}

/* The sizes of the tensors of a list that parts of a factor are. */
static uint32_t find_members(const struct wf_op *op, uint32_t count, struct wf_local_size *out)
{
    const struct wf_rule *rule = op->rule;

    for (int i = 0; i < rule->cut.count && count < WF_LOCAL_SIZES; i++) {
        int attr = rule->symbols[rule->cut.parts[i]].size_attr - 1;

        for (uint32_t t = op->input_count; attr >= 0 && t < op->input_count + op->output_count;
             t++) {
            int32_t dim = wf_op_dim_of(op, t, rule->cut.parts[i]);
            if (dim < 0 || !rule->slots[op->tensors[t].slot].list) continue;
            out[count] = (struct wf_local_size){
                .kind = WF_LOCAL_MEMBERS, .tensor = (int32_t)t, .dim = (uint8_t)dim};
            set_name(rule, attr, &out[count++]);
            break;
        }
    }
    return count;
}

uint32_t wf_local_sizes_find(const struct wf_op *op, struct wf_local_size out[WF_LOCAL_SIZES])
{
    const struct wf_rule *rule = op->rule;
    uint32_t count = op->made_count;

    memcpy(out, op->made, count * sizeof *out);
    for (uint32_t f = 0; f < op->factor_count && count < WF_LOCAL_SIZES; f++) {
        const struct wf_symbol *symbol = &rule->symbols[op->factors[f].symbol];
        struct wf_local_size *size = &out[count];
        int attr = size_attr(rule, symbol);

        if (attr < 0 || !find_size(op, (int)f, size)) continue;
        set_name(rule, attr, size);
        size->at = op->factors[f].index;
        count++;
    }
    return find_members(op, count, out);
}
