/* cpu_kernels_avx2.c - arithmetic for x86 with AVX2, FMA and F16C. */
#define LEVEL      cpu_kernels_avx2
#define LEVEL_NAME "avx2"
#include "kit/arithmetic/cpu_kernels.h"
