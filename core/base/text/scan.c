/* scan.c - reading small grammars by hand, with exact positions for errors. */
#include "base/base.h"
#undef wf_scan_fail
#undef wf_scan_refuse

#include <stdio.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

char wf_scan_peek(const struct wf_scan *scan)
{
    return scan->text[scan->at];
}

void wf_scan_space(struct wf_scan *scan)
{
    while (wf_scan_peek(scan) == ' ' || wf_scan_peek(scan) == '\t')
        scan->at++;
}

bool wf_scan_char(struct wf_scan *scan, char c)
{
    if (wf_scan_peek(scan) != c || c == '\0') return false;
    scan->at++;
    return true;
}

bool wf_scan_word(struct wf_scan *scan, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(scan->text + scan->at, word, length) != 0) return false;
    scan->at += length;
    return true;
}

bool wf_scan_end(const struct wf_scan *scan)
{
    return wf_scan_peek(scan) == '\0';
}

bool wf_scan_name(struct wf_scan *scan, const char **start, size_t *length)
{
    size_t first = scan->at;

    if (!is_letter(wf_scan_peek(scan))) return false;
    while (is_letter(wf_scan_peek(scan)) || is_digit(wf_scan_peek(scan)))
        scan->at++;
    *start = scan->text + first;
    *length = scan->at - first;
    return true;
}

weft_status wf_scan_int(struct wf_scan *scan, const char *what, int64_t *out)
{
    struct wf_scan ahead = *scan;
    int64_t value = 0;

    if (!is_digit(wf_scan_peek(scan))) return wf_scan_fail(scan, NULL, "expected %s", what);
    for (; is_digit(wf_scan_peek(&ahead)); ahead.at++)
        if (!wf_mul_i64(value, 10, &value) ||
            !wf_add_i64(value, wf_scan_peek(&ahead) - '0', &value))
            return wf_scan_refuse(scan, NULL, "%s is larger than 2^63 - 1", what);
    *scan = ahead;
    *out = value;
    return WEFT_OK;
}

bool wf_scan_next_line(struct wf_scan *scan)
{
    for (;;) {
        wf_scan_space(scan);
        if (wf_scan_peek(scan) == '#')
            while (!wf_scan_end(scan) && wf_scan_peek(scan) != '\n')
                scan->at++;
        wf_scan_char(scan, '\r');
        if (!wf_scan_char(scan, '\n')) return !wf_scan_end(scan);
    }
}

struct wf_passage wf_scan_field(struct wf_scan *scan)
{
    struct wf_passage field;

    wf_scan_space(scan);
    field = (struct wf_passage){scan->text + scan->at, 0};
    if (wf_scan_peek(scan) == '#') return field;
    while (!wf_is_blank(field.start[field.length]))
        field.length++;
    scan->at += field.length;
    return field;
}

struct wf_passage wf_scan_rest(struct wf_scan *scan)
{
    struct wf_passage rest;

    wf_scan_space(scan);
    rest = (struct wf_passage){scan->text + scan->at, 0};
    for (char c = wf_scan_peek(scan); c != '\0' && c != '\n' && c != '#'; c = wf_scan_peek(scan)) {
        scan->at++;
        if (!wf_is_blank(c)) rest.length = (size_t)(scan->text + scan->at - rest.start);
    }
    return rest;
}

uint32_t wf_scan_line(const struct wf_scan *scan)
{
    uint32_t line = 1;

    for (size_t i = 0; i < scan->at; i++)
        line += scan->text[i] == '\n';
    return line;
}

/* The line SCAN is at, as it can be printed; *FIRST is where it begins.  Returns its number. */
static size_t quote_line(const struct wf_scan *scan, char *out, size_t bytes, size_t *first)
{
    size_t line = 1, begin = 0, length = 0;

    for (size_t i = 0; i < scan->at; i++)
        if (scan->text[i] == '\n') {
            line++;
            begin = i + 1;
        }
    for (char c; length + 1 < bytes; length++) {
        c = scan->text[begin + length];
        if (c == '\0' || c == '\n' || c == '\r') break;
        out[length] = c;
    }
    out[length] = '\0';
    wf_text_clean(out, length);
    *first = begin;
    return line;
}

static weft_status fail_at(const struct wf_scan *scan, const char *kind, const char *found,
                           const char *format, va_list args)
{
    char reason[512], quoted[201], where[32] = "";
    size_t first, line = quote_line(scan, quoted, sizeof quoted, &first);

    if (line > 1) snprintf(where, sizeof where, "line %zu ", line);
    kit_printv(reason, sizeof reason, format, args);
    return wf_fail(WEFT_ERR_PARSE, "%s%s%s\"%s\", position %zu: %s%s", kind != NULL ? kind : "",
                   kind != NULL ? " " : "", where, quoted, scan->at - first + 1, reason, found);
}

weft_status wf_scan_refuse(const struct wf_scan *scan, const char *kind, const char *format, ...)
{
    va_list args;
    weft_status status;

    va_start(args, format);
    status = fail_at(scan, kind, "", format, args);
    va_end(args);
    return status;
}

weft_status wf_scan_fail(const struct wf_scan *scan, const char *kind, const char *format, ...)
{
    char found[32];
    va_list args;
    weft_status status;
    char next = wf_scan_peek(scan);

    if (next == '\0')
        snprintf(found, sizeof found, ", found the end");
    else if (next == '\n' || next == '\r')
        snprintf(found, sizeof found, ", found the end of the line");
    else if ((unsigned char)next < 0x20 || (unsigned char)next >= 0x7f)
        snprintf(found, sizeof found, ", found byte 0x%02x", (unsigned char)next);
    else
        snprintf(found, sizeof found, ", found '%c'", next);
    va_start(args, format);
    status = fail_at(scan, kind, found, format, args);
    va_end(args);
    return status;
}
