/* drawing.h - timelines of schedules for people. */
#ifndef WEFT_CLI_SCHEDULE_DRAWING_H
#define WEFT_CLI_SCHEDULE_DRAWING_H

#include "common/cli.h"

/* Figures, and a row of time slots for each rank if all have room. */
weft_status schedule_add_text(const weft_timeline *timeline, struct wf_text *out) WF_NODISCARD;
/* A picture: a row per rank, a box per compute action, idle time in grey. */
weft_status schedule_add_svg(const weft_timeline *timeline, struct wf_text *out) WF_NODISCARD;

/* Append "2F0". */
void schedule_add_action(const weft_schedule_action *action, struct wf_text *out);

#endif
