#include "support/planning.h"
#include "support/suite.h"

#include <string.h>

TEST(a_memory_limit_changes_the_plan_or_says_the_least_possible)
{
    weft_plan_options options = {.struct_size = sizeof options};
    weft_plan *plan = NULL;
    OWNED_PAIR pair = {0};
    uint64_t fast, lean;

    open_pair(&pair, "2x4", NULL, "1024,1024", "S(0),S(1)", "S(1),S(0)");
    fast = plan_info(&pair, &options).peak_bytes;
    options.minimize = WEFT_MINIMIZE_MEMORY;
    lean = plan_info(&pair, &options).peak_bytes;
    ck_assert_uint_le(lean, fast);
    options = (weft_plan_options){.struct_size = sizeof options, .memory_limit = lean};
    ck_assert_uint_le(plan_info(&pair, &options).peak_bytes, lean);
    options.memory_limit = lean - 1;
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_ERR_INVALID);
    ck_assert_ptr_null(plan);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "the minimum is"));
}

TEST(planning_does_not_depend_on_the_number_of_ranks)
{
    struct pair small, large;
    weft_plan *a, *b;
    uint64_t made;

    open_pair(&small, "2x2x2", NULL, "8192,8192,64", "S(0),S(1),S(0)", "S(1),S(0),R");
    open_pair(&large, "64x128x128", NULL, "8192,8192,64", "S(0),S(1),S(0)", "S(1),S(0),R");
    wf_mem_fail_at(0);
    ck_assert_int_eq(weft_plan_create(small.from, small.to, NULL, &a), WEFT_OK);
    made = wf_mem_made();
    wf_mem_fail_at(0);
    ck_assert_int_eq(weft_plan_create(large.from, large.to, NULL, &b), WEFT_OK);
    ck_assert_uint_le(wf_mem_made(), made + 16);
    weft_plan_release(&a);
    weft_plan_release(&b);
    close_pair(&small);
    close_pair(&large);
}

TEST(excluded_kinds_are_not_used)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .without = UINT32_C(1) << WEFT_STEP_ALL_GATHER |
                                            UINT32_C(1) << WEFT_STEP_EXCHANGE};
    weft_plan_step_info step = {.struct_size = sizeof step};
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, "4", NULL, "64,64", "S(0)", "R");
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_ERR_UNSUPPORTED);
    ck_assert_ptr_null(plan);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "without the excluded step kinds: all-gather, exchange"));
    options.without = UINT32_C(1) << WEFT_STEP_ALL_GATHER;
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_OK);
    for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++)
        ck_assert_uint_ne(step.kind, WEFT_STEP_ALL_GATHER);
}

/* ---- bytes ---- */

static weft_plan_info plan_by_bytes(const char *mesh, const char *shape, const char *from,
                                    const char *to, char *text, size_t capacity)
{
    weft_plan_options options = {.struct_size = sizeof options, .minimize = WEFT_MINIMIZE_BYTES};
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED_PAIR pair = {0};
    weft_plan *plan;

    open_pair(&pair, mesh, NULL, shape, from, to);
    plan = plan_pair(&pair, &options);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_int_eq(weft_plan_print(plan, text, capacity, NULL), WEFT_OK);
    weft_plan_release(&plan);
    return info;
}

/* A plain split before the sizes or strides of the target, and an exchange before replicas and sums
 * of it, receive less. */
TEST(bytes_are_least_through_other_layouts)
{
    static const struct {
        const char *mesh, *shape, *from, *to;
        uint64_t most;
    } cases[] = {
        {"3", "31", "P", "G(0;21,2,8)", 128},
        {"7", "3,36", "P", "G(1;0,5,12,5,11,3,0)", 516},
        {"5", "4", "P", "SS(0,3)", 20},
        {"7", "24", "P", "G(0;1,6,3,1,1,2,10)", 108},
        {"3", "1,31", "P", "G(1;0,9,22)", 124},
        {"5", "31,1", "P", "G(0;2,9,10,9,1)", 132},
        {"4x3", "31,1", "R,B(0;12,14,5)", "P,R", 32},
        {"2x2", "13", "S(0)[1],SS(0,3)[0]", "S(0),P", 8},
        {"4x3", "1,24", "SS(1,3),S(0)", "R,P", 32},
        {"6x2", "24", "S(0),O(0)", "R,P", 48},
        /* too much work without the bounds for partials of the target */
        {"4x8x2", "5,260,33", "R,S(1),P(max)", "SS(0,6),R,P(max)", 152460},
        {"4x4x4", "40,1,28", "O(0),SS(2,2),SS(0,4)", "O(3),P(max),O(0)", 4480},
        {"4x4x4", "22,149,38", "SS(1,3),SS(2,3),P(sum)", "R,P(max),R", 517144},
    };
    char text[2048];

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        weft_plan_info info = plan_by_bytes(cases[i].mesh, cases[i].shape, cases[i].from,
                                            cases[i].to, text, sizeof text);
        ck_assert_msg(info.bytes_received_max <= cases[i].most, "%s -> %s: %llu bytes",
                      cases[i].from, cases[i].to, (unsigned long long)info.bytes_received_max);
        ck_assert(info.least && strstr(text, "not shown to be the least") == NULL);
    }
}

