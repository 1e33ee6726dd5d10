/* chain_search.c - the cheapest strategies of the parts of an operator that is made of others.
 *
 * A part sees the parts before it only by the layout between them.  For each such layout, the
 * cheapest way to it is kept, so the work grows with the number of parts and not with that of
 * their combinations. */
#include "chain.h"

/* A layout behind a part, and the cheapest way to it. */
struct state {
    weft_spec *spec; /* NULL: behind the last part, where the layout does not matter */
    weft_op_choice *choice;
    uint32_t parent; /* state of the layer before */
    uint64_t cost_ns, output_ns;
};

struct layer {
    struct state *states;
    uint32_t count, room;
};

/* Prices of one input of the call. */
struct prices {
    struct {
        weft_spec *spec;
        uint64_t ns;
    } * known;
    uint32_t count, room;
};

struct search {
    const struct wf_chain *chain;
    struct layer layers[WF_OP_STEPS];
    struct prices prices[WF_CHAIN_INPUTS];
};

/* ---- prices ---- */

static weft_status price_input(struct search *s, uint32_t index, weft_spec *spec, uint64_t *ns)
{
    struct prices *p = &s->prices[index];

    for (uint32_t i = 0; i < p->count; i++)
        if (p->known[i].spec == spec) {
            *ns = p->known[i].ns;
            return WEFT_OK;
        }
    if (p->count == p->room) {
        uint32_t room = p->room != 0 ? 2 * p->room : 16;
        void *grown = wf_realloc(p->known, room * sizeof *p->known);
        if (grown == NULL) return wf_fail_memory(room * sizeof *p->known);
        p->known = grown;
        p->room = room;
    }
    WF_TRY(wf_chain_price(s->chain, index, spec, ns));
    p->known[p->count].spec = spec != NULL ? weft_spec_retain(spec) : NULL;
    p->known[p->count++].ns = *ns;
    return WEFT_OK;
}

/* ---- layers ---- */

static weft_status find_state(struct layer *layer, weft_spec *spec, struct state **out)
{
    uint32_t at = 0;

    while (at < layer->count && layer->states[at].spec != spec)
        at++;
    if (at == layer->room) {
        uint32_t room = layer->room != 0 ? 2 * layer->room : 16;
        struct state *grown = wf_realloc(layer->states, room * sizeof *grown);
        if (grown == NULL) return wf_fail_memory(room * sizeof *grown);
        layer->states = grown;
        layer->room = room;
    }
    if (at == layer->count)
        layer->states[layer->count++] = (struct state){
            .spec = spec != NULL ? weft_spec_retain(spec) : NULL, .cost_ns = UINT64_MAX};
    *out = &layer->states[at];
    return WEFT_OK;
}

/* Go on with strategy ONE of STEP, to which the state PARENT leads. */
static weft_status try_choice(struct search *s, uint32_t step, const weft_op_choice *one,
                              uint32_t parent, uint32_t next)
{
    const struct wf_chain *c = s->chain;
    uint32_t own = step > 0 ? 1 : 0, count = c->steps[step].inputs - own;
    uint64_t cost = step > 0 ? s->layers[step - 1].states[parent].cost_ns : 0, output_ns = 0;
    bool last = step + 1 == c->step_count;
    struct state *state = NULL;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t ns;
        WF_TRY(price_input(s, next + i, (weft_spec *)(uintptr_t)weft_op_choice_input(one, own + i),
                           &ns));
        cost = wf_add_capped(cost, ns);
        if (cost == UINT64_MAX) return WEFT_OK;
    }
    if (last) WF_TRY(wf_chain_price_outputs(c, one, &output_ns));
    cost = wf_add_capped(cost, output_ns);
    if (cost == UINT64_MAX) return WEFT_OK;
    WF_TRY(find_state(&s->layers[step],
                      last ? NULL : (weft_spec *)(uintptr_t)weft_op_choice_output(one, 0), &state));
    if (cost >= state->cost_ns) return WEFT_OK;
    weft_op_choice_release(&state->choice);
    state->choice = weft_op_choice_retain(one);
    state->parent = parent;
    state->cost_ns = cost;
    state->output_ns = output_ns;
    return WEFT_OK;
}

/* Find all layouts behind STEP. */
static weft_status make_layer(struct search *s, uint32_t step, uint32_t next)
{
    uint32_t before = step > 0 ? s->layers[step - 1].count : 1;

    for (uint32_t i = 0; i < before; i++) {
        const weft_spec *spec = step > 0 ? s->layers[step - 1].states[i].spec : NULL;
        weft_op_list *list = NULL;
        weft_status status = wf_chain_list_step(s->chain, step, spec, next, &list);
        for (uint32_t j = 0; status == WEFT_OK && j < weft_op_list_count(list); j++)
            status = try_choice(s, step, weft_op_list_choice(list, j), i, next);
        weft_op_list_release(&list);
        WF_TRY(status);
    }
    return WEFT_OK;
}

static void end_search(struct search *s)
{
    for (uint32_t i = 0; i < WF_OP_STEPS; i++) {
        for (uint32_t j = 0; j < s->layers[i].count; j++) {
            weft_spec_release(&s->layers[i].states[j].spec);
            weft_op_choice_release(&s->layers[i].states[j].choice);
        }
        wf_free(s->layers[i].states);
    }
    for (uint32_t i = 0; i < WF_CHAIN_INPUTS; i++) {
        for (uint32_t j = 0; j < s->prices[i].count; j++)
            weft_spec_release(&s->prices[i].known[j].spec);
        wf_free(s->prices[i].known);
    }
    wf_free(s);
}

weft_status wf_chain_search(const struct wf_chain *c, struct wf_chain_best *out)
{
    struct search *s = wf_calloc(1, sizeof *s);
    uint32_t next = 0, at = 0;
    weft_status status = WEFT_OK;

    *out = (struct wf_chain_best){.found = false};
    if (s == NULL) return wf_fail_memory(sizeof *s);
    s->chain = c;
    for (uint32_t step = 0; status == WEFT_OK && step < c->step_count; step++) {
        status = make_layer(s, step, next);
        next += c->steps[step].inputs - (step > 0 ? 1 : 0);
    }
    out->found = status == WEFT_OK && s->layers[c->step_count - 1].count > 0;
    for (uint32_t step = c->step_count; out->found && step-- > 0;) {
        const struct state *state = &s->layers[step].states[at];
        if (step + 1 == c->step_count) {
            out->cost_ns = state->cost_ns;
            out->output_ns = state->output_ns;
        }
        out->parts[step] = weft_op_choice_retain(state->choice);
        at = state->parent;
    }
    end_search(s);
    return status;
}

void wf_chain_best_end(struct wf_chain_best *best)
{
    for (uint32_t i = 0; i < WF_OP_STEPS; i++)
        weft_op_choice_release(&best->parts[i]);
}
