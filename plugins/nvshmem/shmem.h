/* shmem.h - a backend on NVSHMEM: its heap is device memory that all ranks reach by load and store.
 *
 * NVSHMEM is begun once per process, by the first communicator, and serves as bootstrap and as the
 * owner of one large piece of symmetric memory, the arena.  Everything else, from the allocations
 * of weft_alloc to control blocks, lies inside the arena at offsets of each rank's own, and is
 * moved by the kernels of plugins/kernels/onesided_*.h. */
#ifndef WEFT_NVSHMEM_SHMEM_H
#define WEFT_NVSHMEM_SHMEM_H

#include "gpu_comm.h"
#include "shmem_api.h"

/* ---- shmem_load.c: the library ---- */

extern struct wf_shmem_api wf_shmem; /* filled by wf_shmem_load */
extern struct wf_library wf_shmem_library;

/* Opened once, with its bootstrap module.  WEFT_ERR_NO_LIBRARY, _OLD_LIBRARY. */
weft_status wf_shmem_load(void);
weft_status wf_shmem_probe(weft_probe *out);
/* Major, minor, patch; zeros if the library does not say. */
void wf_shmem_version(int32_t version[3]);

/* ---- shmem_heap.c: parts of one piece of memory ---- */

#define WF_HEAP_ALIGNMENT 256u

struct wf_heap_block {
    uint64_t offset, bytes;
    bool used;
};

/* Blocks lie in order of their offsets and leave no gaps. */
struct wf_heap {
    uint64_t bytes, used;
    struct wf_heap_block *blocks;
    size_t count, room;
};

weft_status wf_heap_open(struct wf_heap *heap, uint64_t bytes);
void wf_heap_close(struct wf_heap *heap);
/* WEFT_ERR_NO_MEMORY says what was wanted and what is left. */
weft_status wf_heap_take(struct wf_heap *heap, uint64_t bytes, uint64_t *offset);
/* Bytes of the largest free block. */
uint64_t wf_heap_largest(const struct wf_heap *heap);
/* False: no used block starts at OFFSET. */
bool wf_heap_give(struct wf_heap *heap, uint64_t offset);
/* The used block that OFFSET lies in, or NULL. */
const struct wf_heap_block *wf_heap_find(const struct wf_heap *heap, uint64_t offset);

/* ---- shmem_job.c: NVSHMEM as this process takes part in it ---- */

/* What a rank says of itself while a communicator is made. */
struct wf_entry {
    int32_t pe;     /* -1: NVSHMEM is not begun here */
    int32_t status; /* of everything so far */
    uint64_t job;   /* equal iff begun together */
    uint64_t control;
    struct shmem_id id; /* the first rank's */
    uint64_t library;   /* which of NVSHMEM's collectives can be used; 0: none */
    uint64_t team_id;   /* the first rank's */
    int32_t team;       /* made, or 0 */
    char reason[384];   /* of a status that is not WEFT_OK */
};

/* The job that all processes which began NVSHMEM together are in.  Written once. */
struct wf_job {
    bool is_set_up; /* the library's variables are set */
    bool is_begun;
    weft_status refused; /* why it cannot be used */
    char reason[512];
    int32_t pe, pes;
    uint64_t number;
    char *arena;    /* of this process */
    char **arenas;  /* of each process, as seen here */
    uint64_t bytes; /* of each */
    int32_t ordinal;
    struct wf_heap heap; /* the arena's first part */
    struct wf_heap own;  /* then that of the plugin's own small things */
    uint64_t slot_bytes; /* of the arena, behind both, for each team; 0: no teams */
    atomic_bool is_lost; /* a kernel of NVSHMEM's never ends: making a team would wait for it */
};
extern struct wf_job wf_job;

/* Set what NVSHMEM reads from the environment when it is first called, to what suits the ranks of
 * COMM, unless the user has.  Once in a process, and only while COMM is prepared: the host reads no
 * variable then. */
void wf_job_set_up(struct wf_comm *comm);
/* Say who this rank is; its first rank adds an id if NVSHMEM is yet to be begun. */
weft_status wf_job_introduce(struct wf_comm *comm, struct wf_entry *mine);
/* Begin NVSHMEM with the ranks of COMM, or find that all of them are in one job already. */
weft_status wf_job_join(struct wf_comm *comm, const struct wf_entry *all);

/* A kernel of NVSHMEM's never ends on DEVICE: nothing of the driver's that waits for it is called
 * any more, and what it would free stays. */
void wf_job_lose(struct wf_gpu_device *device);

