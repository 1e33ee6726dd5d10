/* Collectives that a departed rank took part in, and later ones. */
#include "support/fake_world.h"
#include "support/suite.h"

#include <sched.h>

static struct world_rank ranks[WORLD_MAX];

static void reduce_once(struct world_rank *self)
{
    float x = 1, y;

    note_seen(&self->seen, weft_all_reduce(weft_world(self->context), &x, &y, 1, WEFT_DTYPE_F32,
                                           WEFT_REDUCE_SUM, NULL));
}

static void reduce_until_failed(struct world_rank *self)
{
    do {
        fake_sleep_ms(1);
        reduce_once(self);
    } while (self->seen.status == WEFT_OK);
}

/* Rank 0 joins three collectives and leaves.  The others are slower. */
static void leave_early(struct world_rank *self)
{
    for (int i = 0; i < 3 && self->seen.status == WEFT_OK; i++) {
        if (self->rank != 0) fake_sleep_ms(30);
        reduce_once(self);
    }
}

TEST(a_goodbye_does_not_disturb_what_the_rank_took_part_in)
{
    fake_reset();
    world_run(ranks, 3, leave_early, NULL);
    all_saw(ranks, 3, WEFT_OK, "");
}

static void want_one_more(struct world_rank *self)
{
    leave_early(self);
    if (self->rank == 0 || self->seen.status != WEFT_OK) return;
    reduce_until_failed(self);
}

TEST(what_waits_for_a_rank_that_has_left_ends)
{
    fake_reset();
    world_begin(ranks, 3, want_one_more, NULL);
    world_go(ranks, 3);
    ck_assert_int_eq(ranks[0].seen.status, WEFT_OK);
    all_saw(ranks + 1, 2, WEFT_ERR_PEER,
            "collective 4 of world cannot complete: rank 0 has left the job");
}

/* Rank 0 leaves at once.  Rank 1 hangs in its first collective before it can get the departure. */
static void hang_at_once(struct world_rank *self)
{
    if (self->rank == 1) reduce_once(self);
    if (self->rank == 0) fake_sleep_ms(100);
}

TEST(what_already_waits_for_a_rank_that_leaves_ends)
{
    fake_reset();
    fake.hangs = 1;
    world_run(ranks, 2, hang_at_once, NULL);
    all_saw(ranks + 1, 1, WEFT_ERR_PEER,
            "collective 1 of world cannot complete: rank 0 has left the job");
}

/* Rank 0 releases a communicator after two collectives and leaves.  Rank 1 calls a third. */
static void release_and_leave(struct world_rank *self)
{
    float x = 1, y;
    weft_comm *pair = NULL;

    HOLDS(weft_comm_create(weft_world(self->context), 2, (int32_t[]){0, 1}, NULL, &pair) ==
          WEFT_OK);
    for (int i = 0; i < 2; i++)
        HOLDS(weft_all_reduce(pair, &x, &y, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL) == WEFT_OK);
    while (self->rank == 1 && self->seen.status == WEFT_OK) {
        fake_sleep_ms(1);
        note_seen(&self->seen,
                  weft_all_reduce(pair, &x, &y, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    }
    weft_comm_release(&pair);
}

TEST(what_waits_for_a_rank_that_released_it_and_left_ends)
{
    fake_reset();
    world_run(ranks, 2, release_and_leave, NULL);
    all_saw(ranks + 1, 1, WEFT_ERR_PEER, "collective 3 of ");
}

/* A rank leaves after ROUND collectives while another thread begins the next one.  Either that
 * thread detects that it cannot complete, or the communicator ends it. */
enum { DEPARTURES = 2000 };

static struct {
    weft_context *context;
    _Atomic int round, began; /* the turn of each */
    _Atomic bool posted;
} race;

static void await_turn(_Atomic int *turn, int round)
{
    for (int spins = 0; atomic_load(turn) < round; spins++)
        if (spins > 1000) sched_yield();
}

static void *begin_collectives(void *argument)
{
    weft_comm *world = weft_world(race.context);

    for (int round = 1; round <= DEPARTURES; round++) {
        await_turn(&race.round, round);
        for (volatile int delay = round % 256; delay > 0;) /* to hit every point */
            delay = delay - 1;
        atomic_store(&race.posted, wf_comm_may_begin(world));
        atomic_store(&race.began, round);
    }
    return argument;
}

TEST(a_collective_that_begins_while_a_rank_leaves_ends_or_does_not_begin)
{
    weft_comm *world;
    pthread_t poster;
    int both = 0, refused = 0;

    fake_reset();
    memset(&race, 0, sizeof race);
    race.context = world_alone();
    world = weft_world(race.context);
    world->size = 2; /* only then can a rank leave it */
    ck_assert_int_eq(pthread_create(&poster, NULL, begin_collectives, NULL), 0);
    for (int round = 1; round <= DEPARTURES; round++) {
        struct wf_departure departure = {.rank = 0, .left = true, .text = "has left the job"};
        uint64_t count = world->collectives;

        wf_put_u64(&departure.record, world->number);
        wf_put_u64(&departure.record, count);
        wf_put_blob(&departure.record, NULL, 0); /* no notes of its calls */
        atomic_store(&race.round, round);
        wf_fault_gone(race.context, &departure);
        wf_text_free(&departure.record);
        await_turn(&race.began, round);
        if (!atomic_load(&race.posted))
            refused++;
        else if (atomic_load(&world->cause) == WEFT_ERR_PEER)
            both++;
        else
            break; /* it would wait without a limit */
        ck_assert_uint_eq(world->collectives, count + (race.posted ? 1 : 0));
        atomic_store(&world->cause, WEFT_OK);
        atomic_store(&world->may_post, UINT64_MAX);
    }
    ck_assert_msg(refused + both == DEPARTURES, "collective %d began and nobody ended it",
                  refused + both + 1);
    pthread_join(poster, NULL);
    world->size = 1;
    weft_context_release(&race.context);
}
