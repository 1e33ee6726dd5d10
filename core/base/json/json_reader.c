/* json_reader.c - see json_reader.h. */
#include "json_reader.h"
#undef wf_json_refuse

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* States: the tokens that may come next. */
enum { VALUE, VALUE_OR_END, KEY, KEY_OR_END, COLON, COMMA_OR_END, NOTHING };

void wf_json_reader_begin(struct wf_json_reader *reader, const char *what, const char *bytes,
                          size_t count)
{
    memset(reader, 0, offsetof(struct wf_json_reader, buffer));
    reader->what = what;
    reader->longest = SIZE_MAX / 2;
    reader->window = reader->next = bytes;
    reader->end = count > 0 ? bytes + count : bytes;
}

void wf_json_reader_stream(struct wf_json_reader *reader, const char *what, wf_json_fill *fill,
                           void *source)
{
    wf_json_reader_begin(reader, what, reader->buffer, 0);
    reader->fill = fill;
    reader->source = source;
}

void wf_json_reader_end(struct wf_json_reader *reader)
{
    wf_text_free(&reader->text);
    wf_free(reader->keys);
    reader->keys = NULL;
}

static uint64_t position(const struct wf_json_reader *reader)
{
    return reader->before + (uint64_t)(reader->next - reader->window);
}

weft_status wf_json_refuse(struct wf_json_reader *reader, const char *format, ...)
{
    char reason[400];

    KIT_PRINT_REST(reason, format);
    return reader->status = wf_fail(WEFT_ERR_PARSE, "%s, byte %" PRIu64 ": %s", reader->what,
                                    reader->at + 1, reason);
}

/* ---- bytes ---- */

/* The next byte, which stays; -1 at the end, or if the source failed (status). */
static int peek(struct wf_json_reader *reader)
{
    size_t count = 0;

    if (reader->next < reader->end) return (unsigned char)*reader->next;
    if (reader->fill == NULL || reader->status != WEFT_OK) return -1;
    reader->before = position(reader);
    reader->window = reader->next = reader->end = reader->buffer;
    reader->status = reader->fill(reader->source, reader->buffer, sizeof reader->buffer, &count);
    if (reader->status != WEFT_OK) return -1;
    reader->end = reader->buffer + count;
    return count > 0 ? (unsigned char)*reader->next : -1;
}

static int take(struct wf_json_reader *reader)
{
    int byte = peek(reader);

    if (byte >= 0) reader->next++;
    return byte;
}

/* The byte BYTE is not what may stand here. */
static weft_status refuse_byte(struct wf_json_reader *reader, int byte, const char *wanted)
{
    if (reader->status != WEFT_OK) return reader->status;
    reader->at = position(reader);
    if (byte < 0) return wf_json_refuse(reader, "expected %s, found the end", wanted);
    if (byte < 0x20 || byte >= 0x7f)
        return wf_json_refuse(reader, "expected %s, found byte 0x%02x", wanted, byte);
    return wf_json_refuse(reader, "expected %s, found '%c'", wanted, byte);
}

static void skip_blanks(struct wf_json_reader *reader)
{
    for (int byte = peek(reader); byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
         byte = peek(reader))
        reader->next++;
}

/* ---- strings ---- */

static weft_status read_hex(struct wf_json_reader *reader, uint32_t *out)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++) {
        int byte = peek(reader);
        int digit = byte >= '0' && byte <= '9'   ? byte - '0'
                    : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
                    : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                                 : -1;
        if (digit < 0) return refuse_byte(reader, byte, "four hexadecimal digits after \\u");
        reader->next++;
        value = value << 4 | (uint32_t)digit;
    }
    *out = value;
    return WEFT_OK;
}

