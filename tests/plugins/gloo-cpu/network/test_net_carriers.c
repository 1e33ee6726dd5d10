/* test_net_carriers.c - a carrier between hosts: messages, and every kind of failure.  Ranks are
 * threads, on loopback.  CARRIER names the one to test. */
#include "support/suite.h"

#include "network/carriers.h"
#include "plug_host.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define RANKS     3
#define SECOND_NS INT64_C(1000000000)

static const char *knob(const char *name)
{
    return getenv(name);
}

static void log_line(int32_t level, const char *text)
{
    if (level < 2) fprintf(stderr, "%s\n", text);
}

static void set_error(weft_status status, const char *vendor, int64_t code, const char *text)
{
    (void)vendor;
    (void)code;
    fprintf(stderr, "status %d: %s\n", (int)status, text);
}

static void *allocate(size_t bytes)
{
    return calloc(1, bytes > 0 ? bytes : 1);
}

static const weft_host test_host = {.struct_size = sizeof test_host,
                                    .abi_major = WEFT_ABI_MAJOR,
                                    .abi_minor = WEFT_ABI_MINOR,
                                    .log = log_line,
                                    .set_error = set_error,
                                    .allocate = allocate,
                                    .release = free,
                                    .knob = knob};

static struct sigaction before[NSIG];

__attribute__((constructor)) static void note_signals(void)
{
    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, NULL, &before[number]);
}

static bool tests_ucx(void)
{
    return strcmp(getenv("CARRIER"), "UCX") == 0;
}

static const struct net_carrier *carrier(void)
{
    static const struct net_carrier *table;

    plug_host_set(&test_host);
    if (table == NULL) ck_assert_int_eq(tests_ucx() ? net_ucx(&table) : net_gloo(&table), WEFT_OK);
    return table;
}

/* ---- a small world ---- */

struct world {
    int32_t size;
    int64_t timeout_ns;
    pthread_barrier_t barrier;
    unsigned char *addresses; /* of each rank */
    uint64_t key[RANKS];
    void (*rank_main)(struct world *world, int32_t rank, struct net_group *group);
    weft_status connected[RANKS];
    struct net_failure failure[RANKS];
    bool is_absent[2]; /* by rank: it does not connect, and stays until the other has failed */
};

struct thread {
    struct world *world;
    int32_t rank;
    pthread_t id;
};

#define ADDRESS_MOST 4096

static void *rank_thread(void *argument)
{
    const struct thread *thread = argument;
    struct world *world = thread->world;
    int32_t rank = thread->rank;
    uint8_t wanted[RANKS];
    struct net_ranks ranks = {.rank = rank,
                              .size = world->size,
                              .wanted = wanted,
                              .timeout_ns = world->timeout_ns,
                              .address = "127.0.0.1",
                              .interface = "lo"};
    struct net_group *group;
    struct net_failure *failure = &world->failure[rank];

    for (int32_t peer = 0; peer < world->size; peer++)
        wanted[peer] = peer != rank;
    ck_assert_msg(carrier()->listen(&ranks, &group, failure) == WEFT_OK, "%s", failure->text);
    ck_assert_uint_le(carrier()->address_bytes(group), ADDRESS_MOST);
    carrier()->address(group, world->addresses + (size_t)ADDRESS_MOST * (size_t)rank);
    pthread_barrier_wait(&world->barrier);
    world->connected[rank] =
        rank < 2 && world->is_absent[rank]
            ? WEFT_ERR_PEER
            : carrier()->connect(group, world->addresses, ADDRESS_MOST, world->key[rank], failure);
    if (world->connected[rank] == WEFT_OK && world->rank_main != NULL)
        world->rank_main(world, rank, group);
    if (world->is_absent[0] || world->is_absent[1]) pthread_barrier_wait(&world->barrier);
    carrier()->close(group);
    return NULL;
}

static void world_run(struct world *world)
{
    struct thread threads[RANKS];

    world->addresses = calloc((size_t)world->size, ADDRESS_MOST);
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
                void (*rank_main)(struct world *, int32_t, struct net_group *))
{
    struct world world = {.size = size, .timeout_ns = timeout_ns, .rank_main = rank_main};

    world_run(&world);
    for (int32_t r = 0; r < size; r++)
        ck_assert_msg(world.connected[r] == WEFT_OK, "%s", world.failure[r].text);
}

