/* One-sided operations on a window of 100 bytes and 3 signals, on which rank 3's memory is
 * inaccessible. */
#include "fake.h"

#include "support/suite.h"

static char there[FAKE_RANKS][100];
static uint64_t pad[FAKE_RANKS][3];
static void *buffers[FAKE_RANKS] = {there[0], there[1], there[2], NULL};
static uint64_t *pads[FAKE_RANKS] = {pad[0], pad[1], pad[2], NULL};

static struct gpu_window *begin(void)
{
    static struct gpu_window window;

    window = (struct gpu_window){
        .comm = fake_begin(), .bytes = 100, .signals = 3, .buffers = buffers, .pads = pads};
    return &window;
}

TEST(puts_and_gets_copy_to_and_from_the_peers_memory)
{
    struct gpu_window *window = begin();
    char mine[8];

    ck_assert_int_eq(gpu_symm_table.put(window, 92, mine, 8, 2, NULL), WEFT_OK);
    ck_assert_ptr_eq(fake.copied_to, there[2] + 92);
    ck_assert_ptr_eq(fake.copied_from, mine);
    ck_assert_int_eq(gpu_symm_table.get(window, mine, 1, 7, 0, NULL), WEFT_OK);
    ck_assert_ptr_eq(fake.copied_to, mine);
    ck_assert_ptr_eq(fake.copied_from, there[0] + 1);
    ck_assert_uint_eq(fake.copied_bytes, 7);
    ck_assert_int_eq(gpu_symm_table.get(window, NULL, 100, 0, 0, NULL), WEFT_OK);
    gpu_comm_free(window->comm);
}

TEST(what_does_not_lie_in_the_window_is_refused)
{
    struct gpu_window *window = begin();
    char mine[8];

    ck_assert_int_eq(gpu_symm_table.put(window, 93, mine, 8, 2, NULL), WEFT_ERR_INVALID);
    ck_assert_str_eq(fake.said, "put: 8 bytes at offset 93 reach beyond the window of 100 bytes");
    ck_assert_int_eq(gpu_symm_table.get(window, mine, UINT64_MAX, 8, 2, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(gpu_symm_table.put(window, 0, NULL, 8, 2, NULL), WEFT_ERR_INVALID);
    ck_assert_str_eq(fake.said, "put: the memory is NULL, but bytes is 8");
    ck_assert_int_eq(gpu_symm_table.put(window, 0, mine, 8, 4, NULL), WEFT_ERR_INVALID);
    ck_assert_str_eq(fake.said, "put: peer is 4; the communicator has 4 ranks");
    ck_assert_int_eq(gpu_symm_table.put_signal(window, 0, mine, 8, 0, 1, 0, 3, NULL),
                     WEFT_ERR_UNSUPPORTED);
    ck_assert_str_eq(fake.said, "put_signal: this rank cannot access the memory of rank 13");
    ck_assert_ptr_null(fake.copied_to);
    gpu_comm_free(window->comm);
}

TEST(signals_reach_the_peers_pad_and_waits_watch_the_own_one)
{
    struct gpu_window *window = begin();

    ck_assert_int_eq(gpu_symm_table.signal(window, 2, 5, WEFT_SIGNAL_ADD, 0, NULL), WEFT_OK);
    ck_assert_int_eq(fake.kernel, GPU_KERNEL_SIGNAL);
    ck_assert_uint_eq(fake.signal.address, (uintptr_t)&pad[0][2]);
    ck_assert_uint_eq(fake.signal.value, 5);
    ck_assert_uint_eq(fake.signal.op, WK_SIGNAL_ADD);
    ck_assert_int_eq(gpu_symm_table.wait_signal(window, 1, WEFT_COMPARE_GE, 7, 0, NULL), WEFT_OK);
    ck_assert_int_eq(fake.kernel, GPU_KERNEL_AWAIT_SIGNAL);
    ck_assert_uint_eq(fake.signal.address, (uintptr_t)&pad[1][1]);
    ck_assert_uint_eq(fake.signal.compare, WK_GE);
    ck_assert_uint_eq(fake.signal.channel.timeout_ns, 1); /* 0 would mean no limit */
    ck_assert_int_eq(gpu_symm_table.wait_signal(window, 1, WEFT_COMPARE_LT, 7, WEFT_FOREVER, NULL),
                     WEFT_OK);
    ck_assert_uint_eq(fake.signal.channel.timeout_ns, 0);
    ck_assert_int_eq(fake.waits, 2);
    gpu_comm_free(window->comm);
}

TEST(signals_that_do_not_exist_are_refused)
{
    struct gpu_window *window = begin();

    ck_assert_int_eq(gpu_symm_table.signal(window, 3, 5, WEFT_SIGNAL_SET, 0, NULL),
                     WEFT_ERR_INVALID);
    ck_assert_str_eq(fake.said, "signal: signal is 3; the window has 3 signals");
    ck_assert_int_eq(gpu_symm_table.signal(window, 0, 5, 9, 0, NULL), WEFT_ERR_UNSUPPORTED);
    ck_assert_int_eq(gpu_symm_table.wait_signal(window, 0, 9, 7, 0, NULL), WEFT_ERR_UNSUPPORTED);
    ck_assert_int_eq(gpu_symm_table.put_signal(window, 0, pad, 8, 3, 1, 0, 2, NULL),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_null(fake.copied_to); /* nothing was copied */
    gpu_comm_free(window->comm);
}

TEST(a_window_of_a_stuck_communicator_does_nothing)
{
    struct gpu_window *window = begin();

    gpu_comm_fail(window->comm, WEFT_ERR_PEER, "one is gone");
    ck_assert_int_eq(gpu_symm_table.put(window, 0, pad, 8, 2, NULL), WEFT_ERR_PEER);
    ck_assert_int_eq(gpu_symm_table.signal(window, 0, 1, 0, 2, NULL), WEFT_ERR_PEER);
    ck_assert_int_eq(gpu_symm_table.wait_signal(window, 0, 0, 1, 0, NULL), WEFT_ERR_PEER);
    ck_assert_int_eq(gpu_symm_table.fence(window, NULL), WEFT_ERR_PEER);
    ck_assert_int_eq(gpu_symm_table.barrier(window, NULL), WEFT_ERR_PEER);
    ck_assert_ptr_null(fake.copied_to);
    gpu_comm_free(window->comm);
}

TEST(the_handle_tells_where_everything_is)
{
    struct gpu_window *window = begin();
    weft_symm_handle handle = {.struct_size = sizeof handle};

    ck_assert_int_eq(gpu_symm_table.handle(window, &handle), WEFT_OK);
    ck_assert_int_eq(handle.rank, 1);
    ck_assert_int_eq(handle.size, FAKE_RANKS);
    ck_assert_uint_eq(handle.bytes, 100);
    ck_assert_uint_eq(handle.signal_count, 3);
    ck_assert_ptr_eq(handle.buffers[2], there[2]);
    ck_assert_ptr_null(handle.signals[3]);
    gpu_comm_free(window->comm);
}
