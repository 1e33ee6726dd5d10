/* shm.h - the ranks of a communicator that share one host's memory.
 *
 * Each rank has a board in its own heap, which all the others map.  Every collective has a number,
 * the same on all ranks.  A rank begins number N by writing slot N % SHM_SLOTS of its board: which
 * call this is, and its data, or where its data lies.  Peers wait for the slot's number, read, and
 * when a rank is done with everybody's memory it writes N to `done` of its own board.  So a small
 * collective costs one exchange of cache lines, and a large one two.
 *
 * A rank that fails says so on its board; whoever waits for it then fails too, with its reason. */
#ifndef WEFT_CPU_SHM_H
#define WEFT_CPU_SHM_H

#include "heap.h"
#include "stream.h"

#define SHM_SLOTS   8
#define SHM_INLINE  4096                /* bytes of data that travel in the slot itself */
#define SHM_TINY    40                  /* bytes that travel in the slot's first cache line */
#define SHM_STAGE   (UINT64_C(1) << 20) /* bytes of private memory put up at once */
#define SHM_NOWHERE UINT64_MAX
#define SHM_PULL    WEFT_COLL_COUNT       /* a pull, among the collectives */
#define SHM_CHECK   (WEFT_COLL_COUNT + 1) /* the comparison of calls before each */

/* Which step of which bound plan a call is, as in weft_collective_args; all 0: none. */
struct wf_shm_identity {
    uint64_t plan;
    uint32_t binding, step;
};
/* Instead of a binding: step 1 makes a window, step 2 releases it. */
#define SHM_WINDOW UINT32_MAX

/* A call as all ranks should make it.  COUNT is a hash where ranks share an array of counts, and 0
 * where each has its own. */
struct wf_shm_call {
    uint8_t collective, dtype, reduction, unused;
    int32_t root;
    uint64_t count;
    struct wf_shm_identity identity;
};

/* What peers compare of a call: it fits into the slot's first cache line. */
struct wf_shm_head {
    uint32_t kind; /* collective, dtype and reduction, a byte each from the lowest; then where */
    int32_t root;
    uint64_t signature; /* of the count and the identity */
};

/* Each rank's own choice, which is not compared. */
enum wf_shm_where { SHM_IN_LINE, SHM_IN_SLOT, SHM_BY_REFERENCE, SHM_IN_PIECES };
#define SHM_WHERE_SHIFT 24

/* Where a buffer lies: in its owner's address space, and in its owner's heap or nowhere. */
struct wf_shm_place {
    uint64_t pointer, offset;
};

/* A part of a buffer, in bytes. */
struct wf_shm_span {
    uint64_t offset, bytes;
};

struct wf_shm_slot {
    _Alignas(CPU_LINE) _Atomic(uint64_t) number;
    struct wf_shm_head head;
    union {
        unsigned char tiny[SHM_TINY];
        struct {
            struct wf_shm_place send, recv;
        } at;
    };
    _Alignas(16) unsigned char scale[16]; /* premul_sum */
    uint64_t bytes;                       /* sent */
    uint64_t shift;          /* where the shared part begins, or how much of it is to be read */
    struct wf_shm_call call; /* in full; peers read it to describe a mismatch */
    /* With calls that have counts per rank: the owner's spans, one per rank. */
    unsigned char data[]; /* spans, then up to SHM_INLINE bytes */
};

enum wf_shm_state { SHM_WORKING, SHM_LEFT, SHM_FAILED };

struct wf_shm_board {
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
    _Alignas(CPU_LINE) _Atomic(uint32_t) state; /* enum wf_shm_state */
    _Atomic(uint32_t) departed;                 /* peers that will never look at this board again */
    int32_t cause; /* with SHM_FAILED: the owner's status and its words */
    char words[384];
    /* SHM_SLOTS of slot_bytes; then a word for each rank, about the owner's mailbox for it */
    _Alignas(CPU_LINE) unsigned char slots[];
};

struct wf_shm_peer {
    struct wf_cpu_segment_address address;
    struct wf_shm_board *board;
    uint8_t *heap;     /* where the peer's heap lies here */
    bool attached;     /* HEAP is to be detached */
    bool same_process; /* all its memory is ours too */
    bool readable;     /* cross-memory attach lets us read its private memory */
    bool reads_us;     /* and lets it read ours */
    int32_t name;      /* the rank to call it by in messages */
};

/* The error a communicator is stuck with; the first one wins. */
struct wf_shm_fault {
    pthread_mutex_t lock;
    _Atomic(int32_t) status;
    char text[512];
};

