/* cpu_bell.h - lock-free waits between threads of this process. */
#ifndef WEFT_CPU_BELL_H
#define WEFT_CPU_BELL_H

#include "cpu.h"

/* Zero-initialized: no thread waits. */
struct cpu_bell {
    _Atomic(uint32_t) strokes, sleepers;
};

/* Wake the waiting threads.  The caller has stored the awaited value with sequential
 * consistency. */
void cpu_bell_ring(struct cpu_bell *bell);
/* Wait until READY, which loads with sequential consistency, returns true, or until the monotonic
 * time DEADLINE (UINT64_MAX: no limit).  Returns false if DEADLINE passed. */
bool cpu_bell_wait(struct cpu_bell *bell, bool (*ready)(const void *), const void *argument,
                   uint64_t deadline);
/* The monotonic time TIMEOUT_NS from now; UINT64_MAX if TIMEOUT_NS is negative. */
uint64_t cpu_deadline(int64_t timeout_ns);

#endif
