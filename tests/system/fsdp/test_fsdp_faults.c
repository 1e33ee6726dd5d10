/* Errors of one rank: all ranks get an error, and the shards are intact. */
#include "serial.h"
#include "../tensor/holds.h"
#include "fsdp/fsdp.h"
#include "support/suite.h"
#include "weft/launch.h"

enum { RANKS = 3 };

struct model {
    weft_context *context;
    weft_mesh *mesh;
    weft_spec *spec;
    weft_tensor *params[2];
    weft_fsdp *fsdp;
    weft_fsdp_group *groups[2];
};

/* Two groups of one parameter each. */
static weft_status make(struct model *model, const weft_fsdp_options *options)
{
    WF_TRY(weft_mesh_parse("dp=3", &model->mesh));
    WF_TRY(weft_spec_parse(model->mesh, "f32[7,3] S(0)", &model->spec));
    WF_TRY(weft_fsdp_create(model->context, model->mesh, "dp", options, &model->fsdp));
    for (int i = 0; i < 2; i++) {
        struct elements of = {.which = (uint64_t)i};
        weft_fsdp_param param = {0};

        WF_TRY(weft_tensor_create(model->context, model->spec, NULL, &model->params[i]));
        WF_TRY(each_element(model->params[i], set_parameter, &of));
        param.tensor = model->params[i];
        WF_TRY(
            weft_fsdp_group_create(model->fsdp, 1, &param, sizeof param, NULL, &model->groups[i]));
    }
    return WEFT_OK;
}

/* All work is on the default stream, which is complete when a call returns. */
static weft_status begin(struct model *model)
{
    const weft_fsdp_options options = {.struct_size = sizeof options, .one_stream = true};

    WF_TRY(weft_init(NULL, &model->context));
    return make(model, &options);
}

static void release(struct model *model)
{
    for (int i = 0; i < 2; i++) {
        weft_fsdp_group_release(&model->groups[i]);
        weft_tensor_release(&model->params[i]);
    }
    weft_fsdp_release(&model->fsdp);
    weft_spec_release(&model->spec);
    weft_mesh_release(&model->mesh);
    weft_context_release(&model->context);
}

static weft_status end(struct model *model)
{
    for (int i = 0; i < 2; i++) {
        struct elements of = {.which = (uint64_t)i};

        WF_TRY(each_element(model->params[i], check_parameter, &of));
    }
    release(model);
    return WEFT_OK;
}

/* ---- no memory ---- */

TEST_ON_RANKS(RANKS, without_memory_on_one_rank_all_get_the_error)
{
    weft_fsdp_group_info info = {.struct_size = sizeof info};
    struct model model = {0};
    weft_status status;

    WF_TRY(begin(&model));
    if (weft_rank(model.context) == 1) wf_mem_fail_at(1);
    status = weft_fsdp_unshard_begin(model.groups[0], WEFT_FSDP_FORWARD);
    if (weft_rank(model.context) == 1) {
        HOLDS(wf_mem_made() >= 1);
        wf_mem_fail_at(0);
    }
    HOLDS(status != WEFT_OK);
    HOLDS(strstr(weft_last_error(), "weft_fsdp_unshard_begin on fsdp-gather") != NULL);
    WF_TRY(weft_fsdp_group_get(model.groups[0], &info));
    HOLDS(info.state == WEFT_FSDP_SHARDED && info.bytes_gathered == 0);
    HOLDS(weft_fsdp_unshard_begin(model.groups[1], WEFT_FSDP_FORWARD) != WEFT_OK);
    return end(&model);
}

/* ---- no memory in a reduction ---- */

/* Rank 1 has no memory for its allocation AT in a reduction. */
struct shortage {
    uint64_t at;
    bool is_first; /* the reduction is the first one; otherwise all ranks have its exchange */
    bool happens;
};

