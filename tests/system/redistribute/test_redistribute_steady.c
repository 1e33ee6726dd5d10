/* The steady state of a bound plan, of a move and of tensors: ranks and their streams allocate
 * nothing and take no lock. The threads of the rendezvous do not count: they may still be busy with
 * the last answer.  This program puts its own malloc and locks in front of the C library's to count
 * them, so it is built without sanitizers, which do the same. */
#include "comm/comm.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { RANKS = 4, RUNS = 15 };

/* ---- counting ---- */

static _Atomic(int) counting; /* number of ranks in the steady state; counts while all ranks are */
static _Atomic(uint64_t) allocations, locks;

static _Thread_local bool is_joining, is_of_rendezvous;

static void count(_Atomic(uint64_t) *what)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed) == RANKS && !is_of_rendezvous)
        atomic_fetch_add(what, 1);
}

static void *next_of(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL) abort();
    return found;
}

/* dlsym itself may allocate before malloc is known. */
static _Alignas(16) unsigned char early[4096];
static size_t early_used;

static void *take(size_t bytes)
{
    static void *(*next)(size_t);
    static bool asking;

    count(&allocations);
    if (next == NULL && asking) {
        void *piece = early + early_used;

        early_used += (bytes + 15) / 16 * 16;
        if (early_used > sizeof early) abort();
        return piece;
    }
    if (next == NULL) {
        asking = true;
        *(void **)(void *)&next = next_of("malloc");
    }
    return next(bytes);
}

void *malloc(size_t bytes)
{
    return take(bytes);
}

void *calloc(size_t number, size_t bytes)
{
    void *piece;

    if (bytes != 0 && number > SIZE_MAX / bytes) return NULL;
    piece = take(number * bytes);
    return piece == NULL ? NULL : memset(piece, 0, number * bytes);
}

void *realloc(void *pointer, size_t bytes)
{
    static void *(*next)(void *, size_t);

    count(&allocations);
    if (next == NULL) *(void **)(void *)&next = next_of("realloc");
    return next(pointer, bytes);
}

void free(void *pointer)
{
    static void (*next)(void *);

    if ((unsigned char *)pointer >= early && (unsigned char *)pointer < early + sizeof early)
        return;
    if (next == NULL) *(void **)(void *)&next = next_of("free");
    next(pointer);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*next)(pthread_mutex_t *);

    count(&locks);
    if (next == NULL) *(void **)(void *)&next = next_of("pthread_mutex_lock");
    return next(mutex);
}

struct beginning {
    void *(*run)(void *);
    void *argument;
};

static void *begin_for_rendezvous(void *argument)
{
    struct beginning given = *(struct beginning *)argument;

    is_of_rendezvous = true;
    free(argument);
    return given.run(given.argument);
}

/* A thread that weft_init creates belongs to the rendezvous. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    struct beginning *given;

    *(void **)(void *)&next = next_of("pthread_create");
    if (!is_joining) return next(thread, attributes, run, argument);
    given = malloc(sizeof *given);
    if (given == NULL) abort();
    *given = (struct beginning){run, argument};
    return next(thread, attributes, begin_for_rendezvous, given);
}

/* ---- running ---- */

struct run {
    const char *mesh, *from, *to;
    bool packed, streams, works;
    bool moves, in_place, batches, tensors, lists;
};

/* The state of a rank. */
struct place {
    weft_context *context;
    weft_bound *bound;
    weft_spec *from, *to;
    weft_stream *stream;
    uint32_t *source, *target, *flag; /* FLAG[1] becomes FLAG[0] */
    uint32_t *more;                   /* two more tensors */
    weft_tensor *sources[2], *targets[2];
};

/* Does not wait in the library, which may lock. */
static weft_status wait_for_flag(const struct place *place, uint32_t value)
{
    place->flag[0] = value;
    WF_TRY(weft_memory_copy(place->context, &place->flag[0], &place->flag[1], 4, place->stream));
    while (atomic_load((_Atomic(uint32_t) *)&place->flag[1]) != value)
        sched_yield();
    return WEFT_OK;
}

static weft_status run_once(const struct run *run, const struct place *place, weft_work **work)
{
    void *target = run->in_place ? place->source : place->target;
    weft_move_item items[] = {{"a", place->from, place->source, place->to, target},
                              {"b", place->to, place->more, place->to, place->more + 64 * 64}};

    if (run->lists)
        return weft_tensors_move_into(2, place->sources, place->targets, NULL, place->stream, work);
    if (run->tensors) return move_into(place->sources[0], place->targets[0], place->stream, work);
    if (run->batches) return move_items(place->context, 2, items, place->stream, work);
    if (run->moves)
        return move_one(place->context, place->from, place->source, place->to, target,
                        place->stream, work);
    return weft_redistribute(place->bound, place->source, place->target, place->stream, work);
}

static weft_status run_often(const struct run *run, const struct place *place, uint32_t flag)
{
    weft_work *works[RUNS] = {NULL};

    for (int i = 0; i < RUNS; i++)
        WF_TRY(run_once(run, place, run->works ? &works[i] : NULL));
    WF_TRY(wait_for_flag(place, flag));
    for (int i = 0; i < RUNS; i++)
        weft_work_release(&works[i]);
    return WEFT_OK;
}

static void meet(_Atomic(int) *arrived, int ranks)
{
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < ranks)
        sched_yield();
}

