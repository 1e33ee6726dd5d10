/* board.h - memory that the ranks of a test share, and a barrier that does not use the library, for
 * programs that `weft run` starts. */
#ifndef WEFT_TESTS_GPU_BOARD_H
#define WEFT_TESTS_GPU_BOARD_H

#include <stddef.h>
#include <stdint.h>

enum { BOARD_MOST_RANKS = 16 };

/* Share BYTES, initially zero, through a file whose name is PREFIX and the pid of the process that
 * started the ranks.  The file is removed when all SIZE ranks have opened it.  Ends the program on
 * an error. */
void *board_open(const char *prefix, int32_t rank, int32_t size, size_t bytes);
/* Wait for all ranks.  A rank that fails exits, and `weft run` ends the others. */
void board_meet(void);
/* The maximum of VALUE over all ranks. */
uint64_t board_maximum(uint64_t value);

#endif
