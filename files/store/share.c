/* share.c - steps of loading and saving that all ranks take together. */
#include "store.h"

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
                    enum weft_record_operation operation, const char *function)
{
    *call = (struct wf_store_call){.context = context, .function = function};
    weft_record_begin(weft_world(context), operation, function, &call->record);
}

void wf_store_set_bytes(const struct wf_store_call *call, uint64_t bytes)
{
    weft_record_set_bytes(&call->record, bytes);
}

weft_status wf_store_end(const struct wf_store_call *call, weft_status status)
{
    return weft_record_end(&call->record, status);
}

void wf_store_free(struct wf_store_call *call)
{
    weft_answers_release(&call->compared);
}

weft_status wf_store_compare(struct wf_store_call *call, const char *what, weft_status status,
                             const struct wf_store_digest *digest)
{
    struct wf_store_digest first = *digest, other = *digest;
    weft_comm *world = weft_world(call->context);

    WF_TRY(
        weft_agree(world, call->function, status, digest, sizeof *digest, NULL, &call->compared));
    for (int32_t rank = 0; rank < weft_comm_size(world); rank++) {
        const char *differs = "versions of weft";
        if (weft_answers_bytes(call->compared, rank) == sizeof other) {
            memcpy(&other, weft_answers_data(call->compared, rank), sizeof other);
            if (rank == 0) first = other;
            differs = difference(&first, &other);
        }
        if (differs != NULL)
            return wf_fail(WEFT_ERR_MISMATCH, "%s: rank 0 and rank %d %s with different %s",
                           call->function, rank, what, differs);
    }
    return WEFT_OK;
}

/* ---- steps of any length ---- */

weft_status wf_store_meet(const struct wf_store_call *call, weft_status status, uint64_t value,
                          uint64_t *sum)
{
    weft_agree_options options = {.struct_size = sizeof options, .after = call->compared};
    weft_comm *world = weft_world(call->context);
    weft_answers *answers;

    WF_TRY(weft_agree(world, call->function, status, &value, sizeof value, &options, &answers));
    *sum = 0;
    for (int32_t rank = 0; rank < weft_comm_size(world); rank++) {
        uint64_t theirs = 0;
        if (weft_answers_bytes(answers, rank) == sizeof theirs)
            memcpy(&theirs, weft_answers_data(answers, rank), sizeof theirs);
        *sum += theirs;
    }
    weft_answers_release(&answers);
    return WEFT_OK;
}

void wf_store_goes_on(const struct wf_store_call *call)
{
    weft_agree_progress(call->compared, call->function);
}

weft_status wf_store_check(weft_context *context, const char *function)
{
    WF_TRY(weft_object_check(context, "weft_context", function, "context"));
    if (!weft_is_simulated(context)) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "%s: the ranks of this context are simulated; only real ranks load and save",
                   function);
}

weft_status wf_store_check_stream(const struct wf_store_call *call, weft_stream *stream)
{
    weft_status status = weft_context_wait(call->context, stream, 0);

    return status == WEFT_ERR_TIMEOUT ? WEFT_OK : wf_fail_named(status, call->function);
}
