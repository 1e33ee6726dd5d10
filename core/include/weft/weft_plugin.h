/* weft_plugin.h - the whole contract between weft and a plugin.
 *
 * A plugin is a shared object that exports one symbol, weft_plugin_entry, which returns tables of
 * functions. A plugin includes this header and no other header of weft. It links no library of
 * weft. It opens its vendor library at run time, in `probe`; a plugin whose vendor library is
 * missing therefore still loads and reports what is missing.
 *
 * These rules hold for every function below. `weft conform` checks a plugin against them.
 *  - A function writes its outputs only on success. A function that fails first describes the
 *    failure through weft_host.set_error and then returns its status. A plugin lets no exception
 *    escape, raises no signal and does not exit the process.
 *  - A function checks its arguments before it does anything else. It returns
 *    WEFT_ERR_UNSUPPORTED for an unknown enum value, and for an operation that `support` denies;
 *    weft may then try another way. It returns WEFT_ERR_INVALID for a root, peer, index or extent
 *    out of range, and for NULL in place of memory that the call needs. Neither changes any state.
 *  - If the work of a communicator fails in any other way, the communicator has failed
 *    permanently. async_error returns the error from then on. The call, or query and wait of the
 *    stream, return the error too, if they have not returned before it occurs.
 *  - A function borrows its inputs until it returns, and copies what it keeps. Memory that
 *    stream-ordered work uses is borrowed until the work has run; the caller does not change or
 *    free it before. A pointer to memory that the calling rank does not use may be NULL.
 *  - A struct starts with its size, set by the side that made the struct. The other side reads
 *    and writes no field beyond that size.
 *  - Offsets and sizes are in bytes, counts are in elements, unless a comment says otherwise.
 *  - Threads: [any] marks functions that any thread may call at any time. [once] marks a function
 *    that one thread calls once. All other functions are called by one thread at a time per object
 *    (functions of the device table: per stream).
 *  - "optional:" marks entries that may be NULL. The text after it says what weft does then. All
 *    other entries are required.
 * Tables are append-only; docs/abi.md states how they may grow. */
#ifndef WEFT_PLUGIN_H
#define WEFT_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI_MAJOR 1u
#define WEFT_ABI_MINOR 0u

/* Written by ci/fingerprints.py. The number of a table changes with every declaration that the
 * table uses. weft compares the numbers when it loads a plugin. */
/* fingerprints begin */
#define WEFT_DEVICE_SIGNATURE UINT64_C(0xdd0e1d14d53a0b4f)
#define WEFT_COMM_SIGNATURE   UINT64_C(0x46f21c0e86da5f05)
#define WEFT_SYMM_SIGNATURE   UINT64_C(0x37f84e0dfbf3b904)
#define WEFT_KERNEL_SIGNATURE UINT64_C(0x2adff501bf55501b)
/* fingerprints end */

/* ---- vocabulary -------------------------------------------------------------- */

typedef int32_t weft_status;

/* clang-format off */
#define WEFT_STATUS_LIST(X) \
    X(OK, 0, "success") \
    X(IN_PROGRESS, 1, "not finished yet") \
    X(ERR_INVALID, -1, "an argument is not valid") \
    X(ERR_UNSUPPORTED, -2, "not supported here; another way may be") \
    X(ERR_NOT_FOUND, -3, "no such thing") \
    X(ERR_NO_MEMORY, -4, "out of memory") \
    X(ERR_SYSTEM, -5, "the operating system refused") \
    X(ERR_DEVICE, -6, "the device or its vendor library failed") \
    X(ERR_PEER, -7, "another rank failed or is gone") \
    X(ERR_TIMEOUT, -8, "the time limit passed") \
    X(ERR_ABORTED, -9, "the communicator was aborted") \
    X(ERR_VERSION, -10, "versions do not fit together") \
    X(ERR_INTERNAL, -11, "a defect in weft or in a plugin") \
    X(ERR_MISMATCH, -12, "ranks disagree") \
    X(ERR_PARSE, -13, "text could not be read") \
    X(ERR_NO_BACKEND, -14, "no usable backend") \
    X(ERR_NO_LIBRARY, -15, "a vendor library is missing") \
    X(ERR_OLD_LIBRARY, -16, "a vendor library or driver is too old") \
    X(ERR_NO_DEVICE, -17, "no device of the kind is present")

/* dtype, name, bytes per element. A bool is one byte, 0 or 1. f8e4m3 has no infinities and one NaN
 * (the finite-only format); f8e5m2 has IEEE infinities. */
#define WEFT_DTYPE_LIST(X) \
    X(BOOL, 0, "bool", 1) X(I8, 1, "i8", 1) X(U8, 2, "u8", 1) \
    X(I16, 3, "i16", 2) X(U16, 4, "u16", 2) X(I32, 5, "i32", 4) \
    X(U32, 6, "u32", 4) X(I64, 7, "i64", 8) X(U64, 8, "u64", 8) \
    X(F16, 9, "f16", 2) X(BF16, 10, "bf16", 2) X(F32, 11, "f32", 4) \
    X(F64, 12, "f64", 8) X(F8E4M3, 13, "f8e4m3", 1) X(F8E5M2, 14, "f8e5m2", 1) \
    X(C64, 15, "c64", 8) X(C128, 16, "c128", 16)

