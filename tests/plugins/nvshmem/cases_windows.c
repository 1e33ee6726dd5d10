/* cases_windows.c - creation of windows and communicators while an arena is full. */
#include "arena.h"

#include "symm/symm.h"

#include <stdio.h>
#include <string.h>

enum { FULL = 1 }; /* the rank with the full arena */

static void barrier(struct rank *self, weft_comm *comm)
{
    if (OK(weft_barrier(comm, NULL))) finish(self, NULL);
}

static void try_window(struct rank *self, weft_comm *comm, uint64_t bytes)
{
    weft_symm *symm = make(self, comm, bytes, 0);
    int32_t next = (self->number + 1) % self->size, before = next + self->size - 2;

    if (symm == NULL) return;
    OK(weft_symm_signal_to(symm, next, 0, 7, WEFT_SIGNAL_SET, NULL));
    OK(weft_symm_wait_from(symm, before % self->size, 0, WEFT_COMPARE_EQ, 7, 0, NULL));
    finish(self, NULL);
    weft_symm_release(&symm);
}

/* All ranks get the error of the one rank, and the communicator can create a window as soon as
 * there is room. */
static void one_full_arena_is_reported_to_all(struct rank *self)
{
    struct filling filling = {.count = 0};
    weft_symm *symm = NULL;

    for (int round = 0; round < 3; round++) {
        double began = seconds();
        if (self->number == FULL) fill(self, &filling);
        refused(self, "a window", weft_symm_create(self->world, 4096, NULL, &symm),
                WEFT_ERR_NO_MEMORY,
                "rank 1 cannot allocate 4096 bytes of symmetric memory in one piece, 0 are free; "
                "set WEFT_NVSHMEM_HEAP to a larger size");
        check(self, seconds() - began < 150, "it took %.1f s", seconds() - began);
        barrier(self, self->world);
        empty(self, &filling);
        try_window(self, self->world, 4096);
    }
}

/* Large pads are allocated from the users' part. */
static void a_large_pad_has_no_room(struct rank *self)
{
    weft_symm_options options = {.struct_size = sizeof options, .channels = 2048};
    struct filling filling = {.count = 0};
    weft_symm *symm = NULL;
    void *memory = take(self, 64);
    char text[96];

    snprintf(text, sizeof text, "rank 1 cannot allocate %d bytes of symmetric memory",
             8 * (2048 + 1) * self->size); /* one word per rank for the release */
    if (self->number == FULL) fill(self, &filling);
    refused(self, "a window with many channels",
            weft_symm_register(self->world, memory, 64, &options, &symm), WEFT_ERR_NO_MEMORY, text);
    empty(self, &filling);
    if (OK(weft_symm_register(self->world, memory, 64, &options, &symm))) weft_symm_release(&symm);
    give(self, memory);
}

/* Memory of a window besides the user's memory comes from the plugin's own part. */
static void memory_is_registered_in_a_full_arena(struct rank *self)
{
    struct filling filling = {.count = 0};
    weft_symm *symm[8] = {NULL};
    void *memory = take(self, 64);

    fill(self, &filling);
    for (size_t i = 0; i < COUNT(symm); i++)
        OK(weft_symm_register(self->world, memory, 64, NULL, &symm[i]));
    barrier(self, self->world);
    for (size_t i = 0; i < COUNT(symm); i++)
        weft_symm_release(&symm[i]);
    empty(self, &filling);
    give(self, memory);
}

static void communicators_are_made_in_a_full_arena(struct rank *self)
{
    struct filling filling = {.count = 0};
    weft_comm *comms[8] = {NULL};
    float *sum = take(self, 64 * sizeof *sum), host[64];

    fill(self, &filling);
    for (size_t i = 0; i < COUNT(comms); i++) {
        if (!OK(weft_comm_split(self->world, 0, -self->number, NULL, &comms[i]))) break;
        for (int j = 0; j < 64; j++)
            host[j] = (float)(self->number + j);
        upload(self, sum, host, sizeof host);
        OK(weft_all_gather(comms[i], sum + 32, sum, 1, WEFT_DTYPE_F32, NULL));
        finish(self, NULL);
        download(self, host, sum, sizeof host);
        for (int r = 0; r < self->size; r++)
            check(self, host[self->size - 1 - r] == (float)(r + 32), "rank %d: %g", r,
                  (double)host[self->size - 1 - r]);
        barrier(self, comms[i]);
    }
    for (size_t i = 0; i < COUNT(comms); i++)
        weft_comm_release(&comms[i]);
    empty(self, &filling);
    give(self, sum);
}

/* Until nothing is left: then all ranks get an error that names the rank with the full arena. */
static void the_last_communicator_is_refused_on_all_ranks(struct rank *self)
{
    enum { MOST = 400 };
    static weft_comm *comms[MOST];
    struct filling filling = {.count = 0};
    weft_status status = WEFT_OK;
    int count = 0;

    if (self->number == FULL) fill(self, &filling);
    while (count < MOST && status == WEFT_OK) {
        status = weft_comm_split(self->world, 0, 0, NULL, &comms[count]);
        if (status == WEFT_OK) count++;
    }
    refused(self, "a communicator", status, WEFT_ERR_NO_MEMORY, "rank 1");
    refused(self, "a communicator", status, WEFT_ERR_NO_MEMORY,
            "set WEFT_NVSHMEM_HEAP to a larger size");
    check(self, count >= 30, "%d communicators fit", count);
    while (count > 0)
        weft_comm_release(&comms[--count]);
    barrier(self, self->world);
    if (OK(weft_comm_split(self->world, 0, 0, NULL, &comms[0]))) barrier(self, comms[0]);
    weft_comm_release(&comms[0]);
    empty(self, &filling);
}

/* One rank is out of host memory, at each allocation of the plugin in turn.  All ranks get the
 * error, and the communicator stays usable. */
static void missing_host_memory_is_reported_to_all(struct rank *self)
{
    const weft_symm_table *table = wf_symm_state(self->context)->plugin->symm;
    void *comm = self->world->handle, *window = NULL, *local = NULL;
    weft_status status = WEFT_ERR_NO_MEMORY;
    uint64_t n;

    for (n = 1; n < 20 && status != WEFT_OK && !self->failed; n++) {
        wf_mem_fail_at(self->number == FULL ? n : 0);
        status = table->window_create(comm, 64, 8, &window, &local);
        wf_mem_fail_at(0);
        if (status != WEFT_OK)
            refused(self, "a window", status, WEFT_ERR_NO_MEMORY,
                    "window: rank 1 is out of host memory");
    }
    if (OK(status)) OK(table->window_destroy(window));
    check(self, n > 2, "there was nothing to fail");
}

const struct symm_case window_cases[] = {
    {"one_full_arena_is_reported_to_all", one_full_arena_is_reported_to_all, 2},
    {"a_large_pad_has_no_room", a_large_pad_has_no_room, 2},
    {"memory_is_registered_in_a_full_arena", memory_is_registered_in_a_full_arena, 1},
    {"communicators_are_made_in_a_full_arena", communicators_are_made_in_a_full_arena, 1},
    {"the_last_communicator_is_refused_on_all_ranks", the_last_communicator_is_refused_on_all_ranks,
     2},
    {"missing_host_memory_is_reported_to_all", missing_host_memory_is_reported_to_all, 2},
    {NULL, NULL, 0}};