static void add_utf8(struct wf_text *text, uint32_t code)
{
    if (code < 0x80) {
        wf_text_char(text, (char)code);
    } else if (code < 0x800) {
        wf_text_char(text, (char)(0xc0 | code >> 6));
        wf_text_char(text, (char)(0x80 | (code & 0x3f)));
    } else if (code < 0x10000) {
        wf_text_char(text, (char)(0xe0 | code >> 12));
        wf_text_char(text, (char)(0x80 | (code >> 6 & 0x3f)));
        wf_text_char(text, (char)(0x80 | (code & 0x3f)));
    } else {
        wf_text_char(text, (char)(0xf0 | code >> 18));
        wf_text_char(text, (char)(0x80 | (code >> 12 & 0x3f)));
        wf_text_char(text, (char)(0x80 | (code >> 6 & 0x3f)));
        wf_text_char(text, (char)(0x80 | (code & 0x3f)));
    }
}

static weft_status read_code(struct wf_json_reader *reader)
{
    uint32_t code = 0, low = 0;

    WF_TRY(read_hex(reader, &code));
    if (code >= 0xdc00 && code < 0xe000) goto half;
    if (code >= 0xd800 && code < 0xdc00) {
        if (peek(reader) != '\\') goto half;
        reader->next++;
        if (peek(reader) != 'u') goto half;
        reader->next++;
        WF_TRY(read_hex(reader, &low));
        if (low < 0xdc00 || low >= 0xe000) goto half;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code == 0) return wf_json_refuse(reader, "the string contains a NUL character");
    add_utf8(&reader->text, code);
    return WEFT_OK;
half:
    if (reader->status != WEFT_OK) return reader->status;
    return wf_json_refuse(reader, "the string contains one half of a surrogate pair");
}

static weft_status read_escape(struct wf_json_reader *reader)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    int byte = peek(reader);
    const char *found = byte > 0 ? strchr(letters, byte) : NULL;

    if (byte != 'u' && found == NULL)
        return refuse_byte(reader, byte, "one of \"\\/bfnrtu after a backslash");
    reader->next++;
    if (byte == 'u') return read_code(reader);
    wf_text_char(&reader->text, values[found - letters]);
    return WEFT_OK;
}

/* A sequence of UTF-8 that begins with FIRST, which is taken. */
static weft_status read_sequence(struct wf_json_reader *reader, int first)
{
    int more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    int low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    int high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

    if (first < 0xc2 || first > 0xf4)
        return wf_json_refuse(reader, "the string is not UTF-8 (byte 0x%02x)", first);
    wf_text_char(&reader->text, (char)first);
    for (; more > 0; more--, low = 0x80, high = 0xbf) {
        int byte = peek(reader);
        if (reader->status != WEFT_OK) return reader->status;
        if (byte < low || byte > high)
            return wf_json_refuse(reader,
                                  "the string is not UTF-8 (a sequence that begins with "
                                  "byte 0x%02x is cut short)",
                                  first);
        reader->next++;
        wf_text_char(&reader->text, (char)byte);
    }
    return WEFT_OK;
}

/* Append the bytes of the window that stand for themselves. */
static void take_plain(struct wf_json_reader *reader)
{
    const char *first = reader->next;

    while (reader->next < reader->end) {
        unsigned char byte = (unsigned char)*reader->next;
        if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\') break;
        reader->next++;
    }
    wf_text_append(&reader->text, first, (size_t)(reader->next - first));
}

/* A string whose opening quote is taken. */
static weft_status read_string(struct wf_json_reader *reader)
{
    reader->text.length = 0;
    wf_text_append(&reader->text, "", 0);
    for (int byte = peek(reader); byte != '"'; byte = peek(reader)) {
        if (byte < 0x20) return refuse_byte(reader, byte, "the rest of a string");
        if (byte == '\\') {
            reader->next++;
            WF_TRY(read_escape(reader));
        } else if (byte >= 0x80) {
            reader->next++;
            WF_TRY(read_sequence(reader, byte));
        } else {
            take_plain(reader);
        }
        if (reader->text.length > reader->longest)
            return wf_json_refuse(reader, "a string has more than %zu bytes", reader->longest);
        WF_TRY(reader->status = wf_text_status(&reader->text));
    }
    reader->next++;
    return reader->status = wf_text_status(&reader->text);
}

