/* spread.c - which entry of its signature each dimension of a tensor belongs to.
 *
 * Entries stand one after the other; a run takes the dimensions that the others leave.  Between two
 * runs, entries stand where an attribute says, or where the same symbol stands in another
 * tensor. */
#include "op.h"

#include <string.h>

void wf_spread_begin(struct wf_spread *s, const weft_op_call *call, struct wf_op *op)
{
    s->call = call;
    s->op = op;
    memset(s->lengths, -1, sizeof s->lengths);
    memset(s->position_count, -1, sizeof s->position_count);
    memset(s->attr_of, -1, sizeof s->attr_of);
}

static const struct wf_symbol *symbol_of(const struct wf_rule *rule, const struct wf_pattern *p,
                                         int *index)
{
    if (p->count == 0) return NULL;
    *index = rule->parts[p->first];
    return &rule->symbols[*index];
}

static bool is_run(const struct wf_rule *rule, const struct wf_pattern *p)
{
    int index;
    const struct wf_symbol *symbol = symbol_of(rule, p, &index);

    return p->kind == WF_PATTERN_SYMBOL && symbol->kind >= WF_SYMBOL_RUN;
}

static bool is_group(const struct wf_rule *rule, const struct wf_pattern *p)
{
    int index;
    const struct wf_symbol *symbol = symbol_of(rule, p, &index);

    return p->kind == WF_PATTERN_SYMBOL && symbol->kind == WF_SYMBOL_GROUP;
}

/* ---- positions ---- */

static weft_status add_position(struct wf_spread *s, int attr, int32_t dims, int64_t value)
{
    const struct wf_rule *rule = s->op->rule;
    int count = s->position_count[attr];
    int64_t at = value < 0 ? value + dims : value;

    if (at < 0 || at >= dims)
        return wf_op_refuse(s->op, "attribute %.*s is %lld, and the tensor has %d dimension%s",
                            WF_WORD(rule, rule->attrs[attr].name), (long long)value, dims,
                            WF_PLURAL(dims));
    for (int i = 0; i < count; i++)
        if (s->positions[attr][i] == at)
            return wf_op_refuse(s->op, "attribute %.*s lists dimension %lld twice",
                                WF_WORD(rule, rule->attrs[attr].name), (long long)at);
    s->positions[attr][count] = (uint8_t)at;
    s->position_count[attr]++;
    return WEFT_OK;
}

/* Read the positions that ATTR gives in a tensor of DIMS dimensions, unless an earlier tensor has
 * set them.  ALL: an absent or empty list means all dimensions.  ONE: a list of several is
 * refused. */
static weft_status read_positions(struct wf_spread *s, int attr, int32_t dims, bool all, bool one)
{
    const struct wf_rule *rule = s->op->rule;
    struct wf_word name = rule->attrs[attr].name;
    const weft_op_attr *given = wf_attr_find(s->call, rule->text + name.at, name.length);
    const int64_t *list = NULL;
    uint32_t count = 0;

    if (s->position_count[attr] >= 0) return WEFT_OK;
    if (given != NULL && !wf_attr_list(given, &list, &count))
        return wf_op_refuse(s->op, "attribute %.*s must be a dimension or a list of them",
                            WF_WORD(rule, name));
    if (count == 0 && !all)
        return wf_op_refuse(s->op, "attribute %.*s is missing", WF_WORD(rule, name));
    if (count > 1 && one)
        return wf_op_refuse(s->op, "attribute %.*s lists %u dimensions; it must be one",
                            WF_WORD(rule, name), count);
    s->position_count[attr] = 0;
    for (int32_t i = 0; count == 0 && i < dims; i++)
        WF_TRY(add_position(s, attr, dims, i));
    /* a scalar has no dimensions: 0 and -1 mean none there */
    for (uint32_t i = 0; i < count && !(dims == 0 && (list[i] == 0 || list[i] == -1)); i++)
        WF_TRY(add_position(s, attr, dims, list[i]));
    for (int i = 1; i < s->position_count[attr]; i++) /* groups are in the tensor's order */
        for (int j = i; j > 0 && s->positions[attr][j] < s->positions[attr][j - 1]; j--) {
            uint8_t swap = s->positions[attr][j];
            s->positions[attr][j] = s->positions[attr][j - 1];
            s->positions[attr][j - 1] = swap;
        }
    return WEFT_OK;
}

