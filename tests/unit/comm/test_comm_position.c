#include "support/fake_world.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];

#define SAYS(text, part) ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in: %s", part, text)

static bool reduce(weft_comm *comm)
{
    float x = 1, y;

    return weft_all_reduce(comm, &x, &y, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL) == WEFT_OK;
}

static bool report_says(weft_comm *comm, const char *part)
{
    char text[4096];

    return weft_comm_report_print(comm, text, sizeof text, NULL) == WEFT_OK &&
           strstr(text, part) != NULL;
}

/* Rank r has done r + 1 operations when rank 0 queries. */
static void look_around(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *first, *second, *third;

    for (int32_t i = 0; i <= self->rank; i++)
        HOLDS(reduce(world));
    HOLDS(weft_comm_split(world, 0, 0, NULL, &first) == WEFT_OK);
    HOLDS(weft_comm_split(world, 0, 0, NULL, &second) == WEFT_OK); /* all have the first */
    if (self->rank == 0) {
        HOLDS(report_says(world, "world (3 ranks): rank 0 has posted 1 operation\n"));
        HOLDS(report_says(world, "#1 all_reduce sum of 1 f32 (done)"));
        HOLDS(report_says(world, "rank 1 is at #2, all_reduce sum of 1 f32 (done)"));
        HOLDS(report_says(world, "rank 2 is at #3"));
        HOLDS(report_says(first, "rank 2 has posted no operation"));
    }
    HOLDS(weft_comm_split(world, 0, 0, NULL, &third) == WEFT_OK); /* rank 0 has queried */
    weft_comm_release(&first);
    weft_comm_release(&second);
    weft_comm_release(&third);
}

TEST(every_ranks_position_is_reported)
{
    fake_reset();
    world_run(ranks, 3, look_around, NULL);
    all_saw(ranks, 3, WEFT_OK, "");
}

