/* local_ranks.h - ranks that a command starts as processes of its own on this host. */
#ifndef WEFT_CLI_LOCAL_RANKS_H
#define WEFT_CLI_LOCAL_RANKS_H

#include "weft/weft.h"

#include <stddef.h>

enum { LOCAL_RANKS_MAX = 256 };

struct local_rank; /* one rank, inside its process */

/* The parts of a command that runs on ranks.  Processes are forked, so that SELF is copied into
 * each rank unless the caller put it into shared memory. */
struct local_job {
    void *self;
    /* In each rank before it joins; NULL: nothing to do. */
    void (*prepare)(void *self, int32_t rank);
    /* In each rank, between weft_init and weft_context_release.  After a failure the process ends
     * without a release. */
    weft_status (*work)(void *self, weft_context *context, const struct local_rank *rank);
    /* In the command: a message of rank 0.  Messages arrive in the order in which they are sent. */
    weft_status (*receive)(void *self, const void *message, size_t bytes);
};

/* Run JOB on SIZE ranks and BACKEND (NULL: WEFT_BACKEND).  Returns when all processes have ended.
 * The first failure of a rank, or of RECEIVE, ends the others and is returned with its text.  If it
 * is WEFT_ERR_PEER, another failure that comes soon is the cause, and is returned instead. */
weft_status local_ranks_run(int32_t size, const char *backend, const struct local_job *job);

/* The same where a launcher started this process as one rank of its job, by OPTIONS: no process is
 * started, and `prepare` is not called. */
weft_status local_ranks_join(const weft_init_options *options, const struct local_job *job);

/* In a rank: send MESSAGE, of any size, to the command if this is rank 0; else do nothing. */
weft_status local_rank_send(const struct local_rank *rank, const void *message, size_t bytes);

#endif
