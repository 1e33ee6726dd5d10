/* at.c - see at.h. */
#include "checkpoint/io/at.h"

#include "kit/limits.h"

#include <errno.h>
#include <unistd.h>

int64_t wf_read_at(int fd, void *target, size_t bytes, uint64_t offset)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t count =
            pread(fd, (char *)target + done, bytes - done, (off_t)(offset + (uint64_t)done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return -1;
        if (count == 0) break;
        done += (size_t)count;
    }
    return (int64_t)done;
}

bool wf_may_have_size(uint64_t bytes)
{
    if (bytes <= kit_file_limit()) return true;
    errno = EFBIG;
    return false;
}

bool wf_write_at(int fd, const void *source, size_t bytes, uint64_t offset)
{
    size_t done = 0;

    if (!wf_may_have_size(offset + (uint64_t)bytes)) return false;
    while (done < bytes) {
        ssize_t count =
            pwrite(fd, (const char *)source + done, bytes - done, (off_t)(offset + (uint64_t)done));
        if (count < 0 && errno == EINTR) continue;
        if (count == 0) errno = EIO;
        if (count <= 0) return false;
        done += (size_t)count;
    }
    return true;
}