/* ---- widths ---- */

/* Number of dimensions of an entry that is not a run; -1: not known. */
static int width_of(const struct wf_spread *s, const struct wf_pattern *p)
{
    const struct wf_rule *rule = s->op->rule;
    int index;

    if (is_group(rule, p)) {
        (void)symbol_of(rule, p, &index);
        if (p->attr != 0) return s->position_count[p->attr - 1];
        return s->lengths[index];
    }
    return p->kind == WF_PATTERN_ONE && p->attr != 0 ? s->position_count[p->attr - 1] : 1;
}

static weft_status learn_positions(struct wf_spread *s, const struct wf_slot *slot, int32_t dims)
{
    const struct wf_rule *rule = s->op->rule;

    for (int i = 0; i < slot->count; i++) {
        const struct wf_pattern *p = &rule->patterns[slot->first + i];
        int index = 0;
        if (p->attr == 0) continue;
        WF_TRY(read_positions(s, p->attr - 1, dims, is_group(rule, p),
                              !is_group(rule, p) && p->kind != WF_PATTERN_ONE));
        if (symbol_of(rule, p, &index) == NULL) continue;
        s->attr_of[index] = (int8_t)(p->attr - 1);
        if (is_group(rule, p)) s->lengths[index] = s->position_count[p->attr - 1];
    }
    return WEFT_OK;
}

struct shape_of_slot {
    int fixed;             /* dimensions of all entries except runs */
    int runs, first, last; /* runs: their number, and the entries of the first and the last */
    int symbol;            /* of the runs */
};

static weft_status measure_slot(const struct wf_spread *s, const struct wf_op_tensor *tensor,
                                struct shape_of_slot *out)
{
    const struct wf_rule *rule = s->op->rule;
    const struct wf_slot *slot = &rule->slots[tensor->slot];

    *out = (struct shape_of_slot){.symbol = -1};
    for (int i = 0; i < slot->count; i++) {
        const struct wf_pattern *p = &rule->patterns[slot->first + i];
        int width;
        if (is_run(rule, p)) {
            (void)symbol_of(rule, p, &out->symbol);
            if (out->runs++ == 0) out->first = i;
            out->last = i;
            continue;
        }
        width = width_of(s, p);
        if (width < 0)
            return wf_op_refuse(s->op, "tensor %.*s: the size of a group is not known",
                                WF_WORD(rule, slot->name));
        out->fixed += width;
    }
    return WEFT_OK;
}

/* ---- dimensions ---- */

/* Place entry I, of WIDTH dimensions, from dimension AT on. */
static void place_entry(struct wf_place *out, int i, int width, int at)
{
    for (int j = 0; j < width; j++)
        out[at + j] = (struct wf_place){(int8_t)i, (uint8_t)j};
}

/* Entries between two runs stand at positions. */
static weft_status place_between(struct wf_spread *s, const struct wf_op_tensor *tensor, int i,
                                 struct wf_place *out)
{
    const struct wf_rule *rule = s->op->rule;
    const struct wf_slot *slot = &rule->slots[tensor->slot];
    const struct wf_pattern *p = &rule->patterns[slot->first + i];
    int width = width_of(s, p), attr = p->attr - 1, index = 0;

    if (attr < 0 && symbol_of(rule, p, &index) != NULL) attr = s->attr_of[index];
    if (attr < 0)
        return wf_op_refuse(s->op, "tensor %.*s: the position of a dimension is not known",
                            WF_WORD(rule, slot->name));
    for (int j = 0; j < width && j < s->position_count[attr]; j++) {
        int at = s->positions[attr][j];
        if (at >= tensor->dims || out[at].pattern != INT8_MIN)
            return wf_op_refuse(s->op, "tensor %.*s has %d dimension%s, too few for attribute %.*s",
                                WF_WORD(rule, slot->name), tensor->dims, WF_PLURAL(tensor->dims),
                                WF_WORD(rule, rule->attrs[attr].name));
        out[at] = (struct wf_place){(int8_t)i, (uint8_t)j};
    }
    return WEFT_OK;
}

