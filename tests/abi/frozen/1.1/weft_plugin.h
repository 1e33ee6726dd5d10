/* weft_plugin.h - the whole contract between weft and a plugin.
 *
 * A plugin is a shared object that exports one symbol, weft_plugin_entry, and hands back tables of
 * functions. It includes this header and nothing else of weft, links nothing of weft, and opens its
 * vendor library itself, when it is probed, so that it always loads and can say what is missing.
 *
 * Rules that hold for every function below; `weft conform` runs a plugin against them:
 *  - Outputs are written only on success. A failing function first describes the failure through
 *    weft_host.set_error, then returns its status. No exception, signal or exit crosses the border.
 *  - Arguments are checked before anything happens. An unknown enum value, or what `support`
 *    denies, is WEFT_ERR_UNSUPPORTED: another way may be tried. A root, peer, index or extent out
 *    of range, or NULL for memory that is needed, is WEFT_ERR_INVALID. Neither changes any state.
 *  - A communicator whose work fails in any other way has failed for good: async_error returns that
 *    error, and so do the call, or the stream's query and wait, where they still can.
 *  - Inputs are borrowed for the call and copied if kept, except memory given to stream-ordered
 *    work: the caller leaves it alone until that is done. What a rank does not use may be NULL.
 *  - Structs start with their size as their maker knows it: no field past it is read or written.
 *  - Offsets and sizes are in bytes, counts in elements, unless said otherwise.
 *  - Threads: [any] from any thread at any time, [once] by one thread, once; else one thread at a
 *    time per object (device calls: per stream).
 *  - "optional" says what weft does when the pointer is NULL. All else in a table is required.
 * Tables are append-only; docs/abi.md says how they may grow. */
#ifndef WEFT_PLUGIN_H
#define WEFT_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI_MAJOR 1u
#define WEFT_ABI_MINOR 1u

/* By ci/fingerprints.py: a changed signature changes the number, which loading compares. */
/* fingerprints begin */
#define WEFT_DEVICE_SIGNATURE UINT64_C(0x5e79676d3b7cbc33)
#define WEFT_COMM_SIGNATURE   UINT64_C(0x153774dcfbf52008)
#define WEFT_SYMM_SIGNATURE   UINT64_C(0xa7c1e19940a4c4b2)
#define WEFT_KERNEL_SIGNATURE UINT64_C(0x10d1fa3f67e1e508)
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

/* dtype: name, bytes. Bools are bytes 0 or 1. f8e4m3 is the finite-only kind (no infinity, one
 * NaN); f8e5m2 has IEEE infinities. */
#define WEFT_DTYPE_LIST(X) \
    X(BOOL, 0, "bool", 1) X(I8, 1, "i8", 1) X(U8, 2, "u8", 1) \
    X(I16, 3, "i16", 2) X(U16, 4, "u16", 2) X(I32, 5, "i32", 4) \
    X(U32, 6, "u32", 4) X(I64, 7, "i64", 8) X(U64, 8, "u64", 8) \
    X(F16, 9, "f16", 2) X(BF16, 10, "bf16", 2) X(F32, 11, "f32", 4) \
    X(F64, 12, "f64", 8) X(F8E4M3, 13, "f8e4m3", 1) X(F8E5M2, 14, "f8e5m2", 1) \
    X(C64, 15, "c64", 8) X(C128, 16, "c128", 16)

/* What the reductions compute:
 *  - Integers wrap. On bool, sum, max and bor are "or"; prod, min and band are "and".
 *  - avg is the sum divided by the number of ranks; since 1.1 by `divisor`, if that is not 0.
 *    Averages of integers truncate toward zero. Since 1.1 their sum is exact, in 128 bits, and only
 *    the quotient wraps. Since 1.1 floats are divided before they are added, so that avg is finite
 *    where the mean is.
 *  - min and max pass on NaN.
 *  - f16, bf16 and f8 are computed in f32 and rounded to nearest even each time the plugin stores
 *    one. f8 saturates at its largest finite value, but since 1.1 infinities of f8e5m2 stay
 *    infinities.
 *  - premul_sum multiplies each rank's data by that rank's scale, with the same rounding, and then
 *    sums. Ranks may have different scales.
 *  - Not defined, so never claimed: band, bor and bxor on floats and complex, min and max on
 *    complex, avg and premul_sum on bool. */
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
    WEFT_SUPPORT_NO = 0,       /* the call returns WEFT_ERR_UNSUPPORTED */
    WEFT_SUPPORT_EMULATED = 1, /* works, built from other operations */
    WEFT_SUPPORT_NATIVE = 2
};

