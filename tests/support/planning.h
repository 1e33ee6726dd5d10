/* planning.h - pairs of specs and problems, from text. */
#ifndef WEFT_TESTS_PLANNING_H
#define WEFT_TESTS_PLANNING_H

#include "plan/plan.h"

#include <check.h>
#include <stdio.h>

struct pair {
    weft_mesh *mesh, *to_mesh;
    weft_spec *from, *to;
};

/* TO_MESH may be NULL: the same.  SHAPE is "64,64", or "" for a scalar. */
static inline void open_pair_of(struct pair *pair, const char *dtype, const char *mesh,
                                const char *to_mesh, const char *shape, const char *from,
                                const char *to)
{
    char text[256];

    ck_assert_int_eq(weft_mesh_parse(mesh, &pair->mesh), WEFT_OK);
    ck_assert_int_eq(weft_mesh_parse(to_mesh != NULL ? to_mesh : mesh, &pair->to_mesh), WEFT_OK);
    snprintf(text, sizeof text, "%s[%s] %s", dtype, shape, from);
    ck_assert_msg(weft_spec_parse(pair->mesh, text, &pair->from) == WEFT_OK, "%s",
                  weft_last_error());
    snprintf(text, sizeof text, "%s[%s] %s", dtype, shape, to);
    ck_assert_msg(weft_spec_parse(pair->to_mesh, text, &pair->to) == WEFT_OK, "%s",
                  weft_last_error());
}

static inline void open_pair(struct pair *pair, const char *mesh, const char *to_mesh,
                             const char *shape, const char *from, const char *to)
{
    open_pair_of(pair, "f32", mesh, to_mesh, shape, from, to);
}

static inline void close_pair(struct pair *pair)
{
    weft_spec_release(&pair->from);
    weft_spec_release(&pair->to);
    weft_mesh_release(&pair->mesh);
    weft_mesh_release(&pair->to_mesh);
}

/* A pair that is released where its block ends. */
#define OWNED_PAIR __attribute__((cleanup(close_pair))) struct pair

static inline void open_problem(struct wf_problem *problem, struct pair *pair, const char *mesh,
                                const char *shape, const char *from, const char *to)
{
    weft_plan_options options = {.struct_size = sizeof options};

    open_pair(pair, mesh, NULL, shape, from, to);
    ck_assert_msg(wf_problem_set(problem, pair->from, pair->to, &options) == WEFT_OK, "%s",
                  weft_last_error());
}

static inline weft_plan *plan_pair(const struct pair *pair, const weft_plan_options *options)
{
    weft_plan *plan;

    ck_assert_msg(weft_plan_create(pair->from, pair->to, options, &plan) == WEFT_OK, "%s",
                  weft_last_error());
    return plan;
}

static inline weft_plan_info plan_info(const struct pair *pair, const weft_plan_options *options)
{
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan *plan = plan_pair(pair, options);

    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    weft_plan_release(&plan);
    return info;
}

#endif
