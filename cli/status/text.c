/* text.c - the state of a job as text. */
#include "status/status.h"

#include <inttypes.h>
#include <string.h>

enum { PARTS_MOST = 20 }; /* of a list of ranks */

void status_add_ranks(struct wf_text *out, const struct status_job *job, const bool *chosen)
{
    int32_t count = 0, parts = 0, last;

    for (int32_t i = 0; i < job->rank_count; i++)
        count += chosen[i];
    wf_text_add(out, count == 1 ? "rank " : "ranks ");
    for (int32_t i = 0; i < job->rank_count; i = last + 1) {
        last = i;
        if (!chosen[i]) continue;
        while (last + 1 < job->rank_count && chosen[last + 1] &&
               job->ranks[last + 1].info.rank == job->ranks[last].info.rank + 1)
            last++;
        if (parts++ > 0) wf_text_char(out, ',');
        if (parts > PARTS_MOST) {
            wf_text_add(out, "...");
            return;
        }
        wf_text_add(out, "%d", job->ranks[i].info.rank);
        if (last > i) wf_text_add(out, "-%d", job->ranks[last].info.rank);
    }
}

/* "all-reduce #12 of 8.0 MiB", "receive #3 of 4 B from rank 1". */
static void add_operation(struct wf_text *out, const weft_recorder *recorder,
                          const weft_record *record)
{
    const char *name = weft_record_operation_name((enum weft_record_operation)record->operation);
    const char *label = weft_recorder_text(recorder, record->label);
    uint64_t bytes = record->sent > record->received ? record->sent : record->received;

    wf_text_add(out, "%s", name != NULL ? name : "unknown operation");
    if (record->sequence > 0) wf_text_add(out, " #%" PRIu64, record->sequence);
    if (status_is_creation(record) && record->axes != 0)
        wf_text_add(out, " by ranks %s", weft_recorder_text(recorder, record->axes));
    if (bytes > 0) {
        wf_text_add(out, " of ");
        wf_text_bytes(out, bytes);
    }
    if (status_is_message(record))
        wf_text_add(out, record->operation == WEFT_RECORD_SEND ? " to rank %d" : " from rank %d",
                    record->peer);
    if (label[0] != '\0') wf_text_add(out, " (%s)", label);
}

static bool is_cleared(const struct status_job *job, int32_t rank)
{
    for (int32_t i = 0; i < job->rank_count; i++)
        if (job->ranks[i].info.rank == rank) return status_is_cleared(job, &job->ranks[i]);
    return false;
}

/* Where a group is: "all-reduce #12 of 8.0 MiB, for 3.2 s". */
static void add_position(struct wf_text *out, const struct status_job *job,
                         const struct status_group *group)
{
    const struct status_position *p = group->first;
    const weft_record *begun = p->begun, *finished = p->finished;
    bool on_stream = begun != NULL && (begun->flags & WEFT_RECORD_ON_STREAM) != 0;

    if (begun == NULL) {
        wf_text_add(out, p->rank->info.oldest > 1 ? "no recent collective or message"
                                                  : "no collective and no message yet");
        return;
    }
    add_operation(out, p->rank->recorder, begun);
    if (begun->state == WEFT_RECORD_FAILED)
        wf_text_add(out, " failed (WEFT_%s)", weft_status_name(begun->status));
    else if (begun->state == WEFT_RECORD_FINISHED)
        wf_text_add(out, ", finished ");
    else if (on_stream || !p->rank->info.alive)
        wf_text_add(out, on_stream ? ", submitted " : ", begun ");
    else
        wf_text_add(out, ", for ");
    if (begun->state != WEFT_RECORD_FAILED) wf_text_time(out, group->since_ns);
    if (begun->state == WEFT_RECORD_FINISHED ||
        (begun->state == WEFT_RECORD_SUBMITTED && (on_stream || !p->rank->info.alive)))
        wf_text_add(out, " ago");
    if (begun->waits_for >= 0 && !is_cleared(job, begun->waits_for))
        wf_text_add(out, ", %s for rank %d",
                    begun->state == WEFT_RECORD_FAILED ? "waited" : "waits", begun->waits_for);
    if (finished == NULL || finished == begun) return;
    wf_text_add(out, "; last finished: ");
    add_operation(out, p->rank->recorder, finished);
    wf_text_add(out, ", ");
    wf_text_time(out, status_since(job->read_ns, finished->finished));
    wf_text_add(out, " ago");
}

