/* fault.c - failed communicators.
 *
 * The first error is the cause: it is kept with its text, and every later call returns it. A
 * refused call - a wrong argument, no memory - does not fail the communicator. */
#include "position.h"
#include "recording.h"
#include "trace/dump/dump.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* How long to wait for the cause of a rank's loss. */
#define CAUSE_NS WF_SECOND_NS
/* In place of a communicator in a report: write the dump that WEFT_DUMP asks for. */
#define DUMPS UINT64_MAX

weft_status wf_comm_note(weft_comm *comm, weft_status status)
{
    if (comm->group_depth > 0 && comm->group_status == WEFT_OK) {
        comm->group_status = status;
        snprintf(comm->group_text, sizeof comm->group_text, "%s", weft_last_error());
    }
    return status;
}

/* True if STATUS is a refused call, after which COMM is usable. The backend knows whether memory
 * was missing before or after the call had begun. */
static bool passes(weft_comm *comm, weft_status status)
{
    if (status == WEFT_ERR_NO_MEMORY) return comm->table->async_error(comm->handle) == WEFT_OK;
    return status == WEFT_ERR_INVALID || status == WEFT_ERR_UNSUPPORTED ||
           status == WEFT_ERR_NOT_FOUND || status == WEFT_IN_PROGRESS;
}

static void set_cause(weft_comm *comm, weft_status status, const char *text)
{
    if (atomic_load_explicit(&comm->cause, memory_order_relaxed) != WEFT_OK) return;
    snprintf(comm->cause_text, sizeof comm->cause_text, "%s", text);
    atomic_store_explicit(&comm->may_post, 0, memory_order_relaxed);
    atomic_store_explicit(&comm->cause, status, memory_order_release);
    wf_trace_fail_comm(comm->context->trace, comm->number, status, text);
    /* Another thread of this rank may wait for other ranks in a step of COMM. */
    if (comm->context->client != NULL) wf_client_notify(comm->context->client);
}

/* Unlock CONTEXT.  If a communicator has failed meanwhile, write the dump that WEFT_DUMP asks for,
 * now that all communicators which failed together have what they wait for. */
static void unlock(weft_context *context)
{
    /* A context without communicators may not have a trace yet. */
    struct wf_trace *trace = context->comms != NULL ? context->trace : NULL;

    pthread_mutex_unlock(&context->lock);
    if (trace != NULL) wf_dump_if_due(trace);
}

/* Fail the groups of COMM but EXCEPT: their ranks run the same bound plans. */
static void break_groups(weft_comm *comm, const weft_comm *except, weft_status status,
                         const char *text)
{
    for (weft_comm *group = comm->groups; group != NULL; group = group->next_group)
        if (group != except) wf_comm_fail_locked(group, status, text);
}

void wf_comm_fail_locked(weft_comm *comm, weft_status status, const char *text)
{
    set_cause(comm, status, text);
    if (comm->handle != NULL) comm->table->abort(comm->handle); /* none if it is simulated */
    if (comm->attached != NULL) wf_comm_fail_locked(comm->attached, status, text);
    break_groups(comm, NULL, status, text);
}

void wf_comm_fail(weft_comm *comm, weft_status status, const char *text)
{
    pthread_mutex_lock(&comm->context->lock);
    wf_comm_fail_locked(comm, status, text);
    unlock(comm->context);
}

/* No rank could be asked: add the first error that another rank has reported. */
static void add_reported(const weft_comm *comm, struct wf_text *out)
{
    char text[512];

    if (wf_client_first_error(comm->context->client, text, sizeof text))
        wf_text_add(out, "; before it, an error was reported: %s", text);
}

/* With WEFT_CHECK: add where this rank makes its last collective of COMM, unless it has sent or
 * received a message since. */