/* Give the entries of the slot their dimensions; what is left belongs to the run. */
static weft_status place_all(struct wf_spread *s, const struct wf_op_tensor *tensor,
                             const struct shape_of_slot *shape, struct wf_place *out)
{
    const struct wf_rule *rule = s->op->rule;
    const struct wf_slot *slot = &rule->slots[tensor->slot];
    int at = 0, end = tensor->dims;

    for (int i = slot->count - 1; i > shape->last && shape->runs > 0; i--) {
        int width = width_of(s, &rule->patterns[slot->first + i]);
        end -= width;
        place_entry(out, i, width, end);
    }
    for (int i = 0; i < slot->count && (shape->runs == 0 || i < shape->first); i++) {
        int width = width_of(s, &rule->patterns[slot->first + i]);
        place_entry(out, i, width, at);
        at += width;
    }
    for (int i = shape->first + 1; i < shape->last; i++)
        WF_TRY(place_between(s, tensor, i, out));
    for (int d = 0, sub = 0; d < tensor->dims && shape->runs > 0; d++)
        if (out[d].pattern == INT8_MIN)
            out[d] = (struct wf_place){(int8_t)shape->first, (uint8_t)sub++};
    return WEFT_OK;
}

static weft_status refuse_dims(const struct wf_spread *s, const struct wf_op_tensor *tensor,
                               const char *least, int want)
{
    return wf_op_refuse(s->op, "tensor %.*s has %d dimension%s; the rule needs %s%d",
                        WF_WORD(s->op->rule, wf_op_name(s->op, tensor)), tensor->dims,
                        WF_PLURAL(tensor->dims), least, want);
}

static weft_status learn_run(struct wf_spread *s, const struct wf_op_tensor *tensor, int symbol,
                             int length)
{
    const struct wf_rule *rule = s->op->rule;
    int before = s->lengths[symbol];

    if (rule->symbols[symbol].kind == WF_SYMBOL_RUN && before >= 0 && before != length)
        return wf_op_refuse(s->op, "run %.*s.. has %d dimension%s, and %d in tensor %.*s",
                            WF_WORD(rule, rule->symbols[symbol].name), before, WF_PLURAL(before),
                            length, WF_WORD(rule, wf_op_name(s->op, tensor)));
    if (length > before) s->lengths[symbol] = (int8_t)length;
    return WEFT_OK;
}

/* A group behind the last run stands at the end: the positions that its attribute lists must be the
 * last ones. */
static weft_status check_groups(const struct wf_spread *s, const struct wf_op_tensor *tensor,
                                const struct wf_place *places)
{
    const struct wf_rule *rule = s->op->rule;
    const struct wf_slot *slot = &rule->slots[tensor->slot];

    for (int d = 0; d < tensor->dims; d++) {
        const struct wf_pattern *p = &rule->patterns[slot->first + places[d].pattern];
        int attr = p->attr - 1;
        if (attr < 0 || !is_group(rule, p) || s->positions[attr][places[d].sub] == d) continue;
        return wf_op_refuse(s->op,
                            "attribute %.*s lists dimension %d; the dimensions that it lists must "
                            "be the last ones of %.*s",
                            WF_WORD(rule, rule->attrs[attr].name),
                            s->positions[attr][places[d].sub], WF_WORD(rule, slot->name));
    }
    return WEFT_OK;
}

weft_status wf_spread_input(struct wf_spread *s, const struct wf_op_tensor *tensor,
                            struct wf_place *out)
{
    const struct wf_slot *slot = &s->op->rule->slots[tensor->slot];
    struct shape_of_slot shape;

