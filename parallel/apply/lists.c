/* lists.c - the choices of calls with long lists, such as the update of all parameters.  Their keys
 * are too long for the cache of ops, and are compared where they are. */
#include "apply.h"

#include "ops/bind/attrs.h"
#include "ops/ops.h"

#include <string.h>

struct wf_long_call {
    uint64_t digest, generation; /* of the rules, and of the functions that compute rows */
    char *name;
    bool moves;
    uint32_t flags;
    uint32_t input_count, attr_count;
    weft_spec **specs;
    weft_op_attr *attrs; /* with texts and lists of their own */
    bool *matters;       /* the value of the attribute does */
    weft_op_choice *choice;
};

/* ---- attributes ---- */

static bool same_attrs(const struct wf_long_call *kept, const weft_op_call *call)
{
    if (kept->attr_count != call->attr_count) return false;
    for (uint32_t i = 0; i < call->attr_count; i++) {
        const weft_op_attr *attr = &call->attrs[i];

        if (attr->name == NULL || strcmp(kept->attrs[i].name, attr->name) != 0) return false;
        if (kept->attrs[i].kind != attr->kind) return false;
        if (kept->matters[i] && !wf_attr_same_value(&kept->attrs[i], attr)) return false;
    }
    return true;
}

static bool copy_attr(weft_op_attr *to, const weft_op_attr *from)
{
    *to = *from;
    to->name = wf_strdup(from->name);
    to->list = NULL;
    to->text = NULL;
    if (from->kind == WEFT_ATTR_TEXT) to->text = wf_strdup(from->text);
    if (from->kind == WEFT_ATTR_LIST) {
        int64_t *list = wf_calloc(from->count, sizeof *list);

        if (list != NULL && from->count > 0) memcpy(list, from->list, from->count * sizeof *list);
        to->list = list;
    }
    return to->name != NULL && (from->kind != WEFT_ATTR_TEXT || to->text != NULL) &&
           (from->kind != WEFT_ATTR_LIST || to->list != NULL);
}

/* ---- calls ---- */

static void free_call(struct wf_long_call *call)
{
    for (uint32_t i = 0; call->specs != NULL && i < call->input_count; i++)
        weft_spec_release(&call->specs[i]);
    for (uint32_t i = 0; call->attrs != NULL && i < call->attr_count; i++) {
        wf_free((void *)(uintptr_t)call->attrs[i].name);
        wf_free((void *)(uintptr_t)call->attrs[i].text);
        wf_free((void *)(uintptr_t)call->attrs[i].list);
    }
    weft_op_choice_release(&call->choice);
    wf_free(call->name);
    wf_free(call->specs);
    wf_free(call->attrs);
    wf_free(call->matters);
    wf_free(call);
}

static struct wf_long_call *make_call(const weft_op_call *call, bool moves,
                                      const weft_op_choice *choice)
{
    struct wf_long_call *kept = wf_calloc(1, sizeof *kept);
    bool whole;

    if (kept == NULL) return NULL;
    kept->digest = weft_op_digest();
    kept->generation = wf_use_generation();
    kept->moves = moves;
    kept->flags = call->flags;
    kept->name = wf_strdup(call->name);
    kept->specs = wf_calloc(call->input_count, sizeof *kept->specs);
    kept->attrs = wf_calloc(call->attr_count, sizeof *kept->attrs);
    kept->matters = wf_calloc(call->attr_count, sizeof *kept->matters);
    kept->choice = weft_op_choice_retain(choice);
    whole =
        kept->name != NULL && kept->specs != NULL && kept->attrs != NULL && kept->matters != NULL;
    for (; whole && kept->attr_count < call->attr_count; kept->attr_count++) {
        uint32_t i = kept->attr_count;

        kept->matters[i] = wf_op_attr_matters(call->name, call->attrs[i].name);
        whole = copy_attr(&kept->attrs[i], &call->attrs[i]);
    }
    for (; whole && kept->input_count < call->input_count; kept->input_count++)
        kept->specs[kept->input_count] = weft_spec_retain(call->inputs[kept->input_count]);
    if (whole) return kept;
    free_call(kept);
    return NULL;
}

static bool is_same(const struct wf_long_call *kept, const weft_op_call *call, bool moves)
{
    return kept->input_count == call->input_count && kept->moves == moves &&
           kept->flags == call->flags && strcmp(kept->name, call->name) == 0 &&
           same_attrs(kept, call) &&
           memcmp(kept->specs, call->inputs, call->input_count * sizeof *call->inputs) == 0;
}

/* Calls that state more than lists and attributes are not kept. */
static bool may_keep(const weft_op_call *call)
{
    return call->outputs == NULL && call->mesh == NULL;
}

weft_op_choice *wf_long_call_find(struct wf_apply_state *state, const weft_op_call *call,
                                  bool moves)
{
    uint64_t digest, generation;

    if (state->long_calls[0] == NULL || !may_keep(call)) return NULL;
    digest = weft_op_digest();
    generation = wf_use_generation();
    for (int i = 0; i < WF_LONG_CALLS && state->long_calls[i] != NULL; i++) {
        struct wf_long_call *kept = state->long_calls[i];

        if (kept->digest == digest && kept->generation == generation && is_same(kept, call, moves))
            return weft_op_choice_retain(kept->choice);
    }
    return NULL;
}

void wf_long_call_keep(struct wf_apply_state *state, const weft_op_call *call, bool moves,
                       const weft_op_choice *choice)
{
    struct wf_long_call *kept = may_keep(call) ? make_call(call, moves, choice) : NULL;

    if (kept == NULL) return;
    if (state->long_calls[WF_LONG_CALLS - 1] != NULL)
        free_call(state->long_calls[WF_LONG_CALLS - 1]);
    memmove(state->long_calls + 1, state->long_calls,
            (WF_LONG_CALLS - 1) * sizeof *state->long_calls);
    state->long_calls[0] = kept;
}

void wf_long_calls_free(struct wf_apply_state *state)
{
    for (int i = 0; i < WF_LONG_CALLS; i++)
        if (state->long_calls[i] != NULL) free_call(state->long_calls[i]);
}
