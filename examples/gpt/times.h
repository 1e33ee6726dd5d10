/* times.h - how long blocks take, written as a graph for `weft step`. */
#ifndef EXAMPLES_GPT_TIMES_H
#define EXAMPLES_GPT_TIMES_H

#include "kernels.h"

#include <weft/weft.h>

enum part { FORWARD, INPUTS, WEIGHTS, UPDATE, PARTS };

/* Sums of this rank.  Zero-initialise. */
struct times {
    float seconds[PARTS][BLOCKS], calls[PARTS][BLOCKS];
    float step, steps; /* whole steps, without the first */
};

double seconds_now(void);
/* Part PART of BLOCK has taken SECONDS; CALLS is 1, or 0 if they belong to a call that is counted
 * elsewhere. */
void times_add(struct times *times, enum part part, int block, double seconds, int calls);
/* Add up the times of all ranks.  Collective over the world communicator of CTX. */
weft_status times_sum(weft_context *ctx, struct times *times);
/* Write the graph of one microbatch of SEQUENCES to the file PATH; false: that is not possible. */
bool times_write(const struct times *times, int sequences, const char *path);

#endif
