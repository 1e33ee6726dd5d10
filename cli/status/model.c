/* model.c - recorders become jobs, communicators and positions. */
#include "status/status.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAUSE_NS = 20000000 }; /* between the two readings */

uint64_t status_since(uint64_t read_ns, uint64_t ns)
{
    return ns != 0 && read_ns > ns ? read_ns - ns : 0;
}

bool status_is_message(const weft_record *record)
{
    return record->operation == WEFT_RECORD_SEND || record->operation == WEFT_RECORD_RECEIVE;
}

bool status_is_creation(const weft_record *record)
{
    return record->operation == WEFT_RECORD_CREATE || record->operation == WEFT_RECORD_RELEASE ||
           record->operation == WEFT_RECORD_LOAD || record->operation == WEFT_RECORD_SAVE ||
           record->operation == WEFT_RECORD_AGREE;
}

bool status_is_collective(const weft_record *record)
{
    return record->sequence > 0 && !status_is_message(record) && !status_is_creation(record);
}

/* True if RECORD says where a rank is on its communicator, or where it was when its job ended.  A
 * plan that was bound and a thing that was created do not. */
static bool is_place(const weft_record *record, bool has_ended)
{
    return (record->operation != WEFT_RECORD_PLAN && !status_is_creation(record)) ||
           record->state == WEFT_RECORD_SUBMITTED ||
           (has_ended && record->state == WEFT_RECORD_FAILED);
}

/* ---- positions ---- */

/* The communicator of INFO.  The parts of a split have one number, so their ranks count too. */
static struct status_comm *find_comm(const struct status_job *job,
                                     const weft_recorder_comm_info *info)
{
    for (size_t i = 0; i < job->comm_count; i++) {
        struct status_comm *comm = &job->comms[i];

        if (comm->number == info->number && strcmp(comm->ranks, info->ranks) == 0 &&
            strcmp(comm->name, info->name) == 0)
            return comm;
    }
    return NULL;
}

/* The communicator with NUMBER that the INDEX-th rank of JOB has. */
static struct status_comm *find_comm_of(const struct status_job *job, uint64_t number,
                                        int32_t index)
{
    for (size_t i = 0; i < job->comm_count; i++)
        if (job->comms[i].number == number && job->comms[i].positions[index].has_comm)
            return &job->comms[i];
    return NULL;
}

static void note_record(struct status_position *position, const weft_record *record, bool has_ended)
{
    bool is_open = record->state == WEFT_RECORD_SUBMITTED ||
                   (has_ended && record->state == WEFT_RECORD_FAILED);

    /* A call that agrees on something is shown by its own record, if it has one: a save. */
    if (position->begun == NULL ||
        (position->begun->operation == WEFT_RECORD_AGREE && status_is_creation(record) &&
         record->state == position->begun->state))
        position->begun = record;
    if (position->finished == NULL && record->state == WEFT_RECORD_FINISHED)
        position->finished = record;
    if (status_is_collective(record) && record->sequence > position->sequence)
        position->sequence = record->sequence;
    if (status_is_collective(record) && is_open && position->pending == NULL)
        position->pending = record;
    if (status_is_message(record) && is_open && position->peer_count < STATUS_PEERS)
        position->peers[position->peer_count++] = record;
}

/* Where RANK, the INDEX-th of JOB, is on each communicator: from its newest record back. */
static void find_positions(struct status_job *job, struct status_rank *rank, int32_t index)
{
    const struct status_comm *comm = NULL;

    for (uint64_t id = rank->info.newest; id >= rank->info.oldest && id > 0; id--) {
        const weft_record *record = weft_recorder_record(rank->recorder, id);

        if (record == NULL || record->operation == WEFT_RECORD_REDISTRIBUTE) continue;
        if (rank->newest == NULL)
            rank->newest = record; /* a redistribution is where its steps are */
        if (record->comm == 0 || !is_place(record, job->alive == 0)) continue;
        if (comm == NULL || comm->number != record->comm)
            comm = find_comm_of(job, record->comm, index);
        if (comm != NULL) note_record(&comm->positions[index], record, job->alive == 0);
    }
}

/* ---- communicators ---- */

