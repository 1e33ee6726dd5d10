#include "cost/cost.h"
#include "support/layout.h"
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
    const char *name;

    for (size_t i = 0; (name = weft_cost_table_built_in(i)) != NULL; i++)
        round_trip(name);
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
        {"weft-cost 2", "weft-cost 3", "expected `weft-cost 1` or `weft-cost 2`"},
        {"weft-cost 2", "weft-cost 20", "end of the line"},
        {"weft-cost 2", "weft-cost 1", "expected a kind of step"}, /* it has no source */
        {"weft-cost 2", "weft-cost 1\nbase h100", "version 1 has no base"},
        {"weft-cost 2", "weft-cost 2\nbase h1000", "none of the built-in tables default (which"},
        {"name h100", "name h100\nbase h100", "expected a kind of step"}, /* too late */
        {"peak 989000000", "peak 399999999", "`flops` is 553000000, more than the `peak`"},
        {"attention 346000000", "attention 990000000", "`attention` is 990000000, more than"},
        {"compute-beside 15", "compute-beside 1001", "`compute-beside` is 1001 percent"},
        {"moves-beside 30", "moves-beside 5000", "`moves-beside` is 5000 percent"},
        {"flops-f8 1107000000", "flops-f8 -1", "expected a number"},
        {"one-sided no", "one-sided no\ndomain within 8\ndomain between 12", "no multiple"},
        {"one-sided no", "one-sided no\nsource", "expected a kind of step"},
        {"by-size yes", "by-size 1", "expected `yes` or `no`"},
        {"shares-links yes", "shares-links", "expected a kind of step"},
        {"name h100", "name", "expected a kind of step"},
        {"name h100", "name a-name-that-is-far-too-long-to-be-kept", "too long"},
        {"one-sided no", "one-sided maybe", "expected `yes` or `no`"},
        {"copy 702", "copy", "expected a kind of step"},
        {"copy 702", "copy x", "expected a number"},
        {"copy 702", "copy 99999999999999", "too large"},
        {"copy 702", "copy 702 1", "end of the line"},
        {"copy 702", "copy 702\ncopy 1", "twice"},
        {"copy 702", NULL, "the line `copy` is missing"},
        {"all-gather within", "all-gather inside", "expected `within`, `between` or `beyond`"},
        {"all-to-all between 6600 2700 22222", NULL, "`all-to-all between` is missing"},
        {"permute between", "permutation between", "expected a kind of step"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        ck_assert_int_eq(parse_with(cases[i].line, cases[i].other), WEFT_ERR_PARSE);
        ck_assert_msg(strstr(weft_last_error(), cases[i].said) != NULL, "%s -> %s: %s",
                      cases[i].line, cases[i].other, weft_last_error());
    }
}

/* Create the table TEXT, which must be sound. */
static weft_cost_table *parsed(const char *text)
{
    weft_cost_table *table = NULL;

    ck_assert_msg(weft_cost_table_parse(text, &table) == WEFT_OK, "%s", weft_last_error());
    return table;
}

TEST(a_table_inherits_what_it_does_not_say)
{
    OWNED(weft_cost_table) *base = NULL, *table = NULL;
    const struct wf_rate *gather;

    ck_assert_int_eq(weft_cost_table_open("h100", &base), WEFT_OK);
    table = parsed("weft-cost 2 # mine\n\nbase h100\nname mine\nflops 600000000\n"
                   "domain between 3072\nall-gather between 1 2 30000\n"
                   "reduce beyond 4 5 60000\n");
    ck_assert_str_eq(table->name, "mine");
    ck_assert_str_eq(weft_cost_table_source(table), "changed from the table h100");
    ck_assert_uint_eq(table->flops, 600000000);
    ck_assert_uint_eq(table->peak, base->peak);
    ck_assert_uint_eq(table->memory, base->memory);
    ck_assert(table->by_size && table->shares_links && !table->one_sided);
    ck_assert_uint_eq(table->domains[WF_BETWEEN_HOSTS], 3072);
    gather = table->rates[WEFT_STEP_ALL_GATHER];
    ck_assert_mem_eq(&gather[WF_WITHIN_HOST], &base->rates[WEFT_STEP_ALL_GATHER][WF_WITHIN_HOST],
                     sizeof *gather);
    ck_assert_uint_eq(gather[WF_BETWEEN_HOSTS].femtoseconds, 30000);
    ck_assert_uint_eq(gather[WF_BEYOND].femtoseconds, 30000); /* it has no line of its own */
    ck_assert_uint_eq(table->rates[WEFT_STEP_REDUCE][WF_BEYOND].femtoseconds, 60000);
    ck_assert_mem_eq(&table->rates[WEFT_STEP_REDUCE][WF_BETWEEN_HOSTS],
                     &base->rates[WEFT_STEP_REDUCE][WF_BETWEEN_HOSTS], sizeof *gather);
    weft_cost_table_release(&table);
    check_refused(weft_cost_table_parse("weft-cost 2\nbase h100\nflops 1\n", &table),
                  WEFT_ERR_PARSE, "the line `name` is missing");
    check_refused(weft_cost_table_parse("weft-cost 2\nbase h100\nname x\nflops 1979000000", &table),
                  WEFT_ERR_PARSE, "more than the `peak` of 989000000");
}

TEST(a_source_is_a_line_of_text)
{
    OWNED(weft_cost_table) *table =
        parsed("weft-cost 2\nbase cpu\nname x\nsource two hosts, 10 Gb/s  # not this\n");
    char text[512];

    ck_assert_str_eq(weft_cost_table_source(table), "two hosts, 10 Gb/s");
    snprintf(text, sizeof text, "weft-cost 2\nbase cpu\nname x\nsource %0300d\n", 1);
    weft_cost_table_release(&table);
    check_refused(weft_cost_table_parse(text, &table), WEFT_ERR_PARSE, "the source is too long");
    check_refused(weft_cost_table_parse("weft-cost 2\nbase cpu\nname x\nsource a\x01", &table),
                  WEFT_ERR_PARSE, "no control characters");
    ck_assert_ptr_null(weft_cost_table_source(NULL));
}

TEST(a_table_of_version_1_has_two_classes_of_links)
{
    OWNED(weft_cost_table) *table = NULL;
    char text[4096] = "weft-cost 1\nname old\none-sided no\ncopy 1\npack 2\nreduce 3\n";

    for (uint32_t kind = 0; kind < WEFT_STEP_KINDS; kind++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s within 1 2 3\n%s between 4 5 6\n",
                 weft_step_name(kind), weft_step_name(kind));
    }
    table = parsed(text);
    ck_assert_uint_eq(table->rates[WEFT_STEP_REDUCE][WF_BEYOND].femtoseconds, 6);
    ck_assert(!table->by_size && !table->shares_links);
    ck_assert_uint_eq(table->domains[WF_WITHIN_HOST], 0);
    weft_cost_table_release(&table);
    memcpy(strstr(text, "reduce between"), "reduce beyond ", 14);
    check_refused(weft_cost_table_parse(text, &table), WEFT_ERR_PARSE,
                  "expected `within` or `between`");
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
    ck_assert_msg(parse_with("copy 702", "\n  # a comment\r\ncopy 500 # and one more") == WEFT_OK,
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
