/* Ranks that arrive after another rank has failed and reused its buffers: data that is reported as
 * received is right. */
#include "cpu_comm.h"
#include "ranks.h"

#include "support/suite.h"

#include <string.h>

#define SECOND  INT64_C(1000000000)
#define LIMIT   (SECOND / 4) /* passes before the others arrive */
#define COUNT   300000       /* f32; read in place */
#define MESSAGE WEFT_COLL_COUNT

static struct {
    uint32_t collective; /* or MESSAGE */
    bool shared;
} call;

static float *take(struct rank *rank, float value)
{
    static float room[2][3 * COUNT];
    static int taken;
    void *memory = room[taken++ % 2];

    if (call.shared)
        RANK_OK(rank->plugin->device->allocate(rank->device, 3 * COUNT * sizeof(float),
                                               WEFT_MEMORY_DEVICE, &memory));
    for (int i = 0; i < 3 * COUNT; i++)
        ((float *)memory)[i] = value;
    return memory;
}

/* The last rank sends, and is the root if the root sends. */
static weft_status make_call(struct rank *rank, float *send, float *recv)
{
    int last = rank->size - 1;
    bool gathers = call.collective == WEFT_COLL_GATHER || call.collective == WEFT_COLL_REDUCE;
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = call.collective,
                                 .dtype = WEFT_DTYPE_F32,
                                 .reduction = WEFT_REDUCE_MAX,
                                 .root = gathers ? 0 : last,
                                 .send = send,
                                 .recv = recv,
                                 .count = COUNT};
    weft_message message = {.struct_size = sizeof message,
                            .dtype = WEFT_DTYPE_F32,
                            .buffer = rank->number == last ? send : recv,
                            .count = COUNT,
                            .peer = last - rank->number};

    if (call.collective != MESSAGE) return rank->plugin->comm->collective(rank->comm, &args);
    if (rank->number == last) return rank->plugin->comm->send(rank->comm, &message);
    return rank->number == 0 ? rank->plugin->comm->receive(rank->comm, &message) : WEFT_OK;
}

static uint64_t count_received(struct rank *rank)
{
    switch (call.collective) {
    case WEFT_COLL_ALL_GATHER:
    case WEFT_COLL_ALL_TO_ALL:
        return (uint64_t)rank->size * COUNT;
    case WEFT_COLL_GATHER:
        return rank->number == 0 ? (uint64_t)rank->size * COUNT : 0;
    case WEFT_COLL_REDUCE:
    case MESSAGE:
        return rank->number == 0 ? COUNT : 0;
    default:
        return COUNT;
    }
}

static void others_come_late(struct rank *rank)
{
    int last = rank->size - 1;
    float *send = take(rank, 1), *recv = take(rank, -1);
    weft_status status;

    ranks_meet(rank);
    if (rank->number == last) {
        RANK_CHECK(make_call(rank, send, recv) == WEFT_ERR_TIMEOUT);
        for (int i = 0; i < 3 * COUNT; i++)
            send[i] = 1000;
        ranks_meet(rank);
        ranks_meet(rank);
        return;
    }
    ranks_meet(rank);
    status = make_call(rank, send, recv);
    for (uint64_t i = 0; status == WEFT_OK && i < count_received(rank); i++)
        RANK_CHECK(recv[i] == 1);
    if (call.shared && count_received(rank) > 0) {
        RANK_CHECK(status == WEFT_ERR_TIMEOUT);
        RANK_CHECK(strstr(ranks_error(), "rank 2 (pid") != NULL);
        RANK_CHECK(strstr(ranks_error(), "waited") != NULL);
    }
    ranks_meet(rank);
}

TEST(no_rank_takes_what_another_sent_before_it_gave_up)
{
    static const uint32_t calls[] = {
        WEFT_COLL_BROADCAST,  WEFT_COLL_GATHER,         WEFT_COLL_SCATTER,
        WEFT_COLL_ALL_GATHER, WEFT_COLL_ALL_TO_ALL,     WEFT_COLL_ALL_REDUCE,
        WEFT_COLL_REDUCE,     WEFT_COLL_REDUCE_SCATTER, MESSAGE};

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (int shared = 0; shared < 2; shared++) {
            struct ranks_options options = {
                .size = 3, .timeout_ns = LIMIT, .body = others_come_late};

            call.collective = calls[i];
            call.shared = shared != 0;
            if (ranks_run(&options) != 0)
                ck_abort_msg("collective %u, %s memory", calls[i], shared ? "shared" : "private");
        }
}

/* Rank 1 fails after this rank has synchronized with it and before this rank has read its
 * memory. */
static void one_fails_while_it_is_read(struct rank *rank)
{
    struct cpu_shm_group *group = &((struct cpu_comm *)rank->comm)->group;
    float *send = take(rank, 1);
    struct cpu_shm_call mine = {.collective = (uint8_t)call.collective, .root = -1, .count = COUNT};
    struct cpu_shm_share share = {.send = send, .send_bytes = COUNT * 4, .reader = -1};

    ranks_meet(rank);
    RANK_OK(cpu_shm_begin(group, &mine, &share));
    RANK_OK(cpu_shm_wait_peers(group));
    ranks_meet(rank);
    if (rank->number == 0) RANK_OK(cpu_shm_confirm(group, -1));
    if (rank->number == 1) {
        cpu_shm_done(group);
        RANK_CHECK(cpu_shm_settle(group, -1) == WEFT_ERR_TIMEOUT);
    }
    ranks_meet(rank);
    if (rank->number == 0) RANK_CHECK(cpu_shm_confirm(group, -1) == WEFT_ERR_TIMEOUT);
    ranks_meet(rank);
}

TEST(giving_up_is_noticed_after_reading_too)
{
    struct ranks_options options = {
        .size = 2, .timeout_ns = 4 * SECOND, .body = one_fails_while_it_is_read};

    call.collective = WEFT_COLL_ALL_GATHER;
    call.shared = true;
    ck_assert_int_eq(ranks_run(&options), 0);
}