static weft_status run_counted(const struct run *run, const struct place *place)
{
    static _Atomic(int) ended;

    WF_TRY(run_often(run, place, 1));
    WF_TRY(run_often(run, place, 2));
    WF_TRY(weft_barrier(weft_world(place->context), place->stream));
    WF_TRY(wait_for_flag(place, 3));
    atomic_store(&ended, 0);
    meet(&counting, RANKS);
    WF_TRY(run_often(run, place, 4));
    meet(&ended, RANKS);
    atomic_store(&counting, 0);
    return WEFT_OK;
}

static weft_status open_place(const struct run *run, struct place *place)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = run->packed};
    weft_spec *from = spec_of(run->mesh, run->from), *to = spec_of(run->mesh, run->to);
    weft_plan *plan = NULL;
    void *memory[4];

    is_joining = true;
    WF_TRY(weft_init(NULL, &place->context));
    is_joining = false;
    WF_TRY(weft_plan_create(from, to, NULL, &plan));
    WF_TRY(weft_plan_bind(plan, weft_world(place->context), &options, &place->bound));
    for (int i = 0; i < 4; i++) {
        WF_TRY(weft_alloc(place->context, 2 * 64 * 64 * 4, WEFT_MEMORY_DEVICE, &memory[i]));
        memset(memory[i], 0, 2 * 64 * 64 * 4);
    }
    if (run->streams) WF_TRY(weft_stream_create(place->context, &place->stream));
    place->source = memory[0];
    place->target = memory[1];
    place->flag = memory[2];
    place->more = memory[3];
    place->from = from;
    place->to = to;
    weft_plan_release(&plan);
    WF_TRY(weft_tensor_wrap(place->context, from, place->source, NULL, &place->sources[0]));
    WF_TRY(weft_tensor_wrap(place->context, to, place->target, NULL, &place->targets[0]));
    WF_TRY(weft_tensor_wrap(place->context, to, place->more, NULL, &place->sources[1]));
    return weft_tensor_wrap(place->context, to, place->more + 64 * 64, NULL, &place->targets[1]);
}

static weft_status run_rank(void *argument)
{
    bool is_traced = getenv("WEFT_TRACE") != NULL;
    const struct run *run = argument;
    struct place place = {0};

    WF_TRY(open_place(run, &place));
    WF_TRY(run_counted(run, &place));
    /* A trace has a lock.  Its events make the queue of a stream longer, which then may grow. */
    if (!is_traced || !run->streams) EXPECT(atomic_load(&allocations) == 0);
    if (!is_traced) EXPECT(atomic_load(&locks) == 0);
    WF_TRY(weft_barrier(weft_world(place.context), NULL));
    for (int i = 0; i < 2; i++) {
        weft_tensor_release(&place.sources[i]);
        weft_tensor_release(&place.targets[i]);
    }
    weft_bound_release(&place.bound);
    weft_stream_release(&place.stream);
    WF_TRY(weft_free(place.context, place.source));
    WF_TRY(weft_free(place.context, place.target));
    WF_TRY(weft_free(place.context, place.flag));
    WF_TRY(weft_free(place.context, place.more));
    weft_spec_release(&place.from);
    weft_spec_release(&place.to);
    weft_context_release(&place.context);
    return WEFT_OK;
}

static void check(struct run run)
{
    static const char *const layouts[][3] = {
        {"2x2", "f32[64,64] S(0),P", "f32[64,64] S(1),R"},
        {"4", "f32[64,64] S(0)", "f32[64,64] S(1)"},
        {"4", "f32[64,64] P", "f32[64,64] R"},
        {"4", "f32[63,61] S(0)", "f32[63,61] R"},
        {"4", "f32[64,64] R", "f32[64,64] S(1)"},
    };

    for (size_t i = 0; i < WF_COUNT(layouts); i++)
        for (int packed = 0; packed < 2; packed++) {
            run.mesh = layouts[i][0];
            run.from = layouts[i][1];
            run.to = layouts[i][2];
            run.packed = packed == 1;
            atomic_store(&allocations, 0);
            ck_assert_msg(weft_threads_run(RANKS, run_rank, &run) == WEFT_OK,
                          "%s on %s to %s, %s: %s", run.from, run.mesh, run.to,
                          packed ? "packed" : "pulled", weft_last_error());
        }
}

TEST(the_counters_count)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    void *volatile memory;

    atomic_store(&counting, RANKS);
    memory = malloc(1);
    free(memory);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    atomic_store(&counting, 0);
    ck_assert_uint_eq(atomic_exchange(&allocations, 0), 1);
    ck_assert_uint_eq(atomic_exchange(&locks, 0), 1);
}

TEST(on_the_default_stream)
{
    check((struct run){.works = false});
}

TEST(on_a_stream_of_its_own)
{
    check((struct run){.streams = true});
}

TEST(with_a_handle_on_each_run)
{
    check((struct run){.works = true});
    check((struct run){.streams = true, .works = true});
}

TEST(moves_from_the_cache)
{
    check((struct run){.moves = true});
    check((struct run){.moves = true, .in_place = true});
    check((struct run){.moves = true, .streams = true, .works = true});
    check((struct run){.batches = true, .streams = true});
    check((struct run){.batches = true, .in_place = true});
}

TEST(tensors_that_exist)
{
    check((struct run){.tensors = true});
    check((struct run){.tensors = true, .streams = true, .works = true});
    check((struct run){.lists = true});
    check((struct run){.lists = true, .streams = true});
}
