/* records.c - records of calls of other libraries. */
#include "comm/comm.h"
#include "comm/recording.h"

#include "weft/extend.h"

static struct wf_submitted submitted(const weft_open_record *record)
{
    return (struct wf_submitted){record->record, record->id};
}

void weft_record_begin(weft_comm *comm, enum weft_record_operation operation, const char *function,
                       weft_open_record *out)
{
    struct wf_submitted record;

    if (out == NULL) return;
    *out = (weft_open_record){0};
    if (function == NULL || wf_comm_check(comm, "weft_record_begin") != WEFT_OK) return;
    record = wf_record_creation(comm, operation, function, NULL, 0);
    *out = (weft_open_record){.record = record.record,
                              .id = record.id,
                              .sequence = comm->common_creations,
                              .comm = comm,
                              .operation = operation};
}

void weft_record_continue(const weft_open_record *begun, const char *function,
                          weft_open_record *out)
{
    struct wf_submitted record;

    if (out == NULL) return;
    if (begun == NULL || begun->comm == NULL || function == NULL) {
        *out = (weft_open_record){0};
        return;
    }
    record = wf_record_continuation(begun->comm, begun->operation, function, begun->sequence);
    *out = *begun;
    out->record = record.record;
    out->id = record.id;
}

void weft_record_set_bytes(const weft_open_record *record, uint64_t bytes)
{
    if (record != NULL) wf_record_set_bytes(submitted(record), bytes);
}

weft_status weft_record_end(const weft_open_record *record, weft_status status)
{
    if (record == NULL || record->comm == NULL) return status;
    return wf_record_created(record->comm, submitted(record), status);
}
