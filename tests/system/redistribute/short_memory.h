/* short_memory.h - one rank runs out of memory at an allocation in binding.  If it can report that,
 * all ranks get that error.  Otherwise it leaves, and they get the departure. */
#ifndef WEFT_TESTS_SHORT_MEMORY_H
#define WEFT_TESTS_SHORT_MEMORY_H

#include "support/expect.h"
#include "weft/exec.h"
#include "weft/weft.h"

#include <check.h>

/* Bind PLAN on all ranks; allocation FAIL_AT of rank 1 fails. */
static inline weft_status bind_short_of_memory(const weft_plan *plan, uint64_t fail_at)
{
    weft_context *context = NULL;
    weft_bound *bound = NULL;
    weft_status status;

    WF_TRY(weft_init(NULL, &context));
    if (weft_rank(context) == 1) wf_mem_fail_at(fail_at);
    status = weft_plan_bind(plan, weft_world(context), NULL, &bound);
    wf_mem_fail_at(0);
    EXPECT((status == WEFT_OK) == (bound != NULL));
    weft_bound_release(&bound);
    weft_context_release(&context);
    return WEFT_OK;
}

/* RANK_MAIN on RANKS threads, with each of the first MOST allocations failing; its argument is the
 * number of the allocation. */
static inline void check_short_memory(int32_t ranks, weft_status (*rank_main)(void *),
                                      uint64_t most)
{
    for (uint64_t n = 1; n <= most; n++)
        ck_assert_msg(weft_threads_run(ranks, rank_main, &n) == WEFT_OK, "%s", weft_last_error());
}

#endif
