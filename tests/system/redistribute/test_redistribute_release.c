/* Objects released in the wrong order: an object that depends on a released one refuses every call
 * until it is released itself. */
#include "comm/comm.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/symm.h"
#include "weft/weft.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { RANKS = 2, TENSORS = 3 };

/* All objects that a rank can hold. */
struct holding {
    weft_context *context;
    weft_comm *comm;
    weft_bound *bound, *batch;
    weft_symm *symm;
    weft_stream *stream;
    weft_work *recorded, *given;
    void *memory;
};

#define REFUSED(call, text)                                                                        \
    EXPECT((call) == WEFT_ERR_INVALID && strstr(weft_last_error(), text) != NULL)

static weft_status make_plans(weft_plan **one, weft_plan **several)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[8,8] S(0)"), *to = spec_of("2", "f32[8,8] S(1)");
    const weft_spec *froms[TENSORS] = {from, from, from}, *tos[TENSORS] = {to, to, to};

    WF_TRY(weft_plan_create(from, to, NULL, one));
    WF_TRY(weft_plan_create_batch(TENSORS, froms, tos, NULL, several));
    return WEFT_OK;
}

static weft_status make(struct holding *h)
{
    OWNED(weft_plan) *one = NULL, *several = NULL;
    char *at;

    *h = (struct holding){0};
    WF_TRY(make_plans(&one, &several));
    WF_TRY(weft_init(NULL, &h->context));
    WF_TRY(weft_comm_split(weft_world(h->context), 0, 0, NULL, &h->comm));
    WF_TRY(weft_plan_bind(one, h->comm, NULL, &h->bound));
    WF_TRY(weft_plan_bind(several, h->comm, NULL, &h->batch));
    WF_TRY(weft_symm_create(h->comm, 64, NULL, &h->symm));
    WF_TRY(weft_stream_create(h->context, &h->stream));
    WF_TRY(weft_alloc(h->context, 4096, WEFT_MEMORY_DEVICE, &h->memory));
    at = h->memory;
    WF_TRY(weft_redistribute(h->bound, at, at + 1024, h->stream, &h->given));
    WF_TRY(weft_work_wait(h->given, WEFT_FOREVER));
    WF_TRY(weft_work_record(h->context, h->stream, &h->recorded));
    WF_TRY(weft_barrier(h->comm, NULL));
    return WEFT_OK;
}

/* CAUSE is the text of the bound plans' error. */
static weft_status bound_is_refused(struct holding *h, const char *cause)
{
    char *at = h->memory;
    const void *sources[TENSORS] = {at, at + 256, at + 512};
    void *targets[TENSORS] = {at + 1024, at + 1280, at + 1536};
    weft_work *work = NULL;

    REFUSED(weft_redistribute(h->bound, at, at + 1024, NULL, NULL), cause);
    REFUSED(weft_redistribute(h->bound, at, at + 1024, NULL, &work), cause);
    REFUSED(weft_redistribute_batch(h->bound, sources, targets, NULL, NULL), cause);
    REFUSED(weft_redistribute(h->batch, at, at + 1024, NULL, NULL), cause);
    REFUSED(weft_redistribute_batch(h->batch, sources, targets, NULL, &work), cause);
    EXPECT(weft_bound_scratch(h->bound) == 0 && weft_bound_scratch(h->batch) == 0);
    EXPECT(work == NULL);
    return WEFT_OK;
}

static weft_status release_comm_first(void *argument)
{
    struct holding h;
    char name[128], cause[256];

    (void)argument;
    WF_TRY(make(&h));
    snprintf(name, sizeof name, "%s", weft_comm_name(h.comm));
    snprintf(cause, sizeof cause, "communicator %s was released; its bound plans ended with it",
             name);
    weft_comm_release(&h.comm);
    WF_TRY(bound_is_refused(&h, cause));
    snprintf(cause, sizeof cause, "communicator %s was released", name);
    REFUSED(weft_symm_fence(h.symm, NULL), cause);
    /* Other objects stay usable. */
    WF_TRY(weft_work_wait(h.recorded, WEFT_FOREVER));
    WF_TRY(weft_work_wait(h.given, WEFT_FOREVER));
    WF_TRY(weft_context_wait(h.context, h.stream, WEFT_FOREVER));
    WF_TRY(weft_free(h.context, h.memory));
    weft_bound_release(&h.bound);
    weft_bound_release(&h.batch);
    EXPECT(h.bound == NULL && h.batch == NULL);
    EXPECT(h.context->live_bound == 0 && wf_ledger_count(&h.context->ledger) == 0);
    weft_symm_release(&h.symm);
    weft_work_release(&h.recorded);
    weft_work_release(&h.given);
    weft_stream_release(&h.stream);
    weft_context_release(&h.context);
    return WEFT_OK;
}

TEST(bound_plans_outlive_their_communicator)
{
    wf_log_set_level(WF_LOG_ERROR);
    ck_assert_msg(weft_threads_run(RANKS, release_comm_first, NULL) == WEFT_OK, "%s",
                  weft_last_error());
    wf_log_set_level(WF_LOG_NOTICE);
}

