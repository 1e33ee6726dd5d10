/* rank_file.c - files that each rank writes for itself. */
#include "rank_file.h"

#include "kit/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool wf_rank_file_name(const char *pattern, int32_t rank, char *out, size_t bytes)
{
    const char *mark = strstr(pattern, "%r");
    int length = mark != NULL ? snprintf(out, bytes, "%.*s%d%s", (int)(mark - pattern), pattern,
                                         rank, mark + strlen("%r"))
                              : snprintf(out, bytes, "%s.%d", pattern, rank);

    return length > 0 && (size_t)length < bytes;
}

const char *wf_rank_file_refusal(int error)
{
    return error == ELOOP ? "it is a symbolic link" : kit_error_text(error);
}

int wf_rank_file_write(int file, uint64_t length, const void *bytes, size_t count)
{
    const char *at = bytes;

    if (length + count > kit_file_limit()) return EFBIG;
    while (count > 0) {
        ssize_t written = write(file, at, count);

        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written == 0 ? ENOSPC : errno;
        at += written;
        count -= (size_t)written;
    }
    return 0;
}
