/* pickle.c - values as a Python pickle of protocol 2 */
#include "dump.h"

#include <string.h>

static void begin(struct wf_writer *writer)
{
    wf_write_bytes(writer, "\x80\x02", 2);
}

static void end(struct wf_writer *writer)
{
    wf_write_text(writer, "."); /* STOP */
}

static void open_map(struct wf_writer *writer)
{
    wf_write_text(writer, "}("); /* EMPTY_DICT MARK */
}

static void close_map(struct wf_writer *writer)
{
    wf_write_text(writer, "u"); /* SETITEMS */
}

static void open_list(struct wf_writer *writer)
{
    wf_write_text(writer, "]("); /* EMPTY_LIST MARK */
}

static void close_list(struct wf_writer *writer)
{
    wf_write_text(writer, "e"); /* APPENDS */
}

static void open_tuple(struct wf_writer *writer)
{
    wf_write_text(writer, "("); /* MARK */
}

static void close_tuple(struct wf_writer *writer)
{
    wf_write_text(writer, "t"); /* TUPLE */
}

/* The COUNT low bytes of NUMBER, the lowest first. */
static void put_low(struct wf_writer *writer, uint64_t number, size_t count)
{
    unsigned char bytes[8];

    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
    wf_write_bytes(writer, bytes, count);
}

static void open_text(struct wf_writer *writer, size_t length)
{
    wf_write_text(writer, "X"); /* BINUNICODE */
    put_low(writer, length, 4);
}

static void put_text(struct wf_writer *writer, const char *bytes, size_t count)
{
    wf_write_bytes(writer, bytes, count);
}

static void close_text(struct wf_writer *writer)
{
    (void)writer;
}

static void number(struct wf_writer *writer, int64_t value)
{
    if (value >= INT32_MIN && value <= INT32_MAX) {
        wf_write_text(writer, "J"); /* BININT */
        put_low(writer, (uint64_t)value, 4);
    } else {
        wf_write_bytes(writer, "\x8a\x08", 2); /* LONG1 of 8 bytes */
        put_low(writer, (uint64_t)value, 8);
    }
}

static void milliseconds(struct wf_writer *writer, uint64_t ns)
{
    double value = (double)ns / 1e6;
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    wf_write_text(writer, "G"); /* BINFLOAT, the highest byte first */
    put_low(writer, __builtin_bswap64(bits), 8);
}

static void truth(struct wf_writer *writer, bool value)
{
    wf_write_text(writer, value ? "\x88" : "\x89"); /* NEWTRUE, NEWFALSE */
}

static void none(struct wf_writer *writer)
{
    wf_write_text(writer, "N");
}

static void separate(struct wf_writer *writer, bool first, bool value_of_key)
{
    (void)writer, (void)first, (void)value_of_key;
}

const struct wf_encoding wf_pickle = {
    begin,     end,      open_map,   close_map, open_list,    close_list, open_tuple, close_tuple,
    open_text, put_text, close_text, number,    milliseconds, truth,      none,       separate};
