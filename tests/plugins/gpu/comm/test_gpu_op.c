/* Arguments of calls: refused arguments and their messages, and arguments that a rank need not
 * pass. */
#include "fake.h"

#include "support/suite.h"

#include <string.h>

static const uint64_t counts[FAKE_RANKS] = {1, 2, 3, 4}, none[FAKE_RANKS], offsets[FAKE_RANKS];
static const uint64_t *const garbage = (const uint64_t *)(uintptr_t)8;

static weft_collective_args call(uint32_t collective)
{
    return (weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                  .collective = collective,
                                  .dtype = WEFT_DTYPE_F32,
                                  .send = fake_memory(0),
                                  .recv = fake_memory(1024),
                                  .count = 3,
                                  .send_counts = counts,
                                  .send_offsets = offsets,
                                  .recv_counts = counts,
                                  .recv_offsets = offsets};
}

static void refused(const weft_collective_args *args, weft_status status, const char *words)
{
    struct gpu_comm *comm = fake_begin();
    struct gpu_op op;

    ck_assert_int_eq(gpu_op_read(comm, args, &op), status);
    ck_assert_msg(strstr(fake.said, words) != NULL, "\"%s\" in \"%s\"", words, fake.said);
    gpu_comm_free(comm);
}

TEST(what_does_not_exist_is_refused_by_its_number)
{
    weft_collective_args args = call(99);

    refused(&args, WEFT_ERR_UNSUPPORTED, "collective 99 is unknown");
    args = call(WEFT_COLL_ALL_GATHER);
    args.dtype = 77;
    refused(&args, WEFT_ERR_UNSUPPORTED, "dtype 77 is unknown");
    args = call(WEFT_COLL_BROADCAST);
    args.root = 4;
    refused(&args, WEFT_ERR_INVALID, "root 4 of broadcast is outside the communicator of 4 ranks");
    args.root = -1;
    refused(&args, WEFT_ERR_INVALID, "root -1 of broadcast is outside the communicator of 4 ranks");
}

TEST(what_the_plugin_cannot_do_is_refused_before_other_arguments_are_looked_at)
{
    weft_collective_args args = call(WEFT_COLL_REDUCE);
    struct gpu_comm *comm = fake_begin();
    struct gpu_op op;

    fake.supports_nothing = true;
    args.root = 9;
    ck_assert_int_eq(gpu_op_read(comm, &args, &op), WEFT_ERR_UNSUPPORTED);
    ck_assert_str_eq(fake.said, "nothing works");
    args = call(WEFT_COLL_BARRIER);
    ck_assert_int_eq(gpu_op_read(comm, &args, &op), WEFT_OK);
    gpu_comm_free(comm);
}

TEST(counts_and_scales_are_checked)
{
    weft_collective_args args = call(WEFT_COLL_ALL_GATHER);

    args.count = UINT64_MAX / 8;
    refused(&args, WEFT_ERR_INVALID, "elements on 4 ranks is too large");
    args = call(WEFT_COLL_ALL_REDUCE);
    args.reduction = WEFT_REDUCE_PREMUL_SUM;
    refused(&args, WEFT_ERR_INVALID, "premul_sum needs a scale, but scale is NULL");
}

/* Rank 1 is the root or not. */
static const struct use {
    uint32_t collective;
    bool sends, receives;           /* on other ranks */
    bool root_sends, root_receives; /* on the root */
    bool send_arrays, recv_arrays, rooted;
} uses[] = {
    {WEFT_COLL_ALL_REDUCE, true, true, true, true, false, false, false},
    {WEFT_COLL_ALL_GATHER, true, true, true, true, false, false, false},
    {WEFT_COLL_REDUCE_SCATTER, true, true, true, true, false, false, false},
    {WEFT_COLL_ALL_TO_ALL, true, true, true, true, false, false, false},
    {WEFT_COLL_BROADCAST, false, true, true, true, false, false, true},
    {WEFT_COLL_REDUCE, true, false, true, true, false, false, true},
    {WEFT_COLL_GATHER, true, false, true, true, false, false, true},
    {WEFT_COLL_SCATTER, false, true, true, true, false, false, true},
    {WEFT_COLL_ALL_GATHER_V, true, true, true, true, false, true, false},
    {WEFT_COLL_REDUCE_SCATTER_V, true, true, true, true, true, false, false},
    {WEFT_COLL_ALL_TO_ALL_V, true, true, true, true, true, true, false},
    {WEFT_COLL_GATHER_V, true, false, true, true, false, true, true},
    {WEFT_COLL_SCATTER_V, false, true, true, true, true, false, true},
};