/* One parameter that is listed twice, so that its gradients are added up before they travel. */
static weft_status begin_shared(struct model *model, weft_tensor **gradients)
{
    const weft_fsdp_options options = {.struct_size = sizeof options, .one_stream = true};
    const weft_init_options limits = {.struct_size = sizeof limits,
                                      .timeout_ns = 20 * WF_SECOND_NS};
    weft_fsdp_param params[2] = {{0}};

    WF_TRY(weft_init(&limits, &model->context));
    WF_TRY(weft_mesh_parse("dp=3", &model->mesh));
    WF_TRY(weft_spec_parse(model->mesh, "f32[7,3] S(0)", &model->spec));
    WF_TRY(weft_fsdp_create(model->context, model->mesh, "dp", &options, &model->fsdp));
    WF_TRY(weft_tensor_create(model->context, model->spec, NULL, &model->params[0]));
    params[0].tensor = params[1].tensor = model->params[0];
    WF_TRY(weft_fsdp_group_create(model->fsdp, 2, params, sizeof *params, NULL, &model->groups[0]));
    for (uint32_t i = 0; i < 2; i++)
        WF_TRY(weft_fsdp_gradient_create(model->groups[0], i, &gradients[i]));
    return WEFT_OK;
}

static weft_status reduce(weft_fsdp_group *group, weft_tensor *const *gradients)
{
    WF_TRY(weft_fsdp_reduce_begin(group, gradients, 0));
    return weft_fsdp_reduce_end(group);
}

static weft_status lack_memory_to_reduce(void *user)
{
    struct shortage *shortage = user;
    struct model model = {0};
    weft_tensor *gradients[2] = {NULL};
    weft_status status;

    WF_TRY(begin_shared(&model, gradients));
    if (!shortage->is_first) WF_TRY(reduce(model.groups[0], gradients));
    if (weft_rank(model.context) == 1) wf_mem_fail_at(shortage->at);
    status = reduce(model.groups[0], gradients);
    if (weft_rank(model.context) == 1) {
        shortage->happens = wf_mem_made() >= shortage->at;
        wf_mem_fail_at(0);
        HOLDS((status != WEFT_OK) == shortage->happens);
    }
    HOLDS(status != WEFT_ERR_TIMEOUT);
    if (status != WEFT_OK) HOLDS(strstr(weft_last_error(), "memory") != NULL);
    if (shortage->at == 1) HOLDS(status != WEFT_OK);
    for (int i = 0; i < 2; i++)
        weft_tensor_release(&gradients[i]);
    release(&model);
    return WEFT_OK;
}

TEST(without_memory_to_reduce_no_rank_waits)
{
    struct shortage shortage = {.happens = true};

    for (shortage.at = 1; shortage.happens; shortage.at++)
        ck_assert_msg(weft_threads_run(RANKS, lack_memory_to_reduce, &shortage) == WEFT_OK,
                      "allocation %llu: %s", (unsigned long long)shortage.at, weft_last_error());
    shortage.is_first = true;
    for (shortage.at = 1; shortage.at <= 8; shortage.at++)
        ck_assert_msg(weft_threads_run(RANKS, lack_memory_to_reduce, &shortage) == WEFT_OK,
                      "allocation %llu: %s", (unsigned long long)shortage.at, weft_last_error());
}

/* ---- a compute stream that ended too early ---- */

