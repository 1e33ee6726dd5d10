/* Many threads at once: plans and their caches, and one context with every function that any thread
 * may call.  ThreadSanitizer detects races. */
#include "plan/plan.h"
#include "comm/comm.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/random.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

enum { RANKS = 2, HELPERS = 4, ROUNDS = 25, LAYOUTS = 8, QUESTIONS = 300 };

static const char *const layouts[LAYOUTS] = {
    "f32[16,16] S(0),R", "f32[16,16] R,R",       "f32[16,16] S(0),S(1)", "f32[16,16] S(1),S(0)",
    "f32[16,16] P,R",    "f32[16,16] S(0),S(0)", "f32[16,16] R,S(1)",    "f32[16,16] R,S(0)"};

/* ---- plans ---- */

static uint64_t digests[LAYOUTS][LAYOUTS]; /* 0: no plan */

static struct {
    pthread_mutex_t lock;
    struct wf_plan_cache *cache;    /* of all threads, one at a time */
    _Atomic(weft_plan *) handed_on; /* from one thread to another, with its reference */
} shared;

static weft_status ask(struct wf_plan_cache *cache, int from, int to, weft_plan **out)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = wf_cost_default()};
    OWNED(weft_spec) *source = spec_of("2x2", layouts[from]), *target = spec_of("2x2", layouts[to]);
    weft_status status = cache != NULL ? wf_plan_cache_find(cache, source, target, &options, out)
                                       : weft_plan_create(source, target, NULL, out);

    return status;
}

static uint64_t digest_of(const weft_plan *plan)
{
    weft_plan_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    return info.digest;
}

struct thread {
    pthread_t thread;
    int number;
    weft_status status;
    char text[512];
    struct rank *rank;
};

static weft_status ask_around(int number)
{
    struct random r = {.state = wf_hash_mix((uint64_t)number, 1) | 1};
    struct wf_plan_cache *own = NULL;
    weft_status status = WEFT_OK;

    WF_TRY(wf_plan_cache_create(5, &own)); /* so small that entries are evicted */
    for (int i = 0; i < QUESTIONS && status == WEFT_OK; i++) {
        int from = (int)random_in(&r, 0, LAYOUTS - 1), to = (int)random_in(&r, 0, LAYOUTS - 1);
        OWNED(weft_plan) *plan = NULL;
        bool in_shared = i % 3 == 0;

        if (in_shared) pthread_mutex_lock(&shared.lock);
        status = ask(in_shared ? shared.cache : own, from, to, &plan);
        if (in_shared) pthread_mutex_unlock(&shared.lock);
        if (digests[from][to] == 0) {
            EXPECT(status != WEFT_OK);
            status = WEFT_OK;
            continue;
        }
        EXPECT(status == WEFT_OK && digest_of(plan) == digests[from][to]);
        plan = atomic_exchange(&shared.handed_on, plan);
    }
    wf_plan_cache_release(&own);
    return status;
}

static void *run_asker(void *argument)
{
    struct thread *self = argument;

    self->status = ask_around(self->number);
    snprintf(self->text, sizeof self->text, "%s", weft_last_error());
    return NULL;
}

TEST(plans_and_caches_are_used_by_many_threads)
{
    struct thread threads[HELPERS] = {0};
    weft_plan *left;

    for (int from = 0; from < LAYOUTS; from++)
        for (int to = 0; to < LAYOUTS; to++) {
            OWNED(weft_plan) *plan = NULL;
            digests[from][to] = ask(NULL, from, to, &plan) == WEFT_OK ? digest_of(plan) : 0;
        }
    pthread_mutex_init(&shared.lock, NULL);
    ck_assert_int_eq(wf_plan_cache_create(9, &shared.cache), WEFT_OK);
    for (int i = 0; i < HELPERS; i++) {
        threads[i].number = i;
        ck_assert_int_eq(pthread_create(&threads[i].thread, NULL, run_asker, &threads[i]), 0);
    }
    for (int i = 0; i < HELPERS; i++)
        pthread_join(threads[i].thread, NULL);
    for (int i = 0; i < HELPERS; i++)
        ck_assert_msg(threads[i].status == WEFT_OK, "thread %d: %s", i, threads[i].text);
    left = atomic_exchange(&shared.handed_on, NULL);
    weft_plan_release(&left);
    wf_plan_cache_release(&shared.cache);
    pthread_mutex_destroy(&shared.lock);
}

/* ---- one context ---- */

struct rank {
    weft_context *context;
    weft_comm *comms[HELPERS];
    weft_bound *bound[HELPERS];
    _Atomic(weft_work *) handed_on;
};

/* Call the functions that every thread may call at every time, also on a communicator that another
 * thread uses. */
