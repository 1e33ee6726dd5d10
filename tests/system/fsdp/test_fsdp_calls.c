/* Groups on ranks that are threads: the order of calls, shared and frozen parameters, absent
 * gradients, prefetch, memory, and what ranks do differently. */
#include "serial.h"
#include "../tensor/holds.h"
#include "support/suite.h"
#include "weft/launch.h"

enum { RANKS = 4 };

/* What most claims need: a mesh, two parameters and their group. */
struct model {
    weft_context *context;
    weft_mesh *mesh;
    weft_spec *specs[2];
    weft_tensor *params[2], *gradients[2];
    weft_fsdp *fsdp;
    weft_fsdp_group *group;
};

static weft_status make_params(struct model *model, const char *mesh, const char *placements)
{
    const char *const shapes[2] = {"f32[7,3] ", "f32[5] "};
    char text[64];

    WF_TRY(weft_mesh_parse(mesh, &model->mesh));
    for (int i = 0; i < 2; i++) {
        struct elements of = {.which = (uint64_t)i};

        snprintf(text, sizeof text, "%s%s", shapes[i], placements);
        WF_TRY(weft_spec_parse(model->mesh, text, &model->specs[i]));
        WF_TRY(weft_tensor_create(model->context, model->specs[i], NULL, &model->params[i]));
        WF_TRY(each_element(model->params[i], set_parameter, &of));
    }
    return WEFT_OK;
}

static weft_status begin(struct model *model, const weft_fsdp_options *options,
                         const weft_fsdp_group_options *group_options)
{
    weft_fsdp_param params[2] = {{0}};

    WF_TRY(weft_init(NULL, &model->context));
    WF_TRY(make_params(model, "dp=4", "S(0)"));
    for (int i = 0; i < 2; i++)
        params[i].tensor = model->params[i];
    WF_TRY(weft_fsdp_create(model->context, options, &model->fsdp));
    return weft_fsdp_group_create(model->fsdp, 2, params, group_options, &model->group);
}

static weft_status make_gradients(struct model *model, uint64_t round)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct elements of = {
            .which = i, .round = round, .spec = weft_fsdp_gradient_spec(model->group, i)};

        WF_TRY(weft_fsdp_gradient_create(model->group, i, &model->gradients[i]));
        WF_TRY(each_element(model->gradients[i], set_gradient, &of));
    }
    return WEFT_OK;
}

static weft_status end(struct model *model)
{
    weft_fsdp_group_release(&model->group);
    weft_fsdp_release(&model->fsdp);
    for (int i = 0; i < 2; i++) {
        weft_tensor_release(&model->gradients[i]);
        weft_tensor_release(&model->params[i]);
        weft_spec_release(&model->specs[i]);
    }
    weft_mesh_release(&model->mesh);
    weft_context_release(&model->context);
    return WEFT_OK;
}

/* ---- the order of calls ---- */

