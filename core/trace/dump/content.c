/* content.c - what a dump contains: communicators, and how far each has come. */
#include "dump.h"

#include "weft/status.h"

#include <string.h>
#include <time.h>

bool wf_dump_is_message(const weft_record *record)
{
    return record->operation == WEFT_RECORD_SEND || record->operation == WEFT_RECORD_RECEIVE;
}

/* ---- looking ---- */

const struct wf_dump_comm *wf_dump_find_comm(const struct wf_dump *dump, uint64_t number)
{
    for (uint32_t i = 0; number != 0 && i < dump->comm_count; i++)
        if (dump->comms[i].number == number) return &dump->comms[i];
    return NULL;
}

static void add_comm(struct wf_dump *dump, const struct wf_segment_comm *comm, uint64_t number)
{
    struct wf_dump_comm *known = &dump->comms[dump->comm_count];

    if (number == 0 || wf_dump_find_comm(dump, number) != NULL) return;
    known->number = number;
    known->name = wf_trace_text(dump->trace, atomic_load(&comm->name));
    known->ranks = wf_trace_text(dump->trace, atomic_load(&comm->ranks));
    known->rank = atomic_load(&comm->rank);
    known->size = atomic_load(&comm->size);
    known->failed = (weft_status)atomic_load(&comm->failed);
    known->waits_for = atomic_load(&comm->waits_for);
    known->enqueued = known->started = known->completed = -1;
    if (atomic_load(&comm->number) == number) dump->comm_count++; /* it was not replaced */
}

static int64_t later(int64_t one, uint64_t other)
{
    return one > (int64_t)other ? one : (int64_t)other;
}

bool wf_dump_has_started(const weft_record *record)
{
    return record->started != 0 || (record->flags & WEFT_RECORD_ON_STREAM) == 0 ||
           record->state == WEFT_RECORD_FINISHED;
}

/* Note how far each communicator has come. */
static void look_at_records(struct wf_dump *dump)
{
    for (uint64_t id = dump->first; id <= dump->last; id++) {
        const struct wf_dump_comm *found;
        struct wf_dump_comm *comm;
        weft_record record;

        if (!wf_trace_read(dump->trace, id, &record) || wf_dump_is_message(&record)) continue;
        found = wf_dump_find_comm(dump, record.comm);
        if (found == NULL || record.sequence == 0 || wf_record_is_creation(&record)) continue;
        comm = &dump->comms[found - dump->comms];
        comm->enqueued = later(comm->enqueued, record.sequence);
        if (wf_dump_has_started(&record)) comm->started = later(comm->started, record.sequence);
        if (record.state == WEFT_RECORD_FINISHED)
            comm->completed = later(comm->completed, record.sequence);
    }
}

void wf_dump_look(struct wf_dump *dump, const struct wf_trace *trace)
{
    struct wf_segment *segment = trace->segment;
    struct timespec now;

    dump->trace = trace;
    dump->comm_count = 0;
    for (size_t i = 0; i < WF_SEGMENT_COMMS; i++)
        add_comm(dump, &segment->comms[i], atomic_load(&segment->comms[i].number));
    for (size_t i = 0; i < WF_RELEASED_COMMS; i++)
        add_comm(dump, &trace->released[i], atomic_load(&trace->released[i].number));
    dump->last = atomic_load(&segment->next);
    dump->first = dump->last > trace->mask ? dump->last - trace->mask : 1;
    dump->begun = (struct wf_instant){segment->begun_ticks, segment->begun_ns};
    dump->now = wf_instant_apart(dump->begun);
    clock_gettime(CLOCK_REALTIME, &now);
    dump->epoch_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)wf_now_ns();
    look_at_records(dump);
}

/* ---- groups ---- */

struct wf_dump_group *wf_dump_describe_comm(const struct wf_dump *dump,
                                            const struct wf_dump_comm *comm,
                                            struct wf_dump_group *out)
{
    struct wf_phrase name = {out->name, sizeof out->name, 0};
    struct wf_phrase desc = {out->desc, sizeof out->desc, 0};

    wf_phrase_add_decimal(&name, (int64_t)comm->number);
    wf_phrase_add(&desc, comm->name);
    wf_phrase_add(&desc, " on ");
    wf_phrase_add(&desc, dump->trace->segment->backend);
    out->ranks = comm->ranks;
    return out;
}

