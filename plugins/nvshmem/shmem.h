/* shmem.h - a backend on NVSHMEM, whose heap is device memory that all ranks access by load and
 * store.
 *
 * The first communicator initializes NVSHMEM, once per process.  NVSHMEM provides the bootstrap and
 * one large piece of symmetric memory, the arena.  All other memory, from weft_alloc to control
 * blocks, is allocated from the arena, at offsets that differ between ranks.  The kernels of
 * plugins/kernels/onesided_*.h access it. */
#ifndef WEFT_NVSHMEM_SHMEM_H
#define WEFT_NVSHMEM_SHMEM_H

#include "comm/gpu_comm.h"
#include "library/shmem_api.h"

/* ---- shmem_load.c: the library ---- */

extern struct shmem_api shmem_api; /* filled by shmem_load */
extern struct gpu_library shmem_library;

/* Open the library and its bootstrap module, once.  WEFT_ERR_NO_LIBRARY, _OLD_LIBRARY. */
weft_status shmem_load(void);
weft_status shmem_probe(weft_probe *out);
/* Major, minor, patch; zeros if unknown. */
void shmem_version(int32_t version[3]);

/* ---- shmem_heap.c: allocation from one piece of memory ---- */

#define SHMEM_HEAP_ALIGNMENT 256u

struct shmem_heap_block {
    uint64_t offset, bytes;
    bool used;
};

/* Blocks are in the order of their offsets, without gaps. */
struct shmem_heap {
    uint64_t bytes, used;
    struct shmem_heap_block *blocks;
    size_t count, room;
};

/* The heap exists until the process ends. */
weft_status shmem_heap_open(struct shmem_heap *heap, uint64_t bytes);
/* WEFT_ERR_NO_MEMORY names the requested and the free bytes. */
weft_status shmem_heap_take(struct shmem_heap *heap, uint64_t bytes, uint64_t *offset);
/* Bytes of the largest free block. */
uint64_t shmem_heap_largest(const struct shmem_heap *heap);
/* False if no used block starts at OFFSET. */
bool shmem_heap_give(struct shmem_heap *heap, uint64_t offset);
/* The used block that contains OFFSET, or NULL. */
const struct shmem_heap_block *shmem_heap_find(const struct shmem_heap *heap, uint64_t offset);

/* ---- shmem_job.c: NVSHMEM in this process ---- */

/* Properties of a rank that peers need while a communicator is created. */
struct shmem_entry {
    int32_t pe;     /* -1: NVSHMEM is not initialized in this process */
    int32_t status; /* of all steps so far */
    uint64_t job;   /* equal iff NVSHMEM was initialized together */
    uint64_t control;
    struct shmem_id id; /* of the first rank */
    uint64_t library;   /* identifies the usable collectives of NVSHMEM; 0: none */
    uint64_t team_id;   /* of the first rank */
    int32_t team;       /* number of the created team, or 0 */
    char reason[384];   /* text of a STATUS other than WEFT_OK */
};

/* The job of all processes that initialized NVSHMEM together.  Written once. */
struct shmem_job {
    bool is_set_up; /* the library's variables are set */
    bool is_begun;
    weft_status refused; /* the reason why it cannot be used */
    char reason[512];
    int32_t pe, pes;
    uint64_t number;
    char *arena;    /* of this process */
    char **arenas;  /* of each process, as mapped here */
    uint64_t bytes; /* size of each arena */
    int32_t ordinal;
    struct shmem_heap heap; /* the first part of the arena, for users */
    struct shmem_heap own;  /* the second part, for the plugin's own small allocations */
    uint64_t slot_bytes;    /* slot of each team in the rest of the arena; 0: no teams */
    atomic_bool is_lost;    /* a kernel of NVSHMEM never ends, so creating a team would block */
};
extern struct shmem_job shmem_job;

/* Set the environment variables that NVSHMEM reads at its first call, for the ranks of COMM.
 * Variables that the user has set are kept.  Done once per process, and only while COMM is
 * prepared: the host reads no variable then. */
