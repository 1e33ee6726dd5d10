/* meeting.h - how ranks of a weft communicator meet between samples of the measuring loop. */
#ifndef WEFT_CLI_BENCH_MEETING_H
#define WEFT_CLI_BENCH_MEETING_H

#include "timing/loop.h"

#include "weft/weft.h"

struct meeting {
    weft_context *context;
    weft_comm *comm;
    bool inline_work; /* on the default stream, work is done on return */
    uint64_t *memory; /* the backend's, for maxima */
};

weft_status meeting_open(struct meeting *meeting, weft_context *context, weft_comm *comm);
weft_status meeting_close(struct meeting *meeting);
/* Wait for this rank's work on the default stream. */
weft_status meeting_finish(const struct meeting *meeting);
/* Replace each of COUNT values by the greatest of all ranks, everywhere. */
weft_status meeting_maximum(const struct meeting *meeting, uint64_t *values, size_t count);
/* For the loop; MEETING must live as long. */
struct bench_ranks meeting_ranks(struct meeting *meeting);

#endif
