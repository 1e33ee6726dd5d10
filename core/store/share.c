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

weft_status wf_store_compare(weft_context *context, const char *function, const char *what,
                             weft_status status, const struct wf_store_digest *digest,
                             uint64_t *number)
{
    struct wf_gathered got = {0};
    struct wf_store_digest first = *digest, other = *digest;

    status =
        wf_comm_agree(context->world, function, status, (weft_blob){digest, sizeof *digest}, &got);
    if (status != WEFT_OK) return wf_fail_named(status, function);
    *number = got.serial;
    for (int32_t i = 0; i < got.count && status == WEFT_OK; i++) {
        const char *differs = "versions of weft";
        if (got.blobs[i].bytes == sizeof other) {
            memcpy(&other, got.blobs[i].data, sizeof other);
            if (i == 0) first = other;
            differs = difference(&first, &other);
        }
        if (differs != NULL)
            status = wf_fail(WEFT_ERR_MISMATCH, "%s: rank 0 and rank %d %s with different %s",
                             function, i, what, differs);
    }
    wf_gathered_free(&got);
    return status;
}

weft_status wf_store_meet(weft_context *context, uint64_t number, const char *function,
                          weft_status status, uint64_t value, uint64_t *sum)
{
    struct wf_agreement agreement = wf_agreement_of(context->world, function);
    struct wf_gathered got = {0};

    agreement.number = number;
    agreement.timeout_ns = WEFT_FOREVER;
    status = wf_agree(context, &agreement, status, (weft_blob){&value, sizeof value}, &got);
    if (status != WEFT_OK) return wf_fail_named(status, function);
    *sum = 0;
    for (int32_t i = 0; i < got.count; i++) {
        uint64_t theirs = 0;
        if (got.blobs[i].bytes == sizeof theirs) memcpy(&theirs, got.blobs[i].data, sizeof theirs);
        *sum += theirs;
    }
    wf_gathered_free(&got);
    return WEFT_OK;
}

weft_status wf_store_check(const weft_context *context, const char *function)
{
    WF_TRY(wf_context_check(context, function));
    if (!context->is_simulated) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "%s: the ranks of this context are simulated; only real ranks load and save",
                   function);
}
