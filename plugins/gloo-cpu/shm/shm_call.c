/* shm_call.c - what a call is, and what is said of two that differ.
 *
 * Every rank compares the head of each peer's slot with its own, which costs next to nothing. */
#include "shm.h"

#include <stdio.h>

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
    bool reduces = kit_collective_reduces(call->collective);
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
             kit_dtype_name(call->dtype), count, reduces ? ", " : "",
             reduces ? kit_reduction_name(call->reduction) : "", divisor, root);
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

weft_status cpu_shm_disagree(struct cpu_shm_group *group, int32_t a,
                             const struct cpu_shm_call *by_a, int32_t b,
                             const struct cpu_shm_call *by_b)
{
    return cpu_shm_call_differs(group, group->peers[a].name, by_a, group->peers[b].name, by_b);
}

weft_status cpu_shm_mismatch(struct cpu_shm_group *group, int32_t rank)
{
    int32_t low = rank < group->rank ? rank : group->rank;
    int32_t high = rank < group->rank ? group->rank : rank;

    return cpu_shm_disagree(group, low, &cpu_shm_slot(group, low)->call, high,
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