/* Whose memory of the arena it is.  What users fill is not what communicators and windows need for
 * themselves; that goes on in the users' part when its own is full. */
enum wf_part { WF_USERS, WF_OWN };

/* Memory of the arena, on the device it is on. */
weft_status wf_arena_take(enum wf_part part, uint64_t bytes, void **pointer);
/* The most that can be taken for users at once. */
uint64_t wf_arena_left(void);
bool wf_arena_give(void *pointer);
/* Do all BYTES at POINTER lie in the arena, used or not?  *OFFSET is where. */
bool wf_arena_holds(const void *pointer, uint64_t bytes, uint64_t *offset);
bool wf_arena_block(const void *pointer, void **base, uint64_t *bytes);

/* ---- shmem_size.c, shmem_guard.c: before NVSHMEM is called ---- */

/* What the user wants the arena to be; 0: what suits. */
weft_status wf_size_wish(uint64_t *bytes);
/* Bytes of device memory that NVSHMEM needs besides the arena. */
uint64_t wf_size_reserve(void);
struct wf_facts;
/* Let FACTS wish what suits if SHARERS ranks are on the device, unless the user has a wish. */
void wf_size_choose(struct wf_facts *facts, uint64_t sharers);
/* The most that ranks can agree on with these FACTS, and what NVSHMEM needs besides. */
uint64_t wf_size_most(const struct wf_facts *facts);
/* What fits on all ranks, the same on all of them; WEFT_ERR_NO_MEMORY says what one lacks. */
weft_status wf_size_agree(const struct wf_comm *comm, const weft_blob *addresses, uint64_t *arena);
/* Would NVSHMEM begin with these ranks?  The same on all of them. */
weft_status wf_guard_begin(const struct wf_comm *comm, const weft_blob *addresses);
/* Can work be put on STREAM, and is that RECORDED?  Within a scope. */
weft_status wf_guard_stream(gpu_stream stream, bool *recorded);
/* Is the device well, with at least WANTED bytes free?  Waits for it.  Within a scope. */
weft_status wf_guard_device(uint64_t wanted);

/* ---- shmem_device.c: what the device table does in its own way ---- */

weft_status wf_pe_open(const weft_device_options *options, void **device);
void wf_pe_close(void *device);
weft_status wf_pe_describe(void *device, weft_device_info *out);
weft_status wf_pe_allocate(void *device, uint64_t bytes, uint32_t kind, void **pointer);
weft_status wf_pe_free(void *device, void *pointer);
/* These do not wait for a collective of NVSHMEM's that never ends. */
weft_status wf_pe_stream_query(void *device, void *stream);
weft_status wf_pe_stream_wait(void *device, void *stream, int64_t timeout_ns);
void wf_pe_stream_destroy(void *device, void *stream);
weft_status wf_pe_query_pointer(void *device, const void *pointer, weft_pointer_info *out);

/* ---- shmem_kernel.c: launching ---- */

enum wf_onesided {
    WF_MEET,
    WF_PULL, /* by word */
    WF_PULL_TURNED,
    WF_PULL_REDUCE, /* by dtype */
    WF_GATHER_REDUCE,
    WF_MOVE,
    WF_POST,
    WF_FETCH,
    WF_DECLINE
};

weft_status wf_onesided_open(struct wf_gpu_device *device);
void wf_onesided_close(struct wf_gpu_device *device);
/* Within a scope. */
weft_status wf_onesided_launch(const struct wf_comm *comm, enum wf_onesided family,
                               uint32_t variant, uint64_t blocks, const void *args,
                               gpu_stream stream);
/* The images built into the plugin that hold these kernels. */
const void *wf_onesided_image(size_t index);

/* ---- shmem_comm.c, shmem_life.c: communicators ---- */

/* What each rank tells the others before a communicator is made. */
struct wf_facts {
    uint32_t bytes;
    int32_t process;
    uint64_t memory;    /* of its device */
    uint64_t available; /* of that, and free */
    uint64_t wish;      /* for the arena; 0: what suits */
    uint64_t reserve;   /* what NVSHMEM needs besides */
    int32_t version[3]; /* of NVSHMEM */
    char uuid[64];
};
struct wf_facts wf_facts_of(const weft_blob *address);

/* Arena memory of a communicator that grows.  What it grew out of is kept to the end if recorded
 * graphs may use it. */
struct wf_stage {
    void *memory;
    uint64_t bytes;
};

