#include "support/lone_rank.h"
#include "support/suite.h"

static const struct kept_regions *list_of(const struct lone_rank *lone)
{
    return lone->action.regions;
}

TEST(a_local_step_copies_within_the_rank)
{
    struct lone_rank lone;

    lone_begin(&lone, 1, 2);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_SLICE, "2", "f32[8] R", "f32[8] S(0)"), WEFT_OK);
    ck_assert_int_eq(lone.action.type, WF_ACTION_COPY);
    ck_assert_uint_eq(lone.action.elements, 4);
    ck_assert_uint_eq(list_of(&lone)->count, 1);
    ck_assert_uint_eq(list_of(&lone)->element, 4);
    ck_assert_int_eq(list_of(&lone)->regions[0].source_offset, 4);
    lone_clear(&lone);
    lone_end(&lone);
}

TEST(ranks_that_share_memory_pull)
{
    struct lone_rank lone;

    lone_begin(&lone, 2, 4);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_ALL_GATHER, "4@3,2,1,0", "f64[8] S(0)", "f64[8] R"),
                     WEFT_OK);
    ck_assert_int_eq(lone.action.type, WF_ACTION_PULL);
    ck_assert_uint_eq(list_of(&lone)->count, 4);
    ck_assert_int_eq(lone.action.sources[list_of(&lone)->regions[0].source], 3);
    ck_assert_int_eq(lone.action.sources[list_of(&lone)->regions[3].source], 0);
    lone_clear(&lone);
    lone_end(&lone);
}

TEST(reducing_to_copies_is_the_backends_all_reduce)
{
    struct lone_rank lone;

    lone_begin(&lone, 0, 2);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_ALL_REDUCE, "2", "f32[5] P(max)", "f32[5] R"),
                     WEFT_OK);
    ck_assert_int_eq(lone.action.type, WF_ACTION_COLLECTIVE);
    ck_assert_uint_eq(lone.action.collective.collective, WEFT_COLL_ALL_REDUCE);
    ck_assert_uint_eq(lone.action.collective.reduction, WEFT_REDUCE_MAX);
    ck_assert_uint_eq(lone.action.collective.count, 5);
    ck_assert_ptr_null(lone.action.regions);
    lone_clear(&lone);
    lone_end(&lone);
}

TEST(a_new_partial_is_the_identity_off_coordinate_0)
{
    struct lone_rank lone;
    float identity;

    lone_begin(&lone, 1, 2);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_PARTIAL, "2", "f32[5] R", "f32[5] P(prod)"),
                     WEFT_OK);
    ck_assert(lone.action.filled);
    memcpy(&identity, lone.action.identity, sizeof identity);
    ck_assert(identity == 1.0f);
    ck_assert_ptr_null(lone.action.regions);
    lone_clear(&lone);
    lone_end(&lone);
    lone_begin(&lone, 0, 2);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_PARTIAL, "2", "f32[5] R", "f32[5] P(prod)"),
                     WEFT_OK);
    ck_assert(!lone.action.filled);
    ck_assert_uint_eq(list_of(&lone)->count, 1);
    lone_clear(&lone);
    lone_end(&lone);
}

/* The type of an exchange that adds and averages DTYPE. */
static enum wf_action_kind way_of_average(struct lone_rank *lone, const char *dtype,
                                          uint32_t averages)
{
    char from[64], to[64];
    enum wf_action_kind type;

    snprintf(from, sizeof from, "%s[6] P(sum),P(avg)", dtype);
    snprintf(to, sizeof to, "%s[6] R,R", dtype);
    lone->comm.averages = averages;
    ck_assert_int_eq(lone_act(lone, WEFT_STEP_EXCHANGE, "2x3", from, to), WEFT_OK);
    ck_assert_uint_eq(lone->action.kind.holders, 6);
    ck_assert_uint_eq(lone->action.kind.reduction, WEFT_REDUCE_AVG);
    ck_assert_uint_eq(wf_divisor_of(&lone->action.kind), 3);
    type = lone->action.type;
    lone_clear(lone);
    return type;
}

TEST(sums_beside_averages_are_the_backends_or_are_moved)
{
    struct lone_rank lone;

    lone_begin(&lone, 0, 6);
    ck_assert_int_eq(way_of_average(&lone, "f32", UINT32_C(1) << WEFT_DTYPE_F32), WF_ACTION_PULL);
    ck_assert_int_eq(way_of_average(&lone, "i32", UINT32_C(1) << WEFT_DTYPE_I32), WF_ACTION_PULL);
    ck_assert_int_eq(way_of_average(&lone, "f32", 0), WF_ACTION_PACKED);
    ck_assert_int_eq(way_of_average(&lone, "i32", 0), WF_ACTION_PACKED);
    lone_end(&lone);
}

TEST(averages_of_integers_are_moved_where_the_backend_has_its_own)
{
    struct lone_rank lone;

    lone_begin(&lone, 0, 4);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_ALL_REDUCE, "4", "i8[6] P(avg)", "i8[6] R"),
                     WEFT_OK);
    ck_assert_int_eq(lone.action.type, WF_ACTION_PACKED);
    ck_assert_uint_eq(lone.action.packing.collective, WEFT_COLL_ALL_TO_ALL_V);
    ck_assert_ptr_nonnull(lone.action.packing.average);
    lone_clear(&lone);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_ALL_REDUCE, "4", "f32[6] P(avg)", "f32[6] R"),
                     WEFT_OK);
    ck_assert_int_eq(lone.action.type, WF_ACTION_COLLECTIVE);
    lone_clear(&lone);
    lone_end(&lone);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(a_rank_that_takes_no_part_is_named)
{
    struct lone_rank lone;

    lone_begin(&lone, 0, 4);
    lone.comm.size = 3; /* its group ends before rank 3 */
    check_refused(lone_act(&lone, WEFT_STEP_ALL_GATHER, "4", "f32[8] S(0)", "f32[8] R"),
                  WEFT_ERR_INTERNAL, "rank 3");
    lone_clear(&lone);
    lone_end(&lone);
}

TEST(clearing_leaves_nothing)
{
    struct lone_rank lone;

    lone_begin(&lone, 1, 4);
    for (int packed = 0; packed < 2; packed++) {
        lone.bound->packed = packed;
        ck_assert_int_eq(
            lone_act(&lone, WEFT_STEP_ALL_TO_ALL, "4", "f32[8,8] S(0)", "f32[8,8] S(1)"), WEFT_OK);
        lone_clear(&lone);
    }
    lone_end(&lone);
    ck_assert_int_eq(wf_mem_live(), 0);
}