static void add_place(const weft_comm *comm, struct wf_text *out)
{
    uint64_t posted = atomic_load_explicit(&comm->recent.posted, memory_order_relaxed);
    const struct wf_recent_entry *last = &comm->recent.entries[posted % WF_RECENT_ENTRIES];
    uint64_t kind = atomic_load_explicit(&last->what, memory_order_relaxed) >> 48;

    if (kind != WF_RECENT_SEND && kind != WF_RECENT_RECEIVE)
        wf_calls_place(comm, atomic_load_explicit(&comm->collectives, memory_order_relaxed), out);
}

/* Add the ranks that COMM waits for to the message, and every rank's position to the log. */
static void explain_timeout(weft_comm *comm, const char *what, const char *own, struct wf_text *out)
{
    struct wf_answers answers;
    bool both;

    wf_text_add(
        out, "%s #%llu on %s: ", what,
        (unsigned long long)atomic_load_explicit(&comm->recent.posted, memory_order_relaxed),
        comm->name);
    wf_position_ask(comm, &answers);
    if (answers.suspect >= 0) wf_record_wait(comm, answers.suspect);
    both = answers.silent.length > 0 && answers.behind.length > 0;
    if (answers.silent.length > 0 || answers.behind.length > 0)
        wf_text_add(out, "the time limit passed: %s%s%s; ",
                    answers.silent.length > 0 ? answers.silent.data : "", both ? "; " : "",
                    answers.behind.length > 0 ? answers.behind.data : "");
    wf_text_add(out, "%s", own);
    if (answers.differ.length > 0) wf_text_add(out, "%s", answers.differ.data);
    add_place(comm, out);
    if (answers.failed) add_reported(comm, out);
    if (strcmp(what, "weft_send") == 0)
        wf_text_add(out,
                    "; a send may wait for its receive; ranks that send to each other must call "
                    "weft_send and weft_receive between weft_group_begin and weft_group_end");
    wf_position_log_answers(comm, &answers.lines);
    wf_answers_free(&answers);
}

/* With WEFT_CHECK: add the first collective that ranks have called from different places. */
static void explain_mismatch(weft_comm *comm, struct wf_text *out)
{
    struct wf_answers answers;

    if (!comm->checked) return;
    wf_position_ask(comm, &answers);
    if (answers.differ.length > 0) wf_text_add(out, "%s", answers.differ.data);
    wf_answers_free(&answers);
}

