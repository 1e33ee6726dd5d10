/* json_values.c - whole values of JSON, read from the events of json_reader.c. */
#include "json_reader.h"

static const char *event_name(enum wf_json_event event)
{
    static const char *const names[] = {
        [WF_EVENT_END] = "the end",     [WF_EVENT_OBJECT] = "an object",
        [WF_EVENT_OBJECT_END] = "'}'",  [WF_EVENT_ARRAY] = "an array",
        [WF_EVENT_ARRAY_END] = "']'",   [WF_EVENT_KEY] = "a key",
        [WF_EVENT_STRING] = "a string", [WF_EVENT_NUMBER] = "a number",
        [WF_EVENT_TRUE] = "true",       [WF_EVENT_FALSE] = "false",
        [WF_EVENT_NULL] = "null",
    };

    return names[event];
}

weft_status wf_json_expect(struct wf_json_reader *reader, enum wf_json_event wanted)
{
    enum wf_json_event event;

    WF_TRY(wf_json_next(reader, &event));
    if (event == wanted) return WEFT_OK;
    return wf_json_refuse(reader, "expected %s, found %s", event_name(wanted), event_name(event));
}

weft_status wf_json_skip(struct wf_json_reader *reader)
{
    uint32_t depth = reader->depth;
    enum wf_json_event event;

    do
        WF_TRY(wf_json_next(reader, &event));
    while (reader->depth > depth);
    return WEFT_OK;
}

static weft_status convert_int(struct wf_json_reader *reader, int64_t *out)
{
    int64_t value = 0;

    for (size_t i = 0; i < reader->text.length; i++) {
        char c = reader->text.data[i];
        if (c < '0' || c > '9' || !wf_mul_i64(value, 10, &value) ||
            !wf_add_i64(value, c - '0', &value))
            return wf_json_refuse(reader, "expected an integer from 0 to 2^63 - 1, found %s",
                                  reader->text.data);
    }
    *out = value;
    return WEFT_OK;
}

weft_status wf_json_read_int(struct wf_json_reader *reader, int64_t *out)
{
    WF_TRY(wf_json_expect(reader, WF_EVENT_NUMBER));
    return convert_int(reader, out);
}

weft_status wf_json_read_ints(struct wf_json_reader *reader, size_t capacity, int64_t *out,
                              size_t *count)
{
    enum wf_json_event event;
    size_t read = 0;

    WF_TRY(wf_json_expect(reader, WF_EVENT_ARRAY));
    for (;; read++) {
        WF_TRY(wf_json_next(reader, &event));
        if (event == WF_EVENT_ARRAY_END) break;
        if (event != WF_EVENT_NUMBER)
            return wf_json_refuse(reader, "expected a number, found %s", event_name(event));
        if (read == capacity)
            return wf_json_refuse(reader, "the array has more than %zu numbers", capacity);
        WF_TRY(convert_int(reader, &out[read]));
    }
    *count = read;
    return WEFT_OK;
}
