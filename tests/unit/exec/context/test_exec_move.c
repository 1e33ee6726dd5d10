/* Moves of one rank without memory; tests/system/redistribute has moves of several. */
#include "support/lone_rank.h"
#include "support/move.h"
#include "support/suite.h"

#include <inttypes.h>

static weft_status copy_nothing(void *list, const void *const *sources, void *const *targets,
                                void *stream)
{
    (void)list;
    (void)sources;
    (void)targets;
    (void)stream;
    return WEFT_OK;
}

static weft_status reduce_nothing(void *list, uint32_t dtype, uint32_t reduction, uint32_t size,
                                  const void *const *sources, void *const *targets, void *stream)
{
    (void)list;
    (void)dtype;
    (void)reduction;
    (void)size;
    (void)sources;
    (void)targets;
    (void)stream;
    return WEFT_OK;
}

static weft_kernel_table kernel;
static weft_plugin plugin;

static weft_context *begin(void)
{
    fake_reset();
    kernel = keeping_kernel;
    kernel.regions_copy = copy_nothing;
    kernel.regions_reduce = reduce_nothing;
    plugin = *fake_plugin();
    plugin.kernel = &kernel;
    return world_alone_on(&plugin);
}

/* Every allocation of a first move fails once, and the move succeeds afterwards. */
static void fail_everywhere(uint32_t count)
{
    static char source[64], target[2][64];
    OWNED(weft_spec) *from = spec_of("1", "f32[4] S(0)"), *to = spec_of("1", "f32[4] R");
    weft_move_item items[] = {{"a", from, source, to, target[0]},
                              {"b", from, source, to, target[1]}};
    weft_status status = WEFT_ERR_NO_MEMORY;
    int64_t live = wf_mem_live();

    for (uint64_t n = 1; status != WEFT_OK; n++) {
        weft_context *context = begin();

        wf_mem_fail_at(n);
        status = count == 1 ? move_one(context, from, source, to, target[0], NULL, NULL)
                            : move_items(context, count, items, NULL, NULL);
        wf_mem_fail_at(0);
        ck_assert_msg(status == WEFT_OK || status == WEFT_ERR_NO_MEMORY, "%" PRIu64 ": %s", n,
                      weft_last_error());
        ck_assert_uint_lt(n, 200);
        ck_assert_int_eq(move_items(context, count, items, NULL, NULL), WEFT_OK);
        ck_assert_int_eq(weft_move_clear(context), WEFT_OK);
        weft_context_release(&context);
        ck_assert_int_eq(wf_mem_live(), live);
    }
}

TEST(without_memory_nothing_is_left)
{
    fail_everywhere(1);
}

TEST(nor_of_a_batch)
{
    fail_everywhere(2);
}

static weft_move_info about(weft_context *context)
{
    weft_move_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_move_get(context, &info), WEFT_OK);
    return info;
}

