#include "support/planning.h"
#include "support/suite.h"

#include <string.h>

static void check_text(const char *mesh, const char *to_mesh, const char *shape, const char *from,
                       const char *to, const char *want)
{
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;
    char text[2048];
    size_t length;

    open_pair(&pair, mesh, to_mesh, shape, from, to);
    plan = plan_pair(&pair, NULL);
    ck_assert_int_eq(weft_plan_print(plan, text, sizeof text, &length), WEFT_OK);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_msg(strstr(text, want) != NULL, "\"%s\" is not in:\n%s", want, text);
}

TEST(steps_are_lines_that_people_read)
{
    check_text("dp=2,tp=4", NULL, "4096,4096", "S(0),R", "R,S(1)",
               "1. slice over tp: no communication   S(0),R -> S(0),S(1)   ");
    check_text("dp=2,tp=4", NULL, "4096,4096", "S(0),R", "R,S(1)",
               "2. all-gather over dp: a rank receives at most 8.0 MiB   S(0),S(1) -> R,S(1)   ");
    check_text("2x4", NULL, "4096,64", "S(0),S(0)", "R,R", "all-gather over axes 0 and 1: ");
    check_text("2", NULL, "64", "R", "R", "nothing to do: every rank has what it needs\n");
    check_text("2", "2@2-3", "64", "S(0)", "S(0)", "1. exchange between the meshes: a rank ");
    check_text("4", "2x2", "64", "S(0)", "S(0),R",
               "the meshes have the same ranks, here as 2x2:\n1. all-gather over axis 1: ");
    check_text("2", NULL, "1048576", "S(0)", "R",
               "at most 2.0 MiB received by a rank (1.00 of the least possible), 0 B of scratch, ");
}

TEST(a_short_buffer_is_filled_and_the_length_returned)
{
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;
    char text[9];
    size_t length;

    open_pair(&pair, "2", NULL, "64", "R", "R");
    plan = plan_pair(&pair, NULL);
    ck_assert_int_eq(weft_plan_print(plan, text, sizeof text, &length), WEFT_OK);
    ck_assert_str_eq(text, "nothing ");
    ck_assert_uint_gt(length, 40);
}

TEST(null_is_not_a_plan_to_print)
{
    size_t length;

    ck_assert_int_eq(weft_plan_print(NULL, NULL, 0, &length), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_cost_table_print(NULL, NULL, 0, &length), WEFT_ERR_INVALID);
}
