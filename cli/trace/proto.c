/* proto.c - fields of protocol buffers. */
#include "trace/proto.h"

#include "base/base.h"

#include <string.h>

static bool take_varint(struct proto *message, uint64_t *out)
{
    uint64_t value = 0;

    for (int i = 0; i < 10 && message->at < message->bytes; i++) {
        uint8_t byte = message->data[message->at++];

        value |= (uint64_t)(byte & 127) << 7 * i;
        if (byte < 128) {
            *out = value;
            return i < 9 || byte < 2;
        }
    }
    return false;
}

static bool take_fixed(struct proto *message, size_t bytes, uint64_t *out)
{
    if (message->bytes - message->at < bytes) return false;
    *out = 0;
    for (size_t i = 0; i < bytes; i++)
        *out |= (uint64_t)message->data[message->at + i] << 8 * i;
    message->at += bytes;
    return true;
}

static bool take_body(struct proto *message, struct proto *out)
{
    uint64_t bytes;

    if (!take_varint(message, &bytes) || bytes > message->bytes - message->at) return false;
    *out = (struct proto){message->data + message->at, (size_t)bytes, 0};
    message->at += (size_t)bytes;
    return true;
}

static bool take_field(struct proto *message, struct proto_field *out)
{
    uint64_t key;

    if (!take_varint(message, &key) || key >> 3 == 0 || key >> 3 > 536870911) return false;
    out->number = (uint32_t)(key >> 3);
    out->wire = (uint32_t)(key & 7);
    switch (out->wire) {
    case PROTO_NUMBER:
        return take_varint(message, &out->value);
    case PROTO_FIXED64:
        return take_fixed(message, 8, &out->value);
    case PROTO_FIXED32:
        return take_fixed(message, 4, &out->value);
    case PROTO_BYTES:
        return take_body(message, &out->body);
    default:
        return false;
    }
}

int proto_next(struct proto *message, struct proto_field *out)
{
    size_t from = message->at;

    *out = (struct proto_field){.from = from};
    if (from == message->bytes) return 0;
    if (take_field(message, out)) return 1;
    message->at = from;
    return -1;
}

bool proto_is(const struct proto *text, const char *wanted)
{
    return text->bytes == strlen(wanted) && memcmp(text->data, wanted, text->bytes) == 0;
}

void proto_show(const struct proto *text, char *out, size_t bytes)
{
    size_t length = text->bytes < bytes - 1 ? text->bytes : bytes - 1;

    if (length > 0) memcpy(out, text->data, length);
    out[length] = '\0';
    wf_text_clean(out, length);
}
