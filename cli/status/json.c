/* json.c - the state of a job as JSON. */
#include "status/status.h"

#include <inttypes.h>

static void add_rank_list(struct wf_json *json, const char *key, const struct status_job *job,
                          const bool *chosen)
{
    wf_json_begin(json, key, '[');
    for (int32_t i = 0; i < job->rank_count; i++)
        if (chosen[i]) wf_json_int(json, NULL, job->ranks[i].info.rank);
    wf_json_end(json, ']');
}

static void add_rank(struct wf_json *json, const struct status_rank *rank)
{
    wf_json_begin(json, NULL, '{');
    wf_json_int(json, "rank", rank->info.rank);
    wf_json_int(json, "pid", rank->info.pid);
    wf_json_string(json, "host", rank->info.host);
    wf_json_bool(json, "alive", rank->info.alive);
    wf_json_bool(json, "stopped", rank->info.stopped);
    wf_json_bool(json, "moved", rank->moved);
    wf_json_uint(json, "records", rank->info.newest);
    wf_json_end(json, '}');
}

void status_add_record(struct wf_json *json, const char *key, const weft_recorder *recorder,
                       uint64_t read_ns, const weft_record *record)
{
    static const char *const states[] = {[WEFT_RECORD_SUBMITTED] = "submitted",
                                         [WEFT_RECORD_FINISHED] = "finished",
                                         [WEFT_RECORD_FAILED] = "failed"};
    const char *label;
    bool has_data;

    if (record == NULL) {
        wf_json_null(json, key);
        return;
    }
    label = weft_recorder_text(recorder, record->label);
    has_data = record->sent > 0 || record->received > 0;
    wf_json_begin(json, key, '{');
    wf_json_string(json, "operation",
                   weft_record_operation_name((enum weft_record_operation)record->operation));
    wf_json_uint(json, "sequence", record->sequence);
    wf_json_string(json, "state", states[record->state]);
    wf_json_string(json, "error",
                   record->state == WEFT_RECORD_FAILED ? weft_status_name(record->status) : NULL);
    wf_json_string(json, "dtype",
                   has_data ? weft_dtype_name((enum weft_dtype)record->dtype) : NULL);
    wf_json_string(json, "reduction",
                   status_reduces(record) ? wf_reduction_name(record->reduction) : NULL);
    wf_json_uint(json, "sent", record->sent);
    wf_json_uint(json, "received", record->received);
    if (record->peer >= 0)
        wf_json_int(json, "peer", record->peer);
    else
        wf_json_null(json, "peer");
    wf_json_string(json, "label", label[0] != '\0' ? label : NULL);
    wf_json_uint(json, "submitted_ago_ns", status_since(read_ns, record->submitted));
    if (record->finished != 0)
        wf_json_uint(json, "finished_ago_ns", status_since(read_ns, record->finished));
    else
        wf_json_null(json, "finished_ago_ns");
    wf_json_end(json, '}');
}

static void add_group(struct wf_json *json, const struct status_job *job,
                      const struct status_group *group)
{
    const struct status_position *p = group->first;

    wf_json_begin(json, NULL, '{');
    add_rank_list(json, "ranks", job, group->members);
    wf_json_string(json, "outlier", status_mark_name(p));
    wf_json_uint(json, "sequence", p->sequence);
    wf_json_uint(json, "since_ns", group->since_ns);
    wf_json_string(json, "failed", p->failed != WEFT_OK ? weft_status_name(p->failed) : NULL);
    status_add_record(json, "begun", p->rank->recorder, job->read_ns, p->begun);
    status_add_record(json, "finished", p->rank->recorder, job->read_ns, p->finished);
    wf_json_end(json, '}');
}

static void add_comm(struct wf_json *json, const struct status_job *job,
                     const struct status_comm *comm)
{
    struct wf_text absent = {0};

    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "name", comm->name);
    wf_json_string(json, "ranks", comm->ranks);
    wf_json_int(json, "size", comm->size);
    status_add_absent(&absent, comm);
    wf_json_string(json, "absent", absent.data != NULL ? absent.data : "");
    if (absent.failed) json->out->failed = true;
    wf_json_string(json, "carrier", comm->carrier);
    wf_json_bool(json, "idle", comm->idle);
    wf_text_free(&absent);
    wf_json_begin(json, "groups", '[');
    for (int32_t i = 0; i < comm->group_count; i++)
        add_group(json, job, &comm->groups[i]);
    wf_json_end(json, ']');
    wf_json_end(json, '}');
}

