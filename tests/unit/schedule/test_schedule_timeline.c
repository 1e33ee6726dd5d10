/* Times and memory of schedules with costs. */
#include "support/allocfail.h"
#include "support/suite.h"
#include "weft/schedule.h"

#include <string.h>

static weft_schedule *parse(const char *text)
{
    weft_schedule *schedule = NULL;

    ck_assert_msg(weft_schedule_parse(text, &schedule) == WEFT_OK, "%s", weft_last_error());
    return schedule;
}

static weft_timeline *timeline_of(const weft_schedule *schedule,
                                  const weft_schedule_stage_cost *costs)
{
    weft_schedule_info info = {.struct_size = sizeof info};
    weft_timeline_options options = {
        .struct_size = sizeof options, .stages = costs, .stage_size = sizeof *costs};
    weft_timeline *timeline = NULL;

    ck_assert_int_eq(weft_schedule_get(schedule, &info), WEFT_OK);
    options.stage_count = costs != NULL ? (size_t)info.stages : 0;

    ck_assert_msg(weft_timeline_create(schedule, &options, &timeline) == WEFT_OK, "%s",
                  weft_last_error());
    return timeline;
}

TEST(costs_of_another_number_of_stages_are_refused)
{
    OWNED(weft_schedule) *schedule = parse("0F0,0B0\n1F0,1B0\n");
    weft_schedule_stage_cost costs[3] = {{.forward = 1}};
    weft_timeline_options options = {.struct_size = sizeof options,
                                     .stages = costs,
                                     .stage_count = 3,
                                     .stage_size = sizeof *costs};
    weft_timeline *timeline = NULL;

    ck_assert_int_eq(weft_timeline_create(schedule, &options, &timeline), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "costs of 3 stages; the schedule has 2"));
    options.stage_count = 2;
    options.stage_size = 4;
    ck_assert_int_eq(weft_timeline_create(schedule, &options, &timeline), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "the size of a weft_schedule_stage_cost is given as 4"));
    options = (weft_timeline_options){.struct_size = sizeof options, .stage_count = 2};
    ck_assert_int_eq(weft_timeline_create(schedule, &options, &timeline), WEFT_ERR_INVALID);
}

static void check_span(const weft_timeline *t, int32_t rank, size_t index, uint64_t begin,
                       uint64_t end)
{
    uint64_t from = 0, to = 0;

    ck_assert_int_eq(weft_timeline_span(t, rank, index, &from, &to), WEFT_OK);
    ck_assert_msg(from == begin && to == end, "rank %d, action %zu: %llu to %llu", rank, index,
                  (unsigned long long)from, (unsigned long long)to);
}

TEST(messages_take_their_time)
{
    weft_schedule_stage_cost costs[2] = {
        {.forward = 10, .input = 20, .weight = 5, .send_forward = 3, .activation = 100},
        {.forward = 7, .input = 8, .weight = 9, .send_backward = 4, .activation = 50}};
    static const char *const texts[] = {"0F0,0B0\n1F0,1B0",
                                        "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0"};

    for (int lowered = 0; lowered < 2; lowered++) {
        OWNED(weft_schedule) *schedule = parse(texts[lowered]);
        OWNED(weft_timeline) *t = timeline_of(schedule, costs);
        weft_timeline_info info = {.struct_size = sizeof info};
        check_span(t, 0, 0, 0, 10);
        check_span(t, 1, lowered ? 1 : 0, 13, 20);
        check_span(t, 1, lowered ? 2 : 1, 20, 37);
        check_span(t, 0, lowered ? 3 : 1, 41, 66);
        ck_assert_int_eq(weft_timeline_get(t, &info), WEFT_OK);
        ck_assert_uint_eq(info.makespan, 66);
        ck_assert_uint_eq(info.busy, 59);
        ck_assert_uint_eq(info.peak, 100);
    }
}

