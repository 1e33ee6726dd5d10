/* json_reader.h - reads JSON (RFC 8259) as a stream of events.
 *
 *     struct wf_json_reader reader;
 *     wf_json_reader_begin(&reader, "model.safetensors.index.json", bytes, count);
 *     while ((status = wf_json_next(&reader, &event)) == WEFT_OK && event != WF_EVENT_END) ...
 *     wf_json_reader_end(&reader);
 *
 * Input is not trusted.  Memory is bounded by the longest string, and by 16 bytes for each key of
 * the open objects.  The reader refuses: more than WF_JSON_DEPTH nested values; a string or number
 * that is too long; a key that occurs twice in an object; more than WF_JSON_KEYS keys in the open
 * objects; bytes that are not UTF-8; half a surrogate pair; a NUL character in a string; anything
 * but blanks after the value.  An error names the document and the byte, counted from 1.  After an
 * error, every further event is the same error. */
#ifndef WEFT_BASE_JSON_READER_H
#define WEFT_BASE_JSON_READER_H

#include "base/base.h"

#define WF_JSON_DEPTH  32
#define WF_JSON_KEYS   (UINT32_C(1) << 22)
#define WF_JSON_DIGITS 100 /* bytes of a number */

enum wf_json_event {
    WF_EVENT_END, /* the document is complete */
    WF_EVENT_OBJECT,
    WF_EVENT_OBJECT_END,
    WF_EVENT_ARRAY,
    WF_EVENT_ARRAY_END,
    WF_EVENT_KEY,    /* in `text` */
    WF_EVENT_STRING, /* in `text` */
    WF_EVENT_NUMBER, /* its digits in `text` */
    WF_EVENT_TRUE,
    WF_EVENT_FALSE,
    WF_EVENT_NULL
};

/* Writes up to CAPACITY bytes of the document to BUFFER and their number to *COUNT; 0 at the end.
 */
typedef weft_status wf_json_fill(void *source, char *buffer, size_t capacity, size_t *count);

struct wf_json_key {
    uint64_t hash, at;
};

struct wf_json_reader {
    struct wf_text text; /* of the last KEY, STRING or NUMBER; valid until the next event */
    uint64_t at;         /* offset of the last event's first byte */
    size_t longest;      /* bytes of a string; the caller may lower it */
    /* private */
    const char *what;
    wf_json_fill *fill;
    void *source;
    const char *next, *end; /* bytes of the window that are not read yet */
    const char *window;
    uint64_t before; /* offset of the window */
    uint32_t depth, state;
    uint64_t is_object; /* bit per depth */
    weft_status status;
    struct wf_json_key *keys; /* of the open objects, outer ones first */
    size_t key_count, key_capacity;
    size_t first_key[WF_JSON_DEPTH + 1];
    char buffer[4096];
};

/* Read COUNT bytes at BYTES, which are borrowed, as is WHAT, the name of the document. */
void wf_json_reader_begin(struct wf_json_reader *reader, const char *what, const char *bytes,
                          size_t count);
/* Read what FILL(SOURCE, ...) writes. */
void wf_json_reader_stream(struct wf_json_reader *reader, const char *what, wf_json_fill *fill,
                           void *source);
void wf_json_reader_end(struct wf_json_reader *reader);

weft_status wf_json_next(struct wf_json_reader *reader, enum wf_json_event *event) WF_NODISCARD;
/* The next event must be WANTED. */
weft_status wf_json_expect(struct wf_json_reader *reader, enum wf_json_event wanted) WF_NODISCARD;
/* Pass over the next value, with all that it contains. */
weft_status wf_json_skip(struct wf_json_reader *reader) WF_NODISCARD;
/* The next event must be a number from 0 to 2^63 - 1 without point or exponent. */
weft_status wf_json_read_int(struct wf_json_reader *reader, int64_t *out) WF_NODISCARD;
/* The next value must be an array of at most CAPACITY such numbers. */
weft_status wf_json_read_ints(struct wf_json_reader *reader, size_t capacity, int64_t *out,
                              size_t *count) WF_NODISCARD;

/* WEFT_ERR_PARSE `WHAT, byte 12: ...` at the last event. */
weft_status wf_json_refuse(struct wf_json_reader *reader, const char *format, ...) WF_PRINTF(2, 3);
#ifdef __clang_analyzer__
#define wf_json_refuse(reader, ...) (wf_json_refuse(reader, __VA_ARGS__), WEFT_ERR_PARSE)
#endif

#endif