bool status_has_rank(const char *list, int32_t rank)
{
    struct wf_scan scan = {list, 0};
    int64_t first, last;

    do {
        if (wf_scan_int(&scan, "a rank", &first) != WEFT_OK) return false;
        last = first;
        if (wf_scan_char(&scan, '-') && wf_scan_int(&scan, "a rank", &last) != WEFT_OK)
            return false;
        if (rank >= first && rank <= last) return true;
    } while (wf_scan_char(&scan, ','));
    return false;
}

static weft_status add_comm(struct status_job *job, const weft_recorder_comm_info *info)
{
    struct status_comm *more = wf_realloc(job->comms, (job->comm_count + 1) * sizeof *job->comms),
                       *comm;

    if (more == NULL) return wf_fail_memory((job->comm_count + 1) * sizeof *more);
    job->comms = more;
    comm = &more[job->comm_count];
    *comm = (struct status_comm){.number = info->number,
                                 .name = info->name,
                                 .ranks = info->ranks,
                                 .carrier = info->carrier,
                                 .size = info->size};
    comm->positions = wf_calloc((size_t)job->rank_count, sizeof *comm->positions);
    comm->groups = wf_calloc((size_t)job->rank_count, sizeof *comm->groups);
    job->comm_count++;
    if (comm->positions == NULL || comm->groups == NULL)
        return wf_fail_memory((size_t)job->rank_count * sizeof *comm->positions);
    return WEFT_OK;
}

/* Take the communicators of the rank with INDEX. */
static weft_status add_comms(struct status_job *job, int32_t index)
{
    struct status_rank *rank = &job->ranks[index];
    weft_recorder_comm_info info = {.struct_size = sizeof info};

    for (size_t i = 0; i < weft_recorder_comm_count(rank->recorder); i++) {
        struct status_comm *comm;

        WF_TRY(weft_recorder_comm_get(rank->recorder, i, &info));
        if (find_comm(job, &info) == NULL) WF_TRY(add_comm(job, &info));
        comm = find_comm(job, &info);
        comm->positions[index] = (struct status_position){
            .rank = rank, .has_comm = true, .failed = info.failed, .mark = STATUS_NONE};
    }
    return WEFT_OK;
}

/* Keep the positions of COMM's members.  A member without the communicator has a position too. */
static void keep_members(struct status_job *job, struct status_comm *comm)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < job->rank_count; i++) {
        struct status_position *position = &comm->positions[i];

        if (!position->has_comm && !status_has_rank(comm->ranks, job->ranks[i].info.rank)) continue;
        position->rank = &job->ranks[i];
        comm->positions[kept++] = *position;
    }
    comm->position_count = kept;
    comm->absent = comm->size > kept ? comm->size - kept : 0;
}

static int by_number(const void *a, const void *b)
{
    const struct status_comm *one = a, *other = b;

    if (one->number == other->number) return strcmp(one->ranks, other->ranks);
    return one->number < other->number ? -1 : 1;
}

/* ---- idle communicators ---- */

static bool is_idle(const struct status_job *job, const struct status_comm *comm)
{
    for (int32_t i = 0; i < comm->position_count; i++) {
        const struct status_position *p = &comm->positions[i];

        if (p->pending != NULL || p->peer_count > 0 || p->failed != WEFT_OK) return false;
        if (p->begun != NULL && p->begun->state != WEFT_RECORD_FINISHED) return false;
        if (p->mark != STATUS_NONE && job->alive > 0) return false;
    }
    return true;
}

static uint64_t newest_of(const struct status_comm *comm)
{
    uint64_t newest = 0;

    for (int32_t i = 0; i < comm->position_count; i++)
        if (comm->positions[i].begun != NULL && comm->positions[i].begun->submitted > newest)
            newest = comm->positions[i].begun->submitted;
    return newest;
}

void status_find_idle(struct status_job *job)
{
    struct status_comm *newest = NULL;

    for (size_t i = 0; i < job->comm_count; i++) {
        struct status_comm *comm = &job->comms[i];

        comm->idle = is_idle(job, comm);
        if (newest == NULL || newest_of(comm) > newest_of(newest)) newest = comm;
    }
    if (newest != NULL) newest->idle = false;
}

/* ---- jobs ---- */

