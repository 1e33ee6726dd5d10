/* bind.c - a rule meets the tensors of a call. */
#include "op.h"

#include <string.h>

/* ---- tensors ---- */

static uint32_t count_lists(const struct wf_rule *rule, int first, int count)
{
    uint32_t lists = 0;

    for (int i = 0; i < count; i++)
        lists += rule->slots[first + i].list;
    return lists;
}

/* The number of tensors in each list of inputs. */
static weft_status count_members(const struct wf_op *op, const weft_op_call *call, uint32_t *out)
{
    const struct wf_rule *rule = op->rule;
    uint32_t lists = count_lists(rule, 0, rule->input_count), fixed = rule->input_count - lists;
    uint32_t least = fixed;

    if (lists == 0) {
        while (least > 0 && rule->slots[least - 1].optional)
            least--;
        *out = 1;
        if (call->input_count >= least && call->input_count <= fixed) return WEFT_OK;
        return wf_op_refuse(op, "the call has %zu input%s; the rule takes %u%s%.*u",
                            call->input_count, WF_PLURAL(call->input_count), least,
                            least < fixed ? " to " : "", least < fixed ? 1 : 0,
                            least < fixed ? fixed : 0);
    }
    if (call->input_count >= fixed && (call->input_count - fixed) % lists == 0 &&
        call->input_count > fixed && call->input_count <= WF_OP_TENSORS) {
        *out = (uint32_t)(call->input_count - fixed) / lists;
        return WEFT_OK;
    }
    if (fixed == 0)
        return wf_op_refuse(op, "the call has %zu input%s; the rule takes %u list%s",
                            call->input_count, WF_PLURAL(call->input_count), lists,
                            lists == 1 ? "" : "s of one length");
    return wf_op_refuse(op, "the call has %zu input%s; the rule takes %u, and %u list%s",
                        call->input_count, WF_PLURAL(call->input_count), fixed, lists,
                        lists == 1 ? "" : "s of one length");
}

/* The number of tensors in each list of outputs. */
static weft_status count_outputs(const struct wf_op *op, const weft_op_call *call, uint32_t *out)
{
    const struct wf_rule *rule = op->rule;
    uint32_t fixed = rule->output_count - count_lists(rule, rule->input_count, rule->output_count);
    int64_t members = -1;

    for (int i = 0; i < rule->symbol_count; i++) {
        const int64_t *list;
        uint32_t count;
        struct wf_word name;
        if (rule->symbols[i].size_attr == 0) continue;
        name = rule->attrs[rule->symbols[i].size_attr - 1].name;
        if (wf_attr_list(wf_attr_find(call, rule->text + name.at, name.length), &list, &count))
            members = count;
    }
    if (call->output_count > fixed) members = (int64_t)call->output_count - fixed;
    if (members < 0) (void)wf_attr_int(call, "count", &members);
    if (members < 0 || members > WF_OP_TENSORS)
        return wf_op_refuse(op, "the number of outputs is not known; set weft_op_call.outputs or "
                                "the attribute count");
    *out = (uint32_t)members;
    return WEFT_OK;
}

static void set_mesh(struct wf_op *op, const weft_mesh *mesh)
{
    op->mesh = mesh;
    op->axes = weft_mesh_axes(mesh);
    for (int32_t a = 0; a < op->axes; a++)
        op->ranks[a] = weft_mesh_axis_size(mesh, a);
}

static weft_status take_input(struct wf_op *op, const weft_spec *given, int slot)
{
    struct wf_op_tensor *t = &op->tensors[op->input_count++];
    const weft_mesh *mesh = weft_spec_mesh(given);

    *t = (struct wf_op_tensor){.given = given, .slot = (uint8_t)slot, .inplace = -1};
    if (given == NULL) {
        if (op->rule->slots[slot].optional) return WEFT_OK;
        return wf_op_refuse(op, "input %.*s is missing", WF_WORD(op->rule, wf_op_name(op, t)));
    }
    if (mesh == NULL) return wf_spec_require(given, "weft_op_call", "inputs");
    if (op->mesh == NULL) set_mesh(op, mesh);
    if (mesh != op->mesh)
        return wf_op_refuse(op, "input %.*s is on another mesh than the others",
                            WF_WORD(op->rule, wf_op_name(op, t)));
    t->present = 1;
    t->dims = (uint8_t)weft_spec_dims(given);
    t->dtype = weft_spec_dtype(given);
    t->placements = weft_spec_placements(given);
    memcpy(t->shape, weft_spec_shape(given), t->dims * sizeof t->shape[0]);
    return WEFT_OK;
}