static void add_group(struct wf_text *out, const struct status_job *job,
                      const struct status_group *group)
{
    const struct status_position *p = group->first;
    const char *mark = status_mark_name(p);

    wf_text_add(out, "    %s", mark != NULL ? cli_colour(stdout, CLI_YELLOW) : "");
    status_add_ranks(out, job, group->members);
    if (mark != NULL) {
        wf_text_add(out, ", %s", mark);
        if (p->mark == STATUS_BEHIND && p->sequence > 0)
            wf_text_add(out, " at #%" PRIu64, p->sequence);
        wf_text_add(out, "%s", cli_colour(stdout, CLI_PLAIN));
    }
    wf_text_add(out, ": ");
    add_position(out, job, group);
    if (p->failed != WEFT_OK)
        wf_text_add(out, "; the communicator has failed (WEFT_%s)", weft_status_name(p->failed));
    wf_text_char(out, '\n');
}

/* The lowest rank of COMM's recorders from FIRST to LAST; LAST + 1: none. */
static int64_t next_here(const struct status_comm *comm, int64_t first, int64_t last)
{
    int64_t next = last + 1;

    for (int32_t i = 0; i < comm->position_count; i++) {
        int32_t rank = comm->positions[i].rank->info.rank;

        if (rank >= first && rank < next) next = rank;
    }
    return next;
}

void status_add_absent(struct wf_text *out, const struct status_comm *comm)
{
    struct wf_scan scan = {comm->ranks, 0};
    int64_t first, last, here;
    int parts = 0;

    do {
        if (wf_scan_int(&scan, "a rank", &first) != WEFT_OK) break;
        last = first;
        if (wf_scan_char(&scan, '-') && wf_scan_int(&scan, "a rank", &last) != WEFT_OK) break;
        for (; first <= last; first = here + 1) {
            here = next_here(comm, first, last);
            if (here == first) continue;
            if (++parts > PARTS_MOST) break;
            wf_text_add(out, "%s%" PRId64, parts > 1 ? "," : "", first);
            if (here - 1 > first) wf_text_add(out, "-%" PRId64, here - 1);
        }
    } while (parts <= PARTS_MOST && wf_scan_char(&scan, ','));
    if (parts > PARTS_MOST) wf_text_add(out, ",...");
}

static void add_comm(struct wf_text *out, const struct status_job *job,
                     const struct status_comm *comm)
{
    wf_text_add(out, "  %s%s%s (%s%d rank%s", cli_colour(stdout, CLI_BOLD),
                comm->name[0] != '\0' ? comm->name : "a communicator",
                cli_colour(stdout, CLI_PLAIN), "", comm->size, WF_PLURAL(comm->size));
    if (comm->ranks[0] != '\0') wf_text_add(out, ": %s", comm->ranks);
    if (comm->absent > 0) {
        wf_text_add(out, "; no recorder here: ");
        status_add_absent(out, comm);
    }
    wf_text_add(out, ")%s%s\n", comm->carrier[0] != '\0' ? " over " : "", comm->carrier);
    for (int32_t i = 0; i < comm->group_count; i++)
        add_group(out, job, &comm->groups[i]);
}

/* ---- why the job waits ---- */

/* The position of RANK that says most about why it holds up others. */
static const struct status_position *worst_position(const struct status_job *job,
                                                    const struct status_rank *rank,
                                                    const struct status_comm **comm)
{
    const struct status_position *worst = NULL;

    for (size_t i = 0; i < job->comm_count; i++)
        for (int32_t k = 0; k < job->comms[i].position_count; k++) {
            const struct status_position *p = &job->comms[i].positions[k];

            if (p->rank != rank || (worst != NULL && p->mark >= worst->mark)) continue;
            worst = p;
            *comm = &job->comms[i];
        }
    return worst;
}