static weft_status read_at(bool at_root, weft_collective_args args, struct gpu_op *op)
{
    struct gpu_comm *comm = fake_begin();
    weft_status status;

    args.root = at_root ? comm->rank : 0;
    status = gpu_op_read(comm, &args, op);
    gpu_comm_free(comm);
    return status;
}

TEST(a_buffer_is_asked_only_of_ranks_that_use_it)
{
    struct gpu_op op;

    for (size_t i = 0; i < PLUG_LENGTH(uses); i++)
        for (int at_root = 0; at_root < 2; at_root++) {
            const struct use *use = &uses[i];
            bool sends = at_root ? use->root_sends : use->sends;
            bool receives = at_root ? use->root_receives : use->receives;
            weft_collective_args args = call(use->collective);

            ck_assert_int_eq(read_at(at_root, args, &op), WEFT_OK);
            args.send = NULL;
            ck_assert_int_eq(read_at(at_root, args, &op), sends ? WEFT_ERR_INVALID : WEFT_OK);
            args = call(use->collective);
            args.recv = NULL;
            ck_assert_int_eq(read_at(at_root, args, &op), receives ? WEFT_ERR_INVALID : WEFT_OK);
            args.send = NULL;
            args.count = 0;
            args.send_counts = args.recv_counts = none;
            ck_assert_int_eq(read_at(at_root, args, &op), WEFT_OK);
        }
}

TEST(arrays_are_asked_only_of_ranks_that_use_them_and_else_forgotten)
{
    struct gpu_op op;

    for (size_t i = 0; i < PLUG_LENGTH(uses); i++)
        for (int at_root = 0; at_root < 2; at_root++) {
            const struct use *use = &uses[i];
            bool here = at_root || !use->rooted;
            bool sends = here && use->send_arrays, receives = here && use->recv_arrays;
            weft_collective_args args = call(use->collective);

            if (!sends) args.send_counts = args.send_offsets = garbage;
            if (!receives) args.recv_counts = args.recv_offsets = garbage;
            ck_assert_int_eq(read_at(at_root, args, &op), WEFT_OK);
            ck_assert_ptr_eq(op.send_counts, sends ? counts : NULL);
            ck_assert_ptr_eq(op.recv_offsets, receives ? offsets : NULL);
            args.send_offsets = NULL;
            ck_assert_int_eq(read_at(at_root, args, &op), sends ? WEFT_ERR_INVALID : WEFT_OK);
            args = call(use->collective);
            args.recv_counts = NULL;
            ck_assert_int_eq(read_at(at_root, args, &op), receives ? WEFT_ERR_INVALID : WEFT_OK);
        }
}

TEST(host_memory_is_refused_by_name)
{
    static float here[3];
    weft_collective_args args = call(WEFT_COLL_ALL_REDUCE);

    args.recv = here;
    refused(&args, WEFT_ERR_INVALID, "the receive buffer of all_reduce is ");
    args.recv = NULL;
    refused(&args, WEFT_ERR_INVALID, "the receive buffer of all_reduce is NULL");
}

TEST(messages_are_checked_like_collectives)
{
    struct gpu_comm *comm = fake_begin();
    weft_message message = {.struct_size = sizeof message,
                            .peer = 4,
                            .dtype = WEFT_DTYPE_F64,
                            .count = 2,
                            .buffer = fake_memory(0)};
    struct gpu_op op;

    ck_assert_int_eq(gpu_op_read_message(comm, &message, GPU_OP_SEND, &op), WEFT_ERR_INVALID);
    ck_assert_str_eq(fake.said, "peer is 4; the communicator has 4 ranks");
    message.peer = comm->rank;
    ck_assert_int_eq(gpu_op_read_message(comm, &message, GPU_OP_SEND, &op), WEFT_ERR_INVALID);
    ck_assert_str_eq(fake.said, "a rank that sends to itself calls send and receive in one group");
    comm->group.depth = 1;
    ck_assert_int_eq(gpu_op_read_message(comm, &message, GPU_OP_SEND, &op), WEFT_OK);
    ck_assert_uint_eq(op.bytes, 8);
    comm->group.depth = 0;
    message.peer = 2;
    message.buffer = NULL;
    ck_assert_int_eq(gpu_op_read_message(comm, &message, GPU_OP_RECEIVE, &op), WEFT_ERR_INVALID);
    ck_assert_str_eq(fake.said, "the buffer of a receive is NULL");
    message.count = 0;
    ck_assert_int_eq(gpu_op_read_message(comm, &message, GPU_OP_RECEIVE, &op), WEFT_OK);
    message.count = UINT64_MAX / 2;
    ck_assert_int_eq(gpu_op_read_message(comm, &message, GPU_OP_RECEIVE, &op), WEFT_ERR_INVALID);
    gpu_comm_free(comm);
}
