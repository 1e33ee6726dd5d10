/* cases_staging.c - data outside the arena is copied into it.  If one rank has no room for that,
 * the operation fails on all ranks at once. */
#include "plugins/device/bind.h"
#include "arena.h"

#include <stdio.h>
#include <string.h>

enum { FULL = 0, COUNT_OF_EACH = 4096, SMALL = 1000, MAX_RANKS = 8 };

static struct {
    weft_comm *comm;
    struct filling filling;
    float *send, *recv; /* room for each rank's part */
} at;

/* A communicator that will fail, and memory.  The memory of rank FULL is outside its arena, which
 * is full. */
static bool begin(struct rank *self)
{
    uint64_t bytes = (uint64_t)self->size * COUNT_OF_EACH * sizeof(float);

    at.comm = spare_comm(self);
    at.send = self->number == FULL ? take_outside(self, bytes) : take(self, bytes);
    at.recv = self->number == FULL ? take_outside(self, bytes) : take(self, bytes);
    if (self->number == FULL) fill(self, &at.filling);
    return at.comm != NULL && at.send != NULL && at.recv != NULL;
}

static void end(struct rank *self)
{
    OK(weft_barrier(self->world, NULL)); /* no rank has pending work */
    finish(self, NULL);
    weft_comm_release(&at.comm);
    give(self, at.send);
    give(self, at.recv);
    empty(self, &at.filling);
}

static weft_status wait_for(struct rank *self, weft_status status)
{
    return status == WEFT_OK ? weft_context_wait(self->context, self->stream, 300 * SECOND)
                             : status;
}

/* The error names rank FULL, the missing bytes and the remedy, and arrives at once. */
static void expect_reported(struct rank *self, const char *what, weft_status status, uint64_t bytes,
                            double began)
{
    char text[96];

    snprintf(text, sizeof text, "%llu bytes of symmetric memory", (unsigned long long)bytes);
    refused(self, what, status, WEFT_ERR_NO_MEMORY, text);
    refused(self, what, status, WEFT_ERR_NO_MEMORY, "rank 0");
    refused(self, what, status, WEFT_ERR_NO_MEMORY, "set WEFT_NVSHMEM_HEAP to a larger size");
    check(self, seconds() - began < 150, "%s: it took %.1f s", what, seconds() - began);
    status = weft_barrier(at.comm, NULL);
    refused(self, "what follows", status, WEFT_ERR_NO_MEMORY, "rank 0");
}

/* ---- growing ---- */

/* Outgrown stages are reused, so the last stage can be nearly as large as the arena. */
static void stages_grow_within_the_arena(struct rank *self)
{
    enum { MOST = 800 << 10 };
    weft_comm *comm = spare_comm(self);
    uint8_t *send = take_outside(self, MOST);
    uint8_t *recv = take_outside(self, MOST * (uint64_t)self->size);
    uint8_t seen = 0;
    void *most;

    for (uint64_t bytes = MOST / 8; bytes <= MOST && !self->failed; bytes *= 2) {
        OK(weft_memory_fill(self->context, send, (uint8_t)(self->number + 1), bytes, self->stream));
        OK(weft_all_gather(comm, send, recv, bytes, WEFT_DTYPE_U8, self->stream));
        finish(self, self->stream);
        for (int32_t r = 0; r < self->size; r++) {
            download(self, &seen, recv + (uint64_t)(r + 1) * bytes - 1, 1);
            check(self, seen == r + 1, "%d of rank %d", seen, r);
        }
    }
    weft_comm_release(&comm);
    most = take(self, MOST);
    check(self, is_in_arena(most), "stages are left behind");
    give(self, most);
    give(self, send);
    give(self, recv);
}

/* A rank that declined gets its stages back after the communicator is released. */
static void stages_of_a_rank_that_declined_are_free(struct rank *self)
{
    enum { FITS = 300 << 10, ALL = 800 << 10 };
    weft_comm *comm = spare_comm(self);
    uint8_t *send = take_outside(self, ARENA);
    uint8_t *recv = take_outside(self, ARENA * (uint64_t)self->size);
    void *most;

    OK(weft_all_gather(comm, send, recv, FITS, WEFT_DTYPE_U8, self->stream));
    finish(self, self->stream); /* otherwise the release aborts it, and its stages are kept */
    refused(self, "more than there is",
            weft_all_gather(comm, send, recv, ARENA, WEFT_DTYPE_U8, self->stream),
            WEFT_ERR_NO_MEMORY, "cannot allocate 1048576 bytes of symmetric memory");
    weft_comm_release(&comm);
    most = take(self, ALL);
    check(self, is_in_arena(most), "stages are left behind");
    give(self, most);
    give(self, send);
    give(self, recv);
}

