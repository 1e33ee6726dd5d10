/* job.h - one function as a job of ranks that are threads, and as a job of simulated ranks. */
#ifndef WEFT_TESTS_JOB_H
#define WEFT_TESTS_JOB_H

#include "base/base.h"
#include "weft/context.h"
#include "weft/launch.h"

/* The work of a job with its context. */
typedef weft_status job_function(weft_context *context);

static inline weft_status job_with(const weft_init_options *options, job_function *run)
{
    weft_context *context;

    WF_TRY(weft_init(options, &context));
    WF_TRY(run(context));
    weft_context_release(&context);
    return WEFT_OK;
}

static inline weft_status job_of_thread(void *run)
{
    return job_with(NULL, *(job_function *const *)run);
}

/* Call RUN on each of RANKS threads, one rank each.  Returns the first error. */
static inline weft_status job_of_threads(int32_t ranks, job_function *run)
{
    return weft_threads_run(ranks, job_of_thread, (void *)&run);
}

/* Call RUN once, with RANKS simulated ranks. */
static inline weft_status job_of_simulated(int32_t ranks, job_function *run)
{
    const weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = ranks};

    return job_with(&options, run);
}

#endif
