/* Collectives with real ranks, as processes and as threads, on shared and on private memory. */
#include "ranks.h"

#include "support/suite.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Elements: within a slot's first line, within a slot, by reference or in a piece. */
static const uint64_t counts[] = {0, 1, 9, 11, 1000, 1025, 5000, 70001};

enum memory { SHARED, PRIVATE, MIXED };

struct buffers {
    float *send, *recv;
};

static float value(int rank, uint64_t i)
{
    return (float)((rank * 31 + (int)(i % 97)) % 64);
}

static float sum(const struct rank *rank, uint64_t i)
{
    float all = 0;

    for (int p = 0; p < rank->size; p++)
        all += value(p, i);
    return all;
}

static bool is_shared(const struct rank *rank, enum memory memory)
{
    return memory == SHARED || (memory == MIXED && rank->number % 2 == 0);
}

static float *get(struct rank *rank, uint64_t count, enum memory memory)
{
    void *out = NULL;

    if (is_shared(rank, memory))
        RANK_OK(rank->plugin->device->allocate(rank->device, count * sizeof(float), 0, &out));
    else
        out = malloc(count * sizeof(float) + 1);
    return out;
}

static void put(struct rank *rank, void *pointer, enum memory memory)
{
    if (is_shared(rank, memory))
        RANK_OK(rank->plugin->device->free(rank->device, pointer));
    else
        free(pointer);
}

static void run(struct rank *rank, uint32_t collective, const void *send, void *recv,
                uint64_t count, int root)
{
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = collective,
                                 .dtype = WEFT_DTYPE_F32,
                                 .reduction = WEFT_REDUCE_SUM,
                                 .root = root,
                                 .send = send,
                                 .recv = recv,
                                 .count = count};

    RANK_OK(rank->plugin->comm->collective(rank->comm, &args));
}

static void fill(struct rank *rank, float *data, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        data[i] = value(rank->number, i);
}

static void check_reductions(struct rank *rank, struct buffers b, uint64_t n, int root)
{
    uint64_t me = (uint64_t)rank->number;

    run(rank, WEFT_COLL_ALL_REDUCE, b.send, b.recv, n, 0);
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(b.recv[i] == sum(rank, i));
    run(rank, WEFT_COLL_REDUCE_SCATTER, b.send, b.recv, n, 0);
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(b.recv[i] == sum(rank, me * n + i));
    run(rank, WEFT_COLL_REDUCE, b.send, b.recv, n, root);
    for (uint64_t i = 0; rank->number == root && i < n; i++)
        RANK_CHECK(b.recv[i] == sum(rank, i));
}

static void check_moves(struct rank *rank, struct buffers b, uint64_t n, int root)
{
    uint64_t me = (uint64_t)rank->number, all = (uint64_t)rank->size * n;
    bool is_root = root == rank->number;

    run(rank, WEFT_COLL_ALL_GATHER, b.send, b.recv, n, 0);
    for (uint64_t i = 0; i < all; i++)
        RANK_CHECK(b.recv[i] == value((int)(i / n), i % n));
    run(rank, WEFT_COLL_ALL_TO_ALL, b.send, b.recv, n, 0);
    for (uint64_t i = 0; i < all; i++)
        RANK_CHECK(b.recv[i] == value((int)(i / n), me * n + i % n));
    run(rank, WEFT_COLL_BROADCAST, b.send, b.recv, n, root);
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(b.recv[i] == value(root, i));
    run(rank, WEFT_COLL_GATHER, b.send, b.recv, n, root);
    for (uint64_t i = 0; is_root && i < all; i++)
        RANK_CHECK(b.recv[i] == value((int)(i / n), i % n));
    run(rank, WEFT_COLL_SCATTER, b.send, b.recv, n, root);
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(b.recv[i] == value(root, me * n + i));
    run(rank, WEFT_COLL_BARRIER, NULL, NULL, 0, 0);
}