static weft_status release_context_first(void *argument)
{
    struct holding h;
    weft_bound *other = NULL;
    OWNED(weft_plan) *one = NULL, *several = NULL;
    weft_context *copy;

    (void)argument;
    WF_TRY(make(&h));
    WF_TRY(make_plans(&one, &several));
    copy = h.context;
    weft_context_release(&h.context);
    WF_TRY(bound_is_refused(&h, "the context was released; its bound plans ended with it"));
    REFUSED(weft_plan_bind(one, h.comm, NULL, &other), "the context was released");
    REFUSED(weft_barrier(h.comm, NULL),
            "the context was released; its communicators ended with it");
    REFUSED(weft_symm_fence(h.symm, NULL), "the context was released");
    REFUSED(weft_work_wait(h.recorded, 0), "was released; the work is from weft_work_record");
    REFUSED(weft_work_wait(h.given, 0), "was released; the work is from weft_redistribute");
    REFUSED(weft_context_wait(copy, h.stream, 0), "the context was released");
    REFUSED(weft_context_wait(h.context, h.stream, 0), "context is NULL");
    REFUSED(weft_free(copy, h.memory), "the context was released");
    weft_symm_release(&h.symm);
    weft_bound_release(&h.bound);
    weft_comm_release(&h.comm);
    weft_bound_release(&h.batch);
    weft_work_release(&h.recorded);
    weft_work_release(&h.given);
    weft_stream_release(&h.stream);
    EXPECT(h.symm == NULL && h.bound == NULL && h.comm == NULL && h.stream == NULL);
    return WEFT_OK;
}

TEST(everything_outlives_its_context)
{
    wf_log_set_level(WF_LOG_ERROR);
    ck_assert_msg(weft_threads_run(RANKS, release_context_first, NULL) == WEFT_OK, "%s",
                  weft_last_error());
    wf_log_set_level(WF_LOG_NOTICE);
}

/* A copy of the pointer to a released bound plan is refused. */
static weft_status use_after_release(void *argument)
{
    weft_bound *bound, *batch;
    struct holding h;

    (void)argument;
    WF_TRY(make(&h));
    bound = h.bound;
    batch = h.batch;
    weft_bound_release(&h.bound);
    weft_bound_release(&h.batch);
    h.bound = bound;
    h.batch = batch;
    WF_TRY(bound_is_refused(&h, "bound is a weft_bound that was released"));
    weft_bound_release(&h.bound); /* again */
    weft_bound_release(&h.batch);
    EXPECT(h.context->live_bound == 0);
    weft_symm_release(&h.symm);
    weft_work_release(&h.recorded);
    weft_work_release(&h.given);
    weft_stream_release(&h.stream);
    WF_TRY(weft_free(h.context, h.memory));
    weft_comm_release(&h.comm);
    weft_context_release(&h.context);
    return WEFT_OK;
}

TEST(a_released_bound_plan_is_refused)
{
    wf_log_set_level(WF_LOG_ERROR);
    ck_assert_msg(weft_threads_run(RANKS, use_after_release, NULL) == WEFT_OK, "%s",
                  weft_last_error());
    wf_log_set_level(WF_LOG_NOTICE);
}

static int64_t live_before, live_after;

static weft_status bind_often(void *argument)
{
    OWNED(weft_plan) *one = NULL, *several = NULL;
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;

    (void)argument;
    WF_TRY(make_plans(&one, &several));
    WF_TRY(weft_init(NULL, &context));
    for (int i = 0; i < 300; i++) {
        if (i == 2 * WF_REMNANTS || i == 299) {
            WF_TRY(weft_barrier(weft_world(context), NULL));
            if (weft_rank(context) == 0) *(i == 299 ? &live_after : &live_before) = wf_mem_live();
            WF_TRY(weft_barrier(weft_world(context), NULL));
        }
        WF_TRY(weft_plan_bind(i % 2 == 0 ? one : several, weft_world(context), NULL, &bound));
        weft_bound_release(&bound);
    }
    return WEFT_OK;
}

TEST(few_released_bound_plans_are_kept)
{
    ck_assert_msg(weft_threads_run(RANKS, bind_often, NULL) == WEFT_OK, "%s", weft_last_error());
    ck_assert_msg(live_after <= live_before + 8, "%lld blocks, then %lld", (long long)live_before,
                  (long long)live_after); /* threads of the rendezvous allocate meanwhile */
}

static atomic_bool has_left; /* rank 0 */

/* A stream that waits for a missing rank is ended with the context. */
static weft_status release_with_work_under_way(void *argument)
{
    weft_context *context = NULL;
    weft_stream *stream = NULL;
    weft_work *work = NULL;
    weft_comm *world;

    (void)argument;
    WF_TRY(weft_init(NULL, &context));
    world = weft_world(context);
    WF_TRY(weft_barrier(world, NULL));
    if (weft_rank(context) == 0) {
        WF_TRY(weft_stream_create(context, &stream));
        WF_TRY(weft_barrier(world, stream));
        WF_TRY(weft_work_record(context, stream, &work));
        weft_context_release(&context);
        atomic_store(&has_left, true);
    }
    while (!atomic_load(&has_left))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    weft_context_release(&context);
    if (work != NULL) REFUSED(weft_work_wait(work, WEFT_FOREVER), "was released");
    weft_work_release(&work);
    weft_stream_release(&stream);
    return WEFT_OK;
}

TEST(a_context_ends_with_work_under_way_on_a_forgotten_stream)
{
    wf_log_set_level(WF_LOG_ERROR);
    ck_assert_msg(weft_threads_run(RANKS, release_with_work_under_way, NULL) == WEFT_OK, "%s",
                  weft_last_error());
    wf_log_set_level(WF_LOG_NOTICE);
}
