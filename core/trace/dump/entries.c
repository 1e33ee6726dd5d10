/* entries.c - the records of a dump. */
#include "dump.h"

#include "weft/cost.h"
#include "weft/status.h"

/* ---- times ---- */

/* Nanoseconds since the epoch. */
static int64_t time_of(const struct wf_dump *dump, uint64_t ticks)
{
    return dump->epoch_ns + (int64_t)wf_ticks_convert(dump->begun, dump->now, ticks);
}

static void write_time(const struct wf_dump *dump, struct wf_encoder *to, const char *key,
                       uint64_t ticks)
{
    wf_emit_key(to, key);
    if (ticks != 0)
        wf_emit_number(to, time_of(dump, ticks));
    else
        wf_emit_none(to);
}

static void write_times(const struct wf_dump *dump, struct wf_encoder *to,
                        const weft_record *record)
{
    bool runs_in_call = (record->flags & WEFT_RECORD_ON_STREAM) == 0;
    uint64_t started = record->started == 0 && runs_in_call ? record->submitted : record->started;
    bool is_done = record->state == WEFT_RECORD_FINISHED;

    write_time(dump, to, "time_created_ns", record->submitted);
    write_time(dump, to, "time_discovered_started_ns", started);
    write_time(dump, to, "time_discovered_completed_ns", is_done ? record->finished : 0);
    /* On a stream the host does not know when the work began, unless the device measured it. */
    if (is_done && started != 0 && record->finished > started &&
        (runs_in_call || (record->flags & WEFT_RECORD_DEVICE_TIMES) != 0)) {
        wf_emit_key(to, "duration_ms");
        wf_emit_milliseconds(to,
                             (uint64_t)(time_of(dump, record->finished) - time_of(dump, started)));
    }
}

/* ---- the operation ---- */

/* The number of ranks in LIST that are less than RANK: the analyser sorts a group's ranks. */
static int64_t place_in(const char *list, int32_t rank)
{
    int64_t other, left = 0, place = 0;

    while (wf_ranks_next(&list, &other, &left))
        place += other < rank;
    return place;
}

/* "gloo:all_reduce", "nccl:send 1->2"; "weft:redistribute" for what the analyser does not know. */
static void write_name(const struct wf_dump *dump, struct wf_encoder *to, const weft_record *record,
                       const char *ranks)
{
    int64_t own = place_in(ranks, dump->trace->segment->rank);
    const char *known = wf_dump_operation(record);
    const char *other = weft_record_operation_name((enum weft_record_operation)record->operation);
    char name[160];
    struct wf_phrase phrase = {name, sizeof name, 0};

    wf_phrase_add(&phrase,
                  known != NULL ? wf_dump_transport(dump->trace->segment->backend) : "weft");
    wf_phrase_add(&phrase, ":");
    wf_phrase_add(&phrase, known != NULL ? known : other != NULL ? other : "unknown operation");
    if (wf_dump_is_message(record)) {
        wf_phrase_add(&phrase, " ");
        wf_phrase_add_decimal(&phrase, own);
        wf_phrase_add(&phrase, record->operation == WEFT_RECORD_SEND ? "->" : "<-");
        wf_phrase_add_decimal(&phrase, place_in(ranks, record->peer));
    }
    wf_emit_text_at(to, "profiling_name", name);
}

/* [[8]]; a size that is not stated is that of a scalar, [[]]. */
static void write_size(struct wf_encoder *to, const char *sizes, const char *dtypes, uint64_t size,
                       uint32_t dtype)
{
    wf_emit_key(to, sizes);
    wf_emit_open(to, WF_LIST);
    wf_emit_open(to, WF_LIST);
    if (size != WF_UNSTATED) wf_emit_number(to, (int64_t)size);
    wf_emit_close(to, WF_LIST);
    wf_emit_close(to, WF_LIST);
    wf_emit_key(to, dtypes);
    wf_emit_open(to, WF_LIST);
    wf_emit_text(to, wf_dump_dtype(dtype));
    wf_emit_close(to, WF_LIST);
}

