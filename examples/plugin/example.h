/* example.h - a small plugin with the simplest implementation of every entry.
 *
 * Its device is the CPU, and its streams do their work at once.  The ranks of a communicator share
 * one piece of POSIX shared memory on one host.  The plugin passes `weft conform` in full.  It is
 * not fast. */
#ifndef WEFT_EXAMPLE_H
#define WEFT_EXAMPLE_H

#include "plug_host.h"
#include "kit/names.h"
#include "weft_plugin.h"

#include <stdatomic.h>
#include <stdbool.h>

#define EXAMPLE_MAX_RANKS 32
#define EXAMPLE_CHUNK     16384 /* bytes a rank shows the others at a time */
#define EXAMPLE_SLOT      4096  /* bytes of a message that are under way at a time */

/* ---- device.c ---- */

extern const weft_device_table example_device;

static inline int64_t example_now(void) /* nanoseconds */
{
    return (int64_t)plug_now();
}

/* ---- numbers.c ---- */

/* TARGET[i] = the reduction of SOURCES[0 .. size)[i].  For premul_sum the sources are already
 * scaled.  avg divides by DIVISOR, or by SIZE if DIVISOR is 0. */
void example_reduce(uint32_t dtype, uint32_t reduction, uint32_t divisor, uint64_t count,
                    uint32_t size, const void *const *sources, void *target);
/* DATA[i] *= FACTOR. */
void example_scale(uint32_t dtype, uint64_t count, const void *factor, void *data);

/* TARGET[i] = SOURCE[i] in another dtype.  False if the cast is not supported. */
bool example_cast(uint32_t from, uint32_t to, uint64_t count, const void *source, void *target);

/* ---- comm.c: communicators and their barrier ---- */

enum { EXAMPLE_PULL = WEFT_COLL_COUNT, EXAMPLE_SYMM_BARRIER }; /* notes that are not collectives */

/* A rank's description of its current call, for the other ranks. */
struct example_note {
    uint32_t collective, dtype, reduction;
    int32_t root;
    uint64_t plan; /* with BINDING and STEP: the step of a bound plan; or the number of a window */
    uint32_t binding, step;
    uint32_t divisor, unused;          /* DIVISOR: of an average */
    uint64_t parts[EXAMPLE_MAX_RANKS]; /* bytes of its data, or of each part */
    uint64_t total;
    char name[64]; /* of shared memory that rank 0 created */
};

struct example_seat {
    _Alignas(64) _Atomic uint32_t arrived; /* number of barriers that this rank has reached */
    _Atomic uint32_t gone;                 /* it was aborted */
    struct example_note notes[2];          /* used alternately */
    uint8_t chunk[EXAMPLE_CHUNK];
};

/* A message slot from one rank to one other. */
struct example_slot {
    _Alignas(64) _Atomic uint32_t full;
    uint8_t data[EXAMPLE_SLOT];
};

struct example_segment {
    struct example_slot slots[EXAMPLE_MAX_RANKS][EXAMPLE_MAX_RANKS]; /* [from][to] */
    struct example_seat seats[EXAMPLE_MAX_RANKS];
};

struct example_operation; /* queued until its group ends */

struct example_comm {
    int32_t rank, size;
    uint32_t flags;
    int64_t timeout_ns;
    struct example_segment *segment;
    char name[64];         /* of the shared memory; "" after its name is removed */
    _Atomic int32_t error; /* the first error; permanent */
    _Atomic uint32_t aborted;
    uint32_t barriers, notes, windows; /* counters */
    int32_t group_depth;
    weft_status group_error;
    struct example_operation *queue;
};

extern const weft_comm_table example_comm_table;

/* Wait until all ranks have called this.  Any failure fails the communicator. */
weft_status example_barrier(struct example_comm *comm);
/* Called between two polls of a value that another rank writes. */
weft_status example_pause(struct example_comm *comm, int64_t deadline, uint32_t *tries);
weft_status example_fail(struct example_comm *comm, weft_status status);
/* This rank's next note, and another rank's note of the same barrier. */
struct example_note *example_next_note(struct example_comm *comm);
const struct example_note *example_note_of(const struct example_comm *comm, int32_t rank);
/* New zeroed shared memory.  NAME receives the name by which other ranks open it. */
weft_status example_share(uint64_t bytes, char name[64], void **memory);
weft_status example_join(const char *name, uint64_t bytes, void **memory);
void example_unlink(const char *name); /* once all ranks have opened it */

/* ---- collectives.c ---- */

weft_status example_support(void *device, const weft_support_query *query, uint32_t *level);
weft_status example_collective(void *comm, const weft_collective_args *args);
weft_status example_collective_now(struct example_comm *comm, const weft_collective_args *args);
/* With WEFT_COMM_CHECK: fail if the ranks make different calls.  Called after the barrier of their
 * notes. */
weft_status example_compare_notes(struct example_comm *comm);

/* ---- messages.c ---- */

weft_status example_send(void *comm, const weft_message *message);
weft_status example_receive(void *comm, const weft_message *message);
weft_status example_group_begin(void *comm);
weft_status example_group_end(void *comm);
/* Keep ARGS, with copies of its arrays, until the group ends. */
weft_status example_queue_collective(struct example_comm *comm, const weft_collective_args *args);
void example_drop_queue(struct example_comm *comm);

/* ---- symm.c ---- */

extern const weft_symm_table example_symm;

/* ---- kernel.c ---- */

extern const weft_kernel_table example_kernel;

uint64_t example_region_count(const void *list);
/* The number of bytes that region INDEX reads from its source buffer; 0 if it is empty. */
uint64_t example_region_end(const void *list, uint64_t index, uint32_t *source);

/* ---- pull.c ---- */

weft_status example_pull(void *comm, const weft_pull_args *args);

#endif
