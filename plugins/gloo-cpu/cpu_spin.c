/* cpu_spin.c - see cpu_spin.h. */
#include "cpu_spin.h"

#include <sched.h>
#include <stdatomic.h>

#define LONG_NS    UINT64_C(100000)    /* a yield that gave the processor to others */
#define CROWDED_NS UINT64_C(100000000) /* from then on */

static _Atomic(uint64_t) crowded_until;
static _Atomic(int32_t) ranks_here = 1;
static _Atomic(int32_t) spinning; /* threads of this process that cpu_spin_begin let in */

void cpu_spin_expect(int32_t ranks)
{
    int32_t known = atomic_load(&ranks_here);

    while (ranks > known && !atomic_compare_exchange_weak(&ranks_here, &known, ranks))
        continue;
}

static bool has_room(int32_t threads_per_rank)
{
    int64_t ranks = atomic_load_explicit(&ranks_here, memory_order_relaxed);

    return ranks * threads_per_rank <= cpu_processors();
}

bool cpu_spin_has_room(void)
{
    return has_room(1);
}

bool cpu_spin_has_room_for_kernel(void)
{
    return has_room(2);
}

bool cpu_spin_begin(void)
{
    int32_t mine = 1 + atomic_fetch_add_explicit(&spinning, 1, memory_order_relaxed);

    if (has_room(1 + mine)) return true;
    cpu_spin_end();
    return false;
}

void cpu_spin_end(void)
{
    atomic_fetch_sub_explicit(&spinning, 1, memory_order_relaxed);
}

void cpu_yield(uint64_t now)
{
    sched_yield();
    if (plug_now() - now > LONG_NS)
        atomic_store_explicit(&crowded_until, now + CROWDED_NS, memory_order_relaxed);
}

bool cpu_is_crowded(uint64_t now)
{
    return now < atomic_load_explicit(&crowded_until, memory_order_relaxed);
}
