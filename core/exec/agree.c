/* agree.c - the ranks that bind a plan compare it, and share the outcome. */
#include "bound.h"

#include <stdio.h>
#include <string.h>

/* A rank's description of its plan, which the ranks compare. */
struct plan_name {
    uint64_t digest;
    uint32_t packed, in_place;
    uint32_t bindings;   /* number of plans bound to the communicator so far */
    uint32_t casts;      /* enum wf_cast_ways of its backend */
    uint32_t tensors;    /* of a batch; 0: it is not a batch */
    struct wf_ways ways; /* of its backend */
    char text[240];      /* truncated if longer */
};

static void name_plan(const struct wf_bind_call *call, const weft_plan *plan, struct plan_name *out)
{
    memset(out, 0, sizeof *out);
    out->bindings = call->team->bindings;
    out->casts = call->casts;
    out->ways = call->ways;
    out->tensors = plan->members != NULL ? plan->member_count : 0;
    out->digest = plan->digest;
    out->packed = call->given.packed;
    out->in_place = call->given.in_place;
    wf_plan_name(plan, true, out->text, sizeof out->text);
}

/* The number in the call's communicator of rank NUMBER of the team. */
static int32_t number_rank(const struct wf_bind_call *call, int32_t number)
{
    return weft_comm_find_rank(call->parent, weft_comm_world_rank(call->team, number));
}

