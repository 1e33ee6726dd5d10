/* wrong_mixes_messages.c - counts peers in the job, not in the communicator.
 * Runs: --only p2p/pair --comm-timeout 1
 * Fails: p2p/pair/f32/count=5/from=0/to=1/ranks=3,1 */
#include "wrong.h"

static int32_t world_ranks[64][EXAMPLE_MAX_RANKS];
static void *owners[64];

static weft_status prepare(void *device, const weft_comm_options *options, void **comm,
                           weft_blob *address)
{
    weft_status status = right.comm.prepare(device, options, comm, address);

    for (int i = 0; i < 64 && status == WEFT_OK; i++) {
        if (owners[i] != NULL) continue;
        owners[i] = *comm;
        for (int32_t k = 0; k < options->size; k++)
            world_ranks[i][k] = options->world_ranks[k];
        break;
    }
    return status;
}

static weft_status receive(void *self, const weft_message *message)
{
    struct example_comm *comm = self;
    weft_message other = *message;

    for (int i = 0; i < 64; i++)
        if (owners[i] == comm && comm->size == 2) other.peer = world_ranks[i][message->peer] % 2;
    return right.comm.receive(comm, &other);
}

INSTALL(wrong.comm.prepare = prepare, wrong.comm.receive = receive)
