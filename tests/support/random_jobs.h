/* random_jobs.h - random cases, each run by a job of ranks that are threads. */
#ifndef WEFT_TESTS_RANDOM_JOBS_H
#define WEFT_TESTS_RANDOM_JOBS_H

#include "support/job.h"
#include "support/random.h"

#include <check.h>

/* What a test draws and runs. */
struct random_jobs {
    const char *test; /* its name, for the seed */
    int32_t others;   /* the most ranks of another axis */
    /* Draw a case whose axis has RANKS ranks, beside OTHERS ranks of another axis. */
    void (*draw)(struct random *r, int32_t ranks, int32_t others);
    job_function *run;         /* on each rank */
    const char *(*text)(void); /* the case, for failures */
    void (*end)(void);         /* free what was drawn; NULL: nothing */
};

/* Run COUNT cases, which WEFT_TEST_CASES and WEFT_TEST_TIMES change, on 1 to 4 ranks along the
 * axis.
 */
static inline void random_jobs_run(const struct random_jobs *jobs, int count)
{
    struct random r = random_begin(jobs->test);
    int cases = test_cases(count);

    for (int i = 0; i < cases; i++) {
        int32_t ranks = random_in(&r, 1, 4), others = random_chance(&r, 4) ? jobs->others : 1;
        weft_status status;

        jobs->draw(&r, ranks, others);
        status = job_of_threads(ranks * others, jobs->run);
        ck_assert_msg(status == WEFT_OK, "WEFT_TEST_SEED=%llu case %d: %d ranks, %s: %s",
                      (unsigned long long)r.seed, i, ranks * others, jobs->text(),
                      weft_last_error());
        if (jobs->end != NULL) jobs->end();
    }
}

#endif