struct wf_shm_group {
    struct wf_cpu_heap *heap; /* this rank's */
    const char *label;        /* of the communicator, for messages */
    int32_t rank, size;
    uint32_t flags; /* WEFT_COMM_ bits */
    int64_t timeout_ns;
    size_t slot_bytes;
    struct wf_shm_peer *peers; /* SIZE of them, the own one too */
    struct wf_shm_board *board;
    uint64_t number;     /* of the collective being done, from 1 */
    uint64_t peers_done; /* all peers are known to be done with this one */
    const char *doing;   /* what is being done, for messages */
    struct wf_shm_fault fault;
    unsigned char *stage;      /* NULL until it is needed */
    bool in_pieces;            /* somebody's data in this collective comes in pieces */
    void *record;              /* this rank's call, to be compared; NULL if calls are not */
    struct wf_shm_span *spans; /* room for SIZE */
    const void **sources, **starts, **scales; /* likewise */
    bool one_process;
    bool all_readable; /* every rank can read every other's private memory */
    bool met;          /* peers may know the board */
    struct wf_shm_mail *mail;
    struct wf_shm_leftover *leftovers;
    _Atomic(uint32_t) under_way; /* messages, which move on while a collective waits */
};

/* ---- shm_group.c ---- */

/* Allocate and fill this rank's board; rank, size, heap, label, flags and timeout are set. */
weft_status wf_shm_group_prepare(struct wf_shm_group *group, uint64_t token);
/* Take down everything.  Says on the board that the rank has left. */
void wf_shm_group_close(struct wf_shm_group *group);
/* MEMORY, of this rank's heap, may still be in use by peers: free it when they have departed. */
void wf_shm_leave_behind(struct wf_shm_group *group, void *memory);
/* The group's failure: kept, told to peers, described to this thread. */
weft_status wf_shm_fail(struct wf_shm_group *group, weft_status status, const char *format, ...)
    CPU_PRINTF(3, 4);
/* The failure the group is stuck with, described again; WEFT_OK if none. */
weft_status wf_shm_fault(struct wf_shm_group *group);
/* "rank 2 (pid 1234)" into TEXT. */
const char *wf_shm_name(const struct wf_shm_group *group, int32_t rank, char *text, size_t bytes);
/* RANK's memory that lies at PLACE, as seen here; NULL if it cannot be reached directly. */
void *wf_shm_reach(const struct wf_shm_group *group, int32_t rank,
                   const struct wf_shm_place *place);

static inline bool wf_shm_broken(const struct wf_shm_group *group)
{
    return atomic_load_explicit(&group->fault.status, memory_order_relaxed) != WEFT_OK;
}

/* ---- shm_read.c ---- */

/* Copy from OFFSET behind PLACE, which is RANK's. */
weft_status wf_shm_read(struct wf_shm_group *group, int32_t rank, const struct wf_shm_place *place,
                        uint64_t offset, void *target, uint64_t bytes);
/* Does cross-memory attach work on RANK?  Tries it. */
bool wf_shm_readable(const struct wf_shm_group *group, int32_t rank);

/* ---- shm_wait.c ---- */

/* READY is called until it says true.  RANK is whom we wait for, or -1 when that is unknown. */
struct wf_shm_waiting {
    bool (*ready)(void *argument);
    void *argument;
    int32_t rank;
    int64_t timeout_ns;
    const char *doing; /* for messages; NULL: the group's collective */
    bool polled;       /* nobody rings: never sleep for long */
    bool forgiving;    /* the time limit is the caller's own: passing it breaks nothing */
};
weft_status wf_shm_wait_until(struct wf_shm_group *group, const struct wf_shm_waiting *waiting);

/* RANK's board says that it failed: so do we, with its reason. */
weft_status wf_shm_peer_failed(struct wf_shm_group *group, int32_t rank);
/* What was read in RANK's own buffers is good only if RANK was in its call all the while.  Called
 * after reading, and before telling RANK so: a rank that gave up may have overwritten them. */
static inline weft_status wf_shm_still_there(struct wf_shm_group *group, int32_t rank)
{
    wf_cpu_fence(memory_order_acquire); /* the data first, then the state */
    if (atomic_load_explicit(&group->peers[rank].board->state, memory_order_acquire) != SHM_FAILED)
        return WEFT_OK;
    return wf_shm_peer_failed(group, rank);
}

/* Wait until *WORD, which RANK writes, is at least VALUE. */
weft_status wf_shm_wait_slow(struct wf_shm_group *group, const _Atomic(uint64_t) *word,
                             uint64_t value, int32_t rank);

