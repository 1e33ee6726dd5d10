/* gate.h - memory with a page that nobody may access: threads that access it stay in the handler of
 * the signal until the test opens the gate. */
#ifndef WEFT_TESTS_GATE_H
#define WEFT_TESTS_GATE_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define GATE_BYTES UINT64_C(65536) /* at least a page of the system */

static struct {
    unsigned char *page;
    atomic_int entered; /* threads that have accessed the page */
    atomic_bool open;
    atomic_bool over; /* the call that should wait for the accesses has returned */
} gate;

static inline void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* The handler of SIGSEGV and SIGBUS. */
static inline void stay_at_gate(int signal_number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr, page = (uintptr_t)gate.page;

    (void)context;
    if (at < page || at >= page + GATE_BYTES) {
        signal(signal_number, SIG_DFL);
        return;
    }
    atomic_fetch_add(&gate.entered, 1);
    while (!atomic_load(&gate.open))
        pause_briefly();
    if (mprotect(gate.page, GATE_BYTES, PROT_READ | PROT_WRITE) != 0)
        signal(signal_number, SIG_DFL);
}

static inline void close_gate(void)
{
    atomic_store(&gate.entered, 0);
    atomic_store(&gate.open, false);
    atomic_store(&gate.over, false);
}

/* The gate is PAGE from now on. */
static inline void place_gate(unsigned char *page)
{
    gate.page = page;
    if (mprotect(page, GATE_BYTES, PROT_NONE) != 0) abort();
}

/* Memory that can have a gate. */
static inline void *map_zeros(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) abort();
    return memory;
}

#endif