#define WEFT_FOREVER  INT64_C(-1) /* no time limit; 0 asks once; running out is WEFT_ERR_TIMEOUT */
#define WEFT_MAX_DIMS 8

/* What the host gives a plugin.  Valid for the life of the process. [any] */
typedef struct weft_host {
    uint32_t struct_size;
    uint32_t abi_major, abi_minor;
    void (*log)(int32_t level, const char *text); /* 0 error, warning, notice, info, 4 debug */
    /* Describe a failure of the calling thread. VENDOR may be NULL, else names the library whose
     * CODE is meant ("NCCL", 5). */
    void (*set_error)(weft_status status, const char *vendor, int64_t code, const char *text);
    void *(*allocate)(size_t bytes); /* NULL when out of memory */
    void (*release)(void *pointer);  /* accepts NULL */
    /* Value of a WEFT_ knob ("WEFT_NCCL_LIB"), or NULL when it is not set. */
    const char *(*knob)(const char *name);
} weft_host;

/* ---- device: memory, streams, events ----------------------------------------- */

enum weft_feature {
    WEFT_FEATURE_HOST_MEMORY = 1, /* the host may read and write its memory */
    WEFT_FEATURE_INLINE = 2,      /* work on stream NULL is done on return */
    WEFT_FEATURE_CAPTURE = 4,     /* work may be recorded into a device graph */
    WEFT_FEATURE_TAGS = 8,        /* messages match by tag, else in order */
    WEFT_FEATURE_THREADS = 16     /* several ranks may live in one process */
};

typedef struct weft_probe {
    uint32_t struct_size;
    int32_t score; /* for `auto`: 100 works anywhere, 300 accelerator, 0 only by name */
    uint32_t device_count, reserved;
    char library[256]; /* path and version of the vendor library, or "" */
} weft_probe;

typedef struct weft_device_options {
    uint32_t struct_size;
    int32_t local_rank; /* position among the job's ranks on this host */
    int32_t device;     /* index, or -1: chosen by local_rank */
    uint32_t reserved;
} weft_device_options;

typedef struct weft_device_info {
    uint32_t struct_size;
    int32_t device;
    uint64_t features; /* WEFT_FEATURE_ bits */
    uint64_t memory_total, memory_free;
    uint64_t alignment; /* of every pointer allocate() returns */
    char name[128];     /* "NVIDIA H200", "aarch64, 2 cores" */
    char uuid[64];      /* equal on two ranks iff they share the device */
} weft_device_info;

enum weft_memory_kind {
    WEFT_MEMORY_DEVICE = 0, /* the device's own; what collectives like best */
    WEFT_MEMORY_PINNED = 1, /* host memory the device reads at full speed */
    WEFT_MEMORY_HOST = 2    /* only as an answer of query_pointer */
};

typedef struct weft_pointer_info {
    uint32_t struct_size;
    uint32_t kind;  /* enum weft_memory_kind */
    int32_t device; /* -1 for host memory */
    uint32_t reserved;
    void *base; /* start and size of the allocation, where known */
    uint64_t bytes;
} weft_pointer_info;

/* One strided box to copy; strides and offsets in elements, innermost last. The buffers are those
 * that the call names by index. */
typedef struct weft_region {
    uint32_t source, target; /* indices into the call's buffer lists */
    uint32_t dims, reserved; /* 0 dims: one element */
    int64_t source_offset, target_offset;
    int64_t extent[WEFT_MAX_DIMS];
    int64_t source_stride[WEFT_MAX_DIMS], target_stride[WEFT_MAX_DIMS];
} weft_region;