static inline weft_status wf_shm_wait(struct wf_shm_group *group, const _Atomic(uint64_t) *word,
                                      uint64_t value, int32_t rank)
{
    if (atomic_load_explicit(word, memory_order_acquire) >= value) return WEFT_OK;
    return wf_shm_wait_slow(group, word, value, rank);
}

/* Wake RANK if it sleeps.  The store it may wait for came before, and was seq_cst. */
void wf_shm_ring(struct wf_shm_group *group, int32_t rank);
void wf_shm_ring_all(struct wf_shm_group *group);
/* There are at least RANKS ranks on this host. */
void wf_shm_wait_expect(int32_t ranks);

/* ---- shm_slot.c: beginning, meeting, finishing ---- */

/* What one rank brings to a collective. */
struct wf_shm_share {
    const void *send;
    uint64_t send_bytes;
    void *recv;                      /* what peers may write, if they can reach it */
    const void *scale;               /* one element for premul_sum, or NULL */
    const struct wf_shm_span *spans; /* parts of SEND per rank, or NULL: all read the same */
    uint64_t shift;                  /* as in the slot */
    int32_t reader;                  /* who reads SEND; -1: everybody */
    bool by_reference;               /* also where SEND is small, and never in pieces */
    bool in_pieces;                  /* RECV overlaps SEND, which peers must not read */
};

/* Begin the next collective.  SEND goes into the slot if it is small and RECV is not shared; else
 * its place does if peers can reach it; else its first piece is put up. */
weft_status wf_shm_begin(struct wf_shm_group *group, const struct wf_shm_call *call,
                         const struct wf_shm_share *share);
/* Wait for RANK to begin it too, and check that it makes the same call.  If its buffers are to be
 * read or written, it must not have given up meanwhile. */
weft_status wf_shm_meet(struct wf_shm_group *group, int32_t rank);
weft_status wf_shm_meet_all(struct wf_shm_group *group);
/* The same for ranks whose buffers are not touched: they may have ended this call and failed in a
 * later one.  No rank ends a collective before it has met all others in one of these ways, so that
 * a call that differs fails on all ranks. */
weft_status wf_shm_compare_all(struct wf_shm_group *group);
/* wf_shm_still_there for RANK (-1: every rank), all met, where its data is not in the slot. */
weft_status wf_shm_confirm(struct wf_shm_group *group, int32_t rank);
/* This rank is done with everybody's memory. */
void wf_shm_done(struct wf_shm_group *group);
/* Wait until RANK (-1: every rank) is done with ours, if it is not in the slot. */
weft_status wf_shm_settle(struct wf_shm_group *group, int32_t rank);

struct wf_shm_slot *wf_shm_slot(const struct wf_shm_group *group, int32_t rank);
static inline enum wf_shm_where wf_shm_where(const struct wf_shm_slot *slot)
{
    return (enum wf_shm_where)(slot->head.kind >> SHM_WHERE_SHIFT);
}
/* What RANK sent, the memory it receives in, and its spans.  Only after meeting it.  NULL if it
 * cannot be reached. */
const void *wf_shm_sent(const struct wf_shm_group *group, int32_t rank);
void *wf_shm_target(const struct wf_shm_group *group, int32_t rank);
const struct wf_shm_span *wf_shm_spans(const struct wf_shm_group *group, int32_t rank);
/* Can all peers reach this memory of ours?  And what lies at PLACE, whosever it is? */
bool wf_shm_reachable(const struct wf_shm_group *group, const void *memory, uint64_t bytes);
static inline bool wf_shm_place_reachable(const struct wf_shm_group *group,
                                          const struct wf_shm_place *place)
{
    return group->one_process || place->offset != SHM_NOWHERE;
}
struct wf_shm_place wf_shm_place_of(const struct wf_shm_group *group, const void *memory);

/* ---- shm_stage.c: private memory, in pieces ---- */

/* Bytes of a piece: SPREAD if each reader gets another one. */
uint64_t wf_shm_piece_bytes(const struct wf_shm_group *group, bool spread);
/* How many pieces SHARE makes; 0 if it does not go in pieces. */
uint64_t wf_shm_piece_count(const struct wf_shm_group *group, const struct wf_shm_share *share);
/* Put up piece INDEX of SHARE, when everybody is done with the one before the last. */
weft_status wf_shm_fill(struct wf_shm_group *group, const struct wf_shm_share *share,
                        uint64_t index);
/* Room for piece INDEX of our own making, and telling READER (-1: all) that it is there. */
weft_status wf_shm_stage_room(struct wf_shm_group *group, uint64_t index, int32_t reader,
                              unsigned char **room);
