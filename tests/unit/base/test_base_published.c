/* A replaced value lives as long as a reader may have it. */
#include "base/published.h"
#include "support/suite.h"

static struct wf_published guard = WF_PUBLISHED;
static int dropped;

static void drop(struct wf_retired *item)
{
    (void)item;
    dropped++;
}

static void retire(struct wf_retired *item)
{
    item->drop = drop;
    wf_published_lock(&guard);
    wf_published_retire(&guard, item);
    wf_published_unlock(&guard);
}

static void sweep(void)
{
    wf_published_lock(&guard);
    wf_published_sweep(&guard);
    wf_published_unlock(&guard);
}

TEST(without_readers_a_value_is_dropped_at_once)
{
    struct wf_retired item;

    dropped = 0;
    retire(&item);
    ck_assert_int_eq(dropped, 1);
    sweep();
    ck_assert_int_eq(dropped, 1);
}

TEST(a_reader_keeps_what_was_retired_after_it_entered)
{
    struct wf_retired items[3];
    uint32_t ticket = wf_published_enter(&guard);

    dropped = 0;
    for (int i = 0; i < 3; i++)
        retire(&items[i]);
    sweep();
    ck_assert_int_eq(dropped, 0);
    wf_published_leave(&guard, ticket);
    sweep();
    ck_assert_int_eq(dropped, 3);
}

TEST(readers_that_follow_each_other_do_not_keep_values_for_ever)
{
    struct wf_retired items[20];
    uint32_t ticket = wf_published_enter(&guard);

    dropped = 0;
    for (int i = 0; i < 20; i++) { /* there is always a reader */
        uint32_t next;
        retire(&items[i]);
        next = wf_published_enter(&guard);
        wf_published_leave(&guard, ticket);
        ticket = next;
    }
    ck_assert_int_gt(dropped, 10);
    wf_published_leave(&guard, ticket);
    sweep();
    ck_assert_int_eq(dropped, 20);
}