/* The activity of a rank that is not where the others wait for it. */
static void add_activity(struct wf_text *out, const struct status_job *job,
                         const struct status_rank *rank)
{
    const weft_record *newest = rank->newest;
    const char *name = newest != NULL ? weft_recorder_text(rank->recorder, newest->comm_name) : "";

    if (newest == NULL) {
        wf_text_add(out, "it has begun no operation");
        return;
    }
    if (newest->state == WEFT_RECORD_SUBMITTED) {
        wf_text_add(out, "it is in ");
        add_operation(out, rank->recorder, newest);
        wf_text_add(out, "%s%s, for ", name[0] != '\0' ? " on " : "", name);
        wf_text_time(out, status_since(job->read_ns, newest->submitted));
        return;
    }
    wf_text_add(out, "it has been in no operation of weft ");
    if (newest->state == WEFT_RECORD_FAILED) { /* weft does not record when */
        wf_text_add(out, "since ");
        add_operation(out, rank->recorder, newest);
        wf_text_add(out, "%s%s failed (WEFT_%s)", name[0] != '\0' ? " on " : "", name,
                    weft_status_name(newest->status));
        return;
    }
    wf_text_add(out, "for ");
    wf_text_time(out, status_since(job->read_ns, newest->finished));
}

static void add_cause(struct wf_text *out, const struct status_job *job, int32_t index,
                      const bool *waiting)
{
    const struct status_rank *rank = &job->ranks[index];
    const struct status_comm *comm = NULL;
    const struct status_position *p = worst_position(job, rank, &comm);

    wf_text_add(out, "  %srank %d %s ", cli_colour(stdout, CLI_RED), rank->info.rank,
                job->alive > 0 ? "holds up" : "held up");
    status_add_ranks(out, job, waiting);
    wf_text_add(out, "%s: ", cli_colour(stdout, CLI_PLAIN));
    if (job->alive == 0) {
        if (p != NULL && p->mark == STATUS_BEHIND && p->sequence > 0)
            wf_text_add(out, "it was behind at #%" PRIu64 " of %s when the job ended (pid %d)",
                        p->sequence, comm->name, rank->info.pid);
        else
            wf_text_add(out, "it was not in their operation when the job ended (pid %d)",
                        rank->info.pid);
    } else if (!rank->info.alive) {
        wf_text_add(out, rank->info.removed ? "it has left the job" : "it has ended (pid %d)",
                    rank->info.pid);
    } else if (rank->info.stopped) {
        wf_text_add(out, "it is stopped (pid %d)", rank->info.pid);
    } else {
        if (p != NULL && p->mark == STATUS_BEHIND && p->sequence > 0)
            wf_text_add(out, "it is behind at #%" PRIu64 " of %s, and ", p->sequence, comm->name);
        add_activity(out, job, rank);
        wf_text_add(out, " (pid %d)", rank->info.pid);
    }
    wf_text_char(out, '\n');
}

/* Name the ranks that do not run and hold up nobody yet: those that are stopped, or those that have
 * ended.  CHOSEN and WAITING are of rank_count. */
static void add_resting(struct wf_text *out, const struct status_job *job, bool stopped,
                        bool *chosen, bool *waiting)
{
    int32_t count = 0, last = 0;

    for (int32_t i = 0; i < job->rank_count; i++) {
        const weft_recorder_info *info = &job->ranks[i].info;

        chosen[i] = (stopped ? info->stopped : !info->alive && !info->removed) &&
                    !status_is_cause(job, i, waiting);
        if (!chosen[i]) continue;
        count++;
        last = i;
    }
    if (count == 0) return;
    wf_text_add(out, "  %s", cli_colour(stdout, CLI_YELLOW));
    status_add_ranks(out, job, chosen);
    if (stopped)
        wf_text_add(out, count == 1 ? " is stopped" : " are stopped");
    else
        wf_text_add(out, count == 1 ? " has ended" : " have ended");
    wf_text_add(out, "%s", cli_colour(stdout, CLI_PLAIN));
    if (count == 1) wf_text_add(out, " (pid %d)", job->ranks[last].info.pid);
    wf_text_char(out, '\n');
}

/* Ranks whose weft_init has not come to the first communicator. */
static void add_beginners(struct wf_text *out, const struct status_job *job, bool *chosen)
{
    int32_t count = 0;

    for (int32_t i = 0; i < job->rank_count; i++) {
        const struct status_rank *rank = &job->ranks[i];

        chosen[i] = rank->info.alive && rank->newest == NULL && rank->info.newest == 0 &&
                    weft_recorder_comm_count(rank->recorder) == 0;
        count += chosen[i];
    }
    if (count == 0) return;
    wf_text_add(out, "  ");
    status_add_ranks(out, job, chosen);
    wf_text_add(out, " %s no communicator yet: weft_init has not ended\n",
                count == 1 ? "has" : "have");
}