/* Results of the reductions:
 *  - Integers wrap. On bool, sum, max and bor are "or"; prod, min and band are "and".
 *  - avg is the sum divided by the number of ranks, or by `divisor` if that is not 0. Averages of
 *    integers truncate toward zero; the sum is exact (128 bits), and only the quotient wraps.
 *    Floats are divided before they are added: avg is finite if the mean is finite.
 *  - min and max return NaN if an operand is NaN.
 *  - f16, bf16 and f8 are computed in f32. The plugin rounds to nearest even each time it stores
 *    an element. f8 saturates at its largest finite value; an infinity of f8e5m2 stays one.
 *  - premul_sum multiplies each rank's data by that rank's scale, rounds as above, and then sums.
 *    Ranks may have different scales.
 *  - These are undefined, and `support` denies them: band, bor and bxor on floats and complex; min
 *    and max on complex; avg and premul_sum on bool. */
#define WEFT_REDUCTION_LIST(X) \
    X(SUM, 0, "sum") X(PROD, 1, "prod") X(MIN, 2, "min") X(MAX, 3, "max") \
    X(AVG, 4, "avg") X(BAND, 5, "band") X(BOR, 6, "bor") X(BXOR, 7, "bxor") \
    X(PREMUL_SUM, 8, "premul_sum")

#define WEFT_COLLECTIVE_LIST(X) \
    X(ALL_REDUCE, 0, "all_reduce") X(ALL_GATHER, 1, "all_gather") \
    X(REDUCE_SCATTER, 2, "reduce_scatter") X(ALL_TO_ALL, 3, "all_to_all") \
    X(BROADCAST, 4, "broadcast") X(REDUCE, 5, "reduce") \
    X(GATHER, 6, "gather") X(SCATTER, 7, "scatter") \
    X(BARRIER, 8, "barrier") X(ALL_GATHER_V, 9, "all_gather_v") \
    X(REDUCE_SCATTER_V, 10, "reduce_scatter_v") \
    X(ALL_TO_ALL_V, 11, "all_to_all_v") \
    X(GATHER_V, 12, "gather_v") X(SCATTER_V, 13, "scatter_v")

#define WEFT_STATUS_ENUM(name, value, text) WEFT_##name = value,
#define WEFT_DTYPE_ENUM(name, value, text, bytes) WEFT_DTYPE_##name = value,
#define WEFT_REDUCTION_ENUM(name, value, text) WEFT_REDUCE_##name = value,
#define WEFT_COLLECTIVE_ENUM(name, value, text) WEFT_COLL_##name = value,
enum weft_status_code { WEFT_STATUS_LIST(WEFT_STATUS_ENUM) };
enum weft_dtype { WEFT_DTYPE_LIST(WEFT_DTYPE_ENUM) WEFT_DTYPE_COUNT };
enum weft_reduction { WEFT_REDUCTION_LIST(WEFT_REDUCTION_ENUM) WEFT_REDUCE_COUNT };
enum weft_collective { WEFT_COLLECTIVE_LIST(WEFT_COLLECTIVE_ENUM) WEFT_COLL_COUNT };
enum weft_signal_op { WEFT_SIGNAL_SET = 0, WEFT_SIGNAL_ADD = 1 };
enum weft_compare { WEFT_COMPARE_EQ, WEFT_COMPARE_NE, WEFT_COMPARE_GE, WEFT_COMPARE_GT,
                    WEFT_COMPARE_LE, WEFT_COMPARE_LT };
/* clang-format on */
enum weft_support_level {
    /* The plugin's call returns WEFT_ERR_UNSUPPORTED. weft then carries the operation by others
     * that the plugin has; docs/abi.md lists the calls of weft that are refused. */
    WEFT_SUPPORT_NO = 0,
    WEFT_SUPPORT_EMULATED = 1, /* the plugin builds it from other operations */
    WEFT_SUPPORT_NATIVE = 2
};

/* As timeout_ns: no time limit. With 0, a wait checks once. A wait that exceeds its time limit
 * returns WEFT_ERR_TIMEOUT. */
#define WEFT_FOREVER  INT64_C(-1)
#define WEFT_MAX_DIMS 8

/* Functions of weft that a plugin may call. Valid until the process ends. [any] */
typedef struct weft_host {
    uint32_t struct_size;
    uint32_t abi_major, abi_minor;
    /* LEVEL: 0 error, 1 warning, 2 notice, 3 info, 4 debug. */
    void (*log)(int32_t level, const char *text);
    /* Sets the error text of the calling thread. VENDOR names the library that returned CODE
     * ("NCCL", 5), or is NULL. */
    void (*set_error)(weft_status status, const char *vendor, int64_t code, const char *text);
    void *(*allocate)(size_t bytes); /* returns NULL if out of memory */
    void (*release)(void *pointer);  /* accepts NULL */
    /* Returns the value of a WEFT_ knob ("WEFT_NCCL_LIB"), or NULL if it is not set. */
    const char *(*knob)(const char *name);
} weft_host;

/* ---- device: memory, streams, events ----------------------------------------- */

enum weft_feature {
    WEFT_FEATURE_HOST_MEMORY = 1, /* the host may read and write the device's memory */
    WEFT_FEATURE_INLINE = 2,      /* work on stream NULL has run when the call returns */
    WEFT_FEATURE_CAPTURE = 4,     /* work may be recorded into a device graph */
    WEFT_FEATURE_TAGS = 8,        /* messages match by tag; without this bit, by order */
    WEFT_FEATURE_THREADS = 16     /* several ranks of one process may use the plugin */
};

