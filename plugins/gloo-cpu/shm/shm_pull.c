/* shm_pull.c - a redistribution in one pass: every rank reads what it wants where it lies.
 *
 * Private memory is read through the kernel where that is permitted between all ranks.  Otherwise
 * every rank says which range of each other's memory it wants, and owners put shared copies of
 * those ranges up in a second round. */
#include "cpu_pull.h"

#include <string.h>

/* The place of source INDEX in the group; below 0: it is on another host. */
static int32_t place_of(const struct cpu_shm_pull *pull, uint32_t index)
{
    int32_t rank = pull->sources[index];

    return pull->places != NULL ? pull->places[rank] : rank;
}

/* Range of rank P's buffer that this rank's regions touch, in bytes. */
static void find_requests(struct cpu_shm_group *group, const struct cpu_shm_pull *pull)
{
    const struct cpu_regions *list = pull->regions;

    memset(group->spans, 0, (size_t)group->size * sizeof *group->spans);
    for (uint64_t i = 0; i < list->count; i++) {
        int64_t first, last;

        if (place_of(pull, list->boxes[i].source) < 0) continue;
        cpu_box_range(&list->boxes[i], list->element, &first, &last);
        for (uint32_t k = 0; k < pull->holders; k++) {
            struct cpu_shm_span *span = &group->spans[place_of(pull, list->boxes[i].source + k)];
            uint64_t end = span->offset + span->bytes;

            if (span->bytes == 0 || (uint64_t)first < span->offset) span->offset = (uint64_t)first;
            if (end < (uint64_t)last) end = (uint64_t)last;
            span->bytes = end - span->offset;
        }
    }
}

/* What anybody wants of this rank. */
static struct cpu_shm_span find_demand(const struct cpu_shm_group *group)
{
    struct cpu_shm_span demand = {0, 0};

    for (int32_t p = 0; p < group->size; p++) {
        const struct cpu_shm_span *span = &cpu_shm_spans(group, p)[group->rank];
        uint64_t end = demand.offset + demand.bytes;

        if (p == group->rank || span->bytes == 0) continue;
        if (demand.bytes == 0 || span->offset < demand.offset) demand.offset = span->offset;
        if (end < span->offset + span->bytes) end = span->offset + span->bytes;
        demand.bytes = end - demand.offset;
    }
    return demand;
}

static bool needs_second_round(const struct cpu_shm_group *group)
{
    if (group->one_process || group->all_readable) return false;
    for (int32_t p = 0; p < group->size; p++)
        if (cpu_shm_slot(group, p)->at.send.offset == SHM_NOWHERE) return true;
    return false;
}

/* Begin again, with a shared copy instead of private memory: *COPY, to be freed. */
static weft_status second_round(struct cpu_shm_group *group, const struct cpu_shm_pull *pull,
                                const struct cpu_shm_call *call, void **copy)
{
    bool is_private = cpu_shm_slot(group, group->rank)->at.send.offset == SHM_NOWHERE;
    struct cpu_shm_span demand = find_demand(group);
    struct cpu_shm_share share = {.send = pull->send, .by_reference = true};

    if (is_private && demand.bytes > 0) {
        weft_status status = cpu_heap_allocate(group->heap, demand.bytes, WEFT_MEMORY_DEVICE, copy);

        if (status != WEFT_OK)
            return cpu_shm_fail(group, status, "pull: no shared memory for %llu bytes",
                                (unsigned long long)demand.bytes);
        memcpy(*copy, (const unsigned char *)pull->send + demand.offset, demand.bytes);
        share.send = *copy;
        share.shift = demand.offset;
    }
    cpu_shm_done(group);
    PLUG_TRY(cpu_shm_begin(group, call, &share));
    return cpu_shm_wait_peers(group);
}

/* ---- reading boxes ---- */