typedef struct weft_device_table {
    uint32_t struct_size, reserved;
    uint64_t signature; /* WEFT_DEVICE_SIGNATURE */
    /* Can this machine serve?  Opens the vendor library; creates no device context.
     * WEFT_ERR_NO_LIBRARY, _OLD_LIBRARY, _NO_DEVICE: why not. [any] */
    weft_status (*probe)(weft_probe *out);
    /* The caller owns *DEVICE and gives it to close. [any] */
    weft_status (*open)(const weft_device_options *options, void **device);
    void (*close)(void *device);
    weft_status (*describe)(void *device, weft_device_info *out); /* [any] */

    /* Zero bytes give a valid pointer that free accepts. [any] */
    weft_status (*allocate)(void *device, uint64_t bytes, uint32_t kind, void **pointer);
    weft_status (*free)(void *device, void *pointer); /* accepts NULL [any] */
    /* What kind of memory POINTER is.  Unknown memory is HOST. [any] */
    weft_status (*query_pointer)(void *device, const void *pointer, weft_pointer_info *out);
    /* In stream order; either side may be host or device memory. */
    weft_status (*copy)(void *device, void *target, const void *source, uint64_t bytes,
                        void *stream);
    weft_status (*fill)(void *device, void *target, uint8_t byte, uint64_t bytes, void *stream);

    /* Streams are in-order queues. NULL is the default one, valid wherever one is taken. [any] */
    weft_status (*stream_create)(void *device, void **stream);
    void (*stream_destroy)(void *device, void *stream); /* waits for its work */
    /* OK when all is done, IN_PROGRESS when not, else its error. [any] */
    weft_status (*stream_query)(void *device, void *stream);
    weft_status (*stream_wait)(void *device, void *stream, int64_t timeout_ns);
    /* Run FN on some host thread in stream order; FN calls nothing of the plugin. */
    weft_status (*stream_call)(void *device, void *stream, void (*fn)(void *), void *argument);
    /* A stream of the vendor (cudaStream_t, ...) as ours; still the caller's. optional: such
     * streams cannot be used. */
    weft_status (*stream_wrap)(void *device, void *native, void **stream);
    void *(*stream_native)(void *device, void *stream); /* optional: NULL */

    /* An event stands for the work before its last record; never recorded, for none. [any] */
    weft_status (*event_create)(void *device, void **event);
    void (*event_destroy)(void *device, void *event);
    weft_status (*event_record)(void *device, void *event, void *stream);
    weft_status (*event_query)(void *device, void *event); /* as stream_query */
    weft_status (*event_wait)(void *device, void *event, int64_t timeout_ns);
    /* Later work on STREAM starts only after EVENT's. */
    weft_status (*stream_wait_event)(void *device, void *stream, void *event);
    /* optional: no device timings. */
    weft_status (*event_elapsed)(void *device, void *from, void *to, int64_t *nanoseconds);
    /* Make the calling thread's vendor state point at DEVICE. optional: none needed. [any] */
    weft_status (*bind_thread)(void *device);
    /* An event of the vendor as ours; still the caller's. optional, as is its opposite: NULL. */
    weft_status (*event_wrap)(void *device, void *native, void **event);
    void *(*event_native)(void *device, void *event);
} weft_device_table;

/* ---- comm: communicators, collectives, messages ------------------------------ */

typedef struct weft_blob {
    const void *data;
    uint64_t bytes;
} weft_blob;

/* Talk to the other ranks of the communicator being made, over weft's own rendezvous. Only inside
 * commit, on its thread; collective. */
typedef struct weft_exchange {
    void *self;
    /* ALL receives size x BYTES, in rank order. */
    weft_status (*all_gather)(void *self, const void *mine, void *all, uint64_t bytes);
} weft_exchange;

enum weft_comm_flag {
    WEFT_COMM_CHECK = 1 /* detect calls that differ between ranks, also in their identity, and name
                         * both ranks' calls */
};

typedef struct weft_comm_options {
    uint32_t struct_size;
    uint32_t flags; /* WEFT_COMM_ bits */
    int32_t rank, size;
    const int32_t *world_ranks; /* SIZE of them, in the user's order */
    const uint64_t *host_ids;   /* SIZE of them: equal iff the same host */
    const char *name;           /* unique within the job; for messages */
    uint64_t job;               /* the same on all ranks, fresh for each job */
    int64_t timeout_ns;         /* of every wait on this communicator */
} weft_comm_options;

typedef struct weft_support_query {
    uint32_t struct_size;
    uint32_t collective, dtype, reduction; /* 0 where none is meant: barrier has no dtype */
    int32_t size;
    uint32_t reserved;
} weft_support_query;

