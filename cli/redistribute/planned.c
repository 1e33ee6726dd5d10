/* planned.c - see planned.h. */
#include "redistribute/planned.h"

weft_status planned_find(const struct request *request, const weft_plan_options *options,
                         bool with_runner_up, struct planned *out)
{
    uint64_t begun = wf_now_ns();
    weft_status status;

    out->options = *options;
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

/* Add why OTHER lost: the first measure in which it is worse. */
static void add_reason(struct wf_text *text, const weft_plan_options *asked,
                       const weft_plan_info *best, const weft_plan_info *other)
{
    uint32_t minimize = asked->minimize;

    if (asked->memory_limit != 0 && other->peak_bytes > asked->memory_limit) {
        wf_text_add(text, "needs ");
        wf_text_bytes(text, other->peak_bytes);
        wf_text_add(text, " of scratch, over the limit");
    } else if (minimize == WEFT_MINIMIZE_BYTES &&
               other->bytes_received_max > best->bytes_received_max) {
        wf_text_add(text, "receives ");
        wf_text_bytes(text, other->bytes_received_max - best->bytes_received_max);
        wf_text_add(text, " more");
    } else if (minimize == WEFT_MINIMIZE_MEMORY && other->peak_bytes > best->peak_bytes) {
        wf_text_add(text, "needs ");
        wf_text_bytes(text, other->peak_bytes - best->peak_bytes);
        wf_text_add(text, " more scratch");
    } else if (other->cost_ns > best->cost_ns) {
        wf_text_add(text, "takes ");
        wf_text_time(text, other->cost_ns - best->cost_ns);
        wf_text_add(text, " longer");
    } else if (other->bytes_received_max > best->bytes_received_max) {
        wf_text_add(text, "takes as long and receives ");
        wf_text_bytes(text, other->bytes_received_max - best->bytes_received_max);
        wf_text_add(text, " more");
    } else if (other->steps > best->steps) {
        wf_text_add(text, "costs the same and has more steps");
    } else {
        wf_text_add(text, "costs the same");
    }
}

void planned_add_reason(const struct planned *planned, struct wf_text *out)
{
    weft_plan_info best = {.struct_size = sizeof best}, other = best;

    if (weft_plan_get(planned->plan, &best) == WEFT_OK &&
        weft_plan_get(planned->runner_up, &other) == WEFT_OK)
        add_reason(out, &planned->options, &best, &other);
}

/* Add the member "runner_up_reason". */
static void add_reason_member(const struct planned *planned, struct wf_text *out)
{
    if (planned->runner_up == NULL) {
        wf_text_add(out, ",\"runner_up_reason\":null");
        return;
    }
    wf_text_add(out, ",\"runner_up_reason\":\"");
    planned_add_reason(planned, out); /* needs no escapes */
    wf_text_char(out, '"');
}

weft_status planned_add_members(const struct planned *planned, struct wf_text *out)
{
    size_t length;
    char *object;
    weft_status status;

    WF_TRY(weft_plan_json_print(planned->plan, planned->runner_up, NULL, 0, &length));
    object = wf_alloc(length + 1);
    if (object == NULL) return wf_fail_memory(length + 1);
    status = weft_plan_json_print(planned->plan, planned->runner_up, object, length + 1, NULL);
    if (status == WEFT_OK) {
        wf_text_append(out, object + 1, length - 2); /* without its braces */
        add_reason_member(planned, out);
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
