/* writer.c - bytes into a file that appears when it is complete, and texts without stdio. */
#include "dump.h"

#include "trace/rank_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- texts ---- */

size_t wf_print_decimal(int64_t number, char out[WF_DECIMAL])
{
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char digits[WF_DECIMAL];
    size_t count = 0, length = 0;

    do
        digits[count++] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0) out[length++] = '-';
    while (count > 0)
        out[length++] = digits[--count];
    out[length] = '\0';
    return length;
}

void wf_print_hex(uint64_t number, char out[17])
{
    for (int i = 15; i >= 0; i--, number >>= 4)
        out[i] = "0123456789abcdef"[number & 15];
    out[16] = '\0';
}

void wf_phrase_add(struct wf_phrase *phrase, const char *text)
{
    for (; *text != '\0' && phrase->used + 1 < phrase->bytes; text++)
        phrase->out[phrase->used++] = *text;
    phrase->out[phrase->used] = '\0';
}

void wf_phrase_add_decimal(struct wf_phrase *phrase, int64_t number)
{
    char digits[WF_DECIMAL];

    wf_print_decimal(number, digits);
    wf_phrase_add(phrase, digits);
}

/* ---- the file ---- */

static _Atomic uint32_t made_count;

static void fail(struct wf_writer *writer, int error)
{
    if (writer->error == 0) writer->error = error != 0 ? error : EIO;
}

void wf_writer_open(struct wf_writer *writer, const char *path)
{
    struct wf_phrase name = {writer->made, sizeof writer->made, 0};
    const char *slash = strrchr(path, '/');

    writer->file = -1;
    writer->error = 0;
    writer->written = writer->used = 0;
    writer->made[0] = '\0';
    for (const char *at = path; slash != NULL && at <= slash; at++)
        wf_phrase_add(&name, (char[]){*at, '\0'});
    wf_phrase_add(&name, ".weft-");
    wf_phrase_add_decimal(&name, getpid());
    wf_phrase_add(&name, "-");
    wf_phrase_add_decimal(&name, atomic_fetch_add(&made_count, 1));
    wf_phrase_add(&name, ".tmp");
    if (name.used + 1 == name.bytes) {
        fail(writer, ENAMETOOLONG);
        return;
    }
    writer->file = open(writer->made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (writer->file < 0) fail(writer, errno);
}

static void flush(struct wf_writer *writer)
{
    int error = writer->error;

    if (error == 0)
        error = wf_rank_file_write(writer->file, writer->written, writer->bytes, writer->used);
    if (error != 0)
        fail(writer, error);
    else
        writer->written += writer->used;
    writer->used = 0;
}

void wf_write_bytes(struct wf_writer *writer, const void *bytes, size_t count)
{
    const char *from = bytes;

    while (count > 0 && writer->error == 0) {
        size_t room = sizeof writer->bytes - writer->used, part = count < room ? count : room;

        memcpy(writer->bytes + writer->used, from, part);
        writer->used += part;
        from += part;
        count -= part;
        if (writer->used == sizeof writer->bytes) flush(writer);
    }
}

void wf_write_text(struct wf_writer *writer, const char *text)
{
    wf_write_bytes(writer, text, strlen(text));
}

void wf_write_decimal(struct wf_writer *writer, int64_t number)
{
    char digits[WF_DECIMAL];

    wf_write_bytes(writer, digits, wf_print_decimal(number, digits));
}

void wf_writer_close(struct wf_writer *writer)
{
    if (writer->file < 0) return;
    flush(writer);
    if (close(writer->file) != 0) fail(writer, errno);
    writer->file = -1;
}

void wf_writer_publish(struct wf_writer *writer, const char *path)
{
    if (writer->error != 0) return;
    if (rename(writer->made, path) != 0)
        fail(writer, errno);
    else
        writer->made[0] = '\0';
}

void wf_writer_discard(struct wf_writer *writer)
{
    wf_writer_close(writer);
    if (writer->made[0] != '\0') (void)unlink(writer->made);
    writer->made[0] = '\0';
}