/* A collective takes latency_ns + bytes * femtoseconds_per_byte / 10^6; bytes as in docs/abi.md. */
typedef struct weft_cost {
    uint32_t struct_size;
    uint32_t measured; /* 0 a guess, 1 measured on this machine */
    uint64_t latency_ns, femtoseconds_per_byte;
} weft_cost;

/* One collective. COUNT is per rank and peer:
 *   all_reduce, reduce, broadcast   count in (broadcast: root only), count out (reduce: root only)
 *   all_gather, gather              count in, size x count out (gather: root only)
 *   reduce_scatter, scatter         size x count in (scatter: root only), count out
 *   all_to_all                      size x count in, size x count out
 * v-variants give counts and offsets per peer, in elements, in any order and with gaps, which are
 * left alone. Ranks agree on counts; offsets are each rank's own. A rank's own share of
 * all_gather_v is recv_counts[rank], of reduce_scatter_v send_counts[rank]; gather_v sends COUNT
 * and scatter_v receives COUNT; the other side's arrays are read on the root only.
 * In place: SEND equals RECV (all_to_all_v: with equal counts and offsets on both sides) or one is
 * the rank's own slice of the other; reduce, gather and scatter on the root. Other overlap is an
 * error of the caller. SEND is otherwise never written. Memory is the device's, or any where there
 * is FEATURE_HOST_MEMORY; aligned to its element, or for complex to half of it. */