/* Without a wait in between, outgrown stages are still read. */
static void stages_that_are_in_use_stay(struct rank *self)
{
    enum { FIRST = 300 << 10, SECOND_ONE = 400 << 10 };
    weft_comm *comm = spare_comm(self);
    uint8_t *send = take_outside(self, SECOND_ONE);
    uint8_t *recv = take_outside(self, (FIRST + SECOND_ONE) * (uint64_t)self->size);
    uint8_t *after = recv + FIRST * (uint64_t)self->size, seen = 0;

    OK(weft_memory_fill(self->context, send, (uint8_t)(self->number + 1), FIRST, self->stream));
    OK(weft_all_gather(comm, send, recv, FIRST, WEFT_DTYPE_U8, self->stream));
    OK(weft_memory_fill(self->context, send, (uint8_t)(self->number + 101), SECOND_ONE,
                        self->stream));
    OK(weft_all_gather(comm, send, after, SECOND_ONE, WEFT_DTYPE_U8, self->stream));
    finish(self, self->stream);
    for (int32_t r = 0; r < self->size; r++) {
        download(self, &seen, recv + (uint64_t)(r + 1) * FIRST - 1, 1);
        check(self, seen == r + 1, "%d of rank %d", seen, r);
        download(self, &seen, after + (uint64_t)(r + 1) * SECOND_ONE - 1, 1);
        check(self, seen == r + 101, "%d of rank %d, second", seen, r);
    }
    weft_comm_release(&comm);
    give(self, send);
    give(self, recv);
}

/* ---- collectives ---- */

static uint64_t counts[MAX_RANKS], offsets[MAX_RANKS];

static weft_status put(const struct rank *self, uint32_t collective, int32_t root)
{
    const uint32_t f32 = WEFT_DTYPE_F32, sum = WEFT_REDUCE_SUM;
    const uint64_t count = COUNT_OF_EACH;
    weft_comm *comm = at.comm;

    switch (collective) {
    case WEFT_COLL_ALL_REDUCE:
        return weft_all_reduce(comm, at.send, at.recv, count, f32, sum, self->stream);
    case WEFT_COLL_ALL_GATHER:
        return weft_all_gather(comm, at.send, at.recv, count, f32, self->stream);
    case WEFT_COLL_REDUCE_SCATTER:
        return weft_reduce_scatter(comm, at.send, at.recv, count, f32, sum, self->stream);
    case WEFT_COLL_ALL_TO_ALL:
        return weft_all_to_all(comm, at.send, at.recv, count, f32, self->stream);
    case WEFT_COLL_BROADCAST:
        return weft_broadcast(comm, at.send, at.recv, count, f32, root, self->stream);
    case WEFT_COLL_REDUCE:
        return weft_reduce(comm, at.send, at.recv, count, f32, sum, root, self->stream);
    case WEFT_COLL_GATHER:
        return weft_gather(comm, at.send, at.recv, count, f32, root, self->stream);
    case WEFT_COLL_SCATTER:
        return weft_scatter(comm, at.send, at.recv, count, f32, root, self->stream);
    case WEFT_COLL_ALL_TO_ALL_V:
        return weft_all_to_all_v(comm, at.send, counts, offsets, at.recv, counts, offsets, f32,
                                 self->stream);
    default:
        return weft_reduce_scatter_v(comm, at.send, at.recv, counts, offsets, f32, sum,
                                     self->stream);
    }
}

