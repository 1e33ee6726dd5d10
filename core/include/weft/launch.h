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
 * WEFT_RENDEZVOUS (weft_rendezvous_address) and WEFT_TOKEN (weft_rendezvous_token).  The launcher
 * must remove TORCHELASTIC_RUN_ID from their environment: a process that has it and WEFT_SERVED=1
 * takes the variables of torchrun, because a torchrun then runs inside a rank.
 *
 * With `grows`, the launcher may start further processes at any time, for an elastic job that has
 * lost ranks or is to lose some (docs/elastic.md).  Such a process also gets WEFT_SPARE: a number
 * of its own, at least the number of ranks.  Its weft_init waits until the job has a place. */
#ifndef WEFT_LAUNCH_H
#define WEFT_LAUNCH_H

#include "status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The place of this process in its job, from its launcher's variables (docs/launch.md). */
typedef struct weft_launch_info {
    size_t struct_size;
    const char *launcher; /* "weft", "torchrun", "openmpi", "pmi", "slurm" or "none"; constant */
    int32_t rank, size;   /* 0 of 1 without a launcher */
    int32_t local_rank;   /* on this host; -1: the launcher does not set it */
} weft_launch_info;

/* Copy this process's place to *OUT, from the variables of the launcher that WEFT_LAUNCHER names,
 * otherwise of the innermost launcher.  WEFT_ERR_INVALID names variables that are missing, out of
 * range or contradictory.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_launch_get(weft_launch_info *out);

/* The server that the ranks of one job connect to. */
typedef struct weft_rendezvous weft_rendezvous;

typedef struct weft_rendezvous_options {
    size_t struct_size;
    int32_t size;            /* ranks of the job, at least 1 */
    const char *listen;      /* "host" or "host:port"; NULL: the loopback address.  Without a port,
                              * a free one is chosen */
    int64_t join_timeout_ns; /* time limit for all ranks to join; 0: WEFT_JOIN_TIMEOUT */
    bool grows;              /* processes may come later, to take the places of lost ranks of an
                              * elastic job */
} weft_rendezvous_options;

/* Open a rendezvous for a new job with a random token.  It starts no thread, so that the caller can
 * fork afterwards.  The caller closes *OUT.  WEFT_ERR_SYSTEM: the system cannot listen on the
 * address.  WEFT_ERR_PARSE: LISTEN is not an address. */
WEFT_API WEFT_NODISCARD weft_status weft_rendezvous_open(const weft_rendezvous_options *options,
                                                         weft_rendezvous **out);

/* The address ("127.0.0.1:40123") and the job's secret, for WEFT_RENDEZVOUS and WEFT_TOKEN of the
 * ranks.  Valid as long as the rendezvous; NULL for NULL. */
WEFT_API const char *weft_rendezvous_address(const weft_rendezvous *rendezvous);
WEFT_API const char *weft_rendezvous_token(const weft_rendezvous *rendezvous);

/* Start to serve, on a new thread.  Call it once, after the processes were forked, in the process
 * that opened the rendezvous; its forks get WEFT_ERR_INVALID. */
WEFT_API WEFT_NODISCARD weft_status weft_rendezvous_serve(weft_rendezvous *rendezvous);

/* Report to the other ranks that the process of RANK has ended, so that they do not wait for it.
 * TEXT completes a sentence that begins with the rank, such as "is gone: it ended with exit code
 * 3".  No effect if the rank has left the job by weft_context_release.  [any thread] */
WEFT_API void weft_rendezvous_report_gone(weft_rendezvous *rendezvous, int32_t rank,
                                          const char *text);

/* Whether the process with WEFT_SPARE=NUMBER has been given a place in the job.  If not, its end is
 * no loss of a rank.  False for NULL.  [any thread] */
WEFT_API bool weft_rendezvous_has_entered(const weft_rendezvous *rendezvous, int32_t number);

/* Stop serving, free the rendezvous and set *RENDEZVOUS to NULL.  Close it after all ranks have
 * left the job: the communicators of ranks that have not left fail, because the rendezvous reports
 * its end to these ranks.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_rendezvous_close(weft_rendezvous **rendezvous);

#ifdef __cplusplus
}
#endif
#endif