typedef struct weft_probe {
    uint32_t struct_size;
    /* The backend `auto` takes the highest score: 300 for accelerators, 100 for plugins that run
     * on any machine. With 0, a plugin is used only by name. */
    int32_t score;
    uint32_t device_count, reserved;
    char library[256]; /* path and version of the vendor library; "" if it has none */
} weft_probe;

typedef struct weft_device_options {
    uint32_t struct_size;
    int32_t local_rank; /* position among the job's ranks on this host */
    int32_t device;     /* index; -1: the plugin chooses by local_rank */
    uint32_t reserved;
} weft_device_options;

typedef struct weft_device_info {
    uint32_t struct_size;
    int32_t device;
    uint64_t features;                  /* bits of enum weft_feature */
    uint64_t memory_total, memory_free; /* in bytes */
    uint64_t alignment;                 /* in bytes: every pointer from allocate() has it */
    char name[128];                     /* "NVIDIA H200", "aarch64, 2 cores" */
    char uuid[64];                      /* equal on two ranks iff they share the device */
} weft_device_info;

enum weft_memory_kind {
    WEFT_MEMORY_DEVICE = 0, /* memory of the device, the fastest for collectives */
    WEFT_MEMORY_PINNED = 1, /* host memory that the device reads at full speed */
    WEFT_MEMORY_HOST = 2    /* other host memory; query_pointer reports it, allocate rejects it */
};

typedef struct weft_pointer_info {
    uint32_t struct_size;
    uint32_t kind;  /* enum weft_memory_kind */
    int32_t device; /* -1 for host memory */
    uint32_t reserved;
    void *base;     /* start of the allocation; NULL if unknown */
    uint64_t bytes; /* size of the allocation; 0 if unknown */
} weft_pointer_info;

/* One strided box to copy. Strides and offsets are in elements. The innermost dimension is last.
 * SOURCE and TARGET are indices into the buffer lists of the call. */
typedef struct weft_region {
    uint32_t source, target;
    uint32_t dims, reserved; /* with 0 dims, the box is one element */
    int64_t source_offset, target_offset;
    int64_t extent[WEFT_MAX_DIMS];
    int64_t source_stride[WEFT_MAX_DIMS], target_stride[WEFT_MAX_DIMS];
} weft_region;

/* One call of weft, for a tool of the vendor. */
typedef struct weft_range {
    uint32_t struct_size, reserved;
    const char *name;     /* "all-gather tp 8.0 MiB" */
    const char *category; /* "all-gather"; a program has fewer than 64 different ones */
    uint64_t bytes;       /* the larger of this rank's input and output; 0: no data moves */
} weft_range;

typedef struct weft_device_table {
    uint32_t struct_size, reserved;
    uint64_t signature; /* WEFT_DEVICE_SIGNATURE */
    /* Reports whether the plugin can serve this machine. Opens the vendor library; creates no
     * device context. Returns WEFT_ERR_NO_LIBRARY, WEFT_ERR_OLD_LIBRARY or WEFT_ERR_NO_DEVICE if
     * the plugin cannot serve it. [any] */
    weft_status (*probe)(weft_probe *out);
    /* The caller owns *DEVICE and ends it with close. [any] */
    weft_status (*open)(const weft_device_options *options, void **device);
    void (*close)(void *device);
    weft_status (*describe)(void *device, weft_device_info *out); /* [any] */

    /* KIND is WEFT_MEMORY_DEVICE or WEFT_MEMORY_PINNED. With 0 BYTES, *POINTER is valid for free.
     * [any] */
    weft_status (*allocate)(void *device, uint64_t bytes, uint32_t kind, void **pointer);
    weft_status (*free)(void *device, void *pointer); /* accepts NULL [any] */
    /* Describes the memory at POINTER. Unknown memory is reported as WEFT_MEMORY_HOST. The plugin
     * may return WEFT_ERR_INVALID for an address in memory that it manages, but in no allocation:
     * the allocation was freed, or there was none. [any] */
    weft_status (*query_pointer)(void *device, const void *pointer, weft_pointer_info *out);
    /* copy and fill run in stream order. TARGET and SOURCE may be host or device memory. */
    weft_status (*copy)(void *device, void *target, const void *source, uint64_t bytes,
                        void *stream);
    weft_status (*fill)(void *device, void *target, uint8_t byte, uint64_t bytes, void *stream);

    /* A stream is an in-order queue of work. NULL is the default stream; every STREAM argument may
     * be NULL. [any] */
    weft_status (*stream_create)(void *device, void **stream);
    void (*stream_destroy)(void *device, void *stream); /* waits for the stream's work */
    /* WEFT_OK if all work on STREAM has run, WEFT_IN_PROGRESS if not, or the error of the work.
     * stream_wait returns the same, or WEFT_ERR_TIMEOUT. [any] */
    weft_status (*stream_query)(void *device, void *stream);
    weft_status (*stream_wait)(void *device, void *stream, int64_t timeout_ns);
    /* Runs FN(USER) on a host thread, in stream order. FN calls no function of the plugin. */
    weft_status (*stream_call)(void *device, void *stream, void (*fn)(void *), void *user);
    /* Makes a stream of a vendor stream (cudaStream_t, ...). The caller still owns NATIVE.
     * optional: weft refuses vendor streams. */
    weft_status (*stream_wrap)(void *device, void *native, void **stream);
    /* Returns the vendor stream. optional: weft reports NULL. */
    void *(*stream_native)(void *device, void *stream);

    /* An event stands for the work that was on the stream at its last record. An event that was
     * never recorded stands for no work: it is complete. [any] */
    weft_status (*event_create)(void *device, void **event);
    void (*event_destroy)(void *device, void *event);
    weft_status (*event_record)(void *device, void *event, void *stream);
    weft_status (*event_query)(void *device, void *event); /* returns what stream_query returns */
    weft_status (*event_wait)(void *device, void *event, int64_t timeout_ns);
    /* Work posted to STREAM after this call starts after the work of EVENT. */
    weft_status (*stream_wait_event)(void *device, void *stream, void *event);
    /* Nanoseconds between two complete events. optional: weft has no device timings. */
    weft_status (*event_elapsed)(void *device, void *from, void *to, int64_t *nanoseconds);
    /* Makes DEVICE the current device of the calling thread, for the vendor library. optional:
     * weft does not call it. [any] */
    weft_status (*bind_thread)(void *device);
    /* Makes an event of a vendor event. The caller still owns NATIVE. optional: weft refuses
     * vendor events. */
    weft_status (*event_wrap)(void *device, void *native, void **event);
    /* Returns the vendor event. optional: weft reports NULL. */
    void *(*event_native)(void *device, void *event);
    /* 1 if a tool of the vendor records ranges in this process, 0 if not. weft asks once
     * per context, after open, and calls the next two functions only if the answer is 1. A later
     * call gives the same answer. [any] optional: weft marks no ranges. */
    uint32_t (*ranges_wanted)(void);
    /* range_begin begins a range of the calling thread. range_end ends the newest range
     * that the thread has begun and not ended. Both are present if ranges_wanted is. [any]
     * optional: weft marks no ranges. */
    void (*range_begin)(const weft_range *range);
    void (*range_end)(void);
    /* Device memory in stream order. allocate_on: work that is posted to STREAM after
     * the call may use *POINTER, and so may work that is ordered after such work. With 0 BYTES,
     * *POINTER is valid for free_on. free_on: POINTER is from allocate_on, and is not used by work
     * that is posted later; it may be NULL. Its memory is given out again when the work that is on
     * STREAM now has run. free takes POINTER too, when all work that uses it has run. Both are
     * present, or none is. [any] optional: weft calls allocate, and waits for STREAM before free.
     */
    weft_status (*allocate_on)(void *device, uint64_t bytes, void *stream, void **pointer);
    weft_status (*free_on)(void *device, void *pointer, void *stream);
} weft_device_table;

