/* weft_kernels.cu - every kernel of weft.  nvcc makes a CUDA fatbin of it, clang AMD code objects,
 * and a C++ compiler the functions that the tests' stand-in devices run. */
#include "regions.h"
#include "elements.h"
#include "regions_cast.h"
#if !defined(__HIP__) /* where no plugin wants them */
#include "signals.h"
#endif

#define WK_EVERY_WORD(bytes)                                                                       \
    WK_COPY(bytes)                                                                                 \
    WK_TRANSPOSE(bytes)
WK_EVERY_WORD(1)
WK_EVERY_WORD(2)
WK_EVERY_WORD(4)
WK_EVERY_WORD(8)
WK_EVERY_WORD(16)

#define WK_EVERY_DTYPE(name, number)                                                               \
    WK_REDUCE(name)                                                                                \
    WK_REGIONS_REDUCE(name)                                                                        \
    WK_CAST(name, number)                                                                          \
    WK_SCALE(name)

WK_REAL_DTYPES(WK_EVERY_DTYPE)
WK_COMPLEX_DTYPES(WK_EVERY_DTYPE)
WK_REAL_DTYPES(WK_REGIONS_CAST)