void wf_comm_wait_cause(weft_comm *comm, int64_t most_ns)
{
    uint64_t deadline = wf_now_ns() + (uint64_t)most_ns;

    while (comm->context->client != NULL && comm->size > 1 && wf_now_ns() < deadline) {
        if (wf_comm_has_failed(comm)) return;
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
}

/* A communicator of some ranks has failed: ask the other ranks of the job for their dumps too,
 * since PyTorch's analyser wants those of all ranks. */
static void ask_dumps(const weft_comm *comm)
{
    const weft_context *context = comm->context;
    int32_t *others;
    size_t count = 0;

    if (comm->size == context->size || !wf_dump_is_wanted(context->trace)) return;
    others = wf_alloc((size_t)context->size * sizeof *others);
    for (int32_t rank = 0; rank < context->size && others != NULL; rank++)
        if (weft_comm_find_rank(comm, rank) < 0) others[count++] = rank;
    if (others != NULL)
        wf_client_abort(context->client, DUMPS, others, (int32_t)count, WEFT_ERR_ABORTED, "");
    wf_free(others);
}

/* Report the cause to the other ranks before this rank departs because of it.  They may not detect
 * a mismatch themselves: they may wait for a third rank, or in another group. */
static void report(weft_comm *comm, weft_status status, const char *text, uint64_t complete)
{
    char words[1024];

    if (comm->context->client == NULL || comm->size == 1) return;
    if (status != WEFT_ERR_PEER && status != WEFT_ERR_TIMEOUT && status != WEFT_ERR_MISMATCH)
        return;
    if (status == WEFT_ERR_TIMEOUT) atomic_store(&comm->parted, true);
    ask_dumps(comm); /* before the report, which waits until it is sent */
    snprintf(words, sizeof words, "%.900s (reported by rank %d)", text, comm->context->rank);
    wf_client_report(comm->context->client, comm->number, comm->world_ranks, comm->size, status,
                     words, status == WEFT_ERR_MISMATCH ? complete : 0);
}

static bool is_group(const weft_comm *comm)
{
    return comm->owner != NULL && comm->owner->attached != comm && !comm->fails_alone;
}

/* GROUP has failed.  Its owner fails too, on all ranks: ranks that run other steps of the same plan
 * wait in other groups. */
static void fail_owner(weft_comm *group)
{
    weft_comm *owner = group->owner;
    char text[sizeof group->cause_text];
    weft_status status;
    bool first;

    if (!is_group(group)) return;
    pthread_mutex_lock(&group->context->lock);
    status = atomic_load(&group->cause);
    first = atomic_load(&owner->cause) == WEFT_OK;
    if (first) {
        snprintf(text, sizeof text, "%s", group->cause_text);
        owner->cause_vendor = group->cause_vendor;
        set_cause(owner, status, text);
        owner->table->abort(owner->handle);
        break_groups(owner, group, status, text);
    }
    pthread_mutex_unlock(&group->context->lock);
    if (first) report(owner, status, text, 0);
}

weft_status wf_comm_cause(weft_comm *comm)
{
    weft_status status;

    fail_owner(comm);
    pthread_mutex_lock(&comm->context->lock);
    if (wf_comm_is_doomed(comm) && atomic_load(&comm->cause) == WEFT_OK)
        wf_comm_fail_locked(comm, atomic_load(&comm->limit), comm->limit_text);
    status = atomic_load_explicit(&comm->cause, memory_order_acquire);
    if (status != WEFT_OK) (void)wf_fail(status, "%s", comm->cause_text);
    if (status != WEFT_OK && comm->cause_vendor.name[0] != '\0')
        wf_fail_vendor(status, comm->cause_vendor.name, comm->cause_vendor.code, comm->cause_text);
    unlock(comm->context);
    return status;
}

/* The rank that the backend reports lost may have ended because of another: the first that was
 * lost, or one that does not answer.  It may also have failed in work on a stream, so that it has
 * not yet reported its error.  Returns the cause: WEFT_ERR_PEER, or an error that is the cause on
 * all ranks. */
static weft_status explain_loss(weft_comm *comm, const char *what, const char *own,
                                struct wf_text *out)
{
    const struct wf_departure *first = NULL;
    struct wf_answers answers;
    weft_status status;

    wf_text_add(out, "%s on %s: ", what, comm->name);
    if (comm->context->client == NULL) {
        wf_text_add(out, "%s", own);
        return WEFT_ERR_PEER;
    }
    first = wf_client_first_lost(comm->context->client);
    wf_position_ask(comm, &answers);
    if (first != NULL)
        wf_record_wait(comm, first->rank);
    else if (answers.suspect >= 0)
        wf_record_wait(comm, answers.suspect);
    status = answers.shared != WEFT_OK && !answers.why.failed ? answers.shared : WEFT_ERR_PEER;
    wf_text_add(out, "%s", status == WEFT_ERR_PEER ? own : answers.why.data);
    if (first != NULL) wf_text_add(out, "; before it, rank %d %s", first->rank, first->text);
    if (answers.silent.length > 0) wf_text_add(out, "; %s", answers.silent.data);
    if (status == WEFT_ERR_PEER) add_place(comm, out);
    if (answers.failed) add_reported(comm, out);
    wf_answers_free(&answers);
    return status;
}

/* The vendor's library that has caused the thread's last error. */
static struct wf_vendor last_vendor(void)
{
    struct wf_vendor vendor = {.name = ""};
    const char *name = weft_last_error_vendor(&vendor.code);

    if (name != NULL) snprintf(vendor.name, sizeof vendor.name, "%s", name);
    return vendor;
}

weft_status wf_comm_fault(weft_comm *comm, weft_status status, const char *what)
{
    return wf_comm_fault_collective(comm, status, what, 0);
}

weft_status wf_comm_fault_collective(weft_comm *comm, weft_status status, const char *what,
                                     uint64_t complete)
{
    struct wf_vendor vendor = last_vendor();
    struct wf_text text = {0};
    bool first;
    char own[1024];

    snprintf(own, sizeof own, "%s", weft_last_error());
    if (passes(comm, status)) return wf_fail_context(status, "%s on %s", what, comm->name);
    if (status == WEFT_ERR_PEER) wf_comm_wait_cause(comm, CAUSE_NS);
    if (wf_comm_has_failed(comm)) return wf_comm_cause(comm);
    if (status == WEFT_ERR_TIMEOUT)
        explain_timeout(comm, what, own, &text);
    else if (status == WEFT_ERR_PEER)
        status = explain_loss(comm, what, own, &text);
    else
        wf_text_add(&text, "%s on %s: %s", what, comm->name, own);
    if (status == WEFT_ERR_MISMATCH) explain_mismatch(comm, &text);
    pthread_mutex_lock(&comm->context->lock);
    first = !wf_comm_has_failed(comm);
    if (first) {
        /* A rank that is late or lost is not the fault of the library that says so. */
        if (status != WEFT_ERR_TIMEOUT && status != WEFT_ERR_PEER) comm->cause_vendor = vendor;
        set_cause(comm, status, text.failed ? "out of memory" : text.data);
        if (comm->attached != NULL) wf_comm_fail_locked(comm->attached, status, comm->cause_text);
        break_groups(comm, NULL, status, comm->cause_text);
    }
    pthread_mutex_unlock(&comm->context->lock);
    if (first && !text.failed && !is_group(comm)) report(comm, status, text.data, complete);
    wf_text_free(&text);
    return wf_comm_cause(comm);
}

/* ---- events of other ranks ---- */

/* A rank was lost: fail its communicators. */
static void on_rank_lost(weft_context *context, const struct wf_departure *departure)
{
    char words[600];

    snprintf(words, sizeof words, "rank %d %s", departure->rank, departure->text);
    pthread_mutex_lock(&context->lock);
    for (weft_comm *comm = context->comms; comm != NULL; comm = comm->next)
        if (weft_comm_find_rank(comm, departure->rank) >= 0) {
            wf_record_wait(comm, departure->rank);
            wf_comm_fail_locked(comm, WEFT_ERR_PEER, words);
        }
    unlock(context);
}

void wf_fault_asked(void *self)
{
    weft_context *context = self;
    char words[160];

    snprintf(words, sizeof words,
             "generation %llu of the job ends: a rank has called weft_context_next",
             (unsigned long long)context->generation);
    pthread_mutex_lock(&context->lock);
    for (weft_comm *comm = context->comms; comm != NULL; comm = comm->next)
        wf_comm_fail_locked(comm, WEFT_ERR_ABORTED, words);
    unlock(context);
}

void wf_fault_write_record(weft_context *context, struct wf_text *out)
{
    pthread_mutex_lock(&context->lock);
    for (weft_comm *comm = context->comms; comm != NULL; comm = comm->next) {
        wf_put_u64(out, comm->number);
        wf_put_u64(out, atomic_load_explicit(&comm->collectives, memory_order_relaxed));
        wf_calls_put(comm, out);
    }
    for (uint64_t i = 0; i < context->released_count && i < WF_RELEASED; i++) {
        wf_put_u64(out, context->released[i].number);
        wf_put_u64(out, context->released[i].collectives);
        wf_put_blob(out, NULL, 0);
    }
    pthread_mutex_unlock(&context->lock);
}

/* Fail COMM with its limit.  With WEFT_CHECK, the text says where this rank makes the collective
 * that cannot complete.  The context's lock is held. */
static void fail_at_limit(weft_comm *comm)
{
    weft_status status = atomic_load(&comm->limit);
    struct wf_text text = {0};

    wf_text_add(&text, "%s", comm->limit_text);
    if (status == WEFT_ERR_PEER) wf_calls_place(comm, atomic_load(&comm->may_post) + 1, &text);
    wf_comm_fail_locked(comm, status, text.failed ? comm->limit_text : text.data);
    wf_text_free(&text);
}

/* No collective of COMM past the COUNT-th can complete, because of STATUS and TEXT.  Fail COMM if
 * one has begun. */
static void limit_posts(weft_comm *comm, weft_status status, const char *text, uint64_t count)
{
    if (count >= atomic_load_explicit(&comm->may_post, memory_order_relaxed)) return;
    snprintf(comm->limit_text, sizeof comm->limit_text, "%s", text);
    atomic_store_explicit(&comm->limit, status, memory_order_release);
    if (wf_comm_limit(comm, count)) fail_at_limit(comm);
}

/* NOTES: of calls.h, by the rank that departed. */
static void limit_departed(weft_comm *comm, const struct wf_departure *departure, uint64_t count,
                           weft_blob notes)
{
    struct wf_text text = {0};

    if (count >= atomic_load_explicit(&comm->may_post, memory_order_relaxed)) return;
    wf_text_add(&text, "collective %llu of %s cannot complete: rank %d %s",
                (unsigned long long)count + 1, comm->name, departure->rank, departure->text);
    if (comm->checked && !wf_calls_compare(comm, notes, departure->rank, count, &text) && count > 0)
        wf_text_add(&text,
                    "; rank %d has made %llu collective%s, from the same places and with the same "
                    "memory as this rank: collective %llu, or a repeated one, may be missing",
                    departure->rank, (unsigned long long)count, WF_PLURAL(count),
                    (unsigned long long)count + 1);
    limit_posts(comm, WEFT_ERR_PEER, text.failed ? "out of memory" : text.data, count);
    wf_text_free(&text);
}

/* A rank departed: collectives that it took part in may still be in progress here; later ones
 * cannot complete. */
static void on_rank_left(weft_context *context, const struct wf_departure *departure)
{
    struct wf_reader reader = {(const uint8_t *)departure->record.data, departure->record.length,
                               false};

    pthread_mutex_lock(&context->lock);
    while (reader.left > 0 && !reader.failed) {
        uint64_t number = wf_take_u64(&reader), count = wf_take_u64(&reader);
        weft_blob notes = wf_take_blob(&reader);

        for (weft_comm *comm = context->comms; comm != NULL; comm = comm->next) {
            if (comm->number != number || weft_comm_find_rank(comm, departure->rank) < 0) continue;
            limit_departed(comm, departure, count, notes);
            wf_calls_left(comm, departure->rank, count, notes);
        }
    }
    unlock(context);
}

void wf_fault_gone(void *self, const struct wf_departure *departure)
{
    if (departure->left)
        on_rank_left(self, departure);
    else
        on_rank_lost(self, departure);
}

weft_status wf_comm_fail_limited(weft_comm *comm)
{
    pthread_mutex_lock(&comm->context->lock);
    if (atomic_load(&comm->cause) == WEFT_OK) fail_at_limit(comm);
    unlock(comm->context);
    return wf_comm_cause(comm);
}

/* COMM has failed with STATUS on another rank, where its first COMPLETE collectives are complete: a
 * slower rank may still be in one of them.  The context's lock is held. */
static void apply_abort(weft_comm *comm, weft_status status, const char *text, uint64_t complete)
{
    if (complete > 0)
        limit_posts(comm, status, text, complete);
    else
        wf_comm_fail_locked(comm, status, text);
    if (status == WEFT_ERR_TIMEOUT) atomic_store(&comm->parted, true);
}

void wf_fault_abort(void *self, uint64_t number, weft_status status, const char *text,
                    uint64_t complete)
{
    weft_context *context = self;
    bool found = number == DUMPS;

    pthread_mutex_lock(&context->lock);
    if (found && context->trace != NULL) wf_dump_ask(context->trace);
    for (weft_comm *comm = context->comms; comm != NULL; comm = comm->next)
        if (comm->number == number) {
            apply_abort(comm, status, text, complete);
            found = true;
        }
    if (!found) {
        struct wf_early_abort *early =
            &context->early_aborts[context->early_abort_count++ % WF_EARLY_ABORTS];
        early->number = number;
        early->complete = complete;
        early->status = status;
        snprintf(early->text, sizeof early->text, "%s", text);
    }
    unlock(context);
}

void wf_fault_apply_early(weft_comm *comm)
{
    const struct wf_early_abort *early = comm->context->early_aborts;
    uint64_t count = comm->context->early_abort_count;

    for (uint64_t i = 0; i < count && i < WF_EARLY_ABORTS; i++)
        if (early[i].number == comm->number)
            apply_abort(comm, early[i].status, early[i].text, early[i].complete);
}

/* COMM, and what fails with it, fails here with STATUS, and on the other ranks with THEIRS when the
 * report arrives.  The context's lock is held. */
static void fail_everywhere(weft_comm *comm, weft_status status, weft_status theirs,
                            const char *text)
{
    weft_comm *whole = is_group(comm) ? comm->owner : comm;

    wf_comm_fail_locked(whole, status, text);
    if (whole->context->client == NULL || whole->size == 1) return;
    ask_dumps(whole);
    wf_client_abort(whole->context->client, whole->number, whole->world_ranks, whole->size, theirs,
                    text);
}

/* The context's lock is held. */
static void abort_locked(weft_comm *comm)
{
    char text[256];

    snprintf(text, sizeof text, "%s was aborted by rank %d", comm->name, comm->context->rank);
    fail_everywhere(comm, WEFT_ERR_ABORTED, WEFT_ERR_ABORTED, text);
}

void weft_comm_abort(weft_comm *comm)
{
    if (comm == NULL || !wf_is_usable(comm->made, WF_KIND_COMM)) return;
    pthread_mutex_lock(&comm->context->lock);
    abort_locked(comm);
    unlock(comm->context);
}

void weft_context_abort(weft_context *context)
{
    if (context == NULL || !wf_is_usable(context->made, WF_KIND_CONTEXT)) return;
    pthread_mutex_lock(&context->lock);
    for (weft_comm *comm = context->comms; comm != NULL; comm = comm->next)
        if (wf_is_usable(comm->made, WF_KIND_COMM)) abort_locked(comm);
    unlock(context);
}

weft_status weft_comm_async_error(weft_comm *comm)
{
    weft_status status;

    WF_TRY(wf_comm_check(comm, "weft_comm_async_error"));
    if (wf_comm_has_failed(comm)) return wf_comm_cause(comm);
    status = comm->table->async_error(comm->handle);
    if (status != WEFT_OK) return wf_comm_fault(comm, status, "an earlier operation");
    return comm->attached != NULL ? weft_comm_async_error(comm->attached) : WEFT_OK;
}

weft_status wf_comm_give_up(weft_comm *comm, weft_status status, const char *function)
{
    char text[sizeof comm->cause_text];

    if (comm->size == 1 || wf_comm_has_failed(comm)) return wf_fail_named(status, function);
    snprintf(text, sizeof text, "%s on %s: rank %d: %.700s", function, comm->name,
             comm->context->rank, weft_last_error());
    pthread_mutex_lock(&comm->context->lock);
    fail_everywhere(comm, status, status == WEFT_ERR_MISMATCH ? status : WEFT_ERR_ABORTED, text);
    unlock(comm->context);
    return wf_comm_cause(comm);
}
