/* weft_onesided.cu - the kernels through which ranks use each other's memory, for backends whose
 * ranks reach it by load and store.  Compiled as weft_kernels.cu is. */
#include "onesided_move.h"

#undef WK_EVERY_DTYPE
#define WK_EVERY_DTYPE(name, number)                                                               \
    WK_PULL_REDUCE(name)                                                                           \
    WK_GATHER_REDUCE(name)

WK_REAL_DTYPES(WK_EVERY_DTYPE)
WK_COMPLEX_DTYPES(WK_EVERY_DTYPE)
