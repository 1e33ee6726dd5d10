/* An engine with one arena: gathered parameters and reduced gradients are in memory of the caller,
 * which the group neither allocates nor frees. */
#include "model.h"
#include "support/suite.h"
#include "weft/launch.h"

enum { ARENA = 256 };

/* The caller's memory: gathered parameters, then gradients, one after the other. */
struct arena {
    float elements[ARENA];
    size_t used;
    weft_tensor *gathered[2], *gradients[2];
};

/* A tensor of layout SPEC with PLACEMENTS behind what the arena has. */
static weft_status place(struct model *model, struct arena *arena, const weft_spec *spec,
                         const char *placements, weft_tensor **out)
{
    weft_spec *other = NULL;
    weft_shard shard;

    WF_TRY(weft_spec_with(spec, placements, &other));
    weft_spec_shard(other, weft_rank(model->context), &shard);
    WF_TRY(weft_tensor_wrap(model->context, other, arena->elements + arena->used, NULL, out));
    arena->used += (size_t)shard.elements;
    weft_spec_release(&other);
    HOLDS(arena->used <= ARENA);
    return WEFT_OK;
}

static weft_status begin_arena(struct model *model, struct arena *arena)
{
    WF_TRY(weft_init(NULL, &model->context));
    WF_TRY(make_params(model, "dp=4", "S(0)"));
    for (int i = 0; i < 2; i++)
        WF_TRY(place(model, arena, model->specs[i], "R", &arena->gathered[i]));
    for (int i = 0; i < 2; i++)
        WF_TRY(place(model, arena, model->specs[i], "S(0)", &arena->gradients[i]));
    return weft_fsdp_create(model->context, model->mesh, "dp", NULL, &model->fsdp);
}

static weft_status end_arena(struct model *model, struct arena *arena)
{
    for (int i = 0; i < 2; i++) {
        weft_tensor_release(&arena->gathered[i]);
        weft_tensor_release(&arena->gradients[i]);
    }
    return end(model);
}

static weft_status make_group(struct model *model, const struct arena *arena)
{
    weft_fsdp_param params[2] = {{0}};

    for (int i = 0; i < 2; i++)
        params[i] = (weft_fsdp_param){.tensor = model->params[i],
                                      .gathered = arena->gathered[i],
                                      .gradient = arena->gradients[i]};
    return weft_fsdp_group_create(model->fsdp, 2, params, sizeof *params, NULL, &model->group);
}

