/* shmem_run.c - putting operations on streams: their order, their memory, their beginning and end.
 */
#include "shmem.h"

#include <string.h>

/* Blocks of a kernel that waits for peers.  So many fit on a part of a device beside others of
 * their kind, which is what keeps kernels that wait for each other from waiting for room. */
enum { MOST_WAITING_BLOCKS = 32 };

/* ---- one after the other ---- */

weft_status wf_turn_begin(struct wf_comm *comm, gpu_stream stream)
{
    bool recorded = false;

    /* Before anything is put there: NVSHMEM's collectives end the process over what this finds. */
    WF_TRY(wf_guard_stream(stream, &recorded));
    if (!comm->has_last || comm->last_stream == stream || recorded) return WEFT_OK;
    return wf_gpu_check(wf_gpu.stream_wait_event(stream, comm->last, 0),
                        "letting a stream wait for an earlier operation");
}

void wf_turn_end(struct wf_comm *comm, gpu_stream stream)
{
    if (wf_is_capturing(stream) || wf_gpu.event_record(comm->last, stream) != GPU_SUCCESS) {
        comm->is_recorded = true; /* or not known to end */
        return;
    }
    comm->last_stream = stream;
    comm->has_last = true;
}

weft_status wf_turn_await(struct wf_comm *comm, gpu_stream stream)
{
    uint64_t began = wf_now_ns();
    gpu_result result;

    while ((result = wf_gpu.stream_query(stream)) == GPU_NOT_READY) {
        WF_TRY(wf_comm_stuck(comm));
        wf_pause(began);
    }
    WF_TRY(wf_comm_stuck(comm));
    return wf_gpu_check(result, "work on a stream");
}

struct wk_channel wf_channel(const struct wf_comm *comm)
{
    return (struct wk_channel){.control = (uintptr_t)comm->control,
                               .report = (uintptr_t)comm->report,
                               .peers = comm->device_peers,
                               .timeout_ns = comm->timeout_ns > 0 ? (uint64_t)comm->timeout_ns : 0,
                               .rank = (uint32_t)comm->rank,
                               .size = (uint32_t)comm->size};
}

/* ---- memory ---- */

/* An operation ends when no peer needs this rank's memory any more, so when the last one has ended
 * and none can run again, nobody looks at any stage. */
static bool is_idle(struct wf_comm *comm)
{
    gpu_capture_mode mode = GPU_CAPTURE_RELAXED; /* asking does not disturb other streams' */
    gpu_result result;

    if (comm->is_recorded) return false;
    if (!comm->has_last) return true;
    if (wf_gpu.capture_mode != NULL) wf_gpu.capture_mode(&mode);
    result = wf_gpu.event_query(comm->last);
    if (wf_gpu.capture_mode != NULL) wf_gpu.capture_mode(&mode);
    wf_comm_look(comm);
    return result == GPU_SUCCESS && atomic_load(&comm->error) == WEFT_OK;
}

static weft_status retire(struct wf_comm *comm, void *memory)
{
    void **longer = wf_new((comm->retired_count + 1) * sizeof *longer);

    if (longer == NULL) return WEFT_ERR_NO_MEMORY;
    if (comm->retired_count > 0)
        memcpy(longer, comm->retired, comm->retired_count * sizeof *longer);
    longer[comm->retired_count++] = memory;
    wf_delete(comm->retired);
    comm->retired = longer;
    return WEFT_OK;
}

static weft_status empty(struct wf_comm *comm, struct wf_stage *stage)
{
    if (stage->memory == NULL) return WEFT_OK;
    if (is_idle(comm)) {
        wf_arena_give(stage->memory);
        while (comm->retired_count > 0)
            wf_arena_give(comm->retired[--comm->retired_count]);
    } else {
        WF_TRY(retire(comm, stage->memory));
    }
    *stage = (struct wf_stage){0};
    return WEFT_OK;
}

static weft_status grow(struct wf_comm *comm, struct wf_stage *stage, enum wf_part part,
                        uint64_t bytes)
{
    uint64_t wanted = bytes > 2 * stage->bytes ? bytes : 2 * stage->bytes;
    weft_status status;

    if (bytes <= stage->bytes && stage->memory != NULL) return WEFT_OK;
    WF_TRY(empty(comm, stage));
    status = wf_arena_take(part, wanted, &stage->memory);
    if (status != WEFT_OK && wanted > bytes) {
        wanted = bytes;
        status = wf_arena_take(part, wanted, &stage->memory);
    }
    if (status == WEFT_OK)
        stage->bytes = wanted;
    else
        comm->lacking = bytes;
    return status;
}

weft_status wf_stage_grow(struct wf_comm *comm, struct wf_stage *stage, uint64_t bytes)
{
    return grow(comm, stage, WF_USERS, bytes);
}

