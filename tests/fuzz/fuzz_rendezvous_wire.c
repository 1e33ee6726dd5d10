/* Any bytes that arrive at the rendezvous, in two pieces, are frames or are refused.  Nothing is
 * read past the end of a frame. */
#include "fuzz.h"

#include "rendezvous/rendezvous.h"

#include <string.h>

static void read_payload(const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);
    char text[24];

    while (!reader.failed && reader.left > 0) {
        weft_blob blob;
        (void)wf_take_u32(&reader);
        (void)wf_take_u64(&reader);
        blob = wf_take_blob(&reader);
        FUZZ_ASSERT(blob.bytes == 0 ||
                    ((const uint8_t *)blob.data >= frame->payload &&
                     (const uint8_t *)blob.data + blob.bytes <= frame->payload + frame->bytes));
        memset(text, 'x', sizeof text);
        wf_take_string(&reader, text, sizeof text);
        FUZZ_ASSERT(memchr(text, '\0', sizeof text) != NULL);
    }
}

static weft_status read_frames(struct wf_inbox *inbox)
{
    struct wf_frame frame;
    weft_status status;

    while ((status = wf_frame_next(inbox, &frame)) == WEFT_OK) {
        FUZZ_ASSERT(frame.bytes <= WF_FRAME_MAX);
        read_payload(&frame);
        wf_frame_drop(inbox, &frame);
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wf_inbox inbox = {0};
    size_t first = size > 0 ? data[0] % size : 0;
    weft_status status;

    wf_text_append(&inbox.bytes, (const char *)data, first);
    status = read_frames(&inbox);
    if (status == WEFT_IN_PROGRESS) {
        wf_text_append(&inbox.bytes, (const char *)data + first, size - first);
        status = read_frames(&inbox);
    }
    FUZZ_ASSERT(status == WEFT_IN_PROGRESS || status == WEFT_ERR_PARSE);
    wf_inbox_free(&inbox);
    return 0;
}
