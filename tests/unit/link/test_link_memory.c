/* Memory of a publisher that others can only read. */
#include "link/link.h"
#include "support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

TEST(others_read_it_and_cannot_write_or_shrink_it)
{
    struct wf_feed_memory memory, mapped;

    ck_assert_int_eq(wf_feed_memory_create(2, 4096, &memory), WEFT_OK);
    strcpy(wf_feed_memory_slot(&memory, 1), "elements");
    ck_assert_int_eq(wf_feed_memory_map(fcntl(memory.fd, F_DUPFD_CLOEXEC, 0), 2, 4096, &mapped),
                     WEFT_OK);
    ck_assert_str_eq(wf_feed_memory_slot(&mapped, 1), "elements");
    ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0),
                     MAP_FAILED);
    ck_assert_int_eq(errno, EPERM);
    ck_assert(pwrite(memory.fd, "x", 1, 0) < 0 && ftruncate(memory.fd, 0) < 0);
    ck_assert(mprotect(mapped.data, mapped.bytes, PROT_READ | PROT_WRITE) < 0);
    wf_feed_memory_free(&mapped);
    wf_feed_memory_free(&memory);
}

TEST(a_serial_tells_what_a_slot_has)
{
    struct wf_feed_memory memory;

    ck_assert_int_eq(wf_feed_memory_create(2, 4096, &memory), WEFT_OK);
    ck_assert_uint_eq(wf_feed_memory_serial(&memory, 1), 0);
    wf_feed_memory_set_serial(&memory, 1, 7);
    ck_assert_uint_eq(wf_feed_memory_serial(&memory, 1), 7);
    ck_assert_uint_eq(wf_feed_memory_serial(&memory, 0), 0);
    wf_feed_memory_free(&memory);
}

TEST(memory_of_another_size_or_that_can_shrink_is_refused)
{
    struct wf_feed_memory memory, mapped;
    int loose = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    ck_assert_int_eq(wf_feed_memory_create(2, 4096, &memory), WEFT_OK);
    ck_assert_int_eq(wf_feed_memory_map(fcntl(memory.fd, F_DUPFD_CLOEXEC, 0), 2, 8192, &mapped),
                     WEFT_ERR_INVALID);
    ck_assert_int_eq(ftruncate(loose, WF_FEED_HEADER + 4096), 0);
    ck_assert_int_eq(wf_feed_memory_map(loose, 1, 4096, &mapped), WEFT_ERR_INVALID);
    ck_assert_int_lt(fcntl(loose, F_GETFD), 0); /* it was closed */
    wf_feed_memory_free(&memory);
}
