/* agree.c - steps that all ranks of a communicator take together, for other libraries. */
#include "comm/comm.h"
#include "comm/recording.h"

#include "weft/extend.h"

#include <string.h>

struct weft_answers {
    weft_comm *comm;
    struct wf_gathered got;
    _Atomic uint64_t noted_ns; /* when the other ranks were last told of this rank's progress */
};

/* Steps after ANSWERS are numbered with their serial, which no communicator has. */
static struct wf_agreement step_after(const weft_answers *answers, const char *function)
{
    struct wf_agreement step = wf_agreement_of(answers->comm, function);

    step.number = answers->got.serial;
    step.is_long = true;
    return step;
}

/* Take STEP of the ranks of TEAM. */
static weft_status take(weft_comm *team, const struct wf_agreement *step, weft_status status,
                        weft_blob blob, weft_answers **out)
{
    weft_answers *answers = wf_calloc(1, sizeof *answers);
    struct wf_gathered unused = {0};

    if (answers == NULL && status == WEFT_OK) status = wf_fail_memory(sizeof *answers);
    status = wf_agree(team->context, step, status, blob, answers != NULL ? &answers->got : &unused);
    if (status != WEFT_OK) {
        wf_free(answers);
        return status;
    }
    answers->comm = team;
    *out = answers;
    return WEFT_OK;
}

weft_status weft_agree(weft_comm *comm, const char *function, weft_status status, const void *data,
                       size_t bytes, const weft_agree_options *options, weft_answers **out)
{
    weft_agree_options known = {.struct_size = sizeof known};
    struct wf_submitted record = {NULL, 0};
    weft_blob blob = {data != NULL ? data : "", bytes};
    struct wf_agreement step;
    weft_comm *team = comm;

    WF_TRY(wf_comm_check(comm, "weft_agree"));
    WF_TRY(wf_require(function, "weft_agree: function"));
    WF_TRY(wf_require(out, "weft_agree: out"));
    if (bytes > 0) WF_TRY(wf_require(data, "weft_agree: data"));
    WF_TRY(wf_options_read("weft_agree_options", options, &known, sizeof known));
    if (known.after != NULL && known.mesh != NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_agree: `after` and `mesh` are both set; a step of a mesh follows no "
                       "other step");
    if (known.after != NULL && known.after->comm != comm)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_agree: `after` has answers of the communicator \"%s\", not of \"%s\"",
                       known.after->comm->name, comm->name);
    if (known.mesh != NULL) {
        status = wf_comm_mesh_group(comm, known.mesh, function, status, &team);
        if (team == NULL) {
            if (status == WEFT_OK) *out = NULL;
            return wf_fail_named(status, function);
        }
    }
    step =
        known.after != NULL ? step_after(known.after, function) : wf_agreement_of(team, function);
    if (known.after == NULL) record = wf_record_agreement(team, function, NULL, 0);
    status = wf_record_created(team, record, take(team, &step, status, blob, out));
    return wf_fail_named(status, function);
}

void weft_agree_progress(weft_answers *answers, const char *function)
{
    uint64_t before, now = wf_now_ns();
    struct wf_agreement step;

    if (answers == NULL || function == NULL) return;
    step = step_after(answers, function);
    before = atomic_load(&answers->noted_ns);
    if (step.timeout_ns < 0 || now - before < (uint64_t)step.timeout_ns / WF_NOTES ||
        !atomic_compare_exchange_strong(&answers->noted_ns, &before, now))
        return;
    wf_agree_note(answers->comm->context, &step);
}

/* Simulated ranks pass the same, and have one entry. */
static const weft_blob *find_blob(const weft_answers *answers, int32_t rank)
{
    if (answers == NULL || rank < 0 || rank >= answers->comm->size) return NULL;
    return &answers->got.blobs[rank < answers->got.count ? rank : 0];
}

const void *weft_answers_data(const weft_answers *answers, int32_t rank)
{
    const weft_blob *blob = find_blob(answers, rank);

    return blob != NULL ? blob->data : NULL;
}

size_t weft_answers_bytes(const weft_answers *answers, int32_t rank)
{
    const weft_blob *blob = find_blob(answers, rank);

    return blob != NULL ? (size_t)blob->bytes : 0;
}

void weft_answers_release(weft_answers **answers)
{
    if (answers == NULL || *answers == NULL) return;
    wf_gathered_free(&(*answers)->got);
    wf_free(*answers);
    *answers = NULL;
}