static const char *name_state(const weft_record *record)
{
    if (record->state == WEFT_RECORD_FINISHED) return "completed";
    return wf_dump_has_started(record) ? "started" : "scheduled";
}

/* The tensor and the step: "W, step all-gather along dp at plan 0123456789abcdef:2". */
static void write_frames(const struct wf_dump *dump, struct wf_encoder *to,
                         const weft_record *record)
{
    const char *label = wf_trace_text(dump->trace, record->label);
    const char *axes = wf_trace_text(dump->trace, record->axes);
    char text[512], plan[32], digest[17];
    struct wf_phrase name = {text, sizeof text, 0}, file = {plan, sizeof plan, 0};

    wf_emit_key(to, "frames");
    wf_emit_open(to, WF_LIST);
    if (label[0] != '\0' || record->plan != 0) {
        text[0] = '\0';
        wf_phrase_add(&name, label);
        if (record->step_kind < WEFT_STEP_KINDS) {
            wf_phrase_add(&name, label[0] != '\0' ? ", step " : "step ");
            wf_phrase_add(&name, weft_step_name((enum weft_step_kind)record->step_kind));
            wf_phrase_add(&name, axes[0] != '\0' ? " along " : "");
            wf_phrase_add(&name, axes);
        }
        wf_print_hex(record->plan, digest);
        wf_phrase_add(&file, "plan ");
        wf_phrase_add(&file, digest);
        wf_emit_open(to, WF_MAP);
        wf_emit_text_at(to, "name", text);
        wf_emit_text_at(to, "filename", plan);
        wf_emit_number_at(to, "line", record->step);
        wf_emit_close(to, WF_MAP);
    }
    wf_emit_close(to, WF_LIST);
}

/* What PyTorch's format does not have. */
static void write_more(const struct wf_dump *dump, struct wf_encoder *to, const weft_record *record,
                       weft_status failed)
{
    const char *operation =
        weft_record_operation_name((enum weft_record_operation)record->operation);
    const char *dtype = weft_dtype_name((enum weft_dtype)record->dtype);
    const char *stream = wf_trace_stream_name(dump->trace, record->stream);
    char plan[17], number[WF_DECIMAL];

    wf_print_hex(record->plan, plan);
    wf_print_decimal((int64_t)record->stream, number);
    wf_emit_number_at(to, "id", (int64_t)record->id);
    wf_emit_text_at(to, "operation", operation != NULL ? operation : "unknown operation");
    wf_emit_key(to, "step_kind");
    if (record->step_kind < WEFT_STEP_KINDS)
        wf_emit_text(to, weft_step_name((enum weft_step_kind)record->step_kind));
    else
        wf_emit_none(to);
    wf_emit_number_at(to, "step", record->step);
    wf_emit_text_at(to, "plan", plan);
    wf_emit_number_at(to, "binding", record->binding);
    wf_emit_number_at(to, "parent", record->parent);
    wf_emit_text_at(to, "label", wf_trace_text(dump->trace, record->label));
    wf_emit_text_at(to, "axes", wf_trace_text(dump->trace, record->axes));
    wf_emit_text_at(to, "comm", wf_trace_text(dump->trace, record->comm_name));
    wf_emit_text_at(to, "dtype", dtype != NULL ? dtype : "unknown dtype");
    wf_emit_number_at(to, "sent", (int64_t)record->sent);
    wf_emit_number_at(to, "received", (int64_t)record->received);
    wf_emit_number_at(to, "peer", record->peer);
    wf_emit_text_at(to, "stream", stream[0] != '\0' ? stream : number);
    wf_emit_truth_at(to, "on_stream", (record->flags & WEFT_RECORD_ON_STREAM) != 0);
    wf_emit_truth_at(to, "implicit", (record->flags & WEFT_RECORD_IMPLICIT) != 0);
    wf_emit_truth_at(to, "cached", (record->flags & WEFT_RECORD_CACHED) != 0);
    wf_emit_key(to, "failed");
    if (failed != WEFT_OK)
        wf_emit_text(to, weft_status_name(failed));
    else
        wf_emit_none(to);
}

/* ---- the entry ---- */

