/* json_read.c - JSON, read into a tree of values.
 *
 * The tree owns one copy of the text, in which strings are unescaped in place, and blocks of
 * values. */
#include "base.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 64, BLOCK = 64 /* values */ };

struct wf_json_block {
    struct wf_json_block *next;
    uint32_t used;
    struct wf_json_value values[BLOCK];
};

struct reader {
    struct wf_json_tree *tree;
    struct wf_scan scan; /* over the tree's copy, which is not changed behind the position */
};

static weft_status fail(const struct reader *r, const char *reason)
{
    /* the text before the position may have been unescaped: it is not quoted */
    return wf_fail(WEFT_ERR_PARSE, "JSON, position %zu: %s", r->scan.at + 1, reason);
}

static void skip_space(struct reader *r)
{
    while (strchr(" \t\r\n", wf_scan_peek(&r->scan)) != NULL && !wf_scan_end(&r->scan))
        r->scan.at++;
}

static weft_status new_value(struct reader *r, struct wf_json_value **out)
{
    struct wf_json_block *block = r->tree->blocks;

    if (block == NULL || block->used == BLOCK) {
        block = wf_alloc(sizeof *block);
        if (block == NULL) return wf_fail_memory(sizeof *block);
        block->next = r->tree->blocks;
        block->used = 0;
        r->tree->blocks = block;
    }
    *out = &block->values[block->used++];
    **out = (struct wf_json_value){.kind = WF_JSON_NULL};
    return WEFT_OK;
}

/* ---- strings ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits at AT; -1: there are none. */
static int32_t read_hex(const char *at)
{
    int32_t value = 0;

    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

static char *put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    if (code >= 0x10000) *to++ = (char)(0xf0 | code >> 18);
    if (code >= 0x10000) *to++ = (char)(0x80 | (code >> 12 & 0x3f));
    if (code >= 0x800 && code < 0x10000) *to++ = (char)(0xe0 | code >> 12);
    if (code >= 0x800) *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    if (code < 0x800) *to++ = (char)(0xc0 | code >> 6);
    *to++ = (char)(0x80 | (code & 0x3f));
    return to;
}

