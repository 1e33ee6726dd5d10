/* waits.c - which rank waits for which, and groups of ranks in the same state. */
#include "status/status.h"

#include <string.h>

static int32_t index_of(const struct status_job *job, const struct status_position *position)
{
    return (int32_t)(position->rank - job->ranks);
}

/* True if the rank can have changed its position since it was read. */
static bool moves(const struct status_rank *rank)
{
    return rank->moved && rank->info.alive && !rank->info.stopped;
}

static bool is_there(const struct status_rank *rank)
{
    return rank->info.alive && !rank->info.stopped;
}

/* True if POSITION is in an operation, and was in it at both readings, or when the job ended. */
static bool is_waiting(const struct status_job *job, const struct status_position *position)
{
    if (job->alive == 0)
        return position->pending != NULL ||
               (position->begun != NULL && position->begun->state != WEFT_RECORD_FINISHED);
    return is_there(position->rank) && !position->rank->moved;
}

bool status_was_refused(const weft_record *record)
{
    return record->state == WEFT_RECORD_FAILED && record->status != WEFT_ERR_TIMEOUT &&
           record->status != WEFT_ERR_PEER && record->status != WEFT_ERR_ABORTED;
}

/* ---- marks ---- */

/* The operation that most ranks have begun as collective SEQUENCE of COMM. */
static uint8_t usual_operation(const struct status_comm *comm, uint64_t sequence)
{
    int32_t counts[WEFT_RECORD_OPERATION_COUNT] = {0};
    uint8_t best = 0;

    for (int32_t i = 0; i < comm->position_count; i++) {
        const struct status_position *p = &comm->positions[i];

        if (p->sequence == sequence && p->begun != NULL && p->begun->sequence == sequence &&
            status_is_collective(p->begun) && p->begun->operation < WEFT_RECORD_OPERATION_COUNT)
            counts[p->begun->operation]++;
    }
    for (int i = 1; i < WEFT_RECORD_OPERATION_COUNT; i++)
        if (counts[i] > counts[best]) best = (uint8_t)i;
    return best;
}

static uint64_t newest_sequence(const struct status_job *job, const struct status_comm *comm,
                                bool pending)
{
    uint64_t newest = 0;

    for (int32_t i = 0; i < comm->position_count; i++) {
        const struct status_position *p = &comm->positions[i];
        uint64_t sequence = p->sequence;

        if (pending) sequence = p->pending != NULL && is_waiting(job, p) ? p->pending->sequence : 0;

        if (sequence > newest) newest = sequence;
    }
    return newest;
}

static bool is_binding(const struct status_position *position)
{
    return position->begun != NULL && position->begun->operation == WEFT_RECORD_PLAN;
}

static enum status_mark mark_of(const struct status_job *job, const struct status_position *p,
                                uint64_t newest, uint64_t waiting, uint8_t usual)
{
    enum status_mark last = job->alive > 0 ? STATUS_NONE : STATUS_ENDED;

    if (!p->rank->info.alive && job->alive > 0) return STATUS_ENDED;
    if (p->rank->info.stopped) return STATUS_STOPPED;
    if (moves(p->rank)) return STATUS_NONE;
    if (!p->has_comm) return waiting > 0 ? STATUS_MISSING : last;
    if (p->sequence < waiting && !status_is_cleared(job, p->rank)) return STATUS_BEHIND;
    if (p->sequence == newest && p->begun != NULL && status_is_collective(p->begun) &&
        p->begun->operation != usual)
        return STATUS_OTHER;
    return last;
}

static void set_marks(const struct status_job *job, struct status_comm *comm)
{
    uint64_t newest = newest_sequence(job, comm, false), waiting = newest_sequence(job, comm, true);
    uint8_t usual = usual_operation(comm, newest);

    for (int32_t i = 0; i < comm->position_count; i++)
        comm->positions[i].mark = mark_of(job, &comm->positions[i], newest, waiting, usual);
}

