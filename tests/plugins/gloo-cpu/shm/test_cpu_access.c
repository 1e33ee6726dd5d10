/* Ranks of one process access each other's private memory directly.  A rank may free its memory
 * after a failed call, so the call ends after the last access of another rank.
 *
 * Rank 0 owns memory with a page that nobody may access.  Rank 1 accesses it and stays in the
 * handler of the signal until the test opens the gate.  Meanwhile the communicator of rank 0
 * fails. */
#include "cpu_comm.h"
#include "ranks.h"

#include "support/gate.h"
#include "support/suite.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define BYTES  (UINT64_C(1) << 20) /* of one rank's part */
#define COUNT  (BYTES / sizeof(float))

/* Calls other than collectives. */
enum { MESSAGE = WEFT_COLL_COUNT, PULL, PUT, GET };

static struct {
    uint32_t what;
    bool on_stream;
} call;

/* ---- the gate ---- */

/* Fails the communicator of rank 0 during the access, and then ends the access. */
static void *fail_owner(void *argument)
{
    struct rank *rank = argument;

    while (!atomic_load(&gate.entered))
        pause_briefly();
    rank->plugin->comm->abort(rank->comm);
    for (int i = 0; i < 100 && !atomic_load(&gate.over); i++)
        pause_briefly();
    RANK_CHECK(!atomic_load(&gate.over));
    atomic_store(&gate.open, true);
    return NULL;
}

/* ---- the calls ---- */

static bool gathers(void)
{
    return call.what == WEFT_COLL_ALL_GATHER || call.what == WEFT_COLL_GATHER;
}

/* Rank 1 reads, or writes, this byte of rank 0's memory.  Rank 0 does not. */
static unsigned char *find_page(unsigned char *send, unsigned char *recv)
{
    switch (call.what) {
    case WEFT_COLL_BROADCAST: /* the root writes the last part */
        return recv + BYTES - GATE_BYTES;
    case WEFT_COLL_ALL_REDUCE: /* rank 1 has the last part of the sums */
        return recv + BYTES - GATE_BYTES;
    case WEFT_COLL_ALL_TO_ALL:
    case WEFT_COLL_SCATTER:
    case WEFT_COLL_REDUCE_SCATTER:
        return send + BYTES + GATE_BYTES;
    default:
        return send + BYTES - GATE_BYTES;
    }
}

static weft_status run_collective(struct rank *rank, unsigned char *send, unsigned char *recv,
                                  void *stream)
{
    bool in_place = call.what == WEFT_COLL_BROADCAST && rank->number == 1;
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = call.what,
                                 .dtype = WEFT_DTYPE_F32,
                                 .reduction = WEFT_REDUCE_SUM,
                                 .root = call.what == WEFT_COLL_SCATTER ? 0 : 1,
                                 .send = send,
                                 .recv = in_place ? send : recv,
                                 .count = COUNT,
                                 .stream = stream};

    if (gathers()) args.recv = rank->number == 0 ? send : recv;
    return rank->plugin->comm->collective(rank->comm, &args);
}

static weft_status run_message(struct rank *rank, unsigned char *send, unsigned char *recv,
                               void *stream)
{
    weft_message message = {.struct_size = sizeof message,
                            .dtype = WEFT_DTYPE_F32,
                            .buffer = rank->number == 0 ? send : recv,
                            .count = COUNT,
                            .peer = 1 - rank->number,
                            .stream = stream};

    return rank->number == 0 ? rank->plugin->comm->send(rank->comm, &message)
                             : rank->plugin->comm->receive(rank->comm, &message);
}

/* Every rank reads all of the other's memory. */
static weft_status run_pull(struct rank *rank, unsigned char *send, unsigned char *recv,
                            void *stream)
{
    weft_region region = {.dims = 1, .extent = {COUNT}, .source_stride = {1}, .target_stride = {1}};
    int32_t source = 1 - rank->number;
    void *regions = NULL;
    weft_pull_args args = {.struct_size = sizeof args,
                           .dtype = WEFT_DTYPE_F32,
                           .holders = 1,
                           .sources = &source,
                           .send = send,
                           .recv = recv,
                           .stream = stream};
    weft_status status;

    RANK_OK(rank->plugin->kernel->regions_create(rank->device, 4, 1, &region, &regions));
    args.regions = regions;
    status = rank->plugin->comm->pull(rank->comm, &args);
    if (stream != NULL && status == WEFT_OK)
        status = rank->plugin->device->stream_wait(rank->device, stream, WEFT_FOREVER);
    rank->plugin->kernel->regions_destroy(regions);
    return status;
}

