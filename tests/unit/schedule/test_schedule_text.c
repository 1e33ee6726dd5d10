/* Schedules as CSV text, and what makes them invalid. */
#include "support/allocfail.h"
#include "support/suite.h"
#include "weft/schedule.h"

#include <string.h>

static char *text_of(const weft_schedule *schedule)
{
    size_t length;
    char *text;

    ck_assert_int_eq(weft_schedule_print(schedule, 0, NULL, 0, &length), WEFT_OK);
    text = malloc(length + 1);
    ck_assert_int_eq(weft_schedule_print(schedule, 0, text, length + 1, NULL), WEFT_OK);
    return text;
}

static uint64_t digest_of(const weft_schedule *schedule)
{
    weft_schedule_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_schedule_get(schedule, &info), WEFT_OK);
    return info.digest;
}

TEST(what_is_printed_can_be_read)
{
    for (uint32_t k = 0; weft_schedule_known(k) != NULL; k++)
        for (uint32_t flags = 0; flags < 16; flags++) {
            OWNED(weft_schedule) *first = NULL, *lowered = NULL, *again = NULL;
            char *text;
            ck_assert_int_eq(weft_schedule_create(weft_schedule_known(k), 3, 0, 6, &first),
                             WEFT_OK);
            ck_assert_int_eq(weft_schedule_lower(first, flags, &lowered), WEFT_OK);
            text = text_of(lowered);
            ck_assert_msg(weft_schedule_parse(text, &again) == WEFT_OK, "%s: %s", text,
                          weft_last_error());
            ck_assert_uint_eq(digest_of(again), digest_of(lowered));
            free(text);
        }
}

/* PyTorch ends lines with \r\n, and writes empty fields for idle slots. */
TEST(text_of_pytorch_can_be_read)
{
    weft_schedule *schedule = NULL;
    char *text;

    ck_assert_int_eq(
        weft_schedule_parse("0F0,0F1,,,0B0,0B1\r\n,1F0,\" 1B0 \",1F1, 1B1,\r\n\r\n", &schedule),
        WEFT_OK);
    text = text_of(schedule);
    ck_assert_str_eq(text, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    free(text);
    weft_schedule_release(&schedule);
    ck_assert_int_eq(weft_schedule_parse("0F0,(0F1;0B0)OVERLAP_F_B,0I1,0W1", &schedule), WEFT_OK);
    text = text_of(schedule);
    ck_assert_str_eq(text, "0F0,(0F1;0B0)OVERLAP_F_B,0I1,0W1\n");
    free(text);
    weft_schedule_release(&schedule);
}

static char *waits_of(const weft_schedule *schedule)
{
    size_t length;
    char *text;

    ck_assert_int_eq(weft_schedule_print(schedule, WEFT_SCHEDULE_PRINT_WAITS, NULL, 0, &length),
                     WEFT_OK);
    text = malloc(length + 1);
    ck_assert_int_eq(
        weft_schedule_print(schedule, WEFT_SCHEDULE_PRINT_WAITS, text, length + 1, NULL), WEFT_OK);
    return text;
}

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;

    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        count++;
    return count;
}

/* Waits change no schedule, and each send and reduction has one. */
TEST(waits_are_printed_and_dropped)
{
    weft_schedule *first = NULL, *lowered = NULL, *again = NULL;
    char *text, *plain;

    for (uint32_t k = 0; weft_schedule_known(k) != NULL; k++)
        for (uint32_t flags = 0; flags < 16; flags++) {
            ck_assert_int_eq(weft_schedule_create(weft_schedule_known(k), 3, 0, 6, &first),
                             WEFT_OK);
            ck_assert_int_eq(weft_schedule_lower(first, flags, &lowered), WEFT_OK);
            text = waits_of(lowered);
            plain = text_of(lowered);
            ck_assert_msg(weft_schedule_parse(text, &again) == WEFT_OK, "%s: %s", text,
                          weft_last_error());
            ck_assert_uint_eq(digest_of(again), digest_of(lowered));
            ck_assert_uint_eq(count_of(text, "WAIT_SEND_"), count_of(plain, "SEND_"));
            ck_assert_uint_eq(count_of(text, "WAIT_REDUCE"), count_of(plain, "REDUCE"));
            free(text);
            free(plain);
            text = waits_of(first); /* compute actions only */
            plain = text_of(first);
            ck_assert_str_eq(text, plain);
            free(text);
            free(plain);
            weft_schedule_release(&first);
            weft_schedule_release(&lowered);
            weft_schedule_release(&again);
        }
    ck_assert_int_eq(weft_schedule_create("gpipe", 2, 0, 1, &first), WEFT_OK);
    ck_assert_int_eq(weft_schedule_lower(first, WEFT_LOWER_REDUCE, &lowered), WEFT_OK);
    text = waits_of(lowered);
    ck_assert_str_eq(text, "0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0,0REDUCE_GRAD,"
                           "0WAIT_REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,"
                           "1WAIT_REDUCE_GRAD,1WAIT_SEND_B0\n");
    free(text);
    weft_schedule_release(&first);
    weft_schedule_release(&lowered);
}

