/* ccl_talk.c - a blocking all-gather of a few bytes over the communicator itself.  Used for
 * descriptions of calls (ccl_match.c) and for ids of new communicators (ccl_split.c). */
#include "ccl.h"

#include <string.h>

static weft_status prepare(struct gpu_comm *comm)
{
    uint64_t bytes = (uint64_t)(comm->size + 1) * CCL_TALK_BYTES;

    if (comm->talk_host != NULL) return WEFT_OK;
    if (comm->talk_device == NULL)
        PLUG_TRY(gpu_allocate(comm->device, bytes, WEFT_MEMORY_DEVICE, &comm->talk_device));
    return gpu_allocate(comm->device, bytes, WEFT_MEMORY_PINNED, &comm->talk_host);
}

void ccl_talk_end(struct gpu_comm *comm)
{
    if (gpu_free(comm->device, comm->talk_device) != WEFT_OK ||
        gpu_free(comm->device, comm->talk_host) != WEFT_OK)
        plug_log(1, "a communicator's memory could not be freed");
}

static weft_status await(struct gpu_comm *comm, vendor_stream stream)
{
    uint64_t began = plug_now();
    vendor_result result;

    ccl_mark(comm, stream);
    while ((result = gpu_api.stream_query(stream)) == GPU_NOT_READY) {
        PLUG_TRY(gpu_comm_cause(comm));
        gpu_pause(began);
    }
    PLUG_TRY(gpu_comm_cause(comm));
    return gpu_check(result, "communicating with the other ranks");
}

weft_status ccl_talk(struct gpu_comm *comm, vendor_stream stream, const void *mine, size_t bytes,
                     const void **all)
{
    static const char what[] = "communicating with the other ranks";
    size_t everything = bytes * (size_t)comm->size;
    char *host, *device;
    ccl_result result;

    if (bytes > CCL_TALK_BYTES)
        return plug_fail(WEFT_ERR_INTERNAL, "a message of %zu bytes is too large", bytes);
    PLUG_TRY(prepare(comm));
    host = comm->talk_host;
    device = comm->talk_device;
    memcpy(host, mine, bytes);
    PLUG_TRY(gpu_check(gpu_vendor_copy(device, host, bytes, stream), what));
    result = ccl_api.ncclAllGather(device, device + bytes, bytes, CCL_U8, comm->work, stream);
    PLUG_TRY(ccl_settle(comm, comm->work, result, comm->timeout_ns, what));
    PLUG_TRY(gpu_check(gpu_vendor_copy(host + bytes, device + bytes, everything, stream), what));
    PLUG_TRY(await(comm, stream));
    *all = host + bytes;
    return WEFT_OK;
}
