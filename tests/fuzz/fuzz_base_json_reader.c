/* Any bytes give the same events, whether they come at once or byte by byte, and a document that
 * is accepted is accepted again after it is written from its events. */
#include "fuzz.h"

#include "base/json/json_reader.h"

#include <string.h>

struct bytes {
    const uint8_t *data;
    size_t size, at;
};

static weft_status one_byte(void *source, char *buffer, size_t capacity, size_t *count)
{
    struct bytes *bytes = source;

    FUZZ_ASSERT(capacity > 0);
    *count = bytes->at < bytes->size;
    if (*count > 0) buffer[0] = (char)bytes->data[bytes->at++];
    return WEFT_OK;
}

/* Write the events as JSON to OUT; numbers become strings. */
static weft_status copy(struct wf_json_reader *reader, struct wf_text *out)
{
    struct wf_json json = {.out = out};
    enum wf_json_event event = WF_EVENT_NULL;
    char *key = NULL;
    weft_status status;

    while ((status = wf_json_next(reader, &event)) == WEFT_OK && event != WF_EVENT_END) {
        const char *name = key;
        FUZZ_ASSERT(reader->depth <= WF_JSON_DEPTH);
        if (event == WF_EVENT_KEY) {
            key = wf_strdup(reader->text.data);
            FUZZ_ASSERT(key != NULL && strlen(key) == reader->text.length);
            continue;
        }
        switch (event) {
        case WF_EVENT_OBJECT:
            wf_json_begin(&json, name, '{');
            break;
        case WF_EVENT_ARRAY:
            wf_json_begin(&json, name, '[');
            break;
        case WF_EVENT_OBJECT_END:
            wf_json_end(&json, '}');
            break;
        case WF_EVENT_ARRAY_END:
            wf_json_end(&json, ']');
            break;
        case WF_EVENT_TRUE:
        case WF_EVENT_FALSE:
            wf_json_bool(&json, name, event == WF_EVENT_TRUE);
            break;
        case WF_EVENT_NULL:
            wf_json_null(&json, name);
            break;
        default:
            wf_json_string(&json, name, reader->text.data);
        }
        wf_free(key);
        key = NULL;
    }
    wf_free(key);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes source = {data, size, 0};
    struct wf_text first = {0}, second = {0}, third = {0};
    static struct wf_json_reader reader;
    weft_status status;

    wf_json_reader_begin(&reader, "input", (const char *)data, size);
    status = copy(&reader, &first);
    wf_json_reader_end(&reader);
    wf_json_reader_stream(&reader, "input", one_byte, &source);
    FUZZ_ASSERT(copy(&reader, &second) == status);
    wf_json_reader_end(&reader);
    FUZZ_ASSERT(first.length == second.length);
    FUZZ_ASSERT(first.length == 0 || memcmp(first.data, second.data, first.length) == 0);
    if (status == WEFT_OK) {
        wf_json_reader_begin(&reader, "input", first.data, first.length);
        FUZZ_ASSERT(copy(&reader, &third) == WEFT_OK);
        wf_json_reader_end(&reader);
        FUZZ_ASSERT(strcmp(first.data, third.data) == 0);
    }
    wf_text_free(&first);
    wf_text_free(&second);
    wf_text_free(&third);
    return 0;
}