static void check_in_place(struct rank *rank, float *data, uint64_t n, int root)
{
    uint64_t me = (uint64_t)rank->number, all = (uint64_t)rank->size * n;

    fill(rank, data, all);
    run(rank, WEFT_COLL_ALL_REDUCE, data, data, n, 0);
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(data[i] == sum(rank, i));
    fill(rank, data, all);
    run(rank, WEFT_COLL_REDUCE_SCATTER, data, data + me * n, n, 0);
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(data[me * n + i] == sum(rank, me * n + i));
    fill(rank, data + me * n, n);
    run(rank, WEFT_COLL_ALL_GATHER, data + me * n, data, n, 0);
    for (uint64_t i = 0; i < all; i++)
        RANK_CHECK(data[i] == value((int)(i / n), i % n));
    fill(rank, data, all);
    run(rank, WEFT_COLL_ALL_TO_ALL, data, data, n, 0);
    for (uint64_t i = 0; i < all; i++)
        RANK_CHECK(data[i] == value((int)(i / n), me * n + i % n));
    fill(rank, data, n);
    run(rank, WEFT_COLL_BROADCAST, data, data, n, root);
    for (uint64_t i = 0; i < n; i++)
        RANK_CHECK(data[i] == value(root, i));
}

static void check_count(struct rank *rank, uint64_t n, enum memory memory)
{
    uint64_t all = (uint64_t)rank->size * n;
    struct buffers b = {.send = get(rank, all, memory), .recv = get(rank, all, memory)};
    int root = (int)(n % (uint64_t)rank->size);

    fill(rank, b.send, all);
    check_reductions(rank, b, n, root);
    check_moves(rank, b, n, root);
    for (uint64_t i = 0; i < all; i++)
        RANK_CHECK(b.send[i] == value(rank->number, i));
    check_in_place(rank, b.send, n, root);
    put(rank, b.send, memory);
    put(rank, b.recv, memory);
}

static void check_all(struct rank *rank)
{
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check_count(rank, counts[i], SHARED);
        check_count(rank, counts[i], PRIVATE);
        check_count(rank, counts[i], MIXED);
    }
}

/* Many pieces, and an uneven end. */
static void check_large(struct rank *rank)
{
    check_count(rank, 1500007, PRIVATE);
    check_count(rank, 1500007, MIXED);
}

/* Numbers whose sum depends on the order of addition. */
static float fraction(int rank, uint64_t i)
{
    uint32_t bits = (uint32_t)(i * 2654435761u) ^ (uint32_t)(rank + 1) * 40503u;

    return (float)(bits >> 8) / (float)(1u << (bits & 15));
}

/* The host of each rank; NULL: they have one. */
static const int *placement;

static int host_of(int rank)
{
    return placement != NULL ? placement[rank] : 0;
}

/* The sum of each host in the order of its ranks, then of the hosts in the order of their first
 * ranks, which is that of their numbers. */
static float sum_in_order(const struct rank *rank, uint64_t i)
{
    float all = 0;

    for (int host = 0; host < rank->size; host++) {
        float sum_of_host = 0;
        int ranks = 0;

        for (int p = 0; p < rank->size; p++)
            if (host_of(p) == host)
                sum_of_host = ranks++ == 0 ? fraction(p, i) : sum_of_host + fraction(p, i);
        if (ranks > 0) all = host == 0 ? sum_of_host : all + sum_of_host;
    }
    return all;
}

static void check_order(struct rank *rank, uint64_t count, enum memory memory)
{
    struct buffers b = {get(rank, count, memory), get(rank, count, memory)};

    for (uint64_t i = 0; i < count; i++)
        b.send[i] = fraction(rank->number, i);
    run(rank, WEFT_COLL_ALL_REDUCE, b.send, b.recv, count, 0);
    for (uint64_t i = 0; i < count; i++) {
        float all = sum_in_order(rank, i);

        RANK_CHECK(memcmp(&b.recv[i], &all, sizeof all) == 0);
    }
    put(rank, b.send, memory);
    put(rank, b.recv, memory);
}

