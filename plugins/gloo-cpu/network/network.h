/* network.h - what carries data between hosts: UCX or Gloo, behind one interface.
 *
 * A carrier connects the ranks of one communicator that are on different hosts, and moves messages
 * between them.  Everything else is built on messages: collectives (hosts/), notices of failure.
 * Nothing outside a carrier knows which library it uses.
 *
 * Creation has three steps, so that addresses can travel over weft's own rendezvous: every rank
 * listens, the ranks exchange what address() wrote, every rank connects.  After any failure the
 * connections can only be closed.
 *
 * Carriers throw no exceptions, and end no process. */
#ifndef WEFT_CPU_NETWORK_H
#define WEFT_CPU_NETWORK_H

#include "weft_plugin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NET_VERSION      4u /* of struct net_carrier; libweft_gloo.so is a file of its own */
#define NET_NOTICE_BYTES 512

/* What a rank does, for comparison: equal on the ranks that do the same. */
struct net_call {
    uint64_t words[2];
};

/* A failure.  Statuses: WEFT_ERR_PEER (the connection to the peer broke), _TIMEOUT, _ABORTED,
 * _MISMATCH (a message has another length or call than its receiver expects), _SYSTEM (no socket,
 * no address), _NO_MEMORY, _INTERNAL. */
struct net_failure {
    weft_status status;
    int32_t peer;    /* rank of the communicator, or -1 */
    bool other_call; /* _MISMATCH: the peer makes the call THEIRS */
    struct net_call theirs;
    char text[512];
};

/* Messages of different kinds do not match. */
enum net_kind {
    NET_COLLECTIVE,
    NET_MESSAGE,
    NET_SENDERS_LABEL,
    NET_RECEIVERS_LABEL,
    NET_REQUEST, /* one-sided operations (hosts/hosts_windows.c) */
    NET_REQUEST_DATA,
    NET_REPLY
};

/* A message to or from one peer.  Messages of one kind and tag between two ranks match in order. */
struct net_part {
    int32_t peer;
    uint32_t kind, tag;
    uint32_t reserved;
    void *data;
    size_t bytes;
    struct net_call call; /* of the message that is sent, or expected */
};

/* The ranks of one communicator. */
struct net_ranks {
    int32_t rank, size;
    const uint8_t *wanted; /* by rank: to be connected; symmetric between ranks */
    int64_t timeout_ns;    /* of every wait: at least 1 ms, or negative for none */
    const char *address;   /* numeric IPv4 or IPv6 address of this host, for its connections */
    const char *interface; /* the network interface that has this address */
};

struct net_group;
struct net_work;

/* Failing functions fill FAILURE and leave outputs alone.  Threads: connecting and closing one at a
 * time per group; the rest [any]. */
struct net_carrier {
    uint32_t version;    /* NET_VERSION */
    const char *library; /* "Gloo 0.5.0" */

    /* Does not communicate. */
    weft_status (*listen)(const struct net_ranks *ranks, struct net_group **out,
                          struct net_failure *failure);
    /* What this rank publishes to all others; it may be shorter than that of another rank. */
    size_t (*address_bytes)(const struct net_group *group);
    void (*address)(const struct net_group *group, void *out);
    /* Collective.  ADDRESSES has the published bytes of every rank, each STRIDE bytes behind the
     * one before.  KEY is equal on all ranks of the group, and different in every group: a
     * connection from a non-member is detected and is an error. */
    weft_status (*connect)(struct net_group *group, const void *addresses, size_t stride,
                           uint64_t key, struct net_failure *failure);
    void (*close)(struct net_group *group); /* NULL is accepted */
    /* End all pending and later calls with WEFT_ERR_ABORTED.  Does not wait. */
    void (*abort)(struct net_group *group);

    /* Start all messages at once.  Their memory is in use until `wait`, which the caller calls also
     * after a failure of another call.  *OUT is NULL if there are no messages. */
    weft_status (*start)(struct net_group *group, uint32_t send_count, const struct net_part *sends,
                         uint32_t receive_count, const struct net_part *receives,
                         struct net_work **out, struct net_failure *failure);
    /* Frees WORK in any case; NULL is accepted. */
    weft_status (*wait)(struct net_group *group, struct net_work *work,
                        struct net_failure *failure);

    /* After a failure: send a notice of NET_NOTICE_BYTES to every connected peer, then close the
     * connections.  Pending calls of this rank and its peers end.  Best effort; takes
     * milliseconds. */
    void (*hang_up)(struct net_group *group, const void *notice);
    /* The notice that PEER sent when it disconnected; zeros if it sent none. */
    void (*read_notice)(struct net_group *group, int32_t peer, void *notice);

    /* Write what a connected group uses, "tcp/eth0, rc_mlx5/mlx5_0:1", to OUT of BYTES, at least 1;
     * "" if that is not known. */
    void (*transport)(struct net_group *group, char *out, size_t bytes);

    /* Wait without a time limit until *PEER has sent a message of KIND that nobody receives.
     * Meanwhile what arrives moves.  One thread at a time calls this.  False: the group has failed,
     * or end_await was called.  NULL: the carrier has neither. */
    bool (*await)(struct net_group *group, uint32_t kind, int32_t *peer);
    void (*end_await)(struct net_group *group);
};

/* ---- Gloo: gloo_carrier.cc, the only C++ of weft, is libweft_gloo.so ---- */

/* Its one exported symbol. */
#define NET_GLOO_ENTRY "weft_gloo_carrier"
typedef const struct net_carrier *net_gloo_entry(void);

#ifdef __cplusplus
}
#endif
#endif