/* Rank 1 accesses rank 0's window, which rank 0 releases after the failure. */
static weft_status run_onesided(struct rank *rank, unsigned char *send, unsigned char *recv,
                                void *stream)
{
    const weft_symm_table *symm = rank->plugin->symm;
    void *window = NULL;
    weft_status status = WEFT_OK;

    RANK_OK(symm->window_register(rank->comm, send, BYTES, 1, &window));
    if (rank->number == 1 && call.what == PUT)
        status = symm->put(window, 0, recv, BYTES, 0, stream);
    else if (rank->number == 1)
        status = symm->get(window, recv, 0, BYTES, 0, stream);
    while (rank->number == 0 && status == WEFT_OK) {
        pause_briefly();
        status = rank->plugin->comm->async_error(rank->comm);
    }
    RANK_CHECK(symm->window_destroy(window) != WEFT_OK);
    return status;
}

static weft_status make_call(struct rank *rank, unsigned char *send, unsigned char *recv)
{
    void *stream = NULL;
    weft_status status;

    if (call.on_stream) RANK_OK(rank->plugin->device->stream_create(rank->device, &stream));
    if (call.what == MESSAGE)
        status = run_message(rank, send, recv, stream);
    else if (call.what == PULL)
        status = run_pull(rank, send, recv, stream);
    else if (call.what == PUT || call.what == GET)
        status = run_onesided(rank, send, recv, stream);
    else
        status = run_collective(rank, send, recv, stream);
    if (call.on_stream && status == WEFT_OK)
        status = rank->plugin->device->stream_wait(rank->device, stream, WEFT_FOREVER);
    if (rank->number == 0) atomic_store(&gate.over, true);
    rank->plugin->device->stream_destroy(rank->device, stream);
    return status;
}

static void owner_fails_during_access(struct rank *rank)
{
    unsigned char *send = map_zeros(2 * BYTES), *recv = map_zeros(2 * BYTES);
    pthread_t helper;
    weft_status status;

    if (rank->number == 0) {
        close_gate();
        place_gate(find_page(send, recv));
    }
    ranks_meet(rank);
    if (rank->number == 0 && pthread_create(&helper, NULL, fail_owner, rank) != 0) abort();
    status = make_call(rank, send, recv);
    if (rank->number == 0) RANK_CHECK(status == WEFT_ERR_ABORTED);
    munmap(send, 2 * BYTES);
    munmap(recv, 2 * BYTES);
    if (rank->number == 0) pthread_join(helper, NULL);
    ranks_meet(rank);
}

TEST(a_failed_call_returns_after_the_last_access)
{
    static const uint32_t calls[] = {WEFT_COLL_BROADCAST,
                                     WEFT_COLL_GATHER,
                                     WEFT_COLL_SCATTER,
                                     WEFT_COLL_ALL_GATHER,
                                     WEFT_COLL_ALL_TO_ALL,
                                     WEFT_COLL_ALL_REDUCE,
                                     WEFT_COLL_REDUCE,
                                     WEFT_COLL_REDUCE_SCATTER,
                                     MESSAGE,
                                     PULL,
                                     PUT,
                                     GET};
    struct sigaction action = {.sa_sigaction = stay_at_gate, .sa_flags = SA_SIGINFO}, before;
    struct ranks_options options = {
        .size = 2, .threads = true, .timeout_ns = 60 * SECOND, .body = owner_fails_during_access};

    ck_assert_int_eq(sigaction(SIGSEGV, &action, &before), 0);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (int on_stream = 0; on_stream < 2; on_stream++) {
            call.what = calls[i];
            call.on_stream = on_stream != 0;
            ck_assert_int_eq(ranks_run(&options), 0);
        }
    ck_assert_int_eq(sigaction(SIGSEGV, &before, NULL), 0);
}

/* ---- the pattern, many times ---- */

#define ROUNDS 2000

/* Rank 0 fails while rank 1 begins accesses.  No access begins after rank 0 has waited. */
static void owner_fails_before_access(struct rank *rank)
{
    static atomic_bool freed;
    struct cpu_shm_group *group;
    void *comm = NULL;

    for (uint64_t i = 0; i < (RANKS_SANITIZED ? ROUNDS / 10 : ROUNDS); i++) {
        RANK_OK(ranks_comm(rank, "round", &comm));
        group = &((struct cpu_comm *)comm)->group;
        if (rank->number == 0) atomic_store(&freed, false);
        ranks_meet(rank);
        if (rank->number == 0) {
            (void)cpu_shm_fail(group, WEFT_ERR_ABORTED, "as the test wants");
            cpu_shm_access_wait(group);
            atomic_store_explicit(&freed, true, memory_order_relaxed);
        }
        while (rank->number == 1 && cpu_shm_access_begin(group, 0) == WEFT_OK) {
            RANK_CHECK(!atomic_load_explicit(&freed, memory_order_relaxed));
            cpu_shm_access_end(group, 0);
        }
        ranks_meet(rank);
        rank->plugin->comm->destroy(comm);
    }
}

TEST(no_access_begins_after_the_owner_has_waited)
{
    struct ranks_options options = {
        .size = 2, .threads = true, .timeout_ns = 60 * SECOND, .body = owner_fails_before_access};

    ck_assert_int_eq(ranks_run(&options), 0);
}