static void add_states(struct wf_text *out, const struct status_job *job, bool *waiting)
{
    bool *chosen = wf_calloc((size_t)job->rank_count, sizeof *chosen);

    if (chosen == NULL) {
        out->failed = true;
        return;
    }
    if (job->alive > 0) {
        add_resting(out, job, true, chosen, waiting);
        add_resting(out, job, false, chosen, waiting);
        add_beginners(out, job, chosen);
    }
    wf_free(chosen);
}

static bool is_one(const struct status_job *job, const bool *chosen)
{
    int32_t count = 0;

    for (int32_t i = 0; i < job->rank_count; i++)
        count += chosen[i];
    return count == 1;
}

bool status_reduces(const weft_record *record)
{
    return record->operation == WEFT_RECORD_ALL_REDUCE || record->operation == WEFT_RECORD_REDUCE ||
           record->operation == WEFT_RECORD_REDUCE_SCATTER ||
           record->operation == WEFT_RECORD_REDUCE_SCATTER_V;
}

/* A collective of SIZE ranks with what all ranks must give alike, as errors have it:
 * "all-reduce(f32, count 64, sum) #4"; other operations as add_operation. */
static void add_call(struct wf_text *out, const weft_recorder *recorder, const weft_record *record,
                     int32_t size)
{
    const char *dtype = weft_dtype_name((enum weft_dtype)record->dtype);
    uint64_t count;

    if (!status_is_collective(record) || (record->sent == 0 && record->received == 0)) {
        add_operation(out, recorder, record);
        return;
    }
    wf_text_add(out, "%s(%s",
                weft_record_operation_name((enum weft_record_operation)record->operation),
                dtype != NULL ? dtype : "unknown dtype");
    if (status_call_count(record, size, &count)) wf_text_add(out, ", count %" PRIu64, count);
    if (status_reduces(record) && wf_reduction_name(record->reduction) != NULL)
        wf_text_add(out, ", %s", wf_reduction_name(record->reduction));
    if (record->peer >= 0) wf_text_add(out, ", root %d", record->peer);
    wf_text_add(out, ") #%" PRIu64, record->sequence);
}

/* The ranks that called as CALLER says; false: none. */
static bool add_callers(struct wf_text *out, const struct status_job *job,
                        enum status_caller caller, bool *chosen)
{
    bool any = false;

    for (int32_t i = 0; i < job->rank_count; i++) {
        chosen[i] = job->difference.callers[i] == caller;
        any = any || chosen[i];
    }
    if (any) status_add_ranks(out, job, chosen);
    return any;
}

/* "the first call that differs on tp: ranks 0-1 called all-reduce(f32, count 64, sum) #41, rank 2
 * all-gather(f32, count 64) #41; rank 2 differs from the others".  CHOSEN is of rank_count. */
static void add_difference(struct wf_text *out, const struct status_job *job, bool *chosen)
{
    const struct status_difference *found = &job->difference;
    const weft_record *other;

    if (found->comm == NULL) return;
    other = found->other_record;
    wf_text_add(out, "  %sthe first call that differs%s on %s: ", cli_colour(stdout, CLI_RED),
                cli_colour(stdout, CLI_PLAIN),
                found->comm->name[0] != '\0' ? found->comm->name : "a communicator");
    (void)add_callers(out, job, STATUS_USUAL, chosen);
    wf_text_add(out, " called ");
    add_call(out, found->rank->recorder, found->record, found->comm->size);
    wf_text_add(out, ", ");
    (void)add_callers(out, job, STATUS_DIFFERENT, chosen);
    wf_text_char(out, ' ');
    add_call(out, found->other->recorder, other, found->comm->size);
    if (other->comm != found->record->comm)
        wf_text_add(out, " on %s", weft_recorder_text(found->other->recorder, other->comm_name));
    if (found->sequence > 0 && found->is_known) {
        wf_text_add(out, "; ");
        (void)add_callers(out, job, STATUS_DIFFERENT, chosen);
        wf_text_add(out, is_one(job, chosen) ? " differs" : " differ");
        wf_text_add(out, " from the others");
    }
    wf_text_char(out, '\n');
}