TEST(scratch_is_least_through_other_layouts)
{
    weft_plan_options options = {.struct_size = sizeof options, .minimize = WEFT_MINIMIZE_MEMORY};
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_pair_of(&pair, "i64", "4", NULL, "4,23", "P", "SS(0,2)");
    plan = plan_pair(&pair, &options);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_eq(info.peak_bytes, 256); /* a plain split of one row, then an exchange */
}

/* Six axes have too many paths. */
TEST(a_search_that_ends_early_is_marked)
{
    char text[4096];
    weft_plan_info info = plan_by_bytes("2x2x2x2x2x2", "37,41,43", "P,P,P,P,P,P",
                                        "S(0),S(1),S(2),S(0),S(1),S(2)", text, sizeof text);

    ck_assert(!info.least && strstr(text, " predicted, not shown to be the least\n") != NULL);
    ck_assert_uint_le(info.bytes_received_max, 268954); /* of the fastest plan */
    info = plan_by_bytes("5x13", "37,41", "S(0),S(1)", "R,R", text, sizeof text);
    ck_assert(!info.least); /* 65 ranks */
}

/* Counting the scratch of all steps would take too long.  What is estimated instead must not limit
 * the plans that are searched afterwards. */
TEST(a_search_by_memory_that_ends_early_finds_a_plan)
{
    weft_plan_options options = {.struct_size = sizeof options, .minimize = WEFT_MINIMIZE_MEMORY};
    weft_plan *plan = NULL, *next = NULL;
    OWNED_PAIR pair = {0};

    open_pair(&pair, "2x2x2x2x2x2", NULL, "37,41,43", "S(2),S(0),S(1),S(0),S(1),S(2)",
              "S(0),S(1),S(2),S(1),S(2),S(0)");
    plan = plan_pair(&pair, &options);
    ck_assert_msg(weft_plan_create_runner_up(plan, &options, &next) == WEFT_OK, "%s",
                  weft_last_error());
    weft_plan_release(&next);
    weft_plan_release(&plan);
    options.memory_limit = 1;
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_OK);
    weft_plan_release(&plan);
    options.without = 1U << WEFT_STEP_EXCHANGE;
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_ERR_INVALID);
}

TEST(long_plans_are_shown_to_be_the_least)
{
    static const struct {
        const char *mesh, *shape, *from, *to;
    } cases[] = {
        {"2x2x2x2x2x2", "37,41,43", "P,P,P,P,P,P", "S(0),S(1),S(2),S(0),S(1),S(2)"},
        {"2x2x2x2x2x2", "37,41,43", "P,P,P,S(0),S(1),S(2)", "S(0),S(1),S(2),P,P,P"},
        {"2x2x2x2x2x2", "370,41,43", "SS(0,64),SS(1,3),S(2),R,P,P",
         "S(1),SS(0,60),R,S(0),SS(2,7),S(2)"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        for (uint32_t minimize = 0; minimize <= WEFT_MINIMIZE_MEMORY; minimize++) {
            weft_plan_options options = {.struct_size = sizeof options, .minimize = minimize};
            weft_plan_info info = {.struct_size = sizeof info};
            weft_plan *plan;
            struct pair pair;
            open_pair(&pair, cases[i].mesh, NULL, cases[i].shape, cases[i].from, cases[i].to);
            plan = plan_pair(&pair, &options);
            ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
            ck_assert_msg(info.steps <= 6 || info.least, "%s -> %s: %zu steps", cases[i].from,
                          cases[i].to, info.steps);
            weft_plan_release(&plan);
            close_pair(&pair);
        }
}
