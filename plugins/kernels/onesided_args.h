/* onesided_args.h - data that the host and the one-sided kernels share: memory through which ranks
 * publish the addresses of their data and notify each other of completion.
 *
 * Every rank has an arena, memory that all ranks access by load and store.  Addresses are sent as
 * offsets from its start.  Every communicator has a control block in each rank's arena. */
#ifndef WEFT_ONESIDED_ARGS_H
#define WEFT_ONESIDED_ARGS_H

#include "kernel_args.h"

#define WK_MESSAGES 16u  /* maximum number of pending messages from one rank to another */
#define WK_HELD     128u /* maximum number of addresses of a kernel that opens an operation itself */
#define WK_LIST     60u  /* maximum number of peers or sources inside a kernel's arguments */
#define WK_PULLS    8u   /* maximum number of kernels of one operation */
#define WK_NOWHERE  UINT64_MAX

struct wk_message {
    uint64_t number; /* number of the message, from 1; written last */
    uint64_t address, bytes, reserved;
};

/* The data that one peer stores for the owner of the control block.  READY, DONE and TAKEN never
 * decrease. */
struct wk_post {
    uint64_t ready, send, recv; /* operation, and offsets of its data in the peer's arena */
    uint64_t done;              /* last operation in which the peer used this rank's memory */
    uint64_t taken;             /* number of this rank's messages that the peer has received */
    uint64_t sent, received;    /* number of messages to and from the peer; written by the owner */
    uint64_t reserved;
    struct wk_message messages[WK_MESSAGES]; /* from the peer */
};

struct wk_control {
    uint64_t operation; /* the last complete operation; written by the owner */
    uint64_t failed;    /* not 0: this rank has failed, and its kernels do nothing */
    uint32_t finished;  /* finished blocks of the running kernel */
    uint32_t reserved;
    uint32_t taken[WK_PULLS]; /* tiles taken by blocks of the running operation's kernels */
    uint64_t declined; /* 0, or the reason why this rank cannot continue: rank + 1 of the first, and
                          its reason */
    struct wk_post posts[1]; /* one per rank */
};

/* Addresses of a peer's memory as mapped here. */
struct wk_peer {
    uint64_t control, arena; /* addresses */
};

/* The reason why a kernel failed.  In pinned host memory.  REASON is written last. */
enum wk_reason {
    WK_FINE,
    WK_NOT_READY,   /* PEER did not reach the operation */
    WK_NOT_DONE,    /* PEER did not finish reading */
    WK_NO_MESSAGE,  /* PEER did not send */
    WK_NOT_TAKEN,   /* PEER did not receive */
    WK_WRONG_BYTES, /* PEER sent HAVE bytes, WANT were expected */
    WK_NO_SIGNAL,   /* signal PEER is at HAVE; awaited with WANT */
    WK_GAVE_UP,     /* PEER, a source, failed */
    WK_DECLINED,    /* PEER cannot continue; HAVE is the reason, as in DECLINED */
    WK_WAS_ABORTED
};
struct wk_report {
    uint64_t abort; /* set by the host: stop */
    uint64_t reason, peer, have, want;
};

/* Arguments that all operations of a communicator share. */
struct wk_channel {
    uint64_t control, report;
    const struct wk_peer *peers;
    uint64_t timeout_ns; /* 0: none */
    uint32_t rank, size;
};

enum wk_phase {
    WK_OFFER = 1,  /* publish the address of this rank's data to the peers of the window */
    WK_AWAIT = 2,  /* wait for the offers of the listed ranks and look up their addresses */
    WK_KEEP = 4,   /* store the addresses in TABLE, for the following kernels */
    WK_CLOSE = 8,  /* notify the sources, and wait until this rank's readers are done */
    WK_FREELY = 16 /* close without waiting for peers, because no peer's memory was used */
};

/* Begin and end of an operation.  A table of addresses has LOCAL, then one entry per listed rank,
 * then one entry per push target.  A kernel that does not look addresses up itself reads them from
 * TABLE. */
struct wk_sync {
    struct wk_channel channel;
    uint64_t table, local;
    uint64_t send,
        send_step; /* the offer to peer p is SEND + p * SEND_STEP, or OFFERS[p - FIRST] */
    uint64_t recv;
    uint32_t phases, blocks;
    uint32_t first, count;     /* the window of peers to publish to */
    uint32_t listed, place;    /* number of ranks to wait for; their position in the table */
    uint32_t pushes;           /* 1: the recv addresses of the listed ranks follow */
    uint32_t in_order;         /* 1: the listed ranks are 0, 1, 2...; else LIST */
    uint32_t varied;           /* 1: use OFFERS */
    uint32_t by_few;           /* 1: only the following ranks take part */
    uint64_t readers, sources; /* bits of the ranks that read from this one, and of those that it
                                  reads from */
    uint64_t offers[WK_LIST];
    uint16_t list[WK_LIST];
};

/* Work on a list of regions whose sources are the listed ranks' memory, in COUNT tiles.  The first
 * block begins with tile FIRST, so that devices do not all read from the same rank first.  PULL
 * numbers the kernels of an operation. */
struct wk_pull_args {
    struct wk_sync sync;
    const struct wk_region *regions;
    const struct wk_tile *tiles; /* or wk_transpose_tile */
    uint32_t reduction, size, word;
    uint32_t first, count, blocks, pull, divisor; /* DIVISOR: of an average */
    uint32_t to;                                  /* dtype of the target, if the pull casts */
};

/* Copies of PARTS whole parts.  Part i is copied from address FIRST + 1 + i of the table to LOCAL +
 * AT, by PER_PART blocks. */
struct wk_move_args {
    struct wk_sync sync;
    uint32_t parts, per_part, first, varied;
    uint64_t bytes, step; /* AT[i] and LENGTH[i] if VARIED, else i * STEP and BYTES */
    uint64_t at[WK_LIST], length[WK_LIST];
};

/* Reduces elements BEGIN to END of SIZE sources, in order, to LOCAL or to PUSHES targets. */
struct wk_gather_reduce_args {
    struct wk_sync sync;
    uint64_t begin, end;
    uint32_t reduction, size, pushes, divisor; /* DIVISOR: of an average */
};

struct wk_post_item {
    uint64_t address, bytes;
    uint32_t peer, reserved;
};

/* Publishes messages to their receivers and waits until these have received them. */
struct wk_post_args {
    struct wk_channel channel;
    uint32_t count, settle;
    struct wk_post_item items[WK_MESSAGES];
};

struct wk_fetch_item {
    uint64_t target, bytes;
    uint32_t peer, reserved;
};

/* Receives one message from its sender.  If IS_CHAINED, it then awaits the next one and keeps its
 * address in TABLE. */
struct wk_fetch_args {
    struct wk_channel channel;
    uint64_t table;
    uint32_t phases, blocks, is_chained, reserved;
    struct wk_fetch_item item, next;
};

/* This rank cannot take part.  WORD is the reason, as in DECLINED. */
struct wk_decline_args {
    struct wk_channel channel;
    uint64_t word;
};

enum wk_signal_op { WK_SIGNAL_SET, WK_SIGNAL_ADD };
enum wk_compare { WK_EQ, WK_NE, WK_GE, WK_GT, WK_LE, WK_LT };

/* Sets ADDRESS, adds to it, or waits for it. */
struct wk_signal_args {
    struct wk_channel channel;
    uint64_t address, value;
    uint32_t op, compare, signal, reserved;
};

#endif
