/* Each allocation of a training step fails in turn: the call that needs it returns
 * WEFT_ERR_NO_MEMORY, the shards are intact, and nothing is left behind. */
#include "serial.h"
#include "support/allocfail.h"
#include "support/suite.h"
#include "weft/clip.h"

enum { RANKS = 4, PARAMS = 3 };

static struct {
    weft_context *context;
    weft_mesh *mesh;
    weft_tensor *params[PARAMS];
    weft_fsdp *fsdp;
    weft_fsdp_group *groups[2];
    weft_tensor *gradients[PARAMS];
} model;

static weft_status make_groups(void)
{
    const weft_fsdp_group_options options = {.struct_size = sizeof options,
                                             .name = "h.0",
                                             .shard = "dp",
                                             .replicate = "rep",
                                             .reduce_dtype = "f64",
                                             .divide = 3};
    /* On one stream, so that the number of allocations does not depend on the time of its work. */
    weft_fsdp_options limit = {.struct_size = sizeof limit, .groups_max = 2, .one_stream = true};
    weft_fsdp_param params[3] = {
        {.tensor = model.params[0]}, {.tensor = model.params[1]}, {.tensor = model.params[0]}};
    weft_fsdp_param other = {.tensor = model.params[2]};

    WF_TRY(weft_fsdp_create(model.context, model.mesh, "dp", &limit, &model.fsdp));
    WF_TRY(
        weft_fsdp_group_create(model.fsdp, 3, params, sizeof *params, &options, &model.groups[0]));
    WF_TRY(weft_fsdp_group_create(model.fsdp, 1, &other, sizeof other, &options, &model.groups[1]));
    return weft_fsdp_prefetch_set(model.groups[0], WEFT_FSDP_FORWARD, 1, &model.groups[1]);
}

static weft_status reduce(uint32_t flags)
{
    weft_status status = WEFT_OK;

    for (uint32_t i = 0; i < 3 && status == WEFT_OK; i++)
        status = weft_fsdp_gradient_create(model.groups[0], i, &model.gradients[i]);
    if (status == WEFT_OK) status = weft_fsdp_reduce_begin(model.groups[0], model.gradients, flags);
    for (int i = 0; i < 3; i++)
        weft_tensor_release(&model.gradients[i]);
    WF_TRY(status);
    return weft_fsdp_reduce_end(model.groups[0]);
}

static weft_status step(void)
{
    weft_tensor *reduced[2];

    WF_TRY(make_groups());
    WF_TRY(weft_fsdp_unshard_begin(model.groups[0], WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_unshard_end(model.groups[0]));
    WF_TRY(weft_fsdp_unshard_end(model.groups[1]));
    WF_TRY(weft_fsdp_reshard(model.groups[1]));
    WF_TRY(weft_fsdp_reshard_to(model.groups[0], 2));
    WF_TRY(weft_fsdp_unshard_begin(model.groups[0], WEFT_FSDP_BACKWARD));
    WF_TRY(weft_fsdp_unshard_end(model.groups[0]));
    WF_TRY(reduce(WEFT_FSDP_LOCAL | WEFT_FSDP_KEEP));
    WF_TRY(reduce(WEFT_FSDP_SHARD_ONLY));
    WF_TRY(reduce(0));
    for (uint32_t i = 0; i < 2; i++)
        reduced[i] = weft_fsdp_gradient(model.groups[0], i);
    return weft_clip_gradient_norm(model.context, 2, reduced, 1, NULL, NULL, NULL, NULL);
}

static void release(void *unused)
{
    (void)unused;
    weft_fsdp_group_release(&model.groups[0]);
    weft_fsdp_group_release(&model.groups[1]);
    weft_fsdp_release(&model.fsdp);
    ck_assert_int_eq(weft_move_clear(model.context), WEFT_OK);
}

static weft_status step_or_release(void *unused)
{
    weft_status status = step();

    if (status == WEFT_OK) return WEFT_OK;
    wf_mem_fail_at(0);
    release(unused);
    for (uint64_t i = 0; i < PARAMS; i++) {
        struct elements of = {.which = i};

        ck_assert_int_eq(each_element(model.params[i], check_parameter, &of), WEFT_OK);
    }
    return status;
}

TEST(each_allocation_of_a_step_fails_in_turn)
{
    static const char *const texts[PARAMS] = {"f32[7,3] R,S(0)", "bf16[9] R,S(0)", "i32[5] R,S(0)"};
    const weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};
    uint64_t made;

    ck_assert_int_eq(weft_init(&options, &model.context), WEFT_OK);
    ck_assert_int_eq(weft_mesh_parse("rep=2,dp=2", &model.mesh), WEFT_OK);
    for (uint64_t i = 0; i < PARAMS; i++) {
        struct elements of = {.which = i};
        OWNED(weft_spec) *spec = NULL;

        ck_assert_int_eq(weft_spec_parse(model.mesh, texts[i], &spec), WEFT_OK);
        ck_assert_int_eq(weft_tensor_create(model.context, spec, NULL, &model.params[i]), WEFT_OK);
        ck_assert_int_eq(each_element(model.params[i], set_parameter, &of), WEFT_OK);
    }
    made = ALLOCATIONS_FAIL(step_or_release(NULL), release(NULL));
    ck_assert_uint_gt(made, 100);
    for (int i = 0; i < PARAMS; i++)
        weft_tensor_release(&model.params[i]);
    weft_mesh_release(&model.mesh);
    weft_context_release(&model.context);
}