static weft_status call_out_of_order(void *unused)
{
    const weft_fsdp_group_options options = {.struct_size = sizeof options, .name = "h.0"};
    struct model model = {0};
    weft_tensor *gathered;

    (void)unused;
    WF_TRY(begin(&model, NULL, &options));
    HOLDS(weft_fsdp_parameter(model.group, 0) == NULL);
    REFUSES(weft_fsdp_unshard_end(model.group), "weft_fsdp_unshard_begin is missing");
    REFUSES(weft_fsdp_unshard_end(model.group), "group \"h.0\"");
    REFUSES(weft_fsdp_reshard_to(model.group, 2), "not gathered");
    REFUSES(weft_fsdp_reduce_end(model.group), "weft_fsdp_reduce_begin is missing");
    HOLDS(weft_fsdp_reshard(model.group) == WEFT_OK);
    WF_TRY(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD));
    HOLDS(weft_fsdp_parameter(model.group, 0) == NULL);
    REFUSES(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD), "being gathered");
    WF_TRY(weft_fsdp_unshard_end(model.group));
    REFUSES(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_BACKWARD), "weft_fsdp_reshard");
    REFUSES(weft_fsdp_unshard_end(model.group), "the call was made before");
    REFUSES(weft_fsdp_rebind(model.group, 0, model.params[1]), "gathered");
    REFUSES(weft_fsdp_reshard_to(model.group, 3), "does not divide");
    gathered = weft_tensor_retain(weft_fsdp_parameter(model.group, 0));
    HOLDS(gathered != NULL && weft_tensor_memory(gathered) != NULL);
    WF_TRY(weft_fsdp_reshard(model.group));
    HOLDS(weft_tensor_memory(gathered) == NULL);
    REFUSES(weft_tensor_fill(gathered, 1, NULL), "was resharded");
    WF_TRY(make_gradients(&model, 0));
    HOLDS(weft_fsdp_gradient(model.group, 0) == NULL);
    WF_TRY(weft_fsdp_reduce_begin(model.group, model.gradients, 0));
    HOLDS(weft_fsdp_gradient(model.group, 0) == NULL);
    REFUSES(weft_fsdp_reduce_begin(model.group, model.gradients, 0), "weft_fsdp_reduce_end");
    REFUSES(weft_fsdp_gradients_clear(model.group), "weft_fsdp_reduce_end");
    WF_TRY(weft_fsdp_reduce_end(model.group));
    HOLDS(weft_fsdp_gradient(model.group, 0) != NULL);
    WF_TRY(weft_fsdp_gradients_clear(model.group));
    HOLDS(weft_fsdp_gradient(model.group, 0) == NULL);
    REFUSES(weft_fsdp_reduce_begin(model.group, model.gradients, 64), "flag");
    REFUSES(weft_fsdp_reduce_begin(model.group, model.params, 0), "not P(sum)");
    WF_TRY(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_reshard(model.group)); /* a gather that nobody wanted */
    weft_fsdp_group_release(&model.group);
    REFUSES(weft_tensor_fill(gathered, 1, NULL), "its group was released");
    weft_tensor_release(&gathered);
    return end(&model);
}

START_TEST(each_call_out_of_order_has_an_error_of_its_own)
{
    ck_assert_msg(weft_threads_run(RANKS, call_out_of_order, NULL) == WEFT_OK, "%s",
                  weft_last_error());
}
END_TEST

/* ---- groups that cannot be ---- */

static weft_status make_wrong_groups(void *unused)
{
    weft_fsdp_group_options options = {.struct_size = sizeof options};
    struct model model = {0};
    weft_fsdp_param params[2] = {{0}};
    weft_fsdp_group *other = NULL;
    weft_tensor *partial = NULL;

    (void)unused;
    WF_TRY(begin(&model, NULL, NULL));
    params[0].tensor = model.params[0];
    REFUSES(weft_fsdp_group_create(model.fsdp, 1, params, NULL, &other), "another group");
    REFUSES(weft_fsdp_group_create(model.fsdp, 0, params, NULL, &other), "count is 0");
    REFUSES(weft_fsdp_group_create(model.fsdp, 2, params, NULL, &other), "params[1].tensor");
    WF_TRY(
        weft_tensor_create(model.context, weft_fsdp_gradient_spec(model.group, 0), NULL, &partial));
    params[0].tensor = partial;
    REFUSES(weft_fsdp_group_create(model.fsdp, 1, params, NULL, &other), "partial");
    weft_fsdp_group_release(&model.group);
    params[0].tensor = model.params[0];
    options.shard = "tp";
    FAILS(weft_fsdp_group_create(model.fsdp, 1, params, &options, &other), WEFT_ERR_NOT_FOUND,
          "tp");
    options = (weft_fsdp_group_options){.struct_size = sizeof options, .replicate = "dp"};
    REFUSES(weft_fsdp_group_create(model.fsdp, 1, params, &options, &other), "also");
    options = (weft_fsdp_group_options){.struct_size = sizeof options, .reduce_dtype = "i32"};
    REFUSES(weft_fsdp_group_create(model.fsdp, 1, params, &options, &other), "floats");
    options = (weft_fsdp_group_options){.struct_size = sizeof options, .divide = -1};
    REFUSES(weft_fsdp_group_create(model.fsdp, 1, params, &options, &other), "divide");
    weft_tensor_release(&partial);
    return end(&model);
}

START_TEST(a_group_that_cannot_be_is_refused_by_all_ranks)
{
    ck_assert_msg(weft_threads_run(RANKS, make_wrong_groups, NULL) == WEFT_OK, "%s",
                  weft_last_error());
}
END_TEST

