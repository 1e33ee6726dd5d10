#include "mirror.h"

#include "base/base.h"
#include "weft/device.h"

#include <stdlib.h>

enum { MOST = 12 };

/* Bytes from the first to the last element. */
static uint64_t span_of(const weft_tensor_local *t)
{
    uint64_t last = 0;

    for (int32_t d = 0; d < t->shard->dims; d++)
        last += (uint64_t)(t->shard->shape[d] - 1) * (uint64_t)t->strides[d];
    return (last + 1) * weft_dtype_bytes(weft_spec_dtype(t->spec));
}

static weft_status to_host(const weft_op_run *run, const weft_tensor_local *from,
                           weft_tensor_local *out)
{
    *out = *from;
    if (from->memory == NULL) return WEFT_OK;
    out->memory = malloc(span_of(from));
    if (out->memory == NULL) return weft_fail(WEFT_ERR_NO_MEMORY, "no memory for a copy");
    return weft_memory_copy(run->context, from->memory, out->memory, span_of(from), run->stream);
}

weft_status mirror_kernel(void *user, const weft_op_run *run)
{
    const struct mirror *mirror = user;
    size_t inputs = run->input_count, count = inputs + run->output_count;
    weft_tensor_local host[MOST] = {{0}};
    weft_op_run here = *run;
    weft_status status =
        count <= MOST ? WEFT_OK : weft_fail(WEFT_ERR_INTERNAL, "a kernel has %zu tensors", count);

    here.inputs = host;
    here.outputs = host + inputs;
    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        status = to_host(run, i < inputs ? &run->inputs[i] : &run->outputs[i - inputs], &host[i]);
    if (status == WEFT_OK) status = weft_context_wait(run->context, run->stream, WEFT_FOREVER);
    if (status == WEFT_OK) status = mirror->kernel(mirror->user, &here);
    for (size_t i = inputs; i < count && status == WEFT_OK; i++)
        if (host[i].memory != NULL)
            status = weft_memory_copy(run->context, host[i].memory, run->outputs[i - inputs].memory,
                                      span_of(&host[i]), run->stream);
    if (status == WEFT_OK) status = weft_context_wait(run->context, run->stream, WEFT_FOREVER);
    for (uint32_t i = 0; i < count && i < MOST; i++)
        free(host[i].memory);
    return status;
}