/* Whom each rank waits for. */
static void add_waits(struct wf_json *json, const struct status_job *job)
{
    wf_json_begin(json, "waits", '[');
    for (int32_t w = 0; w < job->rank_count; w++)
        for (int32_t b = 0; b < job->rank_count; b++) {
            uint32_t comm = job->waits[w * job->rank_count + b];

            if (comm == 0) continue;
            wf_json_begin(json, NULL, '{');
            wf_json_int(json, "rank", job->ranks[w].info.rank);
            wf_json_int(json, "for", job->ranks[b].info.rank);
            wf_json_string(json, "communicator", job->comms[comm - 1].name);
            wf_json_end(json, '}');
        }
    wf_json_end(json, ']');
    wf_json_begin(json, "waits_elsewhere", '[');
    for (int32_t w = 0; w < job->rank_count; w++) {
        const struct status_elsewhere *wait = &job->elsewhere[w];

        if (wait->comm == NULL) continue;
        wf_json_begin(json, NULL, '{');
        wf_json_int(json, "rank", job->ranks[w].info.rank);
        if (wait->rank >= 0)
            wf_json_int(json, "for", wait->rank);
        else
            wf_json_null(json, "for");
        wf_json_string(json, "communicator", wait->comm->name);
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
}

static void add_causes(struct wf_json *json, const struct status_job *job)
{
    bool *waiting = wf_calloc((size_t)job->rank_count, sizeof *waiting);

    if (waiting == NULL) json->out->failed = true;
    wf_json_begin(json, "held_up_by", '[');
    for (int32_t i = 0; waiting != NULL && i < job->rank_count; i++) {
        if (!status_is_cause(job, i, waiting)) continue;
        wf_json_begin(json, NULL, '{');
        wf_json_int(json, "rank", job->ranks[i].info.rank);
        add_rank_list(json, "waiting", job, waiting);
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
    wf_free(waiting);
}

/* The ranks that called as CALLER says. */
static void add_callers(struct wf_json *json, const char *key, const struct status_job *job,
                        enum status_caller caller)
{
    wf_json_begin(json, key, '[');
    for (int32_t i = 0; i < job->rank_count; i++)
        if (job->difference.callers[i] == caller) wf_json_int(json, NULL, job->ranks[i].info.rank);
    wf_json_end(json, ']');
}

static void add_difference(struct wf_json *json, const struct status_job *job)
{
    const struct status_difference *found = &job->difference;

    if (found->comm == NULL) {
        wf_json_null(json, "first_difference");
        return;
    }
    wf_json_begin(json, "first_difference", '{');
    wf_json_string(json, "communicator", found->comm->name);
    wf_json_uint(json, "sequence", found->sequence);
    wf_json_int(json, "rank", found->rank->info.rank);
    add_callers(json, "ranks", job, STATUS_USUAL);
    status_add_record(json, "called", found->rank->recorder, job->read_ns, found->record);
    wf_json_int(json, "other", found->other->info.rank);
    add_callers(json, "other_ranks", job, STATUS_DIFFERENT);
    status_add_record(json, "other_called", found->other->recorder, job->read_ns,
                      found->other_record);
    add_callers(json, "third_ranks", job, STATUS_THIRD);
    wf_json_end(json, '}');
}

void status_add_json(struct wf_json *json, const struct status_job *job)
{
    const weft_recorder_info *info = &job->ranks[0].info;
    char id[24];

    snprintf(id, sizeof id, "%016" PRIx64, job->id);
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "job", id);
    wf_json_string(json, "program", info->program);
    wf_json_string(json, "backend", info->backend);
    wf_json_int(json, "size", job->size);
    wf_json_bool(json, "alive", job->alive > 0);
    wf_json_uint(json, "begun_ago_ns", status_since(job->read_ns, job->begun_ns));
    wf_json_begin(json, "ranks", '[');
    for (int32_t i = 0; i < job->rank_count; i++)
        add_rank(json, &job->ranks[i]);
    wf_json_end(json, ']');
    add_causes(json, job);
    add_waits(json, job);
    add_difference(json, job);
    wf_json_begin(json, "communicators", '[');
    for (size_t i = 0; i < job->comm_count; i++)
        add_comm(json, job, &job->comms[i]);
    wf_json_end(json, ']');
    wf_json_end(json, '}');
}