static weft_status differ_in_parameters(void *unused)
{
    struct model model = {0};
    weft_fsdp_param param = {0};

    (void)unused;
    WF_TRY(weft_init(NULL, &model.context));
    WF_TRY(make_params(&model, "dp=4", "S(0)"));
    WF_TRY(weft_fsdp_create(model.context, NULL, &model.fsdp));
    param.tensor = model.params[weft_rank(model.context) == 2];
    FAILS(weft_fsdp_group_create(model.fsdp, 1, &param, NULL, &model.group), WEFT_ERR_MISMATCH,
          "weft_fsdp_group_create");
    return end(&model);
}

START_TEST(ranks_with_different_parameters_get_an_error)
{
    ck_assert_msg(weft_threads_run(RANKS, differ_in_parameters, NULL) == WEFT_OK, "%s",
                  weft_last_error());
}
END_TEST

/* ---- shared and frozen parameters ---- */

static weft_status share_a_parameter(void *unused)
{
    struct model model = {0};
    weft_fsdp_param params[3] = {{0}};
    weft_tensor *gradients[3] = {NULL};
    struct elements of = {.which = 0, .rounds = 2, .factor = 0.25, .tolerance = 1e-6};

    (void)unused;
    WF_TRY(begin(&model, NULL, NULL));
    weft_fsdp_group_release(&model.group);
    params[0].tensor = params[2].tensor = model.params[0];
    params[1] = (weft_fsdp_param){.tensor = model.params[1], .frozen = true};
    WF_TRY(weft_fsdp_group_create(model.fsdp, 3, params, NULL, &model.group));
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

START_TEST(a_shared_parameter_is_gathered_once_and_its_gradients_are_added)
{
    ck_assert_msg(weft_threads_run(RANKS, share_a_parameter, NULL) == WEFT_OK, "%s",
                  weft_last_error());
}
END_TEST

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
    WF_TRY(weft_stream_wait(model.context, NULL, WEFT_FOREVER));
    if (weft_tensor_shard(weft_fsdp_gradient(model.group, 0))->elements > 0)
        HOLDS(*(float *)weft_tensor_memory(weft_fsdp_gradient(model.group, 0)) == 12);
    return end(&model);
}

START_TEST(absent_gradients_count_as_zeros_or_must_agree)
{
    ck_assert_msg(weft_threads_run(RANKS, lack_a_gradient, "") == WEFT_OK, "%s", weft_last_error());
    ck_assert_msg(weft_threads_run(RANKS, lack_a_gradient, NULL) == WEFT_OK, "%s",
                  weft_last_error());
}
END_TEST

/* ---- memory ---- */

static weft_status account(struct model *model, uint64_t before)
{
    weft_fsdp_group_info info = {.struct_size = sizeof info};
    weft_memory_info memory = {.struct_size = sizeof memory};
    uint64_t sum;

    WF_TRY(weft_fsdp_group_get(model->group, &info));
    WF_TRY(weft_memory_get(model->context, &memory));
    sum = info.bytes_gathered + info.bytes_kept + info.bytes_gradients + info.bytes_sums;
    HOLDS(memory.bytes - before == sum);
    HOLDS(info.bytes_peak >= sum);
    return WEFT_OK;
}

