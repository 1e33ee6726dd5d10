/* Ranks on several simulated hosts: they share a machine, but Gloo carries all data between hosts.
 * The results of collectives are tested in test_cpu_collectives.c. */
#include "ranks.h"

#include "hosts/hosts.h"
#include "support/open_files.h"
#include "support/suite.h"

#include <arpa/inet.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

/* 0 and 2 | 1 and 3: their first ranks, 0 and 1, lead. */
static const struct ranks_options two_hosts = {
    .size = 4, .timeout_ns = 300 * SECOND, .host_of = {0, 1, 0, 1}};

static int run(struct ranks_options options, bool threads, void (*body)(struct rank *))
{
    options.threads = threads;
    options.body = body;
    ranks_knob("WEFT_GLOO_LIB", GLOO_LIBRARY);
    ranks_knob("WEFT_GLOO_INTERFACE", "lo");
    ranks_knob("WEFT_CPU_NETWORK", ranks_network());
    return ranks_run(&options);
}

static void nap(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&time, NULL);
}

static weft_status all_reduce(struct rank *rank, uint64_t count)
{
    static float data[4096];
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_REDUCE,
                                 .dtype = WEFT_DTYPE_F32,
                                 .reduction = WEFT_REDUCE_SUM,
                                 .send = data,
                                 .recv = data,
                                 .count = count};

    return rank->plugin->comm->collective(rank->comm, &args);
}

static weft_status transfer(struct rank *rank, bool send, void *buffer, uint64_t bytes, int peer,
                            uint32_t tag)
{
    weft_message message = {.struct_size = sizeof message,
                            .dtype = WEFT_DTYPE_U8,
                            .buffer = buffer,
                            .count = bytes,
                            .peer = peer,
                            .tag = tag};

    return send ? rank->plugin->comm->send(rank->comm, &message)
                : rank->plugin->comm->receive(rank->comm, &message);
}

/* The last error names RANK. */
static bool blames(int rank)
{
    char text[16];

    snprintf(text, sizeof text, "rank %d", rank);
    return strstr(ranks_error(), text) != NULL;
}

/* ---- messages ---- */

static void fill(unsigned char *data, size_t bytes, int from, int to, uint32_t tag)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)((unsigned)from * 31 + (unsigned)to * 7 + tag * 3 + i);
}

/* Every rank sends to every rank, itself too, under two tags, in one group and in reversed
 * order. */
static void write_to_all(struct rank *rank, size_t bytes)
{
    unsigned char *out = malloc(16 * (bytes + 1)), *in = malloc(16 * (bytes + 1)),
                  *wanted = malloc(bytes + 1);

    RANK_OK(rank->plugin->comm->group_begin(rank->comm));
    for (int i = 0; i < 2 * rank->size; i++) {
        int peer = i / 2;

        fill(out + (size_t)i * bytes, bytes, rank->number, peer, (uint32_t)i % 2);
        RANK_OK(transfer(rank, true, out + (size_t)i * bytes, bytes, peer, (uint32_t)i % 2));
    }
    for (int i = 2 * rank->size - 1; i >= 0; i--)
        RANK_OK(transfer(rank, false, in + (size_t)i * bytes, bytes, i / 2, (uint32_t)i % 2));
    RANK_OK(all_reduce(rank, 10));
    RANK_OK(rank->plugin->comm->group_end(rank->comm));
    for (int i = 0; i < 2 * rank->size; i++) {
        fill(wanted, bytes, i / 2, rank->number, (uint32_t)i % 2);
        RANK_CHECK(memcmp(in + (size_t)i * bytes, wanted, bytes) == 0);
    }
    free(out);
    free(in);
    free(wanted);
}

static void messages(struct rank *rank)
{
    static const size_t sizes[] = {0, 1, 1000, 300000};

    for (size_t i = 0; i < 4; i++)
        write_to_all(rank, sizes[i]);
}

