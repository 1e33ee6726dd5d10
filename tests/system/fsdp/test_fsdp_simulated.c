/* Parameters on 1,024 simulated ranks: each receives the bytes that it lacks and no more, and
 * gathers and reduces what a serial sum gives.  A reduction receives the other ranks' contributions
 * to a shard and no more. */
#include "fsdp/fsdp.h"
#include "serial.h"
#include "support/suite.h"

enum { RANKS = 1024, PARAMS = 3 };

#define MUST(call) ck_assert_msg((call) == WEFT_OK, "%s", weft_last_error())

static const char *const layouts[PARAMS] = {"f32[1500,2] R,S(0)", "f32[2,300] R,S(1)",
                                            "f32[40] R,S(0)"};

/* Bytes of the whole tensor that the rank with the smallest shard lacks. */
static uint64_t most_lacking(const weft_spec *spec)
{
    uint64_t whole = (uint64_t)weft_spec_elements(spec) * 4, least = whole;

    for (int32_t rank = 0; rank < RANKS; rank++) {
        uint64_t has = weft_spec_shard_bytes(spec, rank);

        if (has < least) least = has;
    }
    return whole - least;
}

TEST(bytes_and_values_of_1024_ranks)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};
    weft_fsdp_options fsdp_options = {.struct_size = sizeof fsdp_options, .replicate = "rep"};
    weft_fsdp_group_info info = {.struct_size = sizeof info};
    weft_tensor *tensors[PARAMS], *gradients[PARAMS];
    weft_fsdp_param params[PARAMS] = {{0}};
    uint64_t lacking = 0;
    OWNED(weft_context) *context = NULL;
    weft_fsdp_group *group;
    OWNED(weft_mesh) *mesh = NULL;
    weft_fsdp *fsdp;

    MUST(weft_init(&options, &context));
    MUST(weft_mesh_parse("rep=4,dp=256", &mesh));
    MUST(weft_fsdp_create(context, mesh, "dp", &fsdp_options, &fsdp));
    for (uint64_t i = 0; i < PARAMS; i++) {
        struct elements of = {.which = i};
        OWNED(weft_spec) *spec = NULL;

        MUST(weft_spec_parse(mesh, layouts[i], &spec));
        MUST(weft_tensor_create(context, spec, NULL, &tensors[i]));
        MUST(each_element(tensors[i], set_parameter, &of));
        params[i].tensor = tensors[i];
        lacking += most_lacking(spec);
    }
    MUST(weft_fsdp_group_create(fsdp, PARAMS, params, sizeof *params, NULL, &group));
    MUST(weft_fsdp_group_get(group, &info));
    ck_assert_uint_eq(info.bytes_received, lacking);
    MUST(weft_fsdp_unshard_begin(group, WEFT_FSDP_BACKWARD));
    MUST(weft_fsdp_unshard_end(group));
    for (uint32_t i = 0; i < PARAMS; i++) {
        struct elements of = {.which = i, .spec = weft_fsdp_gradient_spec(group, i)};

        MUST(each_element(weft_fsdp_parameter(group, i), check_parameter, &of));
        MUST(weft_fsdp_gradient_create(group, i, &gradients[i]));
        MUST(each_element(gradients[i], set_gradient, &of));
    }
    MUST(weft_fsdp_reduce_begin(group, gradients, 0));
    MUST(weft_fsdp_reduce_end(group));
    for (uint32_t i = 0; i < PARAMS; i++) {
        struct elements of = {.which = i,
                              .rounds = 1,
                              .spec = weft_fsdp_gradient_spec(group, i),
                              .factor = 1.0 / RANKS,
                              .tolerance = 1e-5};
        weft_tensor *reduced = weft_fsdp_gradient(group, i);

        MUST(each_element(reduced, check_gradient, &of));
        weft_tensor_release(&gradients[i]);
    }
    weft_fsdp_group_release(&group);
    weft_fsdp_release(&fsdp);
    for (int i = 0; i < PARAMS; i++)
        weft_tensor_release(&tensors[i]);
}

/* The bytes that rank 0 receives, which has the largest shard of each parameter. */
TEST(a_reduction_receives_no_byte_more_than_it_must)
{
    enum { FEW = 16 };
    const char *const texts[PARAMS] = {"f32[1501,2] S(0)", "f32[2,300] S(1)", "f32[40] S(0)"};
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = FEW};
    weft_plan_info info = {.struct_size = sizeof info};
    weft_tensor *tensors[PARAMS], *gradients[PARAMS];
    weft_fsdp_param params[PARAMS] = {{0}};
    uint64_t least = 0;
    OWNED(weft_context) *context = NULL;
    weft_fsdp_group *group;
    OWNED(weft_mesh) *mesh = NULL;
    weft_fsdp *fsdp;

    MUST(weft_init(&options, &context));
    MUST(weft_mesh_parse("dp=16", &mesh));
    MUST(weft_fsdp_create(context, mesh, "dp", NULL, &fsdp));
    for (int i = 0; i < PARAMS; i++) {
        OWNED(weft_spec) *spec = NULL;

        MUST(weft_spec_parse(mesh, texts[i], &spec));
        MUST(weft_tensor_create(context, spec, NULL, &tensors[i]));
        params[i].tensor = tensors[i];
        least += (FEW - 1) * weft_spec_shard_bytes(spec, 0);
    }
    MUST(weft_fsdp_group_create(fsdp, PARAMS, params, sizeof *params, NULL, &group));
    for (uint32_t i = 0; i < PARAMS; i++)
        MUST(weft_fsdp_gradient_create(group, i, &gradients[i]));
    MUST(weft_fsdp_reduce_begin(group, gradients, 0));
    MUST(weft_fsdp_reduce_end(group));
    MUST(weft_plan_get(group->reductions->plan, &info));
    ck_assert(info.exact);
    ck_assert_uint_eq(info.bytes_received_max, least);
    weft_fsdp_group_release(&group);
    weft_fsdp_release(&fsdp);
    for (int i = 0; i < PARAMS; i++) {
        weft_tensor_release(&gradients[i]);
        weft_tensor_release(&tensors[i]);
    }
}
