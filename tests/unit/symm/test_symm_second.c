#include "symm/symm.h"
#include "support/fake_symm.h"
#include "support/fake_world.h"
#include "support/suite.h"

/* A second plugin like the fake one, on the test's own device. */
static uint64_t second_features;
static const char *second_uuid;
static int second_devices;
static void *wrapped;
static int wraps;

static weft_status second_open(const weft_device_options *options, void **device)
{
    (void)options;
    second_devices++;
    *device = &second_devices;
    return WEFT_OK;
}

static void second_close(void *device)
{
    (void)device;
    second_devices--;
}

static weft_status second_describe(void *device, weft_device_info *out)
{
    (void)device;
    out->features = second_features;
    snprintf(out->name, sizeof out->name, "another device");
    snprintf(out->uuid, sizeof out->uuid, "%s", second_uuid);
    return WEFT_OK;
}

static weft_status second_wrap(void *device, void *native, void **stream)
{
    (void)device;
    wrapped = native;
    wraps++;
    *stream = &wraps;
    return WEFT_OK;
}

static void second_stream_destroy(void *device, void *stream)
{
    (void)device;
    (void)stream;
    wraps--;
}

static weft_device_table second_device;
static weft_plugin second_plugin;

/* A context on PLUGIN that gets symmetric memory from the second plugin. */
static weft_context *begin(const weft_plugin *plugin)
{
    weft_context *context;

    fake_reset();
    second_features = WEFT_FEATURE_HOST_MEMORY | WEFT_FEATURE_INLINE;
    second_uuid = "";
    second_devices = 0;
    second_device = fake_device;
    second_device.open = second_open;
    second_device.close = second_close;
    second_device.describe = second_describe;
    second_plugin = *fake_symm_plugin();
    second_plugin.name = "second";
    second_plugin.device = &second_device;
    context = world_alone_on(plugin);
    wf_symm_state(context)->plugin = &second_plugin;
    return context;
}

TEST(memory_comes_from_the_second)
{
    weft_context *context = begin(fake_plugin());
    weft_symm *symm = NULL;

    ck_assert_int_eq(wf_symm_start(context), WEFT_OK);
    ck_assert_int_eq(second_devices, 1);
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, NULL, &symm), WEFT_OK);
    ck_assert_str_eq(weft_symm_backend(symm), "second");
    ck_assert_ptr_ne(symm->symm_comm, weft_world(context));
    ck_assert_str_eq(symm->symm_comm->name, "world on second");
    ck_assert_int_eq(weft_context_bind_thread(context), WEFT_OK);
    weft_symm_release(&symm);
    weft_context_release(&context);
    ck_assert_int_eq(second_devices, 0);
    ck_assert_int_eq(fake.prepared, fake.destroyed);
}

TEST(a_part_gets_a_communicator_on_first_use)
{
    weft_context *context = begin(fake_plugin());
    weft_comm *part;
    weft_symm *symm = NULL, *more = NULL;

    ck_assert_int_eq(wf_symm_start(context), WEFT_OK);
    ck_assert_int_eq(weft_comm_split(weft_world(context), 0, 0, NULL, &part), WEFT_OK);
    ck_assert_ptr_null(part->attached);
    ck_assert_int_eq(weft_symm_create(part, 64, NULL, &symm), WEFT_OK);
    ck_assert_int_eq(weft_symm_create(part, 64, NULL, &more), WEFT_OK);
    ck_assert_ptr_eq(symm->symm_comm, part->attached);
    ck_assert_ptr_eq(more->symm_comm, part->attached);
    weft_symm_release(&more);
    weft_symm_release(&symm);
    weft_comm_release(&part);
    weft_context_release(&context);
    ck_assert_int_eq(fake.prepared, fake.destroyed);
}

TEST(an_abort_ends_the_attached_communicator_too)
{
    OWNED(weft_context) *context = begin(fake_plugin());
    weft_symm *symm = NULL;

    ck_assert_int_eq(wf_symm_start(context), WEFT_OK);
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, NULL, &symm), WEFT_OK);
    weft_comm_abort(weft_world(context));
    ck_assert_int_eq(weft_symm_fence(symm, NULL), WEFT_ERR_ABORTED);
    weft_symm_release(&symm);
}

TEST(another_device_is_refused_and_the_reason_is_kept)
{
    OWNED(weft_context) *context = begin(fake_plugin());
    weft_symm *symm = NULL;

    second_features = 0;
    second_uuid = "GPU-1";
    ck_assert_int_eq(wf_symm_start(context), WEFT_OK);
    ck_assert_int_eq(second_devices, 0);
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, NULL, &symm), WEFT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "second uses device another device (GPU-1)"));
}

TEST(the_first_plugin_serves_if_the_second_cannot)
{
    OWNED(weft_context) *context = begin(fake_symm_plugin());
    weft_symm *symm = NULL;

    second_features = 0;
    wf_log_set_level(WF_LOG_WARNING);
    ck_assert_int_eq(wf_symm_start(context), WEFT_OK);
    wf_log_set_level(WF_LOG_NOTICE);
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, NULL, &symm), WEFT_OK);
    ck_assert_str_eq(weft_symm_backend(symm), "fake");
    weft_symm_release(&symm);
}

TEST(a_communicator_that_cannot_be_made_is_a_reason_too)
{
    OWNED(weft_context) *context = begin(fake_plugin());
    weft_symm *symm = NULL;

    fake.prepare_fails = 0;
    ck_assert_int_eq(wf_symm_start(context), WEFT_OK);
    ck_assert_int_eq(second_devices, 0);
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, NULL, &symm), WEFT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "scripted: prepare fails"));
}

static void *native_of(void *device, void *stream)
{
    (void)device;
    return stream;
}

TEST(streams_go_over_as_the_vendors)
{
    static weft_device_table first_device;
    weft_plugin first = *fake_plugin();
    weft_context *context;
    weft_symm *symm = NULL;
    weft_stream *stream;

    first_device = fake_device;
    first_device.stream_native = native_of;
    first.device = &first_device;
    context = begin(&first);
    ck_assert_int_eq(wf_symm_start(context), WEFT_OK);
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, NULL, &symm), WEFT_OK);
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(weft_symm_fence(symm, stream), WEFT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "second, which cannot use a stream of"));
    second_device.stream_wrap = second_wrap;
    second_device.stream_destroy = second_stream_destroy;
    wraps = 0;
    ck_assert_int_eq(weft_symm_fence(symm, stream), WEFT_OK);
    ck_assert_ptr_eq(wrapped, stream);
    ck_assert_int_eq(weft_symm_quiet(symm, stream), WEFT_OK);
    ck_assert_int_eq(wraps, 1); /* once for all calls */
    weft_stream_release(&stream);
    weft_symm_release(&symm);
    weft_context_release(&context);
    ck_assert_int_eq(wraps, 0);
}
