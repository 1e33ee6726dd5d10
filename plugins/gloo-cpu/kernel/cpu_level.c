/* cpu_level.c - selection of the vector instruction set. */
#include "cpu_level.h"

#include "plug_host.h"

#include <stdatomic.h>
#include <string.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)
/* Some compilers' __builtin_cpu_supports does not know "f16c". */
static bool has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}
#endif

const struct cpu_kernels *const *cpu_kernel_levels(void)
{
    /* Thread-local, because several threads may call this at once. */
    static _Thread_local const struct cpu_kernels *levels[4];
    size_t count = 0;

    levels[count++] = &cpu_kernels_base;
#if defined(__aarch64__)
    if ((getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0) levels[count++] = &cpu_kernels_bf16;
#endif
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c()) {
        levels[count++] = &cpu_kernels_avx2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
            levels[count++] = &cpu_kernels_avx512;
    }
#endif
    levels[count] = NULL;
    return levels;
}

weft_status cpu_level_check(void)
{
    static const char *const names[] = {"sse2", "avx2", "avx512", "neon", "neon-bf16"};
    const char *wanted = plug_knob("WEFT_CPU_LEVEL");

    if (wanted == NULL || *wanted == '\0') return WEFT_OK;
    for (size_t i = 0; i < PLUG_LENGTH(names); i++)
        if (strcmp(wanted, names[i]) == 0) return WEFT_OK;
    return plug_fail(WEFT_ERR_INVALID,
                     "WEFT_CPU_LEVEL is \"%.200s\"; expected sse2, avx2, avx512, neon or neon-bf16",
                     wanted);
}

const struct cpu_kernels *cpu_kernels(void)
{
    static _Atomic(const struct cpu_kernels *) chosen;
    const struct cpu_kernels *best = atomic_load_explicit(&chosen, memory_order_relaxed);
    const struct cpu_kernels *const *levels;
    const char *wanted;

    if (best != NULL) return best;
    levels = cpu_kernel_levels();
    wanted = plug_knob("WEFT_CPU_LEVEL");
    for (size_t i = 0; levels[i] != NULL; i++) {
        best = levels[i];
        if (wanted != NULL && strcmp(wanted, best->level) == 0) break;
    }
    atomic_store_explicit(&chosen, best, memory_order_relaxed);
    return best;
}