/* Set WAITING to the ranks that wait for what rank index I waits for and is not here, and to those
 * behind them. */
static void find_same_wait(const struct status_job *job, int32_t i, bool *waiting)
{
    for (int32_t k = 0; k < job->rank_count; k++)
        waiting[k] =
            job->elsewhere[k].comm != NULL && job->elsewhere[k].rank == job->elsewhere[i].rank;
    status_add_waiting(job, waiting);
}

/* True if a rank before I waits for what rank index I waits for. */
static bool is_repeated(const struct status_job *job, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if (job->elsewhere[k].comm != NULL && job->elsewhere[k].rank == job->elsewhere[i].rank)
            return true;
    return false;
}

/* Name the ranks that wait for ranks without a recorder here.  True if there are any. */
static bool add_elsewhere(struct wf_text *out, const struct status_job *job, bool *waiting)
{
    bool found = false;

    for (int32_t i = 0; i < job->rank_count; i++) {
        const struct status_elsewhere *wait = &job->elsewhere[i];

        if (wait->comm == NULL || is_repeated(job, i)) continue;
        found = true;
        find_same_wait(job, i, waiting);
        wf_text_add(out, "  %s", cli_colour(stdout, CLI_RED));
        status_add_ranks(out, job, waiting);
        wf_text_add(out, "%s %s ", cli_colour(stdout, CLI_PLAIN),
                    job->alive == 0        ? "waited"
                    : is_one(job, waiting) ? "waits"
                                           : "wait");
        if (wait->rank >= 0)
            wf_text_add(out, "for rank %d, which has no recorder here\n", wait->rank);
        else
            wf_text_add(out, "in operations with ranks that have no recorder here\n");
    }
    return found;
}

static void add_causes(struct wf_text *out, const struct status_job *job)
{
    bool *waiting = wf_calloc((size_t)job->rank_count, sizeof *waiting), found;

    if (waiting == NULL) {
        out->failed = true;
        return;
    }
    found = add_elsewhere(out, job, waiting);
    for (int32_t i = 0; i < job->rank_count; i++)
        if (status_is_cause(job, i, waiting)) {
            add_cause(out, job, i, waiting);
            found = true;
        }
    if (!found && status_any_wait(job, waiting)) {
        wf_text_add(out, "  ");
        status_add_ranks(out, job, waiting);
        wf_text_add(out, " %s for each other\n", job->alive > 0 ? "wait" : "waited");
    }
    add_states(out, job, waiting);
    add_difference(out, job, waiting);
    wf_free(waiting);
}

/* ---- the job ---- */

void status_add_text(struct wf_text *out, const struct status_job *job, bool in_full, bool all)
{
    const weft_recorder_info *info = &job->ranks[0].info;
    size_t hidden = 0;

    wf_text_add(out, "%sjob %016" PRIx64 "%s: %s %s%s, %d rank%s", cli_colour(stdout, CLI_BOLD),
                job->id, cli_colour(stdout, CLI_PLAIN), info->program,
                info->backend[0] != '\0' ? "on " : "without a backend", info->backend, job->size,
                WF_PLURAL(job->size));
    if (job->rank_count < job->size)
        wf_text_add(out, ", %d of them with recorders here", job->rank_count);
    if (job->alive == 0)
        wf_text_add(out, ", ended");
    else if (job->alive < job->rank_count)
        wf_text_add(out, ", %d ended", job->rank_count - job->alive);
    if (job->alive > 0) {
        wf_text_add(out, ", for ");
        wf_text_time(out, status_since(job->read_ns, job->begun_ns));
    }
    wf_text_char(out, '\n');
    if (!in_full) return;
    add_causes(out, job);
    for (size_t i = 0; i < job->comm_count; i++) {
        if (all || !job->comms[i].idle)
            add_comm(out, job, &job->comms[i]);
        else
            hidden++;
    }
    if (hidden > 0)
        wf_text_add(out, "  %zu communicator%s idle; --all shows %s\n", hidden,
                    hidden == 1 ? " is" : "s are", hidden == 1 ? "it" : "them");
}
