/* staged.c - the kernel of attention.c for any backend: tensors of a device are copied to host
 * memory and back. */
#include "attention.h"

#include "base/base.h"

#include <stdlib.h>

/* One tensor of a call. */
struct staged {
    weft_cp_local *local;
    int64_t heads, count, depth;
    size_t element;
    bool is_written;
    void *device, *host;
};

/* Bytes from the first element to the last one. */
static size_t bytes_of(const weft_cp_call *call, const struct staged *s)
{
    const weft_cp_local *l = s->local;
    int64_t last = (call->batch - 1) * l->batch + (s->heads - 1) * l->head +
                   (s->count - 1) * l->sequence + s->depth - 1;

    return s->device == NULL || s->count == 0 ? 0 : (size_t)(last + 1) * s->element;
}

static weft_status stage(const weft_cp_call *call, struct staged *s)
{
    size_t bytes = bytes_of(call, s);

    s->host = malloc(bytes + 1);
    if (s->host == NULL) return weft_fail(WEFT_ERR_NO_MEMORY, "no memory for a tensor");
    s->local->memory = s->host;
    if (bytes == 0) return WEFT_OK;
    return weft_memory_copy(call->context, s->device, s->host, bytes, call->stream);
}

/* Post the copy of a result. */
static weft_status unstage(const weft_cp_call *call, const struct staged *s)
{
    size_t bytes = bytes_of(call, s);

    if (!s->is_written || bytes == 0) return WEFT_OK;
    return weft_memory_copy(call->context, s->host, s->device, bytes, call->stream);
}

static weft_status attend_copies(weft_cp_call *call)
{
    const weft_cp_problem *p = call->problem;
    size_t element = weft_dtype_bytes((enum weft_dtype)call->dtype);
    int64_t heads = call->heads, key_heads = call->key_heads, depth = call->depth;
    struct staged all[] = {
        {&call->q, heads, p->queries, depth, element, false, NULL, NULL},
        {&call->k, key_heads, p->keys, depth, element, false, NULL, NULL},
        {&call->v, key_heads, p->keys, depth, element, false, NULL, NULL},
        {&call->out, heads, p->queries, depth, element, !call->backward, NULL, NULL},
        {&call->lse, heads, p->queries, 1, sizeof(float), !call->backward, NULL, NULL},
        {&call->d_out, heads, p->queries, depth, element, false, NULL, NULL},
        {&call->d_q, heads, p->queries, depth, element, call->backward, NULL, NULL},
        {&call->d_k, key_heads, p->keys, depth, element, call->backward, NULL, NULL},
        {&call->d_v, key_heads, p->keys, depth, element, call->backward, NULL, NULL},
    };
    const size_t count = sizeof all / sizeof all[0];
    weft_status status = WEFT_OK;

    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        all[i].device = all[i].local->memory;
        status = stage(call, &all[i]);
    }
    if (status == WEFT_OK) status = weft_context_wait(call->context, call->stream, WEFT_FOREVER);
    if (status == WEFT_OK) status = attend(NULL, call);
    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        status = unstage(call, &all[i]);
    if (status == WEFT_OK) status = weft_context_wait(call->context, call->stream, WEFT_FOREVER);
    for (size_t i = 0; i < count; i++)
        free(all[i].host);
    return status;
}

weft_status attend_anywhere(void *user, const weft_cp_call *call)
{
    weft_device_info info = {.struct_size = sizeof info};
    weft_cp_call copy = *call;

    WF_TRY(weft_device_get(call->context, &info));
    if ((info.features & WEFT_FEATURE_HOST_MEMORY) != 0) return attend(user, call);
    return attend_copies(&copy);
}
