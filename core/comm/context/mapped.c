/* mapped.c - how much of a piece of memory the process can read.
 *
 * Neither the C library nor the system tells the size of memory of malloc, of the stack or of a
 * variable from a pointer into it.  The system does tell whether a page can be read: it copies a
 * byte of each page to this process, and reports the first one that it cannot copy. */
#include "room.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGES = 256 }; /* that one call of the system reads */

/* How many of COUNT pages from AT on, which may be inside a page, can be read.  COUNT if the system
 * does not tell. */
static uint64_t read_pages(uintptr_t at, uint64_t count, uintptr_t page)
{
    struct iovec places[PAGES], target;
    char bytes[PAGES];
    ssize_t got;

    for (uint64_t i = 0; i < count; i++) {
        places[i] = (struct iovec){(void *)at, 1};
        at += page - at % page;
    }
    target = (struct iovec){bytes, count};
    got = process_vm_readv(getpid(), &target, 1, places, count, 0);
    if (got < 0) return errno == EFAULT ? 0 : count; /* refused, as by a filter of a container */
    return (uint64_t)got;
}

uint64_t wf_mapped_bytes(const void *memory, uint64_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)memory, at = start;
    uint64_t left, count, got;

    if (bytes == 0 || bytes > UINTPTR_MAX - start) return 0;
    left = (start + bytes - 1) / page - start / page + 1;
    for (; left > 0; left -= count) {
        count = left < PAGES ? left : PAGES;
        got = read_pages(at, count, page);
        if (got < count) {
            at = got == 0 ? at : (at / page + got) * page;
            return at - start;
        }
        at = (at / page + count) * page;
    }
    return bytes;
}