/* Many stages are complete, and one is missing: the time does not grow with the square. */
TEST(a_missing_stage_is_found_in_one_pass)
{
    enum { STAGES = 200000, BYTES = 32 };
    char *text = malloc((size_t)STAGES * BYTES), *at = text;
    weft_schedule *schedule = NULL;

    for (int i = 0; i < STAGES; i++)
        at += snprintf(at, BYTES, "%dF0,%dB0,", i + (i > STAGES - 2), i + (i > STAGES - 2));
    ck_assert_int_eq(weft_schedule_parse(text, &schedule), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "no rank has a forward of stage 199999 of"));
    free(text);
}

static const struct {
    const char *text, *error;
} wrong[] = {
    {"", "the text has no actions"},
    {"0F0;0B0", "expected \",\" or the end of the line"},
    {"0X0", "expected F, B, I"},
    {"F0", "a stage"},
    {"0F", "a microbatch"},
    {"0F99999999999", "a microbatch is too large"},
    {"(0F0,0B0)OVERLAP_F_B", "expected ;"},
    {"(0F0;0B0)", "expected )OVERLAP_F_B"},
    {"\"0F0,0B0", "expected \""},
    /* stages and ranks */
    {"0F0,0B0\n\n1F0,1B0", "rank 1 has no actions"},
    {"0F0,0B0,1F0\n1B0", "rank 1, action 1 (1B0): stage 1 is on rank 0 already"},
    {"0F0,0B0,2F0,2B0", "no rank has a forward of stage 1 of 3"},
    {"999999F0", "no rank has a forward of stage 0"},
    {"0UNSHARD", "no rank has a forward of stage 0"},
    /* actions that are missing, come twice, or too early */
    {"0F0,0F2,0B0,0B2", "0F1 is missing"},
    {"0F400000000,0B400000000", "0F0 is missing"},
    {"0F0,0F1,0B0", "0B1 is missing on rank 0"},
    {"0F0,0I0", "0W0 is missing on rank 0"},
    {"0F0,0F0,0B0", "rank 0, action 2 (0F0): the action comes twice"},
    {"0B0,0F0", "rank 0, action 1 (0B0): no 0F0 comes before it"},
    {"0F0,0W0,0I0", "rank 0, action 2 (0W0): no 0I0 comes before it"},
    {"0F0,0B0,0I0,0W0", "rank 0, action 3 (0I0): a backward of it comes before"},
    {"0F0,(0B0;0W0)OVERLAP_F_B", "OVERLAP_F_B takes one forward and one backward"},
    {"(0F0;0B0)OVERLAP_F_B\n1F0,1B0",
     "rank 0, action 1 (0F0): OVERLAP_F_B takes no backward of the same forward"},
    /* circles */
    {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1",
     "rank 0, action 2 (0B0): it waits for 1B0 of rank 1, which waits for 0F1 of rank 0; so the "
     "schedule cannot end"},
    {"1F0,0F0,1B0,0B0", "rank 0, action 1 (1F0): it waits for 0F0 of rank 0"},
    {"0F0,(3F0;0B0)OVERLAP_F_B,3B0\n1F0,2F0,2B0,1B0", /* the backward needs the forward */
     "rank 0, action 3 (0B0): it waits for 1B0 of rank 1"},
    {"0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1F1,1B0,1B1",
     "rank 0, action 3 (0B0): it waits for 1B0 of rank 1, which waits for 0F1 of rank 0; so the "
     "schedule cannot end"},
    /* messages */
    {"0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0", "rank 1, action 1 (1F0): no 1RECV_F0"},
    {"0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0", "rank 0, action 3 (0B0): no 0RECV_B0"},
    {"0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0", "0SEND_F0 is missing on rank 0"},
    {"0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0", "1SEND_B0 is missing on rank 1"},
    {"0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0", "action 1 (0SEND_F0): no 0F0"},
    {"0F0,0B0,0SEND_B0", "no other rank has stage -1"},
    {"0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
     "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1",
     "rank 1, action 1 (1RECV_F1): the next message from rank 0 is 0SEND_F0"},
    /* sharded parameters and reductions */
    {"0UNSHARD,0F0,0RESHARD,0B0", "rank 0, action 4 (0B0): no UNSHARD of stage 0"},
    {"0UNSHARD,0UNSHARD,0F0,0B0", "the stage is gathered already"},
    {"0RESHARD,0F0,0B0", "the stage is not gathered"},
    {"0F0,0REDUCE_GRAD,0B0", "gradients of microbatches are missing, 1 in all"},
    {"0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD", "reduced already"},
    /* waits */
    {"0F0,0WAIT_SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0",
     "rank 0, action 2 (0WAIT_SEND_F0): no 0SEND_F0 comes before it"},
    {"0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0,1WAIT_SEND_B0",
     "rank 1, action 6 (1WAIT_SEND_B0): the action comes twice"},
    {"0F0,0B0,0WAIT_REDUCE_GRAD", "(0WAIT_REDUCE_GRAD): no 0REDUCE_GRAD comes before it"},
    {"0F0,0B0,0WAIT_SEND_F", "a microbatch"},
    {"0F0,(0F1;0WAIT_SEND_F0)OVERLAP_F_B,0B0,0B1", "OVERLAP_F_B takes one forward"},
    {"0WAIT_SEND_F0", "no rank has a forward of stage 0"},
};

