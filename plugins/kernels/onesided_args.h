/* onesided_args.h - what the host and the one-sided kernels share: memory in which ranks tell each
 * other where their data lies and that they are done with it.
 *
 * Every rank has an arena, memory that all ranks reach by load and store; addresses travel as
 * offsets from its start.  Every communicator has a control block in each rank's arena. */
#ifndef WEFT_ONESIDED_ARGS_H
#define WEFT_ONESIDED_ARGS_H

#include "kernel_args.h"

#define WK_MESSAGES 16u  /* messages under way from one rank to another */
#define WK_HELD     128u /* addresses that a kernel which opens an operation itself can hold */
#define WK_LIST     60u  /* peers or sources that travel inside a kernel's arguments */
#define WK_PULLS    8u   /* kernels that one operation can consist of */
#define WK_NOWHERE  UINT64_MAX

struct wk_message {
    uint64_t number; /* of the message, from 1; written last */
    uint64_t address, bytes, reserved;
};

/* What one peer tells the owner of the control block.  READY, DONE and TAKEN only grow. */
struct wk_post {
    uint64_t ready, send, recv; /* operation, and where its data lies in the peer's arena */
    uint64_t done;              /* operation in which the peer needs our memory no more */
    uint64_t taken;             /* messages of ours that the peer has */
    uint64_t sent, received;    /* messages to and from the peer; the owner's own count */
    uint64_t reserved;
    struct wk_message messages[WK_MESSAGES]; /* from the peer */
};

struct wk_control {
    uint64_t operation; /* the last one that is done; the owner's own count */
    uint64_t failed;    /* not 0: this rank gave up, and nothing of it runs any more */
    uint32_t finished;  /* blocks of the running kernel that are through */
    uint32_t reserved;
    uint32_t taken[WK_PULLS]; /* tiles that blocks of the running operation's kernels took */
    uint64_t
        declined; /* 0, or why this rank can do no more: rank + 1 of the first, and its reason */
    struct wk_post posts[1]; /* as many as there are ranks */
};

/* A peer as this rank sees it. */
struct wk_peer {
    uint64_t control, arena; /* addresses */
};

/* Why a kernel gave up.  In pinned host memory; REASON is written last. */
enum wk_reason {
    WK_FINE,
    WK_NOT_READY,   /* PEER did not come to the operation */
    WK_NOT_DONE,    /* PEER came, but still reads */
    WK_NO_MESSAGE,  /* PEER sent nothing */
    WK_NOT_TAKEN,   /* PEER received nothing */
    WK_WRONG_BYTES, /* PEER sent HAVE bytes, WANT were expected */
    WK_NO_SIGNAL,   /* signal PEER is at HAVE; awaited with WANT */
    WK_GAVE_UP,     /* PEER, from which was read */
    WK_DECLINED,    /* PEER can do no more; HAVE says why, as DECLINED does */
    WK_WAS_ABORTED
};
struct wk_report {
    uint64_t abort; /* written by the host: give up */
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
    WK_OFFER = 1, /* tell the peers of the window where this rank's data lies */
    WK_AWAIT = 2, /* wait for the listed ranks' offers, and look up their addresses */
    WK_KEEP = 4,  /* into TABLE, for the kernels that follow */
    WK_CLOSE =
        8, /* say that this rank needs no peer's memory any more, wait until none needs its */
    WK_FREELY = 16 /* close without waiting for peers: nobody's memory was used */
};

/* The beginning and the end of an operation.  A table of addresses holds LOCAL, then one for each
 * listed rank, then one for each place to push to.  A kernel that does not look addresses up itself
 * finds them in TABLE. */
struct wk_sync {
    struct wk_channel channel;
    uint64_t table, local;
    uint64_t send, send_step; /* peer p is offered SEND + p * SEND_STEP, or OFFERS[p - FIRST] */
    uint64_t recv;
    uint32_t phases, blocks;
    uint32_t first, count;     /* the window of peers to offer to */
    uint32_t listed, place;    /* ranks to await; where in the table they go */
    uint32_t pushes;           /* 1: recv of the listed ranks follows */
    uint32_t in_order;         /* 1: listed are ranks 0, 1, 2..., else LIST */
    uint32_t varied;           /* 1: OFFERS count */
    uint32_t by_few;           /* 1: of all ranks only these take part: */
    uint64_t readers, sources; /* bits of ranks that read from this one, and that it reads from */
    uint64_t offers[WK_LIST];
    uint16_t list[WK_LIST];
};

/* Work on a list of regions whose sources are the listed ranks' memory, in COUNT tiles.  The first
 * block begins with tile FIRST, so that not all devices read from the same one first.  PULL numbers
 * the kernels of an operation. */
struct wk_pull_args {
    struct wk_sync sync;
    const struct wk_region *regions;
    const struct wk_tile *tiles; /* or wk_transpose_tile */
    uint32_t reduction, size, word;
    uint32_t first, count, blocks, pull, divisor; /* of an average */
};

/* Copies of whole parts: PARTS of them, number i from address FIRST + 1 + i of the table to LOCAL
 * plus AT, each by PER_PART blocks. */
struct wk_move_args {
    struct wk_sync sync;
    uint32_t parts, per_part, first, varied;
    uint64_t bytes, step; /* AT[i] and LENGTH[i] if VARIED, else i * STEP and BYTES */
    uint64_t at[WK_LIST], length[WK_LIST];
};

/* Elements BEGIN to END of SIZE sources, reduced in order, to LOCAL, or to PUSHES places. */
struct wk_gather_reduce_args {
    struct wk_sync sync;
    uint64_t begin, end;
    uint32_t reduction, size, pushes, divisor; /* of an average */
};

struct wk_post_item {
    uint64_t address, bytes;
    uint32_t peer, reserved;
};

/* Messages told to their receivers, and waited for until these have them. */
struct wk_post_args {
    struct wk_channel channel;
    uint32_t count, settle;
    struct wk_post_item items[WK_MESSAGES];
};

/* One message fetched from its sender. */
struct wk_fetch_args {
    struct wk_channel channel;
    uint64_t table, target, bytes;
    uint32_t peer, phases, blocks, reserved;
};

/* This rank does not come, and why: WORD, as in DECLINED. */
struct wk_decline_args {
    struct wk_channel channel;
    uint64_t word;
};

enum wk_signal_op { WK_SIGNAL_SET, WK_SIGNAL_ADD };
enum wk_compare { WK_EQ, WK_NE, WK_GE, WK_GT, WK_LE, WK_LT };

/* ADDRESS is set or added to; or it is waited for. */
struct wk_signal_args {
    struct wk_channel channel;
    uint64_t address, value;
    uint32_t op, compare, signal, reserved;
};

#endif
