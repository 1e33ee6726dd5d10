/* shmem_guard.c - detects, before a call of NVSHMEM, the cases in which NVSHMEM ends the process.
 *
 * The ranks have exchanged the facts that these checks need, so all ranks get the same result.
 * docs/backends/nvshmem.md lists the cases that are detected, and those that cannot be. */
#include "shmem.h"

static weft_status check_versions(const struct gpu_comm *comm, const weft_blob *addresses)
{
    struct shmem_facts first = shmem_facts_of(&addresses[0]);
    const int32_t *a = first.version;

    for (int32_t r = 1; r < comm->size; r++) {
        struct shmem_facts facts = shmem_facts_of(&addresses[r]);
        const int32_t *b = facts.version;
        if (a[0] == b[0] && a[1] == b[1] && a[2] == b[2]) continue;
        return plug_fail(WEFT_ERR_MISMATCH,
                         "rank %d has NVSHMEM %d.%d.%d and rank %d has %d.%d.%d; all ranks must "
                         "have the same version",
                         comm->world_ranks[0], a[0], a[1], a[2], comm->world_ranks[r], b[0], b[1],
                         b[2]);
    }
    return WEFT_OK;
}

static int32_t next_on_device(const struct gpu_comm *comm, const weft_blob *addresses, int32_t with,
                              int32_t from)
{
    while (!shmem_same_device(comm, addresses, from, with))
        from++;
    return from;
}

/* The first two ranks on a device determine which others are allowed. */
static weft_status check_steps(const struct gpu_comm *comm, const weft_blob *addresses)
{
    for (int32_t r = 0; r < comm->size; r++) {
        int32_t first = next_on_device(comm, addresses, r, 0), second;
        if (first == r) continue;
        second = next_on_device(comm, addresses, r, first + 1);
        if ((r - first) % (second - first) == 0) continue;
        return plug_fail(WEFT_ERR_UNSUPPORTED,
                         "ranks %d, %d and %d share the device %s: NVSHMEM needs equal steps "
                         "between the ranks of a device, such as 0, 1, 2 or 0, 2, 4",
                         comm->world_ranks[first], comm->world_ranks[second], comm->world_ranks[r],
                         shmem_facts_of(&addresses[r]).uuid);
    }
    return WEFT_OK;
}

weft_status shmem_guard_begin(const struct gpu_comm *comm, const weft_blob *addresses)
{
    PLUG_TRY(check_versions(comm, addresses));
    return check_steps(comm, addresses);
}

weft_status shmem_guard_stream(vendor_stream stream, bool *recorded)
{
    vendor_result result = GPU_SUCCESS;
    vendor_capture capture = 0;

    if (gpu_api.stream_capturing != NULL) result = gpu_api.stream_capturing(stream, &capture);
    if (result == GPU_CAPTURE_IMPLICIT)
        return plug_fail(WEFT_ERR_INVALID,
                         "the default stream cannot be used while another stream is captured");
    PLUG_TRY(gpu_check(result, "querying a stream"));
    *recorded = capture != 0;
    return WEFT_OK;
}

/* NVSHMEM itself waits for the device and uses the default stream. */
weft_status shmem_guard_device(uint64_t wanted)
{
    size_t available = 0, total = 0;
    bool recorded;

    if (shmem_job.is_lost)
        return plug_fail(WEFT_ERR_ABORTED, "a collective of NVSHMEM does not end");
    PLUG_TRY(shmem_guard_stream(NULL, &recorded));
    PLUG_TRY(gpu_check(gpu_api.context_sync(), "waiting for the device"));
    PLUG_TRY(
        gpu_check(gpu_api.memory_info(&available, &total), "reading the device's memory size"));
    if (available < wanted)
        return plug_fail(WEFT_ERR_NO_MEMORY,
                         "%llu bytes of device memory are free, but NVSHMEM may need %llu",
                         (unsigned long long)available, (unsigned long long)wanted);
    return WEFT_OK;
}

void shmem_job_lose(struct gpu_device *device)
{
    shmem_job.is_lost = true;
    device->is_lost = true;
}
