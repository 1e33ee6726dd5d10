#include "exec/exec.h"
#include "support/layout.h"
#include "support/suite.h"

/* The boxes that RANK's shards of two specs share. */
static struct wf_region_list boxes(const char *mesh, const char *from, int32_t from_rank,
                                   const char *to, int32_t to_rank)
{
    weft_spec *a = spec_of(mesh, from), *b = spec_of(mesh, to);
    int64_t a_strides[WEFT_MAX_DIMS], b_strides[WEFT_MAX_DIMS];
    struct wf_region_list list = {0};
    struct wf_shard sa, sb;

    wf_shard_of(a, from_rank, &sa);
    wf_shard_of(b, to_rank, &sb);
    wf_row_major(sa.dims, sa.shape, a_strides);
    wf_row_major(sb.dims, sb.shape, b_strides);
    ck_assert_int_eq(wf_regions_add(&list, &sa, a_strides, &sb, b_strides, 3, 5), WEFT_OK);
    weft_spec_release(&a);
    weft_spec_release(&b);
    return list;
}

TEST(whole_rows_are_one_run)
{
    struct wf_region_list list = boxes("2", "f32[4,6] S(0)", 1, "f32[4,6] R", 0);

    ck_assert_uint_eq(list.count, 1);
    ck_assert_uint_eq(list.regions[0].dims, 1);
    ck_assert_int_eq(list.regions[0].extent[0], 12);
    ck_assert_int_eq(list.regions[0].source_offset, 0);
    ck_assert_int_eq(list.regions[0].target_offset, 12);
    ck_assert_uint_eq(list.regions[0].source, 3);
    ck_assert_uint_eq(list.regions[0].target, 5);
    wf_free(list.regions);
}

TEST(a_block_has_two_dimensions)
{
    struct wf_region_list list = boxes("2", "f32[4,6] S(0)", 0, "f32[4,6] S(1)", 1);

    ck_assert_uint_eq(list.count, 1);
    ck_assert_uint_eq(list.regions[0].dims, 2);
    ck_assert_int_eq(list.regions[0].extent[0], 2);
    ck_assert_int_eq(list.regions[0].extent[1], 3);
    ck_assert_int_eq(list.regions[0].source_offset, 3);
    ck_assert_int_eq(list.regions[0].source_stride[0], 6);
    ck_assert_int_eq(list.regions[0].target_stride[0], 3);
    wf_free(list.regions);
}

TEST(a_regular_comb_is_one_box)
{
    struct wf_region_list list = boxes("2", "f32[16] SS(0,4)", 1, "f32[16] R", 0);

    ck_assert_uint_eq(list.count, 1);
    ck_assert_uint_eq(list.regions[0].dims, 2);
    ck_assert_int_eq(list.regions[0].extent[0], 4);
    ck_assert_int_eq(list.regions[0].extent[1], 2);
    ck_assert_int_eq(list.regions[0].target_stride[0], 4);
    wf_free(list.regions);
}

TEST(shards_apart_share_nothing)
{
    struct wf_region_list list = boxes("2", "f32[4,6] S(0)", 0, "f32[4,6] S(0)", 1);

    ck_assert_uint_eq(list.count, 0);
    wf_free(list.regions);
    list = boxes("4", "f32[0,6] S(0)", 0, "f32[0,6] R", 1);
    ck_assert_uint_eq(list.count, 0);
    wf_free(list.regions);
}

TEST(a_scalar_is_a_box_without_dimensions)
{
    struct wf_region_list list = boxes("2", "f32[] R", 0, "f32[] R", 1);

    ck_assert_uint_eq(list.count, 1);
    ck_assert_uint_eq(list.regions[0].dims, 0);
    wf_free(list.regions);
}
