/* Collectives with real ranks, as processes and as threads, on shared and on private memory. */
#include "ranks.h"

#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static const uint64_t counts[] = {0, 1, 2, 9, 10, 11, 1000, 1025, 5000, 70001};

struct buffers {
    float *send, *recv;
    bool shared;
};

static float value(int rank, uint64_t i)
{
    return (float)((rank * 31 + (int)(i % 97)) % 64);
}

static void *get(struct rank *rank, uint64_t bytes, bool shared)
{
    void *memory = NULL;

    if (shared)
        RANK_OK(rank->plugin->device->allocate(rank->device, bytes, WEFT_MEMORY_DEVICE, &memory));
    else
        memory = malloc(bytes + 1);
    return memory;
}

static void put(struct rank *rank, void *memory, bool shared)
{
    if (shared)
        RANK_OK(rank->plugin->device->free(rank->device, memory));
    else
        free(memory);
}

static weft_status run(struct rank *rank, uint32_t collective, const struct buffers *b,
                       uint64_t count, int root)
{
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = collective,
                                 .dtype = WEFT_DTYPE_F32,
                                 .reduction = WEFT_REDUCE_SUM,
                                 .root = root,
                                 .send = b->send,
                                 .recv = b->recv,
                                 .count = count};

    return rank->plugin->comm->collective(rank->comm, &args);
}

static float expected_sum(const struct rank *rank, uint64_t i)
{
    float sum = 0;

    for (int p = 0; p < rank->size; p++)
        sum += value(p, i);
    return sum;
}

static void check_count(struct rank *rank, uint64_t n, bool shared)
{
    uint64_t size = (uint64_t)rank->size, me = (uint64_t)rank->number, all = size * n;
    struct buffers b = {.send = get(rank, all * sizeof(float), shared),
                        .recv = get(rank, all * sizeof(float), shared)};
    int root = (int)(n % size);
    bool is_root = root == rank->number;

    for (uint64_t i = 0; i < all; i++)
        b.send[i] = value(rank->number, i);
    RANK_OK(run(rank, WEFT_COLL_ALL_REDUCE, &b, n, 0));
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(b.recv[i] == expected_sum(rank, i));
    RANK_OK(run(rank, WEFT_COLL_REDUCE_SCATTER, &b, n, 0));
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(b.recv[i] == expected_sum(rank, me * n + i));
    RANK_OK(run(rank, WEFT_COLL_ALL_GATHER, &b, n, 0));
    for (uint64_t i = 0; i < all; i++)
        RANK_CHECK(b.recv[i] == value((int)(i / n), i % n));
    RANK_OK(run(rank, WEFT_COLL_ALL_TO_ALL, &b, n, 0));
    for (uint64_t i = 0; i < all; i++)
        RANK_CHECK(b.recv[i] == value((int)(i / n), me * n + i % n));
    RANK_OK(run(rank, WEFT_COLL_BROADCAST, &b, n, root));
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(b.recv[i] == value(root, i));
    RANK_OK(run(rank, WEFT_COLL_REDUCE, &b, n, root));
    for (uint64_t i = 0; is_root && i < n; i++)
        RANK_CHECK(b.recv[i] == expected_sum(rank, i));
    RANK_OK(run(rank, WEFT_COLL_GATHER, &b, n, root));
    for (uint64_t i = 0; is_root && i < all; i++)
        RANK_CHECK(b.recv[i] == value((int)(i / n), i % n));
    RANK_OK(run(rank, WEFT_COLL_SCATTER, &b, n, root));
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(b.recv[i] == value(root, me * n + i));
    RANK_OK(run(rank, WEFT_COLL_BARRIER, &b, 0, 0));
    b.recv = b.send;
    RANK_OK(run(rank, WEFT_COLL_ALL_REDUCE, &b, n, 0));
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(b.recv[i] == expected_sum(rank, i));
}

static void check_all(struct rank *rank)
{
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check_count(rank, counts[i], true);
        check_count(rank, counts[i], false);
    }
    (void)put;
}

static void run_sizes(bool threads)
{
    static const int sizes[] = {1, 2, 3, 4, 7};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct ranks_options options = {.size = sizes[i],
                                        .threads = threads,
                                        .timeout_ns = INT64_C(20000000000),
                                        .body = check_all};

        ck_assert_int_eq(ranks_run(&options), 0);
    }
}

START_TEST(collectives_are_right_between_processes)
{
    run_sizes(false);
}
END_TEST

START_TEST(collectives_are_right_between_threads)
{
    run_sizes(true);
}
END_TEST

/* Pretended hosts: Gloo carries what leaves one.  A small stage makes for many rounds. */
static void run_hosts(bool threads, const char *stage)
{
    struct ranks_options options = {.size = 7,
                                    .threads = threads,
                                    .timeout_ns = INT64_C(60000000000),
                                    .host_of = {0, 1, 0, 2, 2, 0, 1},
                                    .body = check_all};

    if (GLOO_LIBRARY[0] == '\0') {
        printf("skipped: built without Gloo\n");
        return;
    }
    ranks_knob("WEFT_GLOO_LIB", GLOO_LIBRARY);
    ranks_knob("WEFT_GLOO_INTERFACE", "lo");
    ranks_knob("WEFT_GLOO_STAGE", stage);
    ck_assert_int_eq(ranks_run(&options), 0);
    options.size = 2;
    ck_assert_int_eq(ranks_run(&options), 0);
}

START_TEST(collectives_are_right_between_hosts)
{
    run_hosts(false, "100K");
    run_hosts(false, "16M");
}
END_TEST

START_TEST(collectives_are_right_between_hosts_of_threads)
{
    run_hosts(true, "300K");
}
END_TEST

SUITE(cpu_collectives, collectives_are_right_between_processes,
      collectives_are_right_between_threads, collectives_are_right_between_hosts,
      collectives_are_right_between_hosts_of_threads)
