#include "cost/cost.h"
#include "support/layout.h"
#include "support/suite.h"

static weft_cost_table *dtensor(void)
{
    weft_cost_table *table;

    ck_assert_int_eq(weft_cost_table_open("dtensor", &table), WEFT_OK);
    return table;
}

/* Values that DTensor itself gives for 8 devices of one host, in microseconds. */
TEST(the_dtensor_table_gives_dtensors_own_costs)
{
    static const struct {
        uint32_t kind;
        uint64_t local, received;
        double microseconds;
    } cases[] = {
        {WEFT_STEP_ALL_GATHER, 1 << 20, UINT64_C(7) << 20, 88.747},
        {WEFT_STEP_ALL_TO_ALL, 1 << 20, (UINT64_C(7) << 20) / 8, 21.543},
        {WEFT_STEP_ALL_REDUCE, 1 << 20, (UINT64_C(14) << 20) / 8, 34.487},
        {WEFT_STEP_REDUCE_SCATTER, 1 << 20, (UINT64_C(7) << 20) / 8, 20.543},
        {WEFT_STEP_ALL_GATHER, 1 << 30, UINT64_C(7) << 30, 79828.36},
    };
    weft_cost_table *table = dtensor();

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        struct wf_work work = {.kind = cases[i].kind, .ranks = 8, .received = cases[i].received};
        ck_assert_double_eq_tol((double)wf_cost_ns(table, &work) / 1000, cases[i].microseconds,
                                cases[i].microseconds * 1e-4);
    }
    weft_cost_table_release(&table);
}

TEST(time_grows_with_everything_it_counts)
{
    OWNED(weft_cost_table) *table = NULL;
    struct wf_work work = {.kind = WEFT_STEP_EXCHANGE, .ranks = 4, .received = 1 << 20};
    uint64_t before, after;

    ck_assert_int_eq(weft_cost_table_open("default", &table), WEFT_OK);
    before = wf_cost_ns(table, &work);
    work.packed = 1 << 20;
    after = wf_cost_ns(table, &work);
    ck_assert_uint_gt(after, before);
    before = after;
    work.reduced = work.copied = 1 << 20;
    after = wf_cost_ns(table, &work);
    ck_assert_uint_gt(after, before);
    before = after;
    work.link = WF_BETWEEN_HOSTS;
    ck_assert_uint_gt(wf_cost_ns(table, &work), before);
}

