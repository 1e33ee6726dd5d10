/* Calls one by one and in groups. */
#include "fake.h"

#include "support/suite.h"

#include <string.h>

static weft_collective_args all_gather_v(const uint64_t *counts, const uint64_t *offsets)
{
    return (weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                  .collective = WEFT_COLL_ALL_GATHER_V,
                                  .dtype = WEFT_DTYPE_F32,
                                  .send = fake_memory(0),
                                  .recv = fake_memory(1024),
                                  .recv_counts = counts,
                                  .recv_offsets = offsets};
}

static weft_message message_to(int32_t peer)
{
    return (weft_message){.struct_size = sizeof(weft_message),
                          .peer = peer,
                          .dtype = WEFT_DTYPE_U8,
                          .count = 1,
                          .buffer = fake_memory(0)};
}

TEST(a_call_outside_a_group_runs_at_once)
{
    static const uint64_t counts[FAKE_RANKS] = {1, 2, 3, 4};
    struct gpu_comm *comm = fake_begin();
    weft_collective_args args = all_gather_v(counts, counts);
    weft_message message = message_to(2);

    ck_assert_int_eq(gpu_comm_collective(comm, &args), WEFT_OK);
    ck_assert_int_eq(gpu_comm_send(comm, &message), WEFT_OK);
    ck_assert_uint_eq(fake.runs, 2);
    ck_assert_uint_eq(fake.ran[1].kind, GPU_OP_SEND);
    ck_assert_int_eq(fake.scopes, 0);
    args.recv = NULL;
    ck_assert_int_eq(gpu_comm_collective(comm, &args), WEFT_ERR_INVALID);
    ck_assert_uint_eq(fake.runs, 2);
    ck_assert_int_eq(fake.scopes, 0);
    gpu_comm_free(comm);
}

/* The caller may reuse its arrays before the group ends. */
TEST(calls_of_a_group_run_together_at_its_end_with_the_arrays_they_were_made_with)
{
    uint64_t counts[FAKE_RANKS] = {0}, offsets[FAKE_RANKS] = {0};
    struct gpu_comm *comm = fake_begin();
    weft_message message = message_to(3);

    ck_assert_int_eq(gpu_comm_group_begin(comm), WEFT_OK);
    ck_assert_int_eq(gpu_comm_group_begin(comm), WEFT_OK);
    for (uint64_t i = 0; i < 40; i++) {
        weft_collective_args args = all_gather_v(counts, offsets);

        counts[2] = i;
        ck_assert_int_eq(gpu_comm_collective(comm, &args), WEFT_OK);
    }
    ck_assert_int_eq(gpu_comm_receive(comm, &message), WEFT_OK);
    counts[2] = 999;
    ck_assert_int_eq(gpu_comm_group_end(comm), WEFT_OK);
    ck_assert_uint_eq(fake.runs, 0);
    ck_assert_int_eq(gpu_comm_group_end(comm), WEFT_OK);
    ck_assert_uint_eq(fake.runs, 1);
    ck_assert_uint_eq(fake.ran_count, 41);
    for (uint64_t i = 0; i < 40; i++)
        ck_assert_uint_eq(fake.ran_counts[i][2], i);
    ck_assert_uint_eq(fake.ran[40].kind, GPU_OP_RECEIVE);
    ck_assert_int_eq(gpu_comm_group_begin(comm), WEFT_OK);
    ck_assert_int_eq(gpu_comm_group_end(comm), WEFT_OK); /* no operation is left */
    ck_assert_uint_eq(fake.runs, 1);
    ck_assert_int_eq(gpu_comm_group_end(comm), WEFT_ERR_INVALID);
    ck_assert_str_eq(fake.said, "group_end without group_begin");
    gpu_comm_free(comm);
}

TEST(a_group_with_a_call_that_failed_starts_nothing)
{
    struct gpu_comm *comm = fake_begin();
    weft_message good = message_to(2), bad = message_to(7);

    ck_assert_int_eq(gpu_comm_group_begin(comm), WEFT_OK);
    ck_assert_int_eq(gpu_comm_send(comm, &good), WEFT_OK);
    ck_assert_int_eq(gpu_comm_send(comm, &bad), WEFT_ERR_INVALID);
    ck_assert_int_eq(gpu_comm_group_end(comm), WEFT_ERR_INVALID);
    ck_assert_str_eq(
        fake.said, "a call of the group on four failed, so no operation of the group was started");
    ck_assert_uint_eq(fake.runs, 0);
    ck_assert_int_eq(gpu_comm_group_begin(comm), WEFT_OK);
    ck_assert_int_eq(gpu_comm_send(comm, &good), WEFT_OK);
    ck_assert_int_eq(gpu_comm_group_end(comm), WEFT_OK);
    ck_assert_uint_eq(fake.ran_count, 1);
    gpu_comm_free(comm);
}

TEST(memory_that_runs_out_in_a_group_is_its_failure)
{
    static const uint64_t counts[FAKE_RANKS] = {1, 2, 3, 4};
    weft_collective_args args = all_gather_v(counts, counts);

    for (long left = 0; left < 2; left++) {
        struct gpu_comm *comm = fake_begin();

        fake.allocations_left = left;
        ck_assert_int_eq(gpu_comm_group_begin(comm), WEFT_OK);
        ck_assert_int_eq(gpu_comm_collective(comm, &args), WEFT_ERR_NO_MEMORY);
        ck_assert_int_eq(gpu_comm_group_end(comm), WEFT_ERR_NO_MEMORY);
        ck_assert_uint_eq(fake.runs, 0);
        gpu_comm_free(comm);
    }
}

TEST(a_communicator_that_is_stuck_or_not_committed_takes_no_calls)
{
    struct gpu_comm *comm = fake_begin();
    weft_message message = message_to(2);

    comm->is_ready = false;
    ck_assert_int_eq(gpu_comm_send(comm, &message), WEFT_ERR_INVALID);
    ck_assert_str_eq(fake.said, "communicator four is not committed");
    comm->is_ready = true;
    ck_assert_int_eq(gpu_comm_group_begin(comm), WEFT_OK);
    ck_assert_int_eq(gpu_comm_send(comm, &message), WEFT_OK);
    gpu_comm_fail(comm, WEFT_ERR_TIMEOUT, "it took too long");
    ck_assert_int_eq(gpu_comm_send(comm, &message), WEFT_ERR_TIMEOUT);
    ck_assert_int_eq(gpu_comm_group_end(comm), WEFT_ERR_TIMEOUT);
    ck_assert_str_eq(fake.said, "communicator four has failed: it took too long");
    ck_assert_uint_eq(fake.runs, 0);
    gpu_comm_free(comm);
}
