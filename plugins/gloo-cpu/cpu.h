/* cpu.h - what every file of this plugin stands on: the host's services, failing, small memory.
 *
 * Ranks on one host share memory.  Each rank has a heap (heap.h) that the others map whole; a
 * communicator (comm.h) keeps a control block per rank in that heap, where the rank says what it is
 * doing and where its data is. */
#ifndef WEFT_CPU_CPU_H
#define WEFT_CPU_CPU_H

#include "plug_names.h"
#include "weft_plugin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_PRINTF(position, first) __attribute__((format(printf, position, first)))
#define CPU_LENGTH(array)           (sizeof(array) / sizeof((array)[0]))

/* Two cache lines: neighbours are fetched in pairs on some machines. */
#define CPU_LINE 128

/* Return a failure upward.  Only where nothing is owned yet. */
#define CPU_TRY(expression)                                                                        \
    do {                                                                                           \
        weft_status cpu_try_status = (expression);                                                 \
        if (cpu_try_status != WEFT_OK) return cpu_try_status;                                      \
    } while (0)

/* ---- cpu_host.c: the host's services ---- */

/* Kept for the life of the process; the first caller wins. */
void cpu_host_set(const weft_host *host);

/* Describe a failure of this thread and return STATUS. */
weft_status cpu_fail(weft_status status, const char *format, ...) CPU_PRINTF(2, 3);
/* The same with errno's number and text. */
weft_status cpu_fail_errno(weft_status status, int error, const char *format, ...) CPU_PRINTF(3, 4);
weft_status cpu_fail_memory(size_t bytes);
#ifdef __clang_analyzer__ /* which does not see that they return the status they are given */
#define cpu_fail(status, ...)       (cpu_fail(status, __VA_ARGS__), (status))
#define cpu_fail_errno(status, ...) (cpu_fail_errno(status, __VA_ARGS__), (status))
#define cpu_fail_memory(bytes)      (cpu_fail_memory(bytes), WEFT_ERR_NO_MEMORY)
#endif
/* What the last cpu_fail of this thread said. */
const char *cpu_last_text(void);
void cpu_log(int level, const char *format, ...) CPU_PRINTF(2, 3);

/* Zeroed private memory; zero bytes give a valid pointer. */
void *cpu_alloc(size_t bytes) __attribute__((warn_unused_result));
void cpu_free(void *pointer);

/* Structs that cross the border may be shorter or longer than ours: copy what both sides know.
 * Both begin with their size; what a shorter GIVEN lacks is zero in OURS. */
void cpu_take_struct(void *ours, size_t bytes, const void *given);
void cpu_give_struct(void *theirs, const void *ours, size_t bytes);

/* A knob's value, or NULL.  Flags: set, and not "0", "no", "off" or "false". */
const char *cpu_knob(const char *name);
bool cpu_knob_flag(const char *name, bool otherwise);
/* A number of bytes, with K, M or G behind it or not; OTHERWISE if it is not set. */
weft_status cpu_knob_bytes(const char *name, uint64_t otherwise, uint64_t *out);

/* ---- cpu_name.c ---- */

/* Of what ranks show each other as a call: a collective, or one of the two beside them. */
const char *cpu_call_name(uint32_t collective);

/* ---- cpu_process.c: who a process is, and whether it still runs ---- */

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

/* ---- the clock ---- */

uint64_t cpu_now(void); /* monotonic nanoseconds */

#endif
