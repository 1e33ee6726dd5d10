/* Gradients of groups on ranks that are threads: of shared and frozen parameters, absent ones,
 * those that cannot be, and those that are not wanted any more. */
#include "model.h"
#include "support/suite.h"
#include "weft/launch.h"

/* ---- shared and frozen parameters ---- */

TEST_ON_RANKS(RANKS, a_shared_parameter_is_gathered_once_and_its_gradients_are_added)
{
    struct model model = {0};
    weft_fsdp_param params[3] = {{0}};
    weft_tensor *gradients[3] = {NULL};
    struct elements of = {.which = 0, .rounds = 2, .factor = 0.25, .tolerance = 1e-6};

    WF_TRY(begin(&model, NULL, NULL));
    weft_fsdp_group_release(&model.group);
    params[0].tensor = params[2].tensor = model.params[0];
    params[1] = (weft_fsdp_param){.tensor = model.params[1], .frozen = true};
    WF_TRY(weft_fsdp_group_create(model.fsdp, 3, params, sizeof *params, NULL, &model.group));
    WF_TRY(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_unshard_end(model.group));
    HOLDS(weft_fsdp_parameter(model.group, 0) == weft_fsdp_parameter(model.group, 2));
    HOLDS(weft_fsdp_gradient_spec(model.group, 1) == NULL);
    REFUSES(weft_fsdp_gradient_create(model.group, 1, &gradients[1]), "frozen");
    of.spec = weft_fsdp_gradient_spec(model.group, 0);
    for (uint32_t i = 0; i < 3; i += 2) {
        of.round = i / 2;
        WF_TRY(weft_fsdp_gradient_create(model.group, i, &gradients[i]));
        WF_TRY(each_element(gradients[i], set_gradient, &of));
    }
    WF_TRY(weft_fsdp_reduce_begin(model.group, gradients, 0));
    WF_TRY(weft_fsdp_reduce_end(model.group));
    HOLDS(weft_fsdp_gradient(model.group, 0) == weft_fsdp_gradient(model.group, 2));
    HOLDS(weft_fsdp_gradient(model.group, 1) == NULL);
    WF_TRY(each_element(weft_fsdp_gradient(model.group, 2), check_gradient, &of));
    gradients[1] = gradients[0];
    REFUSES(weft_fsdp_reduce_begin(model.group, gradients, 0), "frozen");
    gradients[1] = NULL;
    weft_tensor_release(&gradients[0]);
    weft_tensor_release(&gradients[2]);
    return end(&model);
}

/* ---- gradients that cannot be, and that are not wanted any more ---- */

TEST_ON_RANKS(RANKS, a_gradient_of_two_parameters_is_refused)
{
    weft_fsdp_group_options options = {.struct_size = sizeof options, .divide = 3};
    struct model model = {0};
    weft_fsdp_param params[2] = {{0}};
    weft_tensor *twin = NULL, *gradients[2] = {NULL};

    WF_TRY(begin(&model, NULL, NULL));
    weft_fsdp_group_release(&model.group);
    WF_TRY(weft_tensor_create(model.context, model.specs[0], NULL, &twin));
    params[0].tensor = model.params[0];
    params[1].tensor = twin;
    WF_TRY(weft_fsdp_group_create(model.fsdp, 2, params, sizeof *params, &options, &model.group));
    WF_TRY(weft_fsdp_gradient_create(model.group, 0, &gradients[0]));
    gradients[1] = gradients[0]; /* it would be divided twice */
    REFUSES(weft_fsdp_reduce_begin(model.group, gradients, 0), "that of parameter 0 too");
    weft_tensor_release(&gradients[0]);
    weft_tensor_release(&twin);
    return end(&model);
}

TEST_ON_RANKS(RANKS, sums_that_are_cleared_are_not_reduced)
{
    struct elements of = {.rounds = 2, .factor = 0.25, .tolerance = 1e-6};
    const bool present[2] = {false, true};
    weft_fsdp_group_info info = {.struct_size = sizeof info};
    struct model model = {0};

    WF_TRY(begin(&model, NULL, NULL));
    for (uint64_t round = 0; round < 2; round++) {
        WF_TRY(make_gradients(&model, round));
        WF_TRY(
            weft_fsdp_reduce_begin(model.group, model.gradients, round == 0 ? WEFT_FSDP_LOCAL : 0));
        WF_TRY(weft_fsdp_reduce_end(model.group));
        for (int i = 0; i < 2; i++)
            weft_tensor_release(&model.gradients[i]);
        if (round > 0) continue;
        WF_TRY(weft_fsdp_gradients_clear(model.group));
        WF_TRY(weft_fsdp_group_get(model.group, &info));
        HOLDS(info.bytes_sums == 0);
    }
    of.spec = weft_fsdp_gradient_spec(model.group, 0);
    of.present = present;
    WF_TRY(each_element(weft_fsdp_gradient(model.group, 0), check_gradient, &of));
    return end(&model);
}

/* ---- absent gradients ---- */

/* Rank 1 has no gradient of parameter 0. */
static weft_status lack_a_gradient(void *as_zero)
{
    const weft_fsdp_group_options options = {
        .struct_size = sizeof options, .absent_as_zero = as_zero != NULL, .divide = 1};
    struct model model = {0};
    weft_tensor *gradients[2];

    WF_TRY(begin(&model, NULL, &options));
    for (uint32_t i = 0; i < 2; i++) {
        WF_TRY(weft_fsdp_gradient_create(model.group, i, &model.gradients[i]));
        WF_TRY(weft_tensor_fill(model.gradients[i], 2, NULL));
        gradients[i] = model.gradients[i];
    }
    if (weft_rank(model.context) == 1) gradients[0] = NULL;
    if (as_zero == NULL) {
        FAILS(weft_fsdp_reduce_begin(model.group, gradients, 0), WEFT_ERR_MISMATCH, "rank");
        return end(&model);
    }
    WF_TRY(weft_fsdp_reduce_begin(model.group, gradients, WEFT_FSDP_LOCAL));
    WF_TRY(weft_fsdp_reduce_end(model.group));
    WF_TRY(weft_fsdp_reduce_begin(model.group, gradients, 0));
    WF_TRY(weft_fsdp_reduce_end(model.group));
    WF_TRY(weft_context_wait(model.context, NULL, WEFT_FOREVER));
    if (weft_tensor_shard(weft_fsdp_gradient(model.group, 0))->elements > 0)
        HOLDS(*(float *)weft_tensor_memory(weft_fsdp_gradient(model.group, 0)) == 12);
    return end(&model);
}

TEST(absent_gradients_count_as_zeros_or_must_agree)
{
    ck_assert_msg(weft_threads_run(RANKS, lack_a_gradient, "") == WEFT_OK, "%s", weft_last_error());
    ck_assert_msg(weft_threads_run(RANKS, lack_a_gradient, NULL) == WEFT_OK, "%s",
                  weft_last_error());
}