static weft_status message(struct net_group *group, bool sends, int32_t peer, uint32_t tag,
                           void *data, size_t bytes, struct net_failure *failure)
{
    struct net_part part = {
        .peer = peer, .kind = NET_MESSAGE, .tag = tag, .data = data, .bytes = bytes};
    struct net_work *work;
    weft_status status = carrier()->start(group, sends, &part, !sends, &part, &work, failure);

    return status == WEFT_OK ? carrier()->wait(group, work, failure) : status;
}

/* ---- what works ---- */

TEST(the_table_says_what_it_is)
{
    ck_assert_uint_eq(carrier()->version, NET_VERSION);
    ck_assert_int_eq(strncmp(carrier()->library, tests_ucx() ? "UCX " : "Gloo ", 4), 0);
}

static bool all_bytes_are(int value, const unsigned char *bytes, size_t count)
{
    while (count > 0 && bytes[count - 1] == value)
        count--;
    return count == 0;
}

static void everyone_writes_to_everyone(struct world *world, int32_t rank, struct net_group *group)
{
    static const size_t sizes[] = {0, 1, 1000, 3000000};
    struct net_failure failure;

    for (size_t s = 0; s < 4; s++) {
        size_t bytes = sizes[s];
        unsigned char *out = malloc(bytes + 1), *in = calloc((size_t)world->size, bytes + 1);
        struct net_part sends[RANKS], receives[RANKS];
        struct net_work *work;
        uint32_t n = 0;

        memset(out, 'a' + rank, bytes + 1);
        for (int32_t peer = 0; peer < world->size; peer++) {
            if (peer == rank) continue;
            sends[n] =
                (struct net_part){.peer = peer, .tag = (uint32_t)s, .data = out, .bytes = bytes};
            receives[n] = sends[n];
            receives[n++].data = in + (bytes + 1) * (size_t)peer;
        }
        ck_assert_int_eq(carrier()->start(group, n, sends, n, receives, &work, &failure), WEFT_OK);
        ck_assert_int_eq(carrier()->wait(group, work, &failure), WEFT_OK);
        for (int32_t peer = 0; peer < world->size; peer++)
            ck_assert(peer == rank ||
                      all_bytes_are('a' + peer, in + (bytes + 1) * (size_t)peer, bytes));
        free(out);
        free(in);
    }
}

TEST(messages_of_all_sizes_arrive)
{
    run(RANKS, 300 * SECOND_NS, everyone_writes_to_everyone);
}

/* UCX 1.13 ended the process if a put was confirmed after the connection had ended.  Large messages
 * and flushes are puts, so neither is used over TCP. */
TEST(connections_end_right_after_large_messages)
{
    for (int i = 0; i < 20; i++)
        run(RANKS, 300 * SECOND_NS, everyone_writes_to_everyone);
}

static void out_of_order(struct world *world, int32_t rank, struct net_group *group)
{
    struct net_part parts[3];
    struct net_failure failure;
    struct net_work *work;
    int values[3] = {0};

    (void)world;
    for (int i = 0; i < 3; i++) {
        int tag = rank == 0 ? i : 2 - i; /* one side in reverse order */
        if (rank == 0) values[i] = 100 + tag;
        parts[i] = (struct net_part){
            .peer = 1 - rank, .tag = (uint32_t)tag, .data = &values[i], .bytes = sizeof(int)};
    }
    ck_assert_int_eq(carrier()->start(group, rank == 0 ? 3 : 0, parts, rank == 0 ? 0 : 3, parts,
                                      &work, &failure),
                     WEFT_OK);
    ck_assert_int_eq(carrier()->wait(group, work, &failure), WEFT_OK);
    for (int i = 0; rank == 1 && i < 3; i++)
        ck_assert_int_eq(values[i], 102 - i);
}

TEST(messages_match_by_tag)
{
    run(2, 300 * SECOND_NS, out_of_order);
}

static void kinds(struct world *world, int32_t rank, struct net_group *group)
{
    struct net_part parts[4];
    struct net_failure failure;
    struct net_work *work;
    int values[4] = {0};

    (void)world;
    for (int i = 0; i < 4; i++) {
        int kind = rank == 0 ? i : 3 - i;
        if (rank == 0) values[i] = 100 + kind;
        parts[i] = (struct net_part){
            .peer = 1 - rank, .kind = (uint32_t)kind, .data = &values[i], .bytes = sizeof(int)};
    }
    ck_assert_int_eq(carrier()->start(group, rank == 0 ? 4 : 0, parts, rank == 0 ? 0 : 4, parts,
                                      &work, &failure),
                     WEFT_OK);
    ck_assert_int_eq(carrier()->wait(group, work, &failure), WEFT_OK);
    for (int i = 0; rank == 1 && i < 4; i++)
        ck_assert_int_eq(values[i], 103 - i);
}