static void write_group_of(struct wf_encoder *to, const weft_record *record,
                           const struct wf_dump_group *group)
{
    wf_emit_number_at(to, "pg_id", (int64_t)record->comm);
    wf_emit_key(to, "process_group");
    wf_emit_open(to, WF_TUPLE);
    wf_emit_text(to, group->name);
    wf_emit_text(to, group->desc);
    wf_emit_close(to, WF_TUPLE);
}

/* The rank that RECORD waits for; -1: none, or not known. */
static int32_t awaited(const weft_record *record, const struct wf_dump_comm *comm)
{
    if (record->state == WEFT_RECORD_FINISHED) return -1;
    return record->waits_for < 0 && comm != NULL ? comm->waits_for : record->waits_for;
}

/* The error of RECORD.  A dump may be written before the failure of its communicator ends it. */
static weft_status error_of(const weft_record *record, const struct wf_dump_comm *comm)
{
    if (record->state == WEFT_RECORD_FAILED) return (weft_status)record->status;
    return record->state == WEFT_RECORD_FINISHED || comm == NULL ? WEFT_OK : comm->failed;
}

static int64_t limit_ms(const struct wf_dump *dump, const weft_record *record)
{
    int64_t limit = wf_trace_limit_of(dump->trace, record->comm);

    return limit < 0 ? -1 : limit / 1000000;
}

static void write_entry(const struct wf_dump *dump, struct wf_encoder *to,
                        const weft_record *record, uint64_t number, bool is_pickle)
{
    const struct wf_dump_comm *comm = wf_dump_find_comm(dump, record->comm);
    struct wf_dump_sizes sizes = wf_dump_sizes_of(record, comm != NULL ? comm->size : 1);
    bool is_message = wf_dump_is_message(record);
    weft_status failed = error_of(record, comm);
    struct wf_dump_group group = {.ranks = ""};

    if (comm != NULL && is_message && is_pickle)
        (void)wf_dump_describe_pair(dump, comm, record, &group);
    else if (comm != NULL)
        (void)wf_dump_describe_comm(dump, comm, &group);
    wf_emit_open(to, WF_MAP);
    wf_emit_number_at(to, "record_id", (int64_t)number);
    write_group_of(to, record, &group);
    wf_emit_number_at(to, "collective_seq_id", (int64_t)record->sequence);
    wf_emit_number_at(to, "p2p_seq_id", is_message ? (int64_t)record->sequence : 0);
    wf_emit_number_at(to, "op_id", (int64_t)record->id);
    write_name(dump, to, record, group.ranks);
    write_times(dump, to, record);
    write_size(to, "input_sizes", "input_dtypes", sizes.in, record->dtype);
    write_size(to, "output_sizes", "output_dtypes", sizes.out, record->dtype);
    wf_emit_text_at(to, "state", name_state(record));
    wf_emit_number_at(to, "timeout_ms", limit_ms(dump, record));
    wf_emit_truth_at(to, "is_p2p", is_message);
    wf_emit_truth_at(to, "retired", record->state == WEFT_RECORD_FINISHED || failed != WEFT_OK);
    wf_emit_number_at(to, "waits_for", awaited(record, comm));
    write_frames(dump, to, record);
    if (!is_pickle) write_more(dump, to, record, failed);
    wf_emit_close(to, WF_MAP);
}

/* The analyser ignores entries whose record_id is less than the first of any rank.  So the first
 * has the number of the oldest record that the recorder has room for, which is the same on all
 * ranks until the recorder is full. */
void wf_dump_entries(const struct wf_dump *dump, struct wf_encoder *pickle, struct wf_encoder *json)
{
    bool is_first = true, is_first_known = true;
    weft_record record;

    for (uint64_t id = dump->first; id <= dump->last; id++) {
        if (!wf_trace_read(dump->trace, id, &record)) continue;
        write_entry(dump, json, &record, is_first ? dump->first : id, false);
        is_first = false;
        if (!wf_dump_is_known(dump, &record, wf_dump_find_comm(dump, record.comm))) continue;
        write_entry(dump, pickle, &record, is_first_known ? dump->first : id, true);
        is_first_known = false;
    }
}
