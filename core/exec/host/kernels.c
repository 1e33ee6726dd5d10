/* kernels.c - the kernel table that the core has for backends without one. */
#include "host.h"

#include "base/number.h"
#include "exec/context/kept.h"

#include <string.h>

enum { BLOCK = 4096 }; /* bytes; a multiple of every element */

/* Fill the first block from the host, and the rest from what is filled already. */
static weft_status fill(void *device, uint32_t dtype, uint64_t count, const void *value,
                        void *target, void *stream)
{
    const weft_context *context = device;
    const weft_device_table *table = context->plugin->device;
    size_t element = wf_dtype_bytes(dtype);
    uint64_t bytes = count * element, done = bytes < BLOCK ? bytes : BLOCK;
    _Alignas(16) char block[BLOCK];
    weft_status status, waited;

    for (uint64_t i = 0; i < done; i += element)
        memcpy(block + i, value, element);
    status = table->copy(context->device, target, block, done, stream);
    while (status == WEFT_OK && done < bytes) {
        uint64_t more = bytes - done < done ? bytes - done : done;

        status = table->copy(context->device, (char *)target + done, target, more, stream);
        done += more;
    }
    waited = wf_host_wait(context, stream); /* the stream reads BLOCK, also after an error */
    return status != WEFT_OK ? status : waited;
}

enum { CAST_BLOCK = 2048, CAST_ELEMENT = 8 }; /* elements, and bytes of the largest one */

/* Cast in blocks, because the device's memory is out of the host's reach. */
static weft_status cast_staged(const weft_context *context, uint32_t from, uint32_t to,
                               uint64_t count, const char *source, char *target, void *stream)
{
    const weft_device_table *table = context->plugin->device;
    size_t in = wf_dtype_bytes(from), out = wf_dtype_bytes(to), block = CAST_BLOCK * CAST_ELEMENT;
    char *given = wf_alloc(2 * block), *made;
    weft_status status = WEFT_OK, waited;

    if (given == NULL) return wf_fail_memory(2 * block);
    made = given + block;
    for (uint64_t at = 0; status == WEFT_OK && at < count; at += CAST_BLOCK) {
        uint64_t some = count - at < CAST_BLOCK ? count - at : CAST_BLOCK;

        status = table->copy(context->device, given, source + at * in, some * in, stream);
        waited = wf_host_wait(context, stream); /* the stream writes GIVEN, also after an error */
        if (status == WEFT_OK) status = waited;
        if (status != WEFT_OK) break;
        wf_elements_cast(from, to, given, made, (size_t)some);
        status = table->copy(context->device, target + at * out, made, some * out, stream);
        waited = wf_host_wait(context, stream);
        if (status == WEFT_OK) status = waited;
    }
    wf_free(given);
    return status;
}

weft_status wf_host_cast(void *device, uint32_t from, uint32_t to, uint64_t count,
                         const void *source, void *target, void *stream)
{
    const weft_context *context = device;

    if ((context->features & WEFT_FEATURE_HOST_MEMORY) == 0)
        return cast_staged(context, from, to, count, source, target, stream);
    WF_TRY(wf_host_wait(context, stream));
    wf_elements_cast(from, to, source, target, (size_t)count);
    return WEFT_OK;
}

static const weft_kernel_table host_kernels = {
    .struct_size = sizeof host_kernels,
    .signature = WEFT_KERNEL_SIGNATURE,
    .regions_create = wf_host_list_create,
    .regions_destroy = wf_host_list_destroy,
    .regions_copy = wf_host_list_copy,
    .cast = wf_host_cast,
    .fill = fill,
};

bool wf_host_is_needed(const weft_context *context)
{
    const weft_kernel_table *kernel = context->plugin->kernel;

    return kernel == NULL || !WF_HAS(kernel, regions_create);
}

const weft_kernel_table *wf_kernels_of(const weft_context *context)
{
    return wf_host_is_needed(context) ? &host_kernels : context->plugin->kernel;
}

void *wf_kernels_device(weft_context *context)
{
    return wf_host_is_needed(context) ? context : context->device;
}

weft_status wf_host_wait(const weft_context *context, void *stream)
{
    return context->plugin->device->stream_wait(context->device, stream, WEFT_FOREVER);
}

weft_status wf_host_memory_take(const weft_context *context, uint64_t bytes, void **out)
{
    return context->plugin->device->allocate(context->device, bytes, WEFT_MEMORY_PINNED, out);
}

void wf_host_memory_give(const weft_context *context, void *pointer)
{
    if (pointer != NULL && context->plugin->device->free(context->device, pointer) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "host memory was not freed: %s", weft_last_error());
}

void wf_host_log_notice(const weft_context *context)
{
    const weft_kernel_table *kernel = context->plugin->kernel;
    const char *name = context->plugin->name;

    if (atomic_exchange(&wf_exec_state(context)->host_logged, true)) return;
    if (!wf_host_is_needed(context))
        wf_log(WF_LOG_NOTICE,
               "backend %s has no %s: redistributions that reduce copy contributions to host "
               "memory, where weft reduces them, and back",
               name,
               WF_HAS(kernel, regions_reduce) ? "kernels for reductions"
                                              : "regions_reduce in its kernel table");
    else if ((context->features & WEFT_FEATURE_HOST_MEMORY) != 0)
        wf_log(WF_LOG_NOTICE,
               "backend %s has no kernel table: weft packs, unpacks and reduces on the host; every "
               "redistribution waits for its stream",
               name);
    else
        wf_log(
            WF_LOG_NOTICE,
            "backend %s has no kernel table: weft packs, unpacks and reduces in host memory; "
            "every redistribution copies its data to the host and back, and waits for its stream",
            name);
}

void wf_host_log_casts(const weft_context *context)
{
    bool reaches = (context->features & WEFT_FEATURE_HOST_MEMORY) != 0;

    if (atomic_exchange(&wf_exec_state(context)->casts_logged, true)) return;
    wf_log(WF_LOG_NOTICE,
           "backend %s has no kernels for casts: weft casts %s; redistributions that cast %s",
           context->plugin->name, reaches ? "on the host" : "in host memory",
           reaches ? "wait for their stream"
                   : "copy their data to the host and back, and wait for their stream");
}