void shmem_job_set_up(struct gpu_comm *comm);
/* Fill in *MINE.  The first rank adds an id if NVSHMEM is not initialized yet. */
weft_status shmem_job_describe(struct gpu_comm *comm, struct shmem_entry *mine);
/* Initialize NVSHMEM with the ranks of COMM, or check that all of them are in one job already. */
weft_status shmem_job_join(struct gpu_comm *comm, const struct shmem_entry *all);

/* ---- shmem_arena.c ---- */

/* The owner of memory of the arena.  Users have one part.  Communicators and windows have another
 * part, and use the users' part when theirs is full. */
enum shmem_part { SHMEM_USERS, SHMEM_OWN };

/* Divide the arena, of BYTES, into its parts. */
weft_status shmem_arena_open(uint64_t bytes);
/* Allocate BYTES from PART of the arena. */
weft_status shmem_arena_take(enum shmem_part part, uint64_t bytes, void **pointer);
/* Maximum size, in bytes, of the next allocation for users. */
uint64_t shmem_arena_left(void);
bool shmem_arena_give(void *pointer);
/* True if all BYTES at POINTER lie in the arena, allocated or not.  *OFFSET is their offset. */
bool shmem_arena_holds(const void *pointer, uint64_t bytes, uint64_t *offset);
bool shmem_arena_block(const void *pointer, void **base, uint64_t *bytes);

/* ---- shmem_freed.c: memory that is free once a stream has reached a point ---- */

/* Give POINTER back to the arena when STREAM has completed what it has now. */
weft_status shmem_freed_add(struct gpu_device *device, void *pointer, void *stream);
/* Give memory back whose streams have reached their points: ALL of it, or the oldest until a stream
 * that is still behind. */
void shmem_freed_return(struct gpu_device *device, bool all);
/* Zeroed arena memory. */
weft_status shmem_arena_take_zeroed(struct gpu_device *device, enum shmem_part part, uint64_t bytes,
                                    void **pointer);

/* ---- shmem_size.c, shmem_guard.c: checks before NVSHMEM is called ---- */

/* Size of the arena that the user requested; 0: the default. */
weft_status shmem_size_requested(uint64_t *bytes);
/* Bytes of device memory that NVSHMEM needs in addition to the arena. */
uint64_t shmem_size_reserve(void);
struct shmem_facts;
/* Set the requested size in FACTS for SHARERS ranks on the device, unless the user has set it. */
void shmem_size_choose(struct shmem_facts *facts, uint64_t sharers);
/* The maximum size of the arena for these FACTS, plus the memory that NVSHMEM needs in addition. */
uint64_t shmem_size_most(const struct shmem_facts *facts);
/* The size that fits on all ranks; equal on all of them.  WEFT_ERR_NO_MEMORY names a rank that
 * lacks memory. */
weft_status shmem_size_agree(const struct gpu_comm *comm, const weft_blob *addresses,
                             uint64_t *arena);
/* WEFT_OK if NVSHMEM can be initialized with these ranks; equal on all of them. */
weft_status shmem_guard_begin(const struct gpu_comm *comm, const weft_blob *addresses);
/* WEFT_OK if work can be posted to STREAM.  *RECORDED: it is captured into a graph.  Within a
 * scope. */
weft_status shmem_guard_stream(vendor_stream stream, bool *recorded);
/* WEFT_OK if the device works and has at least WANTED bytes free.  Waits for it.  Within a scope.
 */
weft_status shmem_guard_device(uint64_t wanted);
/* A kernel of NVSHMEM on DEVICE never ends.  The plugin then calls no function of the driver that
 * would wait for it, and does not free memory. */
void shmem_job_lose(struct gpu_device *device);

/* ---- shmem_device.c: entries of the device table that differ from gpu/ ---- */

weft_status shmem_pe_open(const weft_device_options *options, void **device);
void shmem_pe_close(void *device);
weft_status shmem_pe_describe(void *device, weft_device_info *out);
weft_status shmem_pe_allocate(void *device, uint64_t bytes, uint32_t kind, void **pointer);
weft_status shmem_pe_free(void *device, void *pointer);
weft_status shmem_pe_allocate_on(void *device, uint64_t bytes, void *stream, void **pointer);
weft_status shmem_pe_free_on(void *device, void *pointer, void *stream);
/* These do not wait for a collective of NVSHMEM that never ends. */
weft_status shmem_pe_stream_query(void *device, void *stream);
weft_status shmem_pe_stream_wait(void *device, void *stream, int64_t timeout_ns);
void shmem_pe_stream_destroy(void *device, void *stream);
weft_status shmem_pe_query_pointer(void *device, const void *pointer, weft_pointer_info *out);

