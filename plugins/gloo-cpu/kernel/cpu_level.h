/* cpu_level.h - the arithmetic of common/arithmetic, compiled for each level of vector hardware. */
#ifndef WEFT_CPU_LEVEL_H
#define WEFT_CPU_LEVEL_H

#include "arithmetic/cpu_reduce.h"

#if defined(__aarch64__)
extern const struct cpu_kernels cpu_kernels_bf16;
#elif defined(__x86_64__)
extern const struct cpu_kernels cpu_kernels_avx2, cpu_kernels_avx512;
#endif

/* WEFT_ERR_INVALID if WEFT_CPU_LEVEL is none that any processor has. */
weft_status cpu_level_check(void);
/* The best this processor can do, or what WEFT_CPU_LEVEL asks for if that is less. */
const struct cpu_kernels *cpu_kernels(void);
/* For tests: all the levels this processor has, ended by NULL. */
const struct cpu_kernels *const *cpu_kernel_levels(void);

#endif
