/* utf8.c - characters of texts that others have written, which may have any bytes. */
#include "base/base.h"

#include <string.h>

static bool is_tail(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

size_t wf_utf8_length(const char *text)
{
    unsigned char first = (unsigned char)text[0], second;

    if (first < 0x80) return first != 0;
    second = (unsigned char)text[1];
    if (first < 0xC2 || first > 0xF4 || !is_tail(text[1])) return 0;
    if (first < 0xE0) return 2;
    if (!is_tail(text[2])) return 0;
    if (first < 0xF0) /* not too long a form, not a surrogate */
        return (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ? 0 : 3;
    if (!is_tail(text[3])) return 0;
    return (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F) ? 0 : 4;
}

uint32_t wf_utf8_control(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    uint32_t code = at[0];

    if (length == 2) code = (at[0] & 31u) << 6 | (at[1] & 63u);
    if (length == 3) code = (at[0] & 15u) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u);
    if (length == 4) return 0;
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return code;
    if (code == 0x061c || code == 0x200e || code == 0x200f) return code;
    return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ? code : 0;
}

void wf_text_clean(char *text, size_t bytes)
{
    size_t length;

    for (size_t i = 0; i < bytes; i += length) {
        length = wf_utf8_length(text + i);
        if (length > 0 && wf_utf8_control(text + i, length) == 0) continue;
        if (length == 0) length = 1;
        if (text[i] != '\0') memset(text + i, '?', length);
    }
}

void wf_text_clean_lines(char *text, size_t bytes)
{
    size_t length;

    for (size_t at = 0; at < bytes; at += length + 1) {
        length = strcspn(text + at, "\n");
        wf_text_clean(text + at, length);
    }
}