struct wf_dump_group *wf_dump_describe_pair(const struct wf_dump *dump,
                                            const struct wf_dump_comm *comm,
                                            const weft_record *message, struct wf_dump_group *out)
{
    struct wf_phrase name = {out->name, sizeof out->name, 0};
    struct wf_phrase desc = {out->desc, sizeof out->desc, 0};
    struct wf_phrase pair = {out->pair, sizeof out->pair, 0};
    int32_t own = dump->trace->segment->rank, peer = message->peer;
    bool sends = message->operation == WEFT_RECORD_SEND;
    char way[2 * WF_DECIMAL];
    struct wf_phrase between = {way, sizeof way, 0};

    wf_phrase_add_decimal(&between, sends ? own : peer);
    wf_phrase_add(&between, "->");
    wf_phrase_add_decimal(&between, sends ? peer : own);
    wf_phrase_add_decimal(&name, (int64_t)comm->number);
    wf_phrase_add(&name, ":");
    wf_phrase_add(&name, way);
    wf_phrase_add(&desc, comm->name);
    wf_phrase_add(&desc, " ");
    wf_phrase_add(&desc, way);
    wf_phrase_add(&desc, " on ");
    wf_phrase_add(&desc, dump->trace->segment->backend);
    wf_phrase_add_decimal(&pair, own < peer ? own : peer);
    wf_phrase_add(&pair, ",");
    wf_phrase_add_decimal(&pair, own < peer ? peer : own);
    out->ranks = out->pair;
    return out;
}

static void write_group(struct wf_encoder *to, const struct wf_dump_group *group)
{
    wf_emit_key(to, group->name);
    wf_emit_open(to, WF_MAP);
    wf_emit_text_at(to, "name", group->name);
    wf_emit_text_at(to, "desc", group->desc);
    wf_emit_key(to, "ranks");
    if (wf_ranks_are_complete(group->ranks))
        wf_emit_ranks(to, group->ranks);
    else
        wf_emit_text(to, group->ranks);
    wf_emit_close(to, WF_MAP);
}

/* True if the analyser can match RECORD, of COMM, with the records of other ranks. */
bool wf_dump_is_known(const struct wf_dump *dump, const weft_record *record,
                      const struct wf_dump_comm *comm)
{
    return comm != NULL && record->sequence != 0 && wf_dump_operation(record) != NULL &&
           wf_ranks_are_complete(comm->ranks) &&
           !(wf_dump_is_message(record) && record->peer == dump->trace->segment->rank);
}

#define PAIRS 64

/* The groups of messages.  A pickle may have the same key twice, so remembering some pairs is
 * enough to keep it short. */
static void write_pairs(const struct wf_dump *dump, struct wf_encoder *to)
{
    struct {
        uint64_t comm;
        int32_t peer, operation;
    } seen[PAIRS] = {{0, 0, 0}};
    struct wf_dump_group group;
    weft_record record;

    for (uint64_t id = dump->first; id <= dump->last; id++) {
        const struct wf_dump_comm *comm;
        uint32_t at;

        if (!wf_trace_read(dump->trace, id, &record) || !wf_dump_is_message(&record)) continue;
        comm = wf_dump_find_comm(dump, record.comm);
        at = (uint32_t)(record.comm * 31 + (uint32_t)record.peer * 2 + record.operation) % PAIRS;
        if (!wf_dump_is_known(dump, &record, comm) ||
            (seen[at].comm == record.comm && seen[at].peer == record.peer &&
             seen[at].operation == record.operation))
            continue;
        seen[at].comm = record.comm;
        seen[at].peer = record.peer;
        seen[at].operation = record.operation;
        write_group(to, wf_dump_describe_pair(dump, comm, &record, &group));
    }
}

void wf_dump_groups(const struct wf_dump *dump, struct wf_encoder *to, bool is_pickle)
{
    struct wf_dump_group group;

    wf_emit_key(to, "pg_config");
    wf_emit_open(to, WF_MAP);
    for (uint32_t i = 0; i < dump->comm_count; i++)
        if (!is_pickle || wf_ranks_are_complete(dump->comms[i].ranks))
            write_group(to, wf_dump_describe_comm(dump, &dump->comms[i], &group));
    if (is_pickle) write_pairs(dump, to);
    wf_emit_close(to, WF_MAP);
}

void wf_dump_progress(const struct wf_dump *dump, struct wf_encoder *to, bool is_pickle)
{
    wf_emit_key(to, "pg_status");
    wf_emit_open(to, WF_MAP);
    for (uint32_t i = 0; i < dump->comm_count; i++) {
        const struct wf_dump_comm *comm = &dump->comms[i];
        char number[WF_DECIMAL];

        wf_print_decimal((int64_t)comm->number, number);
        wf_emit_key(to, number);
        wf_emit_open(to, WF_MAP);
        wf_emit_number_at(to, "last_enqueued_collective", comm->enqueued);
        wf_emit_number_at(to, "last_started_collective", comm->started);
        wf_emit_number_at(to, "last_completed_collective", comm->completed);
        if (!is_pickle) {
            wf_emit_key(to, "failed");
            if (comm->failed != WEFT_OK)
                wf_emit_text(to, weft_status_name(comm->failed));
            else
                wf_emit_none(to);
            wf_emit_number_at(to, "waits_for", comm->waits_for);
        }
        wf_emit_close(to, WF_MAP);
    }
    wf_emit_close(to, WF_MAP);
}
