/* onesided.c - put, get, signals and their order: check, then the plugin's table. */
#include "symm.h"

#include "comm/recording.h"
#include "kit/signals.h"
#include "weft/status.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- arguments ---- */

/* Fails unless SYMM can be used now. */
static weft_status enter(const weft_symm *symm, const char *what)
{
    WF_TRY(wf_symm_check(symm, what));
    if (symm->comm->group_depth > 0)
        return wf_fail(
            WEFT_ERR_INVALID,
            "%s on %s: the call is not allowed inside a call group; call weft_group_end first",
            what, symm->comm->name);
    if (wf_comm_has_failed(symm->symm_comm)) return wf_comm_cause(symm->symm_comm);
    return WEFT_OK;
}

static weft_status check_peer(const weft_symm *symm, const char *what, int32_t peer)
{
    if (peer >= 0 && peer < symm->comm->size) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s on %s: peer is %d; the ranks are 0 to %d", what,
                   symm->comm->name, peer, symm->comm->size - 1);
}

static weft_status check_channel(const weft_symm *symm, const char *what, uint32_t channel)
{
    if (channel < symm->channels) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s on %s: channel is %" PRIu32 "; the channels are 0 to %" PRIu32, what,
                   symm->comm->name, channel, symm->channels - 1);
}

static weft_status check_op(const weft_symm *symm, const char *what, uint32_t op)
{
    if (op == WEFT_SIGNAL_SET || op == WEFT_SIGNAL_ADD) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s on %s: op is %" PRIu32
                   "; expected WEFT_SIGNAL_SET (%d) or WEFT_SIGNAL_ADD (%d)",
                   what, symm->comm->name, op, WEFT_SIGNAL_SET, WEFT_SIGNAL_ADD);
}

static weft_status check_compare(const weft_symm *symm, const char *what, uint32_t compare)
{
    if (compare <= WEFT_COMPARE_LT) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s on %s: compare is %" PRIu32 "; the comparisons are 0 to %d", what,
                   symm->comm->name, compare, WEFT_COMPARE_LT);
}

/* With WEFT_CHECK: can the device reach BYTES at MEMORY, and do they lie in one allocation? */
static weft_status check_reach(const weft_symm *symm, const char *what, const void *memory,
                               uint64_t bytes)
{
    weft_pointer_info info = {.struct_size = sizeof info};
    uint64_t offset;
    weft_status status;

    status = symm->plugin->device->query_pointer(symm->device, memory, &info);
    if (status != WEFT_OK) return wf_fail_context(status, "%s on %s", what, symm->comm->name);
    if (info.kind == WEFT_MEMORY_HOST && !symm->host_memory)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s on %s: %p is plain host memory; use memory from weft_alloc", what,
                       symm->comm->name, memory);
    offset = (uint64_t)((uintptr_t)memory - (uintptr_t)info.base);
    if (info.base == NULL || info.bytes == 0) return WEFT_OK; /* the device does not know */
    if (offset <= info.bytes && bytes <= info.bytes - offset) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s on %s: %" PRIu64 " bytes at %p reach outside their allocation of %" PRIu64
                   " bytes at %p",
                   what, symm->comm->name, bytes, memory, info.bytes, info.base);
}

/* BYTES between OFFSET of PEER's memory and this rank's own MEMORY, the argument NAME. */
static weft_status check_move(const weft_symm *symm, const char *what, int32_t peer,
                              uint64_t offset, const char *name, const void *memory, uint64_t bytes)
{
    WF_TRY(check_peer(symm, what, peer));
    if (offset > symm->bytes || bytes > symm->bytes - offset)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s on %s: %" PRIu64 " bytes at offset %" PRIu64
                       " reach beyond the memory, which has %" PRIu64 " bytes on each rank",
                       what, symm->comm->name, bytes, offset, symm->bytes);
    if (bytes == 0) return WEFT_OK;
    if (memory == NULL)
        return wf_fail(WEFT_ERR_INVALID, "%s on %s: %s of %" PRIu64 " bytes is NULL", what,
                       symm->comm->name, name, bytes);
    return symm->comm->context->config->check ? check_reach(symm, what, memory, bytes) : WEFT_OK;
}

/* Turn the plugin's status into the caller's. */
static weft_status leave(const weft_symm *symm, const char *what, weft_status status)
{
    return status == WEFT_OK ? WEFT_OK : wf_comm_fault(symm->symm_comm, status, what);
}

