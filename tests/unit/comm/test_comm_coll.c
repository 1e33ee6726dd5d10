#include "support/fake_world.h"
#include "support/suite.h"

static weft_context *context;
static weft_comm *world;
static char in[64], out[64];
static uint64_t counts[1] = {2}, offsets[1] = {1};

static void begin(void)
{
    fake_reset();
    context = world_alone();
    world = weft_world(context);
}

static void end(void)
{
    weft_context_release(&context);
}

/* The plugin got exactly these arguments. */
static void saw(uint32_t collective, uint64_t count, uint32_t reduction, int32_t root)
{
    const weft_collective_args *args = &fake.last;

    ck_assert_uint_eq(args->struct_size, sizeof *args);
    ck_assert_uint_eq(args->collective, collective);
    ck_assert_uint_eq(args->count, count);
    ck_assert_uint_eq(args->reduction, reduction);
    ck_assert_int_eq(args->root, root);
    if (collective == WEFT_COLL_BARRIER) return;
    ck_assert_uint_eq(args->dtype, WEFT_DTYPE_F16);
    ck_assert_ptr_eq(args->send, in);
    ck_assert_ptr_eq(args->recv, out);
}

#define F16      WEFT_DTYPE_F16
#define MAX      WEFT_REDUCE_MAX
#define OK(call) ck_assert_int_eq(call, WEFT_OK)

TEST(every_function_fills_in_its_collective)
{
    weft_stream *stream;

    begin();
    OK(weft_stream_create(context, &stream));
    OK(weft_all_reduce(world, in, out, 5, F16, MAX, stream));
    saw(WEFT_COLL_ALL_REDUCE, 5, MAX, -1);
    ck_assert_ptr_eq(fake.last.stream, stream);
    OK(weft_all_gather(world, in, out, 6, F16, NULL));
    saw(WEFT_COLL_ALL_GATHER, 6, 0, -1);
    ck_assert_ptr_null(fake.last.stream);
    OK(weft_reduce_scatter(world, in, out, 7, F16, MAX, NULL));
    saw(WEFT_COLL_REDUCE_SCATTER, 7, MAX, -1);
    OK(weft_all_to_all(world, in, out, 8, F16, NULL));
    saw(WEFT_COLL_ALL_TO_ALL, 8, 0, -1);
    OK(weft_broadcast(world, in, out, 9, F16, 0, NULL));
    saw(WEFT_COLL_BROADCAST, 9, 0, 0);
    OK(weft_reduce(world, in, out, 1, F16, MAX, 0, NULL));
    saw(WEFT_COLL_REDUCE, 1, MAX, 0);
    OK(weft_gather(world, in, out, 2, F16, 0, NULL));
    saw(WEFT_COLL_GATHER, 2, 0, 0);
    OK(weft_scatter(world, in, out, 3, F16, 0, NULL));
    saw(WEFT_COLL_SCATTER, 3, 0, 0);
    OK(weft_barrier(world, NULL));
    saw(WEFT_COLL_BARRIER, 0, 0, -1);
    weft_stream_release(&stream);
    end();
}

static void saw_arrays(bool send, bool recv)
{
    ck_assert_ptr_eq(fake.last.send_counts, send ? counts : NULL);
    ck_assert_ptr_eq(fake.last.send_offsets, send ? offsets : NULL);
    ck_assert_ptr_eq(fake.last.recv_counts, recv ? counts : NULL);
    ck_assert_ptr_eq(fake.last.recv_offsets, recv ? offsets : NULL);
}

TEST(every_v_function_fills_in_its_arrays)
{
    begin();
    OK(weft_all_gather_v(world, in, out, counts, offsets, F16, NULL));
    saw(WEFT_COLL_ALL_GATHER_V, 0, 0, -1);
    saw_arrays(false, true);
    OK(weft_reduce_scatter_v(world, in, out, counts, offsets, F16, MAX, NULL));
    saw(WEFT_COLL_REDUCE_SCATTER_V, 0, MAX, -1);
    saw_arrays(true, false);
    OK(weft_all_to_all_v(world, in, counts, offsets, out, counts, offsets, F16, NULL));
    saw(WEFT_COLL_ALL_TO_ALL_V, 0, 0, -1);
    saw_arrays(true, true);
    OK(weft_gather_v(world, in, 2, out, counts, offsets, F16, 0, NULL));
    saw(WEFT_COLL_GATHER_V, 2, 0, 0);
    saw_arrays(false, true);
    OK(weft_scatter_v(world, in, counts, offsets, out, 2, F16, 0, NULL));
    saw(WEFT_COLL_SCATTER_V, 2, 0, 0);
    saw_arrays(true, false);
    end();
}

TEST(sizes_are_known_without_memory)
{
    weft_collective_args args = {
        .struct_size = sizeof args, .collective = WEFT_COLL_ALL_GATHER, .count = 5};
    uint64_t send = 0, recv = 0;

    begin();
    OK(weft_collective_sizes(world, &args, &send, &recv));
    ck_assert_uint_eq(send, 5);
    ck_assert_uint_eq(recv, 5);
    args.collective = WEFT_COLL_ALL_GATHER_V;
    ck_assert_int_eq(weft_collective_sizes(world, &args, &send, &recv), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "recv_counts is NULL"));
    args.collective = WEFT_COLL_COUNT;
    ck_assert_int_eq(weft_collective_sizes(world, &args, &send, &recv), WEFT_ERR_INVALID);
    args.struct_size = 1;
    ck_assert_int_eq(weft_collective_sizes(world, &args, &send, &recv), WEFT_ERR_INVALID);
    end();
}

TEST(what_is_refused_does_not_reach_the_plugin)
{
    weft_collective_args args = {.struct_size = 8, .collective = WEFT_COLL_BARRIER};

    begin();
    ck_assert_int_eq(weft_all_reduce(NULL, in, out, 1, F16, MAX, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_all_reduce(world, NULL, out, 1, F16, MAX, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_collective(world, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_collective(world, &args), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "struct_size is 8"));
    ck_assert_int_eq(fake.collectives, 0);
    args.struct_size = sizeof args;
    OK(weft_collective(world, &args));
    ck_assert_int_eq(fake.collectives, 1);
    end();
}

TEST(the_steady_state_allocates_nothing)
{
    begin();
    wf_mem_fail_at(0);
    for (int i = 0; i < 1000; i++)
        OK(weft_all_reduce(world, in, out, 1, F16, MAX, NULL));
    ck_assert_uint_eq(wf_mem_made(), 0);
    end();
}

TEST(the_recent_knows_what_is_done)
{
    weft_stream *stream;

    begin();
    OK(weft_stream_create(context, &stream));
    OK(weft_barrier(world, NULL));
    ck_assert_uint_eq(world->recent.posted, 1);
    ck_assert_uint_eq(world->recent.finished, 1);
    OK(weft_barrier(world, stream));
    ck_assert_uint_eq(world->recent.posted, 2);
    ck_assert_uint_eq(world->recent.finished, 1);
    weft_stream_release(&stream);
    end();
}