TEST(messages_match_by_kind)
{
    run(2, 300 * SECOND_NS, kinds);
}

#define THREADS  4
#define MESSAGES 60

struct talker {
    struct net_group *group;
    int32_t rank, number;
};

/* Each thread has a tag of its own.  Sizes are those of all protocols of a carrier. */
static void *talk(void *argument)
{
    static const size_t sizes[] = {1, 5000, 200000};
    const struct talker *talker = argument;
    unsigned char *out = malloc(200000), *in = malloc(200000);

    for (int i = 0; i < MESSAGES; i++) {
        struct net_part sent = {.peer = 1 - talker->rank,
                                .kind = NET_MESSAGE,
                                .tag = (uint32_t)talker->number,
                                .data = out,
                                .bytes = sizes[(i + talker->number) % 3]};
        struct net_part received = sent;
        struct net_failure failure;
        struct net_work *work;

        received.data = in;
        memset(out, talker->rank * 100 + talker->number + i % 7, sent.bytes);
        ck_assert_msg(carrier()->start(talker->group, 1, &sent, 1, &received, &work, &failure) ==
                          WEFT_OK,
                      "%s", failure.text);
        ck_assert_msg(carrier()->wait(talker->group, work, &failure) == WEFT_OK, "%s",
                      failure.text);
        ck_assert(all_bytes_are((1 - talker->rank) * 100 + talker->number + i % 7, in, sent.bytes));
    }
    free(out);
    free(in);
    return NULL;
}

