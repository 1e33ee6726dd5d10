/* shm.h - the ranks of a communicator that share one host's memory.
 *
 * Each rank has a control block in its own heap, which all the others map.  Every collective has a
 * number, the same on all ranks.  A rank begins number N by writing slot N % SHM_SLOTS of its
 * control block: which call this is, and its data, or where its data lies.  Peers wait for the
 * slot's number, read, and when a rank is done with everybody's memory it writes N to `done` of its
 * own control block.  So a small collective costs one exchange of cache lines, and a large one two.
 *
 * A rank that fails sets its control block to SHM_FAILED, with the cause.  Ranks that wait for it
 * fail with the same cause. */
#ifndef WEFT_CPU_SHM_H
#define WEFT_CPU_SHM_H

#include "memory/cpu_heap.h"
#include "stream/cpu_stream.h"

#define SHM_SLOTS   8
#define SHM_INLINE  4096                /* bytes of data that travel in the slot itself */
#define SHM_TINY    40                  /* bytes that travel in the slot's first cache line */
#define SHM_STAGE   (UINT64_C(1) << 20) /* bytes of private memory put up at once */
#define SHM_NOWHERE UINT64_MAX
#define SHM_PULL    WEFT_COLL_COUNT       /* a pull, among the collectives */
#define SHM_CHECK   (WEFT_COLL_COUNT + 1) /* the comparison of calls before each */

/* Which step of which bound plan a call is, as in weft_collective_args; all 0: none. */
struct cpu_shm_identity {
    uint64_t plan;
    uint32_t binding, step;
};
/* Instead of a binding: a step is what happens to a window.  With a barrier, the plan is the
 * window's number. */
#define SHM_WINDOW UINT32_MAX
/* Instead of a binding, of a call that belongs to no plan: an average whose divisor, in `plan`, is
 * not the number of ranks. */
#define SHM_AVERAGE (UINT32_MAX - 1)
enum { SHM_WINDOW_MAKE = 1, SHM_WINDOW_RELEASE, SHM_WINDOW_BARRIER };

/* A call as all ranks should make it.  COUNT is a hash where ranks share an array of counts, and 0
 * where each has its own. */
struct cpu_shm_call {
    uint8_t collective, dtype, reduction, unused;
    int32_t root;
    uint64_t count;
    struct cpu_shm_identity identity;
};

/* What peers compare of a call: it fits into the slot's first cache line. */
struct cpu_shm_head {
    uint32_t kind; /* collective, dtype and reduction, a byte each from the lowest; then where */
    int32_t root;
    uint64_t signature; /* of the count and the identity */
};

/* Each rank's own choice, which is not compared. */
enum cpu_shm_where { SHM_IN_LINE, SHM_IN_SLOT, SHM_BY_REFERENCE, SHM_IN_PIECES };
#define SHM_WHERE_SHIFT 24

/* Where a buffer lies: in its owner's address space, and in its owner's heap or nowhere. */
struct cpu_shm_address {
    uint64_t pointer, offset;
};

/* A part of a buffer, in bytes. */
struct cpu_shm_span {
    uint64_t offset, bytes;
};

struct cpu_shm_slot {
    _Alignas(CPU_LINE) _Atomic(uint64_t) number;
    struct cpu_shm_head head;
    union {
        unsigned char tiny[SHM_TINY];
        struct {
            struct cpu_shm_address send, recv;
        } at;
    };
    _Alignas(16) unsigned char scale[16]; /* premul_sum */
    uint64_t bytes;                       /* sent */
    uint64_t shift;           /* where the shared part begins, or how much of it is to be read */
    struct cpu_shm_call call; /* in full; peers read it to describe a mismatch */
    /* With calls that have counts per rank: the owner's spans, one per rank. */
    unsigned char data[]; /* spans, then up to SHM_INLINE bytes */
};

enum cpu_shm_state { SHM_WORKING, SHM_LEFT, SHM_FAILED };

