/* cpu_kernels_avx512.c - arithmetic for x86 with AVX-512 F, BW, DQ and VL. */
#define LEVEL      cpu_kernels_avx512
#define LEVEL_NAME "avx512"
#include "kit/arithmetic/cpu_kernels.h"
