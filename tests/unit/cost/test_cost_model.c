#include "cost/cost.h"
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
                     "gpu is neither a built-in cost table (default, cpu, dtensor) nor a file: No "
                     "such file or directory");
    ck_assert_ptr_null(table);
}

TEST(compute_takes_the_greater_of_work_and_traffic)
{
    weft_cost_table *table, *none;

    ck_assert_int_eq(weft_cost_table_open("default", &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_open("dtensor", &none), WEFT_OK);
    ck_assert_uint_eq(weft_cost_table_flops(table), UINT64_C(400000000000000));
    ck_assert_uint_eq(weft_cost_table_compute_ns(table, UINT64_C(400000000000000), 1), 1000000000);
    ck_assert_uint_eq(weft_cost_table_compute_ns(table, 1, 2000000), 1000);
    ck_assert_uint_lt(weft_cost_table_compute_ns(table, UINT64_MAX, 0), UINT64_MAX);
    ck_assert_uint_eq(weft_cost_table_compute_ns(none, 1, 1), UINT64_MAX);
    ck_assert_uint_eq(weft_cost_table_flops(none), 0);
    weft_cost_table_release(&table);
}