struct cpu_shm_control {
    uint64_t token;
    _Alignas(CPU_LINE) _Atomic(uint64_t) done;
    /* Private memory goes in pieces through a stage, which lies in the owner's heap and has two
     * halves.  Both count pieces of the collective being done, whose number is in the upper half:
     * those the owner put up, and those of its peers that it is done with. */
    _Alignas(CPU_LINE) _Atomic(uint64_t) filled;
    _Atomic(uint64_t) stage; /* its offset plus one, or 0 */
    _Alignas(CPU_LINE) _Atomic(uint64_t) drained;
    /* A sleeping owner waits on BELL; whoever changes what it may wait for rings, if SLEEPERS. */
    _Alignas(CPU_LINE) _Atomic(uint32_t) sleepers;
    _Atomic(uint32_t) bell;
    _Alignas(CPU_LINE) _Atomic(uint32_t) state; /* enum cpu_shm_state */
    _Atomic(uint32_t) departed; /* peers that will never look at this control block again */
    _Atomic(uint32_t) away;     /* the owner waits for another host, and has a limit for that */
    int32_t cause;              /* with SHM_FAILED: the owner's status and its words */
    char words[384];
    /* SHM_SLOTS of slot_bytes; then a word for each rank, about the owner's mailbox for it; then a
     * count for each rank: how many threads of the owner access its memory now (shm_access.c) */
    _Alignas(CPU_LINE) unsigned char slots[];
};

struct cpu_shm_peer {
    struct cpu_segment_address address;
    struct cpu_shm_control *control;
    uint8_t *heap;     /* where the peer's heap lies here */
    bool attached;     /* HEAP is to be detached */
    bool same_process; /* all its memory is ours too */
    bool readable;     /* cross-memory attach lets us read its private memory */
    bool reads_us;     /* and lets it read ours */
    int32_t name;      /* the rank to call it by in messages */
};

/* The cause of a failed communicator: its first error. */
struct cpu_shm_fault {
    pthread_mutex_t lock;
    _Atomic(int32_t) status;
    char text[512];
};

struct cpu_shm_group {
    struct cpu_heap *heap; /* this rank's */
    const char *label;     /* of the communicator, for messages */
    int32_t rank, size;
    uint32_t flags; /* WEFT_COMM_ bits */
    int64_t timeout_ns;
    int64_t near_timeout_ns; /* of collectives, for ranks that wait for no other host */
    size_t slot_bytes;
    struct cpu_shm_peer *peers; /* SIZE of them, the own one too */
    struct cpu_shm_control *control;
    uint64_t number;     /* of the step being done, from 1; comparisons of calls are steps too */
    uint64_t called;     /* of the collective being done, from 1, as its callers count */
    uint64_t peers_done; /* all peers are known to be done with this one */
    const char *doing;   /* what is being done, for messages */
    struct cpu_shm_fault fault;
    unsigned char *stage;       /* NULL until it is needed */
    bool in_pieces;             /* somebody's data in this collective comes in pieces */
    void *record;               /* this rank's call, to be compared; NULL if calls are not */
    struct cpu_shm_span *spans; /* room for SIZE */
    const void **sources, **starts, **scales; /* likewise */
    bool one_process;
    bool shares_process; /* another rank is in this process */
    bool all_readable;   /* every rank can read every other's private memory */
    bool met;            /* peers may know the control block */
    struct cpu_shm_mailboxes *mailboxes;
    struct cpu_shm_leftover *leftovers;
    _Atomic(uint32_t) under_way; /* messages, which move on while a collective waits: */
    void (*progress)(void *group);
};

/* ---- shm_ring.c ---- */

/* Wake RANK if it sleeps.  The store it may wait for came before, and was seq_cst. */
void cpu_shm_ring(struct cpu_shm_group *group, int32_t rank);
void cpu_shm_ring_all(struct cpu_shm_group *group);

/* Sleep until another rank rings and BELL is no longer the number of CONTROL's bell, at most
 * LONGEST_NS.  The caller is one of its sleepers. */
