/* Ranks that are killed, stopped, have exited, or make another call: the other ranks report it
 * soon. */
#include "ranks.h"

#include "support/suite.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

static weft_status collective(struct rank *rank, uint32_t which, uint32_t dtype, uint64_t count,
                              int root)
{
    static _Thread_local double send[64], recv[64];
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = which,
                                 .dtype = dtype,
                                 .root = root,
                                 .send = send,
                                 .recv = recv,
                                 .count = count};

    return rank->plugin->comm->collective(rank->comm, &args);
}

static weft_status all_reduce(struct rank *rank)
{
    return collective(rank, WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32, 3, 0);
}

static void run(int size, bool threads, int64_t timeout_ns, int failing,
                void (*body)(struct rank *))
{
    struct ranks_options options = {
        .size = size, .threads = threads, .timeout_ns = timeout_ns, .body = body};

    ck_assert_int_eq(ranks_run(&options), failing);
}

/* The failure names RANK and is permanent.  It is not a timeout, unless ALSO allows that. */
static void check_named(struct rank *rank, weft_status status, const char *name, weft_status also)
{
    char first[1024];

    RANK_CHECK(status == WEFT_ERR_PEER || status == also);
    snprintf(first, sizeof first, "%s", ranks_error());
    if (strstr(first, name) == NULL) fprintf(stderr, "\"%s\" is not in: %s\n", name, first);
    RANK_CHECK(strstr(first, name) != NULL);
    RANK_CHECK(rank->plugin->comm->async_error(rank->comm) == status);
    RANK_CHECK(strcmp(ranks_error(), first) == 0);
    RANK_CHECK(all_reduce(rank) == status);
}

static void two_is_killed(struct rank *rank)
{

    RANK_OK(all_reduce(rank));
    if (rank->number == 2) raise(SIGKILL);
    check_named(rank, all_reduce(rank), "rank 2 (pid", WEFT_ERR_PEER);
}

TEST(a_killed_rank_is_named_long_before_the_time_limit)
{
    run(4, false, 300 * SECOND, 1, two_is_killed);
}

static void sender_is_killed(struct rank *rank)
{
    weft_message message = {.struct_size = sizeof message, .peer = 1, .tag = 9};

    RANK_OK(all_reduce(rank));
    if (rank->number == 1) raise(SIGKILL);
    check_named(rank, rank->plugin->comm->receive(rank->comm, &message), "rank 1 (pid",
                WEFT_ERR_PEER);
}

TEST(a_receive_from_a_killed_rank_ends)
{
    run(2, false, 300 * SECOND, 1, sender_is_killed);
}

static void signaller_is_killed(struct rank *rank)
{
    void *window, *local;
    weft_status status;

    RANK_OK(rank->plugin->symm->window_create(rank->comm, 64, 1, &window, &local));
    if (rank->number == 1) raise(SIGKILL);
    status = rank->plugin->symm->wait_signal(window, 0, WEFT_COMPARE_NE, 0, 300 * SECOND, NULL);
    check_named(rank, status, "rank 1 (pid", WEFT_ERR_PEER);
    RANK_CHECK(rank->plugin->symm->window_destroy(window) == status);
}

TEST(a_wait_for_the_signal_of_a_killed_rank_ends)
{
    run(2, false, 300 * SECOND, 1, signaller_is_killed);
}

static void one_stops(struct rank *rank)
{
    int32_t pid = getpid(), pids[4];
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_GATHER,
                                 .dtype = WEFT_DTYPE_I32,
                                 .send = &pid,
                                 .recv = pids,
                                 .count = 1};

    RANK_OK(rank->plugin->comm->collective(rank->comm, &args));
    if (rank->number == 1) raise(SIGSTOP);
    check_named(rank, all_reduce(rank), "rank 1 (pid", WEFT_ERR_TIMEOUT);
    if (rank->number == 0) kill(pids[1], SIGKILL);
}

