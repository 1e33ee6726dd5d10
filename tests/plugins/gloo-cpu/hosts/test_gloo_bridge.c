/* test_gloo_bridge.c - Gloo through its C interface: messages, collectives, and every kind of
 * failure.  Ranks are threads, on loopback. */
#include "support/suite.h"

#include "hosts/gloo_bridge.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define RANKS     3
#define SECOND_NS INT64_C(1000000000)

static const struct gloo_bridge *bridge(void)
{
    static const struct gloo_bridge *table;

    if (table == NULL) {
        void *library = dlopen(BRIDGE, RTLD_NOW | RTLD_LOCAL);
        gloo_bridge_entry *entry;

        ck_assert_msg(library != NULL, "%s", dlerror());
        *(void **)&entry = dlsym(library, GLOO_BRIDGE_ENTRY);
        ck_assert_msg(entry != NULL, "no entry symbol");
        table = entry();
    }
    return table;
}

/* ---- a small world ---- */

struct world {
    int32_t size;
    int64_t timeout_ns;
    pthread_barrier_t barrier;
    unsigned char *addresses; /* size x size, by creator and then by receiver */
    uint64_t key[RANKS];
    void (*rank_main)(struct world *world, int32_t rank, struct gloo_group *group);
    weft_status connected[RANKS];
    struct gloo_failure failure[RANKS];
};

struct thread {
    struct world *world;
    int32_t rank;
    pthread_t id;
};

static void collect(const struct world *world, int32_t rank, unsigned char *mine)
{
    size_t each = bridge()->address_bytes, row = each * (size_t)world->size;

    for (int32_t peer = 0; peer < world->size; peer++)
        memcpy(mine + each * (size_t)peer,
               world->addresses + row * (size_t)peer + each * (size_t)rank, each);
}

static void *rank_thread(void *argument)
{
    const struct thread *thread = argument;
    struct world *world = thread->world;
    int32_t rank = thread->rank;
    size_t row = bridge()->address_bytes * (size_t)world->size;
    unsigned char *mine = malloc(row);
    uint8_t wanted[RANKS];
    struct gloo_device *device;
    struct gloo_group *group;
    struct gloo_failure *failure = &world->failure[rank];

    for (int32_t peer = 0; peer < world->size; peer++)
        wanted[peer] = peer != rank;
    ck_assert_int_eq(bridge()->device_open("127.0.0.1", &device, failure), WEFT_OK);
    ck_assert_int_eq(bridge()->group_listen(device, rank, world->size, wanted, world->timeout_ns,
                                            world->addresses + row * (size_t)rank, &group, failure),
                     WEFT_OK);
    pthread_barrier_wait(&world->barrier);
    collect(world, rank, mine);
    world->connected[rank] = bridge()->group_connect(group, mine, world->key[rank], failure);
    if (world->connected[rank] == WEFT_OK && world->rank_main != NULL)
        world->rank_main(world, rank, group);
    bridge()->group_close(group);
    bridge()->device_close(device);
    free(mine);
    return NULL;
}

static void world_run(struct world *world)
{
    struct thread threads[RANKS];

    world->addresses = calloc((size_t)(world->size * world->size), bridge()->address_bytes);
    pthread_barrier_init(&world->barrier, NULL, (unsigned)world->size);
    for (int32_t r = 0; r < world->size; r++) {
        threads[r] = (struct thread){.world = world, .rank = r};
        ck_assert_int_eq(pthread_create(&threads[r].id, NULL, rank_thread, &threads[r]), 0);
    }
    for (int32_t r = 0; r < world->size; r++)
        pthread_join(threads[r].id, NULL);
    pthread_barrier_destroy(&world->barrier);
    free(world->addresses);
}

static void run(int32_t size, int64_t timeout_ns,
                void (*rank_main)(struct world *, int32_t, struct gloo_group *))
{
    struct world world = {.size = size, .timeout_ns = timeout_ns, .rank_main = rank_main};

    world_run(&world);
    for (int32_t r = 0; r < size; r++)
        ck_assert_msg(world.connected[r] == WEFT_OK, "%s", world.failure[r].text);
}

static weft_status message(struct gloo_group *group, bool sends, int32_t peer, uint64_t slot,
                           void *data, size_t bytes, struct gloo_failure *failure)
{
    struct gloo_part part = {.peer = peer, .slot = slot, .data = data, .bytes = bytes};
    struct gloo_work *work;
    weft_status status = bridge()->start(group, sends, &part, !sends, &part, &work, failure);

    return status == WEFT_OK ? bridge()->wait(group, work, failure) : status;
}

/* ---- what works ---- */

START_TEST(the_table_says_what_it_is)
{
    ck_assert_uint_eq(bridge()->version, GLOO_BRIDGE_VERSION);
    ck_assert_int_eq(strncmp(bridge()->library, "Gloo ", 5), 0);
}
END_TEST

