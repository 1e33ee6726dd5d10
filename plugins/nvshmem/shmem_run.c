/* shmem_run.c - posting of operations to streams: order, memory, begin and end. */
#include "shmem.h"

#include <string.h>

/* Maximum number of blocks of a kernel that waits for peers.  So many blocks fit on a share of a
 * device together with others of their kind.  Kernels that wait for each other therefore never wait
 * for space on the device. */
enum { WAITING_BLOCKS_MAX = 32 };

/* ---- order ---- */

weft_status shmem_turn_begin(struct gpu_comm *comm, vendor_stream stream)
{
    bool recorded = false;

    /* Checked before anything is posted: NVSHMEM's collectives end the process on these errors. */
    PLUG_TRY(shmem_guard_stream(stream, &recorded));
    if (!comm->has_last || comm->last_stream == stream || recorded) return WEFT_OK;
    return gpu_check(gpu_api.stream_wait_event(stream, comm->last, 0),
                     "making a stream wait for an earlier operation");
}

void shmem_turn_end(struct gpu_comm *comm, vendor_stream stream)
{
    if (gpu_is_capturing(stream) || gpu_api.event_record(comm->last, stream) != GPU_SUCCESS) {
        comm->is_recorded = true; /* or not known to end */
        return;
    }
    comm->last_stream = stream;
    comm->has_last = true;
}

weft_status shmem_turn_await(struct gpu_comm *comm, vendor_stream stream)
{
    uint64_t began = plug_now();
    vendor_result result;

    while ((result = gpu_api.stream_query(stream)) == GPU_NOT_READY) {
        PLUG_TRY(gpu_comm_cause(comm));
        gpu_pause(began);
    }
    PLUG_TRY(gpu_comm_cause(comm));
    return gpu_check(result, "work on a stream");
}

struct wk_channel shmem_channel(const struct gpu_comm *comm)
{
    return (struct wk_channel){.control = (uintptr_t)comm->control,
                               .report = (uintptr_t)comm->report,
                               .peers = comm->device_peers,
                               .timeout_ns = comm->timeout_ns > 0 ? (uint64_t)comm->timeout_ns : 0,
                               .rank = (uint32_t)comm->rank,
                               .size = (uint32_t)comm->size};
}

struct wk_channel gpu_window_channel(const struct gpu_window *window)
{
    return shmem_channel(window->comm);
}

/* ---- memory ---- */

/* True if no stage is in use.  An operation ends when no peer needs this rank's memory any more.
 * The stages are free when the last operation has ended and none can run again. */
static bool is_idle(struct gpu_comm *comm)
{
    vendor_capture_mode mode = GPU_CAPTURE_RELAXED; /* keeps other captures valid */
    vendor_result result;

    if (comm->is_recorded) return false;
    if (!comm->has_last) return true;
    if (gpu_api.capture_mode != NULL) gpu_api.capture_mode(&mode);
    result = gpu_api.event_query(comm->last);
    if (gpu_api.capture_mode != NULL) gpu_api.capture_mode(&mode);
    return result == GPU_SUCCESS && !gpu_comm_has_failed(comm);
}

static weft_status retire(struct gpu_comm *comm, void *memory)
{
    void **longer = plug_new((comm->retired_count + 1) * sizeof *longer);

    if (longer == NULL) return WEFT_ERR_NO_MEMORY;
    if (comm->retired_count > 0)
        memcpy(longer, comm->retired, comm->retired_count * sizeof *longer);
    longer[comm->retired_count++] = memory;
    plug_free(comm->retired);
    comm->retired = longer;
    return WEFT_OK;
}

static weft_status empty(struct gpu_comm *comm, struct shmem_stage *stage)
{
    if (stage->memory == NULL) return WEFT_OK;
    if (is_idle(comm)) {
        shmem_arena_give(stage->memory);
        while (comm->retired_count > 0)
            shmem_arena_give(comm->retired[--comm->retired_count]);
    } else {
        PLUG_TRY(retire(comm, stage->memory));
    }
    *stage = (struct shmem_stage){0};
    return WEFT_OK;
}

static weft_status grow(struct gpu_comm *comm, struct shmem_stage *stage, enum shmem_part part,
                        uint64_t bytes)
{
    uint64_t wanted = bytes > 2 * stage->bytes ? bytes : 2 * stage->bytes;
    weft_status status;

    if (bytes <= stage->bytes && stage->memory != NULL) return WEFT_OK;
    PLUG_TRY(empty(comm, stage));
    status = shmem_arena_take(part, wanted, &stage->memory);
    if (status != WEFT_OK && wanted > bytes) {
        wanted = bytes;
        status = shmem_arena_take(part, wanted, &stage->memory);
    }
    if (status == WEFT_OK)
        stage->bytes = wanted;
    else
        comm->lacking = bytes;
    return status;
}

weft_status shmem_stage_grow(struct gpu_comm *comm, struct shmem_stage *stage, uint64_t bytes)
{
    return grow(comm, stage, SHMEM_USERS, bytes);
}

