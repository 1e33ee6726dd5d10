/* cases_ends.c - the duties of a rank to its peers and to the host after a failure. */
#include "arena.h"

#include "comm/comm.h"
#include "config/config.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- the environment ---- */

static atomic_int set, set_unheld;

/* Replaces the C library's function, for the plugin too. */
__attribute__((visibility("default"))) int setenv(const char *name, const char *value,
                                                  int overwrite)
{
    int (*next)(const char *, const char *, int) = NULL;

    *(void **)(void *)&next = dlsym(RTLD_NEXT, "setenv");
    if (next == NULL) abort();
    atomic_fetch_add(&set, 1);
    if (!wf_environment_is_locked()) atomic_fetch_add(&set_unheld, 1);
    return next(name, value, overwrite);
}

/* The creation of the world sets all variables that NVSHMEM reads. */
static void variables_are_set_while_no_thread_reads_them(struct rank *self)
{
    weft_comm *another = NULL;
    int before = atomic_load(&set);

    check(self, before > 0, "no variable was set, or not through this program");
    check(self, atomic_load(&set_unheld) == 0, "%d of %d variables were set without the lock",
          atomic_load(&set_unheld), before);
    check(self, getenv("NVSHMEM_SYMMETRIC_SIZE") != NULL, "NVSHMEM has no size");
    if (OK(weft_comm_split(self->world, 0, 0, NULL, &another))) weft_comm_release(&another);
    check(self, atomic_load(&set) == before, "another communicator set variables again");
}

/* ---- host memory ---- */

enum { LATER = 1 }; /* the rank without a window */

/* Rank LATER goes on when all others have called this.  They do not wait: what happens to rank
 * LATER afterwards may end their waits. */
static void tell_later(struct rank *self, void *byte)
{
    for (int32_t rank = 0; rank < self->size; rank++) {
        if (rank == LATER) continue;
        if (self->number == rank)
            OK(weft_send(self->world, byte, 1, WEFT_DTYPE_U8, LATER, 0, NULL));
        if (self->number == LATER)
            OK(weft_receive(self->world, byte, 1, WEFT_DTYPE_U8, rank, 0, NULL));
    }
    if (self->number == LATER) finish(self, NULL);
}

static void a_group_without_host_memory_fails_on_all_ranks(struct rank *self)
{
    weft_comm *comm = spare_comm(self);
    void *memory = take(self, 64), *begun = take(self, 64);
    weft_status status = WEFT_OK;

    if (comm == NULL) return;
    /* The first message takes memory for the numbers in records, which the group need not have. */
    if (self->number == LATER) OK(weft_send(comm, memory, 16, WEFT_DTYPE_U8, 0, 0, NULL));
    if (self->number == 0) OK(weft_receive(comm, memory, 16, WEFT_DTYPE_U8, LATER, 0, NULL));
    finish(self, NULL);
    /* The failure must not end a wait for the first message, and the groups of the others must have
     * begun. */
    meet_all(self);
    OK(weft_group_begin(comm));
    if (self->number == 0) OK(weft_receive(comm, memory, 16, WEFT_DTYPE_U8, LATER, 0, NULL));
    tell_later(self, begun);
    if (self->number == LATER) {
        wf_mem_fail_at(1);
        refused(self, "a send", weft_send(comm, memory, 16, WEFT_DTYPE_U8, 0, 0, NULL),
                WEFT_ERR_NO_MEMORY, "send on");
        wf_mem_fail_at(0);
        refused(self, "the group", weft_group_end(comm), WEFT_ERR_NO_MEMORY,
                "rank 1 had no memory for its group");
    } else {
        status = weft_group_end(comm);
        if (status == WEFT_OK && self->number == 0)
            status = weft_context_wait(self->context, NULL, WEFT_FOREVER);
        while (status == WEFT_OK) { /* other ranks may have nothing to wait for */
            pause_ns(SECOND / 1000);
            status = weft_comm_async_error(comm);
        }
        refused(self, "what waits for it", status, WEFT_ERR_ABORTED,
                "rank 1 had no memory for its group");
    }
    meet_all(self);
    weft_comm_release(&comm);
    give(self, begun);
    give(self, memory);
}

/* The number of host allocations that an aborted communicator with a window leaves. */
static int64_t left_by_abort(struct rank *self, bool with_waits)
{
    weft_comm *comm = NULL;
    weft_symm *symm = NULL;
    weft_stream *streams[3] = {NULL};
    int64_t before;

    meet_all(self);
    before = wf_mem_live();
    if (!OK(weft_comm_split(self->world, 0, 0, NULL, &comm))) return 0;
    symm = make(self, comm, 64, 2);
    for (size_t i = 0; symm != NULL && i < COUNT(streams); i++) {
        OK(weft_stream_create(self->context, &streams[i]));
        if (!with_waits) continue;
        OK(weft_symm_wait_from(symm, 0, 1, WEFT_COMPARE_EQ, 5, WEFT_FOREVER, streams[i]));
    }
    meet_all(self);
    weft_comm_abort(comm);
    meet_all(self);
    weft_symm_release(&symm);
    for (size_t i = 0; i < COUNT(streams); i++) {
        (void)!weft_context_wait(self->context, streams[i], WEFT_FOREVER);
        weft_stream_release(&streams[i]);
    }
    weft_comm_release(&comm);
    return wf_mem_live() - before;
}

static void waits_on_a_window_that_ends_badly_are_freed(struct rank *self)
{
    int64_t without, with;

    (void)left_by_abort(self, false); /* creates objects that exist once per process */
    without = left_by_abort(self, false);
    with = left_by_abort(self, true);
    check(self, with == without, "%lld pieces of host memory are left, %lld without waits",
          (long long)with, (long long)without);
}

const struct symm_case end_cases[] = {
    {"variables_are_set_while_no_thread_reads_them", variables_are_set_while_no_thread_reads_them,
     1},
    {"a_group_without_host_memory_fails_on_all_ranks",
     a_group_without_host_memory_fails_on_all_ranks, 2},
    {"waits_on_a_window_that_ends_badly_are_freed", waits_on_a_window_that_ends_badly_are_freed, 1},
    {NULL, NULL, 0}};
