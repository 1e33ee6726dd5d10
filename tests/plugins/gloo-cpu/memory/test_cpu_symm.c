/* Litmus tests of symmetric memory: the stores of a peer that a rank may observe.  They run often
 * enough that the hardware's reordering is observed if an ordering is missing. */
#include "ranks.h"

#include "support/suite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS  20000
#define SECOND  INT64_C(1000000000)
#define PAYLOAD 48 /* bytes: several cache lines never arrive at once */

struct window {
    void *handle;
    uint64_t *words;
    weft_symm_handle peers;
};

static struct window open_window(struct rank *rank, uint64_t bytes, uint32_t signals)
{
    struct window w = {.peers = {.struct_size = sizeof w.peers}};
    void *local;

    RANK_OK(rank->plugin->symm->window_create(rank->comm, bytes, signals, &w.handle, &local));
    w.words = local;
    RANK_OK(rank->plugin->symm->handle(w.handle, &w.peers));
    return w;
}

/* ---- message passing: a rank that sees the signal sees the data ---- */

static void pass_messages(struct rank *rank)
{
    const weft_symm_table *symm = rank->plugin->symm;
    struct window w = open_window(rank, 4096, 2);
    int peer = 1 - rank->number;
    uint64_t data[PAYLOAD];

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        if (rank->number == 0) {
            for (int i = 0; i < PAYLOAD; i++)
                data[i] = round * 100 + (uint64_t)i;
            RANK_OK(symm->put_signal(w.handle, 64, data, sizeof data, 0, round, WEFT_SIGNAL_SET,
                                     peer, NULL));
            RANK_OK(symm->wait_signal(w.handle, 1, WEFT_COMPARE_GE, round, 300 * SECOND, NULL));
        } else {
            RANK_OK(symm->wait_signal(w.handle, 0, WEFT_COMPARE_GE, round, 300 * SECOND, NULL));
            for (int i = 0; i < PAYLOAD; i++)
                RANK_CHECK(w.words[8 + i] == round * 100 + (uint64_t)i);
            RANK_OK(symm->signal(w.handle, 1, 1, WEFT_SIGNAL_ADD, peer, NULL));
        }
    }
    RANK_OK(symm->window_destroy(w.handle));
}

TEST(whoever_sees_the_signal_sees_the_data)
{
    for (int threads = 0; threads < 2; threads++) {
        struct ranks_options options = {
            .size = 2, .threads = threads != 0, .timeout_ns = 300 * SECOND, .body = pass_messages};

        ck_assert_int_eq(ranks_run(&options), 0);
    }
}

/* ---- fence: puts to one peer arrive in order across it ---- */

static uint64_t load(struct window *w, int word)
{
    return atomic_load_explicit((_Atomic(uint64_t) *)&w->words[word], memory_order_acquire);
}

static void put_word(struct rank *rank, struct window *w, int word, uint64_t value, int peer)
{
    RANK_OK(rank->plugin->symm->put(w->handle, (uint64_t)word * 8, &value, 8, peer, NULL));
}

static void put_in_order(struct rank *rank)
{
    const weft_symm_table *symm = rank->plugin->symm;
    struct window w = open_window(rank, 4096, 1);

    for (uint64_t round = 1; rank->number == 0 && round <= ROUNDS; round++) {
        put_word(rank, &w, 0, round, 1);
        RANK_OK(symm->fence(w.handle, NULL));
        put_word(rank, &w, 256, round, 1);
        RANK_OK(symm->fence(w.handle, NULL));
    }
    for (uint64_t second = 0; rank->number == 1 && second < ROUNDS;) {
        second = load(&w, 256);
        RANK_CHECK(load(&w, 0) >= second);
    }
    RANK_OK(symm->window_destroy(w.handle));
}

TEST(puts_arrive_in_order_across_a_fence)
{
    for (int threads = 0; threads < 2; threads++) {
        struct ranks_options options = {
            .size = 2, .threads = threads != 0, .timeout_ns = 300 * SECOND, .body = put_in_order};

        ck_assert_int_eq(ranks_run(&options), 0);
    }
}

/* ---- store buffering: put, quiet, get; at least one rank sees the other's put ---- */

