/* plug_limits.c - see plug_limits.h. */
#include "plug_limits.h"

#include <sys/resource.h>

uint64_t plug_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}