/* Part of a line: COUNT elements from number FIRST on.  All that lies between them is read too. */
static weft_status read_part(struct cpu_shm_group *group, int32_t rank, const struct cpu_line *line,
                             int64_t first, int64_t count, size_t element, unsigned char *target)
{
    unsigned char near[4096];
    int64_t size = (int64_t)element, stride = line->source_stride;
    int64_t from = line->source + first * stride, reach = (count - 1) * stride;
    int64_t low = reach < 0 ? from + reach : from;
    int64_t bytes = ((reach < 0 ? -reach : reach) + 1) * size;

    PLUG_TRY(cpu_shm_read(group, rank, &cpu_shm_slot(group, rank)->at.send, (uint64_t)(low * size),
                          near, (uint64_t)bytes));
    cpu_copy_strided(element, target + (line->target + first * line->target_stride) * size,
                     line->target_stride, near + (from - low) * size, stride, count);
    return WEFT_OK;
}

/* A box whose source cannot be reached directly: read line by line. */
static weft_status read_box(struct cpu_shm_group *group, const struct cpu_box *box, size_t element,
                            int32_t rank, unsigned char *target)
{
    const struct cpu_shm_address *place = &cpu_shm_slot(group, rank)->at.send;
    struct cpu_line_walk at = {0};
    int64_t size = (int64_t)element;

    while (cpu_box_next_line(box, &at)) {
        const struct cpu_line *line = &at.line;
        int64_t step = line->source_stride < 0 ? -line->source_stride : line->source_stride;
        int64_t most = step > 0 ? 4096 / size / step : 1;

        if (line->source_stride == 1 && line->target_stride == 1) {
            PLUG_TRY(cpu_shm_read(group, rank, place, (uint64_t)(line->source * size),
                                  target + line->target * size, (uint64_t)(line->count * size)));
            continue;
        }
        if (most < 1) most = 1;
        for (int64_t i = 0, count; i < line->count; i += count) {
            count = line->count - i < most ? line->count - i : most;
            PLUG_TRY(read_part(group, rank, line, i, count, element, target));
        }
    }
    return WEFT_OK;
}

/* The start of RANK's buffer as seen here, or NULL.  A shared copy of this rank's own has no more
 * than others want. */
static const unsigned char *base_of(const struct cpu_shm_group *group,
                                    const struct cpu_shm_pull *pull, int32_t rank)
{
    const struct cpu_shm_slot *slot = cpu_shm_slot(group, rank);
    const unsigned char *base;

    if (rank == group->rank) return pull->send;
    base = cpu_shm_reach(group, rank, &slot->at.send);
    return base == NULL ? NULL : base - slot->shift;
}

static weft_status reduce_box(struct cpu_shm_group *group, const struct cpu_shm_pull *pull,
                              const struct cpu_box *box);

static weft_status copy_box(struct cpu_shm_group *group, const struct cpu_shm_pull *pull,
                            const struct cpu_box *box)
{
    int32_t rank = place_of(pull, box->source);
    const unsigned char *base = base_of(group, pull, rank);

    if (pull->to != pull->dtype) return reduce_box(group, pull, box);
    if (base == NULL) return read_box(group, box, pull->regions->element, rank, pull->recv);
    cpu_box_copy(box, pull->regions->element, base, pull->recv);
    return WEFT_OK;
}

/* Private copies of what a box wants of each holder, to be reduced or cast from there. */
static weft_status fetch_holders(struct cpu_shm_group *group, const struct cpu_shm_pull *pull,
                                 const struct cpu_box *box, unsigned char *room, int64_t first,
                                 int64_t last)
{
    struct cpu_box range = {.dims = 1,
                            .source_offset = first / (int64_t)pull->regions->element,
                            .extent = {(last - first) / (int64_t)pull->regions->element},
                            .source_stride = {1},
                            .target_stride = {1}};

    for (uint32_t k = 0; k < pull->holders; k++) {
        int32_t rank = place_of(pull, box->source + k);
        const unsigned char *base = base_of(group, pull, rank);

        if (base == NULL) {
            PLUG_TRY(read_box(group, &range, pull->regions->element, rank, room));
            base = room - first;
            room += last - first;
        }
        group->starts[k] = base;
    }
    return WEFT_OK;
}

