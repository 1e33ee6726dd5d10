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

/* True if all ranks send the same number of bytes in OPERATION. */
static bool has_one_size(uint8_t operation)
{
    return operation == WEFT_RECORD_ALL_REDUCE || operation == WEFT_RECORD_REDUCE;
}

static bool is_alike(const weft_record *one, const weft_record *other)
{
    if (one->operation != other->operation) return false;
    if (one->dtype != other->dtype || one->reduction != other->reduction) return false;
    return !has_one_size(one->operation) || one->sent == other->sent;
}

/* Compare collective SEQUENCE.  True if the ranks that have it differ. */
static bool differs(const struct status_comm *comm, uint64_t sequence,
                    struct status_difference *out)
{
    const weft_record *first = NULL;

    for (int32_t i = 0; i < comm->position_count; i++) {
        const struct status_position *p = &comm->positions[i];
        const weft_record *record = find(p->rank, comm->number, sequence);

        if (record == NULL) continue;
        if (first == NULL) {
            first = record;
            out->rank = p->rank;
        } else if (!is_alike(first, record)) {
            *out = (struct status_difference){comm, sequence, out->rank, p->rank, first, record};
            return true;
        }
    }
    return false;
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

static void find_collective(const struct status_job *job, struct status_difference *out)
{
    enum { LOOK_BACK = 64 }; /* ranks that differ do not get far */

    for (size_t i = 0; i < job->comm_count && out->comm == NULL; i++) {
        const struct status_comm *comm = &job->comms[i];
        uint64_t newest = 0, from = 1;

        for (int32_t k = 0; k < comm->position_count; k++) {
            uint64_t oldest = oldest_of(comm->positions[k].rank, comm->number);

            if (comm->positions[k].sequence > newest) newest = comm->positions[k].sequence;
            if (oldest > from) from = oldest;
        }
        if (newest >= LOOK_BACK && from < newest - LOOK_BACK) from = newest - LOOK_BACK;
        for (uint64_t sequence = from; sequence <= newest && out->comm == NULL; sequence++)
            (void)differs(comm, sequence, out);
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
static void find_mutual_wait(const struct status_job *job, struct status_difference *out)
{
    int32_t count = job->rank_count;

    for (int32_t i = 0; i < count; i++)
        for (int32_t k = i + 1; k < count; k++) {
            uint32_t one = job->waits[i * count + k], other = job->waits[k * count + i];
            const struct status_comm *comm;

            if (one == 0 || other == 0) continue;
            comm = &job->comms[one - 1];
            *out = (struct status_difference){.comm = comm,
                                              .rank = &job->ranks[i],
                                              .other = &job->ranks[k],
                                              .record = waits_in(comm, &job->ranks[i]),
                                              .other_record =
                                                  waits_in(&job->comms[other - 1], &job->ranks[k])};
            return;
        }
}

void status_find_difference(const struct status_job *job, struct status_difference *out)
{
    *out = (struct status_difference){0};
    if (job->alive > 0 && !status_has_waits(job)) return;
    find_collective(job, out);
    if (out->comm == NULL) find_mutual_wait(job, out);
    if (out->record == NULL || out->other_record == NULL) *out = (struct status_difference){0};
}