static weft_status fill_job(struct status_job *job)
{
    for (int32_t i = 0; i < job->rank_count; i++) {
        const weft_recorder_info *info = &job->ranks[i].info;

        if (info->alive) job->alive++;
        if (info->read_ns > job->read_ns) job->read_ns = info->read_ns;
        if (i == 0 || info->begun_ns > job->begun_ns) job->begun_ns = info->begun_ns;
        job->size = info->size;
        WF_TRY(add_comms(job, i));
    }
    if (job->comm_count > 0) qsort(job->comms, job->comm_count, sizeof *job->comms, by_number);
    for (int32_t i = 0; i < job->rank_count; i++)
        find_positions(job, &job->ranks[i], i);
    for (size_t i = 0; i < job->comm_count; i++)
        keep_members(job, &job->comms[i]);
    WF_TRY(status_compare_calls(job));
    WF_TRY(status_find_waits(job));
    status_find_difference(job);
    status_find_idle(job);
    return WEFT_OK;
}

static weft_status add_job(struct status *status, size_t first, size_t count)
{
    struct status_job *more = wf_realloc(status->jobs, (status->count + 1) * sizeof *status->jobs),
                      *job;

    if (more == NULL) return wf_fail_memory((status->count + 1) * sizeof *more);
    status->jobs = more;
    job = &more[status->count++];
    *job = (struct status_job){.rank_count = (int32_t)count,
                               .ranks = wf_calloc(count, sizeof *job->ranks)};
    if (job->ranks == NULL) return wf_fail_memory(count * sizeof *job->ranks);
    for (size_t i = 0; i < count; i++) {
        struct status_rank *rank = &job->ranks[i];
        weft_recorder *recorder = weft_recorders_at(status->recorders, first + i);
        uint64_t before;

        rank->recorder = recorder;
        rank->info.struct_size = sizeof rank->info;
        WF_TRY(weft_recorder_get(recorder, &rank->info));
        before = rank->info.newest;
        if (weft_recorder_refresh(recorder) == WEFT_OK) /* else the first reading counts */
            WF_TRY(weft_recorder_get(recorder, &rank->info));
        rank->moved = rank->info.newest != before;
    }
    job->id = job->ranks[0].info.job;
    return fill_job(job);
}

static uint64_t job_of(const weft_recorders *recorders, size_t index)
{
    weft_recorder_info info = {.struct_size = sizeof info};

    return weft_recorder_get(weft_recorders_at(recorders, index), &info) == WEFT_OK ? info.job : 0;
}

/* Live jobs first, then the newest first. */
static int by_life(const void *a, const void *b)
{
    const struct status_job *one = a, *other = b;

    if ((one->alive > 0) != (other->alive > 0)) return one->alive > 0 ? -1 : 1;
    if (one->begun_ns != other->begun_ns) return one->begun_ns > other->begun_ns ? -1 : 1;
    return 0;
}

weft_status status_create(struct status *out)
{
    size_t count, last;
    weft_status status;

    *out = (struct status){0};
    WF_TRY(weft_recorders_create(&out->recorders));
    count = weft_recorders_count(out->recorders);
    if (count > 0) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    status = WEFT_OK;
    for (size_t first = 0; first < count && status == WEFT_OK; first = last) {
        for (last = first + 1;
             last < count && job_of(out->recorders, last) == job_of(out->recorders, first);)
            last++;
        status = add_job(out, first, last - first);
    }
    if (status != WEFT_OK) {
        status_free(out);
        return status;
    }
    if (out->count > 0) qsort(out->jobs, out->count, sizeof *out->jobs, by_life);
    return WEFT_OK;
}

static void free_job(struct status_job *job)
{
    for (size_t i = 0; i < job->comm_count; i++) {
        for (int32_t k = 0; k < job->comms[i].group_count; k++)
            wf_free(job->comms[i].groups[k].members);
        wf_free(job->comms[i].positions);
        wf_free(job->comms[i].groups);
    }
    wf_free(job->comms);
    wf_free(job->ranks);
    wf_free(job->waits);
    wf_free(job->elsewhere);
    wf_free(job->difference.callers);
}

void status_free(struct status *status)
{
    for (size_t i = 0; i < status->count; i++)
        free_job(&status->jobs[i]);
    wf_free(status->jobs);
    weft_recorders_release(&status->recorders);
    *status = (struct status){0};
}
