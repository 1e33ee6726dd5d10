/* shmem_device.c - a CUDA device whose memory comes from the arena, once the arena exists.
 *
 * Memory that was allocated before the first communicator, or that does not fit into the arena,
 * comes from the driver.  Peers can read it only after a copy into the arena. */
#include "shmem.h"

#include <stdlib.h>

weft_status shmem_pe_open(const weft_device_options *options, void **out)
{
    void *opened = NULL;
    struct gpu_device *device;
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(shmem_load());
    PLUG_TRY(gpu_open(options, &opened));
    device = opened;
    status = gpu_enter(device, &scope);
    if (status == WEFT_OK) {
        status = shmem_onesided_open(device);
        gpu_leave(&scope);
    }
    if (status != WEFT_OK) {
        shmem_pe_close(device);
        return status;
    }
    *out = device;
    return WEFT_OK;
}

void shmem_pe_close(void *opened)
{
    if (opened == NULL || shmem_job.is_lost) return; /* closing it would wait for the device */
    shmem_onesided_close(opened);
    gpu_close(opened);
}

/* A process is one PE of NVSHMEM and therefore one rank. */
weft_status shmem_pe_describe(void *opened, weft_device_info *out)
{
    weft_device_info info = {.struct_size = sizeof info};

    PLUG_TRY(gpu_describe(opened, &info));
    info.features &= ~(uint64_t)WEFT_FEATURE_THREADS;
    plug_give_struct(out, &info, sizeof info);
    return WEFT_OK;
}

static bool fits(struct gpu_device *device, uint64_t bytes, void **pointer)
{
    shmem_freed_return(device, false);
    if (shmem_arena_take(SHMEM_USERS, bytes, pointer) == WEFT_OK) return true;
    shmem_freed_return(device, true);
    return shmem_arena_take(SHMEM_USERS, bytes, pointer) == WEFT_OK;
}

/* Take memory of the arena, if it is that of DEVICE and has room. */
static bool take_of_arena(struct gpu_device *device, uint64_t bytes, void **pointer)
{
    static atomic_bool is_known;

    if (shmem_job.arena == NULL || shmem_job.ordinal != device->ordinal) return false;
    if (fits(device, bytes, pointer)) return true;
    plug_log(
        atomic_exchange(&is_known, true) ? 4 : 1,
        "%s; device memory from the driver is used instead, and is copied before peers read it",
        plug_last_text());
    return false;
}

weft_status shmem_pe_allocate(void *opened, uint64_t bytes, uint32_t kind, void **pointer)
{
    if (kind == WEFT_MEMORY_DEVICE && take_of_arena(opened, bytes, pointer)) return WEFT_OK;
    return gpu_allocate(opened, bytes, kind, pointer);
}

/* Memory of the arena is ready at once, because it is given back after the work that used it. */
weft_status shmem_pe_allocate_on(void *opened, uint64_t bytes, void *stream, void **pointer)
{
    if (take_of_arena(opened, bytes, pointer)) return WEFT_OK;
    return gpu_allocate_on(opened, bytes, stream, pointer);
}

weft_status shmem_pe_free_on(void *opened, void *pointer, void *stream)
{
    struct gpu_scope scope;
    bool is_captured;
    uint64_t bytes;
    void *base;

    if (pointer == NULL) return WEFT_OK;
    if (!shmem_arena_block(pointer, &base, &bytes)) return gpu_free_on(opened, pointer, stream);
    if (base != pointer)
        return plug_fail(WEFT_ERR_INVALID, "free_on: %p is not from this plugin's allocate_on",
                         pointer);
    PLUG_TRY(gpu_enter(opened, &scope));
    is_captured = gpu_is_capturing(gpu_native(stream));
    gpu_leave(&scope);
    if (is_captured) /* every launch of the graph would free the memory */
        return plug_fail(WEFT_ERR_UNSUPPORTED,
                         "free_on: the stream is being captured into a graph");
    return shmem_freed_add(opened, pointer, stream);
}

weft_status shmem_pe_free(void *opened, void *pointer)
{
    if (shmem_arena_give(pointer)) return WEFT_OK;
    return gpu_free(opened, pointer);
}

weft_status shmem_pe_query_pointer(void *opened, const void *pointer, weft_pointer_info *out)
{
    const struct gpu_device *device = opened;
    weft_pointer_info info = {
        .struct_size = sizeof info, .kind = WEFT_MEMORY_DEVICE, .device = device->ordinal};

    if (!shmem_arena_block(pointer, &info.base, &info.bytes))
        return gpu_query_pointer(opened, pointer, out);
    plug_give_struct(out, &info, sizeof info);
    return WEFT_OK;
}

/* ---- streams that a collective of NVSHMEM may block ---- */

weft_status shmem_pe_stream_query(void *opened, void *stream)
{
    weft_status status = gpu_stream_query(opened, stream), hangs;
    struct gpu_scope scope;

    if (status != WEFT_IN_PROGRESS || shmem_job.slot_bytes == 0) return status;
    PLUG_TRY(gpu_enter(opened, &scope));
    hangs = shmem_team_hangs(gpu_native(stream));
    gpu_leave(&scope);
    return hangs != WEFT_OK ? hangs : status;
}

/* Wait in short steps, to detect a blocked stream in between. */
weft_status shmem_pe_stream_wait(void *opened, void *stream, int64_t timeout_ns)
{
    const int64_t step_ns = INT64_C(50000000);
    int64_t left_ns = timeout_ns;
    weft_status status;

    if (shmem_job.slot_bytes == 0) return gpu_stream_wait(opened, stream, timeout_ns);
    do {
        int64_t part_ns = timeout_ns >= 0 && left_ns < step_ns ? left_ns : step_ns;
        status = gpu_stream_wait(opened, stream, part_ns);
        left_ns -= part_ns;
        if (status != WEFT_ERR_TIMEOUT) return status;
        status = shmem_pe_stream_query(opened, stream);
    } while (status == WEFT_IN_PROGRESS && (timeout_ns < 0 || left_ns > 0));
    if (status != WEFT_IN_PROGRESS) return status;
    return plug_fail(WEFT_ERR_TIMEOUT, "work on a stream was not complete within %.3f s",
                     (double)timeout_ns / 1e9);
}

/* A wrapped stream belongs to its owner, who may have destroyed it. */
void shmem_pe_stream_destroy(void *opened, void *stream)
{
    const struct gpu_stream *given = stream;
    bool is_ours = given != NULL && given->owned;

    if (is_ours && shmem_pe_stream_wait(opened, stream, -1) != WEFT_OK)
        plug_log(2, "a stream is not freed: %s", plug_last_text());
    else
        gpu_stream_destroy(opened, stream);
}
