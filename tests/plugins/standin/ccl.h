/* ccl.h - a simulated NCCL and RCCL: ranks exchange bytes through shared memory.
 *
 * It keeps the relevant behaviour of the real libraries.  An operation occupies its stream until
 * its peers have joined, without a limit, unless it is aborted.  Messages match in order, and so do
 * collectives.  A nonblocking communicator answers "in progress".  The loss of a peer is an error
 * that only ncclCommGetAsyncError returns.  Ranks may be processes or threads.
 *
 * The environment: STANDIN_CCL_VERSION; STANDIN_CCL_FAIL_ASYNC=N (the N-th operation of a rank ends
 * in an error that only ncclCommGetAsyncError returns), STANDIN_CCL_FAIL_CALL=N (the N-th call
 * fails at once), STANDIN_CCL_FAIL_INIT=rank; STANDIN_CCL_SLOW=N (microseconds of a call on a
 * nonblocking communicator). */
#ifndef WEFT_STANDIN_CCL_H
#define WEFT_STANDIN_CCL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function that the library exports, declared and defined. */
/* clang-format off */
#define API(type, name, ...)                                                                       \
    __attribute__((visibility("default"))) type name(__VA_ARGS__);                                 \
    __attribute__((visibility("default"))) type name(__VA_ARGS__)
/* clang-format on */

enum { SC_OK, SC_GPU, SC_SYSTEM, SC_INTERNAL, SC_ARGUMENT, SC_USAGE, SC_REMOTE, SC_IN_PROGRESS };
enum { SC_SUM, SC_PROD, SC_MAX, SC_MIN, SC_AVG, SC_FIRST_MADE };
enum {
    SC_I8,
    SC_U8,
    SC_I32,
    SC_U32,
    SC_I64,
    SC_U64,
    SC_F16,
    SC_F32,
    SC_F64,
    SC_BF16,
    SC_E4M3,
    SC_E5M2,
    SC_DTYPES
};

enum { SC_MAX_RANKS = 16, SC_RING_BYTES = 16384, SC_MADE_OPS = 64 };

struct sc_id {
    char bytes[128];
};

struct sc_config {
    size_t bytes;
    unsigned magic, version;
    int blocking, cga_cluster, least_blocks, most_blocks;
    const char *network;
    int split_share;
    int traffic_class;
    const char *name; /* since 2.27.3 */
};

/* Bytes on their way from one rank to another. */
struct sc_ring {
    _Atomic uint64_t written, read;
    unsigned char data[SC_RING_BYTES];
};

enum { SC_MESSAGES, SC_COLLECTIVES, SC_LANES };

struct sc_shared {
    atomic_int joined;
    _Atomic int32_t process[SC_MAX_RANKS];
    struct sc_ring rings[]; /* [lane][from][to] */
};

struct sc_flag {
    atomic_int is_set, holders;
};

struct sc_comm {
    uint64_t key; /* names the shared memory */
    int rank, size;
    bool blocking, shares_flag;
    char name[96]; /* of the configuration; "": none */
    int splits;
    struct sc_shared *shared;
    size_t shared_bytes;
    struct sc_flag *abort;             /* shared with communicators split off, if requested */
    atomic_int result;                 /* result of ncclCommGetAsyncError */
    _Atomic uint64_t issued, finished; /* groups of operations on streams, which stay in order */
    bool is_connected;
    struct sc_window *windows; /* freed with the communicator */
    long operations;
    double made_scale[SC_MADE_OPS]; /* of premultiplied sums */
    int made_dtype[SC_MADE_OPS];    /* -1: free */
    pthread_t helper;               /* the thread of a nonblocking call */
    bool has_helper;
    atomic_bool is_used; /* by a thread inside a nonblocking call */
};

/* One call of the API. */
enum sc_kind {
    SC_ALL_REDUCE,
    SC_REDUCE,
    SC_BROADCAST,
    SC_REDUCE_SCATTER,
    SC_ALL_GATHER,
    SC_SEND,
    SC_RECV
};
struct sc_task {
    struct sc_task *next;
    struct sc_comm *comm;
    enum sc_kind kind;
    const void *send;
    void *recv;
    size_t count;
    int dtype, op, peer;
    double scale; /* of a premultiplied sum; 1 otherwise */
    void *stream;
};

/* ---- ccl_comm.c ---- */

long sc_setting(const char *name, long otherwise);
int sc_fail(int result, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct sc_ring *sc_ring(struct sc_comm *comm, int lane, int from, int to);
/* Gather BYTES from every rank, without streams.  SC_INTERNAL when aborted. */
int sc_gather_now(struct sc_comm *comm, const void *mine, void *all, size_t bytes);
/* True if a peer has exited. */
bool sc_peer_died(const struct sc_comm *comm);
/* Post FN(argument) to a stream of the simulated device. */
int sc_enqueue(void *stream, void (*fn)(void *), void *argument);
/* Run FN(comm, argument) now on a blocking communicator, else in a thread, during which the
 * communicator is "in progress". */
int sc_do(struct sc_comm *comm, int (*fn)(struct sc_comm *comm, void *argument), void *argument);
/* Join the helper thread of COMM's last call, if any. */
void sc_join_helper(struct sc_comm *comm);

/* ---- ccl_run.c: transfer of a group of tasks ---- */

/* Runs TASKS, all of one communicator, until they end or are aborted. */
void sc_run_tasks(struct sc_comm *comm, struct sc_task *tasks);

/* ---- ccl_numbers.c ---- */

size_t sc_dtype_bytes(int dtype);
/* TARGET[i] = op over k of PARTS + k * STRIDE bytes, as NCCL does it: minimum and maximum lose
 * NaN, averages multiply first, each step rounds. */
void sc_reduce(int dtype, int op, size_t count, int parts_count, const unsigned char *parts,
               size_t stride, unsigned char *target);
/* TARGET[i] = SOURCE[i] * SCALE, rounded. */
void sc_scale(int dtype, double scale, size_t count, const unsigned char *source,
              unsigned char *target);
double sc_load(int dtype, const void *element);

#endif