TEST(messages_reach_other_hosts)
{
    ck_assert_int_eq(run(two_hosts, false, messages), 0);
    ck_assert_int_eq(run(two_hosts, true, messages), 0);
}

/* ---- averages ---- */

static void average_the_largest(struct rank *rank)
{
    double data[3] = {DBL_MAX, -DBL_MAX, rank->number == 1 ? INFINITY : 1};
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_REDUCE,
                                 .dtype = WEFT_DTYPE_F64,
                                 .reduction = WEFT_REDUCE_AVG,
                                 .send = data,
                                 .recv = data,
                                 .count = 3};

    RANK_OK(rank->plugin->comm->collective(rank->comm, &args));
    RANK_CHECK(data[0] == DBL_MAX && data[1] == -DBL_MAX);
    RANK_CHECK(data[2] == (double)INFINITY);
}

/* A third of the largest number is rounded up, so the sum of three would be infinite. */
TEST(averages_over_hosts_are_finite_where_the_mean_is)
{
    struct ranks_options three = two_hosts;

    three.size = 3;
    ck_assert_int_eq(run(three, true, average_the_largest), 0);
}

/* ---- disagreement ---- */

static void different_calls(struct rank *rank)
{
    RANK_OK(all_reduce(rank, 10));
    RANK_CHECK(all_reduce(rank, rank->number == 3 ? 11 : 10) == WEFT_ERR_MISMATCH);
    RANK_CHECK(strstr(ranks_error(), "collective 2: rank 0 calls all_reduce(f32, count 10, sum)") !=
               NULL);
    RANK_CHECK(strstr(ranks_error(), "rank 3 calls all_reduce(f32, count 11, sum)") != NULL);
    ranks_meet(rank);
}

static void different_lengths(struct rank *rank)
{
    unsigned char data[100] = {0};

    if (rank->number < 2) {
        weft_status status = transfer(rank, rank->number == 0, data, rank->number == 0 ? 100 : 99,
                                      1 - rank->number, 5);
        RANK_CHECK(status == WEFT_ERR_MISMATCH);
        RANK_CHECK(strstr(ranks_error(), "rank 0 sends 100 bytes of u8, rank 1 expects 99") !=
                   NULL);
    }
    ranks_meet(rank);
}

/* Of three or four ranks. */
static void different_counts(struct rank *rank)
{
    uint64_t send[4] = {1, 1, 1, 1}, recv[4] = {1, 1, 1, 1}, offsets[4] = {0, 1, 2, 3};
    float from[8] = {0}, to[8];
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_TO_ALL_V,
                                 .dtype = WEFT_DTYPE_F32,
                                 .send = from,
                                 .recv = to,
                                 .send_counts = send,
                                 .send_offsets = offsets,
                                 .recv_counts = recv,
                                 .recv_offsets = offsets};

    if (rank->number == 2) recv[1] = 3;
    RANK_CHECK(rank->plugin->comm->collective(rank->comm, &args) == WEFT_ERR_MISMATCH);
    RANK_CHECK(strstr(ranks_error(), "rank 1 sends 4 bytes to rank 2, which expects 12") != NULL);
    ranks_meet(rank);
}

TEST(different_calls_on_different_hosts_are_both_named)
{
    struct ranks_options options = two_hosts;

    options.flags = WEFT_COMM_CHECK;
    ck_assert_int_eq(run(options, false, different_calls), 0);
    ck_assert_int_eq(run(options, false, different_lengths), 0);
    ck_assert_int_eq(run(two_hosts, false, different_counts), 0);
}

/* ---- ranks that are alone on their hosts ---- */

static const struct ranks_options three_hosts = {
    .size = 3, .timeout_ns = 300 * SECOND, .host_of = {0, 1, 2}};

