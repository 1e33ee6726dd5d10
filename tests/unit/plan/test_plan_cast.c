/* Casts in plans: which are offered, where they happen, and what they cost. */
#include "support/exhaustive.h"
#include "support/planning.h"
#include "support/suite.h"

#include <string.h>

static void open_cast(struct pair *pair, const char *mesh, const char *to_mesh, const char *from,
                      const char *to)
{
    ck_assert_int_eq(weft_mesh_parse(mesh, &pair->mesh), WEFT_OK);
    ck_assert_int_eq(weft_mesh_parse(to_mesh, &pair->to_mesh), WEFT_OK);
    ck_assert_msg(weft_spec_parse(pair->mesh, from, &pair->from) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_msg(weft_spec_parse(pair->to_mesh, to, &pair->to) == WEFT_OK, "%s",
                  weft_last_error());
}

/* PLAN as "all-to-all:before reduce-scatter", to be compared with what is expected. */
static const char *outline(const weft_plan *plan)
{
    static char text[256];
    static const char *const places[] = {"", ":before", ":after"};
    weft_plan_step_info step = {.struct_size = sizeof step};
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s", i > 0 ? " " : "",
                               weft_step_name(step.kind), places[step.cast]);
    return text;
}

static const char *const floats[] = {"f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2"};
static const char *const exact[] = {"i8 i16", "i8 i32", "i8 i64", "i16 i32", "i16 i64", "i32 i64",
                                    "u8 u16", "u8 u32", "u8 u64", "u16 u32", "u16 u64", "u32 u64",
                                    "u8 i16", "u8 i32", "u8 i64", "u16 i32", "u16 i64", "u32 i64"};

static bool is_offered(const char *from, const char *to)
{
    char both[32];
    int found = 0;

    if (strcmp(from, to) == 0) return true;
    snprintf(both, sizeof both, "%s %s", from, to);
    for (size_t i = 0; i < WF_COUNT(exact); i++)
        if (strcmp(both, exact[i]) == 0) return true;
    for (size_t i = 0; i < WF_COUNT(floats); i++)
        found += (strcmp(from, floats[i]) == 0) + (strcmp(to, floats[i]) == 0);
    return found == 2;
}

TEST(floats_cast_to_floats_and_integers_to_those_that_hold_them)
{
    for (uint32_t from = 0; from < WEFT_DTYPE_COUNT; from++)
        for (uint32_t to = 0; to < WEFT_DTYPE_COUNT; to++) {
            char specs[2][32];
            struct pair pair;
            weft_plan *plan = NULL;
            weft_status status;

            snprintf(specs[0], sizeof specs[0], "%s[8] S(0)", wf_dtype_name(from));
            snprintf(specs[1], sizeof specs[1], "%s[8] R", wf_dtype_name(to));
            open_cast(&pair, "2", "2", specs[0], specs[1]);
            status = weft_plan_create(pair.from, pair.to, NULL, &plan);
            if (is_offered(wf_dtype_name(from), wf_dtype_name(to))) {
                ck_assert_int_eq(status, WEFT_OK);
            } else {
                ck_assert_int_eq(status, WEFT_ERR_UNSUPPORTED);
                ck_assert_ptr_nonnull(strstr(weft_last_error(), wf_dtype_name(to)));
                ck_assert_ptr_nonnull(
                    strstr(weft_last_error(), "f16, bf16, f32, f64, f8e4m3 and f8e5m2"));
                ck_assert_ptr_nonnull(strstr(weft_last_error(), "to wider signed integers"));
            }
            weft_plan_release(&plan);
            close_pair(&pair);
        }
}

/* One mesh of 4 ranks, 64 x 64. */
static const struct {
    const char *from, *to, *steps;
    uint64_t received;
} places[] = {
    {"f32[64,64] S(0)", "bf16[64,64] S(1)", "all-to-all:before", 768 * 2},
    {"bf16[64,64] S(0)", "f32[64,64] S(1)", "all-to-all:after", 768 * 2},
    {"f32[64,64] S(0)", "f8e4m3[64,64] R", "all-gather:before", 3072},
    {"f8e5m2[64,64] S(0)", "f64[64,64] R", "all-gather:after", 3072},
    {"f32[64,64] P", "bf16[64,64] S(0)", "reduce-scatter:after", 3072 * 4},
    {"bf16[64,64] P", "f32[64,64] S(0)", "reduce-scatter:before", 3072 * 4},
    {"i8[64,64] P", "i32[64,64] S(0)", "reduce-scatter:before", 3072 * 4},
    {"f16[64,64] P", "bf16[64,64] S(0)", "reduce-scatter:after", 3072 * 2},
    {"f32[64,64] R", "bf16[64,64] R", "slice:after", 0},
    {"bf16[64,64] P", "f32[64,64] P", "slice:after", 0},
    {"f32[64,64] R", "bf16[64,64] S(1)", "slice:after", 0},
};

