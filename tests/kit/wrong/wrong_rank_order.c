/* wrong_rank_order.c - sorts the members of a communicator by their rank in the job.
 * Runs: --only collectives/all_gather/f32
 * Fails: collectives/all_gather/f32/out_of_place/count=6/ranks=3,2,1,0 */
#include "wrong.h"

static weft_status prepare(void *device, const weft_comm_options *options, void **comm,
                           weft_blob *address)
{
    weft_comm_options other = *options;

    other.rank = 0;
    for (int32_t i = 0; i < options->size; i++)
        if (options->world_ranks[i] < options->world_ranks[options->rank]) other.rank++;
    return right.comm.prepare(device, &other, comm, address);
}

/* The memory belongs to the first rank of the new order. */
static weft_status commit(void *self, const weft_blob *addresses, const weft_exchange *exchange)
{
    struct example_comm *comm = self;
    weft_blob sorted[EXAMPLE_MAX_RANKS];

    for (int32_t i = 0; i < comm->size; i++) {
        sorted[i] = addresses[i];
        if (((const char *)addresses[i].data)[0] != '\0') sorted[0] = addresses[i];
    }
    return right.comm.commit(comm, sorted, exchange);
}

INSTALL(wrong.comm.prepare = prepare, wrong.comm.commit = commit)