weft_status wf_stage_send(struct wf_comm *comm, const void *pointer, uint64_t bytes, bool copied,
                          gpu_stream stream, uint64_t *offset)
{
    if (bytes == 0) {
        *offset = 0;
        return WEFT_OK;
    }
    if (!copied && (uintptr_t)pointer % 16 == 0 && wf_arena_holds(pointer, bytes, offset))
        return WEFT_OK;
    WF_TRY(wf_stage_grow(comm, &comm->send_stage, bytes));
    wf_arena_holds(comm->send_stage.memory, bytes, offset);
    return wf_gpu_check(wf_vendor_copy(comm->send_stage.memory, pointer, bytes, stream),
                        "copying into symmetric memory");
}

/* ---- beginning and end ---- */

struct wf_meet wf_meet_make(const struct wf_comm *comm, gpu_stream stream)
{
    return (struct wf_meet){
        .meeting = {.channel = wf_channel(comm), .blocks = 1, .count = (uint32_t)comm->size},
        .stream = stream};
}

static uint64_t table_entries(const struct wf_meet *meet)
{
    return 1 + (uint64_t)meet->meeting.listed * (1 + meet->meeting.pushes);
}

bool wf_meet_is_small(const struct wf_comm *comm, const struct wf_meet *meet, uint64_t blocks)
{
    return blocks <= MOST_WAITING_BLOCKS && table_entries(meet) <= WK_HELD &&
           (meet->offers == NULL || comm->size <= (int32_t)WK_LIST) &&
           (meet->list == NULL || meet->meeting.listed <= WK_LIST);
}

static void set_list(struct wk_meeting *meeting, const struct wf_meet *meet, uint32_t first)
{
    meeting->in_order = meet->list == NULL;
    for (uint32_t i = 0; meet->list != NULL && i < meeting->listed; i++)
        meeting->list[i] = (uint16_t)meet->list[first + i];
}

static void set_offers(struct wk_meeting *meeting, const struct wf_meet *meet)
{
    meeting->varied = meet->offers != NULL;
    for (uint32_t i = 0; meet->offers != NULL && i < meeting->count; i++)
        meeting->offers[i] = meet->offers[meeting->first + i];
}

void wf_meet_fuse(struct wf_meet *meet, uint64_t blocks)
{
    meet->meeting.phases |= WK_OFFER | WK_AWAIT | WK_CLOSE;
    meet->meeting.blocks = (uint32_t)blocks;
    set_list(&meet->meeting, meet, 0);
    set_offers(&meet->meeting, meet);
}

/* Tell all peers, as many at a time as fit into a kernel's arguments. */
static weft_status offer(struct wf_comm *comm, const struct wf_meet *meet)
{
    struct wk_meeting part = meet->meeting;
    uint32_t most = meet->offers != NULL ? WK_LIST : (uint32_t)comm->size;

    part.phases = WK_OFFER;
    for (part.first = 0; part.first < (uint32_t)comm->size; part.first += part.count) {
        uint32_t left = (uint32_t)comm->size - part.first;
        part.count = left < most ? left : most;
        set_offers(&part, meet);
        WF_TRY(wf_onesided_launch(comm, WF_MEET, 1, 1, &part, meet->stream));
    }
    return WEFT_OK;
}

static weft_status look_up(struct wf_comm *comm, const struct wf_meet *meet, uint32_t phases)
{
    struct wk_meeting part = meet->meeting;
    uint32_t total = part.listed, most = meet->list != NULL ? WK_LIST : total;

    part.phases = phases | WK_AWAIT | WK_KEEP;
    set_offers(&part, meet);
    do {
        part.listed = total - part.place < most ? total - part.place : most;
        set_list(&part, meet, part.place);
        WF_TRY(wf_onesided_launch(comm, WF_MEET, 1, 1, &part, meet->stream));
        part.phases &= ~(uint32_t)WK_OFFER;
        part.place += part.listed;
    } while (part.place < total);
    return WEFT_OK;
}

weft_status wf_meet_open(struct wf_comm *comm, struct wf_meet *meet)
{
    bool at_once = meet->offers == NULL || comm->size <= (int32_t)WK_LIST;

    WF_TRY(grow(comm, &comm->table, WF_OWN, 8 * table_entries(meet)));
    meet->meeting.table = (uintptr_t)comm->table.memory;
    if (!at_once) WF_TRY(offer(comm, meet));
    WF_TRY(look_up(comm, meet, at_once ? WK_OFFER : 0));
    meet->meeting.phases = 0;
    return WEFT_OK;
}

void wf_meet_close(struct wf_meet *meet, uint64_t blocks)
{
    meet->meeting.phases = WK_CLOSE;
    meet->meeting.blocks = (uint32_t)blocks;
}

weft_status wf_meet_close_alone(struct wf_comm *comm, struct wf_meet *meet)
{
    wf_meet_close(meet, 1);
    return wf_onesided_launch(comm, WF_MEET, 1, 1, &meet->meeting, meet->stream);
}
