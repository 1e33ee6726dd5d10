/* Random chains of operators, on ranks that are threads and on simulated ranks.  chains_ranks.c
 * runs them on processes. */
#include "base/base.h"
#include "chains.h"
#include "support/suite.h"
#include "weft/launch.h"

enum { CHAINS = 200, RANKS = 4 };

struct wanted {
    int chains;
    weft_init_options options;
};

static weft_status run_rank(void *argument)
{
    const struct wanted *wanted = argument;
    weft_context *context;
    weft_status status;

    WF_TRY(weft_init(&wanted->options, &context));
    status = run_chains(context, wanted->chains);
    weft_context_release(&context);
    return status;
}

TEST(chains_on_ranks_give_the_numbers_of_whole_tensors)
{
    struct wanted wanted = {test_cases(CHAINS), {.struct_size = sizeof wanted.options}};

    test_seed_begin("apply_chains");
    ck_assert_msg(weft_threads_run(RANKS, run_rank, &wanted) == WEFT_OK, "%s", weft_last_error());
}

TEST(chains_on_simulated_ranks_give_the_numbers_of_whole_tensors)
{
    struct wanted wanted = {test_cases(CHAINS),
                            {.struct_size = sizeof wanted.options, .simulated_ranks = RANKS}};

    test_seed_begin("apply_chains");
    ck_assert_msg(run_rank(&wanted) == WEFT_OK, "%s", weft_last_error());
}
