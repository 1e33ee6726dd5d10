/* limits.c - see limits.h. */
#include "limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

uint64_t kit_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}

struct named_limit {
    __rlimit_resource_t resource;
    int shell; /* the letter of ulimit */
    const char *what, *unit;
    uint64_t unit_bytes; /* of ulimit */
};

static const struct named_limit files = {RLIMIT_NOFILE, 'n', "open files", "", 1};
static const struct named_limit file_size = {RLIMIT_FSIZE, 'f', "the size of files", " KiB", 1024};
static const struct named_limit space = {RLIMIT_AS, 'v', "address space", " KiB", 1024};
static const struct named_limit data = {RLIMIT_DATA, 'd', "data", " KiB", 1024};
static const struct named_limit threads = {RLIMIT_NPROC, 'u', "processes and threads", "", 1};

/* Appends the limit to OUT, which has BYTES bytes, if it is set. */
static void append_limit(const struct named_limit *named, char *out, size_t bytes)
{
    size_t used = strlen(out);
    struct rlimit limit;

    if (getrlimit(named->resource, &limit) != 0) return;
    if (limit.rlim_cur == RLIM_INFINITY) return;
    snprintf(out + used, bytes - used, "%s the limit of %s, which is %llu%s (ulimit -%c)",
             used == 0 ? "; raise" : ", or", named->what,
             (unsigned long long)(limit.rlim_cur / named->unit_bytes), named->unit, named->shell);
}

const char *kit_limit_text(int error)
{
    static _Thread_local char text[192];

    text[0] = '\0';
    if (error == EMFILE) append_limit(&files, text, sizeof text);
    if (error == ENFILE)
        snprintf(text, sizeof text, "; raise the system's limit of open files (fs.file-max)");
    if (error == EFBIG) append_limit(&file_size, text, sizeof text);
    if (error == ENOMEM || error == EAGAIN) append_limit(&space, text, sizeof text);
    if (error == ENOMEM || error == EAGAIN) append_limit(&data, text, sizeof text);
    if (error == EAGAIN) append_limit(&threads, text, sizeof text);
    return text;
}

const char *kit_error_text(int error)
{
    static _Thread_local char text[320];

    snprintf(text, sizeof text, "%s%s", strerror(error), kit_limit_text(error));
    return text;
}
