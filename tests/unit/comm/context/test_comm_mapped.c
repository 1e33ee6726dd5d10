/* How much memory the process can read. */
#include "comm/context/room.h"
#include "support/suite.h"

#include <sys/mman.h>
#include <unistd.h>

TEST(memory_ends_with_its_mapping)
{
    enum { PAGES = 600 }; /* more than one call of the system reads */
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), all = PAGES * page;
    char *memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(memory, MAP_FAILED);
    ck_assert_int_eq(mprotect(memory + all - page, page, PROT_NONE), 0);
    all -= page;
    ck_assert_uint_eq(wf_mapped_bytes(memory, all), all);
    ck_assert_uint_eq(wf_mapped_bytes(memory, all + 1), all);
    ck_assert_uint_eq(wf_mapped_bytes(memory + 5, all), all - 5);
    ck_assert_uint_eq(wf_mapped_bytes(memory + all - 3, 4), 3);
    ck_assert_uint_eq(wf_mapped_bytes(memory + all - 3, 3), 3);
    ck_assert_uint_eq(wf_mapped_bytes(memory + all, 1), 0);
    ck_assert_int_eq(mprotect(memory + 300 * page, page, PROT_NONE), 0); /* a hole */
    ck_assert_uint_eq(wf_mapped_bytes(memory + 1, all - 1), 300 * page - 1);
    munmap(memory, all + page);
}
