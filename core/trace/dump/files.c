/* files.c - the files of one rank. */
#include "dump.h"

#include <errno.h>
#include <string.h>

#define VERSION "2.10" /* of PyTorch's format */

/* Facts about the rank, which PyTorch's format does not have. */
static void write_rank(const struct wf_dump *dump, struct wf_encoder *to)
{
    const struct wf_segment *segment = dump->trace->segment;
    char job[17];

    wf_print_hex(segment->job, job);
    wf_emit_key(to, "weft");
    wf_emit_open(to, WF_MAP);
    wf_emit_number_at(to, "rank", segment->rank);
    wf_emit_number_at(to, "size", segment->size);
    wf_emit_text_at(to, "job", job);
    wf_emit_text_at(to, "host", segment->host);
    wf_emit_number_at(to, "pid", segment->pid);
    wf_emit_text_at(to, "program", segment->program);
    wf_emit_text_at(to, "backend", segment->backend);
    wf_emit_number_at(to, "time_ns", dump->epoch_ns + (int64_t)dump->now.ns);
    wf_emit_number_at(to, "records_lost", (int64_t)dump->first - 1);
    wf_emit_close(to, WF_MAP);
}

/* Write what comes before the records. */
static void begin(const struct wf_dump *dump, struct wf_encoder *to)
{
    bool is_pickle = to->encoding == &wf_pickle;

    to->encoding->begin(to->writer);
    wf_emit_open(to, WF_MAP);
    wf_emit_text_at(to, "version", VERSION);
    if (!is_pickle) write_rank(dump, to);
    wf_dump_groups(dump, to, is_pickle);
    wf_dump_progress(dump, to, is_pickle);
    wf_emit_key(to, "entries");
    wf_emit_open(to, WF_LIST);
}

static void end(struct wf_encoder *to)
{
    wf_emit_close(to, WF_LIST);
    wf_emit_close(to, WF_MAP);
    to->encoding->end(to->writer);
}

/* Write both files side by side, so that they have each record in the same state. */
static void encode(struct wf_dump *dump)
{
    struct wf_encoder pickle = {&wf_pickle, &dump->pickle, true, false};
    struct wf_encoder json = {&wf_json, &dump->json, true, false};

    begin(dump, &pickle);
    begin(dump, &json);
    wf_dump_entries(dump, &pickle, &json);
    end(&pickle);
    end(&json);
}

/* "a.%r" -> "a.3", "a" -> "a.3" if JOINT is ".", with SUFFIX.  False if it is too long. */
static bool name_file(const char *prefix, const char *joint, int32_t rank, const char *suffix,
                      char out[WF_DUMP_PATH])
{
    struct wf_phrase name = {out, WF_DUMP_PATH, 0};
    const char *mark = strstr(prefix, "%r");

    for (const char *at = prefix; *at != '\0'; at++) {
        if (at == mark) {
            wf_phrase_add_decimal(&name, rank);
            at++;
        } else {
            wf_phrase_add(&name, (char[]){*at, '\0'});
        }
    }
    if (mark == NULL) {
        wf_phrase_add(&name, joint);
        wf_phrase_add_decimal(&name, rank);
    }
    wf_phrase_add(&name, suffix);
    return name.used + 1 < WF_DUMP_PATH;
}

/* Note the error of a file. */
static void note(struct wf_dump *dump, const struct wf_writer *writer, const char *path)
{
    if (dump->error != 0 || writer->error == 0) return;
    dump->error = writer->error;
    dump->error_path = path;
}

static void make_files(struct wf_dump *dump)
{
    wf_writer_open(&dump->pickle, dump->pickle_path);
    wf_writer_open(&dump->json, dump->json_path);
    encode(dump);
    wf_writer_close(&dump->pickle);
    wf_writer_close(&dump->json);
    note(dump, &dump->pickle, dump->pickle_path);
    note(dump, &dump->json, dump->json_path);
}

/* Both files are complete before one of them gets its name. */
void wf_dump_write(struct wf_dump *dump, const struct wf_trace *trace, const char *prefix)
{
    int32_t rank = trace->segment->rank;

    dump->error = 0;
    dump->error_path = dump->pickle_path;
    /* The analyser takes every file whose name begins like that of a pickle for another one. */
    if (!name_file(prefix, ".", rank, "", dump->pickle_path) ||
        !name_file(prefix, "-", rank, ".json", dump->json_path)) {
        dump->error = ENAMETOOLONG;
        return;
    }
    wf_dump_look(dump, trace);
    make_files(dump);
    if (dump->error == 0) {
        wf_writer_publish(&dump->pickle, dump->pickle_path);
        note(dump, &dump->pickle, dump->pickle_path);
    }
    if (dump->error == 0) {
        wf_writer_publish(&dump->json, dump->json_path);
        note(dump, &dump->json, dump->json_path);
    }
    wf_writer_discard(&dump->pickle);
    wf_writer_discard(&dump->json);
}