static void collectives_report_a_full_arena(struct rank *self)
{
    static const struct {
        const char *name;
        uint32_t collective;
        bool all_parts, from_full; /* the sent data, and the root */
    } list[] = {{"all_reduce", WEFT_COLL_ALL_REDUCE, false, true},
                {"all_gather", WEFT_COLL_ALL_GATHER, false, true},
                {"reduce_scatter", WEFT_COLL_REDUCE_SCATTER, true, true},
                {"all_to_all", WEFT_COLL_ALL_TO_ALL, true, true},
                {"broadcast", WEFT_COLL_BROADCAST, false, true},
                {"reduce", WEFT_COLL_REDUCE, false, false},
                {"gather", WEFT_COLL_GATHER, false, false},
                {"scatter", WEFT_COLL_SCATTER, true, true},
                {"all_to_all_v", WEFT_COLL_ALL_TO_ALL_V, true, true},
                {"reduce_scatter_v", WEFT_COLL_REDUCE_SCATTER_V, true, true}};

    for (int32_t r = 0; r < self->size; r++) {
        counts[r] = COUNT_OF_EACH;
        offsets[r] = (uint64_t)r * COUNT_OF_EACH;
    }
    for (size_t i = 0; i < COUNT(list); i++) {
        uint64_t parts = list[i].all_parts ? (uint64_t)self->size : 1;
        double began;

        if (!begin(self)) return;
        began = seconds();
        expect_reported(self, list[i].name,
                        wait_for(self, put(self, list[i].collective,
                                           list[i].from_full ? FULL : self->size - 1)),
                        parts * COUNT_OF_EACH * sizeof(float), began);
        end(self);
    }
}

/* Small ones take one pass; for large ones the result is staged as well. */
static void both_all_reduces_report_a_full_arena(struct rank *self)
{
    double began;
    void *inside;

    if (!begin(self)) return;
    began = seconds();
    expect_reported(self, "small",
                    wait_for(self, weft_all_reduce(at.comm, at.send, at.recv, SMALL, WEFT_DTYPE_F32,
                                                   WEFT_REDUCE_SUM, self->stream)),
                    SMALL * sizeof(float), began);
    end(self);
    inside = take(self, COUNT_OF_EACH * sizeof(float));
    if (!begin(self)) return;
    began = seconds();
    expect_reported(self, "the result of a large one",
                    wait_for(self, weft_all_reduce(at.comm, inside, at.recv, COUNT_OF_EACH,
                                                   WEFT_DTYPE_F32, WEFT_REDUCE_SUM, self->stream)),
                    COUNT_OF_EACH * sizeof(float), began);
    end(self);
    give(self, inside);
}

/* Operations that rank FULL joined complete on all ranks, although no rank waits for them first. */
static void what_came_before_is_done(struct rank *self)
{
    void *inside = take(self, (uint64_t)self->size * SMALL * sizeof(int32_t));
    static int32_t host[SMALL * MAX_RANKS];
    int32_t *own = (int32_t *)inside + SMALL * self->number;
    double began = seconds();

    if (!begin(self)) return;
    for (int i = 0; i < SMALL; i++)
        host[i] = self->number * SMALL + i;
    upload(self, own, host, SMALL * sizeof host[0]);
    OK(weft_all_gather(at.comm, own, inside, SMALL, WEFT_DTYPE_I32, self->stream));
    expect_reported(self, "the second", wait_for(self, put(self, WEFT_COLL_ALL_GATHER, 0)),
                    COUNT_OF_EACH * sizeof(float), began);
    OK(weft_memory_copy(self->context, inside, host, (uint64_t)self->size * SMALL * sizeof host[0],
                        self->stream));
    for (int i = 0; i < self->size * SMALL; i++)
        check(self, host[i] == i, "element %d of the first is %d", i, (int)host[i]);
    end(self);
    give(self, inside);
}

static void redistributions_report_a_full_arena(struct rank *self)
{
    weft_mesh *mesh = NULL;
    weft_spec *from = NULL, *to = NULL;
    weft_plan *plan = NULL;
    weft_bound *bound = NULL;
    double began;

    if (!begin(self)) return;
    OK(weft_mesh_create(1, &self->size, NULL, &mesh));
    OK(weft_spec_parse(mesh, "f32[60,64] S(0)", &from));
    OK(weft_spec_parse(mesh, "f32[60,64] S(1)", &to));
    OK(weft_plan_create(from, to, NULL, &plan));
    if (OK(weft_plan_bind(plan, at.comm, NULL, &bound))) {
        began = seconds();
        expect_reported(
            self, "a redistribution",
            wait_for(self, weft_redistribute(bound, at.send, at.recv, self->stream, NULL)),
            60 / (uint64_t)self->size * 64 * sizeof(float), began);
    }
    weft_bound_release(&bound);
    weft_plan_release(&plan);
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_mesh_release(&mesh);
    end(self);
}

/* Rank FULL sends to 1, which sends to 2.  Rank 1 has published its data for 2 before it gets the
 * error, and then its memory may change. */
