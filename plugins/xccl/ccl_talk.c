/* ccl_talk.c - a few bytes from every rank to every rank, over the communicator itself and waited
 * for: what ranks call (ccl_match.c), ids of new communicators (ccl_split.c). */
#include "ccl.h"

#include <string.h>

static weft_status prepare(struct wf_comm *comm)
{
    uint64_t bytes = (uint64_t)(comm->size + 1) * WF_TALK_BYTES;

    if (comm->talk_host != NULL) return WEFT_OK;
    if (comm->talk_device == NULL)
        WF_TRY(wf_gpu_allocate(comm->device, bytes, WEFT_MEMORY_DEVICE, &comm->talk_device));
    return wf_gpu_allocate(comm->device, bytes, WEFT_MEMORY_PINNED, &comm->talk_host);
}

void wf_talk_end(struct wf_comm *comm)
{
    if (wf_gpu_free(comm->device, comm->talk_device) != WEFT_OK ||
        wf_gpu_free(comm->device, comm->talk_host) != WEFT_OK)
        wf_log(1, "a communicator's memory could not be freed");
}

static weft_status await(struct wf_comm *comm, gpu_stream stream)
{
    uint64_t began = wf_now_ns();
    gpu_result result;

    wf_mark(comm, stream);
    while ((result = wf_gpu.stream_query(stream)) == GPU_NOT_READY) {
        WF_TRY(wf_comm_stuck(comm));
        wf_pause(began);
    }
    WF_TRY(wf_comm_stuck(comm));
    return wf_gpu_check(result, "talking to the other ranks");
}

weft_status wf_talk(struct wf_comm *comm, gpu_stream stream, const void *mine, size_t bytes,
                    const void **all)
{
    static const char what[] = "talking to the other ranks";
    size_t everything = bytes * (size_t)comm->size;
    char *host, *device;
    ccl_result result;

    if (bytes > WF_TALK_BYTES) return wf_fail(WEFT_ERR_INTERNAL, "%zu bytes to say", bytes);
    WF_TRY(prepare(comm));
    host = comm->talk_host;
    device = comm->talk_device;
    memcpy(host, mine, bytes);
    WF_TRY(wf_gpu_check(wf_vendor_copy(device, host, bytes, stream), what));
    result = wf_ccl.ncclAllGather(device, device + bytes, bytes, CCL_U8, comm->work, stream);
    WF_TRY(wf_settle(comm, comm->work, result, comm->timeout_ns, what));
    WF_TRY(wf_gpu_check(wf_vendor_copy(host + bytes, device + bytes, everything, stream), what));
    WF_TRY(await(comm, stream));
    *all = host + bytes;
    return WEFT_OK;
}