/* The same where work was put on STREAM. */
static weft_status posted(const weft_symm *symm, const char *what, const weft_stream *stream,
                          weft_status status)
{
    if (status != WEFT_OK) return wf_comm_fault(symm->symm_comm, status, what);
    wf_posts_add_onesided(symm->symm_comm, stream);
    return WEFT_OK;
}

/* ---- moving ---- */

weft_status weft_symm_put_to(weft_symm *symm, const void *source, int32_t peer, uint64_t offset,
                             uint64_t bytes, weft_stream *given)
{
    static const char what[] = "weft_symm_put_to";
    void *stream;

    WF_TRY(enter(symm, what));
    WF_TRY(check_move(symm, what, peer, offset, "source", source, bytes));
    WF_TRY(wf_symm_stream(symm, what, given, &stream));
    return posted(symm, what, given,
                  symm->table->put(symm->window, offset, source, bytes, peer, stream));
}

weft_status weft_symm_get_from(weft_symm *symm, int32_t peer, uint64_t offset, void *target,
                               uint64_t bytes, weft_stream *given)
{
    static const char what[] = "weft_symm_get_from";
    void *stream;

    WF_TRY(enter(symm, what));
    WF_TRY(check_move(symm, what, peer, offset, "target", target, bytes));
    WF_TRY(wf_symm_stream(symm, what, given, &stream));
    return posted(symm, what, given,
                  symm->table->get(symm->window, target, offset, bytes, peer, stream));
}

weft_status weft_symm_put_signal_to(weft_symm *symm, const void *source, int32_t peer,
                                    uint64_t offset, uint64_t bytes, uint32_t channel,
                                    uint64_t value, enum weft_signal_op op, weft_stream *given)
{
    static const char what[] = "weft_symm_put_signal_to";
    void *stream;

    WF_TRY(enter(symm, what));
    WF_TRY(check_move(symm, what, peer, offset, "source", source, bytes));
    WF_TRY(check_channel(symm, what, channel));
    WF_TRY(check_op(symm, what, op));
    WF_TRY(wf_symm_stream(symm, what, given, &stream));
    return posted(symm, what, given,
                  symm->table->put_signal(symm->window, offset, source, bytes,
                                          wf_symm_index(symm, channel, symm->comm->rank), value, op,
                                          peer, stream));
}

/* ---- signals ---- */

weft_status weft_symm_signal_to(weft_symm *symm, int32_t peer, uint32_t channel, uint64_t value,
                                enum weft_signal_op op, weft_stream *given)
{
    static const char what[] = "weft_symm_signal_to";
    void *stream;

    WF_TRY(enter(symm, what));
    WF_TRY(check_peer(symm, what, peer));
    WF_TRY(check_channel(symm, what, channel));
    WF_TRY(check_op(symm, what, op));
    WF_TRY(wf_symm_stream(symm, what, given, &stream));
    return posted(symm, what, given,
                  symm->table->signal(symm->window, wf_symm_index(symm, channel, symm->comm->rank),
                                      value, op, peer, stream));
}

/* A wait that failed before the call returned. */
static weft_status wait_failed(weft_symm *symm, const struct wf_symm_wait *wait, weft_status status,
                               int64_t timeout_ns)
{
    struct wf_text words = {0}, text = {0};

    wf_symm_print_wait(symm, wait, &words);
    if (status == WEFT_ERR_TIMEOUT) {
        wf_text_add(&text, "weft_symm_wait_from on %s: rank %d waited %.3f s for %s",
                    symm->comm->name, symm->comm->context->rank, (double)timeout_ns * 1e-9,
                    words.data);
        wf_comm_fail(symm->symm_comm, status, text.failed ? "out of memory" : text.data);
        wf_symm_report(symm->symm_comm, status, text.failed ? "out of memory" : text.data);
        status = wf_comm_cause(symm->symm_comm);
    } else {
        wf_text_add(&text, "weft_symm_wait_from for %s", words.data);
        status =
            wf_comm_fault(symm->symm_comm, status, text.failed ? "weft_symm_wait_from" : text.data);
    }
    wf_text_free(&words);
    wf_text_free(&text);
    return status;
}