TEST(a_stopped_rank_is_named_when_the_time_is_up)
{
    run(3, false, 4 * SECOND, 1, one_stops);
}

static void one_goes(struct rank *rank)
{

    RANK_OK(all_reduce(rank));
    if (rank->number == 1) _exit(0);
    check_named(rank, all_reduce(rank), "rank 1 (pid", WEFT_ERR_PEER);
}

static void one_leaves(struct rank *rank)
{

    RANK_OK(all_reduce(rank));
    if (rank->number == 1) return;
    check_named(rank, all_reduce(rank), "rank 1 (pid", WEFT_ERR_PEER);
    RANK_CHECK(strstr(ranks_error(), "has left") != NULL);
}

TEST(a_rank_that_ends_early_is_named)
{
    run(2, false, 300 * SECOND, 0, one_goes);
    run(3, false, 300 * SECOND, 0, one_leaves);
    run(2, true, 300 * SECOND, 0, one_leaves);
}

/* Ranks differ in speed: fast ranks leave while slow ones still read. */
static void leave_at_once(struct rank *rank)
{
    struct timespec pause = {.tv_nsec = (rank->number % 3) * 300000};

    for (int i = 0; i < 40; i++) {
        void *comm;
        int32_t mine = rank->number + i, all[8];
        weft_collective_args args = {.struct_size = sizeof args,
                                     .collective = WEFT_COLL_ALL_GATHER,
                                     .dtype = WEFT_DTYPE_I32,
                                     .send = &mine,
                                     .recv = all,
                                     .count = 1};

        RANK_OK(ranks_comm(rank, "short", &comm));
        nanosleep(&pause, NULL);
        RANK_OK(rank->plugin->comm->collective(comm, &args));
        rank->plugin->comm->destroy(comm);
        for (int p = 0; p < rank->size; p++)
            RANK_CHECK(all[p] == p + i);
    }
}

TEST(leaving_after_the_last_collective_is_harmless)
{
    run(4, false, 300 * SECOND, 0, leave_at_once);
    run(4, true, 300 * SECOND, 0, leave_at_once);
}

/* ---- calls that differ ---- */

static struct {
    uint32_t collective, dtype;
    uint64_t count;
    int root;
    const char *words;
} odd;

static void one_differs(struct rank *rank)
{
    bool differs = rank->number == 1;
    weft_status status;

    RANK_OK(collective(rank, WEFT_COLL_BROADCAST, WEFT_DTYPE_F32, 3, 0));
    status = differs ? collective(rank, odd.collective, odd.dtype, odd.count, odd.root)
                     : collective(rank, WEFT_COLL_BROADCAST, WEFT_DTYPE_F32, 3, 0);
    RANK_CHECK(status == WEFT_ERR_MISMATCH);
    if (strstr(ranks_error(), odd.words) == NULL) fprintf(stderr, "%s\n", ranks_error());
    RANK_CHECK(strstr(ranks_error(), odd.words) != NULL);
    RANK_CHECK(strstr(ranks_error(),
                      "collective 2: rank 0 calls broadcast(f32, count 3, root 0)") != NULL);
    RANK_CHECK(rank->plugin->comm->async_error(rank->comm) == WEFT_ERR_MISMATCH);
}

TEST(every_rank_learns_of_calls_that_differ_and_sees_both)
{
    static const struct {
        uint32_t collective, dtype;
        uint64_t count;
        int root;
        const char *words;
    } calls[] = {
        {WEFT_COLL_BROADCAST, WEFT_DTYPE_F32, 4, 0, "rank 1 calls broadcast(f32, count 4, root 0)"},
        {WEFT_COLL_BROADCAST, WEFT_DTYPE_I32, 3, 0, "rank 1 calls broadcast(i32, count 3, root 0)"},
        {WEFT_COLL_BROADCAST, WEFT_DTYPE_F32, 3, 2, "rank 1 calls broadcast(f32, count 3, root 2)"},
        {WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32, 3, 0, "rank 1 calls all_reduce(f32, count 3, sum)"},
        {WEFT_COLL_BARRIER, WEFT_DTYPE_F32, 0, 0, "rank 1 calls barrier"},
    };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (int threads = 0; threads < 2; threads++) {
            struct ranks_options options = {.size = 3,
                                            .threads = threads != 0,
                                            .flags = WEFT_COMM_CHECK,
                                            .timeout_ns = 300 * SECOND,
                                            .body = one_differs};

            memcpy(&odd, &calls[i], sizeof odd);
            ck_assert_int_eq(ranks_run(&options), 0);
        }
}

