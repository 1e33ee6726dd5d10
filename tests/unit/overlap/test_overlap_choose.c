/* The number of chunks follows from costs. */
#include "overlap/overlap.h"
#include "support/suite.h"

static struct wf_overlap_question question(weft_cost_table **costs)
{
    ck_assert_int_eq(weft_cost_table_open("cpu", costs), WEFT_OK);
    return (struct wf_overlap_question){.costs = *costs,
                                        .kind = WEFT_STEP_ALL_GATHER,
                                        .ranks = 4,
                                        .rows = 1024,
                                        .bytes = UINT64_C(64) << 20,
                                        .compute_ns = 3000000};
}

TEST(overlap_pays_for_a_compute_as_long_as_its_gather)
{
    OWNED(weft_cost_table) *costs = NULL;
    struct wf_overlap_question q = question(&costs);
    struct wf_overlap_answer a = wf_overlap_choose(&q);

    ck_assert_int_gt(a.chunks, 1);
    ck_assert_uint_lt(a.overlapped_ns, a.plain_ns * 2 / 3);
    ck_assert_uint_ge(a.overlapped_ns, q.compute_ns);
    q.kind = WEFT_STEP_REDUCE_SCATTER;
    a = wf_overlap_choose(&q);
    ck_assert_uint_lt(a.overlapped_ns, a.plain_ns);
}

TEST(small_tensors_do_not_overlap)
{
    OWNED(weft_cost_table) *costs = NULL;
    struct wf_overlap_question q = question(&costs);
    struct wf_overlap_answer a;

    q.bytes = 4096;
    q.compute_ns = 100;
    a = wf_overlap_choose(&q);
    ck_assert_uint_ge(a.overlapped_ns, a.plain_ns);
}

TEST(a_rank_with_few_rows_has_few_chunks)
{
    OWNED(weft_cost_table) *costs = NULL;
    struct wf_overlap_question q = question(&costs);

    q.rows = 2;
    ck_assert_int_le(wf_overlap_choose(&q).chunks, 2);
    q.rows = 1;
    ck_assert_int_eq(wf_overlap_choose(&q).chunks, 1);
    q.chunks = 5;
    ck_assert_int_eq(wf_overlap_choose(&q).chunks, 5);
}

TEST(nothing_is_known_without_the_time_of_compute)
{
    OWNED(weft_cost_table) *costs = NULL;
    struct wf_overlap_question q = question(&costs);
    struct wf_overlap_answer a;

    q.compute_ns = UINT64_MAX;
    a = wf_overlap_choose(&q);
    ck_assert_uint_eq(a.plain_ns, UINT64_MAX);
    ck_assert_uint_eq(a.overlapped_ns, UINT64_MAX);
}
