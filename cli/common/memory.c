/* memory.c - see memory.h. */
#include "common/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

/* Read a number with FORMAT from the first line of the file PATH that matches.  UINT64_MAX if no
 * line does. */
static uint64_t read_number(const char *path, const char *format)
{
    FILE *file = fopen(path, "r");
    char line[256];
    uint64_t value = UINT64_MAX;

    if (file == NULL) return UINT64_MAX;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, format, &value) == 1) break;
    fclose(file);
    return value;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t cli_free_memory(void)
{
    uint64_t kib = read_number("/proc/meminfo", "MemAvailable: %" SCNu64);
    uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "%" SCNu64);
    uint64_t used = read_number("/sys/fs/cgroup/memory.current", "%" SCNu64);
    uint64_t bytes = kib == UINT64_MAX ? kib : 1024 * kib;
    struct rlimit space;

    if (limit != UINT64_MAX && used != UINT64_MAX)
        bytes = least(bytes, limit > used ? limit - used : 0);
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        bytes = least(bytes, (uint64_t)space.rlim_cur);
    return bytes;
}
