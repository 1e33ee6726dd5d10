#include "cost/cost.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static void round_trip(const char *name)
{
    weft_cost_table *table, *again;
    char text[4096];
    size_t length;

    ck_assert_int_eq(weft_cost_table_open(name, &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_print(table, text, sizeof text, &length), WEFT_OK);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_msg(weft_cost_table_parse(text, &again) == WEFT_OK, "%s", weft_last_error());
    ck_assert_uint_eq(weft_cost_table_digest(table), weft_cost_table_digest(again));
    weft_cost_table_release(&table);
    weft_cost_table_release(&again);
    ck_assert_ptr_null(again);
}

TEST(built_in_tables_print_and_read_back)
{
    round_trip("default");
    round_trip("cpu");
    round_trip("dtensor");
}

/* The built-in table as text, with the first LINE replaced by OTHER (NULL: left out). */
static weft_status parse_with(const char *line, const char *other)
{
    weft_cost_table *table = NULL;
    char text[4096], changed[4200];
    char *at;
    weft_status status;

    ck_assert_int_eq(weft_cost_table_open("default", &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_print(table, text, sizeof text, NULL), WEFT_OK);
    weft_cost_table_release(&table);
    at = strstr(text, line);
    ck_assert_ptr_nonnull(at);
    *at = '\0';
    at += strlen(line);
    snprintf(changed, sizeof changed, "%s%s%s", text, other != NULL ? other : "# nothing", at);
    status = weft_cost_table_parse(changed, &table);
    weft_cost_table_release(&table);
    return status;
}

TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *line, *other, *said;
    } cases[] = {
        {"weft-cost 1", "weft-cost 2", "expected `weft-cost 1`"},
        {"name default", "name", "expected a kind of step"},
        {"name default", "name a-name-that-is-far-too-long-to-be-kept", "too long"},
        {"one-sided no", "one-sided maybe", "expected `yes` or `no`"},
        {"copy 500", "copy", "expected a kind of step"},
        {"copy 500", "copy x", "expected a number"},
        {"copy 500", "copy 99999999999999", "too large"},
        {"copy 500", "copy 500 1", "end of the line"},
        {"copy 500", "copy 500\ncopy 1", "twice"},
        {"copy 500", NULL, "the line `copy` is missing"},
        {"all-gather within", "all-gather inside", "expected `within` or `between`"},
        {"all-to-all between 6600 2700 48269", NULL, "`all-to-all between` is missing"},
        {"permute between", "permutation between", "expected a kind of step"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        ck_assert_int_eq(parse_with(cases[i].line, cases[i].other), WEFT_ERR_PARSE);
        ck_assert_msg(strstr(weft_last_error(), cases[i].said) != NULL, "%s -> %s: %s",
                      cases[i].line, cases[i].other, weft_last_error());
    }
}

TEST(older_tables_have_no_lines_for_owners)
{
    OWNED(weft_cost_table) *table = NULL, *older = NULL;
    char text[4096], *end;

    ck_assert_int_eq(weft_cost_table_open("cpu", &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_print(table, text, sizeof text, NULL), WEFT_OK);
    end = strstr(text, "broadcast within");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    ck_assert_msg(weft_cost_table_parse(text, &older) == WEFT_OK, "%s", weft_last_error());
    ck_assert_mem_eq(older->rates[WEFT_STEP_BROADCAST], table->rates[WEFT_STEP_ALL_GATHER],
                     sizeof table->rates[0]);
    ck_assert_mem_eq(older->rates[WEFT_STEP_REDUCE], table->rates[WEFT_STEP_REDUCE_SCATTER],
                     sizeof table->rates[0]);
    ck_assert_uint_eq(older->reduce, table->reduce);
}

TEST(comments_blank_lines_and_carriage_returns_are_passed_over)
{
    ck_assert_msg(parse_with("copy 500", "\n  # a comment\r\ncopy 500 # and one more") == WEFT_OK,
                  "%s", weft_last_error());
}

TEST(allocation_failure_is_an_error_without_a_leak)
{
    weft_cost_table *table, *again = NULL;
    int64_t live = wf_mem_live();
    char text[4096];

    ck_assert_int_eq(weft_cost_table_open("cpu", &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_print(table, text, sizeof text, NULL), WEFT_OK);
    wf_mem_fail_at(1);
    ck_assert_int_eq(weft_cost_table_parse(text, &again), WEFT_ERR_NO_MEMORY);
    wf_mem_fail_at(1);
    ck_assert_int_eq(weft_cost_table_print(table, text, sizeof text, NULL), WEFT_ERR_NO_MEMORY);
    wf_mem_fail_at(0);
    ck_assert_ptr_null(again);
    ck_assert_int_eq(wf_mem_live(), live);
}
