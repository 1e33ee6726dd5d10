/* run.c - one run: the actions of this rank, in order.
 *
 * Sends and receives are posted and not waited for.  An action waits for what it reads, and for the
 * last send from the memory that it writes; the schedule ensures that the other rank has received
 * that by then. */
#include "pipeline.h"

#include "schedule/schedule.h"

#include <stdio.h>
#include <string.h>

static const char function[] = "weft_pipeline_run";

/* ---- waiting ---- */

/* Make STREAM wait for *WORK, unless it is NULL, and release it. */
static weft_status wait_on(weft_stream *stream, weft_work **work)
{
    weft_status status;

    if (*work == NULL) return WEFT_OK;
    status = weft_stream_wait_work(stream, *work);
    weft_work_release(work);
    return status;
}

/* Make the computation wait for *WORK, unless it is NULL, and release it. */
static weft_status await(weft_pipeline *pipeline, weft_work **work)
{
    weft_status status;

    if (!pipeline->is_inline) return wait_on(pipeline->options.compute, work);
    if (*work == NULL) return WEFT_OK;
    status = weft_work_wait(*work, WEFT_FOREVER);
    weft_work_release(work);
    return status;
}

static weft_status await_slot(weft_pipeline *pipeline, uint32_t slot, bool written)
{
    if (slot == WF_NO_SLOT) return WEFT_OK;
    WF_TRY(await(pipeline, &pipeline->slots[slot].arriving));
    return written ? await(pipeline, &pipeline->slots[slot].leaving) : WEFT_OK;
}

static weft_status await_memory(weft_pipeline *pipeline, size_t index)
{
    const struct wf_pipeline_step *step = &pipeline->steps[index];

    WF_TRY(await_slot(pipeline, step->inputs, false));
    WF_TRY(await_slot(pipeline, step->d_outputs, false));
    WF_TRY(await_slot(pipeline, step->outputs,
                      pipeline->actions[index].kind == WEFT_SCHEDULE_ACTION_F));
    return await_slot(pipeline, step->d_inputs, true);
}

/* Work that is posted to the stream of CHANNEL starts after the callbacks so far. */
static weft_status follow_compute(weft_pipeline *pipeline, const struct wf_channel *channel)
{
    weft_work *work = NULL;

    if (pipeline->is_inline) return WEFT_OK;
    WF_TRY(weft_work_record(pipeline->context, pipeline->options.compute, &work));
    return wait_on(channel->stream, &work);
}

/* ---- messages ---- */

static weft_status pass_on(weft_pipeline *pipeline, size_t index)
{
    const struct wf_pipeline_step *step = &pipeline->steps[index];
    const struct wf_channel *channel = &pipeline->channels[step->channel];
    struct wf_slot *slot = &pipeline->slots[step->inputs];
    const struct wf_boundary *boundary = &pipeline->boundaries[slot->boundary];
    uint8_t kind = pipeline->actions[index].kind;
    bool sends = kind == WEFT_SCHEDULE_ACTION_SEND_F || kind == WEFT_SCHEDULE_ACTION_SEND_B;
    bool forward = kind == WEFT_SCHEDULE_ACTION_SEND_F || kind == WEFT_SCHEDULE_ACTION_RECV_F;
    uint64_t bytes = forward ? boundary->bytes : boundary->grad_bytes;
    weft_work **work = sends ? &slot->leaving : &slot->arriving;
    void *memory = weft_tensor_memory(slot->all);

    WF_TRY(follow_compute(pipeline, channel));
    WF_TRY(wait_on(channel->stream, &slot->leaving));
    if (sends)
        WF_TRY(weft_send(channel->comm, memory, bytes, WEFT_DTYPE_U8, channel->peer, 0,
                         channel->stream));
    else
        WF_TRY(weft_receive(channel->comm, memory, bytes, WEFT_DTYPE_U8, channel->peer, 0,
                            channel->stream));
    return weft_work_record(pipeline->context, channel->stream, work);
}

/* ---- callbacks ---- */

static weft_tensor *const *tensors_of(const weft_pipeline *pipeline, uint32_t slot, bool gradient)
{
    if (slot == WF_NO_SLOT) return NULL;
    return gradient ? pipeline->slots[slot].gradients : pipeline->slots[slot].values;
}

