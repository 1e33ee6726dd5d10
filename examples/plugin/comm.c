/* comm.c - creation of communicators, and the barrier of their ranks. */
#include "example.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- shared memory ---- */

weft_status example_join(const char *name, uint64_t bytes, void **memory)
{
    int file = shm_open(name, O_RDWR, 0600);
    void *mapped;

    if (file < 0) return plug_fail(WEFT_ERR_SYSTEM, "shared memory %s: %s", name, strerror(errno));
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        return plug_fail(WEFT_ERR_SYSTEM, "mapping %llu bytes of %s: %s", (unsigned long long)bytes,
                         name, strerror(errno));
    *memory = mapped;
    return WEFT_OK;
}

void example_unlink(const char *name)
{
    shm_unlink(name);
}

weft_status example_share(uint64_t bytes, char name[64], void **memory)
{
    static _Atomic uint32_t made;
    weft_status status;
    int file;

    snprintf(name, 64, "/weft-example-%d-%u", (int)getpid(), atomic_fetch_add(&made, 1));
    file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0) return plug_fail(WEFT_ERR_SYSTEM, "shared memory %s: %s", name, strerror(errno));
    status = ftruncate(file, (off_t)bytes) == 0
                 ? example_join(name, bytes, memory)
                 : plug_fail(WEFT_ERR_SYSTEM, "%llu bytes for %s: %s", (unsigned long long)bytes,
                             name, strerror(errno));
    close(file);
    if (status != WEFT_OK) example_unlink(name);
    return status;
}

/* ---- creation ---- */

static weft_status prepare(void *device, const weft_comm_options *options, void **out,
                           weft_blob *address)
{
    struct example_comm *comm;
    weft_status status = WEFT_OK;
    void *memory = NULL;

    (void)device;
    if (options->rank < 0 || options->rank >= options->size)
        return plug_fail(WEFT_ERR_INVALID, "rank %d of %d", options->rank, options->size);
    if (options->size > EXAMPLE_MAX_RANKS)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "the communicator has %d ranks; the maximum is %d",
                         options->size, EXAMPLE_MAX_RANKS);
    for (int32_t i = 1; i < options->size; i++)
        if (options->host_ids[i] != options->host_ids[0])
            return plug_fail(WEFT_ERR_UNSUPPORTED, "rank %d is on another host", i);
    comm = plug_alloc(sizeof *comm);
    if (comm == NULL) return plug_fail(WEFT_ERR_NO_MEMORY, "no memory for a communicator");
    *comm = (struct example_comm){.rank = options->rank,
                                  .size = options->size,
                                  .flags = options->flags,
                                  .timeout_ns = options->timeout_ns};
    if (comm->rank == 0)
        status = example_share(sizeof(struct example_segment), comm->name, &memory);
    if (status != WEFT_OK) {
        plug_free(comm);
        return status;
    }
    comm->segment = memory;
    *address = (weft_blob){comm->name, sizeof comm->name};
    *out = comm;
    return WEFT_OK;
}

/* All ranks open rank 0's memory.  Then its name is removed. */
static weft_status commit(void *self, const weft_blob *addresses, const weft_exchange *exchange)
{
    struct example_comm *comm = self;
    weft_status mine = WEFT_OK, all[EXAMPLE_MAX_RANKS];
    void *memory = NULL;

    if (comm->rank != 0) {
        mine = example_join(addresses[0].data, sizeof(struct example_segment), &memory);
        comm->segment = memory;
    }
    if (exchange->all_gather(exchange->user, &mine, all, sizeof mine) != WEFT_OK)
        return plug_fail(WEFT_ERR_PEER, "the ranks could not exchange their results");
    if (comm->rank == 0) example_unlink(comm->name);
    comm->name[0] = '\0';
    for (int32_t i = 0; i < comm->size; i++)
        if (all[i] != WEFT_OK)
            return plug_fail(all[i], "rank %d could not open the shared memory", i);
    return WEFT_OK;
}

static void destroy(void *self)
{
    struct example_comm *comm = self;

    if (comm == NULL) return;
    example_drop_queue(comm);
    if (comm->segment != NULL) munmap(comm->segment, sizeof *comm->segment);
    if (comm->rank == 0 && comm->name[0] != '\0') example_unlink(comm->name);
    plug_free(comm);
}

/* ---- errors ---- */

weft_status example_fail(struct example_comm *comm, weft_status status)
{
    int32_t none = WEFT_OK;

    atomic_compare_exchange_strong(&comm->error, &none, status);
    return status;
}

static void abort_comm(void *self)
{
    struct example_comm *comm = self;

    example_fail(comm, WEFT_ERR_ABORTED);
    atomic_store(&comm->aborted, 1);
    if (comm->segment != NULL) atomic_store(&comm->segment->seats[comm->rank].gone, 1);
}

static weft_status async_error(void *self)
{
    struct example_comm *comm = self;

    return atomic_load(&comm->error);
}

/* ---- barrier ---- */

weft_status example_pause(struct example_comm *comm, int64_t deadline, uint32_t *tries)
{
    if (atomic_load(&comm->aborted))
        return plug_fail(WEFT_ERR_ABORTED, "the communicator was aborted");
    if (++*tries < 100) return WEFT_OK;
    for (int32_t i = 0; i < comm->size; i++)
        if (atomic_load(&comm->segment->seats[i].gone))
            return example_fail(comm, plug_fail(WEFT_ERR_PEER, "rank %d was aborted", i));
    if (comm->timeout_ns != WEFT_FOREVER && example_now() > deadline)
        return example_fail(comm, plug_fail(WEFT_ERR_TIMEOUT, "waited %.3f s for other ranks",
                                            (double)comm->timeout_ns * 1e-9));
    if (*tries < 2000)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    return WEFT_OK;
}

weft_status example_barrier(struct example_comm *comm)
{
    struct example_seat *seats = comm->segment->seats;
    int64_t deadline = example_now() + comm->timeout_ns;
    uint32_t barrier = ++comm->barriers, tries = 0;
    weft_status status = async_error(comm);

    if (status != WEFT_OK) return plug_fail(status, "the communicator has failed before");
    atomic_store(&seats[comm->rank].arrived, barrier);
    for (int32_t i = 0; i < comm->size; i++)
        while ((int32_t)(atomic_load(&seats[i].arrived) - barrier) < 0) {
            status = example_pause(comm, deadline, &tries);
            if (status != WEFT_OK) return status;
        }
    return WEFT_OK;
}

struct example_note *example_next_note(struct example_comm *comm)
{
    return &comm->segment->seats[comm->rank].notes[++comm->notes % 2];
}

const struct example_note *example_note_of(const struct example_comm *comm, int32_t rank)
{
    return &comm->segment->seats[rank].notes[comm->notes % 2];
}

const weft_comm_table example_comm_table = {
    .struct_size = sizeof example_comm_table,
    .signature = WEFT_COMM_SIGNATURE,
    .prepare = prepare,
    .commit = commit,
    .destroy = destroy,
    .abort = abort_comm,
    .async_error = async_error,
    .support = example_support,
    .collective = example_collective,
    .send = example_send,
    .receive = example_receive,
    .group_begin = example_group_begin,
    .group_end = example_group_end,
    .pull = example_pull,
};