/* The tensors of the call, by the slots of the rule. */
static weft_status take_tensors(struct wf_op *op, const weft_op_call *call, uint32_t element)
{
    const struct wf_rule *rule = op->rule;
    uint32_t members = 1, results = 1, at = 0, room;
    bool in = count_lists(rule, 0, rule->input_count) > 0;
    bool out = count_lists(rule, rule->input_count, rule->output_count) > 0;

    WF_TRY(count_members(op, call, &members));
    if (out && !in) WF_TRY(count_outputs(op, call, &results));
    if (in && out && element >= members)
        return wf_op_refuse(op, "the lists have %u tensor%s", members, WF_PLURAL(members));
    room = (uint32_t)rule->input_count * (in && !out ? members : 1) + rule->output_count * results;
    op->tensors = room <= WF_OP_FEW ? op->few : wf_calloc(room, sizeof *op->tensors);
    if (op->tensors == NULL) return wf_fail_memory(room * sizeof *op->tensors);
    for (int i = 0; i < rule->input_count; i++) {
        uint32_t count = rule->slots[i].list ? members : 1, first = 0, last = count;
        if (rule->slots[i].list && out) {
            first = element;
            last = element + 1;
        }
        for (uint32_t j = first; j < last; j++)
            WF_TRY(take_input(op, at + j < call->input_count ? call->inputs[at + j] : NULL, i));
        at += count;
    }
    for (int i = 0; i < rule->output_count; i++)
        for (uint32_t j = 0; j < (rule->slots[rule->input_count + i].list ? results : 1); j++)
            op->tensors[op->input_count + op->output_count++] = (struct wf_op_tensor){
                .slot = (uint8_t)(rule->input_count + i),
                .present = 1,
                .inplace = (int8_t)(rule->slots[rule->input_count + i].inplace - 1)};
    return WEFT_OK;
}

/* Which tensors have which factors. */
static void mark_factors(struct wf_op *op)
{
    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        struct wf_op_tensor *t = &op->tensors[i];
        t->factors = t->sources = 0;
        for (int d = 0; d < t->dims; d++)
            for (int f = 0; f < t->dim[d].count; f++)
                t->factors |= UINT64_C(1) << t->dim[d].factor[f];
        if (i < op->input_count) continue;
        for (uint32_t j = 0; j < op->input_count; j++) {
            const struct wf_op_tensor *in = &op->tensors[j];
            if (in->present && !op->rule->slots[in->slot].shape_only &&
                (op->rule->slots[t->slot].depends >> in->slot & 1) != 0)
                t->sources |= in->factors;
        }
    }
}

static weft_status bind_tensors(struct wf_op *op, const weft_op_call *call, uint32_t element)
{
    struct wf_spread spread;
    uint32_t member = 0, known;

    WF_TRY(take_tensors(op, call, element));
    if (op->mesh == NULL && call->mesh != NULL) set_mesh(op, call->mesh);
    if (call->mesh != NULL && call->mesh != op->mesh)
        return wf_op_refuse(op, "weft_op_call.mesh is another mesh than that of the inputs");
    if (op->mesh == NULL) return wf_op_refuse(op, "a call without inputs needs weft_op_call.mesh");
    wf_spread_begin(&spread, call, op);
    WF_TRY(wf_op_learn_attrs(&spread));
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->tensors[i].present) WF_TRY(wf_op_bind_input(&spread, &op->tensors[i]));
    WF_TRY(wf_op_learn_products(op));
    wf_op_settle_factors(op, call);
    known = op->factor_count; /* outputs may have others */
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->tensors[i].present) wf_op_drop_broadcast(op, &op->tensors[i]);
    for (uint32_t i = 0; i < op->output_count; i++) {
        struct wf_op_tensor *t = &op->tensors[op->input_count + i];
        member = i > 0 && t[-1].slot == t->slot ? member + 1 : 0;
        WF_TRY(wf_op_bind_output(&spread, t, i, member));
    }
    if (op->factor_count > known) wf_op_settle_factors(op, call);
    mark_factors(op);
    return wf_op_check_attrs(op, call);
}

/* ---- the rule ---- */

/* No guard holds: name the attributes of all lines. */
static weft_status refuse_guards(const struct wf_op_entry *entry, const struct wf_op *op)
{
    struct wf_text lines = {0};
    weft_status status;

    for (uint32_t i = 0; i < entry->rule_count; i++) {
        const char *body = entry->rules[i]->body;
        wf_text_add(&lines, "%s%.*s", i > 0 ? ", " : "", (int)strcspn(body, ":"), body);
    }
    status = wf_text_status(&lines);
    if (status == WEFT_OK)
        status = wf_op_refuse(op, "no rule applies to these attributes; there are rules for %.600s",
                              lines.data);
    wf_text_free(&lines);
    return status;
}

static weft_status choose_rule(const struct wf_op_entry *entry, const weft_op_call *call,
                               struct wf_op *op)
{
    for (uint32_t i = 0; i < entry->rule_count; i++)
        if (wf_attr_guards_hold(entry->rules[i], call)) {
            op->rule = wf_rule_retain(entry->rules[i]);
            return WEFT_OK;
        }
    return refuse_guards(entry, op);
}

