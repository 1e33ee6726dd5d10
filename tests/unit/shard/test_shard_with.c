#include "support/layout.h"
#include "support/suite.h"

START_TEST(the_same_tensor_has_another_layout)
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
END_TEST

START_TEST(the_same_tensor_lies_on_another_mesh)
{
    weft_spec *spec = spec_of("8", "bf16[64,32] S(0)"), *out = NULL;
    weft_spec *want = spec_of("2x2@8-11", "bf16[64,32] R,S(1)");
    weft_mesh *mesh = mesh_of("2x2@8-11");

    ck_assert_int_eq(weft_spec_with_mesh(spec, mesh, "R,S(1)", &out), WEFT_OK);
    ck_assert_ptr_eq(out, want);
    check_refused(weft_spec_with_mesh(spec, mesh, "R", &out), WEFT_ERR_PARSE, "placements");
    weft_spec_release(&out);
    weft_spec_release(&want);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
}
END_TEST

START_TEST(the_same_layout_has_another_dtype)
{
    weft_spec *spec = spec_of("2x4", "f32[8,8] S(0)[1],S(0)[0]"), *out = NULL;
    weft_spec *want = spec_of("2x4", "bf16[8,8] S(0)[1],S(0)[0]");

    ck_assert_int_eq(weft_spec_with_dtype(spec, WEFT_DTYPE_BF16, &out), WEFT_OK);
    ck_assert_ptr_eq(out, want);
    check_refused(weft_spec_with_dtype(spec, (enum weft_dtype)99, &out), WEFT_ERR_INVALID,
                  "weft_spec_with_dtype: dtype 99 is not known");
    weft_spec_release(&out);
    weft_spec_release(&want);
    weft_spec_release(&spec);
}
END_TEST

START_TEST(what_cannot_be_is_refused_with_its_place)
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
END_TEST

SUITE(shard_with, the_same_tensor_has_another_layout, the_same_tensor_lies_on_another_mesh,
      the_same_layout_has_another_dtype, what_cannot_be_is_refused_with_its_place)
