/* shmem_facts.c - what ranks know of each other before a communicator exists. */
#include "shmem.h"

#include <string.h>

/* Copies the facts, because ADDRESS may be unaligned. */
struct shmem_facts shmem_facts_of(const weft_blob *address)
{
    struct shmem_facts facts;

    memcpy(&facts, address->data, sizeof facts);
    return facts;
}

bool shmem_same_device(const struct gpu_comm *comm, const weft_blob *addresses, int32_t a,
                       int32_t b)
{
    struct shmem_facts one = shmem_facts_of(&addresses[a]), other = shmem_facts_of(&addresses[b]);

    return comm->host_ids[a] == comm->host_ids[b] &&
           memcmp(one.uuid, other.uuid, sizeof one.uuid) == 0;
}

uint64_t shmem_sharers_of(const struct gpu_comm *comm, const weft_blob *addresses, int32_t r)
{
    uint64_t count = 0;

    for (int32_t other = 0; other < comm->size; other++)
        if (shmem_same_device(comm, addresses, other, r)) count++;
    return count;
}
