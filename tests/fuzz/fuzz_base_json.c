/* Any bytes become one JSON string: quoted once at each end, pure UTF-8, no control characters. */
#include "fuzz.h"

#include "base/base.h"

#include <string.h>

/* Bytes that follow the first byte of a UTF-8 sequence. */
static size_t followers(unsigned char first)
{
    return first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
}

static void check_quoted(const unsigned char *at)
{
    FUZZ_ASSERT(*at++ == '"');
    while (*at != '"') {
        size_t more = followers(*at);
        FUZZ_ASSERT(*at >= 0x20 && *at != 0x7f && (*at < 0x80 || *at >= 0xc2) && *at <= 0xf4);
        if (*at == '\\') {
            at++;
            FUZZ_ASSERT(strchr("\"\\nu", *at) != NULL && *at != '\0');
        }
        for (at++; more > 0; more--, at++)
            FUZZ_ASSERT(*at >= 0x80 && *at < 0xc0);
    }
    FUZZ_ASSERT(at[1] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *value = fuzz_string(data, size);
    struct wf_text text = {0};
    struct wf_json json = {.out = &text};

    wf_json_string(&json, NULL, value);
    check_quoted((const unsigned char *)text.data);
    wf_text_free(&text);
    free(value);
    return 0;
}
