/* agree.c - the ranks that bind a plan compare it, and share the outcome. */
#include "bound.h"

#include <stdio.h>
#include <string.h>

/* A rank's description of its plan, which the ranks compare. */
struct plan_name {
    uint64_t digest;
    uint32_t packed, in_place;
    uint32_t bindings; /* number of plans bound to the communicator so far */
    uint32_t casts;    /* enum wf_cast_ways of its backend */
    uint32_t refused;  /* as in wf_bind_call, of its backend */
    char text[240];    /* truncated if longer */
};

static void name_plan(const struct wf_bind_call *call, const weft_plan *plan, struct plan_name *out)
{
    memset(out, 0, sizeof *out);
    out->bindings = call->team->bindings;
    out->casts = call->casts;
    out->refused = call->refused;
    out->digest = plan->digest;
    out->packed = call->given.packed;
    out->in_place = call->given.in_place;
    wf_plan_name(plan, true, out->text, sizeof out->text);
}

/* MINE of this rank, THEIRS of rank NUMBER of the team. */
static weft_status compare_plans(const struct wf_bind_call *call, const struct plan_name *mine,
                                 int32_t number, const struct plan_name *theirs)
{
    const weft_comm *comm = call->parent;
    int32_t i = weft_comm_find_rank(comm, weft_comm_world_rank(call->team, number));

    if (theirs->digest != mine->digest)
        return wf_fail(WEFT_ERR_MISMATCH,
                       "%s: rank %d and rank %d bind different plans: %s (digest %016llx) on "
                       "rank %d, %s (digest %016llx) on rank %d; all ranks must make the same "
                       "calls in the same order, with the same specs",
                       call->function, i, comm->rank, theirs->text,
                       (unsigned long long)theirs->digest, i, mine->text,
                       (unsigned long long)mine->digest, comm->rank);
    if (theirs->packed != mine->packed)
        return wf_fail(WEFT_ERR_MISMATCH, "%s: rank %d binds %s packed, rank %d does not",
                       call->function, theirs->packed ? i : comm->rank, mine->text,
                       theirs->packed ? comm->rank : i);
    if (theirs->in_place != mine->in_place)
        return wf_fail(WEFT_ERR_MISMATCH, "%s: rank %d binds %s in place, rank %d does not",
                       call->function, theirs->in_place ? i : comm->rank, mine->text,
                       theirs->in_place ? comm->rank : i);
    return WEFT_OK;
}

weft_status wf_bind_agree(const struct wf_bind_call *call, const char *step, weft_status status,
                          const weft_plan *plan, struct wf_bind_outcome *out)
{
    weft_comm *comm = call->team;
    struct plan_name mine = {0}, theirs;
    struct wf_agreement agreement;
    struct wf_gathered got;
    char label[192];

    if (status == WEFT_OK) name_plan(call, plan, &mine);
    snprintf(label, sizeof label, "%s on %s (%s)", call->function, comm->name, step);
    agreement = wf_agreement_of(comm, label);
    if (status == WEFT_OK) agreement.about = mine.text;
    status = wf_agree(comm->context, &agreement, status, (weft_blob){&mine, sizeof mine}, &got);
    if (status != WEFT_OK) return wf_fail_named(status, call->function);
    *out = (struct wf_bind_outcome){comm->bindings + 1, call->casts, call->refused};
    for (int32_t i = 0; i < got.count && status == WEFT_OK; i++) {
        if (got.blobs[i].bytes != sizeof theirs) {
            status = wf_fail(WEFT_ERR_MISMATCH,
                             "%s: rank %d sent data that is not a plan: it called another "
                             "function, or it has another version of weft",
                             call->function, i);
            break;
        }
        memcpy(&theirs, got.blobs[i].data, sizeof theirs);
        theirs.text[sizeof theirs.text - 1] = '\0';
        status = compare_plans(call, &mine, i, &theirs);
        if (theirs.bindings >= out->binding) out->binding = theirs.bindings + 1;
        out->casts &= theirs.casts;
        out->refused |= theirs.refused;
    }
    wf_gathered_free(&got);
    return status;
}
