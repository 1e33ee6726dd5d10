/* board.h - memory that the ranks of a test share, and a meeting point beside the library's, for
 * programs that `weft run` starts. */
#ifndef WEFT_TESTS_GPU_BOARD_H
#define WEFT_TESTS_GPU_BOARD_H

#include <stddef.h>
#include <stdint.h>

enum { BOARD_MOST_RANKS = 16 };

/* Share BYTES, zero at first, through a file whose name begins with PREFIX and ends with the number
 * of the process that started the ranks; it is gone when all SIZE of them have come.  Ends the
 * program if it cannot. */
void *board_open(const char *prefix, int32_t rank, int32_t size, size_t bytes);
/* Wait until all ranks are here.  A rank that fails exits, and `weft run` ends the others. */
void board_meet(void);
/* The greatest VALUE of all ranks. */
uint64_t board_maximum(uint64_t value);

#endif