TEST(options_have_bound_plans_of_their_own)
{
    static char source[64], target[64], other[64];
    OWNED(weft_spec) *from = spec_of("1", "f32[4] S(0)"), *to = spec_of("1", "f32[4] R");
    weft_move_item items[] = {{"a", from, source, to, target}, {"b", from, source, to, other}};
    weft_move_options limited = {.struct_size = sizeof limited, .memory_limit = 4096};
    weft_move_options silent = {.struct_size = sizeof silent, .implicit = true};
    OWNED(weft_context) *context = begin();
    weft_cost_table *costs = NULL;

    ck_assert_int_eq(weft_cost_table_open("dtensor", &costs), WEFT_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(weft_move(context, 1, items, sizeof *items, NULL, NULL, NULL), WEFT_OK);
        ck_assert_int_eq(weft_move(context, 1, items, sizeof *items, &silent, NULL, NULL), WEFT_OK);
    }
    ck_assert_uint_eq(about(context).bound_total, 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(weft_move(context, 1, items, sizeof *items, &limited, NULL, NULL),
                         WEFT_OK);
    ck_assert_uint_eq(about(context).bound_total, 2);
    limited.memory_limit = 8192;
    ck_assert_int_eq(weft_move(context, 1, items, sizeof *items, &limited, NULL, NULL), WEFT_OK);
    limited.costs = costs;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(weft_move(context, 1, items, sizeof *items, &limited, NULL, NULL),
                         WEFT_OK);
    ck_assert_uint_eq(about(context).bound_total, 4);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(weft_move(context, 2, items, sizeof *items, &limited, NULL, NULL),
                         WEFT_OK);
    ck_assert_uint_eq(about(context).bound_total, 5);
    weft_cost_table_release(&costs); /* the context keeps it */
    ck_assert_int_eq(move_items(context, 2, items, NULL, NULL), WEFT_OK);
}

TEST(an_error_of_an_option_names_its_struct)
{
    static char source[64], target[64];
    OWNED(weft_spec) *from = spec_of("1", "f32[4] S(0)"), *to = spec_of("1", "f32[4] R");
    weft_move_item item = {"a", from, source, to, target};
    weft_move_options planner = {.struct_size = sizeof planner, .planner = 2};
    weft_move_options minimize = {.struct_size = sizeof minimize, .minimize = 3};
    OWNED(weft_context) *context = begin();

    check_refused(weft_move(context, 1, &item, sizeof item, &planner, NULL, NULL), WEFT_ERR_INVALID,
                  "weft_move: weft_move_options.planner is 2; expected WEFT_PLANNER_SEARCH (0) or");
    check_refused(weft_move(context, 1, &item, sizeof item, &minimize, NULL, NULL),
                  WEFT_ERR_INVALID, "weft_move: weft_move_options.minimize is 3; expected");
}

TEST(items_may_be_of_a_newer_version)
{
    static char source[64], target[2][64];
    weft_spec *from = spec_of("1", "f32[4] S(0)"), *to = spec_of("1", "f32[4] R");
    struct newer {
        weft_move_item item;
        const void *unknown;
    } items[] = {{{"a", from, source, to, target[0]}, NULL},
                 {{"b", from, source, to, target[1]}, NULL}};
    weft_context *context = begin();

    ck_assert_int_eq(weft_move(context, 2, &items[0].item, sizeof *items, NULL, NULL, NULL),
                     WEFT_OK);
    items[1].unknown = source;
    check_refused(weft_move(context, 2, &items[0].item, sizeof *items, NULL, NULL, NULL),
                  WEFT_ERR_VERSION, "weft_move: weft_move_item has 48 bytes");
    check_refused(weft_move(context, 1, &items[0].item, 8, NULL, NULL, NULL), WEFT_ERR_INVALID,
                  "weft_move: the size of a weft_move_item is given as 8; pass sizeof");
    check_refused(weft_move(context, 0, &items[0].item, sizeof(weft_move_item), NULL, NULL, NULL),
                  WEFT_ERR_INVALID, "weft_move: count is 0");
    weft_context_release(&context);
    weft_spec_release(&from);
    weft_spec_release(&to);
}

TEST(a_released_context_is_refused)
{
    OWNED(weft_spec) *spec = spec_of("1", "f32[4] R");
    weft_move_info info = {.struct_size = sizeof info};
    weft_plan *plan;

    check_refused(move_one(NULL, spec, spec, spec, spec, NULL, NULL), WEFT_ERR_INVALID, "context");
    check_refused(weft_context_plan(NULL, spec, spec, NULL, &plan), WEFT_ERR_INVALID, "context");
    check_refused(weft_move_clear(NULL), WEFT_ERR_INVALID, "context");
    check_refused(weft_move_get(NULL, &info), WEFT_ERR_INVALID, "context");
}

/* Streams that all have the same address, one after the other, as those of an allocator can. */
static char same_stream;
static int stream_waits;

static weft_status create_same_stream(void *device, void **stream)
{
    (void)device;
    *stream = &same_stream;
    return WEFT_OK;
}

static void destroy_same_stream(void *device, void *stream)
{
    (void)device;
    (void)stream;
}

static weft_status count_wait(void *device, void *stream, int64_t timeout_ns)
{
    (void)device;
    (void)timeout_ns;
    stream_waits += stream == &same_stream;
    return WEFT_OK;
}

/* The release of a stream waits for moves that use no scratch, also if an earlier stream had the
 * same address: the next move of these specs may be on another stream. */
TEST(every_stream_of_a_move_is_waited_for)
{
    static char source[64], target[64];
    OWNED(weft_spec) *from = spec_of("1", "f32[4] S(0)"), *to = spec_of("1", "f32[4] R");
    weft_move_item item = {NULL, from, source, to, target};
    weft_device_table device; /* which the end of the context still needs */
    OWNED(weft_context) *context = begin();

    device = *plugin.device;
    device.stream_create = create_same_stream;
    device.stream_destroy = destroy_same_stream;
    device.stream_wait = count_wait;
    plugin.device = &device;
    for (int i = 1; i <= 4; i++) {
        weft_stream *stream;
        weft_status status;

        stream_waits = 0;
        ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
        status = i % 2 == 1 ? move_one(context, from, source, to, target, stream, NULL)
                            : move_items(context, 1, &item, stream, NULL);
        ck_assert_int_eq(status, WEFT_OK);
        weft_stream_release(&stream);
        ck_assert_int_eq(stream_waits, 1);
    }
}

/* ---- a stream that another thread releases ---- */

static struct {
    weft_context *context;
    weft_stream *stream;
    weft_status (*record)(void *device, void *event, void *stream);
    pthread_t thread;
    bool started, ended_early;
    atomic_bool ended;
} release;

static void *release_stream(void *unused)
{
    (void)unused;
    weft_stream_release(&release.stream);
    atomic_store(&release.ended, true);
    return NULL;
}

/* While an event is recorded on the stream, another thread releases it. */
static weft_status record_slowly(void *device, void *event, void *stream)
{
    if (stream == NULL || stream != (void *)release.stream || release.started)
        return release.record(device, event, stream);
    release.started = true;
    ck_assert_int_eq(pthread_create(&release.thread, NULL, release_stream, NULL), 0);
    fake_sleep_ms(100);
    release.ended_early = atomic_load(&release.ended);
    return release.record(device, event, release.ended_early ? NULL : stream);
}

TEST(a_stream_does_not_end_while_a_move_records_on_it)
{
    static char source[64], target[64];
    OWNED(weft_spec) *from = spec_of("1", "f32[4] S(0)"), *to = spec_of("1", "f32[4] R");
    weft_device_table device; /* which the end of the context still needs */
    OWNED(weft_context) *context = begin();

    device = *plugin.device;
    memset(&release, 0, sizeof release);
    release.context = context;
    release.record = device.event_record;
    device.event_record = record_slowly;
    plugin.device = &device;
    ck_assert_int_eq(weft_stream_create(context, &release.stream), WEFT_OK);
    ck_assert_int_eq(move_one(context, from, source, to, target, release.stream, NULL), WEFT_OK);
    ck_assert_int_eq(move_one(context, from, source, to, target, NULL, NULL), WEFT_OK);
    ck_assert(release.started);
    pthread_join(release.thread, NULL);
    ck_assert(!release.ended_early);
}
