/* ccl_run.c - a group of tasks as streams of bytes through the rings, which all progress at once.
 *
 * Each lane from one rank to another keeps its order.  Every transfer starts with a header that
 * both sides compare, so that mismatched calls are distinguished from slow ones. */
#include "ccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct header {
    uint64_t bytes;
    int32_t kind, dtype, op, root;
};

struct transfer {
    struct transfer *next; /* on the same lane, direction and peer */
    struct header header;
    unsigned char *data;
    uint64_t done;        /* bytes of header and data */
    struct header theirs; /* as received */
};

struct lane {
    struct transfer *first, **last;
    struct sc_ring *ring;
    bool sends;
};

struct run {
    struct sc_comm *comm;
    struct lane lanes[SC_LANES][2][SC_MAX_RANKS]; /* [lane][sends][peer] */
    bool failed;
};

static void add(struct run *run, int lane, bool sends, int peer, const struct sc_task *task,
                const void *data, size_t bytes)
{
    struct lane *at = &run->lanes[lane][sends][peer];
    struct transfer *transfer = calloc(1, sizeof *transfer);
    bool is_message = lane == SC_MESSAGES;

    if (transfer == NULL) abort();
    transfer->header = (struct header){bytes, is_message ? -1 : (int)task->kind, task->dtype,
                                       task->op, is_message ? 0 : task->peer};
    transfer->data = (unsigned char *)(uintptr_t)data;
    *at->last = transfer;
    at->last = &transfer->next;
}

/* ---- what each task moves ---- */

/* Scratch of a reducing task: this rank's data times its factor, if any, and the parts of all
 * ranks. */
struct pending {
    struct pending *next;
    const struct sc_task *task;
    unsigned char *scaled, *parts;
};

static void add_moves(struct run *run, const struct sc_task *task)
{
    struct sc_comm *comm = run->comm;
    size_t bytes = task->count * sc_dtype_bytes(task->dtype);
    unsigned char *recv = task->recv;

    for (int r = 0; r < comm->size; r++) {
        switch (task->kind) {
        case SC_SEND:
            if (r == task->peer) add(run, SC_MESSAGES, true, r, task, task->send, bytes);
            break;
        case SC_RECV:
            if (r == task->peer) add(run, SC_MESSAGES, false, r, task, recv, bytes);
            break;
        case SC_BROADCAST:
            if (comm->rank == task->peer)
                add(run, SC_COLLECTIVES, true, r, task, task->send, bytes);
            if (r == task->peer) add(run, SC_COLLECTIVES, false, r, task, recv, bytes);
            break;
        default: /* all-gather */
            add(run, SC_COLLECTIVES, true, r, task, task->send, bytes);
            add(run, SC_COLLECTIVES, false, r, task, recv + (size_t)r * bytes, bytes);
        }
    }
}

static struct pending *add_reduction(struct run *run, const struct sc_task *task)
{
    struct sc_comm *comm = run->comm;
    size_t bytes = task->count * sc_dtype_bytes(task->dtype);
    struct pending *pending = calloc(1, sizeof *pending);
    bool scatters = task->kind == SC_REDUCE_SCATTER, scales = task->op >= SC_FIRST_MADE;
    size_t shares = scatters ? (size_t)comm->size : 1;

    if (pending == NULL) abort();
    pending->task = task;
    pending->scaled = scales ? malloc(bytes * shares + 1) : NULL;
    pending->parts = malloc(bytes * (size_t)comm->size + 1);
    if (pending->parts == NULL || (scales && pending->scaled == NULL)) abort();
    if (scales)
        sc_scale(task->dtype, task->scale, task->count * shares, task->send, pending->scaled);
    for (int r = 0; r < comm->size; r++) {
        const unsigned char *part = scales ? pending->scaled : task->send;
        if (scatters) part += (size_t)r * bytes;
        if (task->kind != SC_REDUCE || r == task->peer)
            add(run, SC_COLLECTIVES, true, r, task, part, bytes);
        if (task->kind != SC_REDUCE || comm->rank == task->peer)
            add(run, SC_COLLECTIVES, false, r, task, pending->parts + (size_t)r * bytes, bytes);
    }
    return pending;
}

static void finish_reductions(struct run *run, struct pending *pending)
{
    while (pending != NULL) {
        struct pending *next = pending->next;
        const struct sc_task *t = pending->task;
        bool gets = t->kind != SC_REDUCE || run->comm->rank == t->peer;
        if (gets && !run->failed)
            sc_reduce(t->dtype, t->op, t->count, run->comm->size, pending->parts,
                      t->count * sc_dtype_bytes(t->dtype), t->recv);
        free(pending->scaled);
        free(pending->parts);
        free(pending);
        pending = next;
    }
}

/* ---- moving ---- */

static size_t piece(uint64_t done, const struct transfer *t, unsigned char **at, bool sends)
{
    if (done < sizeof t->header) {
        const struct header *header = sends ? &t->header : &t->theirs;
        *at = (unsigned char *)(uintptr_t)header + done;
        return sizeof t->header - done;
    }
    *at = t->data + (done - sizeof t->header);
    return (size_t)(t->header.bytes - (done - sizeof t->header));
}

