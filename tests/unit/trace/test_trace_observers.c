#include "support/suite.h"
#include "support/trace.h"

#include <sched.h>

struct seen {
    atomic_int submitted, started, finished, planned, redistributes, failed;
    weft_record last;
    char text[64];
    atomic_bool inside, may_leave;
};

static void on_submitted(void *user, const weft_record *record)
{
    struct seen *seen = user;

    seen->submitted++;
    seen->last = *record;
}

static void on_started(void *user, const weft_record *record)
{
    (void)record;
    ((struct seen *)user)->started++;
}

static void on_finished(void *user, const weft_record *record)
{
    struct seen *seen = user;

    seen->finished++;
    seen->last = *record;
}

static void on_planned(void *user, const weft_record *record)
{
    (void)record;
    ((struct seen *)user)->planned++;
}

static void on_redistributes(void *user, const weft_record *record)
{
    (void)record;
    ((struct seen *)user)->redistributes++;
}

static void on_failed(void *user, uint64_t comm, weft_status status, const char *text)
{
    struct seen *seen = user;

    seen->failed++;
    snprintf(seen->text, sizeof seen->text, "%d %d %s", (int)comm, (int)status, text);
}

static weft_observer observer_for(struct seen *seen)
{
    return (weft_observer){sizeof(weft_observer), seen,       on_submitted,     on_started,
                           on_finished,           on_planned, on_redistributes, on_failed};
}

TEST(each_event_has_its_callback)
{
    struct wf_trace *trace = test_trace_begin(0);
    struct seen seen = {0};
    weft_observer observer = observer_for(&seen);
    struct wf_submitted submitted;
    uint32_t slot;

    ck_assert_int_eq(wf_observers_add(trace, &observer, &slot), WEFT_OK);
    ck_assert(wf_trace_is_active(trace));
    submitted = test_submit(trace, 5, 64);
    ck_assert(seen.submitted == 1 && seen.last.id == submitted.id);
    ck_assert(seen.last.state == WEFT_RECORD_SUBMITTED && seen.last.submitted > 0);
    wf_trace_start(trace, submitted);
    wf_trace_finish_chain(trace, submitted.id, 64, false);
    ck_assert(seen.started == 1 && seen.finished == 1 && seen.last.finished > 0);
    wf_trace_finish_chain(trace, submitted.id, 64, false);
    ck_assert_int_eq(seen.finished, 1);
    (void)wf_trace_submit(trace, NULL, WF_CALL_PLANNED, &(weft_record){0});
    submitted = wf_trace_submit(trace, NULL, WF_CALL_REDISTRIBUTES, &(weft_record){0});
    ck_assert(seen.planned == 1 && seen.redistributes == 1 && seen.submitted == 1);
    (void)wf_trace_fail(trace, submitted, WEFT_ERR_PEER);
    ck_assert(seen.finished == 2 && seen.last.state == WEFT_RECORD_FAILED);
    wf_trace_fail_comm(trace, 5, WEFT_ERR_PEER, "rank 1 is lost");
    ck_assert_int_eq(seen.failed, 1);
    ck_assert_msg(strstr(seen.text, "rank 1 is lost") != NULL, "%s", seen.text);
    wf_observers_remove(trace, slot);
    ck_assert(!wf_trace_is_active(trace));
    (void)test_submit(trace, 5, 0);
    ck_assert_int_eq(seen.submitted, 1);
    test_trace_end(trace);
}

TEST(a_callback_may_be_missing)
{
    struct wf_trace *trace = test_trace_begin(64);
    weft_observer observer = {.struct_size = sizeof observer};
    uint32_t slot;

    ck_assert_int_eq(wf_observers_add(trace, &observer, &slot), WEFT_OK);
    wf_trace_finish(trace, test_submit(trace, 1, 0));
    wf_trace_fail_comm(trace, 1, WEFT_ERR_PEER, "");
    wf_observers_remove(trace, slot);
    test_trace_end(trace);
}

TEST(places_for_observers_are_reused)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct seen seen = {0};
    weft_observer observer = observer_for(&seen);
    uint32_t slots[WF_OBSERVERS], none;

    for (int i = 0; i < WF_OBSERVERS; i++)
        ck_assert_int_eq(wf_observers_add(trace, &observer, &slots[i]), WEFT_OK);
    ck_assert_int_eq(wf_observers_add(trace, &observer, &none), WEFT_ERR_NO_MEMORY);
    (void)test_submit(trace, 1, 0);
    ck_assert_int_eq(seen.submitted, WF_OBSERVERS);
    wf_observers_remove(trace, slots[3]);
    ck_assert_int_eq(wf_observers_add(trace, &observer, &none), WEFT_OK);
    ck_assert_uint_eq(none, slots[3]);
    for (uint32_t i = 0; i < WF_OBSERVERS; i++)
        wf_observers_remove(trace, i);
    test_trace_end(trace);
}

/* ---- callbacks that call weft ---- */

struct caller {
    struct wf_trace *trace;
    uint32_t slot;
    int calls;
};

static void submit_more(void *user, const weft_record *record)
{
    struct caller *caller = user;

    (void)record;
    ck_assert_int_le(++caller->calls, 2); /* it is not called for its own operations */
    wf_trace_finish(caller->trace, test_submit(caller->trace, 1, 0));
}

