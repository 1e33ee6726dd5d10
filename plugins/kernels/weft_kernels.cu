/* weft_kernels.cu - every kernel of weft.  nvcc makes a CUDA fatbin of it, clang AMD code objects,
 * and a C++ compiler the functions that the tests' stand-in devices run. */
#include "regions.h"
#include "elements.h"

#define WK_EVERY_DTYPE(name, number)                                                               \
    WK_REDUCE(name)                                                                                \
    WK_REGIONS_REDUCE(name)                                                                        \
    WK_CAST(name, number)                                                                          \
    WK_SCALE(name)

WK_REAL_DTYPES(WK_EVERY_DTYPE)
WK_COMPLEX_DTYPES(WK_EVERY_DTYPE)
