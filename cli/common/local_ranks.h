/* local_ranks.h - ranks that a command starts as processes of its own on this host. */
#ifndef WEFT_CLI_LOCAL_RANKS_H
#define WEFT_CLI_LOCAL_RANKS_H

#include "weft/weft.h"

#include <stdbool.h>
#include <stddef.h>

enum { LOCAL_RANKS_MAX = 256 };

/* The main function of one rank: join the job by OPTIONS, and write messages to FD. */
typedef weft_status local_rank_main(void *self, const weft_options *options, int fd);
/* Reads the messages of all ranks from FD until its end. */
typedef weft_status local_ranks_reader(void *self, int fd);

/* Run RANK in SIZE processes on BACKEND (NULL: WEFT_BACKEND) and READ in this one.  Returns when
 * all processes have ended; if READ fails, they are killed.  The processes are forked, so that
 * SELF is copied unless the caller put it into shared memory. */
weft_status local_ranks_run(int32_t size, const char *backend, local_rank_main *rank,
                            local_ranks_reader *read, void *self);

/* The same where a launcher started this process as one rank of its job, by OPTIONS.  The rank's
 * messages must fit into a pipe. */
weft_status local_ranks_join(const weft_options *options, local_rank_main *rank,
                             local_ranks_reader *read, void *self);

/* In a rank: write MESSAGE, atomically if BYTES is at most PIPE_BUF. */
weft_status local_rank_send(int fd, const void *message, size_t bytes);
/* In a reader: the next message of BYTES.  False at the end, with *STATUS WEFT_OK, and after a
 * failure, with its status. */
bool local_ranks_receive(int fd, void *message, size_t bytes, weft_status *status);

/* Fail with STATUS and the TEXT that RANK sent, of at most LENGTH bytes.  "rank N: " is put before
 * it unless the text begins with a rank already. */
weft_status local_rank_fail(weft_status status, int32_t rank, const char *text, size_t length);

#endif
