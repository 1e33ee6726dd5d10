/* timeline.h - a schedule with the times of its actions. */
#ifndef WEFT_SCHEDULE_TIMELINE_H
#define WEFT_SCHEDULE_TIMELINE_H

#include "schedule.h"

struct weft_timeline {
    weft_schedule *schedule;
    uint64_t *begin, *end; /* by action */
    uint64_t *exposed;     /* by rank */
    weft_timeline_rank_info *ranks;
    weft_timeline_info info;
};

#endif
