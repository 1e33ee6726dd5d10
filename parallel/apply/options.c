/* options.c - what the options of a call say. */
#include "apply.h"

static weft_status read_strategy(const char *function, const weft_op_options *given,
                                 bool costs_only, weft_op_options *out)
{
    WF_TRY(wf_fail_named(wf_options_read("weft_op_options", given, out, sizeof *out), function));
    out->struct_size = sizeof *out;
    if (!costs_only || (out->flags == 0 && out->element == 0 && out->memory_limit == 0 &&
                        out->fixed_inputs == NULL && out->fixed_outputs == NULL &&
                        out->wanted_outputs == NULL && out->allow == NULL))
        return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: weft_op_apply_options.strategy has more than costs; flags, limits and "
                   "layouts are for one call of weft_op_apply",
                   function);
}

weft_status wf_apply_options_read(const char *function, const weft_context *context,
                                  const weft_op_apply_options *given, bool costs_only,
                                  struct wf_apply_options *out)
{
    weft_op_apply_options read = {0};

    *out = (struct wf_apply_options){
        .strategy = {.struct_size = sizeof out->strategy, .costs = weft_context_costs(context)}};
    if (given == NULL) return WEFT_OK;
    WF_TRY(wf_fail_named(wf_options_read("weft_op_apply_options", given, &read, sizeof read),
                         function));
    if (read.moves > WEFT_OP_MOVES_SHOWN)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: weft_op_apply_options.moves is %u; expected a value of enum "
                       "weft_op_moves",
                       function, read.moves);
    out->moves = (enum weft_op_moves)read.moves;
    if (read.strategy == NULL) return WEFT_OK;
    out->has_strategy = true;
    WF_TRY(read_strategy(function, read.strategy, costs_only, &out->strategy));
    if (out->strategy.costs == NULL) out->strategy.costs = weft_context_costs(context);
    return WEFT_OK;
}