TEST(data_travels_narrow_and_is_reduced_wide)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .minimize = WEFT_MINIMIZE_BYTES,
                                 .without = UINT32_C(1) << WEFT_STEP_EXCHANGE};

    for (size_t i = 0; i < WF_COUNT(places); i++) {
        weft_plan_info info = {.struct_size = sizeof info};
        struct pair pair;
        weft_plan *plan;

        open_cast(&pair, "4", "4", places[i].from, places[i].to);
        plan = plan_pair(&pair, &options);
        ck_assert_msg(strcmp(outline(plan), places[i].steps) == 0, "%s to %s: %s", places[i].from,
                      places[i].to, outline(plan));
        ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
        ck_assert_uint_eq(info.bytes_received_max, places[i].received);
        weft_plan_release(&plan);
        close_pair(&pair);
    }
}

/* 16 MiB of sums: what follows the reduction travels in 2 bytes instead of 4. */
TEST(a_sum_is_scattered_wide_and_gathered_narrow)
{
    weft_plan_step_info step = {.struct_size = sizeof step};
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_cast(&pair, "4", "4", "f32[2048,2048] P", "bf16[2048,2048] R");
    plan = plan_pair(&pair, NULL);
    ck_assert_str_eq(outline(plan), "reduce-scatter:after all-gather");
    ck_assert_int_eq(weft_plan_step_get(plan, 0, &step), WEFT_OK);
    ck_assert_uint_eq(step.bytes_received, 3 * 4 * (UINT64_C(1) << 20));
    ck_assert_uint_eq(weft_spec_dtype(step.to), WEFT_DTYPE_BF16);
    ck_assert_int_eq(weft_plan_step_get(plan, 1, &step), WEFT_OK);
    ck_assert_uint_eq(step.bytes_received, 3 * 2 * (UINT64_C(1) << 20));
}

TEST(contributions_are_not_narrowed_before_their_reduction)
{
    static const char *const refused[] = {"sum", "avg", "max"};
    struct pair pair;
    weft_plan *plan = NULL;

    for (size_t i = 0; i < WF_COUNT(refused); i++) {
        char from[32], to[32], named[32];

        snprintf(from, sizeof from, "f32[8] P(%s)", refused[i]);
        snprintf(to, sizeof to, "f16[8] P(%s)", refused[i]);
        snprintf(named, sizeof named, "P(%s) of f32", refused[i]);
        open_cast(&pair, "2", "2", from, to);
        ck_assert_int_eq(weft_plan_create(pair.from, pair.to, NULL, &plan), WEFT_ERR_UNSUPPORTED);
        ck_assert_msg(strstr(weft_last_error(), named) != NULL, "%s", weft_last_error());
        close_pair(&pair);
    }
    /* Along another axis there is nothing to round twice, and between meshes the value is made. */
    open_cast(&pair, "2x2", "2x2", "f32[8] P,S(0)", "f16[8] R,P");
    plan = plan_pair(&pair, NULL);
    weft_plan_release(&plan);
    close_pair(&pair);
    open_cast(&pair, "2", "2@2-3", "f32[8] P", "f16[8] P");
    plan = plan_pair(&pair, NULL);
    ck_assert_str_eq(outline(plan), "exchange:after");
    weft_plan_release(&plan);
    close_pair(&pair);
}

