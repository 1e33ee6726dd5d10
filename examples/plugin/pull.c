/* pull.c - every rank reads its elements from the buffers of its peers.
 *
 * The ranks exchange how many bytes of each buffer they read.  Each rank then publishes that part
 * of its buffer, one chunk at a time, and copies the data of the other ranks.  The regions are read
 * from the copies. */
#include "example.h"

#include <string.h>

struct pull {
    struct example_comm *comm;
    const weft_pull_args *args;
    uint64_t wanted[EXAMPLE_MAX_RANKS]; /* bytes of each rank's buffer; the maximum over all
                                           readers */
    uint8_t *copies[EXAMPLE_MAX_RANKS];
};

/* Publish how much of each rank's buffer this rank reads, and compute the maximum over all
 * ranks. */
static weft_status compare_requests(struct pull *pull)
{
    struct example_comm *comm = pull->comm;
    struct example_note *note = example_next_note(comm);
    uint32_t holders = pull->args->holders > 1 ? pull->args->holders : 1;
    weft_status status;

    *note = (struct example_note){.collective = EXAMPLE_PULL,
                                  .dtype = pull->args->dtype,
                                  .plan = pull->args->plan,
                                  .binding = pull->args->binding,
                                  .step = pull->args->step};
    for (uint64_t i = 0; i < example_region_count(pull->args->regions); i++) {
        uint32_t source;
        uint64_t end = example_region_end(pull->args->regions, i, &source);
        for (uint32_t k = 0; k < holders; k++) {
            uint64_t *part = &note->parts[pull->args->sources[source + k]];
            if (end > *part) *part = end;
        }
    }
    status = example_barrier(comm);
    if (status == WEFT_OK) status = example_compare_notes(comm);
    for (int32_t i = 0; i < comm->size && status == WEFT_OK; i++)
        for (int32_t k = 0; k < comm->size; k++)
            if (example_note_of(comm, i)->parts[k] > pull->wanted[k])
                pull->wanted[k] = example_note_of(comm, i)->parts[k];
    return status;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static weft_status show_and_keep(struct pull *pull)
{
    struct example_comm *comm = pull->comm;
    struct example_seat *seats = comm->segment->seats;
    uint64_t longest = 0;
    weft_status status;

    for (int32_t i = 0; i < comm->size; i++)
        if (pull->wanted[i] > longest) longest = pull->wanted[i];
    for (uint64_t low = 0; low < longest; low += EXAMPLE_CHUNK) {
        if (pull->wanted[comm->rank] > low)
            memcpy(seats[comm->rank].chunk, (const uint8_t *)pull->args->send + low,
                   least(pull->wanted[comm->rank] - low, EXAMPLE_CHUNK));
        if ((status = example_barrier(comm)) != WEFT_OK) return status;
        for (int32_t i = 0; i < comm->size; i++)
            if (pull->wanted[i] > low)
                memcpy(pull->copies[i] + low, seats[i].chunk,
                       least(pull->wanted[i] - low, EXAMPLE_CHUNK));
        if ((status = example_barrier(comm)) != WEFT_OK) return status;
    }
    return WEFT_OK;
}

/* SOURCES are ranks, but the regions refer to buffers. */
static weft_status take(struct pull *pull)
{
    const void *sources[2 * EXAMPLE_MAX_RANKS] = {NULL};
    void *targets[] = {pull->args->recv};
    uint32_t used = 0, holders = pull->args->holders > 1 ? pull->args->holders : 1;

    for (uint64_t i = 0; i < example_region_count(pull->args->regions); i++) {
        uint32_t source;
        (void)example_region_end(pull->args->regions, i, &source);
        if (source + holders > used) used = source + holders;
    }
    if (used > 2 * EXAMPLE_MAX_RANKS) return plug_fail(WEFT_ERR_UNSUPPORTED, "%u sources", used);
    for (uint32_t i = 0; i < used; i++)
        sources[i] = pull->copies[pull->args->sources[i]];
    if (holders == 1)
        return example_kernel.regions_copy(pull->args->regions, sources, targets, NULL);
    if (pull->args->divisor != 0)
        return example_kernel.regions_average(pull->args->regions, pull->args->dtype, holders,
                                              pull->args->divisor, sources, targets, NULL);
    return example_kernel.regions_reduce(pull->args->regions, pull->args->dtype,
                                         pull->args->reduction, holders, sources, targets, NULL);
}

weft_status example_pull(void *comm, const weft_pull_args *args)
{
    struct pull pull = {.comm = comm, .args = args};
    weft_status status;

    if (args->regions == NULL) return plug_fail(WEFT_ERR_INVALID, "regions is NULL");
    status = compare_requests(&pull);
    for (int32_t i = 0; i < pull.comm->size && status == WEFT_OK; i++) {
        pull.copies[i] = plug_alloc(pull.wanted[i]);
        if (pull.copies[i] == NULL)
            status = example_fail(comm, plug_fail(WEFT_ERR_NO_MEMORY, "no memory for a pull"));
    }
    if (status == WEFT_OK) status = show_and_keep(&pull);
    if (status == WEFT_OK) status = take(&pull);
    for (int32_t i = 0; i < pull.comm->size; i++)
        plug_free(pull.copies[i]);
    return status;
}