/* Copy as many bytes as the ring has room for. */
static bool push(struct sc_ring *ring, struct transfer *t)
{
    uint64_t written = atomic_load(&ring->written),
             room = SC_RING_BYTES - (written - atomic_load(&ring->read));
    unsigned char *at;
    size_t n = piece(t->done, t, &at, true), place = written % SC_RING_BYTES;

    if (n > room) n = (size_t)room;
    if (n > SC_RING_BYTES - place) n = SC_RING_BYTES - place;
    if (n == 0) return false;
    memcpy(ring->data + place, at, n);
    atomic_store(&ring->written, written + n);
    t->done += n;
    return true;
}

static bool pull(struct sc_ring *ring, struct transfer *t)
{
    uint64_t read = atomic_load(&ring->read), ready = atomic_load(&ring->written) - read;
    unsigned char *at;
    size_t n = piece(t->done, t, &at, false), place = read % SC_RING_BYTES;

    if (n > ready) n = (size_t)ready;
    if (n > SC_RING_BYTES - place) n = SC_RING_BYTES - place;
    if (n == 0) return false;
    memcpy(at, ring->data + place, n);
    atomic_store(&ring->read, read + n);
    t->done += n;
    return true;
}

static void check_header(struct run *run, const struct transfer *t, int peer)
{
    if (memcmp(&t->header, &t->theirs, sizeof t->header) == 0) return;
    fprintf(
        stderr,
        "stand-in: rank %d wants %llu bytes of kind %d, dtype %d, op %d, root %d; rank %d sends "
        "%llu of kind %d, dtype %d, op %d, root %d\n",
        run->comm->rank, (unsigned long long)t->header.bytes, t->header.kind, t->header.dtype,
        t->header.op, t->header.root, peer, (unsigned long long)t->theirs.bytes, t->theirs.kind,
        t->theirs.dtype, t->theirs.op, t->theirs.root);
    atomic_store(&run->comm->result, SC_INTERNAL);
    run->failed = true;
}

static bool advance(struct run *run, struct lane *lane, int peer)
{
    struct transfer *t = lane->first;
    uint64_t before;
    bool moved;

    if (t == NULL) return false;
    before = t->done;
    moved = lane->sends ? push(lane->ring, t) : pull(lane->ring, t);
    if (!lane->sends && before < sizeof t->header && t->done >= sizeof t->header)
        check_header(run, t, peer);
    if (t->done == sizeof t->header + t->header.bytes) {
        lane->first = t->next;
        free(t);
        moved = true;
    }
    return moved;
}

static bool is_over(const struct run *run)
{
    for (int lane = 0; lane < SC_LANES; lane++)
        for (int sends = 0; sends < 2; sends++)
            for (int r = 0; r < run->comm->size; r++)
                if (run->lanes[lane][sends][r].first != NULL) return false;
    return true;
}

static void move_all(struct run *run)
{
    struct sc_comm *comm = run->comm;
    int idle = 0;

    while (!run->failed && !is_over(run)) {
        bool moved = false;
        for (int lane = 0; lane < SC_LANES; lane++)
            for (int sends = 0; sends < 2; sends++)
                for (int r = 0; r < comm->size; r++)
                    moved |= advance(run, &run->lanes[lane][sends][r], r);
        idle = moved ? 0 : idle + 1;
        if (atomic_load(&comm->abort->is_set)) run->failed = true;
        if (idle > 20) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        if (idle > 200 && idle % 100 == 0 && sc_peer_died(comm))
            atomic_store(&comm->result, SC_REMOTE); /* and hang, as a kernel would */
    }
}

static void drop_transfers(struct run *run)
{
    for (int lane = 0; lane < SC_LANES; lane++)
        for (int sends = 0; sends < 2; sends++)
            for (int r = 0; r < run->comm->size; r++)
                for (struct transfer *t = run->lanes[lane][sends][r].first, *next; t != NULL;
                     t = next) {
                    next = t->next;
                    free(t);
                }
}

void sc_run_tasks(struct sc_comm *comm, struct sc_task *tasks)
{
    struct run *run = calloc(1, sizeof *run);
    struct pending *pending = NULL, *one;

    if (run == NULL) abort();
    run->comm = comm;
    for (int lane = 0; lane < SC_LANES; lane++)
        for (int r = 0; r < comm->size; r++) {
            run->lanes[lane][0][r].ring = sc_ring(comm, lane, r, comm->rank);
            run->lanes[lane][1][r].ring = sc_ring(comm, lane, comm->rank, r);
            for (int sends = 0; sends < 2; sends++) {
                run->lanes[lane][sends][r].last = &run->lanes[lane][sends][r].first;
                run->lanes[lane][sends][r].sends = sends != 0;
            }
        }
    for (struct sc_task *t = tasks; t != NULL; t = t->next) {
        if (t->kind == SC_ALL_REDUCE || t->kind == SC_REDUCE || t->kind == SC_REDUCE_SCATTER) {
            one = add_reduction(run, t);
            one->next = pending;
            pending = one;
        } else {
            add_moves(run, t);
        }
    }
    move_all(run);
    finish_reductions(run, pending);
    drop_transfers(run);
    free(run);
}
