/* Plans on a plugin without a kernel table: they bind and run, and the log says so once. */
#include "exec/host/host.h"
#include "support/caught.h"
#include "support/lone_rank.h"
#include "support/suite.h"

static int count(const char *text, const char *part)
{
    int found = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        found++;
    return found;
}

/* Transpose six elements by strides, twice. */
static void bind_and_run(weft_context *context, const weft_plan *plan)
{
    static const int64_t strides[] = {1, 3};
    weft_bind_options options = {.struct_size = sizeof options, .target_strides = strides};
    static const float from[] = {0, 1, 2, 3, 4, 5};
    float to[9] = {9, 9, 9, 9, 9, 9, 9, 9, 9};
    weft_bound *bound = NULL;
    uint64_t bytes = 1;

    ck_assert_int_eq(weft_plan_scratch(plan, weft_world(context), &options, &bytes), WEFT_OK);
    ck_assert_uint_eq(bytes, 0);
    ck_assert_int_eq(weft_plan_bind(plan, weft_world(context), &options, &bound), WEFT_OK);
    ck_assert(weft_bound_is_packed(bound));
    ck_assert_int_eq(weft_redistribute(bound, from, to, NULL, NULL), WEFT_OK);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            ck_assert(to[i + 3 * j] == from[3 * i + j]);
    ck_assert(to[2] == 9 && to[5] == 9 && to[8] == 9); /* gaps */
    weft_bound_release(&bound);
}

static weft_status query_device_memory(void *device, const void *pointer, weft_pointer_info *out)
{
    (void)device, (void)pointer;
    out->kind = WEFT_MEMORY_DEVICE;
    return WEFT_OK;
}

