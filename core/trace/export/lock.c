/* lock.c - waiting for the lock of an export: soon it is free, unless the file is being written. */
#include "export.h"

#include <sched.h>
#include <time.h>

void wf_export_wait(struct wf_export *export)
{
    for (int i = 0; atomic_exchange_explicit(&export->is_locked, true, memory_order_acquire); i++)
        if (i < 100)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}
