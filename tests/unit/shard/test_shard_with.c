#include "support/layout.h"
#include "support/suite.h"

TEST(the_same_tensor_has_another_layout)
{
    weft_spec *spec = spec_of("dp=2,tp=4", "f32[64,32] S(0),R"), *out = NULL;
    weft_spec *want = spec_of("dp=2,tp=4", "f32[64,32] R,S(1)");

    ck_assert_int_eq(weft_spec_with(spec, "R,S(1)", &out), WEFT_OK);
    ck_assert_ptr_eq(out, want);
    weft_spec_release(&out);
    weft_spec_release(&want);
    want = spec_of("dp=2,tp=4", "f32[64,32] S(0)[1],S(0)[0]");
    ck_assert_int_eq(weft_spec_with(spec, "S(0)[1],S(0)[0]", &out), WEFT_OK);
    ck_assert_ptr_eq(out, want);
    weft_spec_release(&out);
    ck_assert_int_eq(weft_spec_with(want, "S(0),R", &out), WEFT_OK);
    ck_assert_ptr_eq(out, spec);
    weft_spec_release(&out);
    weft_spec_release(&want);
    weft_spec_release(&spec);
}

TEST(the_same_tensor_lies_on_another_mesh)
{
    OWNED(weft_spec) *spec = spec_of("8", "bf16[64,32] S(0)"), *out = NULL;
    OWNED(weft_spec) *want = spec_of("2x2@8-11", "bf16[64,32] R,S(1)");
    OWNED(weft_mesh) *mesh = mesh_of("2x2@8-11");

    ck_assert_int_eq(weft_spec_with_mesh(spec, mesh, "R,S(1)", &out), WEFT_OK);
    ck_assert_ptr_eq(out, want);
    check_refused(weft_spec_with_mesh(spec, mesh, "R", &out), WEFT_ERR_PARSE, "placements");
}

TEST(the_same_layout_has_another_dtype)
{
    OWNED(weft_spec) *spec = spec_of("2x4", "f32[8,8] S(0)[1],S(0)[0]"), *out = NULL;
    OWNED(weft_spec) *want = spec_of("2x4", "bf16[8,8] S(0)[1],S(0)[0]");

    ck_assert_int_eq(weft_spec_with_dtype(spec, WEFT_DTYPE_BF16, &out), WEFT_OK);
    ck_assert_ptr_eq(out, want);
    check_refused(weft_spec_with_dtype(spec, (enum weft_dtype)99, &out), WEFT_ERR_INVALID,
                  "weft_spec_with_dtype: dtype 99 is unknown; the dtypes are 0 to 16");
}

TEST(what_cannot_be_is_refused_with_its_place)
{
    weft_spec *spec = spec_of("2x4", "f32[8,8] R,R"), *out = NULL;

    check_refused(weft_spec_with(spec, "R,S(2)", &out), WEFT_ERR_INVALID, "placements \"R,S(2)\"");
    check_refused(weft_spec_with(spec, "R,Shard(0)", &out), WEFT_ERR_PARSE, "S(0)");
    check_refused(weft_spec_with(NULL, "R,R", &out), WEFT_ERR_INVALID, "weft_spec_with: spec");
    check_refused(weft_spec_with(spec, NULL, &out), WEFT_ERR_INVALID, "weft_spec_with: placements");
    check_refused(weft_spec_with(spec, "R,R", NULL), WEFT_ERR_INVALID, "weft_spec_with: out");
    ck_assert_ptr_null(out);
    weft_spec_release(&spec);
}

TEST(sizes_and_a_text_make_a_spec)
{
    weft_spec *want = spec_of("dp=2,tp=4", "f32[64,32] S(0),R"), *out = NULL;
    OWNED(weft_mesh) *mesh = mesh_of("dp=2,tp=4");
    int64_t shape[] = {64, 32}, negative[] = {64, -1};

    ck_assert_int_eq(weft_spec_parse_placements(mesh, WEFT_DTYPE_F32, 2, shape, "S(0),R", &out),
                     WEFT_OK);
    ck_assert_ptr_eq(out, want);
    weft_spec_release(&out);
    ck_assert_int_eq(weft_spec_parse_placements(mesh, WEFT_DTYPE_F32, 0, NULL, "R,R", &out),
                     WEFT_OK);
    weft_spec_release(&out);
    check_refused(weft_spec_parse_placements(mesh, WEFT_DTYPE_F32, 2, shape, "R,S(2)", &out),
                  WEFT_ERR_INVALID, "placements \"R,S(2)\"");
    check_refused(weft_spec_parse_placements(mesh, WEFT_DTYPE_F32, 2, shape, "R", &out),
                  WEFT_ERR_PARSE, "placements");
    check_refused(weft_spec_parse_placements(mesh, WEFT_DTYPE_F32, 2, negative, "R,R", &out),
                  WEFT_ERR_INVALID, "-1");
    check_refused(weft_spec_parse_placements(mesh, WEFT_DTYPE_F32, 9, shape, "R,R", &out),
                  WEFT_ERR_INVALID, "9");
    ck_assert_ptr_null(out);
    weft_spec_release(&want);
}
