/* shm_check.c - with WEFT_COMM_CHECK all ranks show all others their calls, with all counts, before
 * each one. */
#include "shm.h"

#include <string.h>

/* What a rank tells about its call: the call, and bytes to and from each rank where each has its
 * own.  A group has one, as all are done reading it before the call that it tells of begins. */
struct record {
    struct cpu_shm_call call;
    uint64_t bytes[];
};

static void fill_bytes(const struct cpu_shm_group *group, const struct cpu_shm_op *op,
                       struct record *record)
{
    uint64_t *to = record->bytes, *from = record->bytes + group->size, own;

    own = op->count * op->element;
    for (int32_t p = 0; p < group->size; p++) {
        if (op->send_counts != NULL) to[p] = op->send_counts[p] * op->element;
        if (op->recv_counts != NULL) from[p] = op->recv_counts[p] * op->element;
    }
    if (op->collective == WEFT_COLL_GATHER_V) to[op->root] = own;
    if (op->collective == WEFT_COLL_SCATTER_V) from[op->root] = own;
}

static weft_status compare_bytes(struct cpu_shm_group *group, uint32_t collective)
{
    for (int32_t i = 0; i < group->size; i++) {
        const struct record *sender = cpu_shm_sent(group, i);

        for (int32_t j = 0; j < group->size; j++) {
            const struct record *receiver = cpu_shm_sent(group, j);

            if (collective == WEFT_COLL_GATHER_V && j != sender->call.root) continue;
            if (collective == WEFT_COLL_SCATTER_V && i != sender->call.root) continue;
            PLUG_TRY(cpu_shm_check_bytes(group, i, sender->bytes[j], j,
                                         receiver->bytes[group->size + i]));
        }
    }
    return WEFT_OK;
}

/* Everybody compares everybody, in the same order, so all find the same fault. */
static weft_status compare(struct cpu_shm_group *group)
{
    const struct record *first = cpu_shm_sent(group, 0);
    uint32_t collective = first->call.collective;

    for (int32_t p = 1; p < group->size; p++) {
        const struct record *other = cpu_shm_sent(group, p);

        if (!cpu_shm_call_same(&first->call, &other->call))
            return cpu_shm_disagree(group, 0, &first->call, p, &other->call);
    }
    group->doing = cpu_call_name(collective);
    if (collective != WEFT_COLL_ALL_TO_ALL_V && collective != WEFT_COLL_GATHER_V &&
        collective != WEFT_COLL_SCATTER_V)
        return WEFT_OK;
    return compare_bytes(group, collective);
}

static weft_status compare_records(struct cpu_shm_group *group, const struct record *record,
                                   size_t bytes)
{
    struct cpu_shm_call call = {.collective = SHM_CHECK, .root = -1};
    struct cpu_shm_share share = {.send = record, .send_bytes = bytes, .reader = -1};

    PLUG_TRY(cpu_shm_begin(group, &call, &share));
    group->doing = cpu_call_name(record->call.collective);
    PLUG_TRY(cpu_shm_wait_peers(group));
    PLUG_TRY(compare(group));
    cpu_shm_done(group);
    return cpu_shm_settle(group, -1);
}

static size_t record_bytes(const struct cpu_shm_group *group)
{
    return sizeof(struct record) + 2 * (size_t)group->size * sizeof(uint64_t);
}

weft_status cpu_shm_check_prepare(struct cpu_shm_group *group)
{
    if ((group->flags & WEFT_COMM_CHECK) == 0) return WEFT_OK;
    /* In shared memory, since with many ranks it does not fit into a slot. */
    return cpu_heap_allocate(group->heap, record_bytes(group), WEFT_MEMORY_DEVICE, &group->record);
}

weft_status cpu_shm_check_all(struct cpu_shm_group *group, const struct cpu_shm_call *call,
                              const struct cpu_shm_op *op)
{
    struct record *record = group->record;
    size_t bytes = record_bytes(group);

    memset(record, 0, bytes);
    record->call = *call;
    if (op != NULL) fill_bytes(group, op, record);
    return compare_records(group, record, bytes);
}
