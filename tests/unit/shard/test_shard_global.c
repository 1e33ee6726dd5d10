#include "support/layout.h"
#include "support/suite.h"

static weft_status shape_of(const char *mesh_text, const char *placements_text, int32_t dims,
                            const int64_t *shards, int64_t *shape)
{
    weft_mesh *mesh = mesh_of(mesh_text);
    weft_placement placements[WEFT_MAX_AXES];
    weft_status status;

    ck_assert_int_eq(weft_placements_parse(placements_text, weft_mesh_axes(mesh), placements),
                     WEFT_OK);
    status = weft_shape_from_shards(mesh, dims, placements, shards, shape);
    weft_mesh_release(&mesh);
    return status;
}

START_TEST(uneven_shards_add_up)
{
    static const int64_t sizes[] = {2, 7, 2, 7, 1, 7, 0, 7};
    int64_t shape[2];

    ck_assert_int_eq(shape_of("4", "S(0)", 2, sizes, shape), WEFT_OK);
    ck_assert_int_eq(shape[0], 5);
    ck_assert_int_eq(shape[1], 7);
}
END_TEST

START_TEST(three_axes_of_three_dimensions_multiply)
{
    int64_t sizes[24 * 3], shape[3];

    for (int i = 0; i < 24; i++)
        memcpy(&sizes[i * 3], (const int64_t[]){2, 3, 1}, 3 * sizeof *sizes);
    ck_assert_int_eq(shape_of("2x3x4", "S(0),S(1),S(2)", 3, sizes, shape), WEFT_OK);
    ck_assert(shape[0] == 4 && shape[1] == 9 && shape[2] == 4);
}
END_TEST

START_TEST(a_scalar_has_no_shape_to_agree_on)
{
    int64_t nothing[1] = {0};

    ck_assert_int_eq(shape_of("2x2", "R,P", 0, nothing, nothing), WEFT_OK);
}
END_TEST

START_TEST(ranks_that_disagree_are_named)
{
    static const struct {
        const char *mesh, *placements;
        int32_t dims;
        int64_t sizes[8];
        const char *error;
    } cases[] = {
        {"2x2@4-7",
         "R,S(0)",
         1,
         {3, 2, 3, 3},
         "ranks 5 and 7 hold the same part of dimension 0, but their shards have sizes 2 and 3 "
         "there"},
        {"4",
         "S(0)",
         2,
         {2, 7, 2, 7, 2, 8, 2, 7},
         "ranks 0 and 2 hold the same part of dimension 1, but their shards have sizes 7 and 8 "
         "there"},
        {"4",
         "S(0)",
         1,
         {1, 2, 2, 1},
         "dimension 0 has 6 indices in all, so the shard of rank 0 must have 2, but has 1, and the "
         "shard of rank 3 must have 0, but has 1"},
        {"2", "P", 1, {4, 5}, "ranks 0 and 1 hold the same part of dimension 0"},
    };
    int64_t shape[2] = {-7, -7};

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        check_refused(
            shape_of(cases[i].mesh, cases[i].placements, cases[i].dims, cases[i].sizes, shape),
            WEFT_ERR_MISMATCH, cases[i].error);
    ck_assert_int_eq(shape[0], -7);
}
END_TEST

START_TEST(sizes_that_cannot_be_are_refused)
{
    int64_t shape[1] = {-7};

    check_refused(shape_of("2@3-4", "S(0)", 1, (const int64_t[]){1, -1}, shape), WEFT_ERR_INVALID,
                  "the shard of rank 4 has size -1 in dimension 0");
    check_refused(shape_of("2", "S(0)", 1, (const int64_t[]){INT64_MAX, 1}, shape),
                  WEFT_ERR_INVALID, "dimension 0: the local sizes add up beyond 2^63 - 1");
    check_refused(shape_of("2", "S(1)", 1, (const int64_t[]){1, 1}, shape), WEFT_ERR_INVALID,
                  "placement 0, S(1): the tensor has 1 dimension");
    check_refused(shape_of("2", "R", 9, (const int64_t[]){1, 1}, shape), WEFT_ERR_INVALID,
                  "the tensor has 9 dimensions");
    ck_assert_int_eq(shape[0], -7);
}
END_TEST

SUITE(shard_global, uneven_shards_add_up, three_axes_of_three_dimensions_multiply,
      a_scalar_has_no_shape_to_agree_on, ranks_that_disagree_are_named,
      sizes_that_cannot_be_are_refused)
