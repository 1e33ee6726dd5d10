/* dump.c - when a rank is written.  Nothing here is for signal handlers. */
#include "dump.h"

#include "trace/rank_file.h"
#include "weft/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define APART_NS 5000000000 /* between dumps of failures */

/* NAME names PREFIX in the error. */
static weft_status check_prefix(const char *name, const char *prefix)
{
    if (prefix[strlen(prefix) - 1] != '/') return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s is \"%.1000s\", a folder; it must be the beginning of the names of files in "
                   "it, such as \"%.1000sdump\"",
                   name, prefix, prefix);
}

weft_status wf_dump_call(struct wf_trace *trace, const char *prefix)
{
    struct wf_dump *dump;
    weft_status status = WEFT_OK;

    if (prefix == NULL || prefix[0] == '\0') prefix = trace->dump_prefix;
    if (prefix == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_dump: prefix is NULL or empty, and WEFT_DUMP is not set");
    WF_TRY(check_prefix("weft_dump: prefix", prefix));
    dump = wf_alloc(sizeof *dump);
    if (dump == NULL) return wf_fail_memory(sizeof *dump);
    wf_dump_write(dump, trace, prefix);
    if (dump->error != 0)
        status = wf_fail(WEFT_ERR_SYSTEM, "weft_dump: %.1000s cannot be written: %s",
                         dump->error_path, kit_error_text(dump->error));
    wf_free(dump);
    return status;
}

/* Write a failure to files.  Returns the dump to tell of; NULL: there is nothing to tell. */
static struct wf_dump *write_failure(struct wf_trace *trace)
{
    struct wf_dump *dump = wf_alloc(sizeof *dump);

    if (dump == NULL) return NULL;
    wf_dump_write(dump, trace, trace->dump_prefix);
    if (dump->error == 0) return dump;
    if (!trace->dump_has_failed) {
        trace->dump_has_failed = true;
        return dump;
    }
    wf_free(dump);
    return NULL;
}

static void warn(const char *path, int error)
{
    wf_log(
        WF_LOG_WARNING,
        "WEFT_DUMP: %.1000s cannot be written: %s; this rank writes no dump, and the job goes on",
        path, kit_error_text(error));
}

static void tell(const struct wf_dump *dump)
{
    if (dump->error == 0)
        wf_log(WF_LOG_NOTICE, "the last %" PRIu64 " operations of rank %d are in %s and %s",
               dump->last + 1 - dump->first, dump->trace->segment->rank, dump->pickle_path,
               dump->json_path);
    else
        warn(dump->error_path, dump->error);
}

bool wf_dump_is_wanted(const struct wf_trace *trace)
{
    return trace != NULL && trace->dump_prefix != NULL;
}

void wf_dump_ask(struct wf_trace *trace)
{
    atomic_store(&trace->dump_due, true);
}

void wf_dump_if_due(struct wf_trace *trace)
{
    struct wf_dump *written = NULL;

    if (trace->dump_prefix == NULL || !atomic_load(&trace->dump_due)) return;
    pthread_mutex_lock(&trace->dump_lock);
    if (atomic_load(&trace->dump_due) &&
        (trace->dumped_ns == 0 || wf_now_ns() - trace->dumped_ns >= APART_NS)) {
        written = write_failure(trace);
        trace->dumped_ns = wf_now_ns();
        atomic_store(&trace->dump_due, false);
    }
    pthread_mutex_unlock(&trace->dump_lock);
    if (written != NULL) tell(written); /* unlocked: the program's sink may be slow */
    wf_free(written);
}

/* Say at once if the folder of the dumps cannot be written. */
static void check_folder(struct wf_trace *trace, const char *prefix)
{
    char path[WF_DUMP_PATH], folder[WF_DUMP_PATH];
    char *slash;

    if (!wf_rank_file_name(prefix, trace->segment->rank, path, sizeof path)) return;
    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash != NULL) slash[slash == folder] = '\0';
    if (access(slash != NULL ? folder : ".", W_OK | X_OK) == 0) return;
    trace->dump_has_failed = true;
    warn(path, errno);
}

weft_status wf_dump_begin(struct wf_trace *trace, const char *prefix)
{
    if (prefix == NULL || prefix[0] == '\0') return WEFT_OK;
    WF_TRY(check_prefix("weft_init: WEFT_DUMP", prefix));
    check_folder(trace, prefix);
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
