#include "support/fake_world.h"
#include "support/folder.h"
#include "support/suite.h"

static weft_status cost(void *device, const weft_support_query *query, uint64_t bytes,
                        weft_cost *out)
{
    (void)device;
    (void)bytes;
    out->latency_ns = 7000 * (uint64_t)query->size;
    out->femtoseconds_per_byte = 12345;
    return WEFT_OK;
}

static weft_context *alone(const weft_plugin *plugin)
{
    weft_init_options options = {.struct_size = sizeof options, .size = 1};
    weft_context *context = NULL;

    ck_assert_msg(wf_context_create(&options, plugin, &context) == WEFT_OK, "%s",
                  weft_last_error());
    return context;
}

TEST(without_a_word_the_built_in_table_counts)
{
    weft_context *context;

    fake_reset();
    unsetenv("WEFT_COSTS");
    context = alone(fake_plugin());
    ck_assert_str_eq(weft_context_costs(context)->name, "h100");
    weft_context_release(&context);
    ck_assert_ptr_null(weft_context_costs(NULL));
}

static weft_status pull(void *comm, const weft_pull_args *args)
{
    (void)comm, (void)args;
    return WEFT_OK;
}

static weft_status describe_device(void *device, weft_device_info *out)
{
    weft_status status = fake_plugin()->device->describe(device, out);

    out->features &= ~(uint64_t)WEFT_FEATURE_HOST_MEMORY;
    return status;
}

static weft_status describe_host(void *device, weft_device_info *out)
{
    weft_status status = fake_plugin()->device->describe(device, out);

    out->features |= WEFT_FEATURE_HOST_MEMORY;
    return status;
}

TEST(ranks_that_pull_pack_nothing)
{
    weft_plugin plugin = *fake_plugin();
    weft_comm_table comm = *plugin.comm;
    weft_device_table device = *plugin.device;
    weft_context *context;

    fake_reset();
    unsetenv("WEFT_COSTS");
    comm.pull = pull;
    plugin.comm = &comm;
    plugin.device = &device;
    device.describe = describe_host;
    context = alone(&plugin);
    ck_assert_str_eq(weft_context_costs(context)->name, "cpu");
    weft_context_release(&context);
    device.describe = describe_device;
    context = alone(&plugin);
    ck_assert_str_eq(weft_context_costs(context)->name, "fake");
    ck_assert(weft_context_costs(context)->one_sided);
    ck_assert_uint_eq(
        weft_context_costs(context)->rates[WEFT_STEP_EXCHANGE][WF_WITHIN_HOST].base_ns, 8600);
    weft_context_release(&context);
}

TEST(a_plugin_that_knows_its_costs_is_asked)
{
    weft_plugin plugin = *fake_plugin();
    weft_comm_table table = *plugin.comm;
    const struct wf_rate *rate;
    weft_context *context;

    fake_reset();
    unsetenv("WEFT_COSTS");
    table.cost = cost;
    plugin.comm = &table;
    context = alone(&plugin);
    ck_assert_str_eq(weft_context_costs(context)->name, "fake");
    rate = &weft_context_costs(context)->rates[WEFT_STEP_ALL_GATHER][WF_WITHIN_HOST];
    ck_assert_uint_eq(rate->peer_ns, 7000);
    ck_assert_uint_eq(rate->base_ns, 7000);
    weft_context_release(&context);
    setenv("WEFT_COSTS", "dtensor", 1); /* the user's setting has precedence */
    context = alone(&plugin);
    ck_assert_str_eq(weft_context_costs(context)->name, "dtensor");
    weft_context_release(&context);
    unsetenv("WEFT_COSTS");
}

TEST(a_table_is_read_from_a_file)
{
    struct folder folder = folder_create();
    weft_cost_table *table, *mine;
    char text[4096], path[512];
    FILE *file;

    ck_assert_int_eq(weft_cost_table_open("cpu", &table), WEFT_OK);
    ck_assert_int_eq(wf_cost_copy(table, "my-host", &mine), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_print(mine, text, sizeof text, NULL), WEFT_OK);
    snprintf(path, sizeof path, "%s/costs", folder.path);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    ck_assert_int_eq(weft_cost_table_open(path, &table), WEFT_OK);
    ck_assert_uint_eq(weft_cost_table_digest(table), weft_cost_table_digest(mine));
    weft_cost_table_release(&table);
    weft_cost_table_release(&mine);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("weft-cost 2\n", file);
    fclose(file);
    ck_assert_int_eq(weft_cost_table_open(path, &table), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), path));
    ck_assert_int_eq(weft_cost_table_open("nowhere", &table), WEFT_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "nor a file"));
    ck_assert_int_eq(weft_cost_table_open(path, NULL), WEFT_ERR_INVALID);
    folder_remove(&folder);
}

TEST(without_a_name_the_variable_counts)
{
    weft_cost_table *table = NULL;

    unsetenv("WEFT_COSTS");
    ck_assert_int_eq(weft_cost_table_open(NULL, &table), WEFT_OK);
    ck_assert_str_eq(weft_cost_table_name(table), "h100");
    weft_cost_table_release(&table);
    setenv("WEFT_COSTS", "dtensor", 1);
    ck_assert_int_eq(weft_cost_table_open(NULL, &table), WEFT_OK);
    ck_assert_str_eq(weft_cost_table_name(table), "dtensor");
    weft_cost_table_release(&table);
    unsetenv("WEFT_COSTS");
}
