/* WEFT_COMM_CHECK: which calls differ, and how messages describe them. */
#include "fake.h"

#include "support/suite.h"

static const uint64_t ours[FAKE_RANKS] = {1, 2, 3, 4}, theirs[FAKE_RANKS] = {1, 2, 3, 5};

/* The result if rank 2 of the communicator calls OTHER and all others call OP. */
static weft_status compare(const struct gpu_op *op, const struct gpu_op *other)
{
    struct gpu_comm *comm = fake_begin();
    struct gpu_call calls[FAKE_RANKS];
    weft_status status;

    for (int r = 0; r < FAKE_RANKS; r++)
        calls[r] = gpu_call_of(comm, r == 2 ? other : op);
    status = gpu_calls_match(comm, calls);
    ck_assert_int_eq(comm->error, status); /* it is permanent */
    gpu_comm_free(comm);
    return status;
}

TEST(what_may_differ_between_ranks_is_not_compared)
{
    struct gpu_op op = {.kind = WEFT_COLL_ALL_REDUCE, .dtype = WEFT_DTYPE_F32, .count = 8};
    struct gpu_op other = op;

    other.send = fake_memory(8);
    other.root = 3;
    ck_assert_int_eq(compare(&op, &other), WEFT_OK);
    op = (struct gpu_op){.kind = WEFT_COLL_ALL_TO_ALL_V, .send_counts = ours, .recv_counts = ours};
    other = op;
    other.send_counts = theirs;
    ck_assert_int_eq(compare(&op, &other), WEFT_OK);
}

TEST(calls_that_differ_are_described)
{
    struct gpu_op op = {.kind = WEFT_COLL_ALL_REDUCE, .dtype = WEFT_DTYPE_F32, .count = 8};
    struct gpu_op other = op;

    other.count = 9;
    other.reduction = WEFT_REDUCE_MAX;
    ck_assert_int_eq(compare(&op, &other), WEFT_ERR_MISMATCH);
    ck_assert_str_eq(fake.said, "on four rank 10 calls all_reduce(f32, count 8, sum), but rank 12 "
                                "calls all_reduce(f32, count 9, max)");
    op = (struct gpu_op){.kind = WEFT_COLL_SCATTER, .dtype = WEFT_DTYPE_I8, .count = 1, .root = 2};
    other = (struct gpu_op){.kind = WEFT_COLL_BARRIER};
    ck_assert_int_eq(compare(&op, &other), WEFT_ERR_MISMATCH);
    ck_assert_str_eq(fake.said, "on four rank 10 calls scatter(i8, count 1, root 2), but rank 12 "
                                "calls barrier");
}

TEST(counts_that_all_ranks_give_are_compared)
{
    struct gpu_op op = {.kind = WEFT_COLL_ALL_GATHER_V, .recv_counts = ours}, other = op;

    ck_assert_int_eq(compare(&op, &other), WEFT_OK);
    other.recv_counts = theirs;
    ck_assert_int_eq(compare(&op, &other), WEFT_ERR_MISMATCH);
    op = (struct gpu_op){.kind = WEFT_COLL_REDUCE_SCATTER_V, .send_counts = ours};
    other = op;
    other.send_counts = theirs;
    ck_assert_int_eq(compare(&op, &other), WEFT_ERR_MISMATCH);
}

TEST(steps_of_bound_plans_are_compared)
{
    struct gpu_op op = {.kind = GPU_OP_PULL, .plan = 0xabc, .binding = 1, .step = 2}, other = op;

    ck_assert_int_eq(compare(&op, &other), WEFT_OK);
    other.step = 1;
    ck_assert_int_eq(compare(&op, &other), WEFT_ERR_MISMATCH);
    other = op;
    other.plan = 0xdef;
    ck_assert_int_eq(compare(&op, &other), WEFT_ERR_MISMATCH);
    op = (struct gpu_op){.kind = WEFT_COLL_ALL_REDUCE, .count = 8};
    other = op;
    other.plan = 0xabc;
    other.binding = 3;
    other.step = 1;
    ck_assert_int_eq(compare(&op, &other), WEFT_ERR_MISMATCH);
    ck_assert_str_eq(
        fake.said, "on four rank 10 calls all_reduce(bool, count 8, sum), but rank 12 runs step 1 "
                   "of plan 0000000000000abc (binding 3) as all_reduce(bool, count 8, sum); all "
                   "ranks must run bound plans in the same order");
}