static void check_notice(uint64_t features, const char *cost)
{
    weft_spec *spec = spec_of("1", "f32[2,3] R");
    weft_plan *plan = NULL;
    weft_context *context;
    weft_device_table device;
    weft_plugin plugin;
    const weft_plugin *before;
    const char *text;

    fake_reset();
    ck_assert_int_eq(weft_plan_create(spec, spec, NULL, &plan), WEFT_OK);
    for (int each = 0; each < 2; each++) { /* contexts */
        context = world_alone();
        context->features = features;
        before = context->plugin;
        plugin = *before;
        device = *before->device;
        device.query_pointer = query_device_memory;
        plugin.device = &device;
        context->plugin = &plugin;
        catch_begin();
        for (int i = 0; i < 3; i++)
            bind_and_run(context, plan);
        text = catch_end();
        ck_assert_msg(count(text, "backend fake has no kernel table") == 1, "%s", text);
        ck_assert_msg(count(text, cost) == 1, "%s", text);
        context->plugin = before;
        weft_context_release(&context);
    }
    weft_plan_release(&plan);
    weft_spec_release(&spec);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(a_plugin_without_kernels_runs_plans_and_the_log_says_so_once)
{
    check_notice(WEFT_FEATURE_HOST_MEMORY | WEFT_FEATURE_INLINE, "reduces on the host");
    check_notice(WEFT_FEATURE_INLINE, "copies its data to the host and back");
}

/* A plugin that cannot reduce regions; the plans of two contexts sum packed contributions. */
TEST(a_plugin_without_regions_reduce_is_named_once)
{
    static weft_plugin plugin;
    const weft_plugin *before;
    struct lone_rank lone;
    const char *text;

    for (int each = 0; each < 2; each++) {
        lone_begin(&lone, 0, 2);
        before = lone.context->plugin;
        plugin = *before;
        plugin.kernel = &keeping_kernel;
        lone.context->plugin = &plugin;
        lone.bound->packed = true;
        catch_begin();
        for (int i = 0; i < 3; i++) {
            ck_assert_int_eq(
                lone_act(&lone, WEFT_STEP_REDUCE_SCATTER, "2", "f32[8] P", "f32[8] S(0)"), WEFT_OK);
            ck_assert_ptr_nonnull(lone.action.packing.average); /* the host reduces */
            lone_clear(&lone);
        }
        text = catch_end();
        ck_assert_msg(count(text, "backend fake has no regions_reduce in its kernel table") == 1,
                      "%s", text);
        ck_assert_msg(count(text, "no kernel table") == 0, "%s", text);
        lone.context->plugin = before;
        lone_end(&lone);
    }
    ck_assert_int_eq(wf_mem_live(), 0);
}

static weft_status answer; /* of a backend that is asked whether it can reduce */

static weft_status reduce_regions(void *list, uint32_t dtype, uint32_t reduction, uint32_t size,
                                  const void *const *sources, void *const *targets, void *stream)
{
    const struct kept_regions *asked = list;

    (void)dtype, (void)reduction, (void)size, (void)sources, (void)targets, (void)stream;
    ck_assert_uint_eq(asked->count, 0);
    return answer;
}

/* A GPU plugin has no kernels for some devices.  Binding finds it. */
TEST(a_plugin_that_refuses_reductions_is_asked_before_it_runs)
{
    weft_kernel_table kernel = keeping_kernel;
    weft_plugin plugin;
    const weft_plugin *before;
    struct lone_rank lone;
    const char *text;

    kernel.regions_reduce = reduce_regions;
    for (int refuses = 0; refuses < 2; refuses++) {
        answer = refuses ? WEFT_ERR_UNSUPPORTED : WEFT_ERR_INVALID; /* it is asked without memory */
        lone_begin(&lone, 0, 2);
        before = lone.context->plugin;
        plugin = *before;
        plugin.kernel = lone.bound->kernel = &kernel;
        lone.context->plugin = &plugin;
        lone.bound->packed = true;
        catch_begin();
        ck_assert_int_eq(lone_act(&lone, WEFT_STEP_REDUCE_SCATTER, "2", "f32[8] P", "f32[8] S(0)"),
                         WEFT_OK);
        ck_assert(refuses == (lone.action.packing.average != NULL));
        lone_clear(&lone);
        text = catch_end();
        ck_assert_msg(count(text, "backend fake has no kernels for reductions") == refuses, "%s",
                      text);
        lone.context->plugin = before;
        lone_end(&lone);
    }
    ck_assert_int_eq(wf_mem_live(), 0);
}

/* All ranks pull or pack an all-reduce that the backend of one of them refuses. */
TEST(an_all_reduce_that_a_backend_refuses_is_pulled_or_packed)
{
    struct lone_rank lone;

    lone_begin(&lone, 0, 2);
    for (int way = 0; way < 4; way++) {
        int refused = way % 2;

        lone.bound->packed = way >= 2;
        lone.bound->ways.denied[WEFT_COLL_ALL_REDUCE] = refused ? UINT32_C(1) << WEFT_DTYPE_I16 : 0;
        ck_assert_int_eq(lone_act(&lone, WEFT_STEP_ALL_REDUCE, "2", "i16[8] P", "i16[8] R"),
                         WEFT_OK);
        ck_assert_int_eq(lone.action.type, !refused             ? WF_ACTION_COLLECTIVE
                                           : lone.bound->packed ? WF_ACTION_PACKED
                                                                : WF_ACTION_PULL);
        lone_clear(&lone);
        ck_assert_int_eq(lone_act(&lone, WEFT_STEP_ALL_REDUCE, "2", "f32[8] P", "f32[8] R"),
                         WEFT_OK);
        ck_assert_int_eq(lone.action.type, WF_ACTION_COLLECTIVE);
        lone_clear(&lone);
    }
    lone_end(&lone);
}

TEST(memory_is_filled_with_any_element)
{
    static double target[3001];
    const uint64_t counts[] = {0, 1, 512, 513, 3000};
    const double value = 1.5;
    OWNED(weft_context) *context = NULL;

    fake_reset();
    context = world_alone();
    for (size_t c = 0; c < WF_COUNT(counts); c++) {
        memset(target, 0, sizeof target);
        ck_assert_int_eq(wf_kernels_of(context)->fill(wf_kernels_device(context), WEFT_DTYPE_F64,
                                                      counts[c], &value, target, NULL),
                         WEFT_OK);
        for (uint64_t i = 0; i < WF_COUNT(target); i++)
            ck_assert(target[i] == (i < counts[c] ? value : 0));
    }
}
