/* json.c - JSON, written into a text; commas and escapes are its own business. */
#include "base.h"

#include <inttypes.h>
#include <math.h>

static void quoted(struct wf_text *out, const char *value)
{
    wf_text_char(out, '"');
    for (const char *c = value; *c != '\0'; c++) {
        unsigned char u = (unsigned char)*c;
        if (u == '"' || u == '\\')
            wf_text_add(out, "\\%c", u);
        else if (u == '\n')
            wf_text_append(out, "\\n", 2);
        else if (u < 0x20 || u == 0x7f)
            wf_text_add(out, "\\u%04x", u);
        else
            wf_text_char(out, *c);
    }
    wf_text_char(out, '"');
}

static void lead(struct wf_json *json, const char *key)
{
    uint64_t bit = UINT64_C(1) << json->depth;

    if (json->has_member & bit) wf_text_char(json->out, ',');
    json->has_member |= bit;
    if (key == NULL) return;
    quoted(json->out, key);
    wf_text_char(json->out, ':');
}

void wf_json_begin(struct wf_json *json, const char *key, char bracket)
{
    lead(json, key);
    wf_text_char(json->out, bracket);
    json->depth++;
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
    lead(json, key);
    quoted(json->out, value);
}

void wf_json_int(struct wf_json *json, const char *key, int64_t value)
{
    lead(json, key);
    wf_text_add(json->out, "%" PRId64, value);
}

void wf_json_uint(struct wf_json *json, const char *key, uint64_t value)
{
    lead(json, key);
    wf_text_add(json->out, "%" PRIu64, value);
}

void wf_json_real(struct wf_json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        wf_json_null(json, key);
        return;
    }
    lead(json, key);
    wf_text_add(json->out, "%.6g", value);
}

void wf_json_bool(struct wf_json *json, const char *key, bool value)
{
    lead(json, key);
    wf_text_add(json->out, "%s", value ? "true" : "false");
}

void wf_json_null(struct wf_json *json, const char *key)
{
    lead(json, key);
    wf_text_append(json->out, "null", 4);
}
