/* speed.h - times of what all ranks do together, for programs that `weft run` starts.  They open
 * the board first. */
#ifndef WEFT_TESTS_GPU_SPEED_H
#define WEFT_TESTS_GPU_SPEED_H

#include "rank.h"
#include "weft/parallel.h"

/* Least time in nanoseconds of RUN(self) on the slowest rank, the same number on all ranks, with
 * the wait for the stream.  All ranks begin together, ROUNDS times after a few that do not count.
 */
double speed_of(void (*run)(void *self), void *self, int rounds);
/* Device memory of zeros. */
void *speed_memory(uint64_t bytes);

#endif
