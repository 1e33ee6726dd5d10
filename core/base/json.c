/* json.c - JSON, written into a text, with commas and escapes. */
#include "base.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 sequence at BYTES: 1 to 4, or 0 where it is malformed, overlong, a
 * surrogate, or beyond U+10FFFF. */
static size_t sequence_length(const unsigned char *bytes)
{
    unsigned char first = bytes[0], low = 0x80, high = 0xbf;
    size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    if (first >= 0x80 && (first < 0xc2 || first > 0xf4)) return 0;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
    for (size_t i = 1; i < length; i++, low = 0x80, high = 0xbf)
        if (bytes[i] < low || bytes[i] > high) return 0;
    return length;
}

/* File names and vendors' texts may not be UTF-8: invalid bytes become U+FFFD. */
static void add_quoted(struct wf_text *out, const char *value)
{
    const unsigned char *at = (const unsigned char *)value;

    wf_text_char(out, '"');
    while (*at != '\0') {
        size_t length = sequence_length(at);
        if (*at == '"' || *at == '\\')
            wf_text_add(out, "\\%c", *at);
        else if (*at == '\n')
            wf_text_append(out, "\\n", 2);
        else if (*at < 0x20 || *at == 0x7f)
            wf_text_add(out, "\\u%04x", *at);
        else if (length == 0)
            wf_text_append(out, "\\ufffd", 6);
        else
            wf_text_append(out, (const char *)at, length);
        at += length != 0 ? length : 1;
    }
    wf_text_char(out, '"');
}

static void begin_member(struct wf_json *json, const char *key)
{
    uint64_t bit = UINT64_C(1) << json->depth;

    if (json->has_member & bit) wf_text_char(json->out, ',');
    json->has_member |= bit;
    if (key == NULL) return;
    add_quoted(json->out, key);
    wf_text_char(json->out, ':');
}

void wf_json_begin(struct wf_json *json, const char *key, char bracket)
{
    begin_member(json, key);
    wf_text_char(json->out, bracket);
    json->depth++;
    assert(json->depth < 64 && "a bit of has_member per depth");
    json->has_member &= ~(UINT64_C(1) << json->depth);
}

void wf_json_end(struct wf_json *json, char bracket)
{
    json->depth--;
    wf_text_char(json->out, bracket);
}

void wf_json_string(struct wf_json *json, const char *key, const char *value)
{
    if (value == NULL) {
        wf_json_null(json, key);
        return;
    }
    begin_member(json, key);
    add_quoted(json->out, value);
}

void wf_json_int(struct wf_json *json, const char *key, int64_t value)
{
    begin_member(json, key);
    wf_text_add(json->out, "%" PRId64, value);
}

void wf_json_uint(struct wf_json *json, const char *key, uint64_t value)
{
    begin_member(json, key);
    wf_text_add(json->out, "%" PRIu64, value);
}

void wf_json_real(struct wf_json *json, const char *key, double value)
{
    char digits[40];
    char *comma;

    if (!isfinite(value)) {
        wf_json_null(json, key);
        return;
    }
    begin_member(json, key);
    snprintf(digits, sizeof digits, "%.15g", value);
    if (strtod(digits, NULL) != value) snprintf(digits, sizeof digits, "%.17g", value);
    comma = strchr(digits, ','); /* the point of some locales */
    if (comma != NULL) *comma = '.';
    wf_text_append(json->out, digits, strlen(digits));
}

void wf_json_bool(struct wf_json *json, const char *key, bool value)
{
    begin_member(json, key);
    wf_text_add(json->out, "%s", value ? "true" : "false");
}

void wf_json_null(struct wf_json *json, const char *key)
{
    begin_member(json, key);
    wf_text_append(json->out, "null", 4);
}
