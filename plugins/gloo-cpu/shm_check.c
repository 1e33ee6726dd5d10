/* shm_check.c - do the ranks make the same call? */
#include "shm.h"

#include <stdio.h>

static void print_call(const struct wf_shm_call *call, char *text, size_t bytes)
{
    bool reduces = wf_cpu_collective_reduces(call->collective);
    bool per_rank = call->collective > WEFT_COLL_BARRIER;
    char root[32] = "", count[48];

    if (call->root >= 0) snprintf(root, sizeof root, ", root %d", (int)call->root);
    if (per_rank)
        snprintf(count, sizeof count, "counts #%08llx",
                 (unsigned long long)(call->count & 0xffffffffu));
    else
        snprintf(count, sizeof count, "count %llu", (unsigned long long)call->count);
    snprintf(text, bytes, "%s(%s, %s%s%s%s)", wf_cpu_collective_name(call->collective),
             wf_cpu_dtype_name(call->dtype), count, reduces ? ", " : "",
             reduces ? wf_cpu_reduction_name(call->reduction) : "", root);
}

bool wf_shm_call_same(const struct wf_shm_call *a, const struct wf_shm_call *b)
{
    return a->collective == b->collective && a->dtype == b->dtype && a->reduction == b->reduction &&
           a->root == b->root && a->count == b->count;
}

weft_status wf_shm_call_differs(struct wf_shm_group *group, int32_t rank,
                                const struct wf_shm_call *call, int32_t other_rank,
                                const struct wf_shm_call *other)
{
    char text[160], other_text[160];

    print_call(call, text, sizeof text);
    print_call(other, other_text, sizeof other_text);
    return wf_shm_fail(group, WEFT_ERR_MISMATCH, "collective %llu: rank %d calls %s, rank %d %s",
                       (unsigned long long)group->number, (int)rank, text, (int)other_rank,
                       other_text);
}

weft_status wf_shm_check(struct wf_shm_group *group, int32_t rank, const struct wf_shm_call *mine,
                         const struct wf_shm_call *theirs)
{
    if (wf_shm_call_same(mine, theirs)) return WEFT_OK;
    return wf_shm_call_differs(group, group->peers[group->rank].name, mine, group->peers[rank].name,
                               theirs);
}
