/* agree.c - one step that all ranks of a list take together. */
#include "comm.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

/* A list of one agrees with itself; its serials cannot meet the server's or another rank's. */
static weft_status agree_alone(weft_context *context, weft_blob blob, struct wf_gathered *out)
{
    struct wf_gathered got = {.count = 1};

    got.blobs = wf_alloc(sizeof *got.blobs);
    if (got.blobs == NULL) return wf_fail_memory(sizeof *got.blobs);
    wf_text_append(&got.bytes, blob.data, (size_t)blob.bytes);
    if (got.bytes.failed) {
        wf_gathered_free(&got);
        return wf_fail_memory((size_t)blob.bytes);
    }
    got.blobs[0] = (weft_blob){got.bytes.data, blob.bytes};
    got.serial = (uint64_t)(context->rank + 1) << WF_SOLO_SHIFT |
                 (atomic_fetch_add(&context->solo_serial, 1) + 1);
    *out = got;
    return WEFT_OK;
}

weft_status wf_agree(weft_context *context, const int32_t *ranks, int32_t count, const char *label,
                     int64_t timeout_ns, weft_status status, weft_blob blob,
                     struct wf_gathered *out)
{
    char text[1600];
    struct wf_contribution mine = {.ranks = ranks,
                                   .count = count,
                                   .label = label,
                                   .timeout_ns = timeout_ns,
                                   .status = status,
                                   .text = text,
                                   .blob = blob};

    if (count == 1) return status != WEFT_OK ? status : agree_alone(context, blob, out);
    snprintf(text, sizeof text, "%s", status != WEFT_OK ? weft_last_error() : "");
    if (status != WEFT_OK) mine.blob = (weft_blob){"", 0};
    return wf_client_gather(context->client, &mine, out);
}
