/* A communicator keeps its first error. */
#include "fake.h"

#include "support/suite.h"

TEST(the_first_error_stays)
{
    struct gpu_comm *comm = fake_begin();

    ck_assert_int_eq(gpu_comm_cause(comm), WEFT_OK);
    ck_assert_int_eq(gpu_comm_fail(comm, WEFT_ERR_PEER, "one is gone"), WEFT_ERR_PEER);
    ck_assert_int_eq(gpu_comm_fail(comm, WEFT_ERR_TIMEOUT, "it is late"), WEFT_ERR_TIMEOUT);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(gpu_comm_cause(comm), WEFT_ERR_PEER);
        ck_assert_str_eq(fake.said, "communicator four has failed: one is gone");
    }
    gpu_comm_free(comm);
}

TEST(without_a_text_it_is_what_failed_last)
{
    struct gpu_comm *comm = fake_begin();

    gpu_comm_fail(comm, plug_fail(WEFT_ERR_DEVICE, "the device is %s", "hot"), NULL);
    ck_assert_int_eq(gpu_comm_usable(comm), WEFT_ERR_DEVICE);
    ck_assert_str_eq(fake.said, "communicator four has failed: the device is hot");
    gpu_comm_free(comm);
}

TEST(the_device_is_asked_until_there_is_an_error)
{
    struct gpu_comm *comm = fake_begin();

    ck_assert_int_eq(gpu_comm_cause(comm), WEFT_OK);
    ck_assert_int_eq(fake.looks, 1);
    gpu_comm_fail(comm, WEFT_ERR_PEER, "one is gone");
    ck_assert_int_eq(gpu_comm_cause(comm), WEFT_ERR_PEER);
    ck_assert_int_eq(fake.looks, 1);
    gpu_comm_free(comm);
}
