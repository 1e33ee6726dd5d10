/* call_cost.c - what a collective through a plugin costs beside the library's own call, on the
 * same communicator and buffers.
 *
 *     call_cost PLUGIN.so [--ranks N] [--most BYTES] [--calls N]
 *
 * Ranks are processes of this host.  Rank 0 prints JSON: per size, microseconds of CPU time until
 * the call returns, and of the whole until the stream is done, for both. */
#include "load.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_RANKS = 16, ROOM = 512 };

static struct board {
    atomic_int arrived[2];
    atomic_int round;
    char data[MAX_RANKS][ROOM];
} * board;
static int rank, size = 1;

static void meet(void)
{
    int round = atomic_load(&board->round);

    if (atomic_fetch_add(&board->arrived[round % 2], 1) == size - 1) {
        atomic_store(&board->arrived[round % 2], 0);
        atomic_store(&board->round, round + 1);
    }
    while (atomic_load(&board->round) == round)
        sched_yield();
}

static weft_status gather(void *self, const void *mine, void *all, uint64_t bytes)
{
    (void)self;
    if (bytes > ROOM) return WEFT_ERR_INTERNAL;
    memcpy(board->data[rank], mine, bytes);
    meet();
    for (int r = 0; r < size; r++)
        memcpy((char *)all + (uint64_t)r * bytes, board->data[r], bytes);
    meet();
    return WEFT_OK;
}

static void *make_comm(const weft_plugin *plugin, void *device)
{
    weft_exchange exchange = {NULL, gather};
    uint64_t hosts[MAX_RANKS] = {0};
    int32_t ranks[MAX_RANKS];
    weft_comm_options options = {.struct_size = sizeof options,
                                 .rank = rank,
                                 .size = size,
                                 .world_ranks = ranks,
                                 .host_ids = hosts,
                                 .name = "call_cost",
                                 .job = 1,
                                 .timeout_ns = INT64_C(120000000000)};
    char all[MAX_RANKS][ROOM];
    weft_blob addresses[MAX_RANKS], mine;
    void *comm = NULL;

    for (int r = 0; r < size; r++)
        ranks[r] = r;
    must(plugin->comm->prepare(device, &options, &comm, &mine), "prepare");
    gather(NULL, mine.data, all, mine.bytes);
    for (int r = 0; r < size; r++)
        addresses[r] = (weft_blob){(char *)all + (uint64_t)r * mine.bytes, mine.bytes};
    must(plugin->comm->commit(comm, addresses, &exchange), "commit");
    return comm;
}

/* ---- the library's own call ---- */

typedef int all_reduce(const void *, void *, size_t, int, int, void *, void *);

/* The plugin has already opened the library, so dlopen by the same name returns the same one. */
static all_reduce *find_raw(void)
{
    const char *names[] = {getenv("WEFT_NCCL_LIB"), "libnccl.so.2"};
    all_reduce *found = NULL;

    for (int i = 0; i < 2 && found == NULL; i++) {
        void *library = names[i] != NULL ? dlopen(names[i], RTLD_NOW | RTLD_LOCAL) : NULL;
        if (library != NULL) *(void **)(void *)&found = dlsym(library, "ncclAllReduce");
    }
    if (found == NULL) {
        fprintf(stderr, "call_cost: the library's own ncclAllReduce was not found\n");
        exit(1);
    }
    return found;
}

struct both {
    const weft_plugin *plugin;
    void *device, *stream, *comm, *native_comm, *native_stream, *send, *recv;
    all_reduce *raw;
    weft_collective_args args;
};

static void call(const struct both *b, bool raw)
{
    if (!raw) {
        must(b->plugin->comm->collective(b->comm, &b->args), "collective");
        return;
    }
    if (b->raw(b->send, b->recv, b->args.count, 7, 0, b->native_comm, b->native_stream) != 0) {
        fprintf(stderr, "ncclAllReduce failed\n");
        exit(1);
    }
}