weft_status shmem_stage_send(struct gpu_comm *comm, const void *pointer, uint64_t bytes,
                             bool copied, vendor_stream stream, uint64_t *offset)
{
    if (bytes == 0) {
        *offset = 0;
        return WEFT_OK;
    }
    if (!copied && (uintptr_t)pointer % 16 == 0 && shmem_arena_holds(pointer, bytes, offset))
        return WEFT_OK;
    PLUG_TRY(shmem_stage_grow(comm, &comm->send_stage, bytes));
    shmem_arena_holds(comm->send_stage.memory, bytes, offset);
    return gpu_check(gpu_vendor_copy(comm->send_stage.memory, pointer, bytes, stream),
                     "copying into symmetric memory");
}

/* ---- begin and end ---- */

struct shmem_sync shmem_sync_make(const struct gpu_comm *comm, vendor_stream stream)
{
    return (struct shmem_sync){
        .wk = {.channel = shmem_channel(comm), .blocks = 1, .count = (uint32_t)comm->size},
        .stream = stream};
}

static uint64_t table_entries(const struct shmem_sync *sync)
{
    return 1 + (uint64_t)sync->wk.listed * (1 + sync->wk.pushes);
}

bool shmem_sync_is_small(const struct gpu_comm *comm, const struct shmem_sync *sync,
                         uint64_t blocks)
{
    return blocks <= WAITING_BLOCKS_MAX && table_entries(sync) <= WK_HELD &&
           (sync->offers == NULL || comm->size <= (int32_t)WK_LIST) &&
           (sync->list == NULL || sync->wk.listed <= WK_LIST);
}

static void set_list(struct wk_sync *wk, const struct shmem_sync *sync, uint32_t first)
{
    wk->in_order = sync->list == NULL;
    for (uint32_t i = 0; sync->list != NULL && i < wk->listed; i++)
        wk->list[i] = (uint16_t)sync->list[first + i];
}

static void set_offers(struct wk_sync *wk, const struct shmem_sync *sync)
{
    wk->varied = sync->offers != NULL;
    for (uint32_t i = 0; sync->offers != NULL && i < wk->count; i++)
        wk->offers[i] = sync->offers[wk->first + i];
}

void shmem_sync_fuse(struct shmem_sync *sync, uint64_t blocks)
{
    sync->wk.phases |= WK_OFFER | WK_AWAIT | WK_CLOSE;
    sync->wk.blocks = (uint32_t)blocks;
    set_list(&sync->wk, sync, 0);
    set_offers(&sync->wk, sync);
}

/* Publish the offer to all peers, as many at a time as fit into a kernel's arguments. */
static weft_status offer(struct gpu_comm *comm, const struct shmem_sync *sync)
{
    struct wk_sync part = sync->wk;
    uint32_t most = sync->offers != NULL ? WK_LIST : (uint32_t)comm->size;

    part.phases = WK_OFFER;
    for (part.first = 0; part.first < (uint32_t)comm->size; part.first += part.count) {
        uint32_t left = (uint32_t)comm->size - part.first;
        part.count = left < most ? left : most;
        set_offers(&part, sync);
        PLUG_TRY(shmem_onesided_launch(comm, SHMEM_SYNC, 1, 1, &part, sync->stream));
    }
    return WEFT_OK;
}

static weft_status look_up(struct gpu_comm *comm, const struct shmem_sync *sync, uint32_t phases)
{
    struct wk_sync part = sync->wk;
    uint32_t total = part.listed, most = sync->list != NULL ? WK_LIST : total;

    part.phases = phases | WK_AWAIT | WK_KEEP;
    set_offers(&part, sync);
    do {
        part.listed = total - part.place < most ? total - part.place : most;
        set_list(&part, sync, part.place);
        PLUG_TRY(shmem_onesided_launch(comm, SHMEM_SYNC, 1, 1, &part, sync->stream));
        part.phases &= ~(uint32_t)WK_OFFER;
        part.place += part.listed;
    } while (part.place < total);
    return WEFT_OK;
}

weft_status shmem_sync_open(struct gpu_comm *comm, struct shmem_sync *sync)
{
    bool at_once = sync->offers == NULL || comm->size <= (int32_t)WK_LIST;

    PLUG_TRY(grow(comm, &comm->table, SHMEM_OWN, 8 * table_entries(sync)));
    sync->wk.table = (uintptr_t)comm->table.memory;
    if (!at_once) PLUG_TRY(offer(comm, sync));
    PLUG_TRY(look_up(comm, sync, at_once ? WK_OFFER : 0));
    sync->wk.phases = 0;
    return WEFT_OK;
}

void shmem_sync_close(struct shmem_sync *sync, uint64_t blocks)
{
    sync->wk.phases = WK_CLOSE;
    sync->wk.blocks = (uint32_t)blocks;
}

weft_status shmem_sync_close_alone(struct gpu_comm *comm, struct shmem_sync *sync)
{
    shmem_sync_close(sync, 1);
    return shmem_onesided_launch(comm, SHMEM_SYNC, 1, 1, &sync->wk, sync->stream);
}

weft_status shmem_sync_all(struct gpu_comm *comm, vendor_stream stream)
{
    struct shmem_sync sync = shmem_sync_make(comm, stream);

    sync.wk.listed = (uint32_t)comm->size;
    sync.wk.phases = WK_FREELY;
    if (!shmem_sync_is_small(comm, &sync, 1)) {
        PLUG_TRY(shmem_sync_open(comm, &sync));
        return shmem_sync_close_alone(comm, &sync);
    }
    shmem_sync_fuse(&sync, 1);
    return shmem_onesided_launch(comm, SHMEM_SYNC, 1, 1, &sync.wk, stream);
}