/* Rank 1 joins no collective, and rank 0 waits for it until the time limit. */
static void wait_endlessly(struct world_rank *self)
{
    weft_subcomm_options patient = {.struct_size = sizeof patient,
                                    .timeout_ns = 300 * WF_SECOND_NS};
    weft_comm *world = weft_world(self->context), *last = NULL;
    float x = 1, y;

    if (self->rank == 0)
        note_seen(&self->seen,
                  weft_all_reduce(world, &x, &y, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    /* Rank 1 stays until rank 0 has queried it. */
    HOLDS(weft_comm_create(world, 2, (int32_t[]){0, 1}, &patient, &last) == WEFT_ERR_TIMEOUT);
}

TEST(a_time_limit_names_the_late_rank)
{
    fake_reset();
    fake.hangs = 0;
    world_begin(ranks, 2, wait_endlessly, NULL);
    ranks[0].timeout_ns = ranks[1].timeout_ns = 4 * WF_SECOND_NS; /* expires */
    world_go(ranks, 2);
    ck_assert_int_eq(ranks[0].seen.status, WEFT_ERR_TIMEOUT);
    SAYS(ranks[0].seen.text,
         "all_reduce #1 on world: the time limit passed: rank 1 has posted no operation");
    SAYS(ranks[0].seen.text, "fake: nobody came");
}

/* Rank 1 waits in another communicator until rank 0 has asked it. */
static void wait_elsewhere(struct world_rank *self)
{
    weft_subcomm_options named = {.struct_size = sizeof named, .name = "side"};
    weft_comm *world = weft_world(self->context), *side = NULL;
    bool told = false;

    HOLDS(weft_comm_split(world, 0, 0, &named, &side) == WEFT_OK);
    if (self->rank == 1) HOLDS(!reduce(side));
    while (self->rank == 0 && !told)
        told =
            report_says(world, "rank 1 has posted no operation (it is at #1, all_reduce sum of 1 "
                               "f32, on side#");
    if (self->rank == 0) weft_comm_abort(side);
    weft_comm_release(&side);
}

TEST(a_rank_that_waits_in_another_communicator_tells_so)
{
    fake_reset();
    fake.hangs = 1;
    world_run(ranks, 2, wait_elsewhere, NULL);
}

/* Rank 0 waits for rank 1 in one communicator, and rank 1 for rank 2 in another one.  Rank 2 is in
 * no collective, or waits for rank 0. */
static bool in_a_circle;

static void wait_in_turn(struct world_rank *self)
{
    weft_subcomm_options options = {.struct_size = sizeof options};
    weft_comm *world = weft_world(self->context), *pairs[3] = {NULL}, *all = NULL;
    float x = 1, y;

    for (int32_t i = 0; i < 3; i++) {
        options.timeout_ns = (i == 0 ? 4 : 300) * WF_SECOND_NS;
        HOLDS(weft_comm_create(world, 2, (int32_t[]){i, (i + 1) % 3}, &options, &pairs[i]) ==
              WEFT_OK);
    }
    if (self->rank < 2 || in_a_circle)
        note_seen(&self->seen, weft_all_reduce(pairs[self->rank], &x, &y, 1, WEFT_DTYPE_F32,
                                               WEFT_REDUCE_SUM, NULL));
    else /* until rank 0 ends it */
        HOLDS(weft_comm_create(world, 3, (int32_t[]){0, 1, 2}, &options, &all) != WEFT_OK);
    if (self->rank == 0) weft_context_abort(self->context);
    if (self->rank == 2) weft_comm_abort(pairs[1]);
    for (int32_t i = 0; i < 3; i++)
        weft_comm_release(&pairs[i]);
}

static const char *after_a_time_limit(bool circle)
{
    in_a_circle = circle;
    fake_reset();
    fake.hangs = EVERYBODY;
    world_run(ranks, 3, wait_in_turn, NULL);
    ck_assert_int_eq(ranks[0].seen.status, WEFT_ERR_TIMEOUT);
    return ranks[0].seen.text;
}

TEST(a_time_limit_names_the_rank_that_does_not_wait_itself)
{
    const char *text = after_a_time_limit(false);

    SAYS(text, "rank 1 has posted no operation (it is at #1, all_reduce sum of 1 f32, on ");
    SAYS(text, "rank 2 holds them up: on ");
}

TEST(ranks_that_wait_in_a_circle_are_told)
{
    SAYS(after_a_time_limit(true), "; these ranks wait for each other");
}

TEST(work_on_a_stream_is_done_after_its_wait)
{
    float x = 1, y;
    OWNED(weft_context) *context = NULL;
    weft_stream *stream;
    weft_comm *world;

    fake_reset();
    context = world_alone();
    world = weft_world(context);
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(weft_all_reduce(world, &x, &y, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, stream),
                     WEFT_OK);
    ck_assert(report_says(world, "#1 all_reduce sum of 1 f32\n"));
    ck_assert_int_eq(weft_context_wait(context, stream, WEFT_FOREVER), WEFT_OK);
    ck_assert(report_says(world, "#1 all_reduce sum of 1 f32 (done)"));
    weft_stream_release(&stream);
}

TEST(a_rank_alone_tells_its_own)
{
    OWNED(weft_context) *context = NULL;
    char text[4096], start[8];
    size_t needed = 0;

    fake_reset();
    context = world_alone();
    for (int i = 0; i < 20; i++)
        ck_assert(reduce(weft_world(context)));
    ck_assert_int_eq(weft_comm_report_print(weft_world(context), text, sizeof text, &needed),
                     WEFT_OK);
    ck_assert_uint_eq(needed, strlen(text));
    SAYS(text, "has posted 20 operations");
    SAYS(text, "#13 ");
    ck_assert_ptr_null(strstr(text, "#12 "));
    ck_assert_int_eq(weft_comm_report_print(weft_world(context), start, sizeof start, NULL),
                     WEFT_OK);
    ck_assert_str_eq(start, "world (");
    ck_assert_int_eq(weft_comm_report_print(weft_world(context), NULL, 1, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_comm_report_print(NULL, text, sizeof text, NULL), WEFT_ERR_INVALID);
}
