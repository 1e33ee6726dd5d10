/* Groups on ranks that are threads: the order of calls, prefetch, memory, and what ranks do
 * differently. */
#include "model.h"
#include "support/suite.h"
#include "weft/launch.h"

/* ---- the order of calls ---- */

TEST_ON_RANKS(RANKS, each_call_out_of_order_has_an_error_of_its_own)
{
    const weft_fsdp_group_options options = {.struct_size = sizeof options, .name = "h.0"};
    struct model model = {0};
    weft_tensor *gathered;

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

/* ---- axes ---- */

TEST_ON_RANKS(RANKS, axes_are_those_of_the_parameter_or_the_group_or_all)
{
    weft_fsdp_options options = {.struct_size = sizeof options, .replicate = "rep"};
    struct model model = {0};
    weft_fsdp_group_options none = {.struct_size = sizeof none, .replicate = ""};
    weft_fsdp_param param = {0};
    const weft_spec *spec;

    WF_TRY(weft_init(NULL, &model.context));
    WF_TRY(make_params(&model, "rep=2,dp=2", "R,S(0)"));
    REFUSES(weft_fsdp_create(model.context, NULL, "dp", NULL, &model.fsdp), "mesh is NULL");
    REFUSES(weft_fsdp_create(model.context, model.mesh, NULL, NULL, &model.fsdp), "axes is NULL");
    FAILS(weft_fsdp_create(model.context, model.mesh, "tp", NULL, &model.fsdp), WEFT_ERR_NOT_FOUND,
          "weft_fsdp_create: ");
    REFUSES(weft_fsdp_create(model.context, model.mesh, "dp,rep", &options, &model.fsdp),
            "axis rep is a shard axis (\"dp,rep\") and a replicate axis (\"rep\")");
    WF_TRY(weft_fsdp_create(model.context, model.mesh, "dp", &options, &model.fsdp));
    param.tensor = model.params[0];
    WF_TRY(weft_fsdp_group_create(model.fsdp, 1, &param, sizeof param, NULL, &model.group));
    spec = weft_fsdp_gradient_spec(model.group, 0); /* the axes are those of weft_fsdp_create */
    for (int32_t a = 0; a < 2; a++)
        HOLDS(weft_spec_placements(spec)[a].kind == WEFT_PLACE_PARTIAL);
    weft_fsdp_group_release(&model.group);
    WF_TRY(weft_fsdp_group_create(model.fsdp, 1, &param, sizeof param, &none, &model.group));
    spec = weft_fsdp_gradient_spec(model.group, 0);
    HOLDS(weft_spec_placements(spec)[0].kind == WEFT_PLACE_REPLICATE);
    HOLDS(weft_spec_placements(spec)[1].kind == WEFT_PLACE_PARTIAL);
    return end(&model);
}

/* ---- groups that cannot be ---- */

TEST_ON_RANKS(RANKS, a_group_that_cannot_be_is_refused_by_all_ranks)
{
    weft_fsdp_group_options options = {.struct_size = sizeof options};
    struct model model = {0};
    weft_fsdp_param params[2] = {{0}};
    weft_fsdp_group *other = NULL;
    weft_tensor *partial = NULL;

    WF_TRY(begin(&model, NULL, NULL));
    params[0].tensor = model.params[0];
    REFUSES(weft_fsdp_group_create(model.fsdp, 1, params, sizeof *params, NULL, &other),
            "another group");
    REFUSES(weft_fsdp_group_create(model.fsdp, 0, params, sizeof *params, NULL, &other),
            "count is 0");
    REFUSES(weft_fsdp_group_create(model.fsdp, 1, params, sizeof *params - 8, NULL, &other),
            "weft_fsdp_group_create: the size of a weft_fsdp_param is given as");
    REFUSES(weft_fsdp_group_create(model.fsdp, 2, params, sizeof *params, NULL, &other),
            "params[1].tensor");
    WF_TRY(
        weft_tensor_create(model.context, weft_fsdp_gradient_spec(model.group, 0), NULL, &partial));
    params[0].tensor = partial;
    REFUSES(weft_fsdp_group_create(model.fsdp, 1, params, sizeof *params, NULL, &other),
            "partial on axis dp; weft_tensor_move reduces it");
    weft_fsdp_group_release(&model.group);
    params[0].tensor = params[1].tensor = model.params[0];
    params[1].frozen = true;
    REFUSES(weft_fsdp_group_create(model.fsdp, 2, params, sizeof *params, NULL, &other),
            "parameter 0 too");
    params[1] = (weft_fsdp_param){.tensor = model.params[0], .shard = ""};
    REFUSES(weft_fsdp_group_create(model.fsdp, 2, params, sizeof *params, NULL, &other),
            "parameter 0 too");
    options.shard = "tp";
    FAILS(weft_fsdp_group_create(model.fsdp, 1, params, sizeof *params, &options, &other),
          WEFT_ERR_NOT_FOUND, "tp");
    options = (weft_fsdp_group_options){.struct_size = sizeof options, .replicate = "dp"};
    REFUSES(weft_fsdp_group_create(model.fsdp, 1, params, sizeof *params, &options, &other),
            "axis dp is a shard axis (\"dp\") and a replicate axis (\"dp\")");
    options = (weft_fsdp_group_options){.struct_size = sizeof options, .reduce_dtype = "i32"};
    REFUSES(weft_fsdp_group_create(model.fsdp, 1, params, sizeof *params, &options, &other),
            "floats");
    options = (weft_fsdp_group_options){.struct_size = sizeof options, .divide = -1};
    REFUSES(weft_fsdp_group_create(model.fsdp, 1, params, sizeof *params, &options, &other),
            "divide");
    weft_tensor_release(&partial);
    return end(&model);
}

TEST_ON_RANKS(RANKS, ranks_with_different_parameters_get_an_error)
{
    struct model model = {0};
    weft_fsdp_param param = {0};

    WF_TRY(weft_init(NULL, &model.context));
    WF_TRY(make_params(&model, "dp=4", "S(0)"));
    WF_TRY(weft_fsdp_create(model.context, model.mesh, "dp", NULL, &model.fsdp));
    param.tensor = model.params[weft_rank(model.context) == 2];
    FAILS(weft_fsdp_group_create(model.fsdp, 1, &param, sizeof param, NULL, &model.group),
          WEFT_ERR_MISMATCH, "weft_fsdp_group_create");
    return end(&model);
}

/* Rank 2 has another option, which the layouts do not show. */
TEST_ON_RANKS(RANKS, ranks_with_different_options_get_an_error)
{
    weft_fsdp_group_options options = {.struct_size = sizeof options, .sum_only = true};
    struct model model = {0};
    weft_fsdp_param params[2] = {{0}};

    WF_TRY(begin(&model, NULL, NULL));
    weft_fsdp_group_release(&model.group);
    for (int i = 0; i < 2; i++)
        params[i].tensor = model.params[i];
    options.divide = weft_rank(model.context) == 2 ? 3 : 5;
    FAILS(weft_fsdp_group_create(model.fsdp, 2, params, sizeof *params, &options, &model.group),
          WEFT_ERR_MISMATCH, "differ in divide: 5 and 3");
    options.divide = 0;
    params[1].frozen = weft_rank(model.context) == 2;
    FAILS(weft_fsdp_group_create(model.fsdp, 2, params, sizeof *params, &options, &model.group),
          WEFT_ERR_MISMATCH, "differ in axes or frozen parameters");
    return end(&model);
}

/* ---- memory ---- */

static weft_status account(struct model *model, uint64_t before)
{
    weft_fsdp_group_info info = {.struct_size = sizeof info};
    weft_memory_info memory = {.struct_size = sizeof memory};
    weft_fsdp_info all = {.struct_size = sizeof all};
    uint64_t sum;

    WF_TRY(weft_fsdp_group_get(model->group, &info));
    WF_TRY(weft_memory_get(model->context, &memory));
    sum = info.bytes_gathered + info.bytes_kept + info.bytes_gradients + info.bytes_sums;
    HOLDS(memory.bytes - before == sum);
    HOLDS(info.bytes_peak >= sum);
    WF_TRY(weft_fsdp_get(model->fsdp, &all));
    HOLDS(all.groups == 1 && all.groups_gathered == (info.state >= WEFT_FSDP_GATHERING));
    HOLDS(all.bytes_gathered + all.bytes_kept + all.bytes_gradients + all.bytes_sums == sum);
    HOLDS(all.bytes_shard == info.bytes_shard);
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, the_memory_report_equals_what_is_allocated)
{
    const weft_fsdp_group_options options = {.struct_size = sizeof options, .reduce_dtype = "f64"};
    weft_memory_info memory = {.struct_size = sizeof memory};
    struct model model = {0};
    weft_fsdp_group_info info = {.struct_size = sizeof info};

    WF_TRY(begin(&model, NULL, &options));
    WF_TRY(make_gradients(&model, 0));
    WF_TRY(weft_memory_get(model.context, &memory));
    WF_TRY(account(&model, memory.bytes));
    WF_TRY(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD));
    WF_TRY(account(&model, memory.bytes));
    WF_TRY(weft_fsdp_unshard_end(model.group));
    WF_TRY(weft_fsdp_group_get(model.group, &info));
    HOLDS(info.bytes_gathered == 64 * 3 && info.state == WEFT_FSDP_GATHERED);
    HOLDS(info.count == 2 && weft_fsdp_group_count(model.group) == 2);
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

/* ---- several groups ---- */

static weft_status prefetch(void *unused)
{
    const weft_fsdp_options options = {.struct_size = sizeof options, .groups_max = 2};
    weft_fsdp_group_info info = {.struct_size = sizeof info};
    weft_fsdp_info all = {.struct_size = sizeof all};
    struct model model = {0};
    weft_fsdp_group *groups[3] = {NULL};
    weft_tensor *extra = NULL;

    (void)unused;
    WF_TRY(begin(&model, &options, NULL));
    weft_fsdp_group_release(&model.group);
    WF_TRY(weft_tensor_create(model.context, model.specs[0], NULL, &extra));
    for (int i = 0; i < 3; i++) {
        weft_fsdp_param param = {.tensor = i < 2 ? model.params[i] : extra};

        WF_TRY(weft_fsdp_group_create(model.fsdp, 1, &param, sizeof param, NULL, &groups[i]));
    }
    WF_TRY(weft_fsdp_get(model.fsdp, &all));
    HOLDS(all.groups == 3 && all.groups_gathered == 0 && all.bytes_gathered == 0);
    WF_TRY(weft_fsdp_prefetch_set(groups[0], WEFT_FSDP_FORWARD, 1, &groups[1]));
    for (int step = 0; step < 3; step++) {
        WF_TRY(weft_fsdp_unshard_begin(groups[0], WEFT_FSDP_FORWARD));
        WF_TRY(weft_fsdp_unshard_end(groups[0]));
        WF_TRY(weft_fsdp_group_get(groups[1], &info));
        HOLDS(info.state == WEFT_FSDP_GATHERING);
        WF_TRY(weft_fsdp_get(model.fsdp, &all));
        HOLDS(all.groups_gathered == 2 && all.bytes_gathered > 0);
        REFUSES(weft_fsdp_unshard_begin(groups[2], WEFT_FSDP_FORWARD), "groups_max");
        WF_TRY(weft_fsdp_reshard(groups[0]));
        WF_TRY(weft_fsdp_unshard_begin(groups[2], WEFT_FSDP_FORWARD));
        if (step > 0) { /* it may be called for a group that is prefetched, once */
            WF_TRY(weft_fsdp_unshard_begin(groups[1], WEFT_FSDP_FORWARD));
            REFUSES(weft_fsdp_unshard_begin(groups[1], WEFT_FSDP_FORWARD), "being gathered");
        }
        WF_TRY(weft_fsdp_unshard_end(groups[1]));
        WF_TRY(weft_fsdp_reshard(groups[1]));
        WF_TRY(weft_fsdp_unshard_begin(groups[0], WEFT_FSDP_BACKWARD));
        WF_TRY(weft_fsdp_unshard_end(groups[0]));
        WF_TRY(weft_fsdp_group_get(groups[1], &info));
        HOLDS(info.state == WEFT_FSDP_SHARDED);
        WF_TRY(weft_fsdp_reshard(groups[0]));
        WF_TRY(weft_fsdp_reshard(groups[2]));
    }
    WF_TRY(weft_fsdp_unshard_begin(groups[2], WEFT_FSDP_FORWARD)); /* nothing beyond the limit */
    WF_TRY(weft_fsdp_unshard_begin(groups[0], WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_unshard_end(groups[0]));
    WF_TRY(weft_fsdp_group_get(groups[1], &info));
    HOLDS(info.state == WEFT_FSDP_SHARDED);
    WF_TRY(weft_fsdp_reshard(groups[0]));
    WF_TRY(weft_fsdp_reshard(groups[2]));
    weft_fsdp_group_release(&groups[1]); /* it is not prefetched any more */
    WF_TRY(weft_fsdp_unshard_begin(groups[0], WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_unshard_end(groups[0]));
    weft_fsdp_group_release(&groups[0]);
    weft_fsdp_group_release(&groups[2]);
    weft_tensor_release(&extra);
    return end(&model);
}

TEST(groups_are_prefetched_within_the_limit)
{
    ck_assert_msg(weft_threads_run(RANKS, prefetch, NULL) == WEFT_OK, "%s", weft_last_error());
}

/* ---- parameters replaced ---- */

TEST_ON_RANKS(RANKS, a_gather_takes_the_parameters_that_are_stored_now)
{
    struct model model = {0};
    weft_tensor *other = NULL;
    struct elements of = {.which = 9};

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

/* ---- the end ---- */

TEST_ON_RANKS(RANKS, groups_outlive_their_context_only_to_be_released)
{
    struct model model = {0};
    weft_context *context;

    WF_TRY(begin(&model, NULL, NULL));
    WF_TRY(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_unshard_end(model.group));
    context = model.context;
    weft_context_release(&context);
    model.context = NULL;
    REFUSES(weft_fsdp_reshard(model.group), "on group: the context was released");
    REFUSES(weft_fsdp_unshard_begin(model.group, WEFT_FSDP_FORWARD),
            "on group: the context was released");
    return end(&model);
}

/* ---- layouts ---- */

TEST(shard_axes_split_after_the_axes_that_split_already)
{
    OWNED(weft_mesh) *mesh = NULL;
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
}
