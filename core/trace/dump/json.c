/* json.c - values as JSON.  A tuple is a list. */
#include "dump.h"

static void begin(struct wf_writer *writer)
{
    (void)writer;
}

static void end(struct wf_writer *writer)
{
    wf_write_text(writer, "\n");
}

static void open_map(struct wf_writer *writer)
{
    wf_write_text(writer, "{");
}

static void close_map(struct wf_writer *writer)
{
    wf_write_text(writer, "}");
}

static void open_list(struct wf_writer *writer)
{
    wf_write_text(writer, "[");
}

static void close_list(struct wf_writer *writer)
{
    wf_write_text(writer, "]");
}

static void open_text(struct wf_writer *writer, size_t length)
{
    (void)length;
    wf_write_text(writer, "\"");
}

static void put_text(struct wf_writer *writer, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        char escaped[] = "\\u00__";

        if (byte >= ' ' && byte != '"' && byte != '\\') {
            wf_write_bytes(writer, &byte, 1);
            continue;
        }
        escaped[4] = "0123456789abcdef"[byte >> 4];
        escaped[5] = "0123456789abcdef"[byte & 15];
        wf_write_text(writer, escaped);
    }
}

static void close_text(struct wf_writer *writer)
{
    wf_write_text(writer, "\"");
}

static void milliseconds(struct wf_writer *writer, uint64_t ns)
{
    char digits[] = ".000000";

    wf_write_decimal(writer, (int64_t)(ns / 1000000));
    ns %= 1000000;
    for (int i = 6; i > 0; i--, ns /= 10)
        digits[i] = (char)('0' + ns % 10);
    wf_write_text(writer, digits);
}

static void truth(struct wf_writer *writer, bool value)
{
    wf_write_text(writer, value ? "true" : "false");
}

static void none(struct wf_writer *writer)
{
    wf_write_text(writer, "null");
}

/* A line for each entry would need the depth; a reader formats the file anyway. */
static void separate(struct wf_writer *writer, bool first, bool value_of_key)
{
    if (value_of_key)
        wf_write_text(writer, ": ");
    else if (!first)
        wf_write_text(writer, ", ");
}

const struct wf_encoding wf_json = {begin,        end,        open_map,   close_map,
                                    open_list,    close_list, open_list,  close_list,
                                    open_text,    put_text,   close_text, wf_write_decimal,
                                    milliseconds, truth,      none,       separate};
