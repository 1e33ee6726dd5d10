/* differ.c - the first call that ranks of a communicator made differently: a collective, or two
 * calls in which ranks wait for each other. */
#include "status/status.h"

/* The newest record of collective SEQUENCE of COMM that RANK has; NULL: none. */
static const weft_record *find(const struct status_rank *rank, uint64_t comm, uint64_t sequence)
{
    for (uint64_t id = rank->info.newest; id >= rank->info.oldest && id > 0; id--) {
        const weft_record *record = weft_recorder_record(rank->recorder, id);

        if (record != NULL && record->comm == comm && record->sequence == sequence &&
            status_is_collective(record))
            return record;
    }
    return NULL;
}

bool status_call_count(const weft_record *record, int32_t size, uint64_t *out)
{
    uint64_t least = record->sent < record->received ? record->sent : record->received;
    size_t bytes = wf_dtype_bytes(record->dtype);

    if (least == 0) least = record->sent + record->received; /* only the root has both */
    if (bytes == 0 || size <= 0) return false;
    switch (record->operation) {
    case WEFT_RECORD_ALL_TO_ALL:
        least /= (uint64_t)size;
        break;
    case WEFT_RECORD_ALL_REDUCE:
    case WEFT_RECORD_ALL_GATHER:
    case WEFT_RECORD_REDUCE_SCATTER:
    case WEFT_RECORD_BROADCAST:
    case WEFT_RECORD_REDUCE:
    case WEFT_RECORD_GATHER:
    case WEFT_RECORD_SCATTER:
        break;
    default:
        return false;
    }
    *out = least / bytes;
    return true;
}

static bool is_alike(const weft_record *one, const weft_record *other, int32_t size)
{
    uint64_t count, other_count;

    if (one->operation != other->operation || one->peer != other->peer) return false;
    if (one->dtype != other->dtype || one->reduction != other->reduction) return false;
    return !status_call_count(one, size, &count) || !status_call_count(other, size, &other_count) ||
           count == other_count;
}

/* How many of COUNT RECORDS are as RECORD. */
static int32_t count_alike(const weft_record *const *records, int32_t count,
                           const weft_record *record, int32_t size)
{
    int32_t found = 0;

    for (int32_t i = 0; i < count; i++)
        found += records[i] != NULL && is_alike(records[i], record, size);
    return found;
}

/* Compare the calls of COMM, which RECORDS has for each position.  The call that most ranks made,
 * and of several such the first, is the usual one. */
static void compare(struct status_job *job, const struct status_comm *comm, uint64_t sequence,
                    const weft_record *const *records)
{
    struct status_difference *out = &job->difference;
    int32_t count = comm->position_count, most = 0, usual = 0, calls = 0, usual_calls = 0;

    for (int32_t i = 0; i < count; i++) {
        int32_t alike =
            records[i] == NULL ? 0 : count_alike(records, count, records[i], comm->size);

        calls += records[i] != NULL;
        if (alike <= most) continue;
        most = alike;
        usual = i;
    }
    for (int32_t i = 0; i < count; i++) {
        const struct status_rank *rank = comm->positions[i].rank;
        enum status_caller *caller = &out->callers[rank - job->ranks];

        if (records[i] == NULL) continue;
        if (is_alike(records[i], records[usual], comm->size)) {
            *caller = STATUS_USUAL;
            usual_calls++;
        } else if (out->other == NULL || is_alike(records[i], out->other_record, comm->size)) {
            *caller = STATUS_DIFFERENT;
            if (out->other == NULL) out->other = rank;
            out->other_record = out->other == rank ? records[i] : out->other_record;
        } else {
            *caller = STATUS_THIRD;
        }
    }
    out->comm = comm;
    out->sequence = sequence;
    out->rank = comm->positions[usual].rank;
    out->record = records[usual];
    out->is_known = 2 * usual_calls > calls;
}

/* Compare collective SEQUENCE of COMM.  RECORDS, of rank_count, is overwritten. */
static void compare_sequence(struct status_job *job, const struct status_comm *comm,
                             uint64_t sequence, const weft_record **records)
{
    const weft_record *first = NULL;
    bool differs = false;

    for (int32_t i = 0; i < comm->position_count; i++) {
        records[i] = find(comm->positions[i].rank, comm->number, sequence);
        if (first == NULL) first = records[i];
        differs = differs || (records[i] != NULL && !is_alike(first, records[i], comm->size));
    }
    if (differs) compare(job, comm, sequence, records);
}

