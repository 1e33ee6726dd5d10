#include "base/base.h"
#include "support/allocfail.h"
#include "support/suite.h"
#include "weft/status.h"

#include <stdio.h>

TEST(every_dtype_has_a_name_that_reads_back)
{
    for (uint32_t i = 0; i < WEFT_DTYPE_COUNT; i++) {
        enum weft_dtype dtype = WEFT_DTYPE_COUNT;

        ck_assert_int_eq(weft_dtype_parse(weft_dtype_name(i), &dtype), WEFT_OK);
        ck_assert_uint_eq(dtype, i);
        ck_assert_uint_eq(weft_dtype_bytes(i), wf_dtype_bytes(i));
    }
    ck_assert_ptr_null(weft_dtype_name(WEFT_DTYPE_COUNT));
    ck_assert_uint_eq(weft_dtype_bytes(WEFT_DTYPE_COUNT), 0);
}

TEST(another_name_is_refused_with_all_dtypes_and_a_suggestion)
{
    static const struct {
        const char *text, *suggestion;
    } cases[] = {{"float32", "f32"},        {"Float", "f32"},
                 {"bfloat16", "bf16"},      {"half", "f16"},
                 {"int64", "i64"},          {"uint8", "u8"},
                 {"double", "f64"},         {"F32", "f32"},
                 {"bf61", "bf16"},          {"e4m3", "f8e4m3"},
                 {"float8_e5m2", "f8e5m2"}, {"fp8", "f8e4m3 or f8e5m2"},
                 {"torch.float16", "f16"},  {"np.float64", "f64"},
                 {"torch.half", "f16"},     {"jax.numpy.bfloat16", "bf16"},
                 {"single", "f32"},         {"F8_E4M3", "f8e4m3"},
                 {"bool_", "bool"},         {"torch.cdouble", "c128"},
                 {"BF16", "bf16"},          {"torch.bf16", "bf16"}};
    static const char *const without[] = {
        "quite another thing", "fp4", "i4", "f128", "f31", "torch.", "float16."};
    enum weft_dtype dtype = WEFT_DTYPE_C64;

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        char want[80];

        snprintf(want, sizeof want, "; did you mean %s?", cases[i].suggestion);
        ck_assert_int_eq(weft_dtype_parse(cases[i].text, &dtype), WEFT_ERR_PARSE);
        ck_assert_ptr_nonnull(strstr(weft_last_error(), cases[i].text));
        ck_assert_ptr_nonnull(strstr(weft_last_error(), "bool, i8, u8, i16"));
        ck_assert_msg(strstr(weft_last_error(), want) != NULL, "%s", weft_last_error());
    }
    for (size_t i = 0; i < WF_COUNT(without); i++) {
        ck_assert_int_eq(weft_dtype_parse(without[i], &dtype), WEFT_ERR_PARSE);
        ck_assert_msg(strstr(weft_last_error(), "did you mean") == NULL, "%s", weft_last_error());
    }
    ck_assert_int_eq(weft_dtype_parse("", &dtype), WEFT_ERR_PARSE);
    ck_assert_uint_eq(dtype, WEFT_DTYPE_C64);
    ck_assert_int_eq(weft_dtype_parse(NULL, &dtype), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_dtype_parse("f32", NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(wf_mem_live(), 0);
}