/* ---- keys ---- */

static int compare_keys(const void *a, const void *b)
{
    const struct wf_json_key *x = a, *y = b;

    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static weft_status note_key(struct wf_json_reader *reader)
{
    if (reader->key_count == WF_JSON_KEYS)
        return wf_json_refuse(reader, "the open objects have more than %u keys", WF_JSON_KEYS);
    if (reader->key_count == reader->key_capacity) {
        size_t capacity = reader->key_capacity != 0 ? 2 * reader->key_capacity : 32;
        struct wf_json_key *grown = wf_realloc(reader->keys, capacity * sizeof *grown);
        if (grown == NULL) return reader->status = wf_fail_memory(capacity * sizeof *grown);
        reader->keys = grown;
        reader->key_capacity = capacity;
    }
    reader->keys[reader->key_count++] =
        (struct wf_json_key){wf_hash(0, reader->text.data, reader->text.length), reader->at};
    return WEFT_OK;
}

/* An object ends: no two of its keys are equal.  Keys are compared by their hashes; two different
 * keys with one hash are refused too, which a writer without ill intent does not produce. */
static weft_status check_keys(struct wf_json_reader *reader)
{
    size_t first = reader->first_key[reader->depth], count = reader->key_count - first;
    struct wf_json_key *keys = count > 0 ? &reader->keys[first] : NULL;

    if (count > 1) qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 1; i < count; i++)
        if (keys[i].hash == keys[i - 1].hash) {
            reader->at = keys[i].at;
            return wf_json_refuse(reader,
                                  "a key stands here that its object has already, at byte "
                                  "%" PRIu64,
                                  keys[i - 1].at + 1);
        }
    reader->key_count = first;
    return WEFT_OK;
}

/* ---- values ---- */

static weft_status read_digits(struct wf_json_reader *reader, const char *where)
{
    int byte = peek(reader);

    if (byte < '0' || byte > '9') return refuse_byte(reader, byte, where);
    for (; byte >= '0' && byte <= '9'; byte = peek(reader)) {
        if (reader->text.length >= WF_JSON_DIGITS)
            return wf_json_refuse(reader, "a number has more than %d bytes", WF_JSON_DIGITS);
        wf_text_char(&reader->text, (char)take(reader));
    }
    return reader->status;
}

static weft_status read_number(struct wf_json_reader *reader)
{
    reader->text.length = 0;
    if (peek(reader) == '-') wf_text_char(&reader->text, (char)take(reader));
    if (peek(reader) == '0')
        wf_text_char(&reader->text, (char)take(reader));
    else
        WF_TRY(read_digits(reader, "a digit"));
    if (peek(reader) == '.') {
        wf_text_char(&reader->text, (char)take(reader));
        WF_TRY(read_digits(reader, "a digit after the point"));
    }
    if (peek(reader) == 'e' || peek(reader) == 'E') {
        wf_text_char(&reader->text, (char)take(reader));
        if (peek(reader) == '+' || peek(reader) == '-')
            wf_text_char(&reader->text, (char)take(reader));
        WF_TRY(read_digits(reader, "a digit of the exponent"));
    }
    if (reader->status != WEFT_OK) return reader->status;
    return reader->status = wf_text_status(&reader->text);
}

static weft_status read_literal(struct wf_json_reader *reader, const char *word)
{
    for (const char *at = word; *at != '\0'; at++) {
        int byte = peek(reader);
        if (byte != *at) return refuse_byte(reader, byte, word);
        reader->next++;
    }
    return WEFT_OK;
}

static weft_status open_container(struct wf_json_reader *reader, bool object)
{
    uint64_t bit;

    if (reader->depth == WF_JSON_DEPTH)
        return wf_json_refuse(reader, "values are nested deeper than %d", WF_JSON_DEPTH);
    reader->next++;
    reader->depth++;
    bit = UINT64_C(1) << reader->depth;
    reader->is_object = object ? reader->is_object | bit : reader->is_object & ~bit;
    reader->first_key[reader->depth] = reader->key_count;
    reader->state = object ? KEY_OR_END : VALUE_OR_END;
    return WEFT_OK;
}

