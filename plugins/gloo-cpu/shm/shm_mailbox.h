/* shm_mailbox.h - messages between two ranks of a host.
 *
 * For each receiver that a rank has ever sent to, it keeps a mailbox in its own heap: a ring of
 * entries in the order sent.  Small messages lie in the entry.  For large ones the entry has their
 * address; the receiver reads them there and acknowledges.  The receiver takes entries out in
 * order and matches them by tag; entries that no receive matches yet are kept. */
#ifndef WEFT_CPU_MAILBOX_H
#define WEFT_CPU_MAILBOX_H

#include "shm.h"

#define MAILBOX_ENTRIES 32
#define MAILBOX_INLINE  928 /* bytes of data in a entry: with its head, 1 KiB */
#define MAILBOX_ACKS    64

enum cpu_shm_carriage { MAILBOX_IN_ENTRY, MAILBOX_BY_REFERENCE };

struct cpu_shm_entry {
    _Alignas(CPU_LINE) _Atomic(uint64_t) number; /* from 1, when written */
    uint64_t bytes;
    uint32_t tag, dtype;
    uint32_t carriage; /* enum cpu_shm_carriage */
    uint32_t ack;      /* by reference: which acknowledgement is awaited */
    struct cpu_shm_address place;
    unsigned char data[MAILBOX_INLINE];
};

struct cpu_shm_mailbox {
    _Alignas(CPU_LINE) _Atomic(uint64_t) taken; /* entries taken out, by the receiver */
    _Alignas(CPU_LINE) _Atomic(uint64_t) acks[MAILBOX_ACKS]; /* number of the entry last read */
    struct cpu_shm_entry entries[MAILBOX_ENTRIES];
};

/* One message being sent or received; the caller's memory until DONE. */
struct cpu_shm_transfer {
    struct cpu_shm_transfer *next;
    void *buffer;
    uint64_t bytes;
    int32_t peer;
    uint32_t tag, dtype;
    bool sends, posted, done;
    uint32_t ack;
    uint64_t number;
    void *stage; /* shared stand-in for private memory */
};

/* An entry that was taken out before a receive asked for it. */
struct cpu_shm_early {
    struct cpu_shm_early *next;
    uint64_t number, bytes;
    uint32_t tag, dtype, carriage, ack;
    struct cpu_shm_address place;
    unsigned char data[];
};

struct cpu_shm_line { /* to and from one peer */
    struct cpu_shm_mailbox *out, *in;
    uint64_t posted, taken;
    uint64_t acks_used; /* a bit each */
    struct cpu_shm_early *early, **early_end;
};

struct cpu_shm_mailboxes {
    pthread_mutex_t lock;
    struct cpu_shm_line *lines;                  /* one per rank */
    struct cpu_shm_transfer *sends, **sends_end; /* in the order asked for */
    struct cpu_shm_transfer *receives, **receives_end;
};

/* ---- shm_mailbox.c: carrying entries.  The caller holds the lock. ---- */

/* Put a send into its mailbox if there is room.  Sets POSTED, and DONE if all is said. */
weft_status cpu_shm_mailbox_post(struct cpu_shm_group *group, struct cpu_shm_transfer *transfer);
/* True if the receiver has acknowledged.  Sets DONE. */
void cpu_shm_mailbox_settle(struct cpu_shm_group *group, struct cpu_shm_transfer *transfer);
/* Read the message for a receive if it was kept aside.  Sets DONE. */
weft_status cpu_shm_mailbox_find(struct cpu_shm_group *group, struct cpu_shm_transfer *transfer);
/* Take all entries of PEER out: each is for the first receive it fits, which becomes DONE, or is
 * kept aside. */
weft_status cpu_shm_mailbox_empty(struct cpu_shm_group *group, int32_t peer);

/* ---- shm_transfer.c: messages under way ---- */

weft_status cpu_shm_mailboxes_open(struct cpu_shm_group *group);
void cpu_shm_mailboxes_close(struct cpu_shm_group *group);
/* Put transfers under way; returns at once. [any] */
void cpu_shm_transfer_start(struct cpu_shm_group *group, struct cpu_shm_transfer *transfers,
                            size_t count);
/* Wait until all of them are done.  On failure none is under way any more. [any] */
weft_status cpu_shm_transfer_wait(struct cpu_shm_group *group, struct cpu_shm_transfer *transfers,
                                  size_t count);
/* Move everything that can move. [any] */
void cpu_shm_transfer_progress(void *group);

#endif