/* ---- comm: communicators, collectives, messages ------------------------------ */

typedef struct weft_blob {
    const void *data;
    uint64_t bytes;
} weft_blob;

/* Gathers data from the ranks of the communicator that commit creates, through weft's rendezvous.
 * Valid only inside commit, on the thread that calls commit. */
typedef struct weft_exchange {
    void *user; /* the first argument of all_gather */
    /* Collective. Every rank passes BYTES at MINE. ALL receives size x BYTES, in rank order. */
    weft_status (*all_gather)(void *user, const void *mine, void *all, uint64_t bytes);
} weft_exchange;

enum weft_comm_flag {
    /* The plugin detects calls that differ between ranks, in their arguments or their identity,
     * and fails with WEFT_ERR_MISMATCH. The error text names the calls of both ranks. */
    WEFT_COMM_CHECK = 1
};

typedef struct weft_comm_options {
    uint32_t struct_size;
    uint32_t flags; /* WEFT_COMM_ bits */
    int32_t rank, size;
    const int32_t *world_ranks; /* SIZE entries: the world rank of each member */
    const uint64_t *host_ids;   /* SIZE entries: equal iff two members are on the same host */
    const char *name;           /* unique within the job; used in messages */
    uint64_t job;               /* equal on all ranks of a job, different in every job */
    int64_t timeout_ns;         /* time limit of every wait on this communicator */
} weft_comm_options;

typedef struct weft_support_query {
    uint32_t struct_size;
    /* A field that the collective does not have is 0: a barrier has no dtype. */
    uint32_t collective, dtype, reduction;
    int32_t size;
    uint32_t reserved;
} weft_support_query;

/* A collective takes latency_ns + bytes * femtoseconds_per_byte / 10^6 nanoseconds. docs/abi.md
 * defines `bytes` for each collective. */
typedef struct weft_cost {
    uint32_t struct_size;
    uint32_t measured; /* 0: an estimate; 1: measured on this machine */
    uint64_t latency_ns, femtoseconds_per_byte;
} weft_cost;

/* One collective. COUNT is the number of elements per rank and peer. SEND and RECV hold:
 *   all_reduce, reduce, broadcast   count in (broadcast: root only), count out (reduce: root only)
 *   all_gather, gather              count in, size x count out (gather: root only)
 *   reduce_scatter, scatter         size x count in (scatter: root only), count out
 *   all_to_all                      size x count in, size x count out
 * The v-variants have counts and offsets per peer, in elements. The pieces may lie in any order and
 * with gaps; a collective does not write to gaps. All ranks pass the same counts; offsets may
 * differ between ranks. A rank contributes recv_counts[rank] elements to all_gather_v. It receives
 * send_counts[rank] elements from reduce_scatter_v. In gather_v a rank sends COUNT elements; in
 * scatter_v it receives COUNT elements; only the root reads the arrays of the other side.
 * In place means that SEND equals RECV, or that one of them is the rank's own slice of the other.
 * all_to_all_v in place needs equal counts and offsets on both sides. reduce, gather and scatter
 * are in place on the root only. The caller avoids any other overlap. Unless the call is in place,
 * SEND is not written.
 * SEND and RECV are device memory; with WEFT_FEATURE_HOST_MEMORY they may be any memory. They are
 * aligned to the element, or to half of a complex element. */
