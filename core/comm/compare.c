/* compare.c - WEFT_CHECK where no plugin compares all calls of a communicator: if a second plugin
 * has the symmetric memory, neither plugin sees the calls of the other.  The ranks compare these
 * calls over the rendezvous.  They do the same if weft averages for the backend. */
#include "comm.h"
#include "recording.h"

#include <stdio.h>
#include <string.h>

/* The identity of one rank's call. */
struct record {
    uint64_t plan;
    uint32_t binding, step;
    uint32_t kind; /* as wf_recent_add */
    uint32_t divisor;
};

static void print(const struct record *record, char *out, size_t bytes)
{
    const char *name = record->kind == WF_RECENT_PULL ? "pull" : wf_collective_name(record->kind);
    char divisor[32] = "";

    if (record->kind == WF_RECENT_SYMM_BARRIER) {
        snprintf(out, bytes, "calls weft_symm_barrier of symmetric memory #%llu",
                 (unsigned long long)record->plan);
        return;
    }
    if (name == NULL) name = "an unknown collective";
    if (record->divisor != 0)
        snprintf(divisor, sizeof divisor, " with divisor %u", record->divisor);
    if (record->binding == 0)
        snprintf(out, bytes, "calls %s%s", name, divisor);
    else
        snprintf(out, bytes, "runs step %u of plan %016llx (binding %u) as %s%s", record->step,
                 (unsigned long long)record->plan, record->binding, name, divisor);
}

static weft_status differ(const weft_comm *comm, const struct record *first, int32_t other,
                          const struct record *theirs)
{
    bool of_plans = (first->binding != 0 || theirs->binding != 0) &&
                    (first->plan != theirs->plan || first->binding != theirs->binding ||
                     first->step != theirs->step);
    char text[192], other_text[192];

    print(first, text, sizeof text);
    print(theirs, other_text, sizeof other_text);
    return wf_fail(WEFT_ERR_MISMATCH, "rank %d %s, rank %d %s%s", comm->world_ranks[0], text,
                   comm->world_ranks[other], other_text,
                   of_plans ? "; all ranks must run bound plans in the same order" : "");
}

/* Every rank compares all records with the first one, so all ranks find the same difference. */
static weft_status compare(const weft_comm *comm, const struct wf_gathered *got)
{
    struct record first, other;

    for (int32_t i = 0; i < got->count; i++) {
        if (got->blobs[i].bytes != sizeof other)
            return wf_fail(WEFT_ERR_MISMATCH,
                           "rank %d is in another operation than a collective on %s; all ranks "
                           "must make the same calls in the same order",
                           comm->world_ranks[i], comm->name);
        memcpy(&other, got->blobs[i].data, sizeof other);
        if (i == 0) first = other;
        if (memcmp(&first, &other, sizeof first) != 0) return differ(comm, &first, i, &other);
    }
    return WEFT_OK;
}

weft_status wf_comm_compare(weft_comm *comm, uint32_t kind, const struct wf_call_identity *identity)
{
    struct record mine = {.plan = identity->plan,
                          .binding = identity->binding,
                          .step = identity->step,
                          .kind = kind,
                          .divisor = identity->divisor};
    struct wf_submitted record;
    struct wf_gathered got;
    char label[160];
    weft_status status;

    snprintf(label, sizeof label, "comparing calls on %s", comm->name);
    record = wf_record_agreement(comm, "WEFT_CHECK", NULL, 0);
    status = wf_record_created(
        comm, record, wf_comm_agree(comm, label, WEFT_OK, (weft_blob){&mine, sizeof mine}, &got));
    if (status != WEFT_OK) return status;
    status = compare(comm, &got);
    wf_gathered_free(&got);
    return status;
}
