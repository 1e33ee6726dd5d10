/* channels.c - messages between two ranks, each direction apart.
 *
 * A direction has a communicator and a stream of its own, and its messages have one order on both
 * ranks.  A send therefore waits for nothing but its receive and earlier messages of the same
 * direction, and no callback waits for a send whose receive comes later.  So ranks do not wait for
 * each other in a circle if the schedule has none, also on a backend whose sends wait for their
 * receives and which does not match messages by tag. */
#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>

/* The ranks between which ACTION is a message; false: it is none. */
static bool ends_of(const weft_pipeline *pipeline, const weft_schedule_action *action,
                    int32_t *from, int32_t *to)
{
    int32_t mine = pipeline->rank;
    bool sends =
        action->kind == WEFT_SCHEDULE_ACTION_SEND_F || action->kind == WEFT_SCHEDULE_ACTION_SEND_B;
    bool receives =
        action->kind == WEFT_SCHEDULE_ACTION_RECV_F || action->kind == WEFT_SCHEDULE_ACTION_RECV_B;
    bool up =
        action->kind == WEFT_SCHEDULE_ACTION_SEND_F || action->kind == WEFT_SCHEDULE_ACTION_RECV_B;
    int32_t other = weft_schedule_rank_of(pipeline->schedule, action->stage + (up ? 1 : -1));

    *from = sends ? mine : other;
    *to = sends ? other : mine;
    return sends || receives;
}

static int32_t find(const weft_pipeline *pipeline, int32_t from, int32_t to)
{
    for (int32_t i = 0; i < pipeline->channel_count; i++)
        if (pipeline->channels[i].from == from && pipeline->channels[i].to == to) return i;
    return -1;
}

static weft_status add(weft_pipeline *pipeline, int32_t from, int32_t to)
{
    size_t count = (size_t)pipeline->channel_count;
    struct wf_channel *grown =
        wf_realloc(pipeline->channels, (count + 1) * sizeof *pipeline->channels);

    if (grown == NULL) return wf_fail_memory((count + 1) * sizeof *grown);
    grown[count] = (struct wf_channel){.from = from, .to = to};
    pipeline->channels = grown;
    pipeline->channel_count++;
    return WEFT_OK;
}

static int by_ranks(const void *first, const void *second)
{
    const struct wf_channel *a = first, *b = second;

    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

weft_status wf_channels_list(weft_pipeline *pipeline)
{
    int32_t from, to;

    for (size_t i = 0; i < pipeline->action_count; i++)
        if (ends_of(pipeline, &pipeline->actions[i], &from, &to) && find(pipeline, from, to) < 0)
            WF_TRY(add(pipeline, from, to));
    /* All ranks make their channels in this order, so none waits for another in a circle. */
    if (pipeline->channel_count > 1)
        qsort(pipeline->channels, (size_t)pipeline->channel_count, sizeof *pipeline->channels,
              by_ranks);
    for (size_t i = 0; i < pipeline->action_count; i++)
        pipeline->steps[i].channel =
            ends_of(pipeline, &pipeline->actions[i], &from, &to) ? find(pipeline, from, to) : -1;
    return WEFT_OK;
}

weft_status wf_channels_open(weft_pipeline *pipeline)
{
    const weft_subcomm_options options = {.struct_size = sizeof options, .fails_with_parent = true};
    weft_status status, first = WEFT_OK;
    char text[1024];

    /* After an error, too: the other rank of the next channel waits for this one. */
    for (int32_t i = 0; i < pipeline->channel_count; i++) {
        struct wf_channel *channel = &pipeline->channels[i];
        const int32_t ranks[2] = {channel->from, channel->to};

        channel->peer = channel->from == pipeline->rank ? 1 : 0;
        status = weft_comm_create(pipeline->comm, 2, ranks, &options, &channel->comm);
        if (status == WEFT_OK) status = weft_stream_create(pipeline->context, &channel->stream);
        if (first == WEFT_OK && status != WEFT_OK) {
            first = status;
            snprintf(text, sizeof text, "%s", weft_last_error());
        }
    }
    return first == WEFT_OK ? WEFT_OK : wf_fail(first, "%s", text);
}

weft_status wf_channels_drain(weft_pipeline *pipeline)
{
    weft_status status = WEFT_OK;

    for (int32_t i = 0; i < pipeline->channel_count; i++) {
        weft_stream *stream = pipeline->channels[i].stream;
        weft_status last =
            stream != NULL ? weft_context_wait(pipeline->context, stream, WEFT_FOREVER) : WEFT_OK;

        if (status == WEFT_OK) status = last;
    }
    return status;
}

void wf_channels_close(weft_pipeline *pipeline)
{
    for (int32_t i = 0; i < pipeline->channel_count; i++) {
        weft_stream_release(&pipeline->channels[i].stream);
        weft_comm_release(&pipeline->channels[i].comm);
    }
    wf_free(pipeline->channels);
    pipeline->channels = NULL;
    pipeline->channel_count = 0;
}