static void counts_differ(struct rank *rank)
{
    uint64_t to[3] = {1, 1, 1}, from[3] = {1, 1, 1}, at[3] = {0, 1, 2};
    int32_t send[4] = {0}, recv[4] = {0};
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_TO_ALL_V,
                                 .dtype = WEFT_DTYPE_I32,
                                 .send = send,
                                 .recv = recv,
                                 .send_counts = to,
                                 .send_offsets = at,
                                 .recv_counts = from,
                                 .recv_offsets = at};

    RANK_OK(rank->plugin->comm->collective(rank->comm, &args));
    if (rank->number == 2) to[0] = 2;
    RANK_CHECK(rank->plugin->comm->collective(rank->comm, &args) == WEFT_ERR_MISMATCH);
    RANK_CHECK(strstr(ranks_error(), "rank 2 sends 8 bytes to rank 0, which expects 4") != NULL);
}

TEST(every_rank_learns_of_counts_that_differ)
{
    struct ranks_options options = {
        .size = 3, .flags = WEFT_COMM_CHECK, .timeout_ns = 300 * SECOND, .body = counts_differ};

    ck_assert_int_eq(ranks_run(&options), 0);
}

static void differ_unchecked(struct rank *rank)
{
    uint64_t count = rank->number == 1 ? 4 : 3;
    weft_status status = collective(rank, WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32, count, 0);

    RANK_CHECK(status == WEFT_ERR_MISMATCH);
}

TEST(calls_that_differ_are_noticed_unasked_where_ranks_meet)
{
    run(2, false, 300 * SECOND, 0, differ_unchecked);
    run(3, true, 300 * SECOND, 0, differ_unchecked);
}

/* ---- what stays behind ---- */

static int count_entries(const char *path, const char *prefix)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    int count = 0;

    if (folder == NULL) return 0;
    while ((entry = readdir(folder)) != NULL)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) count++;
    closedir(folder);
    return count;
}

TEST(nothing_is_left_behind_and_the_next_run_works)
{
    run(4, false, 300 * SECOND, 1, two_is_killed);
    ck_assert_int_eq(count_entries("/dev/shm", "weft-cpu"), 0);
    ranks_knob("WEFT_CPU_DEV_SHM", "1");
    run(4, false, 300 * SECOND, 1, two_is_killed);
    ck_assert_int_eq(count_entries("/dev/shm", "weft-cpu"), 0);
    run(4, false, 300 * SECOND, 0, leave_at_once);
    ranks_knob("WEFT_CPU_DEV_SHM", NULL);
}

static uint64_t memory_in_use(void)
{
    char line[256];
    uint64_t pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "%*u %lu %lu", &resident, &pages);
    if (file != NULL) fclose(file);
    return resident;
}

static void come_and_go(struct rank *rank)
{
    int files = 0;
    uint64_t memory = 0;

    for (int i = 0; i < 600; i++) {
        void *comm;

        RANK_OK(ranks_comm(rank, "brief", &comm));
        rank->plugin->comm->destroy(comm);
        if (i == 100) {
            files = count_entries("/proc/self/fd", "");
            memory = memory_in_use();
        }
    }
    RANK_CHECK(count_entries("/proc/self/fd", "") == files);
    RANK_CHECK(RANKS_SANITIZED || memory_in_use() < memory + 256); /* pages */
}

