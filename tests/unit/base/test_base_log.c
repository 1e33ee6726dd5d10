#include "base/base.h"
#include "support/caught.h"
#include "support/suite.h"
#include "weft/log.h"
#include "weft/status.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

TEST(lines_above_the_level_are_dropped)
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

TEST(levels_out_of_range_change_nothing)
{
    ck_assert_int_eq(wf_log_level(), WF_LOG_NOTICE);
    wf_log_set_level(WF_LOG_DEBUG + 1);
    wf_log_set_level(-1);
    ck_assert_int_eq(wf_log_level(), WF_LOG_NOTICE);
}

TEST(the_prefix_names_the_rank)
{
    wf_log_set_prefix("rank 3");
    catch_begin();
    wf_log(WF_LOG_NOTICE, "here");
    wf_log_set_prefix(NULL);
    wf_log(WF_LOG_NOTICE, "here");
    ck_assert_str_eq(catch_end(), "weft: rank 3: notice: here\nweft: notice: here\n");
}

TEST(long_lines_and_prefixes_are_cut)
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

TEST(a_line_beyond_the_limit_of_files_is_dropped)
{
    struct rlimit before, small;
    int set;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){30, before.rlim_max};
    catch_begin(); /* standard error is a file */
    set = setrlimit(RLIMIT_FSIZE, &small);
    wf_log(WF_LOG_NOTICE, "it fits");
    wf_log(WF_LOG_NOTICE, "SIGXFSZ would end this program");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_str_eq(catch_end(), "weft: notice: it fits\n");
    ck_assert_int_eq(set, 0);
}

TEST(failures_are_logged_at_debug_level)
{
    wf_log_set_level(WF_LOG_DEBUG);
    catch_begin();
    wf_fail(WEFT_ERR_TIMEOUT, "rank 1 is late");
    ck_assert_str_eq(catch_end(), "weft: debug: ERR_TIMEOUT: rank 1 is late\n");
    wf_log_set_level(WF_LOG_NOTICE);
}

/* ---- the program's sink ---- */

static struct {
    int calls, level;
    char text[128];
} got;

static void keep(void *argument, enum weft_log_level level, const char *text)
{
    ck_assert_ptr_eq(argument, &got);
    got.calls++;
    got.level = (int)level;
    snprintf(got.text, sizeof got.text, "%s", text);
    if (got.calls == 1) wf_log(WF_LOG_ERROR, "inside");
}

TEST(a_sink_gets_the_lines)
{
    got.calls = 0;
    weft_log_to(keep, &got);
    wf_log_set_prefix("rank 3");
    catch_begin();
    wf_log(WF_LOG_WARNING, "one %d", 1);
    ck_assert_str_eq(catch_end(), "weft: rank 3: error: inside\n");
    ck_assert(got.calls == 1 && got.level == WEFT_LOG_WARNING);
    ck_assert_str_eq(got.text, "rank 3: one 1");
    wf_log(WF_LOG_INFO, "above the level");
    ck_assert_int_eq(got.calls, 1);
    wf_log_set_prefix(NULL);
    weft_log_to(NULL, NULL);
    catch_begin();
    wf_log(WF_LOG_WARNING, "two");
    ck_assert_str_eq(catch_end(), "weft: warning: two\n");
    ck_assert_int_eq(got.calls, 1);
}

static atomic_bool running, may_end, replaced;

static void linger(void *argument, enum weft_log_level level, const char *text)
{
    (void)argument, (void)level, (void)text;
    atomic_store(&running, true);
    while (!atomic_load(&may_end))
        sched_yield();
    ck_assert(!atomic_load(&replaced));
}

static void *log_one(void *argument)
{
    wf_log(WF_LOG_ERROR, "slow");
    return argument;
}

static void *replace(void *argument)
{
    weft_log_to(NULL, NULL);
    atomic_store(&replaced, true);
    return argument;
}

TEST(a_sink_that_was_replaced_does_not_run)
{
    pthread_t logger, other;

    weft_log_to(linger, NULL);
    ck_assert_int_eq(pthread_create(&logger, NULL, log_one, NULL), 0);
    while (!atomic_load(&running))
        sched_yield();
    ck_assert_int_eq(pthread_create(&other, NULL, replace, NULL), 0);
    atomic_store(&may_end, true);
    pthread_join(logger, NULL);
    pthread_join(other, NULL);
    ck_assert(atomic_load(&replaced));
}

/* The last test, because the choice stays. */
TEST(the_programs_level_prevails)
{
    weft_log_set_level((enum weft_log_level)99);
    wf_log_set_level(WF_LOG_INFO); /* as weft_init does */
    ck_assert_int_eq(weft_log_level(), WEFT_LOG_INFO);
    weft_log_set_level(WEFT_LOG_ERROR);
    wf_log_set_level(WF_LOG_DEBUG);
    ck_assert_int_eq(weft_log_level(), WEFT_LOG_ERROR);
    weft_log_set_level(WEFT_LOG_NOTICE);
    ck_assert_int_eq(wf_log_level(), WF_LOG_NOTICE);
}
