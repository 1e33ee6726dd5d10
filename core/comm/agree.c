/* agree.c - one step that all ranks of a list take together. */
#include "comm.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

/* A list of one, or of ranks that are simulated, agrees with itself; its serials cannot meet the
 * server's or another rank's. */
static weft_status agree_alone(weft_context *context, weft_blob blob, struct wf_gathered *out)
{
    struct wf_gathered got = {.count = 1};

    got.blobs = wf_alloc(sizeof *got.blobs);
    if (got.blobs == NULL) return wf_fail_memory(sizeof *got.blobs);
    wf_text_append(&got.bytes, blob.data, (size_t)blob.bytes);
    if (got.bytes.failed) {
        wf_gathered_free(&got);
        return wf_fail_memory((size_t)blob.bytes);
    }
    got.blobs[0] = (weft_blob){got.bytes.data, blob.bytes};
    got.serial = (uint64_t)(context->rank + 1) << WF_SOLO_SHIFT |
                 (atomic_fetch_add(&context->solo_serial, 1) + 1);
    *out = got;
    return WEFT_OK;
}

/* The time limit passed, and ranks may be at different steps now.  COMM fails on all its ranks, so
 * that no later call pairs with this one. */
static weft_status give_up(weft_context *context, const struct wf_agreement *agreement)
{
    weft_comm *comm = agreement->comm;
    char text[1024];

    snprintf(text, sizeof text, "%s", weft_last_error());
    if (comm == NULL) {
        wf_client_report(context->client, 0, agreement->ranks, agreement->count, WEFT_ERR_TIMEOUT,
                         text, 0);
        return wf_fail(WEFT_ERR_TIMEOUT, "%s", text);
    }
    wf_comm_fail(comm, WEFT_ERR_TIMEOUT, text);
    atomic_store(&comm->parted, true);
    wf_client_report(context->client, comm->number, comm->world_ranks, comm->size, WEFT_ERR_TIMEOUT,
                     text, 0);
    return wf_comm_cause(comm);
}

/* True if the communicator of the step has failed.  Called with locks held. */
static bool has_ended(const void *self)
{
    const struct wf_agreement *agreement = self;
    weft_comm *comm = agreement->comm;
    weft_status cause;

    if (comm == NULL) return false;
    cause = atomic_load_explicit(&comm->cause, memory_order_acquire);
    return atomic_load_explicit(&comm->parted, memory_order_acquire) || wf_comm_is_doomed(comm) ||
           (cause != WEFT_OK && !(agreement->despite_peer && cause == WEFT_ERR_PEER));
}

/* This rank does not take the step, because COMM has failed.  The ranks that wait for it may not
 * know the cause, unless it is one that every rank gets. */
static weft_status refuse(weft_comm *comm)
{
    weft_status cause = wf_comm_cause(comm);
    char text[1024];

    if (cause == WEFT_ERR_PEER || cause == WEFT_ERR_TIMEOUT || cause == WEFT_ERR_ABORTED ||
        comm->size == 1 || atomic_exchange(&comm->parted, true))
        return cause;
    snprintf(text, sizeof text, "%.900s (reported by rank %d)", weft_last_error(),
             comm->context->rank);
    wf_client_report(comm->context->client, comm->number, comm->world_ranks, comm->size,
                     cause == WEFT_ERR_MISMATCH ? cause : WEFT_ERR_PEER, text, 0);
    return wf_comm_cause(comm);
}

weft_status wf_agree(weft_context *context, const struct wf_agreement *agreement,
                     weft_status status, weft_blob blob, struct wf_gathered *out)
{
    char text[1600];
    struct wf_contribution mine = {.comm = agreement->number,
                                   .ranks = agreement->ranks,
                                   .count = agreement->count,
                                   .label = agreement->label,
                                   .timeout_ns = agreement->timeout_ns,
                                   .status = status,
                                   .text = text,
                                   .blob = blob,
                                   .is_long = agreement->is_long,
                                   .ended = has_ended,
                                   .self = agreement};

    if (has_ended(agreement)) return refuse(agreement->comm);
    if (mine.count == 1 || context->is_simulated)
        return status != WEFT_OK ? status : agree_alone(context, blob, out);
    snprintf(text, sizeof text, "%s", status != WEFT_OK ? weft_last_error() : "");
    if (status != WEFT_OK) mine.blob = (weft_blob){"", 0};
    status = wf_client_gather(context->client, &mine, out);
    if (status == WEFT_ERR_TIMEOUT) return give_up(context, agreement);
    /* The cause may have come before this error, which may be a consequence of it. */
    return status != WEFT_OK && has_ended(agreement) ? refuse(agreement->comm) : status;
}

void wf_agree_note(weft_context *context, const struct wf_agreement *agreement)
{
    struct wf_contribution note = {.comm = agreement->number,
                                   .ranks = agreement->ranks,
                                   .count = agreement->count,
                                   .label = agreement->label,
                                   .timeout_ns = agreement->timeout_ns,
                                   .status = WEFT_IN_PROGRESS,
                                   .blob = {"", 0}};

    if (note.count > 1 && !context->is_simulated) wf_client_note(context->client, &note);
}

struct wf_agreement wf_agreement_of(weft_comm *comm, const char *label)
{
    return (struct wf_agreement){.comm = comm,
                                 .number = comm->number,
                                 .ranks = comm->world_ranks,
                                 .count = comm->size,
                                 .label = label,
                                 .timeout_ns = comm->timeout_ns};
}

weft_status wf_comm_agree(weft_comm *comm, const char *label, weft_status status, weft_blob blob,
                          struct wf_gathered *out)
{
    struct wf_agreement agreement = wf_agreement_of(comm, label);

    return wf_agree(comm->context, &agreement, status, blob, out);
}