struct wf_comm {
    struct wf_gpu_device *device;
    int32_t rank, size;
    uint32_t flags;
    int64_t timeout_ns;
    int32_t *world_ranks;
    uint64_t *host_ids;
    char name[96];
    struct wf_facts facts;
    uint64_t device_number, device_count; /* of the ranks' devices, and which is this rank's */
    uint64_t sharers;                     /* ranks on this rank's device */
    uint64_t arena_bytes;                 /* to begin NVSHMEM with, if that is yet to be done */
    uint32_t multiprocessors;             /* of this rank's part of it */
    atomic_bool is_ready;

    struct wk_control *control; /* in the arena */
    struct wk_peer *peers;      /* host copy */
    struct wk_peer *device_peers;
    struct wf_stage table;    /* of addresses */
    struct wk_report *report; /* pinned */
    struct wf_stage send_stage, recv_stage;
    void **retired; /* stages that were outgrown */
    size_t retired_count;
    uint64_t lacking;   /* bytes of the arena for which an operation could not begin */
    bool has_withdrawn; /* for that, and offered nothing since the last one that ended */

    /* Operations run one after the other, whatever streams they are on. */
    gpu_event last;
    gpu_stream last_stream;
    bool has_last;
    bool is_recorded; /* some of them, so that they may run again at any time */

    pthread_mutex_t lock;
    char error_text[512];
    _Atomic weft_status error; /* what it is stuck with */

    struct wf_group group;
    struct wf_window *windows;
    void *match_memory; /* of shmem_match.c, in the arena, with a stream of its own */
    gpu_stream side;
    void *heard;               /* there, by rank */
    int32_t team;              /* of NVSHMEM; 0: none, so its collectives are not used */
    uint64_t failed_ns;        /* when that was noticed, where there is a team */
    struct wf_comm *next_team; /* of those that have one */
};

bool wf_same_device(const struct wf_comm *comm, const weft_blob *addresses, int32_t a, int32_t b);
/* How many ranks are on the device of rank R. */
uint64_t wf_sharers_of(const struct wf_comm *comm, const weft_blob *addresses, int32_t r);

/* Zeroed arena memory. */
weft_status wf_arena_take_zeroed(struct wf_gpu_device *device, enum wf_part part, uint64_t bytes,
                                 void **pointer);

/* Pinned memory in which kernels report; kept for the next when given back. */
weft_status wf_report_take(struct wf_comm *comm);
void wf_report_give(struct wf_comm *comm);

/* ---- shmem_run.c: putting operations on streams ---- */

/* Around everything that is put on STREAM for COMM.  Within a scope. */
weft_status wf_turn_begin(struct wf_comm *comm, gpu_stream stream);
void wf_turn_end(struct wf_comm *comm, gpu_stream stream);
/* Wait for STREAM; the communicator's error if it gets stuck. */
weft_status wf_turn_await(struct wf_comm *comm, gpu_stream stream);
struct wk_channel wf_channel(const struct wf_comm *comm);

/* At least BYTES of arena memory for STAGE; what was there is lost. */
weft_status wf_stage_grow(struct wf_comm *comm, struct wf_stage *stage, uint64_t bytes);
/* Where peers find BYTES at POINTER: *OFFSET in the arena.  Memory that lies elsewhere, or is not
 * aligned to 16 bytes, or must be COPIED, goes to the stage first, in stream order. */
weft_status wf_stage_send(struct wf_comm *comm, const void *pointer, uint64_t bytes, bool copied,
                          gpu_stream stream, uint64_t *offset);

/* One operation.  OFFERS, one for each peer, stand in for send and send_step. */
struct wf_meet {
    struct wk_meeting meeting;
    const uint64_t *offers;
    const int32_t *list; /* NULL: all ranks in order */
    gpu_stream stream;
};
struct wf_meet wf_meet_make(const struct wf_comm *comm, gpu_stream stream);
/* May one kernel of BLOCKS open the operation, do its work and close it? */
bool wf_meet_is_small(const struct wf_comm *comm, const struct wf_meet *meet, uint64_t blocks);
/* For that kernel. */
void wf_meet_fuse(struct wf_meet *meet, uint64_t blocks);
/* In front of kernels that do not wait; the last of them, of BLOCKS, closes the operation. */
weft_status wf_meet_open(struct wf_comm *comm, struct wf_meet *meet);
void wf_meet_close(struct wf_meet *meet, uint64_t blocks);
/* By a kernel that does nothing else. */
weft_status wf_meet_close_alone(struct wf_comm *comm, struct wf_meet *meet);

/* ---- shmem_decline.c: not coming ---- */

/* This rank cannot do its part, which STATUS and its last failure say why.  All ranks' COMM is
 * stuck with that: here at once, elsewhere when they wait for this rank.  Returns STATUS.  Within a
 * scope.
 */
