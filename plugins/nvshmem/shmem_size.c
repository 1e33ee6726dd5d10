/* shmem_size.c - how large the arena is.
 *
 * NVSHMEM does not say that a device is too full: it ends the process, or the rank that has too
 * little fails alone and the others wait for it without limit.  So the ranks tell each other what
 * is free, and each works out the same size before NVSHMEM is called. */
#include "shmem.h"

#include <stdlib.h>

#define UNIT        (UINT64_C(2) << 20)   /* a default is a multiple of */
#define DEFAULT_MIN (4 * UNIT)            /* of a default */
#define PIECE       (UINT64_C(512) << 20) /* in which NVSHMEM takes memory unless told otherwise */
#define LARGEST     (UINT64_C(2) << 30)   /* of a piece */
#define OWN_RESERVE (UINT64_C(256) << 20) /* NVSHMEM's kernels, streams and teams */

/* "512M", "4G"; 0 if it is not a size. */
static uint64_t read_size(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (end == text) return 0;
    switch (*end) {
    case 'k':
    case 'K':
        return value << 10;
    case 'm':
    case 'M':
        return value << 20;
    case 'g':
    case 'G':
        return value << 30;
    default:
        return *end == '\0' ? value : 0;
    }
}

weft_status shmem_size_requested(uint64_t *bytes)
{
    const char *asked = plug_knob(VENDOR_HEAP_KNOB);

    *bytes = asked != NULL ? read_size(asked) : 0;
    if (asked != NULL && *bytes < UINT64_C(1) << 20)
        return plug_fail(WEFT_ERR_INVALID,
                         "%s is \"%s\"; expected a size of at least 1M, such as 512M",
                         VENDOR_HEAP_KNOB, asked);
    return WEFT_OK;
}

/* One piece is NVSHMEM's, and the arena is rounded up to pieces. */
uint64_t shmem_size_reserve(void)
{
    const char *asked = getenv("NVSHMEM_CUMEM_GRANULARITY");
    uint64_t piece = asked != NULL ? read_size(asked) : 0;

    if (piece == 0) piece = PIECE;
    return 2 * (piece < LARGEST ? piece : LARGEST) + OWN_RESERVE;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Unless the user has said it, an eighth of the device, or what is free of it, shared by the ranks
 * on it. */
static uint64_t wished(const struct shmem_facts *facts, uint64_t sharers)
{
    uint64_t available = facts->available / sharers, bytes;

    if (facts->requested > 0) return facts->requested;
    available -= smaller(available, facts->reserve);
    bytes = smaller(facts->memory / 8 / sharers, available) / UNIT * UNIT;
    return bytes > DEFAULT_MIN ? bytes : DEFAULT_MIN;
}

void shmem_size_choose(struct shmem_facts *facts, uint64_t sharers)
{
    facts->requested = wished(facts, sharers);
}

uint64_t shmem_size_most(const struct shmem_facts *facts)
{
    return wished(facts, 1) + facts->reserve;
}

weft_status shmem_size_agree(const struct gpu_comm *comm, const weft_blob *addresses,
                             uint64_t *arena)
{
    uint64_t bytes = UINT64_MAX;

    for (int32_t r = 0; r < comm->size; r++) {
        struct shmem_facts facts = shmem_facts_of(&addresses[r]);
        bytes = smaller(bytes, wished(&facts, shmem_sharers_of(comm, addresses, r)));
    }
    for (int32_t r = 0; r < comm->size; r++) {
        struct shmem_facts facts = shmem_facts_of(&addresses[r]);
        uint64_t available = facts.available / shmem_sharers_of(comm, addresses, r);
        unsigned long long needed = bytes + facts.reserve;
        if (available >= bytes && available - bytes >= facts.reserve) continue;
        return plug_fail(
            WEFT_ERR_NO_MEMORY,
            "rank %d has %llu bytes of device memory for itself, but NVSHMEM needs %llu: %llu for "
            "the arena, whose size %s sets, and %llu for NVSHMEM",
            comm->world_ranks[r], (unsigned long long)available, needed, (unsigned long long)bytes,
            VENDOR_HEAP_KNOB, (unsigned long long)facts.reserve);
    }
    *arena = bytes;
    return WEFT_OK;
}