typedef struct weft_collective_args {
    uint32_t struct_size;
    uint32_t collective, dtype, reduction;
    int32_t root;
    uint32_t reserved;
    const void *send;
    void *recv;
    uint64_t count;
    const uint64_t *send_counts, *send_offsets, *recv_counts, *recv_offsets;
    const void *scale; /* for premul_sum: this rank's scale, one element of dtype in host memory */
    void *stream;
    /* The identity of the call. It differs between ranks that run bound plans in
     * different orders. PLAN is the digest of the plan, BINDING the number of its binding on its
     * communicator, STEP the number of the step; both numbers count from 1. All three are 0 if the
     * call does not belong to a plan. Ranks agree on them as on the rest of the call. */
    uint64_t plan;
    uint32_t binding, step;
    /* avg divides by DIVISOR, or by the number of ranks if DIVISOR is 0. */
    uint32_t divisor, reserved_2;
} weft_collective_args;

typedef struct weft_message {
    uint32_t struct_size;
    uint32_t dtype;
    void *buffer; /* read by send, written by receive */
    uint64_t count;
    int32_t peer;
    uint32_t tag;
    void *stream;
} weft_message;

/* A redistribution in one pass: each rank reads elements directly from its peers' SEND buffers into
 * its own RECV buffer. REGIONS, made by regions_create of the kernel table, lists what this rank
 * reads. region.source is an index into SOURCES, an array of ranks. region.target is 0. With
 * HOLDERS > 1 every element is the reduction of the ranks
 * SOURCES[region.source .. region.source + HOLDERS), in that order. READERS lists, in any order,
 * the ranks whose regions contain elements of this rank's SEND. The rank waits only for its sources
 * and its readers. */
typedef struct weft_pull_args {
    uint32_t struct_size;
    uint32_t dtype, reduction, holders;
    void *regions;
    const int32_t *sources, *readers;
    uint32_t reader_count, reserved;
    const void *send;
    uint64_t send_bytes; /* size of SEND */
    void *recv;          /* does not overlap SEND */
    void *stream;
    /* The identity of the call, as in weft_collective_args. */
    uint64_t plan;
    uint32_t binding, step;
    /* avg divides by DIVISOR, or by HOLDERS if DIVISOR is 0. */
    uint32_t divisor, reserved_2;
    /* For exchange, else NULL: the list of what others read of SEND, made by regions_create.
     * region.source is 0, region.target an index into READERS; the target's end of a region is in
     * that rank's RECV. */
    void *served;
} weft_pull_args;

