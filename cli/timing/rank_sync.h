/* rank_sync.h - synchronizes the ranks of a weft communicator for the measuring loop. */
#ifndef WEFT_CLI_TIMING_RANK_SYNC_H
#define WEFT_CLI_TIMING_RANK_SYNC_H

#include "timing/loop.h"

#include "weft/weft.h"

struct rank_sync {
    weft_context *context;
    weft_comm *comm;
    bool inline_work; /* on the default stream, work is done on return */
    uint64_t *memory; /* the backend's, for maxima */
};

/* Prepare this rank for measuring with the ranks of COMM, and keep its thread on one core. */
weft_status rank_sync_open(struct rank_sync *sync, weft_context *context, weft_comm *comm);
weft_status rank_sync_close(struct rank_sync *sync);
/* Wait for this rank's work on the default stream. */
weft_status rank_sync_finish(const struct rank_sync *sync);
/* Replace each of COUNT values by the greatest of all ranks, on all ranks. */
weft_status rank_sync_maximum(const struct rank_sync *sync, uint64_t *values, size_t count);
/* Set ALL to the BYTES of MINE of each rank, in the order of ranks. */
weft_status rank_sync_gather(const struct rank_sync *sync, const void *mine, void *all,
                             size_t bytes);
/* SYNC for the loop.  It points to SYNC. */
struct bench_ranks rank_sync_ranks(struct rank_sync *sync);

#endif