const char *status_mark_name(const struct status_position *position)
{
    static const char *const names[] = {[STATUS_ENDED] = "ended",
                                        [STATUS_STOPPED] = "stopped",
                                        [STATUS_MISSING] = "without the communicator",
                                        [STATUS_BEHIND] = "behind",
                                        [STATUS_OTHER] = "in another operation"};

    if (position->mark == STATUS_NONE) return NULL;
    return position->mark == STATUS_ENDED && position->rank->info.removed ? "has left the job"
                                                                          : names[position->mark];
}

/* ---- waits ---- */

/* True if a rank that is in collective SEQUENCE of a communicator waits for the one at OTHER. */
static bool holds_up(const struct status_position *other, uint64_t sequence)
{
    bool has_ended = other->finished != NULL && status_is_collective(other->finished) &&
                     other->finished->sequence >= sequence;

    if (has_ended || other->mark == STATUS_NONE) return false;
    return other->mark != STATUS_BEHIND || other->sequence < sequence;
}

/* True if OTHER has begun the message that RECORD of world rank RANK is one end of. */
static bool answers(const struct status_job *job, const struct status_position *other,
                    const weft_record *record, int32_t rank)
{
    if (job->alive > 0 && !is_there(other->rank)) return false;
    for (int32_t i = 0; i < other->peer_count; i++)
        if (other->peers[i]->peer == rank && other->peers[i]->sequence == record->sequence &&
            other->peers[i]->operation != record->operation)
            return true;
    return false;
}

static bool waits_for_message(const struct status_job *job, const struct status_position *p,
                              const struct status_position *other)
{
    for (int32_t i = 0; i < p->peer_count; i++)
        if (p->peers[i]->peer == other->rank->info.rank && !moves(other->rank) &&
            !status_was_refused(p->peers[i]) &&
            !answers(job, other, p->peers[i], p->rank->info.rank))
            return true;
    return false;
}

/* Ranks count agreements apart from creations and the like. */
static bool is_agreement(const weft_record *record)
{
    return record->operation == WEFT_RECORD_AGREE;
}

/* The record of creation WANTED of RANK, which another rank has; NULL: it has not begun it. */
static const weft_record *find_creation(const struct status_rank *rank, const weft_record *wanted,
                                        const char *list)
{
    for (uint64_t id = rank->info.newest; id >= rank->info.oldest && id > 0; id--) {
        const weft_record *record = weft_recorder_record(rank->recorder, id);

        if (record != NULL && record->comm == wanted->comm && status_is_creation(record) &&
            is_agreement(record) == is_agreement(wanted) && record->sequence >= wanted->sequence &&
            strcmp(weft_recorder_text(rank->recorder, record->axes), list) == 0)
            return record;
    }
    return NULL;
}

/* True if P creates or releases something together with OTHER, which does not. */
static bool waits_for_creation(const struct status_job *job, const struct status_position *p,
                               const struct status_position *other)
{
    const weft_record *mine = p->begun, *found;
    const char *list;

    if (mine == NULL || !status_is_creation(mine) || status_was_refused(mine) || moves(other->rank))
        return false;
    list = weft_recorder_text(p->rank->recorder, mine->axes);
    if (list[0] != '\0' && !status_has_rank(list, other->rank->info.rank)) return false;
    found = find_creation(other->rank, mine, list);
    if (found == NULL) return true;
    return job->alive > 0 && found->state == WEFT_RECORD_SUBMITTED && !is_there(other->rank);
}

/* True if P's operation failed for want of OTHER, which was not in it. */
static bool failed_for(const struct status_position *p, const struct status_position *other)
{
    return p->pending->waits_for == other->rank->info.rank &&
           (other->pending == NULL || other->pending->sequence != p->pending->sequence);
}

static bool waits_for(const struct status_job *job, const struct status_position *p,
                      const struct status_position *other)
{
    if (p == other || !is_waiting(job, p) || p->mark == STATUS_OTHER) return false;
    if (status_is_cleared(job, other->rank)) return false;
    if (is_binding(p) && !is_binding(other) && !status_was_refused(p->begun) && !moves(other->rank))
        return true;
    if (waits_for_creation(job, p, other) || waits_for_message(job, p, other)) return true;
    if (p->pending == NULL) return false;
    if (job->alive > 0) return holds_up(other, p->pending->sequence);
    return (other->mark != STATUS_ENDED && holds_up(other, p->pending->sequence)) ||
           failed_for(p, other);
}

