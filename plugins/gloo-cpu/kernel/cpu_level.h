/* cpu_level.h - the arithmetic of common/arithmetic, compiled for each vector instruction set. */
#ifndef WEFT_CPU_LEVEL_H
#define WEFT_CPU_LEVEL_H

#include "kit/arithmetic/cpu_reduce.h"

#if defined(__aarch64__)
extern const struct cpu_kernels cpu_kernels_bf16;
#elif defined(__x86_64__)
extern const struct cpu_kernels cpu_kernels_avx2, cpu_kernels_avx512;
#endif

/* WEFT_ERR_INVALID if WEFT_CPU_LEVEL does not name a level. */
weft_status cpu_level_check(void);
/* The kernels for the best level of this processor, or for WEFT_CPU_LEVEL if that is lower. */
const struct cpu_kernels *cpu_kernels(void);
/* For tests: every level of this processor, terminated by NULL. */
const struct cpu_kernels *const *cpu_kernel_levels(void);

#endif
