/* weft_kernels.cu - every kernel of weft.  nvcc compiles it to a CUDA fatbin, clang to AMD code
 * objects, and a C++ compiler to the functions that the tests' simulated devices run. */
#include "regions.h"
#include "elements.h"
#include "regions_cast.h"
#include "draws.h"
#include "spans.h"
#include "merges.h"
#if !defined(__HIP__) /* no HIP plugin uses them */
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