TEST_ON_RANKS(RANKS, without_its_compute_stream_a_group_frees_its_memory)
{
    weft_fsdp_options options = {.struct_size = sizeof options, .groups_max = 1};
    weft_memory_info before = {.struct_size = sizeof before}, after = before;
    weft_fsdp_group_info info = {.struct_size = sizeof info};
    weft_fsdp_param param = {0};
    weft_stream *compute = NULL;
    struct model model = {0};

    WF_TRY(weft_init(NULL, &model.context));
    WF_TRY(weft_mesh_parse("dp=3", &model.mesh));
    WF_TRY(weft_spec_parse(model.mesh, "f32[7,3] S(0)", &model.spec));
    WF_TRY(weft_stream_create(model.context, &compute));
    options.compute = compute;
    WF_TRY(weft_fsdp_create(model.context, model.mesh, "dp", &options, &model.fsdp));
    WF_TRY(weft_tensor_create(model.context, model.spec, NULL, &model.params[0]));
    param.tensor = model.params[0];
    WF_TRY(weft_fsdp_group_create(model.fsdp, 1, &param, sizeof param, NULL, &model.groups[0]));
    WF_TRY(weft_memory_get(model.context, &before));
    WF_TRY(weft_fsdp_unshard_begin(model.groups[0], WEFT_FSDP_FORWARD));
    weft_stream_release(&compute);
    REFUSES(weft_fsdp_reshard(model.groups[0]), "stream");
    WF_TRY(weft_memory_get(model.context, &after));
    HOLDS(after.bytes == before.bytes);
    WF_TRY(weft_fsdp_group_get(model.groups[0], &info));
    HOLDS(info.state == WEFT_FSDP_SHARDED && info.bytes_gathered == 0);
    HOLDS(model.fsdp->groups_gathered == 0);
    release(&model);
    return WEFT_OK;
}

/* ---- ranks that do not do the same ---- */

TEST_ON_RANKS(RANKS, a_rank_that_skips_a_group_is_found)
{
    struct model model = {0};

    WF_TRY(begin(&model));
    FAILS(weft_fsdp_unshard_begin(model.groups[weft_rank(model.context) == 2], WEFT_FSDP_FORWARD),
          WEFT_ERR_MISMATCH, "rank");
    return end(&model);
}

/* ---- work that fails on the streams of gathering and reducing ---- */

/* Begin with the other group than ranks 0 and 1, if this is rank 2. */
static weft_fsdp_group *swapped(const struct model *model, int index)
{
    return model->groups[index ^ (weft_rank(model->context) == 2)];
}

static weft_status reduce_in_order(struct model *model, weft_tensor **gradients)
{
    for (int i = 0; i < 2; i++) {
        WF_TRY(weft_fsdp_gradient_create(model->groups[i], 0, &gradients[i]));
        WF_TRY(weft_fsdp_reduce_begin(model->groups[i], &gradients[i], 0));
        WF_TRY(weft_fsdp_reduce_end(model->groups[i]));
        WF_TRY(weft_fsdp_gradients_clear(model->groups[i]));
    }
    return WEFT_OK;
}

/* The compute stream is the default one, so a wait for it waits on the host. */
TEST_ON_RANKS(RANKS, an_end_returns_the_error_of_its_work)
{
    weft_fsdp_group_info info = {.struct_size = sizeof info};
    weft_tensor *gradients[2] = {NULL};
    struct model model = {0};

    WF_TRY(weft_init(NULL, &model.context));
    WF_TRY(make(&model, NULL));
    WF_TRY(reduce_in_order(&model, gradients));
    WF_TRY(weft_fsdp_unshard_begin(swapped(&model, 0), WEFT_FSDP_FORWARD));
    FAILS(weft_fsdp_unshard_end(swapped(&model, 0)), WEFT_ERR_MISMATCH, "rank 2");
    HOLDS(weft_fsdp_parameter(swapped(&model, 0), 0) == NULL);
    WF_TRY(weft_fsdp_group_get(swapped(&model, 0), &info));
    HOLDS(info.state == WEFT_FSDP_SHARDED && info.bytes_gathered == 0);
    WF_TRY(weft_fsdp_reduce_begin(swapped(&model, 0), &gradients[0], 0));
    FAILS(weft_fsdp_reduce_end(swapped(&model, 0)), WEFT_ERR_MISMATCH, "rank 2");
    HOLDS(weft_fsdp_gradient(swapped(&model, 0), 0) == NULL);
    for (int i = 0; i < 2; i++)
        weft_tensor_release(&gradients[i]);
    return end(&model);
}

