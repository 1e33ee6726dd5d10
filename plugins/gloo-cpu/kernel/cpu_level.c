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
/* What XCR0 has if the kernel keeps the registers of AVX, and of AVX-512, of every thread. */
enum { KEPT_AVX = 0x06, KEPT_AVX512 = 0xe6 };

/* 0: SSE2; 1: AVX2; 2: AVX-512.  Not every compiler's runtime has __builtin_cpu_supports. */
static int vector_level(void)
{
    const unsigned basic = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C;
    const unsigned wide = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    unsigned a, b, c, d, kept, upper;

    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & basic) != basic) return 0;
    __asm__("xgetbv" : "=a"(kept), "=d"(upper) : "c"(0));
    if ((kept & KEPT_AVX) != KEPT_AVX) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & bit_AVX2) == 0) return 0;
    return (kept & KEPT_AVX512) == KEPT_AVX512 && (b & wide) == wide ? 2 : 1;
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
    if (vector_level() >= 1) levels[count++] = &cpu_kernels_avx2;
    if (vector_level() >= 2) levels[count++] = &cpu_kernels_avx512;
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
