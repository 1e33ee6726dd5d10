/* encode.c - values for either encoding. */
#include "dump.h"

#include <string.h>

static void next_value(struct wf_encoder *encoder)
{
    encoder->encoding->separate(encoder->writer, encoder->is_first, encoder->after_key);
    encoder->is_first = encoder->after_key = false;
}

void wf_emit_open(struct wf_encoder *encoder, enum wf_bracket bracket)
{
    const struct wf_encoding *encoding = encoder->encoding;

    next_value(encoder);
    (bracket == WF_MAP    ? encoding->open_map
     : bracket == WF_LIST ? encoding->open_list
                          : encoding->open_tuple)(encoder->writer);
    encoder->is_first = true;
}

void wf_emit_close(struct wf_encoder *encoder, enum wf_bracket bracket)
{
    const struct wf_encoding *encoding = encoder->encoding;

    (bracket == WF_MAP    ? encoding->close_map
     : bracket == WF_LIST ? encoding->close_list
                          : encoding->close_tuple)(encoder->writer);
    encoder->is_first = false;
}

/* Replaced bytes do not change the length. */
static void put_valid(struct wf_encoder *encoder, const char *text)
{
    while (*text != '\0') {
        size_t length = wf_utf8_length(text);

        encoder->encoding->put_text(encoder->writer, length > 0 ? text : "?",
                                    length > 0 ? length : 1);
        text += length > 0 ? length : 1;
    }
}

void wf_emit_text(struct wf_encoder *encoder, const char *text)
{
    next_value(encoder);
    encoder->encoding->open_text(encoder->writer, strlen(text));
    put_valid(encoder, text);
    encoder->encoding->close_text(encoder->writer);
}

void wf_emit_key(struct wf_encoder *encoder, const char *key)
{
    wf_emit_text(encoder, key);
    encoder->after_key = true;
}

void wf_emit_number(struct wf_encoder *encoder, int64_t value)
{
    next_value(encoder);
    encoder->encoding->number(encoder->writer, value);
}

void wf_emit_milliseconds(struct wf_encoder *encoder, uint64_t ns)
{
    next_value(encoder);
    encoder->encoding->milliseconds(encoder->writer, ns);
}

void wf_emit_truth(struct wf_encoder *encoder, bool value)
{
    next_value(encoder);
    encoder->encoding->truth(encoder->writer, value);
}

void wf_emit_none(struct wf_encoder *encoder)
{
    next_value(encoder);
    encoder->encoding->none(encoder->writer);
}

void wf_emit_ranks(struct wf_encoder *encoder, const char *ranks)
{
    const struct wf_encoding *encoding = encoder->encoding;
    size_t length = strlen("[]"), count = 0;
    char digits[WF_DECIMAL];
    int64_t rank, left = 0;

    for (const char *at = ranks; wf_ranks_next(&at, &rank, &left); count++)
        length += wf_print_decimal(rank, digits) + (count > 0 ? strlen(", ") : 0);
    next_value(encoder);
    encoding->open_text(encoder->writer, length);
    encoding->put_text(encoder->writer, "[", 1);
    count = 0;
    for (const char *at = ranks; wf_ranks_next(&at, &rank, &left); count++) {
        if (count > 0) encoding->put_text(encoder->writer, ", ", 2);
        encoding->put_text(encoder->writer, digits, wf_print_decimal(rank, digits));
    }
    encoding->put_text(encoder->writer, "]", 1);
    encoding->close_text(encoder->writer);
}

void wf_emit_number_at(struct wf_encoder *encoder, const char *key, int64_t number)
{
    wf_emit_key(encoder, key);
    wf_emit_number(encoder, number);
}

void wf_emit_text_at(struct wf_encoder *encoder, const char *key, const char *text)
{
    wf_emit_key(encoder, key);
    wf_emit_text(encoder, text);
}

void wf_emit_truth_at(struct wf_encoder *encoder, const char *key, bool value)
{
    wf_emit_key(encoder, key);
    wf_emit_truth(encoder, value);
}
