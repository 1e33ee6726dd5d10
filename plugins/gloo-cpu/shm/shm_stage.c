/* shm_stage.c - private memory goes through a stage, piece by piece.
 *
 * The stage stays in the cache, and while peers read one half of it the owner fills the other, so
 * the second copy costs little.  A reader counts the pieces it is done with; the owner waits for
 * all readers before it fills a half again. */
#include "shm.h"

#include <string.h>

static uint64_t count_of(const struct cpu_shm_group *group, uint64_t pieces)
{
    return group->number << 32 | pieces;
}

uint64_t cpu_shm_piece_bytes(const struct cpu_shm_group *group, bool spread)
{
    uint64_t bytes = spread ? SHM_STAGE / (uint64_t)group->size : SHM_STAGE;

    return bytes < 64 ? 64 : bytes / 64 * 64;
}

static weft_status open_stage(struct cpu_shm_group *group)
{
    uint64_t half = cpu_shm_piece_bytes(group, true) * (uint64_t)group->size;
    void *memory = NULL;
    weft_status status;

    if (group->stage != NULL) return WEFT_OK;
    if (half < SHM_STAGE) half = SHM_STAGE;
    status = cpu_heap_allocate(group->heap, 2 * half, WEFT_MEMORY_DEVICE, &memory);
    if (status != WEFT_OK)
        return cpu_shm_fail(group, status, "%s: no shared memory to stage private memory",
                            group->doing);
    group->stage = memory;
    atomic_store(&group->control->stage,
                 (uint64_t)((uint8_t *)memory - group->heap->segment.base) + 1);
    return WEFT_OK;
}

static uint64_t half_of(const struct cpu_shm_group *group, uint64_t index)
{
    uint64_t half = cpu_shm_piece_bytes(group, true) * (uint64_t)group->size;

    return index % 2 * (half < SHM_STAGE ? SHM_STAGE : half);
}

weft_status cpu_shm_stage_room(struct cpu_shm_group *group, uint64_t index, int32_t reader,
                               unsigned char **room)
{
    PLUG_TRY(open_stage(group));
    for (int32_t p = 0; index >= 2 && p < group->size; p++)
        if (p != group->rank && (reader < 0 || p == reader))
            PLUG_TRY(cpu_shm_wait(group, &group->peers[p].control->drained,
                                  count_of(group, index - 1), p));
    *room = group->stage + half_of(group, index);
    return WEFT_OK;
}

void cpu_shm_stage_put_up(struct cpu_shm_group *group, uint64_t index, int32_t reader)
{
    atomic_store(&group->control->filled, count_of(group, index + 1));
    if (reader < 0)
        cpu_shm_ring_all(group);
    else
        cpu_shm_ring(group, reader);
}

/* Piece INDEX of BYTES that lie at SOURCE. */
static void copy_piece(unsigned char *room, const void *source, uint64_t bytes, uint64_t piece,
                       uint64_t index)
{
    uint64_t first = index * piece;

    if (first >= bytes) return;
    memcpy(room, (const unsigned char *)source + first,
           bytes - first < piece ? bytes - first : piece);
}

weft_status cpu_shm_fill(struct cpu_shm_group *group, const struct cpu_shm_share *share,
                         uint64_t index)
{
    bool spread = share->spans != NULL;
    uint64_t piece = cpu_shm_piece_bytes(group, spread);
    unsigned char *room = NULL;

    PLUG_TRY(cpu_shm_stage_room(group, index, share->reader, &room));
    if (!spread) copy_piece(room, share->send, share->send_bytes, piece, index);
    for (int32_t p = 0; spread && p < group->size; p++)
        if (p != group->rank)
            copy_piece(room + (uint64_t)p * piece,
                       (const unsigned char *)share->send + share->spans[p].offset,
                       share->spans[p].bytes, piece, index);
    cpu_shm_stage_put_up(group, index, share->reader);
    return WEFT_OK;
}

uint64_t cpu_shm_piece_count(const struct cpu_shm_group *group, const struct cpu_shm_share *share)
{
    bool spread = share->spans != NULL;
    uint64_t piece = cpu_shm_piece_bytes(group, spread), most = share->send_bytes;

    if (!cpu_shm_is_in_pieces(group, group->rank)) return 0;
    for (int32_t p = 0; spread && p < group->size; p++) {
        if (p == 0) most = 0;
        if (p != group->rank && share->spans[p].bytes > most) most = share->spans[p].bytes;
    }
    return (most + piece - 1) / piece;
}

weft_status cpu_shm_piece(struct cpu_shm_group *group, int32_t rank, uint64_t index, bool spread,
                          const unsigned char **piece)
{
    const struct cpu_shm_peer *peer = &group->peers[rank];
    uint64_t offset;

    PLUG_TRY(cpu_shm_wait(group, &peer->control->filled, count_of(group, index + 1), rank));
    offset = atomic_load_explicit(&peer->control->stage, memory_order_acquire) - 1;
    offset += half_of(group, index);
    if (spread) offset += (uint64_t)group->rank * cpu_shm_piece_bytes(group, true);
    *piece = peer->heap + offset;
    return WEFT_OK;
}

void cpu_shm_drained(struct cpu_shm_group *group, uint64_t index)
{
    atomic_store(&group->control->drained, count_of(group, index + 1));
    cpu_shm_ring_all(group);
}