void cpu_shm_sleep(struct cpu_shm_control *control, uint32_t bell, uint64_t longest_ns);

/* ---- shm_fail.c ---- */

/* Fail the group: keep the cause, publish it to peers, describe it to this thread. */
weft_status cpu_shm_fail(struct cpu_shm_group *group, weft_status status, const char *format, ...)
    PLUG_PRINTF(3, 4);
/* WEFT_OK, or the status of the failed group, described with its cause. */
weft_status cpu_shm_fault(struct cpu_shm_group *group);
/* "rank 2 (pid 1234)" into TEXT. */
const char *cpu_shm_name(const struct cpu_shm_group *group, int32_t rank, char *text, size_t bytes);
static inline bool cpu_shm_has_failed(const struct cpu_shm_group *group)
{
    return atomic_load_explicit(&group->fault.status, memory_order_relaxed) != WEFT_OK;
}

/* The status of a rank whose peer has failed with STATUS.  A mismatch and a time-out are the same
 * error on all ranks, whichever rank finds them first. */
static inline weft_status cpu_shm_pass_on(weft_status status)
{
    return status == WEFT_ERR_MISMATCH || status == WEFT_ERR_TIMEOUT ? status : WEFT_ERR_PEER;
}

/* RANK has failed: fail the group with RANK's cause. */
weft_status cpu_shm_peer_failed(struct cpu_shm_group *group, int32_t rank);
/* Data read from RANK's buffers is valid only if RANK was in its call all the time: a rank that
 * gave up may have overwritten them.  Called after reading, and before RANK is released. */
static inline weft_status cpu_shm_still_there(struct cpu_shm_group *group, int32_t rank)
{
    cpu_fence(memory_order_acquire); /* the data first, then the state */
    if (atomic_load_explicit(&group->peers[rank].control->state, memory_order_acquire) !=
        SHM_FAILED)
        return WEFT_OK;
    return cpu_shm_peer_failed(group, rank);
}

/* ---- shm_call.c: calls, and how they differ ---- */

uint64_t cpu_shm_identity_hash(const struct cpu_shm_identity *identity);
/* The head of CALL; `where` is left to the caller. */
static inline struct cpu_shm_head cpu_shm_head_of(const struct cpu_shm_call *call)
{
    struct cpu_shm_head head = {.kind = call->collective | (uint32_t)call->dtype << 8 |
                                        (uint32_t)call->reduction << 16,
                                .root = call->root,
                                .signature = call->count};

    if (call->identity.binding != 0) head.signature ^= cpu_shm_identity_hash(&call->identity);
    return head;
}
static inline bool cpu_shm_head_same(const struct cpu_shm_head *a, const struct cpu_shm_head *b)
{
    uint32_t kind = (a->kind ^ b->kind) & ((UINT32_C(1) << SHM_WHERE_SHIFT) - 1);

    return kind == 0 && a->root == b->root && a->signature == b->signature;
}
/* WEFT_ERR_MISMATCH naming this rank's call and that of RANK, which are in the slots and differ. */
weft_status cpu_shm_mismatch(struct cpu_shm_group *group, int32_t rank);

bool cpu_shm_call_same(const struct cpu_shm_call *a, const struct cpu_shm_call *b);
/* WEFT_ERR_MISMATCH of rank A, whose call is BY_A, and rank B. */
weft_status cpu_shm_disagree(struct cpu_shm_group *group, int32_t a,
                             const struct cpu_shm_call *by_a, int32_t b,
                             const struct cpu_shm_call *by_b);
/* That failure; ranks as they are called in messages. */
weft_status cpu_shm_call_differs(struct cpu_shm_group *group, int32_t rank,
                                 const struct cpu_shm_call *call, int32_t other_rank,
                                 const struct cpu_shm_call *other);
/* WEFT_ERR_MISMATCH unless what SENDER sends is what RECEIVER expects. */
weft_status cpu_shm_check_bytes(struct cpu_shm_group *group, int32_t sender, uint64_t sent,
                                int32_t receiver, uint64_t wanted);