/* Over UCX every message of a collective says which call it belongs to. */
static void different_calls_alone(struct rank *rank)
{
    RANK_OK(all_reduce(rank, 10));
    RANK_CHECK(all_reduce(rank, rank->number == 2 ? 4096 : 10) == WEFT_ERR_MISMATCH);
    RANK_CHECK(strstr(ranks_error(), "calls all_reduce(f32, count 10, sum)") != NULL);
    RANK_CHECK(strstr(ranks_error(), "rank 2 calls all_reduce(f32, count 4096, sum)") != NULL);
    ranks_meet(rank);
}

TEST(different_calls_of_lone_ranks_are_both_named)
{
    ck_assert_int_eq(run(three_hosts, false, different_counts), 0);
    /* Gloo compares nothing: such ranks wait until the time limit. */
    if (strcmp(ranks_network(), "ucx") == 0)
        ck_assert_int_eq(run(three_hosts, false, different_calls_alone), 0);
}

/* What arrives must not overwrite what is still to be sent. */
static void overlapping_buffers(struct rank *rank)
{
    enum { COUNT = 100000 };
    static _Thread_local float data[4 * COUNT];
    float *own = data + COUNT / 2, *all = data;
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_GATHER,
                                 .dtype = WEFT_DTYPE_F32,
                                 .send = own,
                                 .recv = all,
                                 .count = COUNT};

    for (int i = 0; i < COUNT; i++)
        own[i] = (float)(rank->number * COUNT + i);
    RANK_OK(rank->plugin->comm->collective(rank->comm, &args));
    for (int i = 0; i < 3 * COUNT; i++)
        RANK_CHECK(all[i] == (float)i);

    args.collective = WEFT_COLL_ALL_TO_ALL;
    args.send = args.recv = data;
    for (int i = 0; i < 3 * COUNT; i++)
        data[i] = (float)(rank->number * 3 + i / COUNT);
    RANK_OK(rank->plugin->comm->collective(rank->comm, &args));
    for (int i = 0; i < 3 * COUNT; i++)
        RANK_CHECK(data[i] == (float)(i / COUNT * 3 + rank->number));

    args.collective = WEFT_COLL_REDUCE_SCATTER;
    args.reduction = WEFT_REDUCE_SUM;
    args.recv = data + COUNT / 2;
    for (int i = 0; i < 3 * COUNT; i++)
        data[i] = (float)(i / COUNT + 1);
    RANK_OK(rank->plugin->comm->collective(rank->comm, &args));
    for (int i = 0; i < COUNT; i++)
        RANK_CHECK(data[COUNT / 2 + i] == (float)(3 * (rank->number + 1)));
}

TEST(buffers_of_lone_ranks_may_overlap)
{
    ck_assert_int_eq(run(three_hosts, false, overlapping_buffers), 0);
    ck_assert_int_eq(run(three_hosts, true, overlapping_buffers), 0);
}

/* ---- ranks that go ---- */

static int victim;

static void lose_one(struct rank *rank)
{
    weft_status status = WEFT_OK;

    RANK_OK(all_reduce(rank, 100));
    if (rank->number == victim) raise(SIGKILL);
    while (status == WEFT_OK)
        status = all_reduce(rank, 100);
    RANK_CHECK(status == WEFT_ERR_PEER);
    RANK_CHECK(blames(victim));
    RANK_CHECK(rank->plugin->comm->async_error(rank->comm) == WEFT_ERR_PEER);
    ranks_meet_survivors(rank); /* one that left early would be blamed too */
}

TEST(a_rank_that_is_killed_is_named_on_every_host)
{
    for (victim = 0; victim < 4; victim++)
        ck_assert_int_eq(run(two_hosts, false, lose_one), 1);
}

static void wait_for_the_dead(struct rank *rank)
{
    int value = 0;

    RANK_OK(all_reduce(rank, 100));
    if (rank->number == 1) raise(SIGKILL);
    if (rank->number == 2) {
        RANK_CHECK(transfer(rank, false, &value, sizeof value, 1, 9) == WEFT_ERR_PEER);
        RANK_CHECK(blames(1));
    }
}