/* From the holders' memory, as seen here, to the target. */
static weft_status compute_box(const struct cpu_shm_pull *pull, const struct cpu_box *box,
                               const void *const *holders)
{
    struct cpu_reducer reducer = {.dtype = pull->dtype,
                                  .reduction = pull->reduction,
                                  .size = pull->holders,
                                  .parts = pull->divisor};

    if (pull->to == pull->dtype) return cpu_box_reduce(box, &reducer, holders, pull->recv);
    if (pull->holders > 1) return cpu_box_reduce_cast(box, &reducer, pull->to, holders, pull->recv);
    cpu_box_cast(box, pull->dtype, pull->to, holders[0], pull->recv);
    return WEFT_OK;
}

/* Reduce, cast, or both. */
static weft_status reduce_box(struct cpu_shm_group *group, const struct cpu_shm_pull *pull,
                              const struct cpu_box *box)
{
    unsigned char *room = NULL;
    int64_t first = 0, last = 0;
    weft_status status;

    cpu_box_range(box, pull->regions->element, &first, &last);
    for (uint32_t k = 0; k < pull->holders && room == NULL; k++) {
        size_t bytes = (size_t)(last - first) * pull->holders;

        if (base_of(group, pull, place_of(pull, box->source + k)) != NULL) continue;
        room = plug_alloc(bytes);
        if (room == NULL)
            return cpu_shm_fail(group, WEFT_ERR_NO_MEMORY, "pull: out of memory (%zu bytes)",
                                bytes);
    }
    status = fetch_holders(group, pull, box, room, first, last);
    if (status == WEFT_OK) status = compute_box(pull, box, group->starts);
    plug_free(room);
    if (status == WEFT_OK || cpu_shm_has_failed(group)) return status;
    return cpu_shm_fail(group, status, "pull: out of memory");
}

static weft_status read_boxes(struct cpu_shm_group *group, const struct cpu_shm_pull *pull)
{
    for (uint64_t i = 0; i < pull->regions->count; i++) {
        const struct cpu_box *box = &pull->regions->boxes[i];

        if (place_of(pull, box->source) >= 0)
            PLUG_TRY(pull->holders > 1 ? reduce_box(group, pull, box) : copy_box(group, pull, box));
    }
    return WEFT_OK;
}

static weft_status run(struct cpu_shm_group *group, const struct cpu_shm_pull *pull,
                       const struct cpu_shm_call *call, void **copy)
{
    struct cpu_shm_share share = {.send = pull->send, .by_reference = true};
    weft_status status;

    if (!group->one_process && !group->all_readable) {
        find_requests(group, pull);
        share.spans = group->spans;
    }
    PLUG_TRY(cpu_shm_begin(group, call, &share));
    PLUG_TRY(cpu_shm_wait_peers(group));
    if (needs_second_round(group)) PLUG_TRY(second_round(group, pull, call, copy));
    PLUG_TRY(cpu_shm_enter(group, -1));
    status = read_boxes(group, pull);
    cpu_shm_leave(group, -1);
    if (status != WEFT_OK) return status;
    PLUG_TRY(cpu_shm_confirm(group, -1));
    cpu_shm_done(group);
    return cpu_shm_settle(group, -1);
}

weft_status cpu_shm_pull(struct cpu_shm_group *group, const struct cpu_shm_pull *pull)
{
    struct cpu_shm_call call = {.identity = pull->identity,
                                .collective = SHM_PULL,
                                .dtype = (uint8_t)pull->dtype,
                                .reduction = (uint8_t)(pull->holders > 1 ? pull->reduction : 0),
                                .root = -1,
                                .count = pull->holders};
    void *copy = NULL;
    weft_status status;

    if (group->flags & WEFT_COMM_CHECK) PLUG_TRY(cpu_shm_check_all(group, &call, NULL));
    status = run(group, pull, &call, &copy);
    if (copy != NULL && status == WEFT_OK) cpu_heap_free(group->heap, copy);
    if (copy != NULL && status != WEFT_OK) cpu_shm_retire(group, copy);
    return status;
}