/* The slot of RANK in the collective being done. */
static inline struct cpu_shm_slot *cpu_shm_slot(const struct cpu_shm_group *group, int32_t rank)
{
    return (struct cpu_shm_slot *)(group->peers[rank].control->slots +
                                   (group->number % SHM_SLOTS) * group->slot_bytes);
}

/* ---- shm_read.c ---- */

/* RANK's memory that lies at PLACE, as seen here; NULL if it cannot be reached directly. */
void *cpu_shm_reach(const struct cpu_shm_group *group, int32_t rank,
                    const struct cpu_shm_address *place);

/* Copy from OFFSET behind PLACE, which is RANK's. */
weft_status cpu_shm_read(struct cpu_shm_group *group, int32_t rank,
                         const struct cpu_shm_address *place, uint64_t offset, void *target,
                         uint64_t bytes);
/* True if cross-memory attach works on RANK.  Tries it. */
bool cpu_shm_readable(const struct cpu_shm_group *group, int32_t rank);

/* ---- shm_wait.c ---- */

/* READY is called until it returns true.  RANK is the rank that is waited for; -1: unknown. */
struct cpu_shm_waiting {
    bool (*ready)(void *argument);
    void *argument;
    int32_t rank;
    int64_t timeout_ns;
    int64_t near_timeout_ns; /* unless RANK waits for another host; 0: the same */
    const char *doing;       /* for messages; NULL: the group's collective */
    bool polled;             /* no rank rings: sleep only briefly */
    bool forgiving; /* the time limit is the caller's own: exceeding it does not fail the group */
};
weft_status cpu_shm_wait_until(struct cpu_shm_group *group, const struct cpu_shm_waiting *waiting);

/* Wait until *WORD, which RANK writes, is at least VALUE. */
weft_status cpu_shm_wait_slow(struct cpu_shm_group *group, const _Atomic(uint64_t) *word,
                              uint64_t value, int32_t rank);

static inline weft_status cpu_shm_wait(struct cpu_shm_group *group, const _Atomic(uint64_t) *word,
                                       uint64_t value, int32_t rank)
{
    if (atomic_load_explicit(word, memory_order_acquire) >= value) return WEFT_OK;
    return cpu_shm_wait_slow(group, word, value, rank);
}

/* ---- shm_slot.c: beginning, synchronizing, finishing ---- */

/* One rank's buffers in a collective. */
struct cpu_shm_share {
    const void *send;
    uint64_t send_bytes;
    void *recv;                       /* what peers may write, if they can reach it */
    const void *scale;                /* one element for premul_sum, or NULL */
    const struct cpu_shm_span *spans; /* parts of SEND per rank, or NULL: all read the same */
    uint64_t shift;                   /* as in the slot */
    int32_t reader;                   /* who reads SEND; -1: everybody */
    bool by_reference;                /* also where SEND is small, and never in pieces */
    bool in_pieces;                   /* RECV overlaps SEND, which peers must not read */
};

/* Begin the next collective.  SEND goes into the slot if it is small and RECV is not shared; else
 * its place does if peers can reach it; else its first piece is put up. */
weft_status cpu_shm_begin(struct cpu_shm_group *group, const struct cpu_shm_call *call,
                          const struct cpu_shm_share *share);
/* Wait for RANK to begin it too, and check that it makes the same call.  If its buffers are to be
 * read or written, it must not have given up meanwhile. */
weft_status cpu_shm_wait_peer(struct cpu_shm_group *group, int32_t rank);
weft_status cpu_shm_wait_peers(struct cpu_shm_group *group);
/* The same for ranks whose buffers are not touched: they may have ended this call and failed in a
 * later one.  No rank ends a collective before it has met all others in one of these ways, so that
 * a call that differs fails on all ranks. */
