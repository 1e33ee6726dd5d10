/* shm_check.c - do the ranks make the same call?
 *
 * Every rank compares the head of each peer's slot with its own, which costs next to nothing.  With
 * WEFT_COMM_CHECK all ranks also show all others their calls, with all counts, before each one. */
#include "shm.h"

#include <stdio.h>
#include <string.h>

static bool is_of_plan(const struct cpu_shm_identity *identity)
{
    return identity->binding != 0 && identity->binding < SHM_AVERAGE;
}

static void print_window(const struct cpu_shm_identity *identity, char *text, size_t bytes)
{
    if (identity->step == SHM_WINDOW_BARRIER)
        snprintf(text, bytes, "calls weft_symm_barrier of symmetric memory #%llu",
                 (unsigned long long)identity->plan);
    else
        snprintf(text, bytes, "%s symmetric memory",
                 identity->step == SHM_WINDOW_MAKE ? "makes" : "releases");
}

static void print_call(const struct cpu_shm_call *call, char *text, size_t bytes)
{
    bool reduces = plug_collective_reduces(call->collective);
    bool per_rank = call->collective > WEFT_COLL_BARRIER;
    char step[96] = "calls ", root[32] = "", count[48], divisor[32] = "";

    if (call->identity.binding == SHM_WINDOW) {
        print_window(&call->identity, text, bytes);
        return;
    }
    if (is_of_plan(&call->identity))
        snprintf(step, sizeof step, "runs step %u of plan %016llx (binding %u) as ",
                 (unsigned)call->identity.step, (unsigned long long)call->identity.plan,
                 (unsigned)call->identity.binding);
    if (call->collective == WEFT_COLL_BARRIER) {
        snprintf(text, bytes, "%sbarrier", step);
        return;
    }
    if (call->identity.binding == SHM_AVERAGE)
        snprintf(divisor, sizeof divisor, ", divisor %llu",
                 (unsigned long long)call->identity.plan);
    if (call->root >= 0) snprintf(root, sizeof root, ", root %d", (int)call->root);
    if (per_rank)
        snprintf(count, sizeof count, "counts #%08llx",
                 (unsigned long long)(call->count & 0xffffffffu));
    else
        snprintf(count, sizeof count, "count %llu", (unsigned long long)call->count);
    snprintf(text, bytes, "%s%s(%s, %s%s%s%s%s)", step, cpu_call_name(call->collective),
             plug_dtype_name(call->dtype), count, reduces ? ", " : "",
             reduces ? plug_reduction_name(call->reduction) : "", divisor, root);
}

static bool same_identity(const struct cpu_shm_identity *a, const struct cpu_shm_identity *b)
{
    return a->plan == b->plan && a->binding == b->binding && a->step == b->step;
}

bool cpu_shm_call_same(const struct cpu_shm_call *a, const struct cpu_shm_call *b)
{
    return a->collective == b->collective && a->dtype == b->dtype && a->reduction == b->reduction &&
           a->root == b->root && a->count == b->count && same_identity(&a->identity, &b->identity);
}

uint64_t cpu_shm_identity_hash(const struct cpu_shm_identity *identity)
{
    uint64_t hash = identity->plan ^ ((uint64_t)identity->binding << 32 | identity->step);

    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

weft_status cpu_shm_call_differs(struct cpu_shm_group *group, int32_t rank,
                                 const struct cpu_shm_call *call, int32_t other_rank,
                                 const struct cpu_shm_call *other)
{
    bool of_plans = !same_identity(&call->identity, &other->identity) &&
                    (is_of_plan(&call->identity) || is_of_plan(&other->identity));
    char text[200], other_text[200];

    print_call(call, text, sizeof text);
    print_call(other, other_text, sizeof other_text);
    return cpu_shm_fail(group, WEFT_ERR_MISMATCH, "collective %llu: rank %d %s, rank %d %s%s",
                        (unsigned long long)group->called, (int)rank, text, (int)other_rank,
                        other_text,
                        of_plans ? "; all ranks must run bound plans in the same order" : "");
}

static weft_status disagree(struct cpu_shm_group *group, int32_t a, const struct cpu_shm_call *by_a,
                            int32_t b, const struct cpu_shm_call *by_b)
{
    return cpu_shm_call_differs(group, group->peers[a].name, by_a, group->peers[b].name, by_b);
}

weft_status cpu_shm_mismatch(struct cpu_shm_group *group, int32_t rank)
{
    int32_t low = rank < group->rank ? rank : group->rank;
    int32_t high = rank < group->rank ? group->rank : rank;

    return disagree(group, low, &cpu_shm_slot(group, low)->call, high,
                    &cpu_shm_slot(group, high)->call);
}

weft_status cpu_shm_check_bytes(struct cpu_shm_group *group, int32_t sender, uint64_t sent,
                                int32_t receiver, uint64_t wanted)
{
    if (sent == wanted) return WEFT_OK;
    return cpu_shm_fail(group, WEFT_ERR_MISMATCH,
                        "%s: rank %d sends %llu bytes to rank %d, which expects %llu", group->doing,
                        (int)group->peers[sender].name, (unsigned long long)sent,
                        (int)group->peers[receiver].name, (unsigned long long)wanted);
}

/* ---- comparing first, when the communicator was made so ---- */

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
            return disagree(group, 0, &first->call, p, &other->call);
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