typedef struct weft_comm_table {
    uint32_t struct_size, reserved;
    uint64_t signature; /* WEFT_COMM_SIGNATURE */
    /* The first phase of creation, local: it does not communicate. weft passes *ADDRESS, of any
     * length, to all members. The communicator owns *ADDRESS and keeps it until commit returns.
     * [any] */
    weft_status (*prepare)(void *device, const weft_comm_options *options, void **comm,
                           weft_blob *address);
    /* The second phase, collective. weft calls it after prepare has succeeded on all members.
     * ADDRESSES has one entry per member. weft calls destroy if this or any other member fails. */
    weft_status (*commit)(void *comm, const weft_blob *addresses, const weft_exchange *exchange);
    /* Frees COMM and its remaining windows without communication. Accepts NULL. Before this call,
     * all work of COMM has run or COMM is aborted. */
    void (*destroy)(void *comm);
    /* Ends all pending and later work with WEFT_ERR_ABORTED. async_error returns WEFT_ERR_ABORTED
     * from then on, or the error with which COMM had failed before. Does not block. A second call
     * has no effect. [any] */
    void (*abort)(void *comm);
    /* WEFT_OK, or the error with which this communicator has failed. [any] */
    weft_status (*async_error)(void *comm);

    /* Depends on QUERY and DEVICE only; *LEVEL is the same on all ranks. If DEVICE is NULL, *LEVEL
     * is the highest level that the plugin has on any device. [any] */
    weft_status (*support)(void *device, const weft_support_query *query, uint32_t *level);
    /* Posts a collective to its stream. All ranks call in the same order. */
    weft_status (*collective)(void *comm, const weft_collective_args *args);
    /* Posts a message. Sender and receiver pass the same dtype and count. Outside a group, a send
     * may wait for its receive. A plugin without messages always returns WEFT_ERR_UNSUPPORTED. */
    weft_status (*send)(void *comm, const weft_message *message);
    weft_status (*receive)(void *comm, const weft_message *message);
    /* Operations between begin and end start together, at the outermost end. A send may therefore
     * wait for a receive of the same group, and a rank may send to itself. Groups nest. After an
     * error inside a group, the caller still calls group_end. group_end then returns the first
     * error of the group and starts no operation of it. */
    weft_status (*group_begin)(void *comm);
    weft_status (*group_end)(void *comm);

    /* Collective, even for ranks that read nothing. The work has run when RECV is complete and no
     * peer reads SEND any more. If the ranks cannot read each other's memory, every rank returns
     * WEFT_ERR_UNSUPPORTED before it checks ARGS. A call without REGIONS is local: it returns
     * whether pull is supported and posts no work. optional: weft uses pack, all_to_all_v and
     * unpack. */
    weft_status (*pull)(void *comm, const weft_pull_args *args);
    /* Collective over PARENT. A member gets a communicator equal to one made by prepare and commit
     * with OPTIONS. A non-member passes NULL as OPTIONS and gets NULL. optional: weft calls
     * prepare and commit. */
    weft_status (*split)(void *parent, const weft_comm_options *options, void **comm);
    /* Predicted cost of a collective. optional: weft uses its own cost table. [any] */
    weft_status (*cost)(void *device, const weft_support_query *query, uint64_t bytes,
                        weft_cost *out);
    /* Makes a communicator of a vendor communicator. The caller still owns NATIVE. optional: weft
     * refuses vendor communicators. */
    weft_status (*wrap)(void *device, void *native, const weft_comm_options *options, void **comm);
    /* Returns the vendor communicator. optional: weft reports NULL. */
    void *(*native)(void *comm);
    /* Like pull, but RECV has elements of dtype TO. SEND and the regions have elements
     * of args->dtype; each element, or its reduction in that dtype, is converted as cast of the
     * kernel table does. optional: weft calls cast before or after pull. */
    weft_status (*pull_cast)(void *comm, const weft_pull_args *args, uint32_t to);
    /* What carries data between the ranks of COMM, and why: "UCX 1.13.1 between 2 hosts: all ranks
     * have it". weft keeps 255 bytes of it. COMM owns the text, which does not change. NULL or ""
     * if there is nothing to tell. optional: weft names no carrier. [any] */
    const char *(*carrier)(void *comm);
    /* Like pull with one holder, also for ranks that cannot read each other's memory: every rank
     * says in SERVED what others read of it. In REGIONS the regions of one source, and in SERVED
     * those of one reader, follow one another. Both ends of a pair of ranks list the same elements
     * in the same order, where the elements of a region are ordered by its dimensions, the last
     * fastest; so they can travel as one message. The shape of regions may differ between the two
     * ends. A call without REGIONS is local: it returns whether exchange is supported, and posts no
     * work. optional: weft uses pack, all_to_all_v and unpack. */
    weft_status (*exchange)(void *comm, const weft_pull_args *args);
} weft_comm_table;

/* ---- symm: memory that every rank of a communicator can address (optional) --- */

/* Plain data, also for kernels that are compiled separately. The window owns the arrays. They have
 * SIZE entries. The entry of a peer whose memory this rank cannot address is NULL. */
typedef struct weft_symm_handle {
    uint32_t struct_size;
    int32_t rank, size;
    uint32_t signal_count;
    uint64_t bytes;
    void *const *buffers;     /* host array of peer base addresses */
    uint64_t *const *signals; /* host array of peer signal pads */
    void *device_copy;        /* copy of buffers, then signals, in device memory; or NULL */
} weft_symm_handle;

/* A window is BYTES of memory and SIGNALS 64-bit signals on each rank. Signals start at 0. When a
 * get has run in stream order, its target holds the data. When a put has run, its source may be
 * changed; the data may still be on the way. After quiet, all earlier puts have arrived. Across a
 * fence, puts to one peer arrive in order; without it, their order is undefined. PEER may be the
 * calling rank. */
typedef struct weft_symm_table {
    uint32_t struct_size, reserved;
    uint64_t signature; /* WEFT_SYMM_SIGNATURE */
    /* Collective. Returns WEFT_ERR_MISMATCH on every rank if sizes differ. *LOCAL is this rank's
     * memory; the window owns it. */
    weft_status (*window_create)(void *comm, uint64_t bytes, uint32_t signals, void **window,
                                 void **local);
    /* Collective: waits for all ranks. On a communicator that has failed or is aborted it waits for
     * no rank. Ends the window in every case. Memory that peers may still access stays mapped. */
    weft_status (*window_destroy)(void *window);
    /* Collective: makes a window of user memory. The memory outlives the window. If the memory of a
     * rank cannot be shared, every rank gets WEFT_ERR_UNSUPPORTED. If BYTES reaches beyond the end
     * of the allocation on a rank, every rank gets WEFT_ERR_INVALID. optional: weft registers no
     * memory. */
    weft_status (*window_register)(void *comm, void *memory, uint64_t bytes, uint32_t signals,
                                   void **window);
    weft_status (*handle)(void *window, weft_symm_handle *out); /* [any] */
    weft_status (*put)(void *window, uint64_t target_offset, const void *source, uint64_t bytes,
                       int32_t peer, void *stream);
    weft_status (*get)(void *window, void *target, uint64_t source_offset, uint64_t bytes,
                       int32_t peer, void *stream);
    /* A put, followed by a signal. A rank that sees the new value of the signal sees the data of
     * this put. The signal is not ordered after earlier puts; fence orders it after them. */
    weft_status (*put_signal)(void *window, uint64_t target_offset, const void *source,
                              uint64_t bytes, uint32_t signal, uint64_t value, uint32_t op,
                              int32_t peer, void *stream);
    weft_status (*signal)(void *window, uint32_t signal, uint64_t value, uint32_t op, int32_t peer,
                          void *stream);
    /* Waits, in stream order, until this rank's SIGNAL compares true with VALUE. Both are unsigned:
     * WEFT_COMPARE_GE means signal >= value. */
    weft_status (*wait_signal)(void *window, uint32_t signal, uint32_t compare, uint64_t value,
                               int64_t timeout_ns, void *stream);
    weft_status (*fence)(void *window, void *stream);
    weft_status (*quiet)(void *window, void *stream);
    weft_status (*barrier)(void *window, void *stream); /* quiet, then waits for all ranks */
} weft_symm_table;