static void cross_stores(struct rank *rank)
{
    const weft_symm_table *symm = rank->plugin->symm;
    struct window w = open_window(rank, 64, 2);
    int me = rank->number, peer = 1 - me;

    for (uint64_t round = 1; round <= ROUNDS / 4; round++) {
        uint64_t seen = 0, other;

        /* Each rank writes its word on rank 0 and reads the other's word there. */
        put_word(rank, &w, me, round, 0);
        RANK_OK(symm->quiet(w.handle, NULL));
        RANK_OK(symm->get(w.handle, &seen, (uint64_t)peer * 8, 8, 0, NULL));
        seen = seen >= round;
        RANK_OK(symm->signal(w.handle, 0, round << 1 | seen, WEFT_SIGNAL_SET, peer, NULL));
        RANK_OK(symm->wait_signal(w.handle, 0, WEFT_COMPARE_GE, round << 1, 300 * SECOND, NULL));
        other = atomic_load((_Atomic(uint64_t) *)w.peers.signals[me]);
        RANK_CHECK(other >> 1 == round);
        RANK_CHECK(seen || (other & 1) != 0);
        RANK_OK(symm->barrier(w.handle, NULL));
    }
    RANK_OK(symm->window_destroy(w.handle));
}

TEST(of_two_crossing_puts_at_least_one_is_seen)
{
    for (int threads = 0; threads < 2; threads++) {
        struct ranks_options options = {
            .size = 2, .threads = threads != 0, .timeout_ns = 300 * SECOND, .body = cross_stores};

        ck_assert_int_eq(ranks_run(&options), 0);
    }
}

/* ---- counting: the adds of all ranks are summed ---- */

static void count_together(struct rank *rank)
{
    const weft_symm_table *symm = rank->plugin->symm;
    struct window w = open_window(rank, 64, 3);
    uint64_t all = (uint64_t)rank->size * 2000;

    for (int i = 0; i < 2000; i++)
        for (int p = 0; p < rank->size; p++)
            RANK_OK(symm->signal(w.handle, 2, 1, WEFT_SIGNAL_ADD, p, NULL));
    RANK_OK(symm->wait_signal(w.handle, 2, WEFT_COMPARE_EQ, all, 300 * SECOND, NULL));
    RANK_OK(symm->barrier(w.handle, NULL));
    RANK_CHECK(atomic_load((_Atomic(uint64_t) *)&w.peers.signals[rank->number][2]) == all);
    RANK_OK(symm->window_destroy(w.handle));
}

/* Stores before a barrier are visible to all ranks after it. */
static void meet_often(struct rank *rank)
{
    const weft_symm_table *symm = rank->plugin->symm;
    struct window w = open_window(rank, 4096, 1);

    for (uint64_t round = 1; round <= 2000; round++) {
        for (int p = 0; p < rank->size; p++)
            put_word(rank, &w, rank->number * 16, round, p);
        RANK_OK(symm->barrier(w.handle, NULL));
        for (int p = 0; p < rank->size; p++)
            RANK_CHECK(load(&w, p * 16) == round);
        RANK_OK(symm->barrier(w.handle, NULL));
    }
    RANK_OK(symm->window_destroy(w.handle));
}

TEST(adds_add_up_and_barriers_hold)
{
    for (int threads = 0; threads < 2; threads++) {
        struct ranks_options options = {
            .size = 4, .threads = threads != 0, .timeout_ns = 300 * SECOND, .body = count_together};

        ck_assert_int_eq(ranks_run(&options), 0);
        options.body = meet_often;
        ck_assert_int_eq(ranks_run(&options), 0);
    }
}

/* ---- one-sided operations in stream order, and windows of the user's memory ---- */

static void use_streams(struct rank *rank)
{
    const weft_symm_table *symm = rank->plugin->symm;
    const weft_device_table *device = rank->plugin->device;
    struct window w = open_window(rank, 1 << 16, 1);
    int peer = (rank->number + 1) % rank->size;
    static _Thread_local uint64_t data[4096];
    void *stream;

    RANK_OK(device->stream_create(rank->device, &stream));
    for (uint64_t i = 0; i < 4096; i++)
        data[i] = i * 3 + (uint64_t)rank->number;
    RANK_OK(symm->put(w.handle, 0, data, sizeof data, peer, stream));
    RANK_OK(symm->fence(w.handle, stream));
    RANK_OK(symm->signal(w.handle, 0, 1, WEFT_SIGNAL_ADD, peer, stream));
    RANK_OK(symm->wait_signal(w.handle, 0, WEFT_COMPARE_EQ, 1, 300 * SECOND, stream));
    RANK_OK(device->stream_wait(rank->device, stream, 300 * SECOND));
    for (uint64_t i = 0; i < 4096; i++)
        RANK_CHECK(w.words[i] == i * 3 + (uint64_t)((rank->number + rank->size - 1) % rank->size));
    device->stream_destroy(rank->device, stream);
    RANK_OK(symm->window_destroy(w.handle));
}

