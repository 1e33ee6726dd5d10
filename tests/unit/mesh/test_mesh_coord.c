#include "support/layout.h"
#include "support/suite.h"

static void check_both_ways(const char *text, int32_t rank, int32_t first, int32_t second)
{
    OWNED(weft_mesh) *mesh = mesh_of(text);
    int32_t coord[2] = {-1, -1}, back;

    ck_assert(weft_mesh_coord_of(mesh, rank, coord) == WEFT_OK);
    ck_assert_int_eq(coord[0], first);
    ck_assert_int_eq(coord[1], second);
    ck_assert_int_eq(weft_mesh_rank(mesh, coord, &back), WEFT_OK);
    ck_assert_int_eq(back, rank);
}

TEST(coordinates_follow_the_rank_list)
{
    check_both_ways("2x4", 5, 1, 1);
    check_both_ways("2x2@4-7", 6, 1, 0);
    check_both_ways("2x2@0,2,1,3", 2, 0, 1);
    check_both_ways("2x2@9,7,0,100", 0, 1, 0);
    check_both_ways("2x4@0,1,8,9,2,3,10,11", 10, 1, 2);
}

TEST(a_rank_outside_has_no_coordinate)
{
    static const char *const meshes[] = {"2x2@4-10:2", "2x2@4,6,10,8", "2x2@4,8,6,10"};
    static const int32_t outside[] = {-1, INT32_MIN, 0, 3, 5, 7, 9, 11, 12, INT32_MAX};

    for (size_t i = 0; i < WF_COUNT(meshes); i++) {
        OWNED(weft_mesh) *mesh = mesh_of(meshes[i]);
        int32_t coord[2] = {-7, -7};
        for (size_t j = 0; j < WF_COUNT(outside); j++)
            ck_assert(weft_mesh_coord_of(mesh, outside[j], coord) != WEFT_OK);
        ck_assert_int_eq(coord[0], -7);
        ck_assert_int_eq(weft_mesh_rank_at(mesh, -1), -1);
        ck_assert_int_eq(weft_mesh_rank_at(mesh, 4), -1);
        ck_assert_int_eq(weft_mesh_rank_at(mesh, 0), 4);
    }
}

TEST(a_coordinate_outside_has_no_rank)
{
    OWNED(weft_mesh) *mesh = mesh_of("2x4");
    int32_t rank = -7;

    check_refused(
        weft_mesh_rank(mesh, (const int32_t[]){0, 4}, &rank), WEFT_ERR_INVALID,
        "weft_mesh_rank: coordinate 4 on mesh axis 1 is out of range: the axis has size 4");
    check_refused(weft_mesh_rank(mesh, (const int32_t[]){-1, 0}, &rank), WEFT_ERR_INVALID,
                  "coordinate -1 on mesh axis 0");
    ck_assert_int_eq(rank, -7);
}

static void check_group(const char *mesh_text, uint32_t axes, int32_t rank, const char *want)
{
    OWNED(weft_mesh) *mesh = mesh_of(mesh_text);
    int32_t ranks[16], count = wf_mesh_group(mesh, axes, rank, ranks);
    char have[64] = "";

    for (int32_t i = 0; i < count; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%d", i > 0 ? " " : "",
                 ranks[i]);
    ck_assert_str_eq(have, want);
}

TEST(a_group_has_the_ranks_along_its_axes)
{
    check_group("2x3", 1, 4, "1 4");
    check_group("2x3", 2, 4, "3 4 5");
    check_group("2x3", 3, 4, "0 1 2 3 4 5");
    check_group("2x2@3,1,2,0", 2, 2, "2 0");
    check_group("2x3", 3, 6, "");
}
