#include "cost/cost.h"
#include "support/layout.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

TEST(built_in_tables_are_found_by_name)
{
    char names[256] = "default (which is h100)";
    weft_cost_table *table = NULL;
    const char *name;

    for (size_t i = 0; (name = weft_cost_table_built_in(i)) != NULL; i++) {
        ck_assert_int_eq(weft_cost_table_open(name, &table), WEFT_OK);
        ck_assert_str_eq(table->name, name);
        ck_assert_msg(table->source[0] != '\0', "%s", name);
        ck_assert_uint_eq(table->peak > 0, table->shares_links);
        weft_cost_table_release(&table);
        ck_assert_ptr_null(table);
        snprintf(names + strlen(names), sizeof names - strlen(names), ", %s", name);
    }
    ck_assert_int_eq(weft_cost_table_open("default", &table), WEFT_OK);
    ck_assert_str_eq(table->name, "h100");
    ck_assert_ptr_eq(table, wf_cost_default());
    ck_assert_str_eq(weft_cost_table_built_in(0), "h100");
    ck_assert_str_eq(names, WF_COST_NAMES);
    check_refused(weft_cost_table_open("gpu", &table), WEFT_ERR_NOT_FOUND, WF_COST_NAMES);
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
    for (int link = 0; link < WF_LINKS - 1; link++) {
        copy->domains[link]++;
        ck_assert_uint_ne(weft_cost_table_digest(copy), before);
        copy->domains[link]--;
    }
    copy->peak++;
    ck_assert_uint_ne(weft_cost_table_digest(copy), before);
    copy->peak--;
    copy->launch++;
    ck_assert_uint_ne(weft_cost_table_digest(copy), before);
    copy->launch--;
    {
        uint64_t *const numbers[] = {&copy->attention, &copy->flops_f8, &copy->compute_beside,
                                     &copy->moves_beside};
        for (size_t i = 0; i < WF_COUNT(numbers); i++) {
            ++*numbers[i];
            ck_assert_uint_ne(weft_cost_table_digest(copy), before);
            --*numbers[i];
        }
    }
    copy->by_size = true;
    ck_assert_uint_ne(weft_cost_table_digest(copy), before);
    copy->by_size = false;
    copy->shares_links = true;
    ck_assert_uint_ne(weft_cost_table_digest(copy), before);
    copy->shares_links = false;
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

TEST(a_table_says_what_it_knows_of_compute)
{
    weft_cost_table_info info = {.struct_size = sizeof info};
    OWNED(weft_cost_table) *table = NULL;

    ck_assert_int_eq(weft_cost_table_parse("weft-cost 2\nbase h100\nname x\nflops 500000000\n"
                                           "attention 300000000\nflops-f8 900000000\n"
                                           "compute-beside 10\nmoves-beside 20\n",
                                           &table),
                     WEFT_OK);
    ck_assert_int_eq(weft_cost_table_get(table, &info), WEFT_OK);
    ck_assert_uint_eq(info.flops, UINT64_C(500000000000000));
    ck_assert_uint_eq(info.attention_flops, UINT64_C(300000000000000));
    ck_assert_uint_eq(info.f8_flops, UINT64_C(900000000000000));
    ck_assert_uint_eq(info.peak_flops, UINT64_C(989000000000000));
    ck_assert_uint_eq(info.launch, 7000);
    ck_assert(info.compute_beside == 10 && info.moves_beside == 20);
    weft_cost_table_release(&table);
    ck_assert_int_eq(weft_cost_table_open("cpu", &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_get(table, &info), WEFT_OK);
    ck_assert_uint_eq(info.attention_flops, info.flops);
    ck_assert(info.f8_flops == 0 && info.compute_beside == 0 && info.moves_beside == 0);
    check_refused(weft_cost_table_get(NULL, &info), WEFT_ERR_INVALID, "table");
    check_refused(weft_cost_table_get(table, NULL), WEFT_ERR_INVALID, "out");
}

TEST(null_is_refused_by_every_accessor)
{
    OWNED(weft_cost_table) *table = NULL;

    ck_assert_ptr_null(weft_cost_table_retain(NULL));
    ck_assert_uint_eq(weft_cost_table_digest(NULL), 0);
    ck_assert_int_eq(weft_cost_table_open("cpu", &table), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_print(table, NULL, 8, NULL), WEFT_ERR_INVALID);
}
