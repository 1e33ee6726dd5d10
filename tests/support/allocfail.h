/* allocfail.h - a call with each of its allocations failing in turn.
 *
 *     weft_mesh *mesh = NULL;
 *     ALLOCATIONS_FAIL(weft_mesh_parse("2x4", &mesh), weft_mesh_release(&mesh));
 */
#ifndef WEFT_TESTS_ALLOCFAIL_H
#define WEFT_TESTS_ALLOCFAIL_H

#include "base/base.h"
#include "weft/status.h"

#include <check.h>
#include <inttypes.h>

/* The runs of a call: one that sets up for good what is made once per process, one that counts
 * allocations, then one for each allocation, which fails. */
struct allocation_runs {
    enum { WARMING, COUNTING, FAILING } stage;
    uint64_t count, failing; /* allocations of the call; the one that fails */
    int64_t live;            /* blocks before each run */
};

/* The stage after that of a run has ended; true: there is another run. */
static inline bool allocation_runs_next(struct allocation_runs *runs)
{
    if (runs->live < 0) { /* the first of all runs */
        runs->live = 0;
        return true;
    }
    if (runs->stage == WARMING)
        runs->live = wf_mem_live();
    else
        ck_assert_msg(wf_mem_live() == runs->live,
                      "allocation %" PRIu64 " of %" PRIu64 ": %" PRId64 " blocks leaked",
                      runs->failing, runs->count, wf_mem_live() - runs->live);
    runs->failing += runs->stage != WARMING;
    runs->stage = runs->stage == WARMING ? COUNTING : FAILING;
    if (runs->stage == FAILING && runs->failing > runs->count) return false;
    wf_fail(WEFT_OK, "%s", "");
    wf_mem_fail_at(runs->failing);
    return true;
}

/* The call of a run has returned STATUS; true: its result must be undone. */
static inline bool allocation_run_ended(struct allocation_runs *runs, weft_status status)
{
    if (runs->stage == COUNTING) runs->count = wf_mem_made();
    wf_mem_fail_at(0);
    if (runs->stage != FAILING) {
        ck_assert_msg(status == WEFT_OK, "with all the memory in the world: %s", weft_last_error());
        return true;
    }
    ck_assert_msg(status == WEFT_ERR_NO_MEMORY, "allocation %" PRIu64 " of %" PRIu64 ": %s",
                  runs->failing, runs->count, weft_status_name(status));
    ck_assert_msg(weft_last_error()[0] != '\0', "allocation %" PRIu64 " failed wordlessly",
                  runs->failing);
    return false;
}

/* Evaluate CALL with its first, second, ... allocation failing, until all of them have.  Each such
 * run must return WEFT_ERR_NO_MEMORY with a text and leave no block behind; it must not need UNDO.
 * A run in which all goes well is undone by UNDO, after which no block may be left either.  Only
 * allocations of the calling thread fail.  What the first of all runs sets up for good, such as a
 * table made once per process, does not count.  The value is how many allocations CALL makes. */
#define ALLOCATIONS_FAIL(call, undo)                                                               \
    __extension__({                                                                                \
        struct allocation_runs allocation_runs = {.live = -1};                                     \
        while (allocation_runs_next(&allocation_runs))                                             \
            if (allocation_run_ended(&allocation_runs, (call))) undo;                              \
        allocation_runs.count;                                                                     \
    })

#endif