static bool all_bytes_are(int value, const unsigned char *bytes, size_t count)
{
    while (count > 0 && bytes[count - 1] == value)
        count--;
    return count == 0;
}

static void everyone_writes_to_everyone(struct world *world, int32_t rank, struct gloo_group *group)
{
    static const size_t sizes[] = {0, 1, 1000, 3000000};
    struct gloo_failure failure;

    for (size_t s = 0; s < 4; s++) {
        size_t bytes = sizes[s];
        unsigned char *out = malloc(bytes + 1), *in = calloc((size_t)world->size, bytes + 1);
        struct gloo_part sends[RANKS], receives[RANKS];
        struct gloo_work *work;
        uint32_t n = 0;

        memset(out, 'a' + rank, bytes + 1);
        for (int32_t peer = 0; peer < world->size; peer++) {
            if (peer == rank) continue;
            sends[n] = (struct gloo_part){.peer = peer, .slot = s, .data = out, .bytes = bytes};
            receives[n] = sends[n];
            receives[n++].data = in + (bytes + 1) * (size_t)peer;
        }
        ck_assert_int_eq(bridge()->start(group, n, sends, n, receives, &work, &failure), WEFT_OK);
        ck_assert_int_eq(bridge()->wait(group, work, &failure), WEFT_OK);
        for (int32_t peer = 0; peer < world->size; peer++)
            ck_assert(peer == rank ||
                      all_bytes_are('a' + peer, in + (bytes + 1) * (size_t)peer, bytes));
        free(out);
        free(in);
    }
}

START_TEST(messages_of_all_sizes_arrive)
{
    run(RANKS, 300 * SECOND_NS, everyone_writes_to_everyone);
}
END_TEST

static void out_of_order(struct world *world, int32_t rank, struct gloo_group *group)
{
    struct gloo_part parts[3];
    struct gloo_failure failure;
    struct gloo_work *work;
    int values[3] = {0};

    (void)world;
    for (int i = 0; i < 3; i++) {
        int slot = rank == 0 ? i : 2 - i; /* one side in reverse order */
        if (rank == 0) values[i] = 100 + slot;
        parts[i] = (struct gloo_part){
            .peer = 1 - rank, .slot = (uint64_t)slot, .data = &values[i], .bytes = sizeof(int)};
    }
    ck_assert_int_eq(
        bridge()->start(group, rank == 0 ? 3 : 0, parts, rank == 0 ? 0 : 3, parts, &work, &failure),
        WEFT_OK);
    ck_assert_int_eq(bridge()->wait(group, work, &failure), WEFT_OK);
    for (int i = 0; rank == 1 && i < 3; i++)
        ck_assert_int_eq(values[i], 102 - i);
}

START_TEST(messages_match_by_slot)
{
    run(2, 300 * SECOND_NS, out_of_order);
}
END_TEST

static void collectives(struct world *world, int32_t rank, struct gloo_group *group)
{
    struct gloo_failure failure;
    size_t bytes[RANKS] = {5, 0, 100000};
    unsigned char *all = calloc(1, 100005);
    char word[6] = "";

    (void)world;
    memset(all + (rank == 2 ? 5 : 0), 'a' + rank, bytes[rank]);
    ck_assert_int_eq(bridge()->all_gather_v(group, all, bytes, &failure), WEFT_OK);
    ck_assert_int_eq(all[0], 'a');
    ck_assert_int_eq(all[4], 'a');
    ck_assert_int_eq(all[5], 'c');
    ck_assert_int_eq(all[100004], 'c');
    if (rank == 1) memcpy(word, "hello", 6);
    ck_assert_int_eq(bridge()->broadcast(group, word, 6, 1, &failure), WEFT_OK);
    ck_assert_str_eq(word, "hello");
    ck_assert_int_eq(bridge()->barrier(group, &failure), WEFT_OK);
    free(all);
}

START_TEST(gloos_collectives_work)
{
    run(RANKS, 300 * SECOND_NS, collectives);
}
END_TEST

/* ---- what fails ---- */

static void silence(struct world *world, int32_t rank, struct gloo_group *group)
{
    struct gloo_failure failure;
    int value;

    if (rank == 0) {
        ck_assert_int_eq(message(group, false, 1, 7, &value, sizeof value, &failure),
                         WEFT_ERR_TIMEOUT);
        ck_assert_int_eq(failure.peer, 1);
        ck_assert_ptr_nonnull(strstr(failure.text, "Timed out"));
        ck_assert_int_ne(message(group, true, 1, 7, &value, sizeof value, &failure), WEFT_OK);
    }
    pthread_barrier_wait(&world->barrier);
}

START_TEST(a_silent_peer_is_named_when_the_time_is_up)
{
    run(2, SECOND_NS / 5, silence);
}
END_TEST