static size_t count_of(const weft_pipeline *pipeline, uint32_t slot)
{
    return slot == WF_NO_SLOT ? 0
                              : pipeline->boundaries[pipeline->slots[slot].boundary].values.count;
}

static weft_pipeline_call call_of(const weft_pipeline *pipeline, size_t index)
{
    static const uint32_t parts[] = {[WEFT_SCHEDULE_ACTION_B] =
                                         WEFT_PIPELINE_INPUTS | WEFT_PIPELINE_WEIGHTS,
                                     [WEFT_SCHEDULE_ACTION_I] = WEFT_PIPELINE_INPUTS,
                                     [WEFT_SCHEDULE_ACTION_W] = WEFT_PIPELINE_WEIGHTS};
    const struct wf_pipeline_step *step = &pipeline->steps[index];
    const weft_schedule_action *action = &pipeline->actions[index];

    return (weft_pipeline_call){
        .struct_size = sizeof(weft_pipeline_call),
        .stream = pipeline->options.compute,
        .stage = action->stage,
        .microbatch = action->microbatch,
        .kind = action->kind,
        .parts = action->kind <= WEFT_SCHEDULE_ACTION_W ? parts[action->kind] : 0,
        .is_last = step->is_last,
        .input_count = count_of(pipeline, step->inputs),
        .output_count = count_of(pipeline, step->outputs),
        .inputs = tensors_of(pipeline, step->inputs, false),
        .outputs = tensors_of(pipeline, step->outputs, false),
        .d_outputs = tensors_of(pipeline, step->d_outputs, true),
        .d_inputs = tensors_of(pipeline, step->d_inputs, true),
        .loss_scale = pipeline->options.loss_scale,
    };
}

static weft_status check_released(const weft_pipeline *pipeline)
{
    if (pipeline->state != WF_PIPELINE_ENDS) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "the callback has released the pipeline that runs");
}

static weft_status call_back(weft_pipeline *pipeline, size_t index)
{
    const weft_pipeline_options *o = &pipeline->options;
    const weft_pipeline_callback callbacks[] = {
        [WEFT_SCHEDULE_ACTION_F] = o->forward,
        [WEFT_SCHEDULE_ACTION_B] = o->backward,
        [WEFT_SCHEDULE_ACTION_I] = o->backward,
        [WEFT_SCHEDULE_ACTION_W] = o->backward,
        [WEFT_SCHEDULE_ACTION_UNSHARD] = o->unshard,
        [WEFT_SCHEDULE_ACTION_RESHARD] = o->reshard,
        [WEFT_SCHEDULE_ACTION_REDUCE_GRADIENT] = o->reduce,
    };
    weft_pipeline_call call;
    weft_status status;
    uint64_t failures;

    WF_TRY(await_memory(pipeline, index));
    call = call_of(pipeline, index);
    failures = wf_failure_count();
    status = callbacks[call.kind](o->user, &call);
    if (status != WEFT_OK) return wf_fail_callback(status, failures, "the callback");
    return check_released(pipeline);
}

/* Two actions that may run together. */
static weft_status call_both(weft_pipeline *pipeline, size_t index)
{
    const weft_pipeline_options *o = &pipeline->options;
    weft_pipeline_call first, second;
    weft_status status;
    uint64_t failures;

    WF_TRY(await_memory(pipeline, index));
    WF_TRY(await_memory(pipeline, index + 1));
    first = call_of(pipeline, index);
    second = call_of(pipeline, index + 1);
    failures = wf_failure_count();
    status = o->overlap(o->user, &first, &second);
    if (status != WEFT_OK) return wf_fail_callback(status, failures, "the callback `overlap`");
    return check_released(pipeline);
}

static bool are_together(const weft_pipeline *pipeline, size_t index)
{
    return pipeline->actions[index].with_next != 0 && pipeline->options.overlap != NULL;
}

/* ---- the run ---- */

/* "stage 2, microbatch 5 (2B5): ..." */
static weft_status name_action(const weft_pipeline *pipeline, size_t index, bool together,
                               weft_status status)
{
    const weft_schedule_action *a = &pipeline->actions[index];
    char text[96] = "";

    if (weft_schedule_action_print(a, together ? a + 1 : NULL, text, sizeof text, NULL) != WEFT_OK)
        text[0] = '\0';
    if (together)
        return wf_fail_context(status, "stages %d and %d, microbatches %d and %d (%s)", a[0].stage,
                               a[1].stage, a[0].microbatch, a[1].microbatch, text);
    if (a->microbatch < 0) return wf_fail_context(status, "stage %d (%s)", a->stage, text);
    return wf_fail_context(status, "stage %d, microbatch %d (%s)", a->stage, a->microbatch, text);
}

