/* Gathers and reduce-scatters that overlap, on threads, compared with a serial reference and with
 * the plain sequence. */
#include "case.h"

#include "support/random_jobs.h"
#include "support/suite.h"

static void draw(struct random *r, int32_t ranks, int32_t others)
{
    (void)ranks; /* rows are shared among all ranks */
    (void)others;
    draw_case(r);
}

TEST(every_row_is_computed_once)
{
    random_jobs_run(
        &(struct random_jobs){"test_overlap_random", 1, draw, run_case, case_text, NULL}, 40);
}
