#include "plan/plan.h"
#include "support/suite.h"

#include <stdio.h>

struct world {
    weft_mesh *mesh;
    weft_spec *sharded, *copied;
    struct wf_plan_cache *cache;
};

static void open_world(struct world *w, uint32_t plans)
{
    ck_assert_int_eq(weft_mesh_parse("2x4", &w->mesh), WEFT_OK);
    ck_assert_int_eq(weft_spec_parse(w->mesh, "f32[64,64] S(0),S(1)", &w->sharded), WEFT_OK);
    ck_assert_int_eq(weft_spec_parse(w->mesh, "f32[64,64] R,R", &w->copied), WEFT_OK);
    ck_assert_int_eq(wf_plan_cache_create(plans, &w->cache), WEFT_OK);
}

static void close_world(struct world *w)
{
    wf_plan_cache_release(&w->cache);
    ck_assert_ptr_null(w->cache);
    weft_spec_release(&w->sharded);
    weft_spec_release(&w->copied);
    weft_mesh_release(&w->mesh);
}

/* OPTIONS may be NULL. */
static weft_status find(struct world *w, const weft_plan_options *options, weft_plan **out)
{
    weft_plan_options given = {.struct_size = sizeof given};

    if (options != NULL) given = *options;
    if (given.costs == NULL) given.costs = wf_cost_default();
    return wf_plan_cache_find(w->cache, w->sharded, w->copied, &given, out);
}

static weft_plan *get(struct world *w, const weft_plan_options *options)
{
    weft_plan *plan;

    ck_assert_int_eq(find(w, options, &plan), WEFT_OK);
    return plan;
}

TEST(the_same_question_gives_the_same_plan_without_an_allocation)
{
    struct world w;
    weft_plan *first, *second;

    open_world(&w, 64);
    first = get(&w, NULL);
    wf_mem_fail_at(0);
    second = get(&w, NULL);
    ck_assert_uint_eq(wf_mem_made(), 0);
    ck_assert_ptr_eq(first, second);
    weft_plan_release(&first);
    weft_plan_release(&second);
    close_world(&w);
}

TEST(every_option_is_part_of_the_question)
{
    struct world w;
    weft_cost_table *costs;
    weft_plan *plain, *other;

    open_world(&w, 64);
    ck_assert_int_eq(weft_cost_table_open("cpu", &costs), WEFT_OK);
    {
        const weft_plan_options options[] = {
            {.struct_size = sizeof options[0], .minimize = WEFT_MINIMIZE_BYTES},
            {.struct_size = sizeof options[0], .planner = WEFT_PLANNER_EXCHANGE},
            {.struct_size = sizeof options[0], .memory_limit = 1 << 20},
            {.struct_size = sizeof options[0], .costs = costs},
            {.struct_size = sizeof options[0], .without = UINT32_C(1) << WEFT_STEP_SLICE}};
        plain = get(&w, NULL);
        for (size_t i = 0; i < WF_COUNT(options); i++) {
            other = get(&w, &options[i]);
            ck_assert_ptr_ne(plain, other);
            weft_plan_release(&other);
        }
        weft_plan_release(&plain);
    }
    weft_cost_table_release(&costs);
    close_world(&w);
}

TEST(what_was_unused_longest_makes_room)
{
    struct world w;
    weft_plan *kept, *again, *plan;

    open_world(&w, 2);
    kept = get(&w, NULL);
    for (uint64_t limit = 1 << 20; limit < (1 << 20) + 5; limit++) {
        weft_plan_options options = {.struct_size = sizeof options, .memory_limit = limit};
        plan = get(&w, &options);
        weft_plan_release(&plan);
        again = get(&w, NULL); /* used each time, so it is kept */
        ck_assert_ptr_eq(again, kept);
        weft_plan_release(&again);
    }
    weft_plan_release(&kept);
    close_world(&w);
}

TEST(a_plan_outlives_its_cache)
{
    struct world w;
    OWNED(weft_plan) *plan = NULL;
    weft_plan_info info = {.struct_size = sizeof info};

    open_world(&w, 64);
    plan = get(&w, NULL);
    close_world(&w);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_gt(info.steps, 0);
}

TEST(nothing_is_kept_of_a_failure)
{
    struct world w;
    weft_plan *plan = NULL;
    int64_t live;

    open_world(&w, 64);
    live = wf_mem_live();
    for (uint64_t n = 1;; n++) {
        weft_status status;
        wf_mem_fail_at(n);
        status = find(&w, NULL, &plan);
        wf_mem_fail_at(0);
        if (status == WEFT_OK) break;
        ck_assert_int_eq(status, WEFT_ERR_NO_MEMORY);
        ck_assert_ptr_null(plan);
        ck_assert_int_eq(wf_mem_live(), live);
    }
    weft_plan_release(&plan);
    close_world(&w);
}