TEST(collectives_run_beside_compute)
{
    weft_schedule_stage_cost costs[2] = {
        {.forward = 10, .input = 5, .weight = 5, .unshard = 4, .reduce = 6, .parameters = 30},
        {.forward = 10, .input = 5, .weight = 5, .unshard = 4, .reduce = 6, .parameters = 40}};
    OWNED(weft_schedule) *schedule =
        parse("0UNSHARD,1UNSHARD,0F0,1F0,1B0,1REDUCE_GRAD,1RESHARD,0B0,0REDUCE_GRAD,0RESHARD");
    OWNED(weft_timeline) *t = timeline_of(schedule, costs);
    weft_timeline_rank_info info = {.struct_size = sizeof info};

    check_span(t, 0, 1, 4, 8);  /* the second gather waits for the first */
    check_span(t, 0, 2, 4, 14); /* and compute for its own */
    check_span(t, 0, 4, 24, 34);
    check_span(t, 0, 5, 34, 40); /* hidden behind 0B0 */
    check_span(t, 0, 8, 44, 50);
    ck_assert_int_eq(weft_timeline_rank_get(t, 0, &info), WEFT_OK);
    ck_assert_uint_eq(info.busy, 40);
    ck_assert_uint_eq(info.end, 50);
    ck_assert_uint_eq(info.exposed, 4 + 6);
    ck_assert_uint_eq(info.peak, 70);
}

TEST(memory_limits_and_huge_costs_are_refused)
{
    weft_schedule_stage_cost huge[1] = {{.forward = UINT64_C(1) << 61}};
    weft_timeline_options options = {.struct_size = sizeof options, .memory_limit = 1};
    OWNED(weft_schedule) *schedule = parse("0F0,0F1,0B0,0B1");
    weft_timeline *t = NULL;

    ck_assert_int_eq(weft_timeline_create(schedule, &options, &t), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(),
                                 "rank 0, action 2 (0F1): the rank would hold 2, "
                                 "and its memory limit is 1"));
    options.memory_limit = 2;
    ck_assert_int_eq(weft_timeline_create(schedule, &options, &t), WEFT_OK);
    weft_timeline_release(&t);
    options.stages = huge;
    options.stage_size = sizeof *huge;
    options.stage_count = 1;
    ck_assert_int_eq(weft_timeline_create(schedule, &options, &t), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "times can exceed 2^62"));
}

TEST(there_is_no_more_than_there_is)
{
    OWNED(weft_schedule) *schedule = parse("0F0,0B0");
    OWNED(weft_timeline) *t = timeline_of(schedule, NULL);
    weft_timeline_rank_info info = {.struct_size = sizeof info};
    const weft_schedule_action *actions;
    uint64_t begin, end;
    size_t count;

    ck_assert_int_eq(weft_timeline_rank_get(t, 1, &info), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_timeline_span(t, 0, 2, &begin, &end), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_timeline_span(t, -1, 0, &begin, &end), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_schedule_actions(schedule, 1, &count, &actions, sizeof *actions),
                     WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_schedule_actions(schedule, 0, &count, &actions, 8), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "the size of a weft_schedule_action is given as 8"));
    ck_assert_int_eq(weft_schedule_rank_of(schedule, 1), -1);
    ck_assert_ptr_null(weft_schedule_action_name(WEFT_SCHEDULE_ACTION_KINDS));
}

static weft_status make(void *out)
{
    weft_schedule *schedule = NULL;
    weft_status status = weft_schedule_create("zbv", 2, 0, 4, &schedule);
    size_t length;

    if (status == WEFT_OK) status = weft_timeline_create(schedule, NULL, out);
    weft_schedule_release(&schedule);
    if (status != WEFT_OK) return status;
    status = weft_timeline_json_print(*(weft_timeline **)out, NULL, 0, &length);
    if (status != WEFT_OK) weft_timeline_release(out);
    return status;
}

static void drop(void *out)
{
    weft_timeline_release(out);
}

TEST(failed_allocations_leave_nothing)
{
    weft_timeline *timeline = NULL;

    ck_assert_uint_gt(ALLOCATIONS_FAIL(make(&timeline), drop(&timeline)), 15);
}
