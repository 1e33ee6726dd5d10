#include "cost/cost.h"
#include "support/layout.h"
#include "support/suite.h"

TEST(built_in_tables_are_found_by_name)
{
    static const char *const names[] = {"default", "cpu", "dtensor"};
    weft_cost_table *table = NULL;

    for (size_t i = 0; i < WF_COUNT(names); i++) {
        ck_assert_int_eq(weft_cost_table_open(names[i], &table), WEFT_OK);
        ck_assert_str_eq(table->name, names[i]);
        weft_cost_table_release(&table);
        ck_assert_ptr_null(table);
    }
    check_refused(weft_cost_table_open("gpu", &table), WEFT_ERR_NOT_FOUND, "default, cpu, dtensor");
    ck_assert_ptr_null(wf_cost_built_in("gpu"));
}

TEST(a_copy_is_equal_but_for_its_name)
{
    weft_cost_table *table, *copy, *same;

    ck_assert_int_eq(weft_cost_table_open("cpu", &table), WEFT_OK);
    ck_assert_int_eq(wf_cost_copy(table, "cpu", &same), WEFT_OK);
    ck_assert_int_eq(wf_cost_copy(table, "a name that is longer than a table can have", &copy),
                     WEFT_OK);
    ck_assert_uint_eq(weft_cost_table_digest(same), weft_cost_table_digest(table));
    ck_assert_uint_ne(weft_cost_table_digest(copy), weft_cost_table_digest(table));
    ck_assert_uint_eq(strlen(copy->name), sizeof copy->name - 1);
    copy->copy++;
    ck_assert_ptr_eq(weft_cost_table_retain(copy), copy);
    weft_cost_table_release(&same);
    same = copy;
    weft_cost_table_release(&same);
    weft_cost_table_release(&copy);
    weft_cost_table_release(NULL);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(every_number_counts_in_the_digest)
{
    weft_cost_table *table, *copy;
    uint64_t before;

    ck_assert_int_eq(weft_cost_table_open("cpu", &table), WEFT_OK);
    ck_assert_int_eq(wf_cost_copy(table, "cpu", &copy), WEFT_OK);
    before = weft_cost_table_digest(copy);
    for (int kind = 0; kind < WEFT_STEP_KINDS; kind++)
        for (int link = 0; link < WF_LINKS; link++) {
            copy->rates[kind][link].femtoseconds++;
            ck_assert_uint_ne(weft_cost_table_digest(copy), before);
            copy->rates[kind][link].femtoseconds--;
        }
    ck_assert_uint_eq(weft_cost_table_digest(copy), before);
    copy->one_sided = false;
    ck_assert_uint_ne(weft_cost_table_digest(copy), before);
    weft_cost_table_release(&copy);
}

TEST(a_table_has_the_name_of_its_text)
{
    weft_cost_table *table;

    ck_assert_int_eq(weft_cost_table_open("dtensor", &table), WEFT_OK);
    ck_assert_str_eq(weft_cost_table_name(table), "dtensor");
    weft_cost_table_release(&table);
    ck_assert_ptr_null(weft_cost_table_name(NULL));
}

TEST(null_is_refused_by_every_accessor)
{
    OWNED(weft_cost_table) *table = NULL;

    ck_assert_ptr_null(weft_cost_table_retain(NULL));
    ck_assert_uint_eq(weft_cost_table_digest(NULL), 0);
    ck_assert_int_eq(weft_cost_table_open("cpu", &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_print(table, NULL, 8, NULL), WEFT_ERR_INVALID);
}