/* ---- shmem_kernel.c: launches ---- */

enum shmem_onesided {
    SHMEM_SYNC,
    SHMEM_PULL, /* by word */
    SHMEM_PULL_TURNED,
    SHMEM_PULL_REDUCE, /* by dtype */
    SHMEM_PULL_CAST,   /* by dtype of the sources */
    SHMEM_GATHER_REDUCE,
    SHMEM_MOVE,
    SHMEM_POST,
    SHMEM_FETCH,
    SHMEM_DECLINE
};

weft_status shmem_onesided_open(struct gpu_device *device);
void shmem_onesided_close(struct gpu_device *device);
/* Within a scope. */
weft_status shmem_onesided_launch(const struct gpu_comm *comm, enum shmem_onesided family,
                                  uint32_t variant, uint64_t blocks, const void *args,
                                  vendor_stream stream);
/* The built-in images that contain these kernels. */
const void *shmem_onesided_image(size_t index);

/* ---- shmem_comm.c, shmem_life.c: communicators ---- */

/* Properties of a rank that peers need before a communicator is created. */
struct shmem_facts {
    uint32_t bytes;
    int32_t process;
    uint64_t memory;    /* total memory of its device */
    uint64_t available; /* free memory of its device */
    uint64_t requested; /* requested size of the arena; 0: the default */
    uint64_t reserve;   /* memory that NVSHMEM needs in addition */
    int32_t version[3]; /* of NVSHMEM */
    char uuid[64];
};

/* Arena memory of a communicator that can grow.  Smaller predecessors are kept until the
 * communicator ends if recorded graphs may use them. */
struct shmem_stage {
    void *memory;
    uint64_t bytes;
};

struct gpu_comm {
    struct gpu_device *device;
    int32_t rank, size;
    uint32_t flags;
    int64_t timeout_ns;
    int32_t *world_ranks;
    uint64_t *host_ids;
    char name[96];
    struct shmem_facts facts;
    uint64_t device_number, device_count; /* index of this rank's device among the devices of all
                                             ranks, and their number */
    uint64_t sharers;                     /* ranks on this rank's device */
    uint64_t arena_bytes;                 /* size with which NVSHMEM is initialized, if it is not
                                             yet */
    uint32_t multiprocessors;             /* of this rank's share of the device */
    atomic_bool is_ready;

    struct wk_control *control; /* in the arena */
    struct wk_peer *peers;      /* host copy */
    struct wk_peer *device_peers;
    struct shmem_stage table; /* addresses */
    struct wk_report *report; /* pinned */
    struct shmem_stage send_stage, recv_stage;
    void **retired; /* outgrown stages */
    size_t retired_count;
    uint64_t lacking;   /* bytes of the arena that an operation could not allocate */
    bool has_withdrawn; /* for that reason, and has offered nothing since the last complete
                           operation */

    /* Operations run one after the other, on any streams. */
    vendor_event last;
    vendor_stream last_stream;
    bool has_last;
    bool is_recorded; /* some operations are in a graph, so they may run again at any time */

    pthread_mutex_t lock;
    char error_text[512];
    gpu_look *look;
    _Atomic weft_status error; /* of the cause */

    struct gpu_group group;
    struct gpu_window *windows;
    void *match_memory; /* of shmem_match.c, in the arena; SIDE is its stream */
    vendor_stream side;
    void *heard;                /* gathered data, by rank */
    int32_t team;               /* of NVSHMEM; 0: none, so its collectives are not used */
    uint64_t failed_ns;         /* time at which the failure was noticed, if there is a team */
    struct gpu_comm *next_team; /* list of the communicators with a team */
};

/* ---- shmem_facts.c ---- */