/* MINE of this rank, THEIRS of rank NUMBER of the team. */
static weft_status compare_plans(const struct wf_bind_call *call, const struct plan_name *mine,
                                 int32_t number, const struct plan_name *theirs)
{
    const weft_comm *comm = call->parent;
    int32_t i = number_rank(call, number);

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

/* Every rank of the team shows BYTES of DATA.  All ranks know that their plans differ. */
static weft_status show(const struct wf_bind_call *call, const void *data, size_t bytes,
                        struct wf_gathered *out)
{
    char label[192];
    weft_status status;

    snprintf(label, sizeof label, "%s on %s (comparing tensors)", call->function, call->team->name);
    status = wf_comm_agree(call->team, label, WEFT_OK, (weft_blob){data, bytes}, out);
    if (status != WEFT_OK) return wf_fail_named(status, call->function);
    for (int32_t i = 0; i < out->count && status == WEFT_OK; i++)
        if (out->blobs[i].bytes != bytes)
            status =
                wf_fail(WEFT_ERR_MISMATCH, "%s: rank %d sent data that does not describe a tensor",
                        call->function, number_rank(call, i));
    if (status != WEFT_OK) wf_gathered_free(out);
    return status;
}

/* ---- lists of sizes that differ ---- */

/* A number in the lists of sizes of a tensor's two specs: for each placement how many sizes it
 * lists, and then these. */
struct listed {
    int64_t value;
    int32_t spec;        /* 0: the source, 1: the target, 2: the lists have ended */
    int32_t axis, index; /* index -1: how many sizes */
    int32_t zero;
};

static struct listed find_listed(const weft_spec *from, const weft_spec *to, uint64_t position)
{
    const weft_spec *specs[] = {from, to};

    for (int32_t s = 0; s < 2; s++)
        for (int32_t a = 0; a < specs[s]->layout.mesh->axes; a++) {
            const weft_placement *p = &specs[s]->layout.placements[a];
            if (position == 0) return (struct listed){(int64_t)p->size_count, s, a, -1, 0};
            position--;
            if (position < p->size_count)
                return (struct listed){p->sizes[position], s, a, (int32_t)position, 0};
            position -= p->size_count;
        }
    return (struct listed){.spec = 2};
}

/* The digest of the first COUNT numbers; *LENGTH: how many there are of them. */
static uint64_t digest_listed(const weft_spec *from, const weft_spec *to, uint64_t count,
                              uint64_t *length)
{
    uint64_t digest = 0;

    for (*length = 0; *length < count; ++*length) {
        struct listed number = find_listed(from, to, *length);
        if (number.spec == 2) break;
        digest = wf_hash_mix(digest, (uint64_t)number.value);
    }
    return digest;
}

/* Show the digest of the first COUNT numbers.  *EQUAL: all ranks have the same numbers; *MOST: the
 * largest number of them. */
static weft_status compare_listed(const struct wf_bind_call *call, const weft_spec *from,
                                  const weft_spec *to, uint64_t count, bool *equal, uint64_t *most)
{
    uint64_t mine[2], theirs[2], first[2];
    struct wf_gathered got;

    mine[0] = digest_listed(from, to, count, &mine[1]);
    WF_TRY(show(call, mine, sizeof mine, &got));
    memcpy(first, got.blobs[0].data, sizeof first);
    *equal = true;
    *most = 0;
    for (int32_t i = 0; i < got.count; i++) {
        memcpy(theirs, got.blobs[i].data, sizeof theirs);
        *equal = *equal && memcmp(theirs, first, sizeof first) == 0;
        if (theirs[1] > *most) *most = theirs[1];
    }
    wf_gathered_free(&got);
    return WEFT_OK;
}

/* Add the values of number POSITION, which is the first that differs, to the error TEXT of
 * STATUS. */
static weft_status name_listed(const struct wf_bind_call *call, const weft_spec *from,
                               const weft_spec *to, uint64_t position, weft_status status,
                               const char *text)
{
    struct listed mine = find_listed(from, to, position), first, other;
    struct wf_gathered got;
    int32_t i = 1, ranks[2];

    WF_TRY(show(call, &mine, sizeof mine, &got));
    memcpy(&first, got.blobs[0].data, sizeof first);
    for (other = first; i < got.count && other.value == first.value; i++)
        memcpy(&other, got.blobs[i].data, sizeof other);
    wf_gathered_free(&got);
    ranks[0] = number_rank(call, 0);
    ranks[1] = number_rank(call, i - 1);
    if (first.spec == 2 || other.spec != first.spec) return wf_fail(status, "%s", text);
    if (first.index < 0)
        return wf_fail(status,
                       "%s; placement %d of the %s lists %lld sizes on rank %d and %lld on "
                       "rank %d",
                       text, first.axis, first.spec == 0 ? "source" : "target",
                       (long long)first.value, ranks[0], (long long)other.value, ranks[1]);
    return wf_fail(status,
                   "%s; size %d (from 0) of placement %d of the %s is %lld on rank %d and "
                   "%lld on rank %d",
                   text, first.index, first.axis, first.spec == 0 ? "source" : "target",
                   (long long)first.value, ranks[0], (long long)other.value, ranks[1]);
}

/* The tensors of the ranks differ, but their short texts do not, which show the first sizes of a
 * list only.  Add the first difference to the error of STATUS. */
static weft_status explain_sizes(const struct wf_bind_call *call, const weft_spec *from,
                                 const weft_spec *to, weft_status status)
{
    uint64_t same = 0, differ, most;
    bool equal;
    char text[1800];

    snprintf(text, sizeof text, "%s", weft_last_error());
    WF_TRY(compare_listed(call, from, to, UINT64_MAX, &equal, &differ));
    if (equal) return wf_fail(status, "%s", text); /* they differ in something else */
    while (differ - same > 1) {
        uint64_t middle = same + (differ - same) / 2;
        WF_TRY(compare_listed(call, from, to, middle, &equal, &most));
        if (equal)
            same = middle;
        else
            differ = middle;
    }
    return name_listed(call, from, to, same, status, text);
}

/* ---- batches that differ ---- */

/* What a rank shows of the first tensor that differs. */
struct tensor_name {
    uint64_t digest;
    uint32_t tensors; /* of its batch */
    char name[64];    /* its name or its index; "": the batch ends before it */
    char text[400];
};

static uint64_t digest_tensor(uint64_t digest, const struct wf_member *member)
{
    digest = wf_hash_mix(digest, member->alone != NULL ? member->alone->digest : 0);
    return wf_hash_mix(wf_hash_mix(digest, weft_spec_hash(member->from)),
                       weft_spec_hash(member->to));
}

/* Set *OUT to the first tensor in which the ranks' batches differ; COMMON: the first COMMON ones,
 * which all batches have, are equal.  Ranks compare one digest at a time, so that the cost does not
 * grow with the product of tensors and ranks. */
static weft_status find_tensor(const struct wf_bind_call *call, const weft_plan *plan,
                               uint32_t common, uint32_t *out)
{
    uint32_t same = 0, differ = common + 1; /* tensors at the beginning of the batches */

    while (differ - same > 1) {
        uint32_t middle = same + (differ - same) / 2;
        struct wf_gathered got;
        uint64_t mine = 0;
        bool equal = true;

        for (uint32_t i = 0; i < middle; i++)
            mine = digest_tensor(mine, &plan->members[i]);
        WF_TRY(show(call, &mine, sizeof mine, &got));
        for (int32_t i = 1; i < got.count; i++)
            equal = equal && memcmp(got.blobs[i].data, got.blobs[0].data, sizeof mine) == 0;
        wf_gathered_free(&got);
        if (equal)
            same = middle;
        else
            differ = middle;
    }
    *out = same;
    return WEFT_OK;
}

/* Describe tensor INDEX of this rank's batch. */
static void name_tensor(const struct wf_bind_call *call, const weft_plan *plan, uint32_t index,
                        struct tensor_name *out)
{
    memset(out, 0, sizeof *out);
    out->tensors = plan->member_count;
    if (index >= plan->member_count) return;
    out->digest = digest_tensor(0, &plan->members[index]);
    if (call->named != NULL && call->named[index].name != NULL)
        snprintf(out->name, sizeof out->name, "%s", call->named[index].name);
    if (out->name[0] == '\0') snprintf(out->name, sizeof out->name, "%u", index);
    wf_tensor_name(&plan->members[index], out->text, sizeof out->text);
}

static void read_tensor(weft_blob blob, struct tensor_name *out)
{
    memcpy(out, blob.data, sizeof *out);
    out->name[sizeof out->name - 1] = out->text[sizeof out->text - 1] = '\0';
}

static void print_tensor(const struct tensor_name *tensor, int32_t rank, struct wf_text *out)
{
    if (tensor->name[0] == '\0')
        wf_text_add(out, "on rank %d, the batch has %u tensors; ", rank, tensor->tensors);
    else
        wf_text_add(out, "on rank %d, tensor %s is %s; ", rank, tensor->name, tensor->text);
}

/* All ranks compare the others with the first, so that all name the same two.  *ALIKE: the texts of
 * the two are equal. */
static weft_status name_difference(const struct wf_bind_call *call, const struct wf_gathered *got,
                                   bool *alike)
{
    struct tensor_name first, other;
    struct wf_text text = {0};
    weft_status status;
    int32_t i = 1;

    *alike = false;
    read_tensor(got->blobs[0], &first);
    for (; i < got->count; i++) {
        read_tensor(got->blobs[i], &other);
        if (other.digest != first.digest || other.tensors != first.tensors) break;
    }
    if (i >= got->count) return WEFT_OK;
    *alike = strcmp(first.text, other.text) == 0;
    print_tensor(&first, number_rank(call, 0), &text);
    print_tensor(&other, number_rank(call, i), &text);
    status = wf_fail(WEFT_ERR_MISMATCH,
                     "%s: rank %d and rank %d bind different batches: %sall ranks must make the "
                     "same calls in the same order, with the same specs",
                     call->function, number_rank(call, 0), number_rank(call, i),
                     text.failed ? "" : text.data);
    wf_text_free(&text);
    return status;
}

/* The ranks' batches differ, and have at least COMMON tensors: name the first that differs.
 * STATUS is the error without it. */
static weft_status explain_batches(const struct wf_bind_call *call, const weft_plan *plan,
                                   uint32_t common, weft_status status)
{
    struct tensor_name mine;
    struct wf_gathered got;
    weft_status named;
    uint32_t index;
    bool alike;

    WF_TRY(find_tensor(call, plan, common, &index));
    name_tensor(call, plan, index, &mine);
    WF_TRY(show(call, &mine, sizeof mine, &got));
    named = name_difference(call, &got, &alike);
    wf_gathered_free(&got);
    if (named == WEFT_OK) return status;
    if (!alike || index >= common) return named;
    return explain_sizes(call, plan->members[index].from, plan->members[index].to, named);
}

/* ---- the agreement ---- */

/* How the plans of all ranks differ; the same on all ranks. */
struct difference {
    uint32_t common; /* the least number of tensors of their batches; 0: a plan is not a batch */
    bool alike;      /* no plan is a batch, and plans that differ have the same text */
};

static void read_plan(weft_blob blob, struct plan_name *out)
{
    memcpy(out, blob.data, sizeof *out);
    out->text[sizeof out->text - 1] = '\0';
}

/* Compare the plans that the ranks have shown. */
static weft_status compare_all(const struct wf_bind_call *call, const struct plan_name *mine,
                               const struct wf_gathered *got, struct wf_bind_outcome *out,
                               struct difference *difference)
{
    weft_status status = WEFT_OK;
    uint32_t least = mine->tensors, most = 0;
    struct plan_name first = {0}, theirs;
    bool differ = false, alike = false;

    *difference = (struct difference){0};
    for (int32_t i = 0; i < got->count; i++) {
        if (got->blobs[i].bytes != sizeof theirs)
            return wf_fail(WEFT_ERR_MISMATCH,
                           "%s: rank %d sent data that is not a plan: it called another function, "
                           "or it has another version of weft",
                           call->function, number_rank(call, i));
        read_plan(got->blobs[i], &theirs);
        if (i == 0) first = theirs;
        alike = alike || (theirs.digest != first.digest && strcmp(theirs.text, first.text) == 0);
        if (status == WEFT_OK) status = compare_plans(call, mine, i, &theirs);
        if (theirs.bindings >= out->binding) out->binding = theirs.bindings + 1;
        out->casts &= theirs.casts;
        wf_ways_join(&out->ways, &theirs.ways);
        differ = differ || theirs.digest != mine->digest;
        if (theirs.tensors < least) least = theirs.tensors;
        if (theirs.tensors > most) most = theirs.tensors;
    }
    if (differ) *difference = (struct difference){.common = least, .alike = alike && most == 0};
    return status;
}

weft_status wf_bind_agree(const struct wf_bind_call *call, const char *step, weft_status status,
                          const weft_plan *plan, struct wf_bind_outcome *out)
{
    weft_comm *comm = call->team;
    struct plan_name mine = {0};
    struct wf_agreement agreement;
    struct wf_gathered got;
    struct difference difference;
    char label[192];

    if (status == WEFT_OK) name_plan(call, plan, &mine);
    snprintf(label, sizeof label, "%s on %s (%s)", call->function, comm->name, step);
    agreement = wf_agreement_of(comm, label);
    if (status == WEFT_OK) agreement.about = mine.text;
    status = wf_agree(comm->context, &agreement, status, (weft_blob){&mine, sizeof mine}, &got);
    if (status != WEFT_OK) return wf_fail_named(status, call->function);
    *out = (struct wf_bind_outcome){comm->bindings + 1, call->casts, call->ways};
    status = compare_all(call, &mine, &got, out, &difference);
    wf_gathered_free(&got);
    if (difference.alike) return explain_sizes(call, plan->from, plan->to, status);
    return difference.common > 0 ? explain_batches(call, plan, difference.common, status) : status;
}