static void all_threads_talk(struct world *world, int32_t rank, struct net_group *group)
{
    struct talker talkers[THREADS];
    pthread_t ids[THREADS];

    (void)world;
    for (int i = 0; i < THREADS; i++) {
        talkers[i] = (struct talker){group, rank, i};
        ck_assert_int_eq(pthread_create(&ids[i], NULL, talk, &talkers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
}

TEST(threads_of_a_rank_share_the_connections)
{
    run(2, 300 * SECOND_NS, all_threads_talk);
}

/* ---- what fails ---- */

static void other_length(struct world *world, int32_t rank, struct net_group *group)
{
    struct net_failure failure;
    char data[8] = "";

    if (rank == 0) {
        weft_status status = message(group, false, 1, 7, data, 8, &failure);

        /* Gloo waits, until either side closes the connection. */
        ck_assert_int_ne(status, WEFT_OK);
        ck_assert_int_eq(failure.peer, 1);
        if (tests_ucx()) {
            ck_assert_int_eq(status, WEFT_ERR_MISMATCH);
            ck_assert_str_eq(failure.text, "it sent a message of 4 bytes; expected 8");
        }
    } else {
        (void)message(group, true, 0, 7, data, 4, &failure);
    }
    pthread_barrier_wait(&world->barrier);
}

TEST(a_message_of_another_length_is_not_received)
{
    run(2, SECOND_NS, other_length);
}

#define LARGE ((size_t)32 << 20)

static void send_to_the_leaving(struct world *world, int32_t rank, struct net_group *group)
{
    struct net_failure failure;
    char *data;

    (void)world;
    if (rank == 1) return; /* closes */
    data = calloc(1, LARGE);
    ck_assert_int_eq(message(group, true, 1, 7, data, LARGE, &failure), WEFT_ERR_PEER);
    ck_assert_int_eq(failure.peer, 1);
    free(data);
}

TEST(a_large_message_to_a_peer_that_leaves_ends)
{
    run(2, 300 * SECOND_NS, send_to_the_leaving);
}

static void silence(struct world *world, int32_t rank, struct net_group *group)
{
    struct net_failure failure;
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

TEST(a_silent_peer_is_named_when_the_time_is_up)
{
    run(2, 3 * SECOND_NS, silence);
}

TEST(a_peer_that_does_not_connect_is_named_when_the_time_is_up)
{
    for (int32_t absent = 0; absent < 2; absent++) {
        struct world world = {.size = 2, .timeout_ns = 2 * SECOND_NS};
        int64_t before_ns = (int64_t)plug_now();

        world.is_absent[absent] = true;
        world_run(&world);
        ck_assert_int_eq(world.connected[1 - absent], WEFT_ERR_TIMEOUT);
        ck_assert_int_eq(world.failure[1 - absent].peer, absent);
        ck_assert_int_lt((int64_t)plug_now() - before_ns, 8 * SECOND_NS);
    }
}

static void departure(struct world *world, int32_t rank, struct net_group *group)
{
    struct net_failure failure;
    char notice[NET_NOTICE_BYTES];
    int value;

    (void)world;
    if (rank == 1) return; /* closes */
    ck_assert_int_eq(message(group, false, 1, 7, &value, sizeof value, &failure), WEFT_ERR_PEER);
    ck_assert_int_eq(failure.peer, 1);
    carrier()->read_notice(group, 1, notice);
    ck_assert_int_eq(notice[0], 0);
}

TEST(a_closed_connection_names_the_peer)
{
    run(RANKS, 300 * SECOND_NS, departure);
}

static void send_notice(struct world *world, int32_t rank, struct net_group *group)
{
    struct net_failure failure;
    char notice[NET_NOTICE_BYTES] = "disk on fire";
    int value;

    (void)world;
    if (rank == 1) {
        carrier()->hang_up(group, notice);
        ck_assert_int_eq(message(group, true, 0, 7, &value, sizeof value, &failure), WEFT_ERR_PEER);
        return;
    }
    ck_assert_int_eq(message(group, false, 1, 7, &value, sizeof value, &failure), WEFT_ERR_PEER);
    carrier()->read_notice(group, 1, notice);
    ck_assert_str_eq(notice, "disk on fire");
}

TEST(notices_arrive)
{
    run(RANKS, 300 * SECOND_NS, send_notice);
}

static void talk_to_the_gone(struct world *world, int32_t rank, struct net_group *group)
{
    struct net_failure failure;
    weft_status status = WEFT_OK;
    int value = 0;

    (void)world;
    if (rank == 1) return;
    for (uint32_t tag = 0; status == WEFT_OK; tag++) {
        struct net_part part = {.peer = 1, .tag = tag, .data = &value, .bytes = sizeof value};
        struct net_work *work;

        status = carrier()->start(group, 1, &part, 0, NULL, &work, &failure);
        if (status == WEFT_OK) {
            carrier()->abort(group); /* no rank receives it */
            status = carrier()->wait(group, work, &failure);
        }
    }
    ck_assert_int_ne(status, WEFT_OK);
}

TEST(writing_to_a_peer_that_is_gone_ends_nothing_else)
{
    for (int i = 0; i < 10; i++)
        run(2, 300 * SECOND_NS, talk_to_the_gone);
}

static void *abort_soon(void *group)
{
    struct timespec pause = {.tv_nsec = 100000000};

    nanosleep(&pause, NULL);
    carrier()->abort(group);
    carrier()->abort(group);
    return NULL;
}

static void abort_wakes(struct world *world, int32_t rank, struct net_group *group)
{
    struct net_failure failure;
    pthread_t aborter;
    char word[8] = "";
    int value;

    if (rank == 0) {
        ck_assert_int_eq(pthread_create(&aborter, NULL, abort_soon, group), 0);
        ck_assert_int_eq(message(group, false, 1, 6, word, sizeof word, &failure),
                         WEFT_ERR_ABORTED);
        ck_assert_int_eq(message(group, false, 1, 7, &value, sizeof value, &failure),
                         WEFT_ERR_ABORTED);
        pthread_join(aborter, NULL);
    }
    pthread_barrier_wait(&world->barrier);
}

TEST(abort_ends_what_is_pending_and_what_comes_later)
{
    run(2, 300 * SECOND_NS, abort_wakes);
}

TEST(impostors_are_detected)
{
    struct world world = {.size = 2, .timeout_ns = 3 * SECOND_NS, .key = {1, 2}};

    world_run(&world);
    ck_assert_int_ne(world.connected[0], WEFT_OK);
    ck_assert_int_eq(world.connected[1], WEFT_ERR_PEER);
    ck_assert_ptr_nonnull(strstr(world.failure[1].text, "does not belong to this job"));
    ck_assert_int_eq(world.failure[0].peer, 1);
    ck_assert_int_eq(world.failure[1].peer, 0);
}

/* ---- the process ---- */

TEST(opening_the_library_leaves_signals_alone)
{
    static const int numbers[] = {SIGHUP, SIGILL, SIGBUS, SIGFPE, SIGSEGV};

    run(2, 300 * SECOND_NS, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action;

        ck_assert_int_eq(sigaction(numbers[i], NULL, &action), 0);
        ck_assert_msg(action.sa_handler == before[numbers[i]].sa_handler, "signal %d", numbers[i]);
    }
}
