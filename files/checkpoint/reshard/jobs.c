/* jobs.c - one function on several threads. */
#include "checkpoint/file.h"

#include <signal.h>

void wf_jobs_run(int32_t jobs, void *(*job)(void *), void *state)
{
    int32_t others = jobs - 1, started = 0;
    pthread_t *threads = others > 0 ? wf_calloc((size_t)others, sizeof *threads) : NULL;
    sigset_t all, before;

    sigfillset(&all); /* signals are the caller's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (threads != NULL && started < others &&
           pthread_create(&threads[started], NULL, job, state) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    job(state);
    for (int32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    wf_free(threads);
}
