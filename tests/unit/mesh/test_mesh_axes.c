#include "support/layout.h"
#include "support/suite.h"

TEST(axes_have_sizes_and_names)
{
    OWNED(weft_mesh) *mesh = mesh_of("dp=2,tp=4"), *plain = mesh_of("2x4");

    ck_assert_int_eq(weft_mesh_axes(mesh), 2);
    ck_assert_int_eq(weft_mesh_size(mesh), 8);
    ck_assert_int_eq(weft_mesh_axis_size(mesh, 1), 4);
    ck_assert_str_eq(weft_mesh_axis_name(mesh, 1), "tp");
    ck_assert_str_eq(weft_mesh_axis_name(plain, 1), "");
    ck_assert_int_eq(weft_mesh_axis_size(mesh, 2), 0);
    ck_assert_int_eq(weft_mesh_axis_size(mesh, -1), 0);
    ck_assert_ptr_null(weft_mesh_axis_name(mesh, 2));
}

TEST(an_axis_is_found_by_name_or_index)
{
    OWNED(weft_mesh) *mesh = mesh_of("dp=2,tp=4"), *plain = mesh_of("2x4");
    OWNED(weft_mesh) *one = mesh_of("dp=2"), *three = mesh_of("dp=2,pp=2,tp=2");
    int32_t axis = -7;

    ck_assert_int_eq(weft_mesh_find_axis(mesh, "tp", &axis), WEFT_OK);
    ck_assert_int_eq(axis, 1);
    ck_assert_int_eq(weft_mesh_find_axis(mesh, "0", &axis), WEFT_OK);
    ck_assert_int_eq(axis, 0);
    check_refused(weft_mesh_find_axis(mesh, "pp", &axis), WEFT_ERR_NOT_FOUND,
                  "the mesh has no axis \"pp\": the axes are dp and tp");
    check_refused(weft_mesh_find_axis(mesh, "2", &axis), WEFT_ERR_NOT_FOUND, "no axis \"2\"");
    check_refused(weft_mesh_find_axis(plain, "", &axis), WEFT_ERR_NOT_FOUND,
                  "no axis \"\": its axes have no names; their indices are from 0 to 1");
    check_refused(weft_mesh_find_axis(one, "tp", &axis), WEFT_ERR_NOT_FOUND,
                  "no axis \"tp\": its only axis is dp");
    check_refused(weft_mesh_find_axis(three, "x", &axis), WEFT_ERR_NOT_FOUND,
                  "no axis \"x\": the axes are dp, pp and tp");
    ck_assert_int_eq(axis, 0);
}

TEST(a_list_of_axes_names_each_once)
{
    OWNED(weft_mesh) *mesh = mesh_of("dp=2,cp=2,tp=2");
    int32_t axes[WEFT_MAX_AXES], count = -7;

    ck_assert_int_eq(wf_mesh_read_axes(mesh, "tp,0", axes, &count), WEFT_OK);
    ck_assert_int_eq(count, 2);
    ck_assert_int_eq(axes[0], 2);
    ck_assert_int_eq(axes[1], 0);
    count = -7;
    check_refused(wf_mesh_read_axes(mesh, "tp,cp,2", axes, &count), WEFT_ERR_INVALID,
                  "axes \"tp,cp,2\", position 7: axis 2 is listed twice");
    check_refused(wf_mesh_read_axes(mesh, "", axes, &count), WEFT_ERR_NOT_FOUND, "no axis \"\"");
    check_refused(wf_mesh_read_axes(mesh, "dp,", axes, &count), WEFT_ERR_NOT_FOUND, "no axis \"\"");
    ck_assert_int_eq(count, -7);
}

