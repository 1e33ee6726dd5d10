/* cpu_spin.h - threads that wait without sleeping, as long as processors are left for them. */
#ifndef WEFT_CPU_SPIN_H
#define WEFT_CPU_SPIN_H

#include "cpu.h"

#define CPU_SPIN_NS  UINT64_C(20000)  /* then yield */
#define CPU_YIELD_NS UINT64_C(300000) /* then sleep; many times the cost of waking */

/* There are at least RANKS ranks on this host. */
void cpu_spin_expect(int32_t ranks);
/* True if each of the ranks has a processor. */
bool cpu_spin_has_room(void);
/* True if each has two, one of them for the kernel, which delivers what comes over the network. */
bool cpu_spin_has_room_for_kernel(void);
/* Yield the processor, at NOW.  Where others want it, a thread that yields gets it back after
 * milliseconds, but one that sleeps gets it when it is woken: a yield that took long makes the
 * processors crowded for a while. */
void cpu_yield(uint64_t now);
/* A thread of this process that waits at NOW must sleep instead of yielding. */
bool cpu_is_crowded(uint64_t now);
/* Take a processor for a thread that is not the main one of its rank.  False if there would be too
 * few if every rank did the same. */
bool cpu_spin_begin(void);
/* Give back what cpu_spin_begin took. */
void cpu_spin_end(void);

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

#endif