TEST(a_message_from_a_killed_rank_is_an_error)
{
    ck_assert_int_eq(run(two_hosts, false, wait_for_the_dead), 1);
}

static void stop_for_a_while(struct rank *rank)
{
    weft_status status;

    RANK_OK(all_reduce(rank, 100));
    if (rank->number == 1) {
        ranks_meet(rank); /* does not respond until the others have timed out */
        return;
    }
    status = all_reduce(rank, 100);
    RANK_CHECK(status == WEFT_ERR_TIMEOUT || status == WEFT_ERR_PEER);
    RANK_CHECK(blames(1));
    ranks_meet(rank);
}

TEST(a_rank_that_does_not_come_is_named_when_the_time_is_up)
{
    struct ranks_options options = two_hosts;

    options.timeout_ns = 4 * SECOND;
    ck_assert_int_eq(run(options, false, stop_for_a_while), 0);
}

/* ---- abort ---- */

static void *abort_soon(void *argument)
{
    struct rank *rank = argument;

    nap(0.2);
    rank->plugin->comm->abort(rank->comm);
    return NULL;
}

static void abort_while_waiting(struct rank *rank)
{
    pthread_t thread;
    int value;

    if (rank->number < 2) {
        RANK_CHECK(pthread_create(&thread, NULL, abort_soon, rank) == 0);
        if (rank->number == 0)
            RANK_CHECK(all_reduce(rank, 100) == WEFT_ERR_ABORTED);
        else
            RANK_CHECK(transfer(rank, false, &value, sizeof value, 2, 1) == WEFT_ERR_ABORTED);
        pthread_join(thread, NULL);
    }
    ranks_meet(rank);
}

TEST(abort_ends_waiting_for_other_hosts)
{
    ck_assert_int_eq(run(two_hosts, false, abort_while_waiting), 0);
    ck_assert_int_eq(run(two_hosts, true, abort_while_waiting), 0);
}

/* ---- what a host is ---- */

static void sum_of_all(struct rank *rank)
{
    float value = (float)rank->number, sum = 0;
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_REDUCE,
                                 .dtype = WEFT_DTYPE_F32,
                                 .reduction = WEFT_REDUCE_SUM,
                                 .send = &value,
                                 .recv = &sum,
                                 .count = 1};
    weft_pull_args pull = {.struct_size = sizeof pull};
    struct cpu_comm *comm = rank->comm;
    void *window, *memory;

    RANK_OK(rank->plugin->comm->collective(rank->comm, &args));
    RANK_CHECK(sum == (float)(rank->size * (rank->size - 1) / 2));
    RANK_CHECK(comm->hosts == 3);
    RANK_CHECK(rank->plugin->comm->pull(comm, &pull) == WEFT_ERR_UNSUPPORTED);
    RANK_CHECK(strstr(ranks_error(), "on 3 hosts, as rank ") != NULL);
    RANK_CHECK(strstr(ranks_error(), " cannot share memory with rank ") != NULL);
    if (strstr(rank->plugin->comm->carrier(comm), "Gloo") != NULL) {
        RANK_CHECK(rank->plugin->symm->window_create(comm, 64, 1, &window, &memory) ==
                   WEFT_ERR_UNSUPPORTED);
        RANK_CHECK(strstr(ranks_error(), "on 3 hosts, as rank ") != NULL);
        RANK_CHECK(strstr(ranks_error(), "gloo-cpu has windows between hosts over UCX only") !=
                   NULL);
    }
    RANK_CHECK(strstr(rank->plugin->comm->carrier(comm), " between 3 hosts: ") != NULL);
    RANK_CHECK(strstr(rank->plugin->comm->carrier(comm), "; rank ") != NULL);
    RANK_CHECK(comm->group.size == (rank->number == 1 || rank->number == 4 ? 1 : 3));
    messages(rank);
}

TEST(ranks_that_cannot_map_each_other_are_on_different_hosts)
{
    struct ranks_options options = {.size = 5, .timeout_ns = 300 * SECOND, .hidden = 0x12};

    ck_assert_int_eq(run(options, false, sum_of_all), 0);
}

