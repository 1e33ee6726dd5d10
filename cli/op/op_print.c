/* op_print.c - a choice and a list of strategies, as text and as JSON. */
#include "op_request.h"

#include "common/describe.h"

#include <string.h>

/* The text of SPEC; with PLACEMENTS only those. */
static weft_status spec_text(const weft_spec *spec, bool placements, struct wf_text *out)
{
    if (placements)
        wf_text_placements(out, spec);
    else
        wf_text_spec(out, spec);
    return wf_text_status(out);
}

static void json_spec(struct wf_json *json, const char *key, const weft_spec *spec)
{
    struct wf_text text = {0};

    if (spec != NULL && spec_text(spec, false, &text) == WEFT_OK)
        wf_json_string(json, key, text.data);
    else
        wf_json_null(json, key);
    wf_text_free(&text);
}

static void json_tensors(struct wf_json *json, const weft_op_choice *choice, const char *key,
                         size_t count, const weft_spec *(*spec)(const weft_op_choice *, size_t))
{
    wf_json_begin(json, key, '[');
    for (size_t i = 0; i < count; i++)
        json_spec(json, NULL, spec(choice, i));
    wf_json_end(json, ']');
}

/* ---- prices ---- */

enum { PRICES = 1 << 14 };

/* Times of moves.  Many strategies want the same of an input. */
struct prices {
    const struct op_request *request;
    struct {
        const weft_spec *from, *to;
        uint64_t ns; /* UINT64_MAX: a partial would have to change its kind */
    } * known;       /* PRICES of them, by their hash; NULL: there is no memory */
};

static struct prices begin_prices(const struct op_request *r)
{
    struct prices p = {.request = r};

    p.known = wf_calloc(PRICES, sizeof *p.known);
    return p;
}

static uint64_t price_move(const struct prices *p, const weft_spec *from, const weft_spec *to)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = p->request->options.costs};
    weft_plan_info info = {.struct_size = sizeof info};
    uint64_t ns = UINT64_MAX;
    weft_plan *plan = NULL;

    if (weft_plan_create(from, to, &options, &plan) == WEFT_OK &&
        weft_plan_get(plan, &info) == WEFT_OK)
        ns = info.cost_ns;
    weft_plan_release(&plan);
    return ns;
}

static uint64_t price_of(const struct prices *p, const weft_spec *from, const weft_spec *to)
{
    uint64_t at = wf_hash_mix(wf_hash_mix(1, (uintptr_t)from), (uintptr_t)to) % PRICES;

    if (p->known == NULL) return price_move(p, from, to);
    if (p->known[at].from != from || p->known[at].to != to) {
        p->known[at].from = from;
        p->known[at].to = to;
        p->known[at].ns = price_move(p, from, to);
    }
    return p->known[at].ns;
}

/* Time of the moves to CHOICE; false: a partial would have to change its kind.  If the operator
 * takes lists, CHOICE is for their tensors at ELEMENT. */
static bool cost_of(const struct prices *p, const weft_op_choice *choice, size_t element,
                    uint64_t *out)
{
    const struct op_request *r = p->request;
    weft_op_choice_info shape = {.struct_size = sizeof shape};
    size_t all = r->call.input_count, members = 1;

    *out = 0;
    if (weft_op_choice_get(choice, &shape) != WEFT_OK) return false;
    if (shape.inputs > 0 && shape.inputs < all) /* one input may stand beside the lists */
        members = all % shape.inputs == 0 ? all / shape.inputs : (all - 1) / (shape.inputs - 1);
    for (size_t i = 0; i < shape.inputs; i++) {
        const weft_spec *given =
            r->inputs[i * members + element < all ? i * members + element : all - 1];
        uint64_t ns = given != NULL ? price_of(p, given, weft_op_choice_input(choice, i)) : 0;
        if (ns == UINT64_MAX) return false;
        *out += ns;
    }
    return true;
}

/* ---- JSON ---- */

static void json_moves(const struct op_request *r, const weft_op_choice *choice,
                       struct wf_json *json)
{
    wf_json_begin(json, "moves", '[');
    for (size_t i = 0; i < r->call.input_count; i++) {
        const weft_plan *plan = weft_op_choice_move(choice, i);
        weft_plan_info info = {.struct_size = sizeof info};
        if (plan == NULL || weft_plan_get(plan, &info) != WEFT_OK) continue;
        wf_json_begin(json, NULL, '{');
        wf_json_uint(json, "input", i);
        json_spec(json, "from", r->inputs[i]);
        json_spec(json, "to", weft_op_choice_input(choice, i));
        wf_json_uint(json, "bytes", info.bytes_received_max);
        wf_json_uint(json, "cost_ns", info.cost_ns);
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
}

void op_add_strategies(const struct op_request *r, const weft_op_list *list, const char *key,
                       size_t element, struct wf_json *json)
{
    weft_op_choice_info shape = {.struct_size = sizeof shape};
    struct prices prices = begin_prices(r);

    wf_json_begin(json, key, '[');
    if (weft_op_list_count(list) > 0 &&
        weft_op_choice_get(weft_op_list_choice(list, 0), &shape) != WEFT_OK)
        shape.inputs = shape.outputs = 0;
    for (size_t i = 0; i < weft_op_list_count(list); i++) {
        const weft_op_choice *one = weft_op_list_choice(list, i);
        uint64_t cost;
        wf_json_begin(json, NULL, '{');
        json_tensors(json, one, "inputs", shape.inputs, weft_op_choice_input);
        json_tensors(json, one, "outputs", shape.outputs, weft_op_choice_output);
        if (cost_of(&prices, one, element, &cost))
            wf_json_uint(json, "cost_ns", cost);
        else
            wf_json_null(json, "cost_ns");
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
    wf_free(prices.known);
}

weft_status op_add_members(const struct op_request *r, const weft_op_choice *choice,
                           struct wf_json *json)
{
    weft_op_choice_info info = {.struct_size = sizeof info};

    WF_TRY(weft_op_choice_get(choice, &info));
    wf_json_begin(json, "chosen", '{');
    json_tensors(json, choice, "inputs", info.inputs, weft_op_choice_input);
    json_tensors(json, choice, "outputs", info.outputs, weft_op_choice_output);
    json_moves(r, choice, json);
    wf_json_uint(json, "cost_ns", info.cost_ns);
    wf_json_uint(json, "output_ns", info.output_ns);
    wf_json_bool(json, "communicates", !info.local);
    wf_json_end(json, '}');
    json_tensors(json, choice, "gradients", info.inputs, weft_op_choice_gradient);
    json_tensors(json, choice, "output_gradients", info.outputs, weft_op_choice_output_gradient);
    return WEFT_OK;
}

weft_status op_add_json(const struct op_request *r, const weft_op_choice *choice,
                        const weft_op_list *list, struct wf_text *out)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    struct wf_json json = {.out = out};

    WF_TRY(weft_op_choice_get(choice, &info));
    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "op", r->call.name);
    wf_json_string(&json, "rule", info.rule);
    op_add_strategies(r, list, "strategies", 0, &json);
    WF_TRY(op_add_members(r, choice, &json));
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
    return wf_text_status(out);
}

