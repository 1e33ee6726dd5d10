/* claim.h - the numbers of records.  A part of trace.h, which includes it after the structs. */
#ifndef WEFT_TRACE_CLAIM_H
#define WEFT_TRACE_CLAIM_H

#include "trace.h"

/* Called before weft creates threads.  In a process that has one thread, records become cheaper. */
void wf_claims_prepare(void);

/* Identifies the calling thread among those that run. */
static inline const void *wf_thread(void)
{
    const void *thread;

#if defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(thread));
#elif defined(__x86_64__)
    __asm__("mov %%fs:0, %0" : "=r"(thread));
#else
    thread = (const void *)(uintptr_t)pthread_self();
#endif
    return thread;
}

/* The next id, if the calling thread is not the trace's claimer. */
uint64_t wf_trace_claim_shared(struct wf_trace *trace);

/* The next id.  Mostly one thread makes all records, and needs no atomic addition, which costs a
 * third of a record.  The barrier between its store to CLAIMING and its load of CLAIMER is made by
 * the thread that ends this (claim.c). */
static inline uint64_t wf_trace_claim_id(struct wf_trace *trace)
{
    const void *self = wf_thread();
    _Atomic uint64_t *next = &trace->segment->next;
    uint64_t id;

    if (__builtin_expect(atomic_load_explicit(&trace->claimer, memory_order_relaxed) == self, 1)) {
        atomic_store_explicit(&trace->claiming, true, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        if (__builtin_expect(atomic_load_explicit(&trace->claimer, memory_order_relaxed) == self,
                             1)) {
            id = atomic_load_explicit(next, memory_order_relaxed) + 1;
            atomic_store_explicit(next, id, memory_order_relaxed);
            atomic_store_explicit(&trace->claiming, false, memory_order_release);
            return id;
        }
        atomic_store_explicit(&trace->claiming, false, memory_order_release);
    }
    return wf_trace_claim_shared(trace);
}

#endif