TEST(hundreds_of_communicators_come_and_go_without_growth)
{
    run(3, false, 300 * SECOND, 0, come_and_go);
}

/* All kinds of work that rank 0 can post to a stream and that rank 1 does not join. */
static void put_work_on(struct rank *rank, void *comm, void *window, void *stream)
{
    static float memory[4], more[4];
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_REDUCE,
                                 .dtype = WEFT_DTYPE_F32,
                                 .send = memory,
                                 .recv = memory,
                                 .count = 4,
                                 .stream = stream};
    weft_message message = {.struct_size = sizeof message,
                            .dtype = WEFT_DTYPE_F32,
                            .buffer = more,
                            .count = 4,
                            .peer = 1,
                            .stream = stream};
    const weft_comm_table *table = rank->plugin->comm;

    RANK_OK(table->collective(comm, &args));
    RANK_OK(table->group_begin(comm));
    RANK_OK(table->collective(comm, &args));
    RANK_OK(table->group_end(comm));
    RANK_OK(table->receive(comm, &message));
    RANK_OK(rank->plugin->symm->wait_signal(window, 0, WEFT_COMPARE_EQ, 1, WEFT_FOREVER, stream));
    RANK_OK(rank->plugin->symm->put(window, 0, memory, sizeof memory, 1, stream));
}

/* Two streams; the second begins with another kind of work. */
static void end_under_work(struct rank *rank)
{
    const weft_device_table *device = rank->plugin->device;

    for (int i = 0; i < 20; i++) {
        void *comm, *window, *local, *streams[2];

        RANK_OK(ranks_comm(rank, "ends", &comm));
        RANK_OK(rank->plugin->symm->window_create(comm, 64, 2, &window, &local));
        for (int k = 0; k < 2; k++)
            RANK_OK(device->stream_create(rank->device, &streams[k]));
        if (rank->number == 0) {
            RANK_OK(rank->plugin->symm->wait_signal(window, 0, WEFT_COMPARE_EQ, 1, 300 * SECOND,
                                                    streams[1]));
            put_work_on(rank, comm, window, streams[0]);
        }
        ranks_meet(rank);
        if (i % 2 == 0) rank->plugin->comm->abort(comm);
        rank->plugin->comm->destroy(comm);
        for (int k = 0; k < 2; k++) {
            RANK_CHECK((device->stream_wait(rank->device, streams[k], 300 * SECOND) == WEFT_OK) ==
                       (rank->number != 0));
            device->stream_destroy(rank->device, streams[k]);
        }
        ranks_meet(rank);
    }
}

TEST(a_communicator_ends_its_work_on_streams_before_itself)
{
    run(2, false, 300 * SECOND, 0, end_under_work);
    run(2, true, 300 * SECOND, 0, end_under_work);
}

static void hold(void *open)
{
    while (!*(atomic_bool *)open)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Rank 0's work is queued behind other work, so that it cannot complete. */
static void end_before_work(struct rank *rank)
{
    const weft_device_table *device = rank->plugin->device;
    void *comm, *window, *local, *stream;
    atomic_bool open = false;

    RANK_OK(ranks_comm(rank, "ends", &comm));
    RANK_OK(rank->plugin->symm->window_create(comm, 64, 2, &window, &local));
    RANK_OK(device->stream_create(rank->device, &stream));
    if (rank->number == 0) {
        RANK_OK(device->stream_call(rank->device, stream, hold, &open));
        put_work_on(rank, comm, window, stream);
    }
    ranks_meet(rank);
    rank->plugin->comm->destroy(comm);
    open = true;
    RANK_CHECK((device->stream_wait(rank->device, stream, 300 * SECOND) == WEFT_OK) ==
               (rank->number != 0));
    device->stream_destroy(rank->device, stream);
}

TEST(a_communicator_is_left_to_work_that_comes_too_late)
{
    run(2, true, 300 * SECOND, 0, end_before_work);
}