/* ---- waits for ranks without a recorder here ---- */

static bool is_here(const struct status_job *job, int32_t rank)
{
    for (int32_t i = 0; i < job->rank_count; i++)
        if (job->ranks[i].info.rank == rank) return true;
    return false;
}

/* True if a rank of LIST, which is "0-3,8", has no position on COMM. */
static bool has_absent(const struct status_comm *comm, const char *list)
{
    struct wf_scan scan = {list, 0};
    int64_t first, last, here;

    do {
        if (wf_scan_int(&scan, "a rank", &first) != WEFT_OK) return false;
        last = first;
        if (wf_scan_char(&scan, '-') && wf_scan_int(&scan, "a rank", &last) != WEFT_OK)
            return false;
        here = 0;
        for (int32_t i = 0; i < comm->position_count; i++)
            here += comm->positions[i].rank->info.rank >= first &&
                    comm->positions[i].rank->info.rank <= last;
        if (here <= last - first) return true;
    } while (wf_scan_char(&scan, ','));
    return false;
}

/* The operation of P in which others take part; NULL: none that has not ended. */
static const weft_record *shared_operation(const struct status_position *p)
{
    const weft_record *begun = p->begun;

    if (p->pending != NULL) return p->pending;
    return begun != NULL && (status_is_creation(begun) || is_binding(p)) &&
                   begun->state != WEFT_RECORD_FINISHED
               ? begun
               : NULL;
}

/* The rank that P knows it waited for, or whose message it is in; -1: none, or it is here. */
static int32_t known_elsewhere(const struct status_job *job, const struct status_position *p)
{
    const weft_record *open[] = {shared_operation(p), p->begun};

    for (int i = 0; i < 2; i++)
        if (open[i] != NULL && open[i]->state == WEFT_RECORD_FAILED && open[i]->waits_for >= 0 &&
            !is_here(job, open[i]->waits_for))
            return open[i]->waits_for;
    for (int32_t i = 0; i < p->peer_count; i++)
        if (p->peers[i]->peer >= 0 && !status_was_refused(p->peers[i]) &&
            !is_here(job, p->peers[i]->peer))
            return p->peers[i]->peer;
    return -1;
}

/* P is held up by a rank of this host if HELD. */
static void find_elsewhere(struct status_job *job, const struct status_comm *comm,
                           const struct status_position *p, bool held)
{
    struct status_elsewhere *out = &job->elsewhere[index_of(job, p)];
    const weft_record *open = shared_operation(p);
    int32_t known;
    const char *list;

    if (out->comm != NULL || !is_waiting(job, p) || p->mark == STATUS_OTHER) return;
    known = known_elsewhere(job, p);
    if (known >= 0) {
        *out = (struct status_elsewhere){comm, known};
    } else if (open != NULL && !held && open->waits_for < 0 && !status_was_refused(open)) {
        list = status_is_creation(open) ? weft_recorder_text(p->rank->recorder, open->axes) : "";
        if (has_absent(comm, list[0] != '\0' ? list : comm->ranks))
            *out = (struct status_elsewhere){comm, -1};
    }
}

static void find_in(struct status_job *job, size_t number)
{
    const struct status_comm *comm = &job->comms[number];

    for (int32_t i = 0; i < comm->position_count; i++) {
        const struct status_position *p = &comm->positions[i];
        bool held = false;

        for (int32_t k = 0; k < comm->position_count; k++) {
            const struct status_position *other = &comm->positions[k];
            int32_t at = index_of(job, p) * job->rank_count + index_of(job, other);

            if (!waits_for(job, p, other)) continue;
            held = true;
            if (job->waits[at] == 0) job->waits[at] = (uint32_t)number + 1;
        }
        find_elsewhere(job, comm, p, held);
    }
}

weft_status status_find_waits(struct status_job *job)
{
    size_t count = (size_t)job->rank_count * (size_t)job->rank_count;

    job->waits = wf_calloc(count, sizeof *job->waits);
    job->elsewhere = wf_calloc((size_t)job->rank_count, sizeof *job->elsewhere);
    if (job->waits == NULL || job->elsewhere == NULL)
        return wf_fail_memory(count * sizeof *job->waits);
    for (size_t i = 0; i < job->comm_count; i++) {
        set_marks(job, &job->comms[i]);
        find_in(job, i);
        WF_TRY(status_group(job, &job->comms[i]));
    }
    return WEFT_OK;
}