/* ---- kernel: local data movement and arithmetic (optional) ------------------- */

/* How a word of random bits becomes an element. docs/random.md states the words and the
 * functions. */
enum weft_distribution {
    WEFT_DRAW_UNIFORM = 0,   /* floats, complex: FIRST + n * UNIT, at most LAST */
    WEFT_DRAW_NORMAL = 1,    /* floats, complex: MEAN + DEVIATION * z */
    WEFT_DRAW_TRUNCATED = 2, /* floats: MEAN + DEVIATION * quantile(SHARE + u * WIDTH), at least
                              * FIRST and at most LAST */
    WEFT_DRAW_CHOICE = 3,    /* any dtype: BELOW if the word is less than THRESHOLD, else ABOVE */
    WEFT_DRAW_INTEGERS = 4   /* integers, bool: LEAST + the upper half of the word times RANGE */
};

/* A draw of random numbers. The parts of a complex number are drawn apart, except by
 * CHOICE. A field that the distribution does not use is 0. */
typedef struct weft_draw {
    uint32_t struct_size;
    uint32_t distribution, dtype, reserved;
    uint64_t seed, offset;
    /* Floats of up to 32 bits: f32 numbers, in which the draw is computed (TRUNCATED: in f64). */
    double first, last, unit, mean, deviation;
    double share, width;
    uint64_t threshold;
    uint64_t least, range;        /* RANGE 0: LEAST + the word */
    uint8_t below[16], above[16]; /* one element of DTYPE each */
} weft_draw;

/* COUNT elements of a float dtype, one after the other in memory. */
typedef struct weft_span {
    uint64_t count;
    uint32_t dtype;
    uint32_t sum; /* the sum to which spans_powers adds them */
} weft_span;

/* The treatment of elements whose norm is infinite or not a number. */
enum weft_nonfinite {
    WEFT_NONFINITE_SCALE = 0, /* they are scaled all the same */
    WEFT_NONFINITE_KEEP = 1,  /* they stay as they are */
    WEFT_NONFINITE_ZERO = 2   /* they become 0 */
};

/* Elements are multiplied so that their norm is at most MOST. With norm = sum^(1/P), or
 * the sum itself if P is infinite, the factor is MOST / (norm + 1e-6). Elements are not touched if
 * the factor is 1 or more. */
typedef struct weft_norm_limit {
    uint32_t struct_size;
    uint32_t nonfinite; /* enum weft_nonfinite */
    double p, most;     /* P is above 0, MOST is not negative */
} weft_norm_limit;

/* Rows in memory with gaps. The elements of a row are adjacent. */
typedef struct weft_rows {
    void *memory;
    int64_t stride[3]; /* in elements */
} weft_rows;

/* Partial results that become part of sums. There are extent[0] x extent[1] x extent[2]
 * rows, each with one logarithm in LSE and DEPTH elements in OUT. */
typedef struct weft_merge {
    uint32_t struct_size;
    uint32_t dtype; /* of OUT: floats of at most 32 bits */
    int64_t extent[3], depth;
    weft_rows out, lse;         /* added; LSE is f32 */
    weft_rows total, total_lse; /* the sums, f32 */
} weft_merge;

