/* cpu_spin.c - see cpu_spin.h. */
#include "cpu_spin.h"

#include <stdatomic.h>

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