/* ---- text ---- */

static weft_status add_tensor(const char *what, size_t index, const weft_spec *spec,
                              struct wf_text *out)
{
    wf_text_add(out, "%s %zu: ", what, index);
    if (spec == NULL)
        wf_text_add(out, "absent");
    else
        WF_TRY(spec_text(spec, false, out));
    return wf_text_status(out);
}

/* "S(0),R ; R,S(1) -> S(0),S(1)" */
static weft_status add_row(const weft_op_choice *choice, size_t inputs, size_t outputs,
                           struct wf_text *out)
{
    for (size_t i = 0; i < inputs + outputs; i++) {
        const weft_spec *spec = i < inputs ? weft_op_choice_input(choice, i)
                                           : weft_op_choice_output(choice, i - inputs);
        wf_text_add(out, "%s", i == inputs ? (i > 0 ? " -> " : "-> ") : i > 0 ? " ; " : "");
        if (spec == NULL)
            wf_text_char(out, '-');
        else
            WF_TRY(spec_text(spec, true, out));
    }
    return wf_text_status(out);
}

static weft_status add_strategy(const struct prices *prices, const weft_op_choice *one,
                                size_t outputs, struct wf_text *out)
{
    uint64_t cost;

    wf_text_add(out, "  ");
    WF_TRY(add_row(one, prices->request->call.input_count, outputs, out));
    if (cost_of(prices, one, 0, &cost)) {
        wf_text_add(out, "  ");
        wf_text_time(out, cost);
    }
    wf_text_char(out, '\n');
    return WEFT_OK;
}

static weft_status add_strategies(const struct op_request *r, const weft_op_list *list,
                                  size_t outputs, struct wf_text *out)
{
    weft_status status = WEFT_OK;
    struct prices prices;

    if (list == NULL) return WEFT_OK;
    prices = begin_prices(r);
    wf_text_add(out, weft_op_list_count(list) == 1 ? "%zu strategy:\n" : "%zu strategies:\n",
                weft_op_list_count(list));
    for (size_t i = 0; status == WEFT_OK && i < weft_op_list_count(list); i++)
        status = add_strategy(&prices, weft_op_list_choice(list, i), outputs, out);
    wf_free(prices.known);
    return status;
}

weft_status op_add_text(const struct op_request *r, const weft_op_choice *choice,
                        const weft_op_list *list, struct wf_text *out)
{
    weft_op_choice_info info = {.struct_size = sizeof info};

    WF_TRY(weft_op_choice_get(choice, &info));
    wf_text_add(out, "rule: %s\n", info.rule);
    WF_TRY(add_strategies(r, list, info.outputs, out));
    for (size_t i = 0; i < info.inputs; i++) {
        const weft_plan *plan = weft_op_choice_move(choice, i);
        weft_plan_info moved = {.struct_size = sizeof moved};
        WF_TRY(add_tensor("input", i, weft_op_choice_input(choice, i), out));
        if (plan != NULL && weft_plan_get(plan, &moved) == WEFT_OK) {
            wf_text_add(out, ", moved from ");
            WF_TRY(spec_text(r->inputs[i], true, out));
            wf_text_add(out, " in ");
            wf_text_time(out, moved.cost_ns);
        }
        wf_text_char(out, '\n');
    }
    for (size_t i = 0; i < info.outputs; i++) {
        WF_TRY(add_tensor("output", i, weft_op_choice_output(choice, i), out));
        wf_text_char(out, '\n');
    }
    if (info.output_ns > 0) {
        wf_text_add(out, "outputs are moved afterwards in ");
        wf_text_time(out, info.output_ns);
        wf_text_char(out, '\n');
    }
    for (size_t i = 0; i < info.inputs; i++) {
        if (weft_op_choice_gradient(choice, i) == NULL) continue;
        WF_TRY(add_tensor("gradient of input", i, weft_op_choice_gradient(choice, i), out));
        wf_text_char(out, '\n');
    }
    for (size_t i = 0; i < info.outputs; i++) {
        if (weft_op_choice_output_gradient(choice, i) == NULL) continue;
        WF_TRY(add_tensor("gradient of output", i, weft_op_choice_output_gradient(choice, i), out));
        wf_text_char(out, '\n');
    }
    return wf_text_status(out);
}