typedef struct weft_collective_args {
    uint32_t struct_size;
    uint32_t collective, dtype, reduction;
    int32_t root;
    uint32_t reserved;
    const void *send;
    void *recv;
    uint64_t count;
    const uint64_t *send_counts, *send_offsets, *recv_counts, *recv_offsets;
    const void *scale; /* premul_sum: this rank's factor, one element of dtype in host memory */
    void *stream;
    /* Since 1.1: the identity of the call. It differs between ranks that run bound plans in
     * different orders. PLAN is the digest of the plan, BINDING the number of its binding on its
     * communicator, STEP the number of the step; both numbers count from 1. All three are 0 if the
     * call does not belong to a plan. Ranks agree on them as on the rest of the call. */
    uint64_t plan;
    uint32_t binding, step;
    /* DIVISOR, since 1.1, is what avg divides by; 0: the number of ranks. */
    uint32_t divisor, reserved_1_1;
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

/* A redistribution in one pass: each rank reads what it needs straight out of its peers' SEND
 * buffers into its own RECV. REGIONS (of the kernel table) list what this rank reads; region.source
 * is an index into SOURCES, which holds ranks; region.target is 0. With HOLDERS > 1 every element
 * is the reduction of SOURCES[region.source .. region.source + HOLDERS), in that order. READERS are
 * the ranks whose regions have an element of this rank's SEND, in any order. The rank waits for no
 * other rank. */
typedef struct weft_pull_args {
    uint32_t struct_size;
    uint32_t dtype, reduction, holders;
    void *regions;
    const int32_t *sources, *readers;
    uint32_t reader_count, reserved;
    const void *send;
    uint64_t send_bytes; /* peers read nothing of SEND beyond */
    void *recv;          /* does not overlap SEND */
    void *stream;
    uint64_t plan; /* since 1.1, with BINDING and STEP: as in weft_collective_args */
    uint32_t binding, step;
    /* DIVISOR, since 1.1, is what avg divides by; 0: HOLDERS. */
    uint32_t divisor, reserved_1_1;
} weft_pull_args;

typedef struct weft_comm_table {
    uint32_t struct_size, reserved;
    uint64_t signature; /* WEFT_COMM_SIGNATURE */
    /* Phase one, local: no word to other ranks. *ADDRESS, of any length, goes to all of them and
     * stays the communicator's until commit returns. [any] */
    weft_status (*prepare)(void *device, const weft_comm_options *options, void **comm,
                           weft_blob *address);
    /* Phase two, collective: all ranks prepared. ADDRESSES has one entry per rank. After a failure,
     * here or elsewhere, destroy follows. */
    weft_status (*commit)(void *comm, const weft_blob *addresses, const weft_exchange *exchange);
    /* Frees without talking to peers, windows that still stand included; NULL is accepted. Work
     * must be done, or the communicator aborted. */
    void (*destroy)(void *comm);
    /* End all pending and later work with WEFT_ERR_ABORTED, which async_error says from now on
     * unless it had another error before. Does not block; may be called twice. [any] */
    void (*abort)(void *comm);
    /* OK, or the error this communicator is stuck with. [any] */
    weft_status (*async_error)(void *comm);

    /* A pure function of QUERY, the same on all ranks. DEVICE may be NULL: what the plugin could do
     * at best. [any] */
    weft_status (*support)(void *device, const weft_support_query *query, uint32_t *level);
    /* Put a collective on its stream.  All ranks call in the same order. */
    weft_status (*collective)(void *comm, const weft_collective_args *args);
    /* Outside a group a send may wait for its receive; dtypes and counts of both agree. A plugin
     * without messages always answers WEFT_ERR_UNSUPPORTED. */
    weft_status (*send)(void *comm, const weft_message *message);
    weft_status (*receive)(void *comm, const weft_message *message);
    /* Operations between begin and end start together at the outermost end, so a send may wait for
     * a receive of the same group, also the rank's own. Groups nest. An error inside still needs
     * its end, which returns the first error and then starts nothing of the group. */
    weft_status (*group_begin)(void *comm);
    weft_status (*group_end)(void *comm);

    /* Collective, also for ranks that want nothing; done when RECV is complete and SEND is free
     * again. Where ranks cannot read each other's memory all of them say so with
     * WEFT_ERR_UNSUPPORTED before they look at ARGS; asked without REGIONS, a rank answers alone
     * and does nothing. optional: pack, all_to_all_v, unpack. */
    weft_status (*pull)(void *comm, const weft_pull_args *args);
    /* Collective over PARENT: members get a communicator as if prepared and committed with OPTIONS,
     * the rest (OPTIONS NULL) get NULL. optional: made afresh by prepare and commit. */
    weft_status (*split)(void *parent, const weft_comm_options *options, void **comm);
    /* optional: weft's own table. [any] */
    weft_status (*cost)(void *device, const weft_support_query *query, uint64_t bytes,
                        weft_cost *out);
    /* A vendor communicator as ours; still the caller's. optional. */
    weft_status (*wrap)(void *device, void *native, const weft_comm_options *options, void **comm);
    void *(*native)(void *comm); /* optional: NULL */
} weft_comm_table;

/* ---- symm: memory every rank of a communicator can reach (optional) ---------- */

/* Plain data that kernels compiled elsewhere can use. Arrays belong to the window and have SIZE
 * entries; a peer that is out of reach has NULL. */
typedef struct weft_symm_handle {
    uint32_t struct_size;
    int32_t rank, size;
    uint32_t signal_count;
    uint64_t bytes;
    void *const *buffers;     /* host array of peer base addresses */
    uint64_t *const *signals; /* host array of peer signal pads */
    void *multicast;          /* NULL where there is none */
    void *device_copy;        /* buffers then signals in device memory, or NULL */
} weft_symm_handle;

/* A window is BYTES of memory and SIGNALS 64-bit signals, zero at first, on each rank. In stream
 * order a get has its data and a put may have its source changed; that puts arrived is known after
 * quiet, and their order at one peer only across fence. A peer may be the rank itself. */
typedef struct weft_symm_table {
    uint32_t struct_size, reserved;
    uint64_t signature; /* WEFT_SYMM_SIGNATURE */
    /* Collective; differing sizes are WEFT_ERR_MISMATCH on every rank. */
    weft_status (*window_create)(void *comm, uint64_t bytes, uint32_t signals, void **window,
                                 void **local);
    /* Collective, and waits until all ranks are here; but for nobody on a communicator that is
     * stuck or aborted. Always ends the window; memory that peers may still reach stays mapped. */
    weft_status (*window_destroy)(void *window);
    /* Make user memory, which outlives it, a window. What cannot be shared is WEFT_ERR_UNSUPPORTED,
     * a size beyond its end WEFT_ERR_INVALID, on every rank. optional: only window_create. */
    weft_status (*window_register)(void *comm, void *memory, uint64_t bytes, uint32_t signals,
                                   void **window);
    weft_status (*handle)(void *window, weft_symm_handle *out); /* [any] */
    weft_status (*put)(void *window, uint64_t target_offset, const void *source, uint64_t bytes,
                       int32_t peer, void *stream);
    weft_status (*get)(void *window, void *target, uint64_t source_offset, uint64_t bytes,
                       int32_t peer, void *stream);
    /* The data is visible to whoever sees the signal's new value. */
    weft_status (*put_signal)(void *window, uint64_t target_offset, const void *source,
                              uint64_t bytes, uint32_t signal, uint64_t value, uint32_t op,
                              int32_t peer, void *stream);
    weft_status (*signal)(void *window, uint32_t signal, uint64_t value, uint32_t op, int32_t peer,
                          void *stream);
    /* Wait until the own SIGNAL, without sign, compares true with VALUE. */
    weft_status (*wait_signal)(void *window, uint32_t signal, uint32_t compare, uint64_t value,
                               int64_t timeout_ns, void *stream);
    weft_status (*fence)(void *window, void *stream);
    weft_status (*quiet)(void *window, void *stream);
    weft_status (*barrier)(void *window, void *stream); /* quiet and meet */
} weft_symm_table;

/* ---- kernel: local data movement and arithmetic (optional) ------------------- */

/* Every call is in stream order. */
typedef struct weft_kernel_table {
    uint32_t struct_size, reserved;
    uint64_t signature; /* WEFT_KERNEL_SIGNATURE */
    /* A list of regions made ready once and run many times; ELEMENT_BYTES is 1, 2, 4, 8 or 16.
     * Targets of one list do not overlap. [any] */
    weft_status (*regions_create)(void *device, uint32_t element_bytes, uint64_t count,
                                  const weft_region *regions, void **list);
    void (*regions_destroy)(void *list);
    /* Copy every region from sources[region.source] to targets[region.target]. */
    weft_status (*regions_copy)(void *list, const void *const *sources, void *const *targets,
                                void *stream);
    /* As copy, but each element is the reduction, in list order, of the SIZE buffers
     * sources[region.source .. region.source + SIZE). optional: weft copies, then calls reduce. */
    weft_status (*regions_reduce)(void *list, uint32_t dtype, uint32_t reduction, uint32_t size,
                                  const void *const *sources, void *const *targets, void *stream);
    /* target[i] = reduction over k of sources[k][i], in order; TARGET may be one of them. Neither
     * here nor in regions_reduce and pull is there a premul_sum. */
    weft_status (*reduce)(void *device, uint32_t dtype, uint32_t reduction, uint64_t count,
                          uint32_t size, const void *const *sources, void *target, void *stream);
    /* Round to nearest even, f8 saturating; to integers toward zero, saturating, NaN giving 0; to
     * bool, what is not zero is 1. Complex only to complex. Pairs may be UNSUPPORTED. */
    weft_status (*cast)(void *device, uint32_t from, uint32_t to, uint64_t count,
                        const void *source, void *target, void *stream);
    /* *SCALE and *VALUE: one element of DTYPE in host memory. */
    weft_status (*scale)(void *device, uint32_t dtype, uint64_t count, const void *scale,
                         void *data, void *stream);
    weft_status (*fill)(void *device, uint32_t dtype, uint64_t count, const void *value,
                        void *target, void *stream);
    /* Since 1.1: regions_reduce by avg with a DIVISOR, which is at least 1. optional: weft averages
     * in host memory. */
    weft_status (*regions_average)(void *list, uint32_t dtype, uint32_t size, uint32_t divisor,
                                   const void *const *sources, void *const *targets, void *stream);
} weft_kernel_table;

/* ---- the plugin -------------------------------------------------------------- */

/* Lives as long as the process, in the plugin's own image, and never changes. */
typedef struct weft_plugin {
    uint32_t struct_size;
    uint32_t abi_major, abi_minor;   /* WEFT_ABI_ of the header it was built with */
    uint32_t host_minor_needed;      /* oldest host minor it can work with */
    const char *name;                /* as in libweft_plugin_NAME.so: [a-z0-9-] */
    const char *version;             /* the plugin's own */
    const char *build;               /* equal on two ranks iff the same build */
    const char *description;         /* one line for `weft info` */
    const weft_device_table *device; /* required */
    const weft_comm_table *comm;     /* NULL: memory only */
    const weft_symm_table *symm;     /* NULL: no symmetric memory */
    const weft_kernel_table *kernel; /* NULL: no redistributions */
} weft_plugin;

/* The one exported symbol. Cheap; touches no vendor library. NULL refuses the host, after set_error
 * has described the reason. [once] */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const weft_plugin *
weft_plugin_entry(const weft_host *host);

#ifdef __cplusplus
}
#endif
#endif