/* All operations with a stream run in stream order. */
typedef struct weft_kernel_table {
    uint32_t struct_size, reserved;
    uint64_t signature; /* WEFT_KERNEL_SIGNATURE */
    /* Prepares a list of regions, to be run many times. The caller owns *LIST and ends it with
     * regions_destroy. ELEMENT_BYTES is 1, 2, 4, 8 or 16. The targets of one list do not overlap.
     * [any] */
    weft_status (*regions_create)(void *device, uint32_t element_bytes, uint64_t count,
                                  const weft_region *regions, void **list);
    void (*regions_destroy)(void *list);
    /* Copies every region from sources[region.source] to targets[region.target]. */
    weft_status (*regions_copy)(void *list, const void *const *sources, void *const *targets,
                                void *stream);
    /* Like regions_copy, but each element is the reduction, in this order, of the SIZE buffers
     * sources[region.source .. region.source + SIZE). REDUCTION is not premul_sum. optional: weft
     * reduces in host memory. */
    weft_status (*regions_reduce)(void *list, uint32_t dtype, uint32_t reduction, uint32_t size,
                                  const void *const *sources, void *const *targets, void *stream);
    /* target[i] = reduction over k of sources[k][i], in the order of k. TARGET may be one of
     * SOURCES. REDUCTION is not premul_sum, as in regions_reduce and in pull. */
    weft_status (*reduce)(void *device, uint32_t dtype, uint32_t reduction, uint64_t count,
                          uint32_t size, const void *const *sources, void *target, void *stream);
    /* Converts COUNT elements. To floats: rounds to nearest even; f8 saturates. A NaN stays a NaN,
     * with the sign and payload that docs/dtypes.md states. To integers: rounds
     * toward zero and saturates; NaN becomes 0. To bool: 0 becomes 0, all else 1. Complex converts
     * to complex only. The plugin may return WEFT_ERR_UNSUPPORTED for any pair of dtypes. */
    weft_status (*cast)(void *device, uint32_t from, uint32_t to, uint64_t count,
                        const void *source, void *target, void *stream);
    /* scale multiplies DATA by *SCALE. fill sets TARGET to *VALUE. *SCALE and *VALUE are one
     * element of DTYPE in host memory. */
    weft_status (*scale)(void *device, uint32_t dtype, uint64_t count, const void *scale,
                         void *data, void *stream);
    weft_status (*fill)(void *device, uint32_t dtype, uint64_t count, const void *value,
                        void *target, void *stream);
    /* regions_reduce with avg, divided by DIVISOR, which is at least 1. optional: weft
     * averages in host memory. */
    weft_status (*regions_average)(void *list, uint32_t dtype, uint32_t size, uint32_t divisor,
                                   const void *const *sources, void *const *targets, void *stream);
    /* Like regions_copy, but each element is converted from dtype FROM to dtype TO as
     * cast does. LIST has elements of the size of FROM; offsets and strides count elements on both
     * sides. optional: weft calls cast before or after regions_copy. */
    weft_status (*regions_cast)(void *list, uint32_t from, uint32_t to, const void *const *sources,
                                void *const *targets, void *stream);
    /* Sets the target of every region to random numbers: the source of an element is its
     * number in DRAW, and SOURCE of a region is 0. Bits are those of docs/random.md. LIST has
     * elements of the size of the dtype. A call with an empty list returns whether the draw is
     * supported. optional: weft draws in host memory. */
    weft_status (*regions_draw)(void *list, const weft_draw *draw, void *const *targets,
                                void *stream);
    /* Prepares a list of spans with SUMS sums, to be run many times. The caller owns
     * *LIST and ends it with spans_destroy. Runs of one list follow each other in stream order,
     * also if they are on different streams. Spans of one list do not overlap. A plugin takes all
     * float dtypes, or returns WEFT_ERR_UNSUPPORTED. optional: all functions of spans or none; weft
     * does their work in host memory if there are none, or after WEFT_ERR_UNSUPPORTED. [any] */
    weft_status (*spans_create)(void *device, uint64_t count, const weft_span *spans, uint32_t sums,
                                void **list);
    void (*spans_destroy)(void *list);
    /* Sets each of SUMS, f64 in device memory, to the sum of |x|^P over the elements of its spans;
     * a sum without elements is 0. P is above 0. With P infinite, it is the largest |x|, and NaN
     * counts as infinite. Powers are computed and added in f64. Equal elements in equal lists give
     * equal bits. MEMORY has the address of each span; an empty span may have NULL. */
    weft_status (*spans_powers)(void *list, void *const *memory, double p, double *sums,
                                void *stream);
    /* Multiplies all elements as LIMIT states. *SUM, in device memory, is a sum of powers. *NORM,
     * in other device memory, is set to the norm. f64 is multiplied in f64, other dtypes in f32 by
     * the factor rounded to f32, and converted as cast does. */
    weft_status (*spans_limit)(void *list, void *const *memory, const weft_norm_limit *limit,
                               const double *sum, double *norm, void *stream);
    /* Elements above MOST become MOST, those below -MOST become -MOST, as cast converts them from
     * f32 (f64: from f64). NaN stays NaN. MOST is not negative. */
    weft_status (*spans_clamp)(void *list, void *const *memory, double most, void *stream);
    /* Merges results of attention, o and l, into the sums O and L, row by row: with
     * g = 1 / (1 + exp(L - l)), O + g (o - O) and log(exp(L) + exp(l)). If l is -infinity, the row
     * keeps its sums and o is not used. If only L is -infinity, the row takes l, and g is 1. If
     * lse.memory is NULL, o is added to O instead. Sums are f32; l is not NaN. A call without rows
     * returns whether the merge is supported. optional: weft merges in host memory. */
    weft_status (*merge_rows)(void *device, const weft_merge *merge, void *stream);
} weft_kernel_table;

/* ---- the plugin -------------------------------------------------------------- */

/* Static data of the plugin. It stays valid and unchanged until the process ends. */
typedef struct weft_plugin {
    uint32_t struct_size;
    uint32_t abi_major, abi_minor;   /* WEFT_ABI_MAJOR and _MINOR of the header it is built with */
    uint32_t host_minor_needed;      /* minimum abi_minor of the host */
    const char *name;                /* NAME of libweft_plugin_NAME.so: [a-z0-9-] */
    const char *version;             /* version of the plugin */
    const char *build;               /* equal on two ranks iff they have the same build */
    const char *description;         /* one line, for `weft info` */
    const weft_device_table *device; /* required */
    const weft_comm_table *comm;     /* NULL: no communication, only memory */
    const weft_symm_table *symm;     /* NULL: no symmetric memory */
    const weft_kernel_table *kernel; /* NULL: weft does this work in host memory */
} weft_plugin;

/* The only exported symbol. Returns the plugin's tables. Does not open the vendor library. To
 * refuse the host, calls set_error with the reason and returns NULL. [once] */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const weft_plugin *
weft_plugin_entry(const weft_host *host);

#ifdef __cplusplus
}
#endif
#endif