static void register_memory(struct rank *rank)
{
    const weft_symm_table *symm = rank->plugin->symm;
    uint64_t value = 77, private_words[8] = {0};
    void *memory, *window;
    weft_status status;

    RANK_OK(rank->plugin->device->allocate(rank->device, 64, 0, &memory));
    RANK_OK(symm->window_register(rank->comm, memory, 64, 1, &window));
    RANK_OK(symm->put(window, 8 * (uint64_t)rank->number, &value, 8, 0, NULL));
    RANK_OK(symm->barrier(window, NULL));
    if (rank->number == 0) RANK_CHECK(((uint64_t *)memory)[rank->size - 1] == 77);
    RANK_OK(symm->window_destroy(window));
    RANK_OK(rank->plugin->device->free(rank->device, memory));
    /* Memory from elsewhere can only be shared between threads. */
    status = symm->window_register(rank->comm, private_words, 64, 1, &window);
    if (status == WEFT_OK) RANK_OK(symm->window_destroy(window));
    RANK_CHECK(status == WEFT_OK || status == WEFT_ERR_UNSUPPORTED);
    RANK_OK(rank->plugin->comm->async_error(rank->comm));
}

TEST(streams_and_registered_memory_work_alike)
{
    for (int threads = 0; threads < 2; threads++) {
        struct ranks_options options = {
            .size = 3, .threads = threads != 0, .timeout_ns = 300 * SECOND, .body = use_streams};

        ck_assert_int_eq(ranks_run(&options), 0);
        options.body = register_memory;
        ck_assert_int_eq(ranks_run(&options), 0);
    }
}

static void sizes_differ(struct rank *rank)
{
    void *window, *local;
    uint64_t bytes = rank->number == 1 ? 128 : 64;

    RANK_CHECK(rank->plugin->symm->window_create(rank->comm, bytes, 1, &window, &local) ==
               WEFT_ERR_MISMATCH);
    RANK_CHECK(strstr(ranks_error(), "rank 0 asks for 64 bytes and 1 signals, rank 1 for 128") !=
               NULL);
}

TEST(windows_of_different_sizes_are_refused_everywhere)
{
    struct ranks_options options = {.size = 3, .timeout_ns = 300 * SECOND, .body = sizes_differ};

    ck_assert_int_eq(ranks_run(&options), 0);
}

/* ---- registering ---- */

static void register_too_much(struct rank *rank)
{
    const weft_symm_table *symm = rank->plugin->symm;
    void *memory, *window = NULL;

    RANK_OK(rank->plugin->device->allocate(rank->device, 8192, WEFT_MEMORY_DEVICE, &memory));
    RANK_CHECK(symm->window_register(rank->comm, memory, 1 << 20, 1, &window) == WEFT_ERR_INVALID);
    RANK_CHECK(strstr(ranks_error(), "has fewer than the 1048576 bytes registered") != NULL);
    RANK_CHECK(symm->window_register(rank->comm, (char *)memory + 4096, 8192, 1, &window) ==
               WEFT_ERR_INVALID);
    RANK_CHECK(window == NULL);
    RANK_OK(symm->window_register(rank->comm, (char *)memory + 4096, 4096, 1, &window));
    RANK_OK(symm->window_destroy(window));
    RANK_OK(rank->plugin->device->free(rank->device, memory));
}

TEST(no_more_can_be_registered_than_was_allocated)
{
    for (int threads = 0; threads < 2; threads++) {
        struct ranks_options options = {.size = 2,
                                        .threads = threads != 0,
                                        .timeout_ns = 300 * SECOND,
                                        .body = register_too_much};

        ck_assert_int_eq(ranks_run(&options), 0);
    }
}
