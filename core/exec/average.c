/* average.c - reduces arrived contributions into the tensor.
 *
 * Some backends lack the kernels for averages or for all reductions, or lack them on this device.
 * Then the host reduces: contributions are copied to host memory, each
 * result replaces the first of its contributions and is copied back to the device, and from there
 * into the tensor. */
#include "bound.h"

#include "exec/host/host.h"

#include "base/number.h"

#include <string.h>

/* Contributions at the same place in the messages of all holders of a block. */
struct span {
    uint32_t block; /* first arrival */
    uint64_t first, elements;
};

struct wf_average {
    struct wf_arrival_kind kind;
    uint64_t count;
    struct span *spans;
    void *host; /* a copy of the staging */
    uint64_t bytes;
    const void **sources; /* room for the copies of one span's contributions */
    const char *staging;  /* memory of the current run that holds the arrived messages */
    const void *const *arrivals;
};

bool wf_average_is_own(const struct wf_arrival_kind *kind)
{
    return kind->reduction == WEFT_REDUCE_AVG && kind->holders > 1 &&
           (kind->dtype < WEFT_DTYPE_F16 || kind->divisor != kind->holders);
}

bool wf_average_is_native(const struct weft_bound *bound, const struct wf_arrival_kind *kind)
{
    return !wf_average_is_own(kind) || (bound->parent->averages >> kind->dtype & 1);
}

/* True if unpacking divides a sum of KIND by another number than that of its holders. */
static bool divides_otherwise(const struct wf_arrival_kind *kind)
{
    return kind->reduction == WEFT_REDUCE_AVG && kind->divisor != kind->holders;
}

/* Ask the backend with an empty list: a GPU plugin has no kernels for some devices. */
static weft_status ask_backend(const struct weft_bound *bound, const struct wf_arrival_kind *kind,
                               bool *out)
{
    enum { ASKED = 2 };
    const weft_kernel_table *kernel = bound->kernel;
    const void *sources[ASKED] = {NULL, NULL};
    void *list = NULL, *target = NULL;
    weft_status answer;

    WF_TRY(kernel->regions_create(bound->kernel_device, (uint32_t)wf_dtype_bytes(kind->dtype), 0,
                                  NULL, &list));
    if (divides_otherwise(kind))
        answer = kernel->regions_average(list, kind->dtype, ASKED, (uint32_t)kind->divisor, sources,
                                         &target, NULL);
    else
        answer = kernel->regions_reduce(list, kind->dtype, kind->reduction, ASKED, sources, &target,
                                        NULL);
    kernel->regions_destroy(list);
    *out = answer != WEFT_ERR_UNSUPPORTED;
    return WEFT_OK;
}

/* Set *OUT if the backend has a kernel for KIND.  If it cannot reduce, the log says so. */
static weft_status find_kernel(const struct weft_bound *bound, const struct wf_arrival_kind *kind,
                               bool *out)
{
    bool reduces = WF_HAS(bound->kernel, regions_reduce);

    *out = kind->holders == 1;
    if (*out) return WEFT_OK;
    if (reduces) {
        if (!wf_average_is_native(bound, kind)) return WEFT_OK;
        if (divides_otherwise(kind) && !WF_HAS(bound->kernel, regions_average)) return WEFT_OK;
        WF_TRY(ask_backend(bound, kind, out));
    }
    if (!*out) wf_host_log_notice(bound->context);
    return WEFT_OK;
}

weft_status wf_average_make(struct weft_bound *bound, const struct wf_arrival_kind *kind,
                            uint64_t count, const weft_region *regions, struct wf_average **out)
{
    struct wf_average *average;
    bool has_kernel;

    *out = NULL;
    if (bound->sized_only) return WEFT_OK; /* it has the same scratch either way */
    WF_TRY(find_kernel(bound, kind, &has_kernel));
    if (has_kernel) return WEFT_OK;
    average = wf_calloc(1, sizeof *average);
    if (average == NULL) return wf_fail_memory(sizeof *average);
    average->kind = *kind;
    average->count = count;
    average->spans = wf_calloc(count, sizeof *average->spans);
    average->sources = wf_calloc(kind->holders, sizeof *average->sources);
    if (average->spans == NULL || average->sources == NULL) {
        wf_average_free(bound, average);
        return wf_fail_memory(count * sizeof *average->spans +
                              kind->holders * sizeof *average->sources);
    }
    for (uint64_t i = 0; i < count; i++)
        average->spans[i] = (struct span){regions[i].source, (uint64_t)regions[i].source_offset,
                                          wf_region_elements(&regions[i])};
    *out = average;
    return WEFT_OK;
}

weft_status wf_average_give_room(struct weft_bound *bound, struct wf_average *average,
                                 uint64_t bytes)
{
    if (average == NULL || bytes == 0) return WEFT_OK;
    bound->averages_on_host = true;
    average->bytes = bytes;
    return wf_host_memory_take(bound->context, bytes, &average->host);
}

void wf_average_free(struct weft_bound *bound, struct wf_average *average)
{
    if (average == NULL) return;
    wf_host_memory_give(bound->context, average->host);
    wf_free(average->spans);
    wf_free(average->sources);
    wf_free(average);
}

static void average_span(const struct wf_average *average, const struct span *span)
{
    const struct wf_arrival_kind *kind = &average->kind;
    const void *const *arrivals = average->arrivals + span->block;
    char *first = (char *)average->host + span->first * wf_dtype_bytes(kind->dtype);
    struct wf_reduction r = {.dtype = kind->dtype,
                             .reduction = kind->reduction,
                             .size = kind->holders,
                             .divisor = (uint32_t)kind->divisor};

    for (uint32_t h = 0; h < kind->holders; h++)
        average->sources[h] = first + ((const char *)arrivals[h] - average->staging);
    wf_elements_reduce(&r, average->sources, first + ((const char *)arrivals[0] - average->staging),
                       span->elements);
}

static void average_all(void *argument)
{
    const struct wf_average *average = argument;

    for (uint64_t i = 0; i < average->count; i++)
        average_span(average, &average->spans[i]);
}

static weft_status average_on_host(const struct weft_bound *bound, const struct wf_arrivals *given,
                                   weft_stream *stream)
{
    struct wf_average *average = given->average;
    const weft_device_table *device = bound->device_table;

    if (average->host == NULL) return WEFT_OK;
    average->staging = given->staging;
    average->arrivals = given->at;
    WF_TRY(device->copy(bound->device, average->host, given->staging, average->bytes, stream));
    WF_TRY(device->stream_call(bound->device, stream, average_all, average));
    return device->copy(bound->device, given->staging, average->host, average->bytes, stream);
}

weft_status wf_arrivals_unpack(const struct weft_bound *bound, const struct wf_arrivals *given,
                               const struct wf_arrival_kind *kind, void *const *targets,
                               weft_stream *stream)
{
    const weft_kernel_table *kernel = bound->kernel;

    if (given->average != NULL) WF_TRY(average_on_host(bound, given, stream));
    if (given->to != kind->dtype)
        return kernel->regions_cast(given->list, kind->dtype, given->to, given->at, targets,
                                    stream);
    if (given->average != NULL || kind->holders == 1)
        return kernel->regions_copy(given->list, given->at, targets, stream);
    if (divides_otherwise(kind))
        return kernel->regions_average(given->list, kind->dtype, kind->holders,
                                       (uint32_t)kind->divisor, given->at, targets, stream);
    return kernel->regions_reduce(given->list, kind->dtype, kind->reduction, kind->holders,
                                  given->at, targets, stream);
}