static weft_status count_memory(void *unused)
{
    const weft_fsdp_group_options options = {.struct_size = sizeof options, .reduce_dtype = "f64"};
    weft_memory_info memory = {.struct_size = sizeof memory};
    struct model model = {0};
    weft_fsdp_group_info info = {.struct_size = sizeof info};

    (void)unused;
    WF_TRY(begin(&model, NULL, &options));
    WF_TRY(make_gradients(&model, 0));
    WF_TRY(weft_memory_get(model.context, &memory));
    WF_TRY(account(&model, memory.bytes));
    WF_TRY(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD));
    WF_TRY(account(&model, memory.bytes));
    WF_TRY(weft_fsdp_unshard_end(model.group));
    WF_TRY(weft_fsdp_group_get(model.group, &info));
    HOLDS(info.bytes_gathered == 64 * 3 && info.state == WEFT_FSDP_GATHERED);
    HOLDS(info.bytes_received == (21 - 3) * 4 + (5 - 0) * 4);
    WF_TRY(weft_fsdp_reshard_to(model.group, 2));
    REFUSES(weft_fsdp_rebind(model.group, 0, model.params[1]), "parts of the parameters are kept");
    WF_TRY(account(&model, memory.bytes));
    WF_TRY(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_BACKWARD));
    WF_TRY(weft_fsdp_unshard_end(model.group));
    WF_TRY(account(&model, memory.bytes));
    WF_TRY(weft_fsdp_reduce_begin(model.group, model.gradients, WEFT_FSDP_LOCAL | WEFT_FSDP_KEEP));
    WF_TRY(weft_fsdp_reduce_end(model.group));
    WF_TRY(account(&model, memory.bytes));
    WF_TRY(weft_fsdp_reduce_begin(model.group, model.gradients, 0));
    WF_TRY(account(&model, memory.bytes));
    WF_TRY(weft_fsdp_reduce_end(model.group));
    WF_TRY(account(&model, memory.bytes));
    WF_TRY(weft_fsdp_group_get(model.group, &info));
    HOLDS(info.bytes_gathered == 0 && info.bytes_sums == 0 && info.bytes_gradients > 0);
    weft_fsdp_group_release(&model.group);
    WF_TRY(weft_memory_get(model.context, &memory));
    return end(&model);
}

START_TEST(the_memory_report_equals_what_is_allocated)
{
    ck_assert_msg(weft_threads_run(RANKS, count_memory, NULL) == WEFT_OK, "%s", weft_last_error());
}
END_TEST

/* ---- several groups ---- */

static weft_status prefetch(void *unused)
{
    const weft_fsdp_options options = {.struct_size = sizeof options, .groups_max = 2};
    weft_fsdp_group_info info = {.struct_size = sizeof info};
    struct model model = {0};
    weft_fsdp_group *groups[3] = {NULL};
    weft_tensor *extra = NULL;

    (void)unused;
    WF_TRY(begin(&model, &options, NULL));
    weft_fsdp_group_release(&model.group);
    WF_TRY(weft_tensor_create(model.context, model.specs[0], NULL, &extra));
    for (int i = 0; i < 3; i++) {
        weft_fsdp_param param = {.tensor = i < 2 ? model.params[i] : extra};

        WF_TRY(weft_fsdp_group_create(model.fsdp, 1, &param, NULL, &groups[i]));
    }
    WF_TRY(weft_fsdp_prefetch_set(groups[0], WEFT_FSDP_FORWARD, 1, &groups[1]));
    for (int step = 0; step < 3; step++) {
        WF_TRY(weft_fsdp_unshard_begin(groups[0], WEFT_FSDP_FORWARD));
        WF_TRY(weft_fsdp_unshard_end(groups[0]));
        WF_TRY(weft_fsdp_group_get(groups[1], &info));
        HOLDS(info.state == WEFT_FSDP_GATHERING);
        REFUSES(weft_fsdp_unshard_begin(groups[2], WEFT_FSDP_FORWARD), "groups_max");
        WF_TRY(weft_fsdp_reshard(groups[0]));
        WF_TRY(weft_fsdp_unshard_begin(groups[2], WEFT_FSDP_FORWARD));
        WF_TRY(weft_fsdp_unshard_end(groups[1]));
        WF_TRY(weft_fsdp_reshard(groups[1]));
        WF_TRY(weft_fsdp_unshard_begin(groups[0], WEFT_FSDP_BACKWARD));
        WF_TRY(weft_fsdp_unshard_end(groups[0]));
        WF_TRY(weft_fsdp_group_get(groups[1], &info));
        HOLDS(info.state == WEFT_FSDP_SHARDED);
        WF_TRY(weft_fsdp_reshard(groups[0]));
        WF_TRY(weft_fsdp_reshard(groups[2]));
    }
    for (int i = 0; i < 3; i++)
        weft_fsdp_group_release(&groups[i]);
    weft_tensor_release(&extra);
    return end(&model);
}

START_TEST(groups_are_prefetched_within_the_limit)
{
    ck_assert_msg(weft_threads_run(RANKS, prefetch, NULL) == WEFT_OK, "%s", weft_last_error());
}
END_TEST

