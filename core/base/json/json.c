/* json.c - JSON, written into a text, with commas and escapes. */
#include "base/base.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* File names and vendors' texts may not be UTF-8: invalid bytes become U+FFFD.  Characters that a
 * terminal acts on are escaped. */
static void add_quoted(struct wf_text *out, const char *value)
{
    const char *at = value;

    wf_text_char(out, '"');
    while (*at != '\0') {
        size_t length = wf_utf8_length(at);
        uint32_t control = length > 0 ? wf_utf8_control(at, length) : 0xfffd;

        if (*at == '"' || *at == '\\')
            wf_text_add(out, "\\%c", *at);
        else if (*at == '\n')
            wf_text_append(out, "\\n", 2);
        else if (control != 0)
            wf_text_add(out, "\\u%04x", control);
        else
            wf_text_append(out, at, length);
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

    if (!isfinite(value)) {
        wf_json_null(json, key);
        return;
    }
    begin_member(json, key);
    kit_print(digits, sizeof digits, "%.15g", value);
    if (kit_read_double(digits, NULL) != value) kit_print(digits, sizeof digits, "%.17g", value);
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
