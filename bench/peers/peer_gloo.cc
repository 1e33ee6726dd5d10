// peer_gloo.cc - Gloo's own collectives over TCP on loopback, between processes this program
// starts: PROGRAM RANKS STORE [options of peer.h].  STORE is an empty folder for the rendezvous.
//
// Not pinned: Gloo's event-loop thread needs a core of its own as much as the caller does.
#include "peer.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace
{

using Sum = void (*)(void *, const void *, const void *, size_t);
using ReduceScatter = gloo::ReduceScatterHalvingDoubling<float>;

// Gloo's reduce-scatter is bound to one buffer, which it overwrites, and which it may still be
// sending from when it returns.  Two in turn: a call ends only after the peers had the last one's.
struct Bound {
    std::vector<float> work;
    std::unique_ptr<ReduceScatter> algorithm;
};

struct Rank {
    std::shared_ptr<gloo::rendezvous::Context> context;
    Bound bound[2];
    int turn = 0;
};

Rank *rank_of(void *self)
{
    return static_cast<Rank *>(self);
}

int barrier(void *self)
{
    gloo::BarrierOptions options(rank_of(self)->context);
    gloo::barrier(options);
    return 0;
}

int maximum(void *self, uint64_t *values, size_t count)
{
    gloo::AllreduceOptions options(rank_of(self)->context);
    options.setOutput(values, count);
    options.setReduceFunction(static_cast<Sum>(&gloo::max<uint64_t>));
    gloo::allreduce(options);
    return 0;
}

void all_reduce(Rank *rank, const float *send, float *recv, size_t count)
{
    gloo::AllreduceOptions options(rank->context);
    options.setInput(const_cast<float *>(send), count);
    options.setOutput(recv, count);
    options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
    gloo::allreduce(options);
}

void all_gather(Rank *rank, const float *send, float *recv, size_t count)
{
    gloo::AllgatherOptions options(rank->context);
    options.setInput(const_cast<float *>(send), count);
    options.setOutput(recv, count * static_cast<size_t>(rank->context->size));
    gloo::allgather(options);
}

void reduce_scatter(Rank *rank, const float *send, float *recv, size_t count)
{
    size_t size = static_cast<size_t>(rank->context->size);
    size_t total = count * size;

    if (rank->bound[0].work.size() != total)
        for (Bound &bound : rank->bound) {
            bound.algorithm.reset();
            bound.work.assign(total, 0);
            bound.algorithm.reset(new ReduceScatter(
                rank->context, std::vector<float *>{bound.work.data()}, static_cast<int>(total),
                std::vector<int>(size, static_cast<int>(count))));
        }
    Bound &bound = rank->bound[rank->turn ^= 1];
    std::memcpy(bound.work.data(), send, total * sizeof(float));
    bound.algorithm->run();
    std::memcpy(recv, bound.work.data(), count * sizeof(float));
}

void all_to_all(Rank *rank, const float *send, float *recv, size_t count)
{
    size_t total = count * static_cast<size_t>(rank->context->size);
    gloo::AlltoallOptions options(rank->context);
    options.setInput(const_cast<float *>(send), total);
    options.setOutput(recv, total);
    gloo::alltoall(options);
}

void broadcast(Rank *rank, float *recv, size_t count)
{
    gloo::BroadcastOptions options(rank->context);
    options.setOutput(recv, count);
    options.setRoot(0);
    gloo::broadcast(options);
}

int collective(void *self, enum bench_op op, const float *send, float *recv, size_t count)
{
    switch (op) {
    case BENCH_ALL_REDUCE:
        all_reduce(rank_of(self), send, recv, count);
        break;
    case BENCH_ALL_GATHER:
        all_gather(rank_of(self), send, recv, count);
        break;
    case BENCH_REDUCE_SCATTER:
        reduce_scatter(rank_of(self), send, recv, count);
        break;
    case BENCH_ALL_TO_ALL:
        all_to_all(rank_of(self), send, recv, count);
        break;
    default:
        broadcast(rank_of(self), recv, count);
        break;
    }
    return 0;
}

int run_rank(int rank, int size, const char *folder, const struct peer_request *request)
{
    gloo::transport::tcp::attr attributes;
    gloo::rendezvous::FileStore store(folder);
    struct peer peer = {};
    Rank self;

    attributes.iface = "lo";
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    self.context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    self.context->connectFullMesh(store, device);
    peer.name = "gloo";
    peer.ranks = {rank, size, &self, barrier, maximum};
    peer.collective = collective;
    return peer_measure(&peer, request);
}

} // namespace

int main(int argc, char **argv)
{
    struct peer_request request;
    int size = argc > 2 ? std::atoi(argv[1]) : 0;
    int failed = 0;

    if (size < 1) {
        std::fprintf(stderr, "usage: %s RANKS STORE [options]\n", argv[0]);
        return 2;
    }
    peer_parse(argc - 2, argv + 2, &request);
    for (int rank = 0; rank < size; rank++)
        if (fork() == 0) {
            int exit_code = 1;
            try {
                exit_code = run_rank(rank, size, argv[2], &request);
            } catch (const std::exception &error) {
                std::fprintf(stderr, "gloo rank %d: %s\n", rank, error.what());
            }
            std::fflush(stdout);
            _exit(exit_code);
        }
    for (int status; wait(&status) > 0;)
        if (status != 0) failed = 1;
    return failed;
}