weft_status cpu_shm_compare_all(struct cpu_shm_group *group);
/* cpu_shm_still_there for RANK (-1: every rank), all met, where its data is not in the slot. */
weft_status cpu_shm_confirm(struct cpu_shm_group *group, int32_t rank);
/* This rank no longer accesses memory of its peers. */
void cpu_shm_done(struct cpu_shm_group *group);
/* Wait until RANK (-1: every rank) is done with ours, if it is not in the slot. */
weft_status cpu_shm_settle(struct cpu_shm_group *group, int32_t rank);

static inline enum cpu_shm_where cpu_shm_where(const struct cpu_shm_slot *slot)
{
    return (enum cpu_shm_where)(slot->head.kind >> SHM_WHERE_SHIFT);
}
/* What RANK sent, the memory it receives in, and its spans.  Only after meeting it.  NULL if it
 * cannot be reached. */
const void *cpu_shm_sent(const struct cpu_shm_group *group, int32_t rank);
void *cpu_shm_target(const struct cpu_shm_group *group, int32_t rank);
const struct cpu_shm_span *cpu_shm_spans(const struct cpu_shm_group *group, int32_t rank);
/* True if all peers can reach this rank's MEMORY; the second, if they can reach PLACE of any rank.
 */
bool cpu_shm_reachable(const struct cpu_shm_group *group, const void *memory, uint64_t bytes);
static inline bool cpu_shm_address_reachable(const struct cpu_shm_group *group,
                                             const struct cpu_shm_address *place)
{
    return group->one_process || place->offset != SHM_NOWHERE;
}
struct cpu_shm_address cpu_shm_address_of(const struct cpu_shm_group *group, const void *memory);

/* ---- shm_access.c: direct access to memory of other ranks of this process ---- */

/* Begin and end an access to memory of RANK.  Does nothing for ranks of other processes.  Fails if
 * RANK has failed.  A thread must not wait for another rank during an access. */
weft_status cpu_shm_access_begin_near(struct cpu_shm_group *group, int32_t rank);
void cpu_shm_access_end_near(struct cpu_shm_group *group, int32_t rank);
static inline weft_status cpu_shm_access_begin(struct cpu_shm_group *group, int32_t rank)
{
    return group->shares_process ? cpu_shm_access_begin_near(group, rank) : WEFT_OK;
}
static inline void cpu_shm_access_end(struct cpu_shm_group *group, int32_t rank)
{
    if (group->shares_process) cpu_shm_access_end_near(group, rank);
}
/* The same for the buffers of RANK (-1: of every rank) in the collective being done, all met, where
 * its data is not in the slot. */
weft_status cpu_shm_enter_near(struct cpu_shm_group *group, int32_t rank);
void cpu_shm_leave_near(struct cpu_shm_group *group, int32_t rank);
static inline weft_status cpu_shm_enter(struct cpu_shm_group *group, int32_t rank)
{
    return group->shares_process ? cpu_shm_enter_near(group, rank) : WEFT_OK;
}
static inline void cpu_shm_leave(struct cpu_shm_group *group, int32_t rank)
{
    if (group->shares_process) cpu_shm_leave_near(group, rank);
}
/* A call of this rank has failed, and its caller may free the buffers: wait until no other rank
 * accesses memory of this rank.  Returns at once if the group has not failed. */
void cpu_shm_access_wait(struct cpu_shm_group *group) __attribute__((cold));

/* ---- shm_stage.c: private memory, in pieces ---- */

/* Bytes of a piece: SPREAD if each reader gets another one. */
uint64_t cpu_shm_piece_bytes(const struct cpu_shm_group *group, bool spread);
/* How many pieces SHARE makes; 0 if it does not go in pieces. */
uint64_t cpu_shm_piece_count(const struct cpu_shm_group *group, const struct cpu_shm_share *share);
/* Put up piece INDEX of SHARE, when everybody is done with the one before the last. */
weft_status cpu_shm_fill(struct cpu_shm_group *group, const struct cpu_shm_share *share,
                         uint64_t index);
