/* shmem_size.c - the size of the arena.
 *
 * NVSHMEM does not report that a device is too full.  It ends the process, or the rank that lacks
 * memory fails alone and the other ranks wait without a limit.  The ranks therefore exchange their
 * free memory, and each computes the same size before NVSHMEM is called. */
#include "shmem.h"

#include <stdlib.h>

#define UNIT        (UINT64_C(2) << 20)   /* defaults are multiples of this */
#define DEFAULT_MIN (4 * UNIT)            /* minimum default */
#define PIECE       (UINT64_C(512) << 20) /* NVSHMEM's default allocation granularity */
#define LARGEST     (UINT64_C(2) << 30)   /* maximum granularity */
#define OWN_RESERVE (UINT64_C(256) << 20) /* for NVSHMEM's kernels, streams and teams */

/* Parse "512M" or "4G"; 0 if TEXT is not a size. */
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

/* NVSHMEM uses one piece itself, and the arena is rounded up to pieces. */
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

/* The user's value, else an eighth of the device, or its free memory if that is less, divided by
 * the ranks on it. */
static uint64_t choose_size(const struct shmem_facts *facts, uint64_t sharers)
{
    uint64_t available = facts->available / sharers, bytes;

    if (facts->requested > 0) return facts->requested;
    available -= smaller(available, facts->reserve);
    bytes = smaller(facts->memory / 8 / sharers, available) / UNIT * UNIT;
    return bytes > DEFAULT_MIN ? bytes : DEFAULT_MIN;
}

void shmem_size_choose(struct shmem_facts *facts, uint64_t sharers)
{
    facts->requested = choose_size(facts, sharers);
}

uint64_t shmem_size_most(const struct shmem_facts *facts)
{
    return choose_size(facts, 1) + facts->reserve;
}

weft_status shmem_size_agree(const struct gpu_comm *comm, const weft_blob *addresses,
                             uint64_t *arena)
{
    uint64_t bytes = UINT64_MAX;

    for (int32_t r = 0; r < comm->size; r++) {
        struct shmem_facts facts = shmem_facts_of(&addresses[r]);
        bytes = smaller(bytes, choose_size(&facts, shmem_sharers_of(comm, addresses, r)));
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
