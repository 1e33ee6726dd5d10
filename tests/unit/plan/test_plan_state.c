#include "support/planning.h"
#include "support/suite.h"

/* Sum of the lengths at all coordinates, and the maximum and minimum. */
TEST(split_lengths_add_up_and_shrink_along_the_axis)
{
    for (int64_t length = 0; length < 40; length++)
        for (int64_t ranks = 1; ranks < 9; ranks++)
            for (int64_t factor = 1; factor < 6; factor++) {
                int64_t sum = 0, before = INT64_MAX;
                for (int64_t at = 0; at < ranks; at++) {
                    int64_t held = wf_split_length(length, ranks, factor, at);
                    ck_assert_int_ge(before, held);
                    before = held;
                    sum += held;
                }
                ck_assert_int_eq(sum, length);
            }
}

/* The shapes that shard/ computes, at the first and the last coordinates. */
TEST(shapes_are_those_of_the_layout)
{
    static const struct {
        const char *mesh, *shape, *from;
    } cases[] = {{"2x3", "7,10", "S(0),S(0)"},
                 {"2x3", "7,10", "S(0)[1],S(0)[0]"},
                 {"2x3x2", "13,5", "SS(0,2),S(1),S(0)"},
                 {"4x2", "3,9", "S(0),SS(1,3)"},
                 {"3x2", "5,5", "P,S(1)"}};

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        struct wf_problem problem;
        struct pair pair;
        open_problem(&problem, &pair, cases[i].mesh, cases[i].shape, cases[i].from, cases[i].from);
        for (uint32_t last = 0; last < UINT32_C(1) << problem.axes; last++) {
            int32_t coord[WEFT_MAX_AXES] = {0};
            int64_t shape[WEFT_MAX_DIMS];
            struct wf_shard shard;
            for (int32_t a = 0; a < problem.axes; a++)
                if (last >> a & 1) coord[a] = (int32_t)problem.size[a] - 1;
            wf_state_shape(&problem, &problem.source, last, shape);
            wf_shard_at(&pair.from->layout, coord, &shard);
            for (int32_t d = 0; d < problem.dims; d++)
                ck_assert_int_eq(shape[d], shard.shape[d]);
            if (last == 0)
                ck_assert_uint_eq(wf_state_bytes(&problem, &problem.source),
                                  4 * (uint64_t)shard.elements);
        }
        close_pair(&pair);
    }
}

TEST(only_sums_and_averages_stand_side_by_side)
{
    struct wf_problem problem;
    OWNED_PAIR pair = {0};

    open_problem(&problem, &pair, "2x2", "8", "P(sum),R", "R,R");
    ck_assert(wf_state_takes_partial(&problem, &problem.source, WEFT_REDUCE_SUM));
    ck_assert(wf_state_takes_partial(&problem, &problem.source, WEFT_REDUCE_AVG));
    ck_assert(!wf_state_takes_partial(&problem, &problem.source, WEFT_REDUCE_MAX));
    ck_assert(wf_state_takes_partial(&problem, &problem.target, WEFT_REDUCE_MAX));
}

/* The tensor is i32 on 2x2x2. */
static void check_reduces(const char *from, const char *to, uint32_t axes, bool may)
{
    weft_plan_options options = {.struct_size = sizeof options};
    struct wf_problem problem;
    OWNED_PAIR pair = {0};

    open_pair_of(&pair, "i32", "2x2x2", NULL, "8", from, to);
    ck_assert_int_eq(wf_problem_set(&problem, pair.from, pair.to, &options), WEFT_OK);
    ck_assert_msg(wf_state_reduces(&problem, &problem.source, axes) == may, "%s, axes %u", from,
                  axes);
}

TEST(integers_are_averaged_along_all_axes_at_once)
{
    struct wf_problem problem;
    OWNED_PAIR pair = {0};

    check_reduces("P(avg),P(avg),R", "R,R,R", 3, true);
    check_reduces("P(avg),P(avg),R", "R,R,R", 1, false);
    check_reduces("P(sum),P(avg),R", "R,R,R", 1, false);
    check_reduces("P(sum),P(avg),R", "R,R,R", 2, false);
    check_reduces("P(sum),P(avg),R", "R,R,R", 3, true);
    check_reduces("P(sum),P(sum),R", "R,R,R", 1, true);
    check_reduces("P(avg),S(0),R", "R,R,R", 1, true);
    check_reduces("P(max),P(max),R", "R,R,R", 1, true);
    open_problem(&problem, &pair, "2x2", "8", "P(avg),P(avg)", "R,R");
    ck_assert(wf_state_reduces(&problem, &problem.source, 1)); /* of floats */
}
