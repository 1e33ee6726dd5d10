/* contribution.c - contributions to gathers and the answers to them, as frames have them. */
#include "client.h"

void wf_contribution_put(struct wf_text *out, const struct wf_contribution *contribution)
{
    wf_put_u32(out, (uint32_t)contribution->status);
    wf_put_u64(out, contribution->comm);
    wf_put_u64(out, (uint64_t)contribution->timeout_ns);
    wf_put_string(out, contribution->label);
    wf_put_string(out, contribution->text != NULL ? contribution->text : "");
    wf_put_u32(out, (uint32_t)contribution->count);
    for (int32_t i = 0; i < contribution->count; i++)
        wf_put_u32(out, (uint32_t)contribution->ranks[i]);
    wf_put_blob(out, contribution->blob.data, contribution->blob.bytes);
}

weft_status wf_contribution_take(struct wf_reader *reader, int32_t *ranks, int32_t most,
                                 char *label, size_t label_bytes, char *text, size_t text_bytes,
                                 struct wf_contribution *out)
{
    struct wf_contribution taken = {.ranks = ranks, .label = label, .text = text};

    taken.status = wf_take_status(reader);
    if (reader->failed) return wf_fail(WEFT_ERR_PARSE, "a contribution has an unknown status");
    taken.comm = wf_take_u64(reader);
    taken.timeout_ns = (int64_t)wf_take_u64(reader);
    wf_take_string(reader, label, label_bytes);
    wf_take_string(reader, text, text_bytes);
    taken.count = (int32_t)wf_take_u32(reader);
    if (taken.count < 1 || taken.count > most)
        return wf_fail(WEFT_ERR_PARSE, "a list has %d ranks; expected 1 to %d", taken.count, most);
    for (int32_t i = 0; i < taken.count; i++)
        ranks[i] = (int32_t)wf_take_u32(reader);
    taken.blob = wf_take_blob(reader);
    if (reader->failed || reader->left > 0)
        return wf_fail(WEFT_ERR_PARSE, "a contribution has a wrong length");
    *out = taken;
    return WEFT_OK;
}

weft_status wf_answer_check(const struct wf_frame *frame, int32_t count)
{
    struct wf_reader reader = wf_frame_reader(frame);
    weft_status status = wf_take_status(&reader);
    int32_t found;

    if (reader.failed || status == WEFT_IN_PROGRESS)
        return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous sent an answer with an unknown status");
    if (status != WEFT_OK) {
        (void)wf_take_blob(&reader); /* the text */
    } else {
        (void)wf_take_u64(&reader);
        found = (int32_t)wf_take_u32(&reader);
        if (!reader.failed && found != count)
            return wf_fail(WEFT_ERR_INTERNAL,
                           "the rendezvous sent an answer of %d ranks to a request of %d ranks",
                           found, count);
        for (int32_t i = 0; i < count && !reader.failed; i++)
            (void)wf_take_blob(&reader);
    }
    if (!reader.failed) return WEFT_OK;
    return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous sent an answer that ends too early");
}

weft_status wf_gathered_read(struct wf_text *payload, weft_blob *blobs, struct wf_gathered *out)
{
    struct wf_reader reader = {(const uint8_t *)payload->data, payload->length, false};
    weft_status status = wf_take_status(&reader);
    struct wf_gathered got = {0};
    char text[2000];

    if (reader.failed || status == WEFT_IN_PROGRESS)
        return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous sent an answer with an unknown status");
    if (status != WEFT_OK) {
        wf_take_string(&reader, text, sizeof text);
        return wf_fail(status, "%s", text);
    }
    got.serial = wf_take_u64(&reader);
    got.count = (int32_t)wf_take_u32(&reader);
    if (reader.failed || got.count < 0 || (size_t)got.count > reader.left / 8)
        return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous sent an answer that ends too early");
    got.blobs = blobs != NULL ? blobs : wf_calloc((size_t)got.count, sizeof *got.blobs);
    if (got.blobs == NULL) return wf_fail_memory((size_t)got.count * sizeof *got.blobs);
    for (int32_t i = 0; i < got.count; i++)
        got.blobs[i] = wf_take_blob(&reader);
    if (reader.failed) {
        if (blobs == NULL) wf_free(got.blobs);
        return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous sent an answer that ends too early");
    }
    got.bytes = *payload;
    *payload = (struct wf_text){0};
    *out = got;
    return WEFT_OK;
}

void wf_gathered_free(struct wf_gathered *gathered)
{
    wf_free(gathered->blobs);
    wf_text_free(&gathered->bytes);
    *gathered = (struct wf_gathered){0};
}
