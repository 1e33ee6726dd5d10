/* Messages and groups with real ranks. */
#include "ranks.h"

#include "support/suite.h"

#include <string.h>

#define BIG 300000 /* bytes; read in place */

static weft_status transfer(struct rank *rank, bool send, void *buffer, uint64_t bytes, int peer,
                            uint32_t tag, void *stream)
{
    weft_message message = {.struct_size = sizeof message,
                            .dtype = WEFT_DTYPE_U8,
                            .buffer = buffer,
                            .count = bytes,
                            .peer = peer,
                            .tag = tag,
                            .stream = stream};

    return send ? rank->plugin->comm->send(rank->comm, &message)
                : rank->plugin->comm->receive(rank->comm, &message);
}

static void fill(unsigned char *buffer, uint64_t bytes, int from, int to, uint32_t tag)
{
    for (uint64_t i = 0; i < bytes; i++)
        buffer[i] = (unsigned char)((unsigned)from * 17 + (unsigned)to * 5 + tag + i);
}

static void check(struct rank *rank, const unsigned char *buffer, uint64_t bytes, int from,
                  uint32_t tag)
{
    for (uint64_t i = 0; i < bytes; i++)
        RANK_CHECK(buffer[i] ==
                   (unsigned char)((unsigned)from * 17 + (unsigned)rank->number * 5 + tag + i));
}

/* Rank 0 sends tags in order, and rank 1 receives them in reverse order. */
static void send_backwards(struct rank *rank)
{
    unsigned char buffer[900];

    for (uint32_t i = 0; i < 100; i++) {
        uint32_t tag = rank->number == 0 ? i : 99 - i;

        if (rank->number == 0) {
            fill(buffer, 9 * tag, 0, 1, tag);
            RANK_OK(transfer(rank, true, buffer, 9 * tag, 1, tag, NULL));
        } else {
            RANK_OK(transfer(rank, false, buffer, 9 * tag, 0, tag, NULL));
            check(rank, buffer, 9 * tag, 0, tag);
        }
    }
}

static void all_to_all_in_a_group(struct rank *rank, bool shared, void *stream)
{
    unsigned char *out[16], *in[16];
    const weft_device_table *device = rank->plugin->device;

    for (int p = 0; p < rank->size; p++) {
        if (shared) {
            RANK_OK(device->allocate(rank->device, BIG, 0, (void **)&out[p]));
            RANK_OK(device->allocate(rank->device, BIG, 0, (void **)&in[p]));
        } else {
            out[p] = malloc(BIG);
            in[p] = malloc(BIG);
        }
        fill(out[p], BIG, rank->number, p, 3);
        memset(in[p], 0, BIG);
    }
    RANK_OK(rank->plugin->comm->group_begin(rank->comm));
    for (int p = 0; p < rank->size; p++) {
        RANK_OK(transfer(rank, true, out[p], BIG, p, 3, stream));
        RANK_OK(transfer(rank, false, in[p], BIG, p, 3, stream));
    }
    RANK_OK(rank->plugin->comm->group_end(rank->comm));
    RANK_OK(device->stream_wait(rank->device, stream, WEFT_FOREVER));
    for (int p = 0; p < rank->size; p++) {
        check(rank, in[p], BIG, p, 3);
        if (shared) {
            RANK_OK(device->free(rank->device, out[p]));
            RANK_OK(device->free(rank->device, in[p]));
        } else {
            free(out[p]);
            free(in[p]);
        }
    }
}

static void groups(struct rank *rank)
{
    void *stream;

    RANK_OK(rank->plugin->device->stream_create(rank->device, &stream));
    for (int i = 0; i < 3; i++) {
        all_to_all_in_a_group(rank, true, NULL);
        all_to_all_in_a_group(rank, false, NULL);
        all_to_all_in_a_group(rank, true, stream);
    }
    rank->plugin->device->stream_destroy(rank->device, stream);
}

static void run(int size, bool threads, void (*body)(struct rank *))
{
    struct ranks_options options = {
        .size = size, .threads = threads, .timeout_ns = INT64_C(20000000000), .body = body};

    ck_assert_int_eq(ranks_run(&options), 0);
}

TEST(small_messages_match_by_tag_in_any_order)
{
    run(2, false, send_backwards);
    run(2, true, send_backwards);
}

TEST(a_group_sends_and_receives_everything_at_once)
{
    static const int sizes[] = {1, 2, 3, 7};

    for (size_t i = 0; i < 4; i++) {
        run(sizes[i], false, groups);
        run(sizes[i], true, groups);
    }
}

TEST(private_memory_goes_through_a_stand_in_without_attach)
{
    ranks_knob("WEFT_CPU_CMA", "0");
    run(3, false, groups);
    ranks_knob("WEFT_CPU_CMA", NULL);
}
