#include "exec/exec.h"
#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/exec.h"

static weft_plan *plan_between(const char *mesh, const char *from, const char *to)
{
    weft_spec *a = spec_of(mesh, from), *b = spec_of(mesh, to);
    weft_plan *plan = NULL;

    ck_assert_msg(weft_plan_create(a, b, NULL, &plan) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&a);
    weft_spec_release(&b);
    return plan;
}

static void check_holds(const weft_plan *plan, const weft_plan *runner_up, const char *want)
{
    char text[4096];
    size_t length;

    ck_assert_int_eq(weft_plan_json_print(plan, runner_up, text, sizeof text, &length), WEFT_OK);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_msg(strstr(text, want) != NULL, "no %s in %s", want, text);
}

TEST(the_object_has_tensor_costs_steps_and_sums)
{
    OWNED(weft_plan) *plan = plan_between("dp=2,tp=2", "f32[4,6] S(0),R", "f32[4,6] R,R");

    check_holds(plan, NULL,
                "{\"shape\":[4,6],\"dtype\":\"f32\",\"to_dtype\":\"f32\","
                "\"mesh\":\"dp=2,tp=2\",\"to_mesh\":\"dp=2,tp=2\",\"from\":\"S(0),R\",\"to\":\"R,"
                "R\",\"costs\":\"h100\",");
    check_holds(plan, NULL,
                "\"steps\":[{\"kind\":\"all-gather\",\"axes\":[0],\"mesh\":\"dp=2,tp=2\","
                "\"from\":\"S(0),R\",\"to\":\"R,R\",\"dtype\":\"f32\","
                "\"to_dtype\":\"f32\",\"cast\":null,\"bytes_sent\":48,"
                "\"bytes_received\":48,\"exact\":true,\"scratch_bytes\":0,"
                "\"scratch_exact\":true,\"cost_ns\":");
    check_holds(plan, NULL,
                "}],\"bytes_received_max\":48,\"bytes_received_total\":192,\"exact\":true,"
                "\"bytes_lower_bound\":48,\"least\":true,");
    check_holds(plan, NULL, ",\"runner_up\":null}");
}

TEST(a_step_states_where_it_casts)
{
    weft_plan *plan = plan_between("2", "f32[64,64] S(0)", "bf16[64,64] S(1)");

    check_holds(plan, NULL, "\"dtype\":\"f32\",\"to_dtype\":\"bf16\",\"mesh\":\"2\",");
    check_holds(plan, NULL,
                "\"dtype\":\"f32\",\"to_dtype\":\"bf16\",\"cast\":\"before\","
                "\"bytes_sent\":2048,\"bytes_received\":2048,");
    weft_plan_release(&plan);
    plan = plan_between("2", "bf16[64,64] S(0)", "f32[64,64] S(1)");
    check_holds(plan, NULL,
                "\"dtype\":\"bf16\",\"to_dtype\":\"f32\",\"cast\":\"after\","
                "\"bytes_sent\":2048,\"bytes_received\":2048,");
    weft_plan_release(&plan);
}

TEST(a_step_between_meshes_has_both)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[4] S(0)"), *to = spec_of("3@2-4", "f32[4] S(0)");
    OWNED(weft_plan) *plan = NULL;

    ck_assert_int_eq(weft_plan_create(from, to, NULL, &plan), WEFT_OK);
    check_holds(plan, NULL,
                "\"steps\":[{\"kind\":\"exchange\",\"axes\":[],\"mesh\":\"2\","
                "\"to_mesh\":\"3@2-4\",\"from\":\"S(0)\",");
}

TEST(the_runner_up_is_an_object_of_its_own)
{
    OWNED(weft_plan) *plan = plan_between("2", "f32[64] S(0)", "f32[64] R"), *other = NULL;

    ck_assert_int_eq(weft_plan_create_runner_up(plan, NULL, &other), WEFT_OK);
    check_holds(plan, other, "\"runner_up\":{\"steps\":[{\"kind\":\"exchange\"");
}

TEST(a_batch_lists_its_tensors)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[8] S(0)"), *to = spec_of("2", "f32[8] R");
    OWNED(weft_plan) *batch = NULL;

    ck_assert_int_eq(weft_plan_create_batch(2, (const weft_spec *const[]){from, from},
                                            (const weft_spec *const[]){to, to}, NULL, &batch),
                     WEFT_OK);
    check_holds(batch, NULL,
                "{\"tensors\":[{\"shape\":[8],\"dtype\":\"f32\",\"to_dtype\":\"f32\","
                "\"mesh\":\"2\",");
    check_holds(batch, NULL,
                "\"together\":true}],\"costs\":\"h100\",\"steps\":[{\"kind\":"
                "\"exchange\",\"axes\":[");
    check_holds(batch, NULL, "\"bytes_sent\":32,\"bytes_received\":32,\"exact\":true,");
    check_holds(batch, NULL, "\"scratch_exact\":true,\"cost_ns\"");
}

TEST(lengths_and_wrong_arguments_are_as_for_snprintf)
{
    weft_plan *plan = plan_between("2", "f32[8] S(0)", "f32[8] R");
    char text[8];
    size_t whole = 0, length = 0;

    ck_assert_int_eq(weft_plan_json_print(plan, NULL, NULL, 0, &whole), WEFT_OK);
    ck_assert_int_eq(weft_plan_json_print(plan, NULL, text, sizeof text, &length), WEFT_OK);
    ck_assert_uint_eq(length, whole);
    ck_assert_str_eq(text, "{\"shape");
    ck_assert_int_eq(weft_plan_json_print(plan, NULL, NULL, 4, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_json_print(NULL, NULL, text, sizeof text, NULL), WEFT_ERR_INVALID);
    weft_plan_release(&plan);
    ck_assert_int_eq(wf_mem_live(), 0);
}