/* Room for piece INDEX of our own making, and telling READER (-1: all) that it is there. */
weft_status cpu_shm_stage_room(struct cpu_shm_group *group, uint64_t index, int32_t reader,
                               unsigned char **room);
void cpu_shm_stage_put_up(struct cpu_shm_group *group, uint64_t index, int32_t reader);
/* Wait for piece INDEX of RANK. */
weft_status cpu_shm_piece(struct cpu_shm_group *group, int32_t rank, uint64_t index, bool spread,
                          const unsigned char **piece);
/* We are done with everybody's piece INDEX. */
void cpu_shm_drained(struct cpu_shm_group *group, uint64_t index);
static inline bool cpu_shm_is_in_pieces(const struct cpu_shm_group *group, int32_t rank)
{
    return cpu_shm_where(cpu_shm_slot(group, rank)) == SHM_IN_PIECES;
}

/* ---- shm_check.c ---- */

/* Make what comparing calls needs, if the group's are compared. */
weft_status cpu_shm_check_prepare(struct cpu_shm_group *group);
struct cpu_shm_op;
/* Compare the calls of all ranks.  All find the same mismatch.  OP may be NULL. */
weft_status cpu_shm_check_all(struct cpu_shm_group *group, const struct cpu_shm_call *call,
                              const struct cpu_shm_op *op);

/* ---- shm_group.c ---- */

/* Allocate and fill this rank's control block; rank, size, heap, label, flags and timeout are set.
 */
weft_status cpu_shm_group_prepare(struct cpu_shm_group *group, uint64_t token);
/* The size of each rank's control block. */
size_t cpu_shm_control_bytes(const struct cpu_shm_group *group);
/* Free everything.  Marks the control block as SHM_LEFT. */
void cpu_shm_group_close(struct cpu_shm_group *group);
/* MEMORY, of this rank's heap, may still be in use by peers: free it when they have departed. */
void cpu_shm_retire(struct cpu_shm_group *group, void *memory);
/* ---- collectives ---- */

/* One collective, arguments checked, ranks as in the group. */
struct cpu_shm_op {
    const struct cpu_shm_call *as; /* what the ranks compare; NULL: the op itself */
    struct cpu_shm_identity identity;
    uint32_t collective, dtype, reduction;
    int32_t root;
    size_t element;
    const void *send;
    void *recv;
    uint64_t count;
    const uint64_t *send_counts, *send_offsets, *recv_counts, *recv_offsets;
    const void *scale;
    uint32_t parts; /* what avg divides by */
    bool wide;      /* reduce: RECV gets the sums of integers as cpu_wide */
};

/* shm_run.c: any of them, with the check of WEFT_COMM_CHECK before it. */
weft_status cpu_shm_run(struct cpu_shm_group *group, const struct cpu_shm_op *op);
/* The call as it is compared. */
struct cpu_shm_call cpu_shm_call_of(const struct cpu_shm_op *op, int32_t size);

/* shm_move.c */
weft_status cpu_shm_barrier(struct cpu_shm_group *group, const struct cpu_shm_op *op);
weft_status cpu_shm_all_gather(struct cpu_shm_group *group, const struct cpu_shm_op *op);
weft_status cpu_shm_all_to_all(struct cpu_shm_group *group, const struct cpu_shm_op *op);
weft_status cpu_shm_broadcast(struct cpu_shm_group *group, const struct cpu_shm_op *op);
weft_status cpu_shm_gather(struct cpu_shm_group *group, const struct cpu_shm_op *op);
weft_status cpu_shm_scatter(struct cpu_shm_group *group, const struct cpu_shm_op *op);
/* shm_reduce.c */
weft_status cpu_shm_all_reduce(struct cpu_shm_group *group, const struct cpu_shm_op *op);
weft_status cpu_shm_reduce(struct cpu_shm_group *group, const struct cpu_shm_op *op);
weft_status cpu_shm_reduce_scatter(struct cpu_shm_group *group, const struct cpu_shm_op *op);

#endif