/* The same elements, from a group that has its own memory. */
static weft_status expect_step(struct model *model, float *whole, float *reduced, uint64_t round)
{
    weft_fsdp_param params[2] = {{.tensor = model->params[0]}, {.tensor = model->params[1]}};
    size_t at = 0, after = 0;

    WF_TRY(weft_fsdp_group_create(model->fsdp, 2, params, sizeof *params, NULL, &model->group));
    WF_TRY(weft_fsdp_unshard_begin(model->group, WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_unshard_end(model->group));
    for (uint32_t i = 0; i < 2; i++) {
        weft_tensor *parameter = weft_fsdp_parameter(model->group, i);

        WF_TRY(weft_tensor_to_host(parameter, whole + at, (ARENA - at) * sizeof *whole, NULL));
        at += (size_t)weft_tensor_shard(parameter)->elements;
    }
    WF_TRY(make_gradients(model, round));
    WF_TRY(weft_fsdp_reduce_begin(model->group, model->gradients, 0));
    WF_TRY(weft_fsdp_reduce_end(model->group));
    for (uint32_t i = 0; i < 2; i++) {
        weft_tensor *gradient = weft_fsdp_gradient(model->group, i);

        WF_TRY(weft_tensor_to_host(gradient, reduced + after, (ARENA - after) * sizeof *reduced,
                                   NULL));
        after += (size_t)weft_tensor_shard(gradient)->elements;
        weft_tensor_release(&model->gradients[i]);
    }
    weft_fsdp_group_release(&model->group);
    return WEFT_OK;
}

static weft_status step(struct model *model, struct arena *arena, const float *whole,
                        const float *reduced, uint64_t round)
{
    size_t parameters = (7 * 3 + 5), gradients = arena->used - parameters;
    weft_fsdp_group_info info = {.struct_size = sizeof info};

    WF_TRY(weft_fsdp_unshard_begin(model->group, WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_unshard_end(model->group));
    WF_TRY(weft_context_wait(model->context, NULL, WEFT_FOREVER));
    HOLDS(weft_fsdp_parameter(model->group, 1) == arena->gathered[1]);
    HOLDS(memcmp(arena->elements, whole, parameters * sizeof *whole) == 0);
    WF_TRY(weft_fsdp_group_get(model->group, &info));
    HOLDS(info.bytes_gathered == 0);
    WF_TRY(make_gradients(model, round));
    WF_TRY(weft_fsdp_reduce_begin(model->group, model->gradients, 0));
    WF_TRY(weft_fsdp_reduce_end(model->group));
    WF_TRY(weft_context_wait(model->context, NULL, WEFT_FOREVER));
    HOLDS(weft_fsdp_gradient(model->group, 0) == arena->gradients[0]);
    HOLDS(memcmp(arena->elements + parameters, reduced, gradients * sizeof *reduced) == 0);
    WF_TRY(weft_fsdp_group_get(model->group, &info));
    HOLDS(info.bytes_gradients == 0);
    for (int i = 0; i < 2; i++)
        weft_tensor_release(&model->gradients[i]);
    return weft_fsdp_gradients_clear(model->group);
}

TEST_ON_RANKS(RANKS, gathered_parameters_and_gradients_are_in_memory_of_the_caller)
{
    static _Thread_local float whole[ARENA], reduced[ARENA];
    static _Thread_local struct arena arena;
    struct model model = {0};

    memset(&arena, 0, sizeof arena);
    WF_TRY(begin_arena(&model, &arena));
    for (uint64_t round = 0; round < 3; round++) {
        WF_TRY(expect_step(&model, whole, reduced, round));
        memset(arena.elements, 0x5a, sizeof arena.elements); /* between steps it is the caller's */
        WF_TRY(make_group(&model, &arena));
        WF_TRY(step(&model, &arena, whole, reduced, round));
        memset(arena.elements, 0x5a, sizeof arena.elements);
        WF_TRY(step(&model, &arena, whole, reduced, round));
        weft_fsdp_group_release(&model.group);
        HOLDS(weft_tensor_memory(arena.gathered[0]) == arena.elements); /* it is still there */
    }
    return end_arena(&model, &arena);
}

static weft_status refuse(struct model *model, const struct arena *arena, const char *text)
{
    weft_status status = make_group(model, arena);

    HOLDS(status == WEFT_ERR_INVALID && model->group == NULL);
    if (strstr(weft_last_error(), text) != NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_INTERNAL, "\"%s\" is not in: %s", text, weft_last_error());
}

TEST_ON_RANKS(RANKS, memory_that_does_not_fit_is_refused_on_all_ranks)
{
    static _Thread_local struct arena arena;
    struct model model = {0};
    struct arena wrong;

    memset(&arena, 0, sizeof arena);
    WF_TRY(begin_arena(&model, &arena));
    wrong = arena;
    wrong.gathered[1] = arena.gradients[1];
    WF_TRY(refuse(&model, &wrong, "`gathered` has the layout f32[5] S(0); it must have f32[5] R"));
    wrong = arena;
    wrong.gradients[0] = arena.gathered[0];
    WF_TRY(refuse(&model, &wrong, "`gradient` has the layout f32[7,3] R; it must have"));
    wrong = arena;
    wrong.gradients[1] = model.params[1];
    WF_TRY(refuse(&model, &wrong, "`gradient` of parameter 1 and `tensor` of parameter 1 overlap"));
    WF_TRY(make_group(&model, &arena));
    return end_arena(&model, &arena);
}
