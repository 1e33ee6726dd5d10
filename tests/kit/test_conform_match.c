#include "frame/kit.h"
#include "support/suite.h"

static const char name[] = "collectives/all_reduce/f16/sum/in_place/count=7/ranks=3,1";

TEST(a_whole_name_matches_itself)
{
    ck_assert(kit_case_matches(name, name));
}

TEST(a_beginning_of_whole_parts_matches)
{
    ck_assert(kit_case_matches("collectives", name));
    ck_assert(kit_case_matches("collectives/all_reduce/f16", name));
    ck_assert(kit_case_matches("collectives/all_reduce/", name));
    ck_assert(!kit_case_matches("collectives/all_red", name));
    ck_assert(!kit_case_matches("collect", name));
}

TEST(a_star_stands_for_one_part)
{
    ck_assert(kit_case_matches("*/*/f16", name));
    ck_assert(kit_case_matches("collectives/*/f16/*/in_place", name));
    ck_assert(!kit_case_matches("*/f16", name));
    ck_assert(!kit_case_matches("collectives/all_*/f16", name));
}

TEST(more_parts_than_the_name_has_do_not_match)
{
    ck_assert(!kit_case_matches("load/probe/more", "load/probe"));
    ck_assert(!kit_case_matches("load/probe/*", "load/probe"));
}

TEST(an_empty_pattern_matches_nothing)
{
    ck_assert(!kit_case_matches("", name));
    ck_assert(!kit_case_matches("/", name));
}
