/* Lowering passes. */
#include "support/suite.h"
#include "weft/schedule.h"

#include <string.h>

/* TEXT lowered with FLAGS is WANT. */
static void check_lowered(const char *text, uint32_t flags, const char *want)
{
    OWNED(weft_schedule) *schedule = NULL, *lowered = NULL;
    char have[2048];

    ck_assert_msg(weft_schedule_parse(text, &schedule) == WEFT_OK, "%s", weft_last_error());
    ck_assert_msg(weft_schedule_lower(schedule, flags, &lowered) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_int_eq(weft_schedule_print(lowered, 0, have, sizeof have, NULL), WEFT_OK);
    ck_assert_str_eq(have, want);
}

TEST(results_are_sent_to_other_ranks_only)
{
    check_lowered("0F0,0B0\n1F0,1B0", 0, "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
    check_lowered("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0", 0,
                  "0F0,0SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,0RECV_B0,0B0\n"
                  "1RECV_F0,1F0,2F0,2SEND_F0,2RECV_B0,2B0,1B0,1SEND_B0\n");
    check_lowered("0F0,1F0,1B0,0B0", 0, "0F0,1F0,1B0,0B0\n");
}

TEST(halves_of_a_backward_are_merged)
{
    check_lowered("0F0,0F1,0I0,0W0,0I1,0W1", WEFT_LOWER_MERGE, "0F0,0F1,0B0,0B1\n");
    check_lowered("0F0,0F1,0I0,0I1,0W0,0W1", WEFT_LOWER_MERGE, "0F0,0F1,0I0,0I1,0W0,0W1\n");
}

TEST(gradients_are_reduced_after_the_last_backward)
{
    check_lowered("0F0,0F1,0B0,0I1,0W1", WEFT_LOWER_REDUCE, "0F0,0F1,0B0,0I1,0W1,0REDUCE_GRAD\n");
}

TEST(the_next_three_stages_are_gathered)
{
    check_lowered(
        "0F0,1F0,2F0,3F0,3B0,2B0,1B0,0B0", WEFT_LOWER_SHARDED,
        "0UNSHARD,1UNSHARD,2UNSHARD,0F0,0RESHARD,3UNSHARD,1F0,2F0,3F0,3B0,3RESHARD,0UNSHARD,"
        "2B0,2RESHARD,1B0,1RESHARD,0B0,0RESHARD\n");
    check_lowered("0F0,1F0,(0F1;1B0)OVERLAP_F_B,1F1,1B1,0B0,0B1", WEFT_LOWER_SHARDED,
                  "0UNSHARD,1UNSHARD,0F0,1F0,(0F1;1B0)OVERLAP_F_B,1F1,1B1,1RESHARD,0B0,0B1,"
                  "0RESHARD\n");
}

TEST(late_receives_stand_before_their_use)
{
    check_lowered("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1", WEFT_LOWER_LATE,
                  "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                  "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
}

/* The lower of two ranks posts what the other sends before it sends to it. */
TEST(of_two_ranks_the_lower_receives_first)
{
    OWNED(weft_schedule) *schedule = NULL, *lowered = NULL;

    ck_assert_int_eq(weft_schedule_create("1f1b", 4, 1, 8, &schedule), WEFT_OK);
    ck_assert_int_eq(weft_schedule_lower(schedule, WEFT_LOWER_LATE, &lowered), WEFT_OK);
    for (int32_t r = 0; r < 3; r++) {
        const weft_schedule_action *actions, *all;
        size_t count, whole;
        int32_t received = 0;
        ck_assert_int_eq(weft_schedule_actions(lowered, r, &count, &actions, sizeof *actions),
                         WEFT_OK);
        ck_assert_int_eq(weft_schedule_actions(schedule, r, &whole, &all, sizeof *all), WEFT_OK);
        for (size_t i = 0; i < count; i++) {
            if (actions[i].kind == WEFT_SCHEDULE_ACTION_RECV_B)
                ck_assert_int_eq(actions[i].microbatch, received++);
            if (actions[i].kind == WEFT_SCHEDULE_ACTION_B)
                ck_assert_int_gt(received, actions[i].microbatch);
        }
        ck_assert_int_eq(received, 8);
    }
}

TEST(only_compute_is_lowered)
{
    weft_schedule *schedule = NULL, *lowered = NULL, *again = NULL;

    ck_assert_int_eq(weft_schedule_create("1f1b", 2, 1, 4, &schedule), WEFT_OK);
    ck_assert_int_eq(weft_schedule_lower(schedule, 16, &lowered), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_schedule_lower(schedule, 0, &lowered), WEFT_OK);
    ck_assert_int_eq(weft_schedule_lower(lowered, 0, &again), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "only schedules of compute actions"));
    weft_schedule_release(&schedule);
    weft_schedule_release(&lowered);
}