static void departure(struct world *world, int32_t rank, struct gloo_group *group)
{
    struct gloo_failure failure;
    char notice[GLOO_NOTICE_BYTES];
    int value;

    (void)world;
    if (rank == 1) return; /* closes */
    ck_assert_int_eq(message(group, false, 1, 7, &value, sizeof value, &failure), WEFT_ERR_PEER);
    ck_assert_int_eq(failure.peer, 1);
    bridge()->read_notice(group, 1, notice);
    ck_assert_int_eq(notice[0], 0);
}

START_TEST(a_closed_connection_names_the_peer)
{
    run(RANKS, 300 * SECOND_NS, departure);
}
END_TEST

static void departure_in_collective(struct world *world, int32_t rank, struct gloo_group *group)
{
    struct gloo_failure failure;

    (void)world;
    if (rank == 1) return;
    ck_assert_int_eq(bridge()->barrier(group, &failure), WEFT_ERR_PEER);
    ck_assert_int_eq(failure.peer, rank == 0 ? 1 : failure.peer);
    ck_assert_int_ge(failure.peer, 0);
}

START_TEST(a_collective_names_the_peer_that_left)
{
    run(RANKS, 300 * SECOND_NS, departure_in_collective);
}
END_TEST

static void send_notice(struct world *world, int32_t rank, struct gloo_group *group)
{
    struct gloo_failure failure;
    char notice[GLOO_NOTICE_BYTES] = "disk on fire";
    int value;

    (void)world;
    if (rank == 1) {
        bridge()->hang_up(group, notice);
        ck_assert_int_eq(message(group, true, 0, 7, &value, sizeof value, &failure), WEFT_ERR_PEER);
        return;
    }
    ck_assert_int_eq(message(group, false, 1, 7, &value, sizeof value, &failure), WEFT_ERR_PEER);
    bridge()->read_notice(group, 1, notice);
    ck_assert_str_eq(notice, "disk on fire");
}

START_TEST(notices_arrive)
{
    run(RANKS, 300 * SECOND_NS, send_notice);
}
END_TEST

static void talk_to_the_gone(struct world *world, int32_t rank, struct gloo_group *group)
{
    struct gloo_failure failure;
    weft_status status = WEFT_OK;
    int value = 0;

    (void)world;
    if (rank == 1) return;
    for (uint64_t slot = 0; status == WEFT_OK; slot++) {
        struct gloo_part part = {.peer = 1, .slot = slot, .data = &value, .bytes = sizeof value};
        struct gloo_work *work;

        status = bridge()->start(group, 1, &part, 0, NULL, &work, &failure);
        if (status == WEFT_OK) {
            bridge()->group_abort(group); /* no rank receives it */
            status = bridge()->wait(group, work, &failure);
        }
    }
    ck_assert_int_ne(status, WEFT_OK);
}

START_TEST(writing_to_a_peer_that_is_gone_ends_nothing_else)
{
    for (int i = 0; i < 10; i++)
        run(2, 300 * SECOND_NS, talk_to_the_gone);
}
END_TEST

static void *abort_soon(void *group)
{
    struct timespec pause = {.tv_nsec = 100000000};

    nanosleep(&pause, NULL);
    bridge()->group_abort(group);
    bridge()->group_abort(group);
    return NULL;
}

static void abort_wakes(struct world *world, int32_t rank, struct gloo_group *group)
{
    struct gloo_failure failure;
    pthread_t aborter;
    char word[8] = "";
    int value;

    if (rank == 0) {
        ck_assert_int_eq(pthread_create(&aborter, NULL, abort_soon, group), 0);
        ck_assert_int_eq(bridge()->broadcast(group, word, 8, 1, &failure), WEFT_ERR_ABORTED);
        ck_assert_int_eq(message(group, false, 1, 7, &value, sizeof value, &failure),
                         WEFT_ERR_ABORTED);
        pthread_join(aborter, NULL);
    }
    pthread_barrier_wait(&world->barrier);
}

START_TEST(abort_ends_what_is_pending_and_what_comes_later)
{
    run(2, 300 * SECOND_NS, abort_wakes);
}
END_TEST

START_TEST(impostors_are_detected)
{
    struct world world = {.size = 2, .timeout_ns = 300 * SECOND_NS, .key = {1, 2}};

    world_run(&world);
    ck_assert_int_eq(world.connected[0], WEFT_ERR_PEER);
    ck_assert_int_eq(world.connected[1], WEFT_ERR_PEER);
    ck_assert_ptr_nonnull(strstr(world.failure[0].text, "does not belong to this job"));
    ck_assert_int_eq(world.failure[0].peer, 1);
}
END_TEST

SUITE(gloo_bridge, the_table_says_what_it_is, messages_of_all_sizes_arrive, messages_match_by_slot,
      gloos_collectives_work, a_silent_peer_is_named_when_the_time_is_up,
      a_closed_connection_names_the_peer, a_collective_names_the_peer_that_left, notices_arrive,
      writing_to_a_peer_that_is_gone_ends_nothing_else,
      abort_ends_what_is_pending_and_what_comes_later, impostors_are_detected)