struct times {
    double call, whole; /* microseconds */
};

static struct times measure(const struct both *b, bool raw, int calls)
{
    struct times best = {1e300, 1e300};

    for (int round = 0; round < 5; round++) {
        double begin, called, done;
        meet();
        begin = now_us();
        for (int i = 0; i < calls; i++)
            call(b, raw);
        called = now_us();
        must(b->plugin->device->stream_wait(b->device, b->stream, INT64_C(60000000000)),
             "stream_wait");
        done = now_us();
        if ((called - begin) / calls < best.call) best.call = (called - begin) / calls;
        if ((done - begin) / calls < best.whole) best.whole = (done - begin) / calls;
    }
    return best;
}

static void compare(struct both *b, uint64_t most, int calls)
{
    const char *comma = "";

    for (uint64_t bytes = 1024; bytes <= most; bytes *= 4) {
        int n = bytes > 4 << 20 ? 2 : calls;
        struct times raw, ours;
        b->args.count = bytes / 4;
        measure(b, true, 1); /* connects */
        measure(b, false, 1);
        raw = measure(b, true, n);
        ours = measure(b, false, n);
        if (rank != 0) continue;
        printf("%s\n    {\"bytes\": %llu, \"raw_call_us\": %.2f, \"call_us\": %.2f, "
               "\"raw_us\": %.2f, \"us\": %.2f}",
               comma, (unsigned long long)bytes, raw.call, ours.call, raw.whole, ours.whole);
        fflush(stdout);
        comma = ",";
    }
}

static int run_rank(const char *file, uint64_t most, int calls)
{
    struct both b = {0};

    alarm(300); /* also if another rank has exited */
    b.plugin = load_plugin(file, rank, &b.device);
    b.comm = make_comm(b.plugin, b.device);
    b.native_comm = b.plugin->comm->native(b.comm);
    must(b.plugin->device->stream_create(b.device, &b.stream), "stream_create");
    b.native_stream = b.plugin->device->stream_native(b.device, b.stream);
    b.send = device_memory(b.plugin, b.device, most);
    b.recv = device_memory(b.plugin, b.device, most);
    b.raw = find_raw();
    must(b.plugin->device->fill(b.device, b.send, 0, most, b.stream), "fill");
    b.args = (weft_collective_args){.struct_size = sizeof b.args,
                                    .collective = WEFT_COLL_ALL_REDUCE,
                                    .dtype = WEFT_DTYPE_F32,
                                    .send = b.send,
                                    .recv = b.recv,
                                    .stream = b.stream};
    if (rank == 0) printf("{\"ranks\": %d, \"all_reduce\": [", size);
    compare(&b, most, calls);
    if (rank == 0) printf("\n  ]}\n");
    meet();
    b.plugin->comm->destroy(b.comm);
    b.plugin->device->stream_destroy(b.device, b.stream);
    must(b.plugin->device->free(b.device, b.send), "free");
    must(b.plugin->device->free(b.device, b.recv), "free");
    b.plugin->device->close(b.device);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t most = UINT64_C(256) << 20;
    int calls = 50, failed = 0, code;
    pid_t children[MAX_RANKS];

    for (int i = 2; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--ranks") == 0) size = (int)value;
        if (strcmp(argv[i], "--most") == 0) most = value;
        if (strcmp(argv[i], "--calls") == 0) calls = (int)value;
    }
    if (argc < 2 || size < 1 || size > MAX_RANKS) {
        fprintf(stderr, "usage: call_cost PLUGIN.so [--ranks N] [--most BYTES] [--calls N]\n");
        return 2;
    }
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) return 1;
    for (rank = 0; rank < size; rank++) {
        children[rank] = fork();
        if (children[rank] == 0) exit(run_rank(argv[1], most, calls));
    }
    for (int r = 0; r < size; r++)
        if (waitpid(children[r], &code, 0) < 0 || code != 0) failed = 1;
    return failed;
}
