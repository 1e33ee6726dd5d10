/* protobuf.h - the wire format of protocol buffers, written to memory that has room.
 *
 * Each function returns the position behind what it wrote.  A length is written as two bytes, which
 * is valid for every length below 2^14: it is known after the message. */
#ifndef WEFT_TRACE_EXPORT_PROTOBUF_H
#define WEFT_TRACE_EXPORT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WF_PROTO_LENGTH 2

static inline uint8_t *wf_put_varint(uint8_t *at, uint64_t value)
{
    while (value >= 128) {
        *at++ = (uint8_t)(value | 128);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Field NUMBER with a whole number. */
static inline __attribute__((always_inline)) uint8_t *wf_put_number(uint8_t *at, uint32_t number,
                                                                    uint64_t value)
{
    return wf_put_varint(wf_put_varint(at, (uint64_t)number << 3), value);
}

static inline __attribute__((always_inline)) uint8_t *wf_put_fixed(uint8_t *at, uint32_t number,
                                                                   uint64_t value)
{
    at = wf_put_varint(at, (uint64_t)number << 3 | 1);
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
    return at + 8;
}

static inline uint8_t *wf_put_chars(uint8_t *at, uint32_t number, const char *text, size_t bytes)
{
    at = wf_put_varint(wf_put_varint(at, (uint64_t)number << 3 | 2), bytes);
    memcpy(at, text, bytes);
    return at + bytes;
}

static inline uint8_t *wf_put_text(uint8_t *at, uint32_t number, const char *text)
{
    return wf_put_chars(at, number, text, strlen(text));
}

/* Begin field NUMBER, a message.  *BODY is where its fields begin. */
static inline __attribute__((always_inline)) uint8_t *wf_put_begin(uint8_t *at, uint32_t number,
                                                                   uint8_t **body)
{
    at = wf_put_varint(at, (uint64_t)number << 3 | 2) + WF_PROTO_LENGTH;
    *body = at;
    return at;
}

/* The message that began at BODY ends at AT. */
static inline void wf_put_end(uint8_t *body, const uint8_t *at)
{
    size_t bytes = (size_t)(at - body);

    body[-2] = (uint8_t)(bytes | 128);
    body[-1] = (uint8_t)(bytes >> 7);
}

#endif