void wf_shm_stage_put_up(struct wf_shm_group *group, uint64_t index, int32_t reader);
/* Wait for piece INDEX of RANK. */
weft_status wf_shm_piece(struct wf_shm_group *group, int32_t rank, uint64_t index, bool spread,
                         const unsigned char **piece);
/* We are done with everybody's piece INDEX. */
void wf_shm_drained(struct wf_shm_group *group, uint64_t index);
static inline bool wf_shm_is_in_pieces(const struct wf_shm_group *group, int32_t rank)
{
    return wf_shm_where(wf_shm_slot(group, rank)) == SHM_IN_PIECES;
}

/* ---- shm_check.c ---- */

uint64_t wf_shm_identity_hash(const struct wf_shm_identity *identity);
/* The head of CALL; `where` is left to the caller. */
static inline struct wf_shm_head wf_shm_head_of(const struct wf_shm_call *call)
{
    struct wf_shm_head head = {.kind = call->collective | (uint32_t)call->dtype << 8 |
                                       (uint32_t)call->reduction << 16,
                               .root = call->root,
                               .signature = call->count};

    if (call->identity.binding != 0) head.signature ^= wf_shm_identity_hash(&call->identity);
    return head;
}
static inline bool wf_shm_head_same(const struct wf_shm_head *a, const struct wf_shm_head *b)
{
    uint32_t kind = (a->kind ^ b->kind) & ((UINT32_C(1) << SHM_WHERE_SHIFT) - 1);

    return kind == 0 && a->root == b->root && a->signature == b->signature;
}
/* WEFT_ERR_MISMATCH naming this rank's call and that of RANK, which are in the slots and differ. */
weft_status wf_shm_mismatch(struct wf_shm_group *group, int32_t rank);

bool wf_shm_call_same(const struct wf_shm_call *a, const struct wf_shm_call *b);
/* That failure; ranks as they are called in messages. */
weft_status wf_shm_call_differs(struct wf_shm_group *group, int32_t rank,
                                const struct wf_shm_call *call, int32_t other_rank,
                                const struct wf_shm_call *other);
/* WEFT_ERR_MISMATCH unless what SENDER sends is what RECEIVER expects. */
weft_status wf_shm_check_bytes(struct wf_shm_group *group, int32_t sender, uint64_t sent,
                               int32_t receiver, uint64_t wanted);
/* Make what comparing calls needs, if the group's are compared. */
weft_status wf_shm_check_prepare(struct wf_shm_group *group);
struct wf_shm_op;
/* Compare the calls of all ranks.  All find the same mismatch.  OP may be NULL. */
weft_status wf_shm_check_all(struct wf_shm_group *group, const struct wf_shm_call *call,
                             const struct wf_shm_op *op);

/* ---- collectives ---- */

/* One collective, arguments checked, ranks as in the group. */
struct wf_shm_op {
    struct wf_shm_identity identity;
    uint32_t collective, dtype, reduction;
    int32_t root;
    size_t element;
    const void *send;
    void *recv;
    uint64_t count;
    const uint64_t *send_counts, *send_offsets, *recv_counts, *recv_offsets;
    const void *scale;
    uint32_t parts; /* what avg divides by */
    bool wide;      /* reduce: RECV gets the sums of integers as wf_cpu_wide */
};

/* shm_run.c: any of them, with the check of WEFT_COMM_CHECK before it. */
weft_status wf_shm_run(struct wf_shm_group *group, const struct wf_shm_op *op);
/* The call as it is compared. */
struct wf_shm_call wf_shm_call_of(const struct wf_shm_op *op, int32_t size);

/* shm_move.c */
weft_status wf_shm_barrier(struct wf_shm_group *group, const struct wf_shm_op *op);
weft_status wf_shm_all_gather(struct wf_shm_group *group, const struct wf_shm_op *op);
weft_status wf_shm_all_to_all(struct wf_shm_group *group, const struct wf_shm_op *op);
weft_status wf_shm_broadcast(struct wf_shm_group *group, const struct wf_shm_op *op);
weft_status wf_shm_gather(struct wf_shm_group *group, const struct wf_shm_op *op);
weft_status wf_shm_scatter(struct wf_shm_group *group, const struct wf_shm_op *op);
/* shm_reduce.c */
weft_status wf_shm_all_reduce(struct wf_shm_group *group, const struct wf_shm_op *op);
weft_status wf_shm_reduce(struct wf_shm_group *group, const struct wf_shm_op *op);
weft_status wf_shm_reduce_scatter(struct wf_shm_group *group, const struct wf_shm_op *op);

#endif
