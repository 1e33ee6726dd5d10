/* call_allocations.c - every public function with each of its allocations failing in turn.
 *
 * A call whose allocation fails returns WEFT_ERR_NO_MEMORY with a text, writes no result, and
 * leaves no block behind: when it is repeated, the number of blocks stops growing.  A call that can
 * do without the memory returns what it returns otherwise.  Only allocations of the calling thread
 * fail. */
#include "call_suite.h"

#include "base/base.h"

#include <string.h>

/* weft keeps what it has released last, so the number of blocks grows for some calls. */
enum { ALLOCATIONS_MAX = 5000, REPEATS_MAX = 400 };

struct run {
    struct answer answer;
    uint64_t made; /* allocations */
    int64_t live;  /* blocks afterwards */
};

/* One call whose allocation FAILING fails. */
static struct run run(uint64_t failing)
{
    uintptr_t p[MAX_POINTERS];
    struct run r;

    fill(p);
    wf_mem_fail_at(failing);
    r.answer = call(p);
    r.made = wf_mem_made();
    wf_mem_fail_at(0);
    r.live = wf_mem_live();
    if (r.answer.status == WEFT_ERR_NO_MEMORY) {
        expect(strstr(weft_last_error(), "no error of this call") == NULL, "there is no text");
        expect_untouched(p);
    }
    return r;
}

static bool ends_an_object(void)
{
    for (int i = 0; i < function->pointers; i++)
        if (function->pointer[i].role == ROLE_RELEASED) return true;
    return false;
}

void test_function(void)
{
    make_world(&world);
    prepare_call(&world, function->name);
    if (function->returns == RETURNS_NOTHING || ends_an_object()) return;
    for (uint64_t n = 1; n <= ALLOCATIONS_MAX; n++) {
        struct run first, second;

        if (!begin_case("allocation %llu fails", (unsigned long long)n)) continue;
        first = run(n);
        if (first.made < n) return;
        if (function->returns == RETURNS_STATUS)
            expect(first.answer.status == WEFT_ERR_NO_MEMORY ||
                       first.answer.status == function->valid,
                   "the status is not WEFT_ERR_NO_MEMORY");
        if (first.answer.status != WEFT_ERR_NO_MEMORY) continue;
        for (int i = 0; i < REPEATS_MAX; i++) {
            second = run(n);
            if (second.live <= first.live || second.answer.status != WEFT_ERR_NO_MEMORY) break;
            first = second;
        }
        expect(second.live <= first.live || second.answer.status != WEFT_ERR_NO_MEMORY,
               "the call leaves blocks behind");
    }
    expect(false, "there are too many allocations");
}
