/* The server's clock: its offset is within the bound, and 0 where the clock is the same. */
#include "rendezvous/launch.h"

#include "support/rendezvous.h"
#include "support/suite.h"

static struct rv rv;
static atomic_int ready, ended;

static void measure(struct rv_rank *self)
{
    struct wf_clock_offset found;
    uint64_t before = wf_now_ns();

    ck_assert_int_eq(wf_client_clock(self->client, 1, &found), WEFT_OK);
    ck_assert_uint_ge(found.at_ns, before);
    ck_assert_uint_le(found.at_ns, wf_now_ns());
    ck_assert_uint_gt(found.bound_ns, 0);
    ck_assert_int_le(found.offset_ns, (int64_t)found.bound_ns); /* in truth it is 0 */
    ck_assert_int_ge(found.offset_ns, -(int64_t)found.bound_ns);
    ck_assert_int_eq(wf_client_clock(self->client, wf_clock_identity(), &found), WEFT_OK);
    ck_assert_int_eq(found.offset_ns, 0);
    ck_assert_uint_eq(found.bound_ns, 0);
}

TEST(every_rank_measures_the_servers_clock)
{
    struct rv_rank ranks[3];

    rv = rv_begin(3, "127.0.0.1", 300 * WF_SECOND_NS);
    rv_all(ranks, &rv, 3, measure);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(ranks[i].status, WEFT_OK);
    wf_server_release(&rv.server);
}

static void measure_after_the_end(struct rv_rank *self)
{
    struct wf_clock_offset found = {.bound_ns = 77};

    ready++;
    while (ended == 0)
        rv_sleep_ms(1);
    while (wf_client_clock(self->client, 1, &found) == WEFT_OK)
        rv_sleep_ms(1);
    ck_assert_int_eq(wf_client_clock(self->client, 1, &found), WEFT_ERR_PEER);
}

TEST(without_a_server_there_is_no_clock)
{
    struct rv_rank ranks[2];

    rv = rv_begin(2, "127.0.0.1", 300 * WF_SECOND_NS);
    rv_place(ranks, &rv, 2, measure_after_the_end);
    for (int i = 0; i < 2; i++)
        rv_start(&ranks[i]);
    while (ready < 2)
        rv_sleep_ms(1);
    wf_server_release(&rv.server);
    ended++;
    for (int i = 0; i < 2; i++)
        rv_join(&ranks[i]);
}

TEST(this_process_has_one_clock)
{
    ck_assert_uint_eq(wf_clock_identity(), wf_clock_identity());
    ck_assert_uint_ne(wf_clock_identity(), 0);
}