static bool in_object(const struct wf_json_reader *reader)
{
    return reader->depth > 0 && (reader->is_object >> reader->depth & 1) != 0;
}

static void value_ended(struct wf_json_reader *reader)
{
    reader->state = reader->depth > 0 ? COMMA_OR_END : NOTHING;
}

static weft_status close_container(struct wf_json_reader *reader, enum wf_json_event *event)
{
    bool object = in_object(reader);

    reader->next++;
    if (object) WF_TRY(check_keys(reader));
    reader->depth--;
    value_ended(reader);
    *event = object ? WF_EVENT_OBJECT_END : WF_EVENT_ARRAY_END;
    return WEFT_OK;
}

static weft_status read_value(struct wf_json_reader *reader, int byte, enum wf_json_event *event)
{
    weft_status status;

    switch (byte) {
    case '{':
    case '[':
        WF_TRY(open_container(reader, byte == '{'));
        *event = byte == '{' ? WF_EVENT_OBJECT : WF_EVENT_ARRAY;
        return WEFT_OK;
    case '"':
        reader->next++;
        *event = WF_EVENT_STRING;
        status = read_string(reader);
        break;
    case 't':
        *event = WF_EVENT_TRUE;
        status = read_literal(reader, "true");
        break;
    case 'f':
        *event = WF_EVENT_FALSE;
        status = read_literal(reader, "false");
        break;
    case 'n':
        *event = WF_EVENT_NULL;
        status = read_literal(reader, "null");
        break;
    default:
        if (byte != '-' && (byte < '0' || byte > '9')) return refuse_byte(reader, byte, "a value");
        *event = WF_EVENT_NUMBER;
        status = read_number(reader);
    }
    if (status == WEFT_OK) value_ended(reader);
    return status;
}

static weft_status read_key(struct wf_json_reader *reader, int byte)
{
    if (byte != '"') return refuse_byte(reader, byte, "a key in quotes");
    reader->next++;
    WF_TRY(read_string(reader));
    WF_TRY(note_key(reader));
    reader->state = COLON;
    return WEFT_OK;
}

/* Take the comma or the colon that must stand before the next value or key. */
static weft_status take_separator(struct wf_json_reader *reader)
{
    int byte = peek(reader);

    if (reader->state == COLON) {
        if (byte != ':') return refuse_byte(reader, byte, "':'");
        reader->state = VALUE;
    } else if (reader->state == COMMA_OR_END && byte == ',') {
        reader->state = in_object(reader) ? KEY : VALUE;
    } else {
        return WEFT_OK;
    }
    reader->next++;
    skip_blanks(reader);
    return WEFT_OK;
}

weft_status wf_json_next(struct wf_json_reader *reader, enum wf_json_event *event)
{
    int byte;

    if (reader->status != WEFT_OK) return reader->status;
    skip_blanks(reader);
    WF_TRY(take_separator(reader));
    reader->at = position(reader);
    byte = peek(reader);
    if (reader->status != WEFT_OK) return reader->status;
    if (reader->state == NOTHING) {
        *event = WF_EVENT_END;
        return byte < 0 ? WEFT_OK : refuse_byte(reader, byte, "the end");
    }
    if (reader->state != VALUE && reader->state != KEY && byte == (in_object(reader) ? '}' : ']'))
        return close_container(reader, event);
    if (reader->state == COMMA_OR_END)
        return refuse_byte(reader, byte, in_object(reader) ? "',' or '}'" : "',' or ']'");
    if (reader->state == KEY || reader->state == KEY_OR_END) {
        *event = WF_EVENT_KEY;
        return read_key(reader, byte);
    }
    return read_value(reader, byte, event);
}
