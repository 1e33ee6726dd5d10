#include "comm/recording.h"
#include "support/fake_world.h"
#include "support/suite.h"

static atomic_int asked, begun, ended;
static uint32_t wanted;
static weft_device_table device;
static weft_plugin plugin;
static _Thread_local int depth;
static char last[128];

static uint32_t ranges_wanted(void)
{
    asked++;
    ck_assert(wf_environment_is_locked());
    return wanted;
}

static void range_begin(const weft_range *range)
{
    begun++;
    depth++;
    snprintf(last, sizeof last, "%s", range->name);
}

static void range_end(void)
{
    ended++;
    depth--;
}

static void prepare(void)
{
    fake_reset();
    asked = begun = ended = 0;
    wanted = 1;
    device = *fake_plugin()->device;
    device.struct_size = sizeof device;
    device.ranges_wanted = ranges_wanted;
    device.range_begin = range_begin;
    device.range_end = range_end;
    plugin = *fake_plugin();
    plugin.device = &device;
}

static char buffer[256];

static void call_everything(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context);
    weft_stream *stream = NULL;

    HOLDS(weft_all_reduce(world, buffer, buffer + 8, 2, WEFT_DTYPE_F32, WEFT_REDUCE_MAX, NULL) ==
          WEFT_OK);
    HOLDS(depth == 0);
    HOLDS(weft_send(world, buffer, 3, WEFT_DTYPE_I16, 0, 0, NULL) == WEFT_OK);
    HOLDS(depth == 0);
    HOLDS(weft_stream_create(self->context, &stream) == WEFT_OK);
    HOLDS(weft_broadcast(world, buffer, buffer, 3, WEFT_DTYPE_I64, 0, stream) == WEFT_OK);
    HOLDS(depth == 0); /* the work may not have run */
    HOLDS(weft_context_wait(self->context, stream, WEFT_FOREVER) == WEFT_OK);
    weft_stream_release(&stream);
    HOLDS(weft_all_reduce(world, NULL, buffer, 2, WEFT_DTYPE_F32, WEFT_REDUCE_MAX, NULL) ==
          WEFT_ERR_INVALID);
    fake.collective_fails = 0;
    fake.collective_status = WEFT_ERR_UNSUPPORTED;
    HOLDS(weft_barrier(world, NULL) == WEFT_ERR_UNSUPPORTED);
    HOLDS(depth == 0);
}

static void run(void)
{
    static struct world_rank ranks[WORLD_MAX];

    world_begin(ranks, 1, call_everything, NULL);
    ranks[0].plugin = &plugin;
    world_go(ranks, 1);
}

TEST(every_call_is_a_range)
{
    prepare();
    run();
    ck_assert_int_eq(asked, 1);
    ck_assert_int_eq(begun, 4); /* the call with a wrong argument is none */
    ck_assert_int_eq(ended, 4);
    ck_assert_str_eq(last, "barrier world");
}

TEST(ranges_do_not_need_the_recorder)
{
    prepare();
    ck_assert_int_eq(setenv("WEFT_RECORDER", "0", 1), 0);
    run();
    ck_assert_int_eq(unsetenv("WEFT_RECORDER"), 0);
    ck_assert(begun == 4 && ended == 4);
}

TEST(without_a_tool_there_are_none)
{
    prepare();
    wanted = 0;
    run();
    ck_assert(asked == 1 && begun == 0 && ended == 0);
}

/* A plugin of an older minor, and one that lacks one of the functions. */
TEST(a_plugin_without_the_entries_works)
{
    prepare();
    device.struct_size = offsetof(weft_device_table, ranges_wanted);
    run();
    ck_assert(asked == 0 && begun == 0 && ended == 0);
    prepare();
    device.range_end = NULL;
    run();
    ck_assert(asked == 0 && begun == 0 && ended == 0);
}