TEST(a_program_asks_for_the_time_of_a_step)
{
    weft_cost_step step = {.struct_size = sizeof step,
                           .kind = WEFT_STEP_EXCHANGE,
                           .ranks = 4,
                           .between_hosts = true,
                           .received = 3 << 20,
                           .copied = 5 << 20,
                           .packed = 7 << 20,
                           .reduced = 9 << 20};
    struct wf_work work = {.kind = WEFT_STEP_EXCHANGE,
                           .link = WF_BETWEEN_HOSTS,
                           .ranks = 4,
                           .received = 3 << 20,
                           .copied = 5 << 20,
                           .packed = 7 << 20,
                           .reduced = 9 << 20};
    OWNED(weft_cost_table) *table = NULL;
    uint64_t ns = 0;

    ck_assert_int_eq(weft_cost_table_open("default", &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_step_ns(table, &step, &ns), WEFT_OK);
    ck_assert_uint_eq(ns, wf_cost_ns(table, &work));
    step.between_hosts = false;
    work.link = WF_WITHIN_HOST;
    ck_assert_int_eq(weft_cost_table_step_ns(table, &step, &ns), WEFT_OK);
    ck_assert_uint_eq(ns, wf_cost_ns(table, &work));
    step.ranks = 0;
    ck_assert_int_eq(weft_cost_table_step_ns(table, &step, &ns), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(),
                     "weft_cost_table_step_ns: ranks is 0; it must be at least 1");
    step.ranks = 1;
    step.kind = WEFT_STEP_KINDS;
    ck_assert_int_eq(weft_cost_table_step_ns(table, &step, &ns), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(),
                     "weft_cost_table_step_ns: kind 10 is not an enum weft_step_kind");
}

/* 64 ranks with 8 on each host: their 8 links carry the bytes together, but never faster than the
 * links within a host; an all-to-all has other bytes for each rank. */
TEST(groups_that_fill_hosts_use_all_their_links)
{
    weft_cost_step step = {.struct_size = sizeof step,
                           .kind = WEFT_STEP_ALL_GATHER,
                           .ranks = 64,
                           .between_hosts = true,
                           .received = 1000000000};
    OWNED(weft_cost_table) *table = NULL;
    uint64_t latency = 6600 + 63 * 2700, ns = 0;

    ck_assert_int_eq(weft_cost_table_open("h100", &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_step_ns(table, &step, &ns), WEFT_OK);
    ck_assert_uint_eq(ns, latency + 22222000);
    step.lanes = 8;
    ck_assert_int_eq(weft_cost_table_step_ns(table, &step, &ns), WEFT_OK);
    ck_assert_uint_eq(ns, latency + 2777000);
    step.lanes = 64;
    ck_assert_int_eq(weft_cost_table_step_ns(table, &step, &ns), WEFT_OK);
    ck_assert_uint_eq(ns, latency + 2703000);
    step.kind = WEFT_STEP_ALL_TO_ALL;
    ck_assert_int_eq(weft_cost_table_step_ns(table, &step, &ns), WEFT_OK);
    ck_assert_uint_eq(ns, latency + 22222000);
    step.lanes = -1;
    check_refused(weft_cost_table_step_ns(table, &step, &ns), WEFT_ERR_INVALID, "lanes is -1");
    weft_cost_table_release(&table);
    ck_assert_int_eq(weft_cost_table_open("cpu", &table), WEFT_OK); /* it says nothing of it */
    step.lanes = 1;
    ck_assert_int_eq(weft_cost_table_step_ns(table, &step, &latency), WEFT_OK);
    step.lanes = 8;
    ck_assert_int_eq(weft_cost_table_step_ns(table, &step, &ns), WEFT_OK);
    ck_assert_uint_eq(ns, latency);
}

TEST(ranks_beyond_a_domain_cost_more)
{
    OWNED(weft_cost_table) *table = NULL;
    weft_cost_step step = {.struct_size = sizeof step,
                           .kind = WEFT_STEP_EXCHANGE,
                           .ranks = 2,
                           .between_hosts = true,
                           .beyond = true,
                           .received = 1000000};
    uint64_t ns = 0;

    ck_assert_int_eq(weft_cost_table_parse("weft-cost 2\nbase h100\nname far\n"
                                           "exchange beyond 9000 0 80000\n",
                                           &table),
                     WEFT_OK);
    ck_assert_int_eq(weft_cost_table_step_ns(table, &step, &ns), WEFT_OK);
    ck_assert_uint_eq(ns, 9000 + 80000);
}

TEST(products_of_larger_weights_run_at_a_higher_rate)
{
    const uint64_t flops = UINT64_C(553000000000000), second = 1000000000;
    OWNED(weft_cost_table) *table = NULL, *plain = NULL;
    uint64_t before = UINT64_MAX;

    ck_assert_int_eq(weft_cost_table_open("h100", &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_open("cpu", &plain), WEFT_OK);
    ck_assert_uint_eq(weft_cost_table_product_ns(table, flops, 1, 1 << 26), second);
    ck_assert_uint_eq(weft_cost_table_compute_ns(table, flops, 1), second);
    for (uint64_t size = 1; size < UINT64_C(1) << 60; size += size / 2 + 1) {
        uint64_t ns = weft_cost_table_product_ns(table, flops, 1, size);
        ck_assert_uint_le(ns, before);
        ck_assert(ns > second * 1000 / 1139 && ns < second * 1000 / 649);
        before = ns;
        ck_assert_uint_eq(weft_cost_table_product_ns(plain, flops, 1, size),
                          weft_cost_table_compute_ns(plain, flops, 1));
    }
    /* half the way from 2^26 to 2^27 */
    ck_assert_uint_eq(weft_cost_table_product_ns(table, UINT64_C(1022) * 553000000000, 1, 3 << 25),
                      second);
    ck_assert_uint_eq(weft_cost_table_product_ns(table, 1, 1, 1), 7000); /* a launch */
    ck_assert_uint_eq(weft_cost_table_compute_ns(table, 1, 1), 7000);
    ck_assert_uint_eq(weft_cost_table_product_ns(table, 1, 2 * second, 1), 702000);
    ck_assert_uint_lt(weft_cost_table_product_ns(table, UINT64_MAX, 0, 1), UINT64_MAX);
    ck_assert_uint_eq(weft_cost_table_product_ns(NULL, 1, 1, 1), UINT64_MAX);
    ck_assert_uint_eq(weft_cost_table_peak_flops(table), UINT64_C(989000000000000));
    ck_assert_uint_eq(weft_cost_table_peak_flops(plain), weft_cost_table_flops(plain));
    ck_assert_uint_eq(weft_cost_table_peak_flops(NULL), 0);
}

TEST(the_largest_tensors_do_not_wrap)
{
    OWNED(weft_cost_table) *table = dtensor();
    struct wf_work work = {.kind = WEFT_STEP_ALL_GATHER, .ranks = 2, .received = INT64_MAX};

    ck_assert_uint_gt(wf_cost_ns(table, &work), UINT64_C(90000000000000000));
    work.received = work.reduced = UINT64_MAX;
    ck_assert_uint_gt(wf_cost_ns(table, &work), UINT64_C(180000000000000000));
}

TEST(unknown_tables_are_answered_with_the_known_ones)
{
    weft_cost_table *table = NULL;

    ck_assert_int_eq(weft_cost_table_open("gpu", &table), WEFT_ERR_NOT_FOUND);
    ck_assert_str_eq(weft_last_error(),
                     "gpu is neither a built-in cost table (" WF_COST_NAMES ") nor a file: No such "
                     "file or directory");
    ck_assert_ptr_null(table);
}

TEST(compute_takes_the_greater_of_work_and_traffic)
{
    weft_cost_table *table, *none;

    ck_assert_int_eq(weft_cost_table_open("cpu", &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_open("dtensor", &none), WEFT_OK);
    ck_assert_uint_eq(weft_cost_table_flops(table), UINT64_C(20000000000));
    ck_assert_uint_eq(weft_cost_table_compute_ns(table, UINT64_C(20000000000), 1), 1000000000);
    ck_assert_uint_eq(weft_cost_table_compute_ns(table, 1, 2000000), 200000);
    ck_assert_uint_lt(weft_cost_table_compute_ns(table, UINT64_MAX, 0), UINT64_MAX);
    ck_assert_uint_eq(weft_cost_table_compute_ns(none, 1, 1), UINT64_MAX);
    ck_assert_uint_eq(weft_cost_table_flops(none), 0);
    weft_cost_table_release(&table);
}