TEST(operations_of_a_callback_have_no_callbacks)
{
    struct caller caller = {.trace = test_trace_begin(64)};
    weft_observer observer = {.struct_size = sizeof observer,
                              .user = &caller,
                              .submitted = submit_more,
                              .finished = submit_more};

    ck_assert_int_eq(wf_observers_add(caller.trace, &observer, &caller.slot), WEFT_OK);
    wf_trace_finish(caller.trace, test_submit(caller.trace, 1, 0));
    ck_assert_int_eq(caller.calls, 2);
    ck_assert_uint_eq(atomic_load(&caller.trace->segment->next), 3);
    wf_observers_remove(caller.trace, caller.slot);
    test_trace_end(caller.trace);
}

static void remove_itself(void *user, const weft_record *record)
{
    struct caller *caller = user;

    (void)record;
    caller->calls++;
    wf_observers_remove(caller->trace, caller->slot);
}

static void remove_itself_after_failure(void *user, uint64_t comm, weft_status status,
                                        const char *text)
{
    (void)comm, (void)status, (void)text;
    remove_itself(user, NULL);
}

TEST(a_callback_may_release_its_observation)
{
    struct caller caller = {.trace = test_trace_begin(64)};
    struct seen seen = {0};
    weft_observer observer = {.struct_size = sizeof observer,
                              .user = &caller,
                              .submitted = remove_itself,
                              .finished = remove_itself,
                              .failed = remove_itself_after_failure};
    weft_observer other = observer_for(&seen);
    uint32_t slot;

    ck_assert_int_eq(wf_observers_add(caller.trace, &observer, &caller.slot), WEFT_OK);
    ck_assert_int_eq(wf_observers_add(caller.trace, &other, &slot), WEFT_OK);
    wf_trace_finish(caller.trace, test_submit(caller.trace, 1, 0));
    ck_assert_int_eq(caller.calls, 1);
    ck_assert_int_eq(seen.submitted + seen.finished, 2);
    ck_assert_int_eq(wf_observers_add(caller.trace, &observer, &caller.slot), WEFT_OK);
    wf_trace_fail_comm(caller.trace, 1, WEFT_ERR_PEER, "");
    wf_trace_fail_comm(caller.trace, 1, WEFT_ERR_PEER, "");
    ck_assert_int_eq(caller.calls, 2);
    ck_assert_int_eq(seen.failed, 2);
    wf_observers_remove(caller.trace, slot);
    test_trace_end(caller.trace);
}

/* ---- threads ---- */

static void linger(void *user, const weft_record *record)
{
    struct seen *seen = user;

    (void)record;
    atomic_store(&seen->inside, true);
    while (!atomic_load(&seen->may_leave))
        sched_yield();
    seen->submitted++;
}

static void *submit_one(void *trace)
{
    (void)test_submit(trace, 1, 0);
    return NULL;
}

struct removal {
    struct wf_trace *trace;
    uint32_t slot;
    atomic_bool done;
};

static void *remove_one(void *argument)
{
    struct removal *removal = argument;

    wf_observers_remove(removal->trace, removal->slot);
    atomic_store(&removal->done, true);
    return NULL;
}

TEST(the_removal_of_an_observer_waits_for_its_callback)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct seen seen = {0};
    weft_observer observer = {.struct_size = sizeof observer, .user = &seen, .submitted = linger};
    struct removal removal = {.trace = trace};
    pthread_t submitter, remover;

    ck_assert_int_eq(wf_observers_add(trace, &observer, &removal.slot), WEFT_OK);
    ck_assert_int_eq(pthread_create(&submitter, NULL, submit_one, trace), 0);
    while (!atomic_load(&seen.inside))
        sched_yield();
    ck_assert_int_eq(pthread_create(&remover, NULL, remove_one, &removal), 0);
    while (atomic_load(&trace->observing) != 0)
        sched_yield();
    ck_assert(!atomic_load(&removal.done));
    atomic_store(&seen.may_leave, true);
    pthread_join(remover, NULL);
    ck_assert_int_eq(seen.submitted, 1);
    pthread_join(submitter, NULL);
    test_trace_end(trace);
}

static void *submit_many(void *trace)
{
    for (int i = 0; i < 20000; i++)
        wf_trace_finish(trace, test_submit(trace, 1, 0));
    return NULL;
}

static void count(void *user, const weft_record *record)
{
    ck_assert_uint_eq(record->sent, 8);
    atomic_fetch_add((atomic_int *)user, 1);
}

TEST(observers_come_and_go_while_others_are_called)
{
    struct wf_trace *trace = test_trace_begin(2048);
    pthread_t threads[2];
    weft_observer stays = {.struct_size = sizeof stays};
    atomic_int always = 0;
    uint32_t slot, other;

    stays.user = &always;
    stays.submitted = count;
    ck_assert_int_eq(wf_observers_add(trace, &stays, &slot), WEFT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, submit_many, trace), 0);
    for (int i = 0; i < 2000; i++) {
        atomic_int *counter = malloc(sizeof *counter); /* a late callback would use it after free */
        weft_observer comes = {.struct_size = sizeof comes, .user = counter, .submitted = count};

        ck_assert_ptr_nonnull(counter);
        atomic_init(counter, 0);
        ck_assert_int_eq(wf_observers_add(trace, &comes, &other), WEFT_OK);
        wf_observers_remove(trace, other);
        free(counter);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_gt(always, 0);
    wf_observers_remove(trace, slot);
    test_trace_end(trace);
}
