/* peer_mpi.c - the collectives of whichever MPI compiled this; PEER_NAME says which. */
#include "peer.h"

#include <mpi.h>

static int barrier(void *self)
{
    (void)self;
    return MPI_Barrier(MPI_COMM_WORLD);
}

static int maximum(void *self, uint64_t *values, size_t count)
{
    (void)self;
    return MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
}

static int collective(void *self, enum bench_op op, const float *send, float *recv, size_t count)
{
    int n = (int)count;

    (void)self;
    switch (op) {
    case BENCH_ALL_REDUCE:
        return MPI_Allreduce(send, recv, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case BENCH_ALL_GATHER:
        return MPI_Allgather(send, n, MPI_FLOAT, recv, n, MPI_FLOAT, MPI_COMM_WORLD);
    case BENCH_REDUCE_SCATTER:
        return MPI_Reduce_scatter_block(send, recv, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case BENCH_ALL_TO_ALL:
        return MPI_Alltoall(send, n, MPI_FLOAT, recv, n, MPI_FLOAT, MPI_COMM_WORLD);
    default:
        return MPI_Bcast(recv, n, MPI_FLOAT, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    struct peer peer = {.name = PEER_NAME, .collective = collective};
    struct peer_request request;
    int exit_code;

    MPI_Init(&argc, &argv);
    peer_parse(argc, argv, &request);
    MPI_Comm_rank(MPI_COMM_WORLD, &peer.ranks.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &peer.ranks.size);
    peer.ranks.barrier = barrier;
    peer.ranks.maximum = maximum;
    bench_pin(peer.ranks.rank);
    exit_code = peer_measure(&peer, &request);
    MPI_Finalize();
    return exit_code;
}