/* Read \uXXXX after its u, with the second half of a surrogate pair.  NULL: malformed. */
static char *unescape_code(struct reader *r, char *to)
{
    const char *at = r->scan.text + r->scan.at;
    int32_t code = read_hex(at), low;

    if (code <= 0) return NULL; /* \u0000 would end the string */
    r->scan.at += 4;
    if (code < 0xd800 || code > 0xdfff) return put_utf8(to, (uint32_t)code);
    if (code > 0xdbff || at[4] != '\\' || at[5] != 'u') return NULL;
    low = read_hex(at + 6);
    if (low < 0xdc00 || low > 0xdfff) return NULL;
    r->scan.at += 6;
    return put_utf8(to, 0x10000 + ((uint32_t)(code - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
}

/* Read a string after its first quote, in place. */
static weft_status read_string(struct reader *r, char **out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char *text = r->tree->text, *to = text + r->scan.at;

    *out = to;
    for (;;) {
        char c = wf_scan_peek(&r->scan);
        const char *known;
        if ((unsigned char)c < 0x20) return fail(r, "a string has no end");
        r->scan.at++;
        if (c == '"') break;
        if (c != '\\') {
            *to++ = c;
            continue;
        }
        c = wf_scan_peek(&r->scan);
        known = c != '\0' ? strchr(names, c) : NULL;
        if (known == NULL && c != 'u') return fail(r, "\\ is followed by an unknown letter");
        r->scan.at++;
        if (known != NULL)
            *to++ = values[known - names];
        else if ((to = unescape_code(r, to)) == NULL)
            return fail(r, "\\u is not followed by the digits of a character");
    }
    *to = '\0';
    return WEFT_OK;
}

/* ---- numbers and words ---- */

static size_t skip_digits(struct reader *r)
{
    size_t first = r->scan.at;

    while (wf_scan_peek(&r->scan) >= '0' && wf_scan_peek(&r->scan) <= '9')
        r->scan.at++;
    return r->scan.at - first;
}

static weft_status read_number(struct reader *r, struct wf_json_value *out)
{
    const char *first = r->scan.text + r->scan.at;
    bool negative = wf_scan_char(&r->scan, '-'), whole = true;
    size_t digits = skip_digits(r);

    if (digits == 0) return fail(r, "expected a value");
    if (first[negative] == '0' && digits > 1) return fail(r, "a number begins with 0");
    if (wf_scan_char(&r->scan, '.')) {
        whole = false;
        if (skip_digits(r) == 0) return fail(r, "expected digits behind the point");
    }
    if (wf_scan_char(&r->scan, 'e') || wf_scan_char(&r->scan, 'E')) {
        whole = false;
        if (!wf_scan_char(&r->scan, '-')) (void)wf_scan_char(&r->scan, '+');
        if (skip_digits(r) == 0) return fail(r, "expected the digits of an exponent");
    }
    out->real = strtod(first, NULL);
    out->kind = WF_JSON_REAL;
    for (int64_t value = 0, i = negative; whole; i++) {
        if (first + i == r->scan.text + r->scan.at) {
            out->kind = WF_JSON_INT;
            out->integer = value;
            break;
        }
        if (!wf_mul_i64(value, 10, &value) ||
            !wf_add_i64(value, (negative ? -1 : 1) * (first[i] - '0'), &value))
            break;
    }
    return WEFT_OK;
}

static weft_status read_plain(struct reader *r, struct wf_json_value *out)
{
    if (wf_scan_word(&r->scan, "null")) return WEFT_OK;
    out->kind = WF_JSON_BOOL;
    if (wf_scan_word(&r->scan, "false")) return WEFT_OK;
    out->integer = 1;
    if (wf_scan_word(&r->scan, "true")) return WEFT_OK;
    if (!wf_scan_char(&r->scan, '"')) return read_number(r, out);
    out->kind = WF_JSON_STRING;
    return read_string(r, &out->text);
}

/* ---- trees ---- */

/* Begin a member of PARENT: its key, in objects. */
static weft_status begin_member(struct reader *r, struct wf_json_value *parent,
                                struct wf_json_value **last, struct wf_json_value **out)
{
    WF_TRY(new_value(r, out));
    if (*last != NULL)
        (*last)->next = *out;
    else
        parent->first = *out;
    *last = *out;
    parent->count++;
    if (parent->kind == WF_JSON_ARRAY) return WEFT_OK;
    if (!wf_scan_char(&r->scan, '"')) return fail(r, "expected the name of a member");
    WF_TRY(read_string(r, &(*out)->key));
    skip_space(r);
    if (!wf_scan_char(&r->scan, ':')) return fail(r, "expected :");
    skip_space(r);
    return WEFT_OK;
}

/* An array or object that is being read. */
struct level {
    struct wf_json_value *value, *last;
};

/* End all levels that end here.  False: the text goes on with another member, after a comma. */
static bool end_levels(struct reader *r, struct level *levels, int *depth, weft_status *status)
{
    while (*depth > 0) {
        const struct wf_json_value *v = levels[*depth - 1].value;
        skip_space(r);
        if (wf_scan_char(&r->scan, v->kind == WF_JSON_ARRAY ? ']' : '}')) {
            --*depth;
            continue;
        }
        if (v->count > 0 && !wf_scan_char(&r->scan, ','))
            *status = fail(r, "expected , or the end of a list");
        skip_space(r);
        return false;
    }
    return true;
}

static weft_status read_tree(struct reader *r)
{
    struct level levels[DEPTH];
    struct wf_json_value *value = NULL;
    weft_status status = WEFT_OK;
    int depth = 0;

    WF_TRY(new_value(r, &value));
    r->tree->root = value;
    for (skip_space(r);;) {
        bool array = wf_scan_peek(&r->scan) == '[';
        if (array || wf_scan_peek(&r->scan) == '{') {
            if (depth == DEPTH) return fail(r, "lists are nested deeper than 64");
            r->scan.at++;
            value->kind = array ? WF_JSON_ARRAY : WF_JSON_OBJECT;
            levels[depth++] = (struct level){.value = value};
        } else {
            WF_TRY(read_plain(r, value));
        }
        if (end_levels(r, levels, &depth, &status)) break;
        WF_TRY(status);
        WF_TRY(begin_member(r, levels[depth - 1].value, &levels[depth - 1].last, &value));
    }
    skip_space(r);
    return wf_scan_end(&r->scan) ? WEFT_OK : fail(r, "expected the end");
}

weft_status wf_json_read(const char *text, struct wf_json_tree *out)
{
    struct reader r = {.tree = out};
    weft_status status;

    *out = (struct wf_json_tree){.text = wf_strdup(text)};
    if (out->text == NULL) return wf_fail_memory(strlen(text) + 1);
    r.scan.text = out->text;
    status = read_tree(&r);
    if (status != WEFT_OK) wf_json_free(out);
    return status;
}

void wf_json_free(struct wf_json_tree *tree)
{
    while (tree->blocks != NULL) {
        struct wf_json_block *next = tree->blocks->next;
        wf_free(tree->blocks);
        tree->blocks = next;
    }
    wf_free(tree->text);
    *tree = (struct wf_json_tree){.text = NULL};
}

const struct wf_json_value *wf_json_find(const struct wf_json_value *object, const char *key)
{
    const struct wf_json_value *found = NULL;

    if (object == NULL || object->kind != WF_JSON_OBJECT) return NULL;
    for (const struct wf_json_value *v = object->first; v != NULL; v = v->next)
        if (strcmp(v->key, key) == 0) found = v; /* the last of several */
    return found;
}
