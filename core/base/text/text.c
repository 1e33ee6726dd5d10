/* text.c - a growing string that objects print themselves into. */
#include "base/base.h"

#include <string.h>

static bool reserve_bytes(struct wf_text *text, size_t more)
{
    size_t capacity = text->capacity != 0 ? text->capacity : 64;
    char *grown = NULL;

    if (text->failed) return false;
    if (more < text->capacity - text->length) return true;
    while (capacity - text->length <= more && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    if (capacity - text->length > more) grown = wf_realloc(text->data, capacity);
    text->failed = grown == NULL;
    text->capacity = capacity; /* of a failed text: the capacity that it needed */
    if (grown == NULL) return false;
    text->data = grown;
    grown[text->length] = '\0';
    return true;
}

bool wf_text_reserve(struct wf_text *text, size_t more)
{
    struct wf_text before = *text;

    if (reserve_bytes(text, more)) return true;
    *text = before;
    return false;
}

void wf_text_append(struct wf_text *text, const char *bytes, size_t length)
{
    if (!reserve_bytes(text, length)) return;
    if (length > 0) memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void wf_text_char(struct wf_text *text, char c)
{
    wf_text_append(text, &c, 1);
}

void wf_text_addv(struct wf_text *text, const char *format, va_list args)
{
    va_list again;
    int length;

    va_copy(again, args);
    length = kit_printv(NULL, 0, format, again);
    va_end(again);
    if (length < 0 || !reserve_bytes(text, (size_t)length)) return;
    kit_printv(text->data + text->length, (size_t)length + 1, format, args);
    text->length += (size_t)length;
}

void wf_text_add(struct wf_text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    wf_text_addv(text, format, args);
    va_end(args);
}

void wf_text_bytes(struct wf_text *text, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;

    if (bytes < 1024) {
        wf_text_add(text, "%llu B", (unsigned long long)bytes);
        return;
    }
    for (; value >= 1023.95 && unit + 1 < WF_COUNT(units); unit++)
        value /= 1024;
    wf_text_add(text, "%.1f %s", value, units[unit]);
}

void wf_text_time(struct wf_text *text, uint64_t nanoseconds)
{
    if (nanoseconds < 1000)
        wf_text_add(text, "%llu ns", (unsigned long long)nanoseconds);
    else if (nanoseconds < 999950) /* the next would round to 1000.0 */
        wf_text_add(text, "%.1f us", (double)nanoseconds / 1e3);
    else if (nanoseconds < 999950000)
        wf_text_add(text, "%.1f ms", (double)nanoseconds / 1e6);
    else
        wf_text_add(text, "%.1f s", (double)nanoseconds / 1e9);
}

void wf_text_free(struct wf_text *text)
{
    wf_free(text->data);
    *text = (struct wf_text){0};
}

weft_status wf_text_status(const struct wf_text *text)
{
    return text->failed ? wf_fail_memory(text->capacity) : WEFT_OK;
}

weft_status wf_fail_text(weft_status status, struct wf_text *text, const char *format, ...)
{
    char whole[WF_ERROR_BYTES];
    weft_status result = wf_text_status(text);

    if (result == WEFT_OK) {
        KIT_PRINT_REST(whole, format);
        result = wf_fail(status, "%s", whole);
    }
    wf_text_free(text);
    return result;
}

weft_status wf_text_take(struct wf_text *text, char **out)
{
    weft_status status;

    wf_text_append(text, "", 0);
    status = wf_text_status(text);
    if (status != WEFT_OK) {
        wf_text_free(text);
        return status;
    }
    *out = text->data;
    *text = (struct wf_text){0};
    return WEFT_OK;
}

weft_status wf_text_copy_out(struct wf_text *text, char *out, size_t size, size_t *needed)
{
    weft_status status = wf_text_status(text);

    if (status == WEFT_OK) {
        size_t fits = text->length < size ? text->length : size - 1;
        if (size > 0) {
            if (fits > 0) memcpy(out, text->data, fits);
            out[fits] = '\0';
        }
        if (needed != NULL) *needed = text->length;
    }
    wf_text_free(text);
    return status;
}

bool wf_same_letters(const char *a, const char *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (wf_lower(a[i]) != wf_lower(b[i])) return false;
        if (a[i] == '\0') break;
    }
    return true;
}
