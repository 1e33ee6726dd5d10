/* weft_onesided.cu - the kernels that access the memory of peers, for backends whose ranks access
 * it by load and store.  Compiled like weft_kernels.cu. */
#include "onesided_move.h"

#undef WK_EVERY_DTYPE
#define WK_EVERY_DTYPE(name, number)                                                               \
    WK_PULL_REDUCE(name)                                                                           \
    WK_GATHER_REDUCE(name)

WK_REAL_DTYPES(WK_EVERY_DTYPE)
WK_COMPLEX_DTYPES(WK_EVERY_DTYPE)
WK_REAL_DTYPES(WK_PULL_CAST)
