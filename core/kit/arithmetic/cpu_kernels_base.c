/* cpu_kernels_base.c - arithmetic for every processor of the architecture. */
#define LEVEL cpu_kernels_base
#if defined(__aarch64__)
#define LEVEL_NAME "neon"
#elif defined(__x86_64__)
#define LEVEL_NAME "sse2"
#else
#define LEVEL_NAME "plain"
#endif
#include "cpu_kernels.h"