TEST(the_first_violation_is_named)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weft_schedule *schedule = NULL;
        weft_status status = weft_schedule_parse(wrong[i].text, &schedule);
        ck_assert_msg(status == WEFT_ERR_PARSE || status == WEFT_ERR_INVALID, "%s", wrong[i].text);
        ck_assert_msg(strstr(weft_last_error(), wrong[i].error) != NULL, "\"%s\": %s, not %s",
                      wrong[i].text, weft_last_error(), wrong[i].error);
        ck_assert_ptr_null(schedule);
    }
}

/* Each action of a lowered schedule is needed, except those that free memory. */
TEST(no_action_can_be_left_out)
{
    for (uint32_t k = 0; weft_schedule_known(k) != NULL; k++) {
        weft_schedule *compute = NULL, *lowered = NULL, *changed = NULL;
        char *text, *field, copy[8192];
        ck_assert_int_eq(weft_schedule_create(weft_schedule_known(k), 2, 0, 4, &compute), WEFT_OK);
        ck_assert_int_eq(weft_schedule_lower(compute, WEFT_LOWER_SHARDED, &lowered), WEFT_OK);
        text = text_of(lowered);
        ck_assert_uint_lt(strlen(text), sizeof copy);
        for (size_t at = 0; text[at] != '\0'; at += strcspn(text + at, ",\n") + 1) {
            size_t length = strcspn(text + at, ",\n");
            strcpy(copy, text);
            field = copy + at;
            if (memchr(field, '(', length) != NULL || strstr(field, "RESHARD") == field + 1)
                continue;
            memset(field, ' ', length);
            ck_assert_msg(weft_schedule_parse(copy, &changed) == WEFT_ERR_INVALID,
                          "%.*s can be left out of %s", (int)length, text + at, text);
        }
        free(text);
        weft_schedule_release(&compute);
        weft_schedule_release(&lowered);
    }
}

static weft_status make_and_lower(void *out)
{
    weft_schedule *schedule = NULL, *read = NULL, **lowered = out;
    weft_status status = weft_schedule_create("dualpipev", 2, 0, 4, &schedule);

    if (status == WEFT_OK)
        status = weft_schedule_parse("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0", &read);
    if (status == WEFT_OK) status = weft_schedule_lower(schedule, 15, lowered);
    weft_schedule_release(&schedule);
    weft_schedule_release(&read);
    return status;
}

static void drop(void *out)
{
    weft_schedule_release(out);
}

TEST(failed_allocations_leave_nothing)
{
    weft_schedule *schedule = NULL;

    ck_assert_uint_gt(ALLOCATIONS_FAIL(make_and_lower(&schedule), drop(&schedule)), 20);
}
