/* dump.c - when a rank is written.  Nothing here is for signal handlers. */
#include "dump.h"

#include "weft/status.h"

#include <inttypes.h>
#include <string.h>

#define APART_NS 5000000000 /* between dumps of failures */

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
        status = wf_fail(WEFT_ERR_SYSTEM, "weft_dump: %.1000s cannot be written: %s",
                         dump->error_path, strerror(dump->error));
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

static void tell(const struct wf_dump *dump)
{
    if (dump->error == 0)
        wf_log(WF_LOG_NOTICE, "the last %" PRIu64 " operations of rank %d are in %s and %s",
               dump->last + 1 - dump->first, dump->trace->segment->rank, dump->pickle_path,
               dump->json_path);
    else
        wf_log(WF_LOG_WARNING, "WEFT_DUMP: %.1000s cannot be written: %s", dump->error_path,
               strerror(dump->error));
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
    if (written != NULL) tell(written); /* unlocked: the program's sink may call weft */
    wf_free(written);
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
