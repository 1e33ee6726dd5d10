/* prediction.c - the functions of weft/prediction.h. */
#include "prediction/prediction.h"

#include <string.h>

static weft_status check_options(const weft_prediction_options *options)
{
    if (!(options->jitter >= 0 && options->jitter <= 10))
        return wf_fail(WEFT_ERR_INVALID, "jitter is %g; it must be from 0 to 10", options->jitter);
    if (options->flags & ~(uint32_t)(WEFT_PREDICTION_FSDP | WEFT_PREDICTION_DDP) ||
        options->flags == (WEFT_PREDICTION_FSDP | WEFT_PREDICTION_DDP))
        return wf_fail(WEFT_ERR_INVALID,
                       "flags is %#x; it is WEFT_PREDICTION_FSDP, WEFT_PREDICTION_DDP or 0",
                       options->flags);
    if (options->stage_count > 0 && options->stage_layers == NULL)
        return wf_fail(WEFT_ERR_INVALID, "stage_layers is NULL, and stage_count is %zu",
                       options->stage_count);
    for (size_t i = 0; i < options->straggler_count; i++) {
        const weft_straggler *s = &options->stragglers[i];
        if (s->rank >= 0 && s->factor >= 1 && s->factor <= 1000) continue;
        return wf_fail(WEFT_ERR_INVALID,
                       "straggler %zu is rank %d with the factor %g; a factor is from 1 to 1000", i,
                       s->rank, s->factor);
    }
    return WEFT_OK;
}

static weft_status create(const weft_graph *graph, const weft_prediction_options *options,
                          weft_prediction **out)
{
    weft_prediction *made;
    weft_status status;

    WF_TRY(check_options(options));
    made = wf_calloc(1, sizeof *made);
    if (made == NULL) return wf_fail_memory(sizeof *made);
    status = wf_step_simulate(graph, options, made);
    if (status == WEFT_OK)
        *out = made;
    else
        weft_prediction_release(&made);
    return status;
}

weft_status weft_prediction_create(const weft_graph *graph, const weft_prediction_options *options,
                                   weft_prediction **out)
{
    static const char function[] = "weft_prediction_create";
    weft_prediction_options given;
    void *copy = NULL;
    weft_status status;

    WF_TRY(wf_graph_require_checked(graph, function));
    WF_TRY(wf_require(out, "weft_prediction_create: out"));
    memset(&given, 0, sizeof given);
    WF_TRY(wf_fail_named(wf_options_read("weft_prediction_options", options, &given, sizeof given),
                         function));
    if (given.straggler_count > 0)
        WF_TRY(
            wf_fail_named(wf_items_read("weft_straggler", given.straggler_count, given.stragglers,
                                        given.straggler_size, sizeof *given.stragglers, &copy),
                          function));
    if (copy != NULL) given.stragglers = copy;
    status = create(graph, &given, out);
    wf_free(copy);
    return status;
}

void weft_prediction_release(weft_prediction **prediction)
{
    weft_prediction *mine;

    if (prediction == NULL || *prediction == NULL) return;
    mine = *prediction;
    *prediction = NULL;
    weft_timeline_release(&mine->timeline);
    weft_schedule_release(&mine->schedule);
    weft_mesh_release(&mine->mesh);
    weft_cost_table_release(&mine->costs);
    wf_free(mine->stages);
    wf_free(mine->ranks);
    wf_free(mine);
}

/* ---- figures ---- */

weft_status weft_prediction_get(const weft_prediction *prediction, weft_prediction_info *out)
{
    WF_TRY(wf_require(prediction, "weft_prediction_get: prediction"));
    WF_TRY(wf_require(out, "weft_prediction_get: out"));
    return wf_info_write("weft_prediction_info", &prediction->info, sizeof prediction->info, out);
}

weft_status weft_prediction_stage_get(const weft_prediction *prediction, int32_t stage,
                                      weft_prediction_stage_info *out)
{
    WF_TRY(wf_require(prediction, "weft_prediction_stage_get: prediction"));
    WF_TRY(wf_require(out, "weft_prediction_stage_get: out"));
    if (stage < 0 || stage >= prediction->info.stages)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_prediction_stage_get: stage %d; the schedule has %d stages", stage,
                       prediction->info.stages);
    return wf_info_write("weft_prediction_stage_info", &prediction->stages[stage],
                         sizeof *prediction->stages, out);
}

weft_status weft_prediction_rank_get(const weft_prediction *prediction, int32_t coordinate,
                                     weft_prediction_rank_info *out)
{
    WF_TRY(wf_require(prediction, "weft_prediction_rank_get: prediction"));
    WF_TRY(wf_require(out, "weft_prediction_rank_get: out"));
    if (coordinate < 0 || coordinate >= prediction->info.pipeline_ranks)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_prediction_rank_get: coordinate %d; the axis pp has %d", coordinate,
                       prediction->info.pipeline_ranks);
    return wf_info_write("weft_prediction_rank_info", &prediction->ranks[coordinate],
                         sizeof *prediction->ranks, out);
}

/* ---- texts ---- */

static weft_status print(const weft_prediction *prediction, const char *function,
                         weft_status (*add)(const weft_prediction *, struct wf_text *), char *text,
                         size_t size, size_t *needed)
{
    struct wf_text printed = {0};
    weft_status status;

    if (prediction == NULL) return wf_fail_null(function, "prediction");
    if (size > 0 && text == NULL) return wf_fail_null(function, "text");
    status = add(prediction, &printed);
    if (status == WEFT_OK) return wf_text_copy_out(&printed, text, size, needed);
    wf_text_free(&printed);
    return status;
}

weft_status weft_prediction_print(const weft_prediction *prediction, char *text, size_t size,
                                  size_t *needed)
{
    return print(prediction, "weft_prediction_print", wf_step_add_text, text, size, needed);
}

weft_status weft_prediction_json_print(const weft_prediction *prediction, char *text, size_t size,
                                       size_t *needed)
{
    return print(prediction, "weft_prediction_json_print", wf_step_add_json, text, size, needed);
}

weft_status weft_prediction_trace_print(const weft_prediction *prediction, char *text, size_t size,
                                        size_t *needed)
{
    return print(prediction, "weft_prediction_trace_print", wf_step_add_trace, text, size, needed);
}
