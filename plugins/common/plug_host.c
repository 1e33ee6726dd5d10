/* plug_host.c - see plug_host.h. */
#include "plug_host.h"
#undef plug_fail
#undef plug_fail_vendor
#undef plug_fail_errno
#undef plug_fail_memory

#include "kit/limits.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const weft_host *host;
static _Thread_local char last_text[1024];

void plug_host_set(const weft_host *given)
{
    if (host == NULL) host = given;
}

/* TEXT does not overlap the last text. */
static weft_status describe(weft_status status, const char *vendor, int64_t code, const char *text)
{
    snprintf(last_text, sizeof last_text, "%s", text);
    if (host != NULL) host->set_error(status, vendor, code, text);
    return status;
}

weft_status plug_fail(weft_status status, const char *format, ...)
{
    char text[sizeof last_text];

    KIT_PRINT_REST(text, format);
    return describe(status, NULL, 0, text);
}

weft_status plug_fail_vendor(weft_status status, const char *vendor, int64_t code,
                             const char *format, ...)
{
    char text[sizeof last_text];

    KIT_PRINT_REST(text, format);
    return describe(status, vendor, code, text);
}

weft_status plug_fail_errno(weft_status status, int error, const char *format, ...)
{
    char text[sizeof last_text];
    size_t used;
    va_list args;

    va_start(args, format);
    kit_printv(text, sizeof text - 320, format, args);
    va_end(args);
    used = strlen(text);
    snprintf(text + used, sizeof text - used, ": %s", kit_error_text(error));
    return describe(status, "Linux", error, text);
}

weft_status plug_fail_memory(size_t bytes)
{
    return plug_fail(WEFT_ERR_NO_MEMORY, "out of host memory: cannot allocate %zu bytes%s", bytes,
                     kit_limit_text(ENOMEM));
}

const char *plug_last_text(void)
{
    return last_text;
}

void plug_log(int32_t level, const char *format, ...)
{
    char text[1024];

    KIT_PRINT_REST(text, format);
    if (host != NULL) host->log(level, text);
}

void *plug_alloc(size_t bytes)
{
    void *pointer;

    if (bytes == 0) bytes = 1;
    pointer = host != NULL ? host->allocate(bytes) : malloc(bytes);
    if (pointer != NULL) memset(pointer, 0, bytes);
    return pointer;
}

void *plug_new(size_t bytes)
{
    void *pointer = plug_alloc(bytes);

    if (pointer == NULL) (void)plug_fail_memory(bytes);
    return pointer;
}

void plug_free(void *pointer)
{
    if (host != NULL)
        host->release(pointer);
    else
        free(pointer);
}

/* Number of bytes that both versions of a struct have.  The size is the first field. */
static size_t shared_bytes(const void *theirs, size_t bytes)
{
    uint32_t size;

    memcpy(&size, theirs, sizeof size);
    return size < bytes ? size : bytes;
}

void plug_take_struct(void *ours, const void *theirs, size_t bytes)
{
    memset(ours, 0, bytes);
    memcpy(ours, theirs, shared_bytes(theirs, bytes));
}

void plug_give_struct(void *theirs, const void *ours, size_t bytes)
{
    size_t first = sizeof(uint32_t), shared = shared_bytes(theirs, bytes);

    if (shared > first) memcpy((char *)theirs + first, (const char *)ours + first, shared - first);
}

const char *plug_knob(const char *name)
{
    return host != NULL ? host->knob(name) : NULL;
}

bool plug_knob_flag(const char *name, bool otherwise)
{
    static const char *const negative[] = {"", "0", "no", "off", "false"};
    const char *value = plug_knob(name);

    if (value == NULL) return otherwise;
    for (size_t i = 0; i < PLUG_LENGTH(negative); i++)
        if (strcmp(value, negative[i]) == 0) return false;
    return true;
}

weft_status plug_knob_bytes(const char *name, uint64_t otherwise, uint64_t *out)
{
    static const char units[] = "KkMmGg";
    const char *value = plug_knob(name), *unit;
    int shift = 0;
    char *end;
    uint64_t bytes;

    if (value == NULL || *value == '\0') {
        *out = otherwise;
        return WEFT_OK;
    }
    errno = 0;
    bytes = strtoull(value, &end, 10);
    unit = *end != '\0' ? strchr(units, *end) : NULL;
    if (unit != NULL) {
        shift = 10 * (int)((unit - units) / 2 + 1);
        end++;
    }
    if (*value < '0' || *value > '9' || *end != '\0' || errno != 0 || bytes >> (63 - shift) != 0)
        return plug_fail(
            WEFT_ERR_INVALID,
            "%s is \"%.200s\"; expected a number of bytes below 2^63, such as 65536, 512M or 64G",
            name, value);
    *out = bytes << shift;
    return WEFT_OK;
}

uint64_t plug_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
