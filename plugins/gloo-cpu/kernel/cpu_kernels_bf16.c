/* cpu_kernels_bf16.c - arithmetic for ARM with bf16 conversions. */
#define LEVEL      cpu_kernels_bf16
#define LEVEL_NAME "neon-bf16"
#include "kit/arithmetic/cpu_kernels.h"
