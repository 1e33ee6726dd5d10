/* launch.h - a process's rank before weft_init, and the rendezvous that a launcher serves.
 *
 *     weft_launch_info launch = {.struct_size = sizeof launch};
 *     if (weft_launch_get(&launch) != WEFT_OK) fail(weft_last_error());
 *     if (launch.rank == 0) puts("I am rank 0");
 *
 * A launcher opens a rendezvous, starts its processes, then serves them:
 *
 *     weft_rendezvous_options options = {.struct_size = sizeof options, .size = 4};
 *     weft_rendezvous *rendezvous;
 *     if (weft_rendezvous_open(&options, &rendezvous) != WEFT_OK) fail(weft_last_error());
 *     for (int rank = 0; rank < 4; rank++) start_process(rank, rendezvous);
 *     if (weft_rendezvous_serve(rendezvous) != WEFT_OK) fail(weft_last_error());
 *     ...
 *     weft_rendezvous_close(&rendezvous);
 *
 * Each process gets WEFT_LAUNCHER=weft, WEFT_RANK, WEFT_SIZE, WEFT_LOCAL_RANK, WEFT_SERVED=1,
 * WEFT_RENDEZVOUS (weft_rendezvous_address) and WEFT_TOKEN (weft_rendezvous_token). */
#ifndef WEFT_LAUNCH_H
#define WEFT_LAUNCH_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The place of this process in its job, from its launcher's variables (docs/launch.md). */
typedef struct weft_launch_info {
    size_t struct_size;
    const char *launcher; /* "weft", "torchrun", "openmpi", "pmi", "slurm" or "none"; constant */
    int32_t rank, size;   /* 0 of 1 without a launcher */
    int32_t local_rank;   /* on this host; -1: the launcher does not say */
} weft_launch_info;

/* Read the variables of WEFT_LAUNCHER's launcher, or of the innermost one.  The caller sets
 * OUT->struct_size.  WEFT_ERR_INVALID names variables that are half set, out of range or
 * contradict each other.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_launch_get(weft_launch_info *out);

/* Where the ranks of one job meet.  One thread at a time, unless marked. */
typedef struct weft_rendezvous weft_rendezvous;

/* struct_size is sizeof(weft_rendezvous_options). */
typedef struct weft_rendezvous_options {
    size_t struct_size;
    int32_t size;            /* ranks of the job, at least 1 */
    const char *listen;      /* "host" or "host:port"; without a port, or with NULL for loopback,
                              * a free port is taken */
    int64_t join_timeout_ns; /* for all ranks to come; 0: WEFT_JOIN_TIMEOUT */
} weft_rendezvous_options;

/* Listen for the ranks of a new job, with a random token.  Starts no thread, so that the caller may
 * still fork.  The caller closes *OUT.  WEFT_ERR_SYSTEM: the address cannot be listened on;
 * WEFT_ERR_PARSE: LISTEN is not an address. */
WEFT_API WEFT_NODISCARD weft_status weft_rendezvous_open(const weft_rendezvous_options *options,
                                                         weft_rendezvous **out);

/* "127.0.0.1:40123" and the job's secret, for the ranks' WEFT_RENDEZVOUS and WEFT_TOKEN.  They live
 * as long as the rendezvous; NULL for NULL. */
WEFT_API const char *weft_rendezvous_address(const weft_rendezvous *rendezvous);
WEFT_API const char *weft_rendezvous_token(const weft_rendezvous *rendezvous);

/* Begin to serve, on a thread of weft's own.  Call it once, after the processes were forked, in the
 * process that opened the rendezvous; WEFT_ERR_INVALID in its forks. */
WEFT_API WEFT_NODISCARD weft_status weft_rendezvous_serve(weft_rendezvous *rendezvous);

/* Tell the other ranks that the process of RANK has ended, so that they do not wait for it.  TEXT
 * says how, such as "is gone: it ended with exit code 3".  Without effect on a rank that has left
 * the job by itself (weft_context_release).  [any thread] */
WEFT_API void weft_rendezvous_report_gone(weft_rendezvous *rendezvous, int32_t rank,
                                          const char *text);

/* Stop serving, tell the ranks that are left, and set *RENDEZVOUS to NULL.  Accepts NULL and a
 * pointer to NULL. */
WEFT_API void weft_rendezvous_close(weft_rendezvous **rendezvous);

#ifdef __cplusplus
}
#endif
#endif
