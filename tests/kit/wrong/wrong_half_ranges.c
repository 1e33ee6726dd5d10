/* wrong_half_ranges.c - ranges begin and never end.
 * Runs: --only load/ranges
 * Fails: load/ranges */
#include "wrong.h"

static uint32_t ranges_wanted(void)
{
    return 0;
}

static void range_begin(const weft_range *range)
{
    (void)range;
}

INSTALL(wrong.device.ranges_wanted = ranges_wanted, wrong.device.range_begin = range_begin)