/* The oldest collective of COMM in the recorder of RANK; 0: none. */
static uint64_t oldest_of(const struct status_rank *rank, uint64_t comm)
{
    for (uint64_t id = rank->info.oldest; id <= rank->info.newest; id++) {
        const weft_record *record = weft_recorder_record(rank->recorder, id);

        if (record != NULL && record->comm == comm && status_is_collective(record))
            return record->sequence;
    }
    return 0;
}

weft_status status_compare_calls(struct status_job *job)
{
    enum { LOOK_BACK = 64 }; /* ranks that differ do not get far */
    size_t ranks = (size_t)job->rank_count;
    const weft_record **records = wf_calloc(ranks, sizeof *records);

    job->difference.callers = wf_calloc(ranks, sizeof *job->difference.callers);
    for (size_t i = 0; records != NULL && job->difference.callers != NULL && i < job->comm_count &&
                       job->difference.comm == NULL;
         i++) {
        const struct status_comm *comm = &job->comms[i];
        uint64_t newest = 0, from = 1;

        for (int32_t k = 0; k < comm->position_count; k++) {
            uint64_t oldest = oldest_of(comm->positions[k].rank, comm->number);

            if (comm->positions[k].sequence > newest) newest = comm->positions[k].sequence;
            if (oldest > from) from = oldest;
        }
        if (newest >= LOOK_BACK && from < newest - LOOK_BACK) from = newest - LOOK_BACK;
        for (uint64_t sequence = from; sequence <= newest && job->difference.comm == NULL;
             sequence++)
            compare_sequence(job, comm, sequence, records);
    }
    wf_free(records);
    return records != NULL && job->difference.callers != NULL
               ? WEFT_OK
               : wf_fail_memory(ranks * sizeof *records);
}

/* True if the calls of the first difference failed because they differ. */
static bool was_detected(const struct status_difference *difference)
{
    return status_was_refused(difference->record) || status_was_refused(difference->other_record);
}

bool status_is_cleared(const struct status_job *job, const struct status_rank *rank)
{
    const struct status_difference *difference = &job->difference;

    if (job->alive > 0 || difference->sequence == 0) return false;
    if (was_detected(difference)) return true;
    switch (difference->callers[rank - job->ranks]) {
    case STATUS_NO_CALL:
        return false;
    case STATUS_USUAL:
        return true;
    default:
        return !difference->is_known;
    }
}

/* The operation in which a rank of JOB waits for another on COMM. */
static const weft_record *waits_in(const struct status_comm *comm, const struct status_rank *rank)
{
    for (int32_t i = 0; i < comm->position_count; i++)
        if (comm->positions[i].rank == rank) return comm->positions[i].begun;
    return NULL;
}

/* Two ranks that wait for each other are in different calls. */
static void find_mutual_wait(struct status_job *job)
{
    int32_t count = job->rank_count;

    for (int32_t i = 0; i < count; i++)
        for (int32_t k = i + 1; k < count; k++) {
            uint32_t one = job->waits[i * count + k], other = job->waits[k * count + i];
            const weft_record *record, *other_record;

            if (one == 0 || other == 0) continue;
            record = waits_in(&job->comms[one - 1], &job->ranks[i]);
            other_record = waits_in(&job->comms[other - 1], &job->ranks[k]);
            if (record == NULL || other_record == NULL) return;
            job->difference.comm = &job->comms[one - 1];
            job->difference.rank = &job->ranks[i];
            job->difference.other = &job->ranks[k];
            job->difference.record = record;
            job->difference.other_record = other_record;
            job->difference.callers[i] = STATUS_USUAL;
            job->difference.callers[k] = STATUS_DIFFERENT;
            return;
        }
}

void status_find_difference(struct status_job *job)
{
    if (job->alive > 0 && !status_has_waits(job))
        job->difference.comm = NULL;
    else if (job->difference.comm == NULL)
        find_mutual_wait(job);
}
