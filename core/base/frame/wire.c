/* wire.c - bytes to frames and back.
 *
 * A header holds the payload's length (4 bytes), the type (2), a zero (2) and an id (8).  Input is
 * not trusted: a length only tells when a frame is complete, and memory grows with the bytes that
 * have arrived.  After the handshake every frame is sealed. */
#include "frame.h"

#include <string.h>

static void store(uint8_t *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t load(const uint8_t *from, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

static void put(struct wf_text *out, uint64_t value, size_t bytes)
{
    uint8_t raw[8];

    store(raw, value, bytes);
    wf_text_append(out, (const char *)raw, bytes);
}

/* Compute the tag of HEADER and, for the second tag, of PAYLOAD too. */
static void make_tag(const struct wf_seal *seal, const uint8_t *header, weft_blob payload,
                     uint8_t out[WF_FRAME_TAG])
{
    uint8_t number[8];
    weft_blob pieces[] = {{number, sizeof number}, {header, WF_FRAME_HEADER}, payload};

    store(number, seal->sequence, sizeof number);
    wf_hmac_sha256_pieces(seal->key, sizeof seal->key, pieces, WF_COUNT(pieces), out);
}

/* Where a frame's payload begins, after its header. */
static size_t payload_at(const struct wf_seal *seal)
{
    return WF_FRAME_HEADER + (seal->on ? WF_FRAME_TAG : 0);
}

/* A whole frame of BYTES of payload. */
static size_t frame_bytes(const struct wf_seal *seal, size_t bytes)
{
    return payload_at(seal) + bytes + (seal->on && bytes > 0 ? WF_FRAME_TAG : 0);
}

size_t wf_frame_begin(struct wf_text *out, const struct wf_seal *seal, uint16_t type, uint64_t id)
{
    static const char room[WF_FRAME_TAG];
    size_t begin = out->length;

    put(out, 0, 4);
    put(out, type, 4);
    put(out, id, 8);
    if (seal->on) wf_text_append(out, room, sizeof room);
    return begin;
}

void wf_frame_end(struct wf_text *out, struct wf_seal *seal, size_t begin)
{
    size_t bytes = out->length - begin - payload_at(seal);
    uint8_t *header, tag[WF_FRAME_TAG];

    if (out->failed) return;
    header = (uint8_t *)out->data + begin;
    store(header, bytes, 4);
    if (!seal->on) return;
    make_tag(seal, header, (weft_blob){"", 0}, header + WF_FRAME_HEADER);
    if (bytes > 0) {
        make_tag(seal, header, (weft_blob){header + payload_at(seal), bytes}, tag);
        wf_text_append(out, (const char *)tag, sizeof tag);
    }
    seal->sequence++;
}

void wf_put_u32(struct wf_text *out, uint32_t value)
{
    put(out, value, 4);
}

void wf_put_u64(struct wf_text *out, uint64_t value)
{
    put(out, value, 8);
}

void wf_put_blob(struct wf_text *out, const void *data, uint64_t bytes)
{
    put(out, bytes, 8);
    wf_text_append(out, data, (size_t)bytes);
}

void wf_put_string(struct wf_text *out, const char *text)
{
    wf_put_blob(out, text, strlen(text));
}

void wf_put_ranks(struct wf_text *out, const int32_t *ranks, int32_t count)
{
    wf_put_u32(out, (uint32_t)count);
    for (int32_t i = 0; i < count; i++)
        wf_put_u32(out, (uint32_t)ranks[i]);
}

struct wf_reader wf_frame_reader(const struct wf_frame *frame)
{
    return (struct wf_reader){frame->payload, frame->bytes, false};
}

static const uint8_t *take(struct wf_reader *reader, uint64_t bytes)
{
    const uint8_t *at = reader->data;

    if (reader->failed || bytes > reader->left) {
        reader->failed = true;
        return NULL;
    }
    reader->data += bytes;
    reader->left -= (size_t)bytes;
    return at;
}

uint32_t wf_take_u32(struct wf_reader *reader)
{
    const uint8_t *at = take(reader, 4);

    return at != NULL ? (uint32_t)load(at, 4) : 0;
}

uint64_t wf_take_u64(struct wf_reader *reader)
{
    const uint8_t *at = take(reader, 8);

    return at != NULL ? load(at, 8) : 0;
}

weft_blob wf_take_blob(struct wf_reader *reader)
{
    uint64_t bytes = wf_take_u64(reader);
    const uint8_t *at = take(reader, bytes);

    return at != NULL ? (weft_blob){at, bytes} : (weft_blob){"", 0};
}

#define KNOWN(name, value, text) case WEFT_##name:

weft_status wf_take_status(struct wf_reader *reader)
{
    int32_t value = (int32_t)wf_take_u32(reader);

    switch (value) {
        WEFT_STATUS_LIST(KNOWN) return (weft_status)value;
    default:
        reader->failed = true;
        return WEFT_ERR_INTERNAL;
    }
}

void wf_take_string(struct wf_reader *reader, char *out, size_t bytes)
{
    weft_blob blob = wf_take_blob(reader);
    const char *from = blob.data;
    size_t length = blob.bytes < bytes ? (size_t)blob.bytes : bytes - 1;

    if (length < blob.bytes) /* not inside a character */
        while (length > 0 && ((unsigned char)from[length] & 0xC0) == 0x80)
            length--;
    for (size_t i = 0; i < length; i++)
        out[i] = from[i] != '\0' ? from[i] : '?';
    out[length] = '\0';
    wf_text_clean_lines(out, length);
}

static weft_status check_tag(const struct wf_seal *seal, const uint8_t *header, weft_blob payload,
                             const uint8_t *tag)
{
    uint8_t want[WF_FRAME_TAG];

    make_tag(seal, header, payload, want);
    if (wf_secret_equal(want, tag, sizeof want)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "frame %llu of the connection failed authentication: it, or a frame "
                   "before it, was changed, repeated or lost on the network",
                   (unsigned long long)seal->sequence);
}

weft_status wf_frame_next(struct wf_inbox *inbox, struct wf_frame *out)
{
    const struct wf_seal *seal = &inbox->seal;
    size_t there = inbox->bytes.length - inbox->taken, payload = payload_at(seal);
    const uint8_t *at;
    uint64_t bytes, type;

    if (inbox->bytes.failed) return wf_fail(WEFT_ERR_NO_MEMORY, "out of memory for a frame");
    if (there < payload) return WEFT_IN_PROGRESS;
    at = (const uint8_t *)inbox->bytes.data + inbox->taken;
    if (seal->on && !inbox->checked)
        WF_TRY(check_tag(seal, at, (weft_blob){"", 0}, at + WF_FRAME_HEADER));
    inbox->checked = true;
    bytes = load(at, 4);
    type = load(at + 4, 4);
    if (bytes > (seal->on ? WF_FRAME_MAX : WF_FRAME_PLAIN) || type == 0 || type >= WF_FRAME_TYPES)
        return wf_fail(WEFT_ERR_PARSE, "not a frame: type %llu, %llu bytes",
                       (unsigned long long)type, (unsigned long long)bytes);
    if (there < frame_bytes(seal, (size_t)bytes)) return WEFT_IN_PROGRESS;
    if (seal->on && bytes > 0)
        WF_TRY(check_tag(seal, at, (weft_blob){at + payload, bytes}, at + payload + bytes));
    *out = (struct wf_frame){(uint16_t)type, load(at + 8, 8), at + payload, (size_t)bytes};
    return WEFT_OK;
}

void wf_frame_drop(struct wf_inbox *inbox, const struct wf_frame *frame)
{
    size_t left;

    inbox->taken += frame_bytes(&inbox->seal, frame->bytes);
    inbox->checked = false;
    inbox->seal.sequence++;
    left = inbox->bytes.length - inbox->taken;
    if (left > inbox->taken) return;
    if (left > 0) {
        memmove(inbox->bytes.data, inbox->bytes.data + inbox->taken, left);
        inbox->bytes.length = left;
        inbox->taken = 0;
        return;
    }
    /* Empty: keep a small buffer, give a large one back. */
    if (inbox->bytes.capacity > 65536) {
        wf_text_free(&inbox->bytes);
    } else {
        inbox->bytes.length = 0;
    }
    inbox->taken = 0;
}

void wf_inbox_free(struct wf_inbox *inbox)
{
    wf_text_free(&inbox->bytes);
    inbox->taken = 0;
}