static weft_status look_around(struct rank *rank, int number)
{
    weft_comm *other = rank->comms[(number + 1) % HELPERS];
    weft_device_info device = {.struct_size = sizeof device};
    uint32_t level;

    WF_TRY(weft_device_get(rank->context, &device));
    WF_TRY(weft_comm_async_error(other));
    WF_TRY(weft_comm_support(other, WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, &level));
    EXPECT(weft_comm_size(other) == RANKS && weft_comm_rank(other) == weft_rank(rank->context));
    EXPECT(weft_context_costs(rank->context) != NULL);
    return WEFT_OK;
}

/* Pass MINE to the next thread, and wait for the work of another. */
static weft_status pass_on(struct rank *rank, weft_work *mine)
{
    weft_work *other = atomic_exchange(&rank->handed_on, mine);
    weft_status status = WEFT_OK;

    if (other != NULL) status = weft_work_wait(other, WEFT_FOREVER);
    weft_work_release(&other);
    return status;
}

static weft_status work_once(struct rank *rank, int number, float *memory, weft_stream *stream)
{
    weft_context *context = rank->context;
    weft_comm *comm = rank->comms[number];
    weft_pointer_info info = {.struct_size = sizeof info};
    weft_work *work = NULL, *given = NULL;
    void *more = NULL;

    WF_TRY(weft_alloc(context, 512, WEFT_MEMORY_DEVICE, &more));
    WF_TRY(weft_pointer_get(context, more, &info));
    EXPECT(info.base == more);
    memory[0] = (float)(number + 1);
    WF_TRY(weft_all_reduce(comm, memory, memory + 256, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    EXPECT(memory[256] == (float)(RANKS * (number + 1)));
    WF_TRY(weft_memory_fill(context, memory, 0, 512, stream));
    WF_TRY(weft_redistribute(rank->bound[number], memory, memory + 256, stream, &given));
    WF_TRY(weft_memory_copy(context, memory, more, 512, stream));
    WF_TRY(weft_work_record(context, stream, &work));
    WF_TRY(weft_work_wait(given, WEFT_FOREVER));
    weft_work_release(&given);
    WF_TRY(pass_on(rank, work));
    WF_TRY(weft_context_wait(context, stream, WEFT_FOREVER));
    WF_TRY(look_around(rank, number));
    return weft_free(context, more);
}

static weft_status help(struct rank *rank, int number)
{
    weft_status status = WEFT_OK;
    void *memory = NULL;

    WF_TRY(weft_context_bind_thread(rank->context));
    WF_TRY(weft_alloc(rank->context, 4096, WEFT_MEMORY_DEVICE, &memory));
    for (int i = 0; i < ROUNDS && status == WEFT_OK; i++) {
        weft_stream *stream = NULL;
        WF_TRY(weft_stream_create(rank->context, &stream));
        status = work_once(rank, number, memory, stream);
        weft_stream_release(&stream);
    }
    WF_TRY(status);
    return weft_free(rank->context, memory);
}

static void *run_helper(void *argument)
{
    struct thread *self = argument;

    self->status = help(self->rank, self->number);
    snprintf(self->text, sizeof self->text, "%s", weft_last_error());
    return NULL;
}

TEST_ON_RANKS(RANKS, a_context_is_used_by_many_threads)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[16,16] S(0)"), *to = spec_of("2", "f32[16,16] S(1)");
    struct thread threads[HELPERS] = {0};
    struct rank rank = {0};
    OWNED(weft_plan) *plan = NULL;
    weft_work *left;

    WF_TRY(weft_plan_create(from, to, NULL, &plan));
    WF_TRY(weft_init(NULL, &rank.context));
    for (int i = 0; i < HELPERS; i++) {
        WF_TRY(weft_comm_split(weft_world(rank.context), 0, 0, NULL, &rank.comms[i]));
        WF_TRY(weft_plan_bind(plan, rank.comms[i], NULL, &rank.bound[i]));
    }
    for (int i = 0; i < HELPERS; i++) {
        threads[i] = (struct thread){.number = i, .rank = &rank};
        EXPECT(pthread_create(&threads[i].thread, NULL, run_helper, &threads[i]) == 0);
    }
    for (int i = 0; i < HELPERS; i++)
        pthread_join(threads[i].thread, NULL);
    for (int i = 0; i < HELPERS; i++)
        if (threads[i].status != WEFT_OK)
            return wf_fail(threads[i].status, "thread %d: %s", i, threads[i].text);
    left = atomic_exchange(&rank.handed_on, NULL);
    weft_work_release(&left);
    for (int i = 0; i < HELPERS; i++) {
        weft_bound_release(&rank.bound[i]);
        weft_comm_release(&rank.comms[i]);
    }
    weft_context_release(&rank.context);
    return WEFT_OK;
}