    for (int d = 0; d < WEFT_MAX_DIMS; d++)
        out[d] = (struct wf_place){INT8_MIN, 0};
    WF_TRY(learn_positions(s, slot, tensor->dims));
    WF_TRY(measure_slot(s, tensor, &shape));
    if (shape.runs > 0) {
        if (tensor->dims < shape.fixed) return refuse_dims(s, tensor, "at least ", shape.fixed);
        WF_TRY(learn_run(s, tensor, shape.symbol, tensor->dims - shape.fixed));
        WF_TRY(place_all(s, tensor, &shape, out));
        return s->op->rule->attr_count > 0 ? check_groups(s, tensor, out) : WEFT_OK;
    }
    if (tensor->dims == shape.fixed) return place_all(s, tensor, &shape, out);
    if (!slot->broadcast || tensor->dims > shape.fixed)
        return refuse_dims(s, tensor, slot->broadcast ? "at most " : "", shape.fixed);
    for (int d = 0; d < tensor->dims; d++) /* aligned from the right; each entry is one dimension */
        out[d] = (struct wf_place){(int8_t)(slot->count - tensor->dims + d), 0};
    return WEFT_OK;
}

/* Add the dimensions of size 1 that keepdim leaves where TENSOR lacks factors with a position. */
static int keep_dims(const struct wf_spread *s, const struct wf_op_tensor *tensor,
                     struct wf_place *out)
{
    const struct wf_rule *rule = s->op->rule;
    const struct wf_slot *slot = &rule->slots[tensor->slot];
    int added = 0;

    for (int attr = 0; attr < rule->attr_count; attr++) {
        bool mine = false;
        if (s->position_count[attr] <= 0) continue;
        for (int i = 0; i < slot->count; i++) {
            const struct wf_pattern *p = &rule->patterns[slot->first + i];
            int index = 0;
            mine = mine || p->attr == attr + 1 ||
                   (symbol_of(rule, p, &index) != NULL && s->attr_of[index] == attr);
        }
        for (int j = 0; j < s->position_count[attr] && !mine; j++, added++)
            out[s->positions[attr][j]] = (struct wf_place){-1, 0};
    }
    return added;
}

weft_status wf_spread_output(struct wf_spread *s, struct wf_op_tensor *tensor,
                             const weft_op_tensor *given, struct wf_place *out)
{
    const struct wf_rule *rule = s->op->rule;
    const struct wf_slot *slot = &rule->slots[tensor->slot];
    struct shape_of_slot shape;
    int dims = 0, length;

    for (int d = 0; d < WEFT_MAX_DIMS; d++)
        out[d] = (struct wf_place){INT8_MIN, 0};
    for (int i = 0; i < slot->count; i++) { /* positions that only outputs have count one more */
        const struct wf_pattern *p = &rule->patterns[slot->first + i];
        dims += is_run(rule, p) ? 0 : is_group(rule, p) ? 0 : 1;
    }
    for (int i = 0; i < rule->symbol_count; i++)
        if (rule->symbols[i].kind == WF_SYMBOL_REST && s->lengths[i] > 0) dims += s->lengths[i];
    WF_TRY(learn_positions(s, slot, dims));
    WF_TRY(measure_slot(s, tensor, &shape));
    dims = shape.fixed;
    if (shape.runs > 0) {
        length = s->lengths[shape.symbol];
        if (length < 0 && given != NULL) length = given->dims - shape.fixed;
        if (length < 0)
            return wf_op_refuse(s->op,
                                "the shape of output %.*s does not follow from the inputs; "
                                "set weft_op_call.outputs",
                                WF_WORD(rule, slot->name));
        if (s->lengths[shape.symbol] < 0) s->lengths[shape.symbol] = (int8_t)length;
        if (wf_attr_keepdim(s->call)) dims += keep_dims(s, tensor, out);
        dims += length;
    }
    if (dims > WEFT_MAX_DIMS)
        return wf_op_refuse(s->op, "output %.*s has %d dimensions; the maximum is %d",
                            WF_WORD(rule, slot->name), dims, WEFT_MAX_DIMS);
    tensor->dims = (uint8_t)dims;
    return place_all(s, tensor, &shape, out);
}
