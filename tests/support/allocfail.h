/* allocfail.h - a call with each of its allocations failing in turn.
 *
 *     static weft_status make(void *mesh) { return weft_mesh_parse(ctx, "2x4", mesh); }
 *     static void drop(void *mesh) { weft_mesh_release(mesh); }
 *
 *     weft_mesh *mesh = NULL;
 *     check_allocation_failures(make, drop, &mesh);
 */
#ifndef WEFT_TESTS_ALLOCFAIL_H
#define WEFT_TESTS_ALLOCFAIL_H

#include "base/base.h"
#include "weft/status.h"

#include <check.h>
#include <inttypes.h>

/* Run CALL(ARGUMENT) with its first, second, ... allocation failing, until all of them have.  Each
 * such run must return WEFT_ERR_NO_MEMORY with a text and leave no block behind; it must not need
 * UNDO.  A run in which all goes well is undone by UNDO (which may be NULL), after which no block
 * may be left either.  Only allocations of the calling thread fail.  What the first of all runs
 * sets up for good, such as a table made once per process, does not count.  Returns how many
 * allocations CALL makes. */
static inline uint64_t check_allocation_failures(weft_status (*call)(void *), void (*undo)(void *),
                                                 void *argument)
{
    weft_status status = call(argument);
    uint64_t count;
    int64_t live;

    ck_assert_msg(status == WEFT_OK, "with all the memory in the world: %s", weft_last_error());
    if (undo != NULL) undo(argument);
    live = wf_mem_live();

    wf_mem_fail_at(0);
    status = call(argument);
    count = wf_mem_made();
    ck_assert_int_eq(status, WEFT_OK);
    if (undo != NULL) undo(argument);
    ck_assert_msg(wf_mem_live() == live, "%" PRId64 " blocks leaked by success",
                  wf_mem_live() - live);

    for (uint64_t n = 1; n <= count; n++) {
        wf_fail(WEFT_OK, "%s", "");
        wf_mem_fail_at(n);
        status = call(argument);
        wf_mem_fail_at(0);
        ck_assert_msg(status == WEFT_ERR_NO_MEMORY, "allocation %" PRIu64 " of %" PRIu64 ": %s", n,
                      count, weft_status_name(status));
        ck_assert_msg(weft_last_error()[0] != '\0', "allocation %" PRIu64 " failed wordlessly", n);
        ck_assert_msg(wf_mem_live() == live,
                      "allocation %" PRIu64 " of %" PRIu64 ": %" PRId64 " blocks leaked", n, count,
                      wf_mem_live() - live);
    }
    return count;
}

#endif
