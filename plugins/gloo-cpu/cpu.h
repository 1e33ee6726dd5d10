/* cpu.h - declarations that every file of this plugin needs.
 *
 * Ranks on one host share memory.  Each rank has a heap (cpu_heap.h) that the others map.  A
 * communicator (cpu_comm.h) has a control block per rank in that heap.  In it the rank publishes
 * its current call and the address of its data. */
#ifndef WEFT_CPU_CPU_H
#define WEFT_CPU_CPU_H

#include "plug_host.h"
#include "kit/names.h"
#include "weft_plugin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two cache lines: neighbours are fetched in pairs on some machines. */
#define CPU_LINE 128

/* ---- cpu_name.c ---- */

/* Name of a collective, or of SHM_PULL or SHM_CHECK. */
const char *cpu_call_name(uint32_t collective);

/* ---- cpu_process.c: identity of a process, and whether it still runs ---- */

struct cpu_process {
    uint64_t token[2]; /* random; equal iff the same process */
    uint64_t start;    /* clock ticks since boot, guards against a reused pid; 0 if unknown */
    int32_t pid;
    int32_t reserved;
};

/* The same answer throughout a process, and a new one after fork. */
weft_status cpu_process_self(struct cpu_process *out);
bool cpu_process_same(const struct cpu_process *a, const struct cpu_process *b);
/* False once the process has ended, reaped or not. */
bool cpu_process_alive(const struct cpu_process *process);
weft_status cpu_random(void *out, size_t bytes);
/* Processors this process may use at once, by affinity and by cgroup quota; at least 1. */
int cpu_processors(void);

/* ---- order ---- */

static inline void cpu_fence(memory_order order)
{
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
    (void)order;
    __sync_synchronize(); /* gcc refuses the C11 fence under this sanitizer */
#else
    atomic_thread_fence(order);
#endif
}

#endif
