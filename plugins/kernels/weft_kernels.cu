/* weft_kernels.cu - every kernel of weft.  nvcc compiles it to a CUDA fatbin, clang to AMD code
 * objects, and a C++ compiler its headers to functions that the tests run. */
#include "moves.h"
#include "draws.h"
#include "spans.h"
#include "merges.h"
#if !defined(__HIP__) /* no HIP plugin uses them */
#include "signals.h"
#endif
