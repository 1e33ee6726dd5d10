#include "base/base.h"
#include "support/caught.h"
#include "support/suite.h"
#include "weft/status.h"

START_TEST(lines_above_the_level_are_dropped)
{
    wf_log_set_level(WF_LOG_WARNING);
    catch_begin();
    wf_log(WF_LOG_ERROR, "one %d", 1);
    wf_log(WF_LOG_WARNING, "two");
    wf_log(WF_LOG_NOTICE, "three");
    wf_log(-1, "no such level");
    wf_log(99, "nor this one");
    ck_assert_str_eq(catch_end(), "weft: error: one 1\nweft: warning: two\n");
    wf_log_set_level(WF_LOG_NOTICE);
}
END_TEST

START_TEST(levels_out_of_range_change_nothing)
{
    ck_assert_int_eq(wf_log_level(), WF_LOG_NOTICE);
    wf_log_set_level(WF_LOG_DEBUG + 1);
    wf_log_set_level(-1);
    ck_assert_int_eq(wf_log_level(), WF_LOG_NOTICE);
}
END_TEST

START_TEST(the_prefix_names_the_rank)
{
    wf_log_set_prefix("rank 3");
    catch_begin();
    wf_log(WF_LOG_NOTICE, "here");
    wf_log_set_prefix(NULL);
    wf_log(WF_LOG_NOTICE, "here");
    ck_assert_str_eq(catch_end(), "weft: rank 3: notice: here\nweft: notice: here\n");
}
END_TEST

START_TEST(long_lines_and_prefixes_are_cut)
{
    char text[5000];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    wf_log_set_prefix(text);
    catch_begin();
    wf_log(WF_LOG_NOTICE, "%s", text);
    ck_assert_uint_lt(strlen(catch_end()), 2400);
    ck_assert_int_eq(caught[strlen(caught) - 1], '\n');
    wf_log_set_prefix(NULL);
}
END_TEST

START_TEST(failures_are_logged_at_debug_level)
{
    wf_log_set_level(WF_LOG_DEBUG);
    catch_begin();
    wf_fail(WEFT_ERR_TIMEOUT, "rank 1 is late");
    ck_assert_str_eq(catch_end(), "weft: debug: ERR_TIMEOUT: rank 1 is late\n");
    wf_log_set_level(WF_LOG_NOTICE);
}
END_TEST

SUITE(base_log, lines_above_the_level_are_dropped, levels_out_of_range_change_nothing,
      the_prefix_names_the_rank, long_lines_and_prefixes_are_cut,
      failures_are_logged_at_debug_level)
