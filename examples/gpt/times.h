/* times.h - how long blocks take, written as a graph for `weft step`. */
#ifndef EXAMPLES_GPT_TIMES_H
#define EXAMPLES_GPT_TIMES_H

#include "kernels.h"

#include <weft/weft.h>

enum timed { FORWARD, INPUTS, WEIGHTS, UPDATE, PARTS };
enum { MOST_SAMPLES = 64 };

/* One step of this rank. */
struct sample {
    float seconds[PARTS][MOST_BLOCKS], calls[PARTS][MOST_BLOCKS];
    float step; /* seconds of the whole step */
};

/* Zero-initialise. */
struct times {
    struct sample samples[MOST_SAMPLES]; /* of the first steps */
    int count;
    int ranks; /* that the samples are sums of; 0: of this rank alone */
};

double seconds_now(void);
/* Part PART of BLOCK has taken SECONDS; CALLS is 1, or 0 if they belong to a call that is counted
 * elsewhere. */
void times_add(struct times *times, enum timed part, int block, double seconds, int calls);
/* The backward pass of BLOCK has taken SECONDS: half for the gradients of inputs, half for those of
 * weights. */
void times_add_backward(struct times *times, int block, double seconds);
/* The step has ended, after SECONDS. */
void times_end_step(struct times *times, double seconds);
/* Add up the times of all ranks, with the mean of their steps.  Collective over the world
 * communicator of CTX. */
weft_status times_sum(weft_context *ctx, struct times *times);
/* The median time of a step, without the first one; microseconds. */
double times_step_us(const struct times *times);

/* Write the graph of one microbatch of SEQUENCES of a pipeline to the file PATH; false: that is not
 * possible.  Times of blocks are medians over steps. */
bool times_write(const struct times *times, int sequences, const char *path);
/* The same for a step of a mesh with DP x TP ranks, from the times of one rank that computes all
 * SEQUENCES: its computation is dealt evenly to the ranks. */
bool times_write_mesh(const struct times *times, int sequences, int dp, int tp, const char *path);

#endif
