/* Dispatch and combine of random counts on random meshes of threads, compared with a serial
 * reference. */
#include "case.h"

#include "support/random_jobs.h"
#include "support/suite.h"

TEST(tokens_reach_their_experts_and_come_back)
{
    random_jobs_run(
        &(struct random_jobs){"test_experts_random", 2, draw_case, run_case, case_text, NULL}, 40);
}
