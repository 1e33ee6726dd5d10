#include "support/lone_rank.h"
#include "support/suite.h"

static void begin_packed(struct lone_rank *lone, int32_t rank, int32_t size)
{
    lone_begin(lone, rank, size);
    lone->bound->packed = true;
}

static const struct wf_packing *packing_of(const struct lone_rank *lone)
{
    ck_assert_int_eq(lone->action.type, WF_ACTION_PACKED);
    return &lone->action.packing;
}

TEST(whole_shards_are_gathered_by_the_backends_collective)
{
    struct lone_rank lone;

    begin_packed(&lone, 1, 4);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_ALL_GATHER, "4", "f32[8] S(0)", "f32[8] R"),
                     WEFT_OK);
    ck_assert_uint_eq(packing_of(&lone)->collective, WEFT_COLL_ALL_GATHER);
    ck_assert_uint_eq(lone.action.collective.count, 2);
    ck_assert_uint_eq(wf_packing_bytes(&lone.action), 0);
    lone_clear(&lone);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_ALL_GATHER, "4", "f32[7] S(0)", "f32[7] R"),
                     WEFT_OK);
    ck_assert_uint_eq(packing_of(&lone)->collective, WEFT_COLL_ALL_GATHER_V);
    ck_assert_uint_eq(lone.action.collective.recv_counts[3], 1);
    ck_assert_uint_eq(lone.action.collective.recv_offsets[3], 6);
    lone_clear(&lone);
    lone_end(&lone);
}

TEST(columns_are_packed_and_rows_arrive_in_place)
{
    const struct kept_regions *list;
    struct lone_rank lone;

    begin_packed(&lone, 1, 4);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_ALL_TO_ALL, "4", "f32[8,8] S(0)", "f32[8,8] S(1)"),
                     WEFT_OK);
    ck_assert_uint_eq(packing_of(&lone)->collective, WEFT_COLL_ALL_TO_ALL_V);
    list = packing_of(&lone)->out.list;
    ck_assert_uint_eq(list->count, 4);
    ck_assert_ptr_null(packing_of(&lone)->in.list);
    for (int peer = 0; peer < 4; peer++) {
        ck_assert_uint_eq(lone.action.collective.send_counts[peer], 4);
        ck_assert_uint_eq(lone.action.collective.recv_counts[peer], 4);
        ck_assert_uint_eq(lone.action.collective.recv_offsets[peer], 4 * (uint64_t)peer);
    }
    ck_assert_uint_eq(wf_packing_bytes(&lone.action), 256); /* 64 bytes, aligned */
    lone_clear(&lone);
    lone_end(&lone);
}

TEST(what_is_reduced_arrives_once_from_each_holder)
{
    const struct wf_packing *packing;
    char staging[1024];
    struct lone_rank lone;

    begin_packed(&lone, 0, 2);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_EXCHANGE, "2", "f32[6,4] P", "f32[6,4] S(1)"),
                     WEFT_OK);
    packing = packing_of(&lone);
    ck_assert_uint_eq(packing->kind.holders, 2);
    ck_assert_uint_eq(packing->block_count, 2);
    ck_assert_uint_le(wf_packing_bytes(&lone.action), sizeof staging);
    wf_packing_place(&lone.action, staging);
    ck_assert_ptr_eq(packing->out.staging, staging);
    ck_assert_int_eq((const char *)packing->arrivals[1] - (const char *)packing->arrivals[0], 48);
    lone_clear(&lone);
    lone_end(&lone);
}

TEST(a_rank_that_reads_nothing_gets_nothing)
{
    struct lone_rank lone;

    begin_packed(&lone, 3, 4);
    ck_assert_int_eq(lone_act(&lone, WEFT_STEP_EXCHANGE, "4", "f32[2] S(0)", "f32[2] S(0)"),
                     WEFT_OK);
    for (int peer = 0; peer < 4; peer++) {
        ck_assert_uint_eq(lone.action.collective.send_counts[peer], 0);
        ck_assert_uint_eq(lone.action.collective.recv_counts[peer], 0);
    }
    ck_assert_uint_eq(wf_packing_bytes(&lone.action), 0);
    lone_clear(&lone);
    lone_end(&lone);
}
