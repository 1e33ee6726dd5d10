/* The data that ranks exchange while a communicator is created is not trusted: every field may have
 * any value. */
#include "ranks.h"

#include "hosts/hosts.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

static const uint64_t values[] = {
    0,         1, 8, 64, UINT64_C(1) << 30, UINT64_C(1) << 40, UINT64_C(1) << 63, UINT64_MAX - 63,
    UINT64_MAX};

/* The field that is changed; a body runs in one thread of its process. */
static int forged_step;
static uint64_t forged_at, forged_bytes, forged_value;

static void put_value(struct rank *rank, unsigned char *data, uint64_t bytes)
{
    if (rank->step == forged_step && forged_at + forged_bytes <= bytes)
        memcpy(data + forged_at, &forged_value, forged_bytes);
}

static weft_status make_forged(struct rank *rank, int step, uint64_t at, uint64_t bytes,
                               uint64_t value)
{
    weft_status status;
    void *comm = NULL;

    forged_step = step;
    forged_at = at;
    forged_bytes = bytes;
    forged_value = value;
    rank->forge = put_value;
    status = ranks_comm(rank, "forged", &comm);
    rank->forge = NULL;
    if (status == WEFT_OK) rank->plugin->comm->destroy(comm);
    return status;
}

static bool names_a_rank(void)
{
    return strstr(ranks_error(), "rank 0") != NULL || strstr(ranks_error(), "rank 1") != NULL;
}

static uint64_t address_bytes;

static void note_bytes(struct rank *rank, unsigned char *data, uint64_t bytes)
{
    (void)data;
    if (rank->step == 0) address_bytes = bytes;
}

/* An address ends with the offset of the control block and with its first word. */
static void forge_addresses(struct rank *rank)
{
    void *comm = NULL;

    rank->forge = note_bytes;
    RANK_OK(ranks_comm(rank, "real", &comm));
    rank->plugin->comm->destroy(comm);
    for (uint64_t at = 0; at + 8 <= address_bytes; at += 8)
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            weft_status status = make_forged(rank, 0, at, 8, values[i]);

            if (at == 0) RANK_CHECK(status == WEFT_ERR_MISMATCH && names_a_rank());
            if (at == address_bytes - 16 && values[i] != 0 && values[i] != 64)
                RANK_CHECK(status == WEFT_ERR_MISMATCH && names_a_rank());
        }
}

TEST(addresses_of_memory_are_checked)
{
    struct ranks_options options = {.size = 2, .timeout_ns = 60 * SECOND, .body = forge_addresses};

    ranks_knob("WEFT_GLOO_LIB", GLOO_LIBRARY);
    ranks_knob("WEFT_GLOO_INTERFACE", "lo");
    ranks_knob("WEFT_CPU_NETWORK", ranks_network());
    ck_assert_int_eq(ranks_run(&options), 0);
}

/* The third exchange has an outcome, the addresses on the network, a key and a size. */
static void forge_cards(struct rank *rank)
{
    uint64_t begin = sizeof(struct cpu_outcome), end = begin + sizeof(struct cpu_hosts_addresses);
    uint64_t count = begin + offsetof(struct cpu_hosts_addresses, count);
    uint64_t first = begin + offsetof(struct cpu_hosts_addresses, list);
    const struct {
        uint64_t at, bytes, value;
    } wrong[] = {{count, 4, 0},          {count, 4, HOSTS_ADDRESSES + 1},
                 {count, 4, UINT32_MAX}, {first, 1, 0},
                 {first, 1, 255},        {first + 1, 1, 33},
                 {first + 1, 1, 255},    {end + 8, 8, 0},
                 {end + 16, 4, 3},       {end + 16, 4, UINT32_MAX}};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        RANK_CHECK(make_forged(rank, 3, wrong[i].at, wrong[i].bytes, wrong[i].value) ==
                   WEFT_ERR_MISMATCH);
        RANK_CHECK(names_a_rank());
    }
    RANK_CHECK(make_forged(rank, 3, 0, 4, 1) == WEFT_ERR_PEER && names_a_rank());
    RANK_CHECK(make_forged(rank, 3, 0, 4, (uint32_t)-99) == WEFT_ERR_PEER && names_a_rank());
}

TEST(addresses_on_the_network_are_checked)
{
    struct ranks_options options = {
        .size = 2, .timeout_ns = 60 * SECOND, .host_of = {0, 1}, .body = forge_cards};

    if (GLOO_LIBRARY[0] == '\0') return;
    ranks_knob("WEFT_GLOO_LIB", GLOO_LIBRARY);
    ranks_knob("WEFT_GLOO_INTERFACE", "lo");
    ranks_knob("WEFT_CPU_NETWORK", ranks_network());
    ck_assert_int_eq(ranks_run(&options), 0);
}

/* WEFT_GLOO_INTERFACE may differ on ranks that see the same interfaces. */
TEST(a_rank_without_loopback_has_an_address)
{
    struct cpu_hosts_addresses all[2] = {
        {.network = 1,
         .count = 1,
         .list = {{.family = 2, .prefix = 8, .loopback = 1, .bytes = {127, 0, 0, 1}}}},
        {.network = 1, .count = 1, .list = {{.family = 2, .prefix = 24, .bytes = {10, 0, 0, 1}}}}};

    ck_assert_uint_eq(cpu_hosts_address_choose(all, sizeof *all, 2, 0), 0);
    ck_assert_uint_eq(cpu_hosts_address_choose(all, sizeof *all, 2, 1), 0);
}