static void make_many(struct rank *rank)
{
    int files = open_files();

    for (int i = 0; i < 30; i++) {
        void *comm, *kept = rank->comm;

        RANK_OK(ranks_comm(rank, "another", &comm));
        rank->comm = comm;
        RANK_OK(all_reduce(rank, 10));
        rank->comm = kept;
        rank->plugin->comm->destroy(comm);
    }
    RANK_CHECK(open_files() <= files + 1);
    RANK_OK(all_reduce(rank, 10));
}

TEST(communicators_over_hosts_leave_nothing_open)
{
    ck_assert_int_eq(run(two_hosts, false, make_many), 0);
}

/* ---- addresses ---- */

static struct cpu_hosts_addresses addresses(uint64_t network, const char *a, const char *b)
{
    struct cpu_hosts_addresses all = {.network = network, .count = b != NULL ? 2 : 1};
    const char *texts[2] = {a, b};

    for (uint32_t i = 0; i < all.count; i++) {
        all.list[i].family = AF_INET;
        all.list[i].prefix = 24;
        ck_assert_int_eq(inet_pton(AF_INET, texts[i], all.list[i].bytes), 1);
    }
    return all;
}

static uint32_t choose(const struct cpu_hosts_addresses *all, int32_t count, int32_t own)
{
    return cpu_hosts_address_choose(all, sizeof *all, count, own);
}

TEST(the_network_that_all_hosts_have_is_chosen)
{
    struct cpu_hosts_addresses all[3] = {addresses(1, "172.17.0.1", "10.0.0.1"),
                                         addresses(2, "10.0.0.2", "192.168.5.1"),
                                         addresses(3, "172.17.0.1", "10.0.0.3")};

    ck_assert_uint_eq(choose(all, 3, 0), 1);
    ck_assert_uint_eq(choose(all, 3, 1), 0);
    ck_assert_uint_eq(choose(all, 3, 2), 1);
}

TEST(an_address_that_several_hosts_have_is_of_no_use)
{
    struct cpu_hosts_addresses all[2] = {addresses(1, "172.17.0.1", "10.0.0.1"),
                                         addresses(2, "172.17.0.1", "10.0.0.2")};

    ck_assert_uint_eq(choose(all, 2, 0), 1);
    all[1] = addresses(2, "172.17.0.1", "10.0.9.2"); /* only routers connect these */
    ck_assert_uint_eq(choose(all, 2, 0), 0);
}

TEST(ranks_with_the_same_interfaces_stay_on_the_machine)
{
    struct cpu_hosts_addresses all[2] = {addresses(1, "10.0.0.1", "127.0.0.1"),
                                         addresses(1, "10.0.0.1", "127.0.0.1")};

    all[0].list[1].loopback = all[1].list[1].loopback = 1;
    ck_assert_uint_eq(choose(all, 2, 1), 1);
}

static void nothing(struct rank *rank)
{
    (void)rank;
}

TEST(an_interface_that_is_not_there_is_named)
{
    struct cpu_hosts_addresses found;

    ck_assert_int_eq(run((struct ranks_options){.size = 1}, true, nothing), 0); /* sets the host */

    ranks_knob("WEFT_GLOO_INTERFACE", "nosuch0");
    ck_assert_int_eq(cpu_hosts_addresses_find(&found), WEFT_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(plug_last_text(), "nosuch0"));
    ranks_knob("WEFT_GLOO_INTERFACE", "127.0.0.1");
    ck_assert_int_eq(cpu_hosts_addresses_find(&found), WEFT_OK);
    ck_assert_uint_eq(found.count, 1);
    ranks_knob("WEFT_GLOO_INTERFACE", NULL);
    ck_assert_int_eq(cpu_hosts_addresses_find(&found), WEFT_OK);
    ck_assert_uint_ge(found.count, 1);
}
