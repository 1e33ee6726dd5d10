/* planned.c - see planned.h. */
#include "redistribute/planned.h"

weft_status planned_find(const struct request *request, const weft_plan_options *options,
                         bool with_runner_up, struct planned *out)
{
    uint64_t begun = wf_now_ns();
    weft_status status;

    WF_TRY(weft_plan_create(request->from, request->to, options, &out->plan));
    out->plan_ns = wf_now_ns() - begun;
    if (!with_runner_up) return WEFT_OK;
    status = weft_plan_create_runner_up(out->plan, options, &out->runner_up);
    return status == WEFT_ERR_NOT_FOUND ? WEFT_OK : status;
}

void planned_free(struct planned *planned)
{
    weft_plan_release(&planned->plan);
    weft_plan_release(&planned->runner_up);
}

weft_status planned_add_members(const struct planned *planned, struct wf_text *out)
{
    size_t length;
    char *object;
    weft_status status;

    WF_TRY(weft_plan_print_json(planned->plan, planned->runner_up, NULL, 0, &length));
    object = wf_alloc(length + 1);
    if (object == NULL) return wf_fail_memory(length + 1);
    status = weft_plan_print_json(planned->plan, planned->runner_up, object, length + 1, NULL);
    if (status == WEFT_OK) {
        wf_text_append(out, object + 1, length - 2); /* without its braces */
        wf_text_add(out, ",\"plan_ns\":%llu", (unsigned long long)planned->plan_ns);
        status = wf_text_status(out);
    }
    wf_free(object);
    return status;
}

void planned_begin_json(struct wf_json *json, const struct wf_text *members)
{
    wf_json_begin(json, NULL, '{');
    wf_text_append(json->out, members->data, members->length);
    json->has_member |= UINT64_C(1) << json->depth;
}