TEST(between_meshes_data_travels_narrow)
{
    static const struct {
        const char *from, *to, *steps;
    } cases[] = {
        {"f32[4096,4096] S(0)", "bf16[4096,4096] S(1)", "exchange:before"},
        {"bf16[4096,4096] S(0)", "f32[4096,4096] S(1)", "exchange:after"},
        {"f32[4096,4096] P", "bf16[4096,4096] S(0)", "reduce-scatter:after exchange"},
        {"bf16[4096,4096] P", "f32[4096,4096] S(0)", "reduce-scatter:before exchange"},
        {"bf16[4096,4096] S(0)", "f32[4096,4096] R", "exchange all-gather:after"},
        {"f32[4096,4096] S(0)", "bf16[4096,4096] R", "exchange:before all-gather"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        struct pair pair;
        weft_plan *plan;

        open_cast(&pair, "4", "4@4-7", cases[i].from, cases[i].to);
        plan = plan_pair(&pair, NULL);
        ck_assert_msg(strcmp(outline(plan), cases[i].steps) == 0, "%s to %s: %s", cases[i].from,
                      cases[i].to, outline(plan));
        weft_plan_release(&plan);
        close_pair(&pair);
    }
}

/* True if STEP creates a partial while the dtype is not yet that of TO. */
static bool creates_before_cast(const struct wf_step *step, const weft_spec *to)
{
    const struct wf_layout *a = &step->from->layout, *b = &step->to->layout;

    for (int32_t i = 0; i < b->mesh->axes; i++)
        if (b->placements[i].kind == WEFT_PLACE_PARTIAL &&
            !(a->mesh == b->mesh && a->placements[i].kind == WEFT_PLACE_PARTIAL))
            return b->dtype != to->layout.dtype;
    return false;
}

/* The highest and the lowest value differ between dtypes.  A cast would not convert them. */
TEST(new_minima_and_maxima_are_created_in_the_dtype_of_the_target)
{
    static const char *const cases[][4] = {
        {"2x2", "2x2", "f8e4m3[8] R,S(0)", "bf16[8] P(min),R"},
        {"2x2", "2x2", "f32[800,800] P(max),R", "f8e5m2[800,800] R,P(max)"},
        {"2", "2x2@2-5", "f8e4m3[800,800] S(0)", "bf16[800,800] P(min),R"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        for (uint32_t minimize = 0; minimize < 3; minimize++) {
            weft_plan_options options = {.struct_size = sizeof options, .minimize = minimize};
            struct pair pair;
            weft_plan *plan;

            open_cast(&pair, cases[i][0], cases[i][1], cases[i][2], cases[i][3]);
            plan = plan_pair(&pair, &options);
            for (uint32_t s = 0; s < plan->step_count; s++)
                ck_assert_msg(!creates_before_cast(&plan->steps[s], pair.to), "%s to %s: %s",
                              cases[i][2], cases[i][3], outline(plan));
            weft_plan_release(&plan);
            close_pair(&pair);
        }
}

/* A plan that reduces the source's maximum after it creates another one is not considered. */
static void refuse_early_maximum(void *self, const struct wf_edge *edge)
{
    (void)self;
    ck_assert_uint_ne(edge->kind, WEFT_STEP_PARTIAL);
}

TEST(a_maximum_is_not_created_before_the_reductions_of_a_narrowing_cast)
{
    weft_plan_options options = {.struct_size = sizeof options};
    struct wf_problem problem;
    OWNED_PAIR pair = {0};

    open_cast(&pair, "2x2", "2x2", "f32[8] P(max),R", "f8e5m2[8] R,P(max)");
    ck_assert_int_eq(wf_problem_set(&problem, pair.from, pair.to, &options), WEFT_OK);
    wf_edges(&problem, &problem.source, refuse_early_maximum, NULL);
}

/* ---- against exhaustive search ---- */

static uint64_t random_below(uint64_t *seed, uint64_t n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % n;
}

/* LINE: PAIR as options of the tool. */
static void compare_answers(const struct pair *pair, const char *line, uint32_t minimize,
                            const char *costs_name)
{
    weft_plan_options options = {.struct_size = sizeof options, .minimize = minimize};
    weft_plan_info info = {.struct_size = sizeof info};
    struct wf_problem problem;
    OWNED(weft_cost_table) *costs = NULL;
    weft_plan *plan;

    ck_assert_int_eq(weft_cost_table_open(costs_name, &costs), WEFT_OK);
    options.costs = costs;
    if (wf_problem_set(&problem, pair->from, pair->to, &options) == WEFT_OK &&
        !wf_state_same_codes(&problem, &problem.source, &problem.target)) {
        plan = plan_pair(pair, &options);
        ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
        ck_assert_msg(minimize == WEFT_MINIMIZE_BYTES
                          ? !exhaustive_beats(&problem, info.bytes_received_max)
                          : info.cost_ns == exhaustive_least(&problem),
                      "weft plan --mesh 2x3 %s --minimize %s --costs %s", line,
                      minimize == WEFT_MINIMIZE_BYTES ? "bytes" : "time", costs_name);
        weft_plan_release(&plan);
    }
}

TEST(casts_are_planned_as_well_as_by_exhaustive_search)
{
    static const char *const dtypes[][2] = {{"f32", "bf16"},   {"bf16", "f32"}, {"f64", "f8e5m2"},
                                            {"f8e4m3", "f64"}, {"f16", "bf16"}, {"i8", "i64"},
                                            {"u16", "i32"}};
    static const char *const tables[] = {"dtensor", "default", "cpu"};
    static const char *const places_of[] = {"R", "P", "S(0)", "S(1)", "SS(0,2)", "P(avg)"};
    uint64_t seed = test_seed_begin("casts_are_planned_as_well_as_by_exhaustive_search");

    for (int plans = test_cases(600); plans > 0; plans--) {
        const char *const *dtype = dtypes[random_below(&seed, WF_COUNT(dtypes))];
        int rows = 1 + (int)random_below(&seed, 600), columns = 1 + (int)random_below(&seed, 600);
        char layouts[2][32], specs[2][96], line[256];
        struct pair pair;

        for (int i = 0; i < 2; i++) {
            snprintf(layouts[i], sizeof layouts[i], "%s,%s",
                     places_of[random_below(&seed, WF_COUNT(places_of))],
                     places_of[random_below(&seed, WF_COUNT(places_of))]);
            snprintf(specs[i], sizeof specs[i], "%s[%d,%d] %s", dtype[i], rows, columns,
                     layouts[i]);
        }
        snprintf(line, sizeof line,
                 "--dtype %s --to-dtype %s --shape %dx%d --from \"%s\" --to \"%s\"", dtype[0],
                 dtype[1], rows, columns, layouts[0], layouts[1]);
        open_cast(&pair, "2x3", "2x3", specs[0], specs[1]);
        compare_answers(&pair, line, (uint32_t)random_below(&seed, 2),
                        tables[random_below(&seed, 3)]);
        close_pair(&pair);
    }
}