/* A wait for another compute stream returns before the work has failed. */
TEST_ON_RANKS(RANKS, the_call_after_a_wait_returns_the_error_of_work)
{
    weft_fsdp_options options = {.struct_size = sizeof options};
    weft_tensor *gradients[2] = {NULL};
    weft_stream *compute = NULL;
    struct model model = {0};
    weft_status status;

    WF_TRY(weft_init(NULL, &model.context));
    WF_TRY(weft_stream_create(model.context, &compute));
    options.compute = compute;
    WF_TRY(make(&model, &options));
    WF_TRY(reduce_in_order(&model, gradients));
    WF_TRY(weft_fsdp_unshard_begin(swapped(&model, 0), WEFT_FSDP_FORWARD));
    status = weft_fsdp_unshard_end(swapped(&model, 0));
    WF_TRY(weft_context_wait(model.context, compute, WEFT_FOREVER));
    if (status == WEFT_OK) status = weft_fsdp_reshard(swapped(&model, 0));
    FAILS(status, WEFT_ERR_MISMATCH, "rank 2");
    WF_TRY(weft_fsdp_reduce_begin(swapped(&model, 0), &gradients[0], 0));
    status = weft_fsdp_reduce_end(swapped(&model, 0));
    WF_TRY(weft_context_wait(model.context, compute, WEFT_FOREVER));
    if (status == WEFT_OK) status = weft_fsdp_gradients_clear(swapped(&model, 0));
    FAILS(status, WEFT_ERR_MISMATCH, "rank 2");
    WF_TRY(weft_fsdp_gradients_clear(swapped(&model, 0)));
    for (int i = 0; i < 2; i++) {
        weft_tensor_release(&gradients[i]);
        weft_fsdp_group_release(&model.groups[i]);
    }
    weft_fsdp_release(&model.fsdp);
    weft_stream_release(&compute);
    return end(&model);
}

/* ---- a rank that ends ---- */

static weft_status results[RANKS];

static weft_status gather(weft_fsdp_group *group)
{
    WF_TRY(weft_fsdp_unshard_begin(group, WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_unshard_end(group));
    return weft_fsdp_reshard(group);
}

/* Rank 1 ends after the first gather; another rank may still be in it, or already in the second. */
static weft_status leave_early(void *unused)
{
    struct model model = {0};
    int32_t rank;

    (void)unused;
    WF_TRY(begin(&model));
    rank = weft_rank(model.context);
    results[rank] = gather(model.groups[0]);
    if (rank == 1) {
        release(&model);
        return weft_fail(WEFT_ERR_INTERNAL, "this rank ends");
    }
    if (results[rank] == WEFT_OK) results[rank] = gather(model.groups[1]);
    return end(&model);
}

TEST(when_a_rank_ends_the_others_do_not_wait_for_it)
{
    ck_assert_int_eq(weft_threads_run(RANKS, leave_early, NULL), WEFT_ERR_INTERNAL);
    ck_assert_msg(strstr(weft_last_error(), "this rank ends") != NULL, "%s", weft_last_error());
    ck_assert_int_ne(results[0], WEFT_OK);
    ck_assert_int_eq(results[1], WEFT_OK);
    ck_assert_int_ne(results[2], WEFT_OK);
}

/* ---- values that are not finite ---- */

TEST_ON_RANKS(RANKS, a_nan_stays_where_it_is)
{
    struct model model = {0};
    weft_tensor *gradient = NULL, *reduced;
    const float *elements;

    WF_TRY(begin(&model));
    WF_TRY(weft_fsdp_gradient_create(model.groups[0], 0, &gradient));
    if (weft_rank(model.context) == 0) ((float *)weft_tensor_memory(gradient))[0] = NAN;
    WF_TRY(weft_fsdp_reduce_begin(model.groups[0], &gradient, 0));
    WF_TRY(weft_fsdp_reduce_end(model.groups[0]));
    reduced = weft_fsdp_gradient(model.groups[0], 0);
    elements = weft_tensor_memory(reduced);
    for (int64_t i = 0; i < weft_tensor_shard(reduced)->elements; i++)
        HOLDS((isnan(elements[i]) != 0) == (weft_rank(model.context) == 0 && i == 0));
    weft_tensor_release(&gradient);
    return end(&model);
}
