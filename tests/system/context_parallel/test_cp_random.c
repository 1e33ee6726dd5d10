/* Forward and backward of random attentions on random meshes of threads, compared with one rank's.
 */
#include "case.h"

#include "support/random_jobs.h"
#include "support/suite.h"

static void end_case(void)
{
    reference_free(&drawn.reference);
}

TEST(every_variant_equals_one_rank)
{
    random_jobs_run(
        &(struct random_jobs){"test_cp_random", 2, draw_case, run_case, case_text, end_case}, 120);
}
