/* test_net_arrivals.c - which messages a group of UCX takes: those of its members, each once and in
 * order.  Without UCX: messages are handed over as UCX does. */
#include "support/suite.h"

#include "network/ucx/ucx.h"
#include "plug_host.h"

#include <string.h>

#define KEY UINT64_C(0x1122334455667788)

static void *allocate(size_t bytes)
{
    return calloc(1, bytes > 0 ? bytes : 1);
}

static const weft_host test_host = {.struct_size = sizeof test_host,
                                    .abi_major = WEFT_ABI_MAJOR,
                                    .abi_minor = WEFT_ABI_MINOR,
                                    .allocate = allocate,
                                    .release = free};

/* Rank 0 of two, and its peer. */
static struct net_group *new_group(void)
{
    struct net_group *group = calloc(1, sizeof *group + 2 * sizeof group->peers[0]);

    plug_host_set(&test_host);
    group->size = 2;
    group->key = KEY;
    for (int32_t rank = 0; rank < 2; rank++) {
        group->peers[rank].group = group;
        group->peers[rank].rank = rank;
    }
    group->peers[1].wanted = true;
    return group;
}

static void free_group(struct net_group *group)
{
    ucx_drop_arrivals(&group->peers[1]);
    free(group);
}

static struct ucx_header header_of(uint32_t kind, uint32_t number)
{
    return (struct ucx_header){.key = KEY, .from = 1, .kind = kind, .number = number};
}

static void arrive(struct net_group *group, const struct ucx_header *header, const void *data)
{
    const ucp_am_recv_param_t param = {0};

    ck_assert_int_eq(
        ucx_arrived(group, header, sizeof *header, (void *)data, header->bytes, &param), UCS_OK);
}

static void say_hello(struct net_group *group)
{
    struct ucx_header header = header_of(UCX_HELLO, 0);

    arrive(group, &header, NULL);
}

static void send_number(struct net_group *group, uint32_t number)
{
    struct ucx_header header = header_of(NET_MESSAGE, number);
    uint32_t data = number * 10;

    header.bytes = sizeof data;
    arrive(group, &header, &data);
}

static size_t length(const struct ucx_arrival *list)
{
    size_t count = 0;

    for (; list != NULL; list = list->next)
        count++;
    return count;
}

/* The messages that wait for their receives are the first COUNT, once each and in order. */
static void holds(const struct net_group *group, uint32_t count)
{
    const struct ucx_arrival *arrival = group->peers[1].arrivals;

    ck_assert_uint_eq(group->peers[1].received, count);
    ck_assert_uint_eq(length(arrival), count);
    for (uint32_t i = 0; i < count; i++, arrival = arrival->next) {
        uint32_t data;

        memcpy(&data, arrival->data, sizeof data);
        ck_assert_uint_eq(data, i * 10);
    }
}

TEST(a_hello_needs_the_key_of_the_group)
{
    struct net_group *group = new_group();
    struct ucx_header header = header_of(UCX_HELLO, 0);

    header.key ^= 1;
    arrive(group, &header, NULL);
    ck_assert(!group->peers[1].said_hello && group->peers[1].is_strange);
    say_hello(group);
    ck_assert(group->peers[1].said_hello);
    free_group(group);
}

TEST(messages_need_a_hello_and_the_key)
{
    struct net_group *group = new_group();
    struct ucx_header header = header_of(NET_MESSAGE, 0);

    send_number(group, 0);
    holds(group, 0);
    say_hello(group);
    header.key ^= 1;
    arrive(group, &header, NULL);
    holds(group, 0);
    send_number(group, 0);
    holds(group, 1);
    free_group(group);
}

TEST(messages_of_nobody_are_dropped)
{
    static const uint32_t nobody[] = {0, 2, UINT32_MAX}; /* the group itself, and beyond it */
    struct net_group *group = new_group();
    const ucp_am_recv_param_t param = {0};
    struct ucx_header header = header_of(NET_MESSAGE, 0);

    say_hello(group);
    for (size_t i = 0; i < 3; i++) {
        header.from = nobody[i];
        arrive(group, &header, NULL);
    }
    header.from = 1;
    (void)ucx_arrived(group, &header, sizeof header - 1, NULL, 0, &param);
    (void)ucx_arrived(group, &header, 0, NULL, 0, &param);
    header.bytes = 100; /* but 4 come */
    (void)ucx_arrived(group, &header, sizeof header, "abc", 4, &param);
    holds(group, 0);
    free_group(group);
}

TEST(a_message_that_is_sent_again_is_dropped)
{
    struct net_group *group = new_group();

    say_hello(group);
    for (uint32_t number = 0; number < 3; number++)
        for (int again = 0; again < 3; again++)
            send_number(group, number);
    for (uint32_t number = 0; number < 3; number++)
        send_number(group, number);
    holds(group, 3);
    free_group(group);
}

TEST(early_messages_wait_for_their_turn_once)
{
    struct net_group *group = new_group();

    say_hello(group);
    for (int again = 0; again < 3; again++) {
        send_number(group, 3);
        send_number(group, 2);
    }
    holds(group, 0);
    ck_assert_uint_eq(length(group->peers[1].early), 2);
    send_number(group, 0);
    holds(group, 1);
    send_number(group, 1);
    holds(group, 4);
    ck_assert_ptr_null(group->peers[1].early);
    free_group(group);
}

TEST(nothing_comes_after_a_goodbye)
{
    struct net_group *group = new_group();
    struct ucx_header header = header_of(UCX_GOODBYE, 1);

    say_hello(group);
    send_number(group, 0);
    arrive(group, &header, NULL);
    ck_assert(group->peers[1].departed);
    send_number(group, 2);
    ck_assert_uint_eq(length(group->peers[1].arrivals), 1);
    free_group(group);
}