/* Run action INDEX; of a pair that runs in order, also send what its first action has made. */
static weft_status run_action(weft_pipeline *pipeline, size_t index, size_t *sent)
{
    size_t send = wf_send_between(pipeline->actions, pipeline->action_count, index);

    if (index == *sent && index > 0) return WEFT_OK;
    if (pipeline->steps[index].channel >= 0) return pass_on(pipeline, index);
    WF_TRY(call_back(pipeline, index));
    if (send == 0) return WEFT_OK;
    *sent = send;
    return pass_on(pipeline, send);
}

static weft_status run_actions(weft_pipeline *pipeline)
{
    size_t sent = 0; /* the last message that was sent before its turn */

    for (size_t i = 0; i < pipeline->action_count; i++) {
        bool together = are_together(pipeline, i);
        weft_status status, cause;

        WF_TRY(weft_comm_async_error(pipeline->comm));
        status = together ? call_both(pipeline, i) : run_action(pipeline, i, &sent);
        if (status != WEFT_OK) {
            cause = weft_comm_async_error(pipeline->comm); /* another rank's error, or its loss */
            if (cause != WEFT_OK && cause != WEFT_ERR_TIMEOUT) return cause;
            return name_action(pipeline, i, together, cause != WEFT_OK ? cause : status);
        }
        i += together;
    }
    return WEFT_OK;
}

/* Wait for the messages of this rank, and for the other ranks. */
static weft_status finish(weft_pipeline *pipeline)
{
    WF_TRY(wf_channels_drain(pipeline));
    WF_TRY(weft_barrier(pipeline->comm, pipeline->options.compute));
    if (pipeline->is_inline) return WEFT_OK;
    return weft_context_wait(pipeline->context, pipeline->options.compute, WEFT_FOREVER);
}

static void release_works(weft_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->slot_count; i++) {
        weft_work_release(&pipeline->slots[i].arriving);
        weft_work_release(&pipeline->slots[i].leaving);
    }
}

/* The communicator has failed, and the messages with it.  They and the work of callbacks no longer
 * use the memory of slots, and the error of the run is the last one. */
static void end_work(weft_pipeline *pipeline, weft_status status)
{
    char text[1024];

    snprintf(text, sizeof text, "%s", weft_last_error());
    if (wf_channels_drain(pipeline) != WEFT_OK)
        wf_log(WF_LOG_DEBUG, "messages of a pipeline ended: %s", weft_last_error());
    if (!pipeline->is_inline &&
        weft_context_wait(pipeline->context, pipeline->options.compute, WEFT_FOREVER) != WEFT_OK)
        wf_log(WF_LOG_DEBUG, "the work of a pipeline ended: %s", weft_last_error());
    (void)wf_fail(status, "%s", text);
}

weft_status weft_pipeline_run(weft_pipeline *pipeline)
{
    weft_status status;
    bool is_released;

    WF_TRY(wf_pipeline_check(pipeline, function));
    WF_TRY(wf_fail_named(weft_comm_async_error(pipeline->comm), function));
    if (pipeline->state != WF_PIPELINE_READY)
        return wf_fail(WEFT_ERR_INVALID, "%s: %s", function,
                       wf_pipeline_runs(pipeline)
                           ? "a callback has called it for the pipeline that runs"
                           : "an earlier run has failed; release the pipeline");
    pipeline->state = WF_PIPELINE_RUNS;
    status = run_actions(pipeline);
    if (status == WEFT_OK) status = finish(pipeline);
    if (status != WEFT_OK) {
        status = weft_comm_fail(pipeline->comm, function, status);
        end_work(pipeline, status);
    }
    release_works(pipeline);
    is_released = pipeline->state == WF_PIPELINE_ENDS;
    pipeline->state = status == WEFT_OK ? WF_PIPELINE_READY : WF_PIPELINE_FAILED;
    if (is_released) weft_pipeline_release(&pipeline);
    return status;
}