struct shmem_facts shmem_facts_of(const weft_blob *address);
bool shmem_same_device(const struct gpu_comm *comm, const weft_blob *addresses, int32_t a,
                       int32_t b);
/* The number of ranks on the device of rank R. */
uint64_t shmem_sharers_of(const struct gpu_comm *comm, const weft_blob *addresses, int32_t r);

/* ---- shmem_life.c ---- */

/* Fail the communicator if a kernel has reported a failure. */
gpu_look shmem_comm_look;

/* Pinned memory for reports of kernels.  Released memory is reused. */
weft_status shmem_report_take(struct gpu_comm *comm);
void shmem_report_give(struct gpu_comm *comm);

/* ---- shmem_run.c: posting operations to streams ---- */

/* Begin and end the posting of work to STREAM for COMM.  Within a scope. */
weft_status shmem_turn_begin(struct gpu_comm *comm, vendor_stream stream);
void shmem_turn_end(struct gpu_comm *comm, vendor_stream stream);
/* Wait for STREAM.  Returns the communicator's error if it fails meanwhile. */
weft_status shmem_turn_await(struct gpu_comm *comm, vendor_stream stream);
struct wk_channel shmem_channel(const struct gpu_comm *comm);

/* Make STAGE at least BYTES large.  The old content is lost. */
weft_status shmem_stage_grow(struct gpu_comm *comm, struct shmem_stage *stage, uint64_t bytes);
/* *OFFSET in the arena is the offset at which peers read BYTES of POINTER.  Data outside the arena,
 * data that is not aligned to 16 bytes, and COPIED data is copied to the stage first, in stream
 * order. */
weft_status shmem_stage_send(struct gpu_comm *comm, const void *pointer, uint64_t bytes,
                             bool copied, vendor_stream stream, uint64_t *offset);

/* One operation.  OFFERS, one per peer, replaces send and send_step. */
struct shmem_sync {
    struct wk_sync wk;
    const uint64_t *offers;
    const int32_t *list; /* NULL: all ranks in order */
    vendor_stream stream;
};
struct shmem_sync shmem_sync_make(const struct gpu_comm *comm, vendor_stream stream);
/* True if one kernel of BLOCKS blocks may open the operation, do its work and close it. */
bool shmem_sync_is_small(const struct gpu_comm *comm, const struct shmem_sync *sync,
                         uint64_t blocks);
/* Set up SYNC for that kernel. */
void shmem_sync_fuse(struct shmem_sync *sync, uint64_t blocks);
/* Open the operation before kernels that do not wait.  The last kernel, of BLOCKS blocks, closes
 * it. */
weft_status shmem_sync_open(struct gpu_comm *comm, struct shmem_sync *sync);
void shmem_sync_close(struct shmem_sync *sync, uint64_t blocks);
/* Close the operation with a kernel that does nothing else. */
weft_status shmem_sync_close_alone(struct gpu_comm *comm, struct shmem_sync *sync);

/* Post a kernel that ends when all ranks have reached it. */
weft_status shmem_sync_all(struct gpu_comm *comm, vendor_stream stream);

/* ---- shmem_decline.c: a rank that cannot take part in an operation ---- */

/* This rank cannot take part in the operation; STATUS and its last failure are the cause.  COMM
 * fails with it on all ranks: here at once, on peers when they wait for this rank.  Returns STATUS.
 * Within a scope. */
weft_status shmem_decline(struct gpu_comm *comm, weft_status status, vendor_stream stream);
/* Text and status for the code word with which a peer declined. */
weft_status shmem_describe_declined(const struct gpu_comm *comm, uint64_t word, char *out,
                                    size_t size);

/* ---- shmem_support.c ---- */

weft_status shmem_comm_cost(void *device, const weft_support_query *query, uint64_t bytes,
                            weft_cost *out);

/* ---- shmem_collective.c, shmem_messages.c, shmem_batch.c, shmem_match.c, shmem_pull.c ---- */

/* Called within a scope and outside a turn.  Uses NVSHMEM if the communicator has a team and
 * NVSHMEM has the collective.  Otherwise, or if ALONE, uses this plugin's kernels. */