static void a_late_rank_gets_the_error_too(struct rank *self)
{
    weft_bound *bound = NULL;
    weft_status status;
    double began;

    if (!begin(self)) return;
    if (OK(bind_rows(at.comm, "2@0,1", "2@1,2", &bound))) {
        OK(weft_barrier(self->world, NULL));
        finish(self, NULL);
        began = seconds();
        while (self->number == 2 && seconds() - began < 0.5)
            continue;
        status = wait_for(self, weft_redistribute(bound, at.send, at.recv, self->stream, NULL));
        if (self->number < 3)
            refused(self, "a chain", status, WEFT_ERR_NO_MEMORY, "256 bytes of symmetric memory");
        else
            OK(status);
    }
    weft_bound_release(&bound);
    end(self);
}

/* ---- messages, and other waits ---- */

/* The receiver gets the error, then the ranks that wait for the receiver, then the others at their
 * next synchronization. */
static void messages_report_a_full_arena(struct rank *self)
{
    weft_status status = WEFT_OK;
    double began;

    if (!begin(self)) return;
    began = seconds();
    if (self->number == FULL)
        status = weft_send(at.comm, at.send, SMALL, WEFT_DTYPE_F32, 1, 0, self->stream);
    else if (self->number < 3)
        status = weft_receive(at.comm, at.recv, SMALL, WEFT_DTYPE_F32, self->number - 1, 0,
                              self->stream);
    else
        status = weft_barrier(at.comm, self->stream);
    expect_reported(self, "a message", wait_for(self, status), SMALL * sizeof(float), began);
    end(self);
}

static void messages_of_a_group_report_a_full_arena(struct rank *self)
{
    int32_t next = (self->number + 1) % self->size;
    int32_t before = (self->number + self->size - 1) % self->size;
    weft_status status;
    double began;

    if (!begin(self)) return;
    began = seconds();
    OK(weft_group_begin(at.comm));
    OK(weft_send(at.comm, at.send, SMALL, WEFT_DTYPE_F32, next, 0, self->stream));
    OK(weft_receive(at.comm, at.recv, SMALL, WEFT_DTYPE_F32, before, 0, self->stream));
    status = wait_for(self, weft_group_end(at.comm));
    /* A message between two other ranks arrives. */
    if (self->size > 2 && before != FULL && status == WEFT_OK) status = weft_barrier(at.comm, NULL);
    if (status == WEFT_OK) status = weft_context_wait(self->context, NULL, 300 * SECOND);
    expect_reported(self, "a message", status, SMALL * sizeof(float), began);
    end(self);
}

static void waits_for_signals_end(struct rank *self)
{
    weft_symm *symm = NULL;
    weft_status status;
    double began;

    if (!begin(self)) return;
    if (self->number == FULL) empty(self, &at.filling);
    symm = make(self, at.comm, 64, 0);
    if (self->number == FULL) fill(self, &at.filling);
    began = seconds();
    if (self->number == FULL)
        status = put(self, WEFT_COLL_ALL_GATHER, 0);
    else
        status = weft_symm_wait_from(symm, FULL, 0, WEFT_COMPARE_EQ, 1, WEFT_FOREVER, self->stream);
    expect_reported(self, "a signal", wait_for(self, status), COUNT_OF_EACH * sizeof(float), began);
    OK(weft_barrier(self->world, NULL)); /* a release would end the wait too */
    finish(self, NULL);
    weft_symm_release(&symm);
    end(self);
}

const struct symm_case staging_cases[] = {
    /* Failed communicators keep their memory, so these cases come first. */
    {"stages_grow_within_the_arena", stages_grow_within_the_arena, 1},
    {"stages_that_are_in_use_stay", stages_that_are_in_use_stay, 1},
    {"stages_of_a_rank_that_declined_are_free", stages_of_a_rank_that_declined_are_free, 1},
    {"collectives_report_a_full_arena", collectives_report_a_full_arena, 2},
    {"both_all_reduces_report_a_full_arena", both_all_reduces_report_a_full_arena, 2},
    {"what_came_before_is_done", what_came_before_is_done, 2},
    {"redistributions_report_a_full_arena", redistributions_report_a_full_arena, 2},
    {"a_late_rank_gets_the_error_too", a_late_rank_gets_the_error_too, 3},
    {"messages_report_a_full_arena", messages_report_a_full_arena, 2},
    {"messages_of_a_group_report_a_full_arena", messages_of_a_group_report_a_full_arena, 2},
    {"waits_for_signals_end", waits_for_signals_end, 2},
    {NULL, NULL, 0}};
