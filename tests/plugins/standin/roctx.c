/* roctx.c - a simulated ROCTX library. */
#include "ranges.h"

int roctxRangePushA(const char *name);
int roctxRangePop(void);

__attribute__((visibility("default"))) int roctxRangePushA(const char *name)
{
    ranges_push("", "", name, 0);
    return 0;
}

__attribute__((visibility("default"))) int roctxRangePop(void)
{
    ranges_pop("");
    return 0;
}
