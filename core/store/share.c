/* share.c - steps of loading and saving that all ranks take together. */
#include "store.h"

#include <stdio.h>
#include <string.h>

/* What differs; NULL if nothing does. */
static const char *difference(const struct wf_store_digest *a, const struct wf_store_digest *b)
{
    return a->path != b->path         ? "paths"
           : a->tensors != b->tensors ? "tensors, or with the same in another order"
           : a->layouts != b->layouts ? "layouts or dtypes"
           : a->options != b->options ? "options"
                                      : NULL;
}

void wf_store_begin(struct wf_store_call *call, weft_context *context,
                    enum weft_operation operation, const char *function)
{
    *call = (struct wf_store_call){.context = context, .function = function};
    call->record = wf_record_creation(context->world, operation, function, NULL, 0);
    call->sequence = context->world->common_creations;
}

void wf_store_set_bytes(const struct wf_store_call *call, uint64_t bytes)
{
    wf_record_set_bytes(call->record, bytes);
}

weft_status wf_store_end(const struct wf_store_call *call, weft_status status)
{
    return wf_record_created(call->context->world, call->record, status);
}

weft_status wf_store_compare(struct wf_store_call *call, const char *what, weft_status status,
                             const struct wf_store_digest *digest)
{
    struct wf_store_digest first = *digest, other = *digest;
    weft_comm *world = call->context->world;
    struct wf_gathered got = {0};

    status =
        wf_comm_agree(world, call->function, status, (weft_blob){digest, sizeof *digest}, &got);
    if (status != WEFT_OK) return wf_fail_named(status, call->function);
    call->number = got.serial;
    for (int32_t i = 0; i < got.count && status == WEFT_OK; i++) {
        const char *differs = "versions of weft";
        if (got.blobs[i].bytes == sizeof other) {
            memcpy(&other, got.blobs[i].data, sizeof other);
            if (i == 0) first = other;
            differs = difference(&first, &other);
        }
        if (differs != NULL)
            status = wf_fail(WEFT_ERR_MISMATCH, "%s: rank 0 and rank %d %s with different %s",
                             call->function, i, what, differs);
    }
    wf_gathered_free(&got);
    return status;
}

/* ---- steps of any length ---- */

static struct wf_agreement step_of(const struct wf_store_call *call)
{
    struct wf_agreement agreement = wf_agreement_of(call->context->world, call->function);

    agreement.number = call->number;
    agreement.is_long = true;
    return agreement;
}

weft_status wf_store_meet(const struct wf_store_call *call, weft_status status, uint64_t value,
                          uint64_t *sum)
{
    struct wf_agreement agreement = step_of(call);
    struct wf_gathered got = {0};

    status = wf_agree(call->context, &agreement, status, (weft_blob){&value, sizeof value}, &got);
    if (status != WEFT_OK) return wf_fail_named(status, call->function);
    *sum = 0;
    for (int32_t i = 0; i < got.count; i++) {
        uint64_t theirs = 0;
        if (got.blobs[i].bytes == sizeof theirs) memcpy(&theirs, got.blobs[i].data, sizeof theirs);
        *sum += theirs;
    }
    wf_gathered_free(&got);
    return WEFT_OK;
}

void wf_store_goes_on(struct wf_store_call *call)
{
    struct wf_agreement agreement = step_of(call);
    uint64_t before = atomic_load(&call->noted_ns), now = wf_now_ns();

    if (agreement.timeout_ns < 0 || now - before < (uint64_t)agreement.timeout_ns / WF_NOTES ||
        !atomic_compare_exchange_strong(&call->noted_ns, &before, now))
        return;
    wf_agree_note(call->context, &agreement);
}

weft_status wf_store_check(const weft_context *context, const char *function)
{
    WF_TRY(wf_context_check(context, function));
    if (!context->is_simulated) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "%s: the ranks of this context are simulated; only real ranks load and save",
                   function);
}