static weft_status refuse_dtypes(const struct wf_op *op, int a, uint32_t dtype_a, int b,
                                 uint32_t dtype_b)
{
    const struct wf_rule *rule = op->rule;

    if (a == b)
        return wf_op_refuse(
            op,
            "one tensor of %.*s is %s, and another is %s; cast them to one dtype, "
            "or permit several, if the kernel mixes them: WEFT_OP_CALL_MIXED_DTYPES in "
            "weft_op_call.flags, mixed_dtypes in Python, --mixed-dtypes of weft op",
            WF_WORD(rule, rule->slots[a].name), wf_dtype_name(dtype_a), wf_dtype_name(dtype_b));
    return wf_op_refuse(op,
                        "input %.*s is %s, and %.*s is %s; cast one of them, or permit several "
                        "dtypes, if the kernel mixes them: WEFT_OP_CALL_MIXED_DTYPES in "
                        "weft_op_call.flags, mixed_dtypes in Python, --mixed-dtypes of weft op",
                        WF_WORD(rule, rule->slots[a].name), wf_dtype_name(dtype_a),
                        WF_WORD(rule, rule->slots[b].name), wf_dtype_name(dtype_b));
}

weft_status wf_op_check_dtypes(const struct wf_op *op, const weft_op_call *call, uint32_t element)
{
    const struct wf_rule *rule = op->rule;
    uint32_t lists = count_lists(rule, 0, rule->input_count), fixed = rule->input_count - lists;
    uint32_t members =
        lists > 0 && call->input_count > fixed ? ((uint32_t)call->input_count - fixed) / lists : 1;
    bool out = count_lists(rule, rule->input_count, rule->output_count) > 0;
    uint32_t dtypes[WF_RULE_TENSORS + 1], at = 0;
    int found[WF_RULE_TENSORS + 1];

    if ((call->flags & WEFT_OP_CALL_MIXED_DTYPES) != 0) return WEFT_OK;
    for (int i = 0; i <= WF_RULE_TENSORS; i++)
        found[i] = -1;
    for (int i = 0; i < rule->input_count; i++) {
        const struct wf_slot *slot = &rule->slots[i];
        uint32_t count = slot->list ? members : 1;
        uint32_t first = slot->list && out ? element : 0;
        uint32_t last = slot->list && out ? element + 1 : count;
        for (uint32_t j = at + first; slot->same != 0 && j < at + last; j++) {
            const weft_spec *spec = j < call->input_count ? call->inputs[j] : NULL;
            uint32_t dtype = weft_spec_dtype(spec);
            if (dtype == WEFT_DTYPE_COUNT) continue; /* none, or refused later */
            if (found[slot->same] >= 0 && dtypes[slot->same] != dtype)
                return refuse_dtypes(op, found[slot->same], dtypes[slot->same], i, dtype);
            found[slot->same] = i;
            dtypes[slot->same] = dtype;
        }
        at += count;
    }
    return WEFT_OK;
}

/* Exchange a rule with the clause `make` for the one that it makes. */
static weft_status make_rule(struct wf_op *op, const weft_op_call *call)
{
    struct wf_text text = {0};
    struct wf_rule *made = NULL;
    size_t at = 0;
    weft_status status;

    if (op->rule->make.length == 0) return WEFT_OK;
    wf_text_add(&text, "%.*s: ", WF_WORD(op->rule, op->rule->names[0]));
    status = wf_op_make(op, op->rule, call, &text);
    if (status == WEFT_OK) status = wf_text_status(&text);
    if (status == WEFT_OK) status = wf_rule_read(text.data, &at, &made);
    wf_text_free(&text);
    if (status != WEFT_OK) return status;
    wf_rule_drop(op->rule);
    op->rule = made;
    return WEFT_OK;
}

weft_status wf_op_bind(const struct wf_op_entry *entry, const weft_op_call *call, uint32_t element,
                       struct wf_op *out)
{
    size_t length = strlen(call->name);
    bool in_place = call->name[length - 1] == '_' && entry->name[entry->length - 1] != '_';
    weft_status status;

    out->rule = NULL;
    out->mesh = NULL;
    out->name = call->name;
    out->input_count = out->output_count = out->factor_count = out->made_count = 0;
    out->tensors = out->few;
    out->given = NULL;
    status = call->attr_count > 0 ? wf_attr_check(entry, call, out) : WEFT_OK;
    if (status == WEFT_OK) status = choose_rule(entry, call, out);
    if (status == WEFT_OK) status = wf_op_check_dtypes(out, call, element);
    if (status == WEFT_OK) status = make_rule(out, call);
    if (status == WEFT_OK) status = bind_tensors(out, call, element);
    if (status == WEFT_OK && in_place && out->output_count > 0) { /* `add_` */
        struct wf_op_tensor *result = &out->tensors[out->input_count];
        result->inplace = 0;
        if (out->input_count > 0 && wf_op_same_kind(result->dtype, out->tensors[0].dtype))
            result->dtype = out->tensors[0].dtype;
    }
    if (status != WEFT_OK) wf_op_end(out);
    return status;
}

void wf_op_end(struct wf_op *op)
{
    while (op->given != NULL) {
        struct wf_given *next = op->given->next;
        weft_placements_free((int32_t)(op->input_count + op->output_count), op->given->placements);
        wf_free(op->given);
        op->given = next;
    }
    if (op->tensors != op->few) wf_free(op->tensors);
    op->tensors = op->few;
    wf_rule_drop(op->rule);
    op->rule = NULL;
}
