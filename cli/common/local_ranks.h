/* crew.h - ranks that a command starts as processes of its own on this host. */
#ifndef WEFT_CLI_CREW_H
#define WEFT_CLI_CREW_H

#include "weft/weft.h"

#include <stdbool.h>
#include <stddef.h>

enum { CREW_MOST_RANKS = 256 };

/* One rank: join the job by OPTIONS; everything there is to say goes to FD. */
typedef weft_status crew_rank(void *self, const weft_options *options, int fd);
/* Read from FD until its end what the ranks say. */
typedef weft_status crew_listener(void *self, int fd);

/* Run RANK in SIZE processes on BACKEND (NULL: WEFT_BACKEND) and LISTEN in this one.  Returns when
 * all have ended; after a failure of LISTEN they are ended.  What memory SELF shares is the
 * caller's matter. */
weft_status crew_run(int32_t size, const char *backend, crew_rank *rank, crew_listener *listen,
                     void *self);

/* The same where a launcher started this process as one rank of its job, by OPTIONS; what it says
 * must fit into a pipe. */
weft_status crew_join(const weft_options *options, crew_rank *rank, crew_listener *listen,
                      void *self);

/* Of a rank: say MESSAGE, in one piece if it is no longer than PIPE_BUF. */
weft_status crew_tell(int fd, const void *message, size_t bytes);
/* Of a listener: the next message of BYTES.  False at the end, and after a failure, which *STATUS
 * is then. */
bool crew_hear(int fd, void *message, size_t bytes, weft_status *status);

/* The failure that RANK told of in TEXT, which need not end within LENGTH.  It may name the rank
 * that failed first, another. */
weft_status crew_fail(weft_status status, int32_t rank, const char *text, size_t length);

#endif