TEST(no_mesh_has_nothing)
{
    int32_t number = -7;

    ck_assert_int_eq(weft_mesh_axes(NULL), 0);
    ck_assert_int_eq(weft_mesh_size(NULL), 0);
    ck_assert_int_eq(weft_mesh_axis_size(NULL, 0), 0);
    ck_assert_ptr_null(weft_mesh_axis_name(NULL, 0));
    ck_assert_uint_eq(weft_mesh_hash(NULL), 0);
    ck_assert_ptr_null(weft_mesh_retain(NULL));
    ck_assert_int_eq(weft_mesh_rank_at(NULL, 0), -1);
    ck_assert(weft_mesh_coord_of(NULL, 0, &number) != WEFT_OK);
    ck_assert_int_eq(weft_mesh_devices_per_host(NULL), 0);
    ck_assert_int_eq(weft_mesh_hosts(NULL), 0);
    ck_assert_int_eq(weft_mesh_host_of(NULL, 3), 0);
    ck_assert_int_eq(number, -7);
}

TEST(missing_arguments_are_named)
{
    static const int32_t one[] = {1};
    weft_mesh *mesh = mesh_of("2"), *out = NULL;
    char text[8];
    int32_t number = 0;

    check_refused(weft_mesh_parse(NULL, &out), WEFT_ERR_INVALID, "weft_mesh_parse: text is NULL");
    check_refused(weft_mesh_parse("2", NULL), WEFT_ERR_INVALID, "weft_mesh_parse: out is NULL");
    check_refused(weft_mesh_create(1, one, NULL, NULL), WEFT_ERR_INVALID, "out is NULL");
    check_refused(weft_mesh_print(NULL, text, 8, NULL), WEFT_ERR_INVALID, "mesh is NULL");
    check_refused(weft_mesh_print(mesh, NULL, 8, NULL), WEFT_ERR_INVALID, "text is NULL");
    check_refused(weft_mesh_find_axis(NULL, "a", &number), WEFT_ERR_INVALID, "mesh is NULL");
    check_refused(weft_mesh_find_axis(mesh, NULL, &number), WEFT_ERR_INVALID, "name is NULL");
    check_refused(weft_mesh_find_axis(mesh, "0", NULL), WEFT_ERR_INVALID, "axis is NULL");
    check_refused(weft_mesh_rank(NULL, one, &number), WEFT_ERR_INVALID, "mesh is NULL");
    check_refused(weft_mesh_rank(mesh, NULL, &number), WEFT_ERR_INVALID, "coord is NULL");
    check_refused(weft_mesh_rank(mesh, one, NULL), WEFT_ERR_INVALID, "rank is NULL");
    check_refused(weft_mesh_slice(NULL, "0", 0, &out), WEFT_ERR_INVALID, "mesh is NULL");
    check_refused(weft_mesh_slice(mesh, NULL, 0, &out), WEFT_ERR_INVALID, "axes is NULL");
    check_refused(weft_mesh_slice(mesh, "0", 0, NULL), WEFT_ERR_INVALID, "out is NULL");
    check_refused(weft_mesh_flatten(NULL, "0", NULL, &out), WEFT_ERR_INVALID, "mesh is NULL");
    check_refused(weft_mesh_flatten(mesh, "0", NULL, NULL), WEFT_ERR_INVALID, "out is NULL");
    check_refused(weft_mesh_unflatten(NULL, 0, 1, one, NULL, &out), WEFT_ERR_INVALID, "mesh is");
    check_refused(weft_mesh_unflatten(mesh, 0, 1, NULL, NULL, &out), WEFT_ERR_INVALID, "sizes is");
    check_refused(weft_mesh_unflatten(mesh, 0, 1, one, NULL, NULL), WEFT_ERR_INVALID, "out is");
    check_refused(weft_mesh_concatenate(NULL, NULL, mesh, &out), WEFT_ERR_INVALID, "first is NULL");
    check_refused(weft_mesh_concatenate(NULL, mesh, NULL, &out), WEFT_ERR_INVALID, "second is");
    check_refused(weft_mesh_concatenate(NULL, mesh, mesh, NULL), WEFT_ERR_INVALID, "out is NULL");
    ck_assert_ptr_null(out);
    weft_mesh_release(&mesh);
}