weft_status shmem_collective_run(struct gpu_comm *comm, const struct gpu_op *op);
weft_status shmem_collective_run_alone(struct gpu_comm *comm, const struct gpu_op *op);
weft_status shmem_messages_run(struct gpu_comm *comm, const struct gpu_op *ops, size_t count);
/* WEFT_COMM_CHECK: compare this call with those of all ranks.  WEFT_ERR_MISMATCH names two ranks
 * that differ. */
weft_status shmem_match(struct gpu_comm *comm, const struct gpu_op *op);
/* Gather BYTES, at most SHMEM_GATHER_MAX, from each rank through the arena.  Waits.  *ALL has them
 * in the order of the ranks, belongs to COMM and is valid until the next call. */
enum { SHMEM_GATHER_MAX = 64 };
weft_status shmem_gather_small(struct gpu_comm *comm, const void *mine, uint64_t bytes,
                               const void **all);
/* Allocate the memory and stream of shmem_gather_small.  Within a scope. */
weft_status shmem_gather_prepare(struct gpu_comm *comm);

weft_status shmem_comm_pull(void *comm, const weft_pull_args *args);
weft_status shmem_comm_pull_cast(void *comm, const weft_pull_args *args, uint32_t to);

/* ---- shmem_team.c, shmem_library.c: NVSHMEM's collectives ---- */

/* Time that a kernel of NVSHMEM gets to end after an abort. */
#define SHMEM_LIBRARY_GRACE_NS UINT64_C(2000000000)

enum { SHMEM_TEAM_SLOTS = 32 }; /* more teams than NVSHMEM has by default */

/* *FOUND identifies the collectives that the library has.  It is 0 if the user did not request them
 * or the library has none, and equal on two ranks iff these have the same. */
weft_status shmem_team_requested(uint64_t *found);
/* Bytes of an arena of BYTES for each team, from the entries of all ranks of the job. */
uint64_t shmem_team_slot(uint64_t bytes, const struct shmem_entry *all, int32_t size);
/* True if the ranks of COMM can have a team.  Equal on all of them. */
bool shmem_team_is_wanted(const struct gpu_comm *comm, const struct shmem_entry *all);
/* True if this rank can create one.  Within a scope; waits for the device. */
bool shmem_team_is_safe(void);
/* Create a team.  Collective.  Returns its number, or 0.  Within a scope; waits for the device. */
int32_t shmem_team_make(const struct gpu_comm *comm, const struct shmem_entry *all);
/* Use the team if all ranks created it. */
void shmem_team_settle(struct gpu_comm *comm, const struct shmem_entry *mine,
                       const struct shmem_entry *all);
void shmem_team_release(struct gpu_comm *comm);
/* The error of a communicator whose collective blocks STREAM permanently, or WEFT_OK.  Within a
 * scope. */
weft_status shmem_team_hangs(vendor_stream stream);
/* A communicator with a team has ended.  Stop watching it. */
void shmem_team_forget(struct gpu_comm *comm);

/* Look up the collectives of the library. */
void shmem_library_find(void);
uint64_t shmem_library_found(void);
/* True if NVSHMEM runs OP.  Equal on all ranks. */
bool shmem_library_takes(const struct gpu_comm *comm, const struct gpu_op *op);
/* Within a scope and a turn. */
weft_status shmem_library_run(struct gpu_comm *comm, const struct gpu_op *op);

/* ---- shmem_window.c: creation and destruction of windows ---- */

struct gpu_window {
    struct gpu_comm *comm;
    uint64_t bytes;
    uint32_t signals;
    uint32_t number; /* of the window on its communicator; equal on all ranks */
    void *memory;
    uint64_t *pad;
    bool is_registered; /* MEMORY belongs to the caller */
    void **buffers;     /* by rank */
    uint64_t **pads;
    void *device_copy;
    struct gpu_waits waits;
    struct gpu_window *next;
};
/* True if no kernel waits for a signal. */
bool shmem_windows_are_idle(const struct gpu_comm *comm);
/* Drop the windows of a communicator that ends. */
void shmem_windows_drop(struct gpu_comm *comm, bool cleanly);
weft_status shmem_window_register(void *comm, void *memory, uint64_t bytes, uint32_t signals,
                                  void **window);

#endif
