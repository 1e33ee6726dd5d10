/* trace.c - a simulated step in the JSON format of traces that Perfetto reads: a process for each
 * rank of the pipeline, with a thread for compute and one for collectives. */
#include "prediction/prediction.h"

static void add_slice(struct wf_text *out, const char *name, int32_t rank, int thread,
                      uint64_t begin, uint64_t end)
{
    wf_text_add(out,
                ",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}",
                name, rank, thread, (double)begin / 1e3, (double)(end - begin) / 1e3);
}

static weft_status add_rank(const weft_prediction *r, int32_t rank, struct wf_text *out)
{
    const weft_schedule_action *actions;
    uint64_t begin, end;
    size_t count;
    char name[64];

    WF_TRY(weft_schedule_actions(r->schedule, rank, &count, &actions, sizeof *actions));
    wf_text_add(out,
                "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":"
                "\"pipeline rank %d\"}}",
                rank > 0 ? ",\n" : "", rank, rank);
    for (size_t i = 0; i < count; i++) {
        bool computes = actions[i].kind <= WEFT_SCHEDULE_ACTION_W;
        WF_TRY(weft_timeline_span(r->timeline, rank, i, &begin, &end));
        if (begin == end) continue;
        WF_TRY(weft_schedule_action_print(&actions[i], NULL, name, sizeof name, NULL));
        add_slice(out, name, rank, computes ? 0 : 1, begin, end);
    }
    end = r->ranks[rank].end;
    if (r->ranks[rank].update > 0)
        add_slice(out, "update", rank, 0, end, end + r->ranks[rank].update);
    return WEFT_OK;
}

weft_status wf_step_add_trace(const weft_prediction *r, struct wf_text *out)
{
    weft_schedule_info info = {.struct_size = sizeof info};

    WF_TRY(weft_schedule_get(r->schedule, &info));
    wf_text_add(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    for (int32_t p = 0; p < info.ranks; p++)
        WF_TRY(add_rank(r, p, out));
    wf_text_add(out, "\n]}\n");
    return wf_text_status(out);
}
