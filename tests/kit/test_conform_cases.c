#include "team/run.h"
#include "fake.h"
#include "support/suite.h"

TEST(a_case_that_nothing_fails_has_passed)
{
    struct fake *fake = fake_make(0);

    ck_assert(kit_begin(&fake->kit, "one/%d", 7));
    ck_assert_str_eq(fake->progress->places[0].case_name, "load/one/7");
    ck_assert(kit_end(&fake->kit));
    ck_assert_uint_eq(fake->progress->levels[0].passed, 1);
    ck_assert_ptr_null(fake_failure(fake));
    fake_free_all(fake);
}

TEST(the_first_reason_counts)
{
    struct fake *fake = fake_make(0);

    ck_assert(kit_begin(&fake->kit, "bad"));
    kit_fail(&fake->kit, "reason %d", 1);
    kit_fail(&fake->kit, "reason %d", 2);
    ck_assert(!kit_end(&fake->kit));
    ck_assert_uint_eq(fake->progress->levels[0].failed, 1);
    ck_assert_str_eq(fake_failure(fake), "reason 1");
    ck_assert_str_eq(fake->progress->failures[0].name, "load/bad");
    fake_free_all(fake);
}

TEST(a_failure_between_cases_belongs_to_none)
{
    struct fake *fake = fake_make(0);

    kit_fail(&fake->kit, "nobody asked");
    ck_assert(kit_begin(&fake->kit, "good"));
    ck_assert(kit_end(&fake->kit));
    kit_fail(&fake->kit, "nobody asked");
    ck_assert(kit_begin(&fake->kit, "good"));
    ck_assert(kit_end(&fake->kit));
    ck_assert_ptr_null(fake_failure(fake));
    fake_free_all(fake);
}

TEST(only_what_was_asked_for_is_opened)
{
    struct fake *fake = fake_make(0);

    fake->options.only = "load/two";
    ck_assert(!kit_begin(&fake->kit, "one"));
    ck_assert(kit_begin(&fake->kit, "two/more"));
    kit_end(&fake->kit);
    fake_free_all(fake);
}

TEST(a_new_team_goes_on_behind_the_case_that_was_lost)
{
    struct fake *fake = fake_make(0);

    fake->progress->resume_after = 2;
    ck_assert(!kit_begin(&fake->kit, "one"));
    ck_assert(!kit_begin(&fake->kit, "two"));
    ck_assert(kit_begin(&fake->kit, "three"));
    kit_end(&fake->kit);
    fake_free_all(fake);
}

TEST(cases_beside_a_lost_one_are_passed_over_and_counted)
{
    struct fake *fake = fake_make(0);

    fake->progress->avoid_count = 1;
    strcpy(fake->progress->avoid[0], "load/bad");
    ck_assert(!kit_begin(&fake->kit, "bad/again"));
    ck_assert(kit_begin(&fake->kit, "good"));
    kit_end(&fake->kit);
    ck_assert_uint_eq(fake->progress->levels[0].lost, 1);
    fake_free_all(fake);
}

TEST(a_status_that_was_not_expected_is_named_with_its_text)
{
    struct fake *fake = fake_make(0);

    ck_assert(kit_begin(&fake->kit, "bad"));
    ck_assert(kit_ok(&fake->kit, "fine", WEFT_OK));
    (void)wf_fail(WEFT_ERR_TIMEOUT, "too late");
    ck_assert(!kit_ok(&fake->kit, "open", WEFT_ERR_TIMEOUT));
    kit_end(&fake->kit);
    ck_assert_str_eq(fake_failure(fake), "open: expected WEFT_OK, got WEFT_ERR_TIMEOUT (too late)");
    fake_free_all(fake);
}

TEST(more_failures_than_there_is_room_for_are_counted)
{
    struct fake *fake = fake_make(0);

    for (int i = 0; i < KIT_MAX_FAILURES + 10; i++) {
        ck_assert(kit_begin(&fake->kit, "bad/%d", i));
        kit_fail(&fake->kit, "again");
        kit_end(&fake->kit);
    }
    ck_assert_uint_eq(fake->progress->failure_count, KIT_MAX_FAILURES + 10);
    ck_assert_uint_eq(fake->progress->levels[0].failed, KIT_MAX_FAILURES + 10);
    fake_free_all(fake);
}

TEST(level_names_are_found_whole)
{
    ck_assert_int_eq(kit_level_find("load/x", 4), 0);
    ck_assert_int_ge(kit_level_find("stress", 6), 0);
    ck_assert_int_eq(kit_level_find("loa", 3), -1);
    ck_assert_int_eq(kit_level_find("", 0), -1);
}