static bool waits_at_all(const struct status_job *job, int32_t index)
{
    if (job->elsewhere[index].comm != NULL) return true;
    for (int32_t i = 0; i < job->rank_count; i++)
        if (job->waits[index * job->rank_count + i] != 0) return true;
    return false;
}

bool status_any_wait(const struct status_job *job, bool *waiting)
{
    bool any = false;

    for (int32_t i = 0; i < job->rank_count; i++) {
        waiting[i] = waits_at_all(job, i);
        any = any || waiting[i];
    }
    return any;
}

bool status_has_waits(const struct status_job *job)
{
    for (int32_t i = 0; i < job->rank_count; i++)
        if (waits_at_all(job, i) ||
            (job->ranks[i].newest != NULL && job->ranks[i].newest->state == WEFT_RECORD_SUBMITTED))
            return true;
    return false;
}

void status_add_waiting(const struct status_job *job, bool *waiting)
{
    bool more = true;

    while (more) {
        more = false;
        for (int32_t w = 0; w < job->rank_count; w++)
            for (int32_t b = 0; b < job->rank_count && !waiting[w]; b++)
                if (job->waits[w * job->rank_count + b] != 0 && waiting[b])
                    waiting[w] = more = true;
    }
}

bool status_is_cause(const struct status_job *job, int32_t blamed, bool *waiting)
{
    memset(waiting, 0, (size_t)job->rank_count * sizeof *waiting);
    if (waits_at_all(job, blamed)) return false;
    waiting[blamed] = true;
    status_add_waiting(job, waiting);
    waiting[blamed] = false;
    for (int32_t i = 0; i < job->rank_count; i++)
        if (waiting[i]) return true;
    return false;
}

/* ---- groups ---- */

static bool is_same_operation(const weft_record *one, const weft_record *other)
{
    if (one == NULL || other == NULL) return one == other;
    return one->operation == other->operation && one->sequence == other->sequence &&
           one->state == other->state && one->status == other->status &&
           (!status_is_message(one) || one->peer == other->peer);
}

static bool is_same(const struct status_position *one, const struct status_position *other)
{
    return one->mark == other->mark && one->has_comm == other->has_comm &&
           one->failed == other->failed && one->rank->info.removed == other->rank->info.removed &&
           is_same_operation(one->begun, other->begun);
}

/* How long POSITION's rank is in its operation, or how long ago that ended. */
static uint64_t since(const struct status_job *job, const struct status_position *position)
{
    const weft_record *begun = position->begun;

    if (begun == NULL) return 0;
    return status_since(job->read_ns, begun->finished != 0 ? begun->finished : begun->submitted);
}

static weft_status add_group(const struct status_job *job, struct status_comm *comm, int32_t first)
{
    struct status_group *group = &comm->groups[comm->group_count];

    *group = (struct status_group){.first = &comm->positions[first],
                                   .members =
                                       wf_calloc((size_t)job->rank_count, sizeof *group->members)};
    if (group->members == NULL) return wf_fail_memory((size_t)job->rank_count);
    comm->group_count++;
    for (int32_t i = first; i < comm->position_count; i++) {
        struct status_position *p = &comm->positions[i];

        if (p->in_group || !is_same(p, group->first)) continue;
        p->in_group = true;
        group->members[index_of(job, p)] = true;
        if (since(job, p) > group->since_ns) group->since_ns = since(job, p);
    }
    return WEFT_OK;
}

weft_status status_group(const struct status_job *job, struct status_comm *comm)
{
    for (int mark = STATUS_ENDED; mark <= STATUS_NONE; mark++)
        for (int32_t i = 0; i < comm->position_count; i++) {
            const struct status_position *p = &comm->positions[i];

            if (p->mark != (enum status_mark)mark || p->in_group) continue;
            if (!p->has_comm && p->mark == STATUS_NONE) continue; /* it may not need it yet */
            WF_TRY(add_group(job, comm, i));
        }
    return WEFT_OK;
}