/* ---- parameters replaced ---- */

static weft_status replace(void *unused)
{
    struct model model = {0};
    weft_tensor *other = NULL;
    struct elements of = {.which = 9};

    (void)unused;
    WF_TRY(begin(&model, NULL, NULL));
    WF_TRY(weft_tensor_create(model.context, model.specs[0], NULL, &other));
    WF_TRY(each_element(other, set_parameter, &of));
    REFUSES(weft_fsdp_rebind(model.group, 1, other), "another layout");
    REFUSES(weft_fsdp_rebind(model.group, 7, other), "index is 7");
    for (int i = 0; i < 2; i++) { /* twice is once */
        WF_TRY(weft_fsdp_rebind(model.group, 0, other));
        WF_TRY(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD));
        WF_TRY(weft_fsdp_unshard_end(model.group));
        WF_TRY(each_element(weft_fsdp_parameter(model.group, 0), check_parameter, &of));
        WF_TRY(weft_fsdp_reshard(model.group));
    }
    of.which = 5; /* set in place */
    WF_TRY(each_element(other, set_parameter, &of));
    WF_TRY(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_unshard_end(model.group));
    WF_TRY(each_element(weft_fsdp_parameter(model.group, 0), check_parameter, &of));
    weft_tensor_release(&other);
    weft_fsdp_release(&model.fsdp); /* it ends with its group */
    WF_TRY(weft_fsdp_reshard(model.group));
    WF_TRY(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD));
    return end(&model);
}

START_TEST(a_gather_takes_the_parameters_that_are_stored_now)
{
    ck_assert_msg(weft_threads_run(RANKS, replace, NULL) == WEFT_OK, "%s", weft_last_error());
}
END_TEST

/* ---- the end ---- */

static weft_status release_context_first(void *unused)
{
    struct model model = {0};
    weft_context *context;

    (void)unused;
    WF_TRY(begin(&model, NULL, NULL));
    WF_TRY(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_unshard_end(model.group));
    context = model.context;
    weft_context_release(&context);
    model.context = NULL;
    REFUSES(weft_fsdp_reshard(model.group), "context of group was released");
    return end(&model);
}

START_TEST(groups_outlive_their_context_only_to_be_released)
{
    ck_assert_msg(weft_threads_run(RANKS, release_context_first, NULL) == WEFT_OK, "%s",
                  weft_last_error());
}
END_TEST

/* ---- layouts ---- */

START_TEST(shard_axes_split_after_the_axes_that_split_already)
{
    weft_mesh *mesh = NULL;
    weft_spec *whole = NULL, *spec = NULL, *expected = NULL;

    ck_assert_int_eq(weft_mesh_parse("dp=2,tp=2", &mesh), WEFT_OK);
    ck_assert_int_eq(weft_spec_parse(mesh, "f32[8,4] R,S(0)", &whole), WEFT_OK);
    ck_assert_int_eq(weft_fsdp_shard_spec(whole, "dp", 0, &spec), WEFT_OK);
    ck_assert_int_eq(weft_spec_parse(mesh, "f32[8,4] S(0)[1],S(0)[0]", &expected), WEFT_OK);
    ck_assert_ptr_eq(spec, expected);
    weft_spec_release(&spec);
    ck_assert_int_eq(weft_fsdp_shard_spec(whole, "tp", 0, &spec), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_fsdp_shard_spec(whole, "dp", 2, &spec), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_fsdp_shard_spec(whole, "pp", 0, &spec), WEFT_ERR_NOT_FOUND);
    weft_spec_release(&expected);
    weft_spec_release(&whole);
    weft_mesh_release(&mesh);
}
END_TEST

SUITE(fsdp_calls, each_call_out_of_order_has_an_error_of_its_own,
      a_group_that_cannot_be_is_refused_by_all_ranks, ranks_with_different_parameters_get_an_error,
      a_shared_parameter_is_gathered_once_and_its_gradients_are_added,
      absent_gradients_count_as_zeros_or_must_agree, the_memory_report_equals_what_is_allocated,
      groups_are_prefetched_within_the_limit, a_gather_takes_the_parameters_that_are_stored_now,
      groups_outlive_their_context_only_to_be_released,
      shard_axes_split_after_the_axes_that_split_already)
