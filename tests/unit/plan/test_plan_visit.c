#include "plan/figures/figures.h"
#include "support/layout.h"
#include "support/suite.h"

/* A step between specs of two meshes; the caller releases the specs. */
static struct wf_step step_of(const char *from_mesh, const char *from, const char *to_mesh,
                              const char *to)
{
    return (struct wf_step){
        .kind = WEFT_STEP_EXCHANGE, .from = spec_of(from_mesh, from), .to = spec_of(to_mesh, to)};
}

static void release(struct wf_step *step)
{
    weft_spec_release(&step->from);
    weft_spec_release(&step->to);
}

/* The ranks of VISIT, and of each if it is in the source's mesh, the target's or both: "0st,1s". */
static void check_visit(struct wf_visit *visit, const char *expected)
{
    char text[256] = "";
    size_t length = 0;

    while (wf_visit_next(visit)) {
        length += (size_t)snprintf(
            &text[length], sizeof text - length, "%s%d%s%s", length > 0 ? "," : "", visit->rank,
            visit->source != NULL ? "s" : "", visit->target != NULL ? "t" : "");
        if (visit->source != NULL)
            ck_assert_int_eq(wf_mesh_rank(visit->from, visit->source), visit->rank);
        if (visit->target != NULL)
            ck_assert_int_eq(wf_mesh_rank(visit->to, visit->target), visit->rank);
    }
    ck_assert_str_eq(text, expected);
    ck_assert(!wf_visit_next(visit));
}

TEST(each_rank_of_two_meshes_is_visited_once)
{
    struct wf_step step = step_of("4@1-4", "f32[8] S(0)", "2x2@3-6", "f32[8] S(0),R");
    struct wf_visit visit;

    wf_visit_ranks(&visit, &step);
    check_visit(&visit, "3st,4st,5t,6t,1s,2s");
    wf_visit_readers(&visit, &step, INT32_MAX);
    check_visit(&visit, "3st,4st,5t,6t");
    release(&step);
    step = step_of("3", "f32[8] S(0)", "3", "f32[8] R");
    wf_visit_ranks(&visit, &step);
    check_visit(&visit, "0st,1st,2st");
    release(&step);
}

TEST(some_readers_are_spread_from_the_first_to_the_last)
{
    struct wf_step step = step_of("100", "f32[8] S(0)", "100", "f32[8] R");
    struct wf_visit visit;

    wf_visit_readers(&visit, &step, 4);
    check_visit(&visit, "0st,33st,66st,99st");
    wf_visit_readers(&visit, &step, 1);
    check_visit(&visit, "0st");
    release(&step);
}

TEST(of_ranks_with_equal_shards_one_is_visited)
{
    static const struct {
        const char *mesh, *from, *to, *visited;
    } rows[] = {
        {"2x3", "f32[8] R,S(0)", "f32[8] R,R", "0st,1st,2st"},
        {"2x3", "f32[8] S(0),R", "f32[8] R,R", "0st,3st"},
        {"2x3", "f32[8] R,R", "f32[8] R,R", "0st"},
        {"3x2", "f32[8] R,R", "f32[8] P(sum),R", "0st,2st"}, /* coordinate 0 has the value */
        {"3x1", "f32[8] R,S(0)", "f32[8] S(0),R", "0st,1st,2st"},
    };

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        struct wf_step step = step_of(rows[i].mesh, rows[i].from, rows[i].mesh, rows[i].to);
        struct wf_visit visit;
        int64_t count = wf_visit_distinct(&visit, &step, 1);
        uint64_t ranks = 0;

        check_visit(&visit, rows[i].visited);
        ck_assert_int_eq(wf_visit_distinct(&visit, &step, 1), count);
        for (; wf_visit_next(&visit); count--)
            ranks += visit.alike;
        ck_assert_int_eq(count, 0);
        ck_assert_uint_eq(ranks, (uint64_t)visit.to->size);
        release(&step);
    }
}

TEST(too_many_ranks_with_different_shards_are_not_counted)
{
    struct wf_step step = step_of("131072", "f32[262144] S(0)", "131072", "f32[262144] R");
    struct wf_visit visit;

    ck_assert_int_eq(wf_visit_distinct(&visit, &step, 1), WF_DISTINCT_MAX + 1);
    release(&step);
}
