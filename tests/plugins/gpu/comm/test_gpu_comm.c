/* Creation of communicators. */
#include "fake.h"

#include "support/suite.h"

TEST(a_communicator_keeps_what_it_was_made_with)
{
    static const uint64_t host_ids[] = {7, 8};
    static const int32_t world_ranks[] = {3, 5};
    weft_comm_options options = {.struct_size = sizeof options,
                                 .rank = 1,
                                 .size = 2,
                                 .flags = WEFT_COMM_CHECK,
                                 .timeout_ns = 9,
                                 .name = "a name that is longer than fits",
                                 .world_ranks = world_ranks,
                                 .host_ids = host_ids};
    struct gpu_comm *comm;

    gpu_comm_free(fake_begin());
    ck_assert_int_eq(gpu_comm_allocate(NULL, &options, &comm), WEFT_OK);
    ck_assert_int_eq(comm->rank, 1);
    ck_assert_int_eq(comm->timeout_ns, 9);
    ck_assert_uint_eq(comm->flags, WEFT_COMM_CHECK);
    ck_assert_str_eq(comm->name, "a name that is ");
    ck_assert_int_eq(comm->world_ranks[1], 5);
    ck_assert_uint_eq(comm->host_ids[0], 7);
    ck_assert(!comm->is_ready);
    gpu_comm_free(comm);
}

TEST(ranks_that_are_not_named_are_named_by_their_place)
{
    weft_comm_options options = {.struct_size = sizeof options, .size = 3};
    struct gpu_comm *comm;

    gpu_comm_free(fake_begin());
    ck_assert_int_eq(gpu_comm_allocate(NULL, &options, &comm), WEFT_OK);
    ck_assert_int_eq(comm->world_ranks[2], 2);
    ck_assert_str_eq(comm->name, "");
    gpu_comm_free(comm);
}

TEST(ranks_that_cannot_be_are_refused)
{
    weft_comm_options options = {.struct_size = sizeof options, .rank = 3, .size = 3};
    struct gpu_comm *comm;

    gpu_comm_free(fake_begin());
    ck_assert_int_eq(gpu_comm_allocate(NULL, &options, &comm), WEFT_ERR_INVALID);
    ck_assert_str_eq(fake.said, "rank is 3 and size is 3; rank must be from 0 to size - 1");
    options.size = 0;
    ck_assert_int_eq(gpu_comm_allocate(NULL, &options, &comm), WEFT_ERR_INVALID);
    options = (weft_comm_options){.struct_size = sizeof options, .rank = -1, .size = 2};
    ck_assert_int_eq(gpu_comm_allocate(NULL, &options, &comm), WEFT_ERR_INVALID);
}

TEST(without_memory_there_is_none)
{
    weft_comm_options options = {.struct_size = sizeof options, .size = 3};
    struct gpu_comm *comm = NULL;

    gpu_comm_free(fake_begin());
    for (long left = 0; left < 3; left++) {
        fake.allocations_left = left;
        ck_assert_int_eq(gpu_comm_allocate(NULL, &options, &comm), WEFT_ERR_NO_MEMORY);
        ck_assert_ptr_null(comm);
    }
}