weft_status wf_decline(struct wf_comm *comm, weft_status status, gpu_stream stream);
/* What a peer's word for it says. */
weft_status wf_explain_declined(const struct wf_comm *comm, uint64_t word, char *out, size_t size);

/* ---- shmem_support.c ---- */

weft_status wf_comm_cost(void *device, const weft_support_query *query, uint64_t bytes,
                         weft_cost *out);

/* ---- shmem_collective.c, shmem_mail.c, shmem_batch.c, shmem_match.c, shmem_pull.c ---- */

/* Within a scope and a turn of their own.  By NVSHMEM where the communicator has a team and NVSHMEM
 * has the collective, else, or ALONE, by this plugin's kernels. */
weft_status wf_collective_run(struct wf_comm *comm, const struct wf_op *op);
weft_status wf_collective_run_alone(struct wf_comm *comm, const struct wf_op *op);
/* A kernel that ends when all ranks have come to it. */
weft_status wf_meet_all(struct wf_comm *comm, gpu_stream stream);
weft_status wf_mail_run(struct wf_comm *comm, const struct wf_op *ops, size_t count);
/* WEFT_COMM_CHECK: do all ranks call the same?  WEFT_ERR_MISMATCH names two that differ. */
weft_status wf_match(struct wf_comm *comm, const struct wf_op *op);
/* MINE of all ranks in order, through the arena; BYTES at most WF_GATHER_MOST.  Waits.  *ALL is
 * COMM's, until the next call. */
enum { WF_GATHER_MOST = 64 };
weft_status wf_gather_small(struct wf_comm *comm, const void *mine, uint64_t bytes,
                            const void **all);
/* What that needs, taken beforehand.  Within a scope. */
weft_status wf_gather_prepare(struct wf_comm *comm);

weft_status wf_comm_pull(void *comm, const weft_pull_args *args);

/* ---- shmem_team.c, shmem_library.c: NVSHMEM's own collectives ---- */

/* How long a kernel of NVSHMEM's gets to end after an abort. */
#define WF_LIBRARY_PATIENCE_NS UINT64_C(2000000000)

enum { WF_TEAM_SLOTS = 32 }; /* more teams than NVSHMEM has by default */

/* Does the user want them, and which does the library have?  *FOUND is 0 for none, and equal on two
 * ranks iff they have the same. */
weft_status wf_team_wish(uint64_t *found);
/* How much of an arena of BYTES each team gets, given what all ranks of the job say. */
uint64_t wf_team_slot(uint64_t bytes, const struct wf_entry *all, int32_t size);
/* Can the ranks of COMM have a team?  The same on all of them. */
bool wf_team_is_wanted(const struct wf_comm *comm, const struct wf_entry *all);
/* May this rank make one?  Within a scope; waits for the device. */
bool wf_team_is_safe(void);
/* Make it, together: its number, or 0.  Within a scope; waits for the device. */
int32_t wf_team_make(const struct wf_comm *comm, const struct wf_entry *all);
/* Use it if all ranks made it. */
void wf_team_settle(struct wf_comm *comm, const struct wf_entry *mine, const struct wf_entry *all);
void wf_team_release(struct wf_comm *comm);
/* The error of a communicator whose collective keeps STREAM waiting for ever, or WEFT_OK.  Within a
 * scope. */
weft_status wf_team_hangs(gpu_stream stream);
/* A communicator with a team is ended: look at it no more. */
void wf_team_forget(struct wf_comm *comm);

/* Look up what the library has. */
void wf_library_find(void);
uint64_t wf_library_found(void);
/* The same on all ranks. */
bool wf_library_takes(const struct wf_comm *comm, const struct wf_op *op);
/* Within a scope and a turn. */
weft_status wf_library_run(struct wf_comm *comm, const struct wf_op *op);

/* ---- shmem_window.c: making and ending windows ---- */

struct wf_window {
    struct wf_comm *comm;
    uint64_t bytes;
    uint32_t signals;
    void *memory;
    uint64_t *pad;
    bool is_registered; /* MEMORY is the caller's */
    void **buffers;     /* by rank */
    uint64_t **pads;
    void *device_copy;
    struct wf_waits waits;
    struct wf_window *next;
};
/* Does no kernel wait for a signal? */
bool wf_windows_are_idle(const struct wf_comm *comm);
/* Forget the windows of a communicator that is ended. */
void wf_windows_drop(struct wf_comm *comm, bool cleanly);
weft_status wf_window_register(void *comm, void *memory, uint64_t bytes, uint32_t signals,
                               void **window);

#endif