/* A different rank is late each time.  The sum is bit-exact in rank order. */
static void check_bits(struct rank *rank)
{
    struct timespec pause = {.tv_nsec = 400000};

    for (int round = 0; round < 5; round++)
        for (size_t i = 1; i < sizeof counts / sizeof counts[0]; i++)
            for (enum memory memory = SHARED; memory <= MIXED; memory++) {
                if (rank->number == (round + (int)i) % rank->size) nanosleep(&pause, NULL);
                check_order(rank, counts[i], memory);
            }
}

static void run_ranks(int size, bool threads, uint32_t flags, void (*body)(struct rank *))
{
    struct ranks_options options = {.size = size,
                                    .threads = threads,
                                    .flags = flags,
                                    .timeout_ns = INT64_C(20000000000),
                                    .body = body};

    ck_assert_int_eq(ranks_run(&options), 0);
}

TEST(collectives_are_right_between_processes)
{
    static const int sizes[] = {1, 2, 3, 4, 7};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        run_ranks(sizes[i], false, 0, check_all);
}

TEST(collectives_are_right_between_threads)
{
    static const int sizes[] = {1, 2, 3, 5};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        run_ranks(sizes[i], true, 0, check_all);
}

TEST(sums_have_the_same_bits_whoever_comes_late)
{
    run_ranks(3, false, 0, check_bits);
    run_ranks(5, true, 0, check_bits);
}

TEST(large_private_memory_goes_in_pieces)
{
    run_ranks(2, false, 0, check_large);
    run_ranks(3, false, 0, check_large);
}

TEST(checking_calls_changes_no_result)
{
    run_ranks(3, false, WEFT_COMM_CHECK, check_all);
    run_ranks(2, true, WEFT_COMM_CHECK, check_all);
}

/* Simulated hosts, with the network between them.  A small stage gives many rounds. */
static void run_hosts(struct ranks_options options, const char *stage)
{
    options.timeout_ns = INT64_C(60000000000);
    if (GLOO_LIBRARY[0] == '\0') {
        printf("skipped: built without Gloo\n");
        return;
    }
    ranks_knob("WEFT_GLOO_LIB", GLOO_LIBRARY);
    ranks_knob("WEFT_GLOO_INTERFACE", "lo");
    ranks_knob("WEFT_CPU_NETWORK", ranks_network());
    ranks_knob("WEFT_GLOO_STAGE", stage);
    placement = options.host_of;
    ck_assert_int_eq(ranks_run(&options), 0);
    placement = NULL;
}

/* Hosts 0 and 2 | 1 | 3, and 0, 2 and 5 | 1 and 6 | 3 and 4: their first ranks lead. */
static struct ranks_options unlike_hosts(bool threads, void (*body)(struct rank *))
{
    return (struct ranks_options){.size = threads ? 7 : 4,
                                  .threads = threads,
                                  .host_of = {0, 1, 0, 2, 2, 0, 1},
                                  .body = body};
}

/* Hosts with two ranks each: every rank sends. */
static struct ranks_options like_hosts(bool threads, void (*body)(struct rank *))
{
    return (struct ranks_options){
        .size = threads ? 6 : 4, .threads = threads, .host_of = {0, 1, 1, 0, 2, 2}, .body = body};
}

TEST(collectives_are_right_between_hosts)
{
    run_hosts(unlike_hosts(false, check_all), "16M");
    run_hosts(like_hosts(false, check_all), "16M");
}

TEST(collectives_are_right_between_hosts_of_threads)
{
    run_hosts(unlike_hosts(true, check_all), "100K");
    run_hosts(like_hosts(true, check_all), "100K");
}

TEST(large_data_between_hosts_goes_in_steps)
{
    run_hosts(like_hosts(false, check_large), "16M");
}

TEST(sums_between_hosts_have_the_same_bits_whoever_comes_late)
{
    run_hosts(like_hosts(false, check_bits), "16M");
    run_hosts(unlike_hosts(true, check_bits), "16M");
}

TEST(checking_calls_between_hosts_changes_no_result)
{
    struct ranks_options options = like_hosts(false, check_all);

    options.flags = WEFT_COMM_CHECK;
    run_hosts(options, "16M");
}
