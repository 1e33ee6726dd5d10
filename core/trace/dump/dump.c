/* dump.c - the files of one rank: when they are written, and what they are called. */
#include "dump.h"

#include "weft/status.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define APART_NS 5000000000 /* between dumps of failures */

/* "a.%r" -> "a.3", "a" -> "a.3", with SUFFIX.  False if it is too long. */
static bool name_file(const char *prefix, int32_t rank, const char *suffix, char out[WF_DUMP_PATH])
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
        wf_phrase_add(&name, ".");
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

static void make_file(struct wf_dump *dump, const struct wf_encoding *encoding,
                      struct wf_writer *writer, const char *path)
{
    wf_writer_open(writer, path);
    wf_dump_encode(dump, encoding, writer);
    wf_writer_close(writer);
    note(dump, writer, path);
}

/* Both files are complete before one of them gets its name. */
void wf_dump_write(struct wf_dump *dump, const struct wf_trace *trace, const char *prefix)
{
    int32_t rank = trace->segment->rank;

    dump->error = 0;
    dump->error_path = dump->pickle_path;
    if (!name_file(prefix, rank, "", dump->pickle_path) ||
        !name_file(prefix, rank, ".json", dump->json_path)) {
        dump->error = ENAMETOOLONG;
        return;
    }
    wf_dump_look(dump, trace);
    make_file(dump, &wf_pickle, &dump->pickle, dump->pickle_path);
    make_file(dump, &wf_json, &dump->json, dump->json_path);
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

/* ---- not for signal handlers ---- */

weft_status wf_dump_call(struct wf_trace *trace, const char *prefix)
{
    struct wf_dump *dump;
    weft_status status = WEFT_OK;

    if (prefix == NULL || prefix[0] == '\0') prefix = trace->dump_prefix;
    if (prefix == NULL)
        return wf_fail(WEFT_ERR_INVALID, "weft_dump: prefix is NULL, and WEFT_DUMP is not set");
    dump = wf_alloc(sizeof *dump);
    if (dump == NULL) return wf_fail_memory(sizeof *dump);
    wf_dump_write(dump, trace, prefix);
    if (dump->error != 0)
        status = wf_fail(WEFT_ERR_SYSTEM, "weft_dump: %s cannot be written: %s", dump->error_path,
                         strerror(dump->error));
    wf_free(dump);
    return status;
}

void wf_dump_set_due(struct wf_trace *trace)
{
    atomic_store(&trace->dump_due, true);
}

/* Write a failure, and log where.  A warning is logged once. */
static void write_failure(struct wf_trace *trace)
{
    struct wf_dump *dump = wf_alloc(sizeof *dump);

    if (dump == NULL) return;
    wf_dump_write(dump, trace, trace->dump_prefix);
    if (dump->error == 0)
        wf_log(WF_LOG_NOTICE, "the last %" PRIu64 " operations of rank %d are in %s and %s",
               dump->last + 1 - dump->first, trace->segment->rank, dump->pickle_path,
               dump->json_path);
    else if (!trace->dump_has_failed)
        wf_log(WF_LOG_WARNING, "WEFT_DUMP: %s cannot be written: %s", dump->error_path,
               strerror(dump->error));
    if (dump->error != 0) trace->dump_has_failed = true;
    wf_free(dump);
}

void wf_dump_if_due(struct wf_trace *trace)
{
    if (trace->dump_prefix == NULL || !atomic_load(&trace->dump_due)) return;
    pthread_mutex_lock(&trace->dump_lock);
    if (atomic_load(&trace->dump_due) &&
        (trace->dumped_ns == 0 || wf_now_ns() - trace->dumped_ns >= APART_NS)) {
        write_failure(trace);
        trace->dumped_ns = wf_now_ns();
        atomic_store(&trace->dump_due, false);
    }
    pthread_mutex_unlock(&trace->dump_lock);
}

weft_status wf_dump_begin(struct wf_trace *trace, const char *prefix)
{
    if (prefix == NULL || prefix[0] == '\0') return WEFT_OK;
    trace->dump_prefix = wf_strdup(prefix);
    if (trace->dump_prefix == NULL) return wf_fail_memory(strlen(prefix) + 1);
    wf_signal_watch(trace);
    return WEFT_OK;
}

void wf_dump_end(struct wf_trace *trace)
{
    if (trace->dump_prefix == NULL) return;
    wf_signal_forget(trace);
    wf_free(trace->dump_prefix);
    trace->dump_prefix = NULL;
}