weft_status weft_symm_wait_from(weft_symm *symm, int32_t peer, uint32_t channel,
                                enum weft_compare compare, uint64_t value, int64_t timeout_ns,
                                weft_stream *given)
{
    static const char what[] = "weft_symm_wait_from";
    struct wf_symm_wait wait = {given, value, channel, compare, peer};
    void *stream;
    weft_status status;

    WF_TRY(enter(symm, what));
    WF_TRY(check_peer(symm, what, peer));
    WF_TRY(check_channel(symm, what, channel));
    WF_TRY(check_compare(symm, what, compare));
    if (timeout_ns < WEFT_FOREVER)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s on %s: timeout_ns is %" PRId64
                       "; it must be 0, positive or WEFT_FOREVER",
                       what, symm->comm->name, timeout_ns);
    if (timeout_ns == 0) timeout_ns = symm->comm->timeout_ns;
    WF_TRY(wf_symm_stream(symm, what, given, &stream));
    if (given != NULL || !symm->symm_comm->done_on_return) wf_symm_note_wait(symm, &wait);
    status = symm->table->wait_signal(symm->window, wf_symm_index(symm, channel, peer), compare,
                                      value, timeout_ns, stream);
    if (status != WEFT_OK) return wait_failed(symm, &wait, status, timeout_ns);
    wf_posts_add_onesided(symm->symm_comm, given);
    return WEFT_OK;
}

static weft_status read_slot(const weft_symm *symm, uint32_t channel, int32_t from, uint64_t *out)
{
    const uint64_t *pad = symm->handle.signals[symm->comm->rank];

    return wf_device_read_u64(symm->comm->context, &pad[wf_symm_index(symm, channel, from)],
                              symm->comm->timeout_ns, out);
}

weft_status weft_symm_test_from(weft_symm *symm, int32_t peer, uint32_t channel,
                                enum weft_compare compare, uint64_t value)
{
    static const char what[] = "weft_symm_test_from";
    weft_status status = WEFT_OK;
    uint64_t now = 0;

    WF_TRY(enter(symm, what));
    WF_TRY(check_peer(symm, what, peer));
    WF_TRY(check_channel(symm, what, channel));
    WF_TRY(check_compare(symm, what, compare));
    if (symm->host_memory)
        now = wf_symm_slot(symm, channel, peer);
    else
        status = read_slot(symm, channel, peer, &now);
    if (status != WEFT_OK) return leave(symm, what, status);
    return kit_signal_matches(now, compare, value) ? WEFT_OK : WEFT_IN_PROGRESS;
}

/* ---- order ---- */

weft_status weft_symm_fence(weft_symm *symm, weft_stream *given)
{
    static const char what[] = "weft_symm_fence";
    void *stream;

    WF_TRY(enter(symm, what));
    WF_TRY(wf_symm_stream(symm, what, given, &stream));
    return posted(symm, what, given, symm->table->fence(symm->window, stream));
}

weft_status weft_symm_quiet(weft_symm *symm, weft_stream *given)
{
    static const char what[] = "weft_symm_quiet";
    void *stream;

    WF_TRY(enter(symm, what));
    WF_TRY(wf_symm_stream(symm, what, given, &stream));
    return posted(symm, what, given, symm->table->quiet(symm->window, stream));
}

weft_status weft_symm_barrier(weft_symm *symm, weft_stream *given)
{
    static const char what[] = "weft_symm_barrier";
    struct wf_submitted record = {NULL, 0};
    struct wf_trace *trace;
    weft_status status;
    weft_comm *symm_comm;
    void *stream;

    WF_TRY(enter(symm, what));
    symm_comm = symm->symm_comm;
    WF_TRY(wf_symm_stream(symm, what, given, &stream));
    if (symm->comm->compares) {
        status = wf_comm_compare(symm->comm, WF_RECENT_SYMM_BARRIER,
                                 &(struct wf_call_identity){.plan = symm->number});
        if (status != WEFT_OK) return wf_comm_fault(symm->comm, status, what);
    }
    if (!wf_comm_may_begin(symm_comm)) return wf_comm_fail_limited(symm_comm);
    wf_recent_add(&symm_comm->recent, WF_RECENT_SYMM_BARRIER, 0, 0, -1, 0);
    trace = atomic_load_explicit(&symm_comm->tracing, memory_order_relaxed);
    if (trace != NULL) record = wf_record_symm_barrier(trace, symm_comm, given);
    status = posted(symm, what, given, symm->table->barrier(symm->window, stream));
    if (trace != NULL) wf_trace_return(trace);
    if (status != WEFT_OK) return trace != NULL ? wf_trace_fail(trace, record, status) : status;
    if (!wf_comm_is_inline(symm_comm, given)) {
        if (trace != NULL) wf_record_post(symm_comm, given, record);
        return WEFT_OK;
    }
    wf_recent_finish(&symm_comm->recent);
    if (trace != NULL) wf_trace_finish(trace, record);
    return WEFT_OK;
}
