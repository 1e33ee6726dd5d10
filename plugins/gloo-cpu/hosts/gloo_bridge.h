/* gloo_bridge.h - the Gloo library as a table of C functions.
 *
 * gloo_bridge.cc, the only C++ of weft, becomes libweft_gloo.so.  The plugin opens it when ranks
 * are on several hosts.  If Gloo is missing, the plugin still loads and serves one host.  The
 * functions throw no exceptions.
 *
 * A device is one network address and the thread that serves its sockets.  A group is SIZE ranks,
 * some pairs of which are connected.  Groups are made in two steps, so that the addresses can
 * travel over weft's own rendezvous: listen, exchange addresses, connect.  After any failure a
 * group can only be closed. */
#ifndef WEFT_CPU_GLOO_BRIDGE_H
#define WEFT_CPU_GLOO_BRIDGE_H

#include "weft_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GLOO_BRIDGE_VERSION 1u
#define GLOO_BRIDGE_ENTRY   "weft_gloo_bridge"

/* A failure.  Statuses: WEFT_ERR_PEER (the peer's connection broke), _TIMEOUT, _ABORTED, _SYSTEM
 * (no socket, no address), _NO_MEMORY, _INTERNAL. */
struct gloo_failure {
    weft_status status;
    int32_t peer; /* rank within the group, or -1 */
    char text[512];
};

/* A message to or from one peer.  Messages with the same SLOT between two ranks match in order.
 * Both sides pass the same BYTES. */
struct gloo_part {
    int32_t peer;
    uint32_t reserved;
    uint64_t slot;
    void *data;
    size_t bytes;
};

/* The bridge reserves slots from this number on. */
#define GLOO_SLOT_LIMIT (UINT64_C(1) << 56)

struct gloo_device;
struct gloo_group;
struct gloo_work;

/* Failing functions fill FAILURE and leave outputs alone.  Threads: collectives, connecting and
 * closing one at a time per group; the rest [any]. */
struct gloo_bridge {
    uint32_t version; /* GLOO_BRIDGE_VERSION */
    uint32_t address_bytes;
    const char *library; /* "Gloo 0.5.0" */

    /* ADDRESS is a numeric IPv4 or IPv6 address of this host. */
    weft_status (*device_open)(const char *address, struct gloo_device **out,
                               struct gloo_failure *failure);
    void (*device_close)(struct gloo_device *device); /* its groups first; NULL is accepted */

    /* Listen for each peer with WANTED[peer] != 0; WANTED is symmetric between ranks.  ADDRESSES
     * receives SIZE x address_bytes: entry i is for rank i, zeros if it is not wanted.  Does not
     * communicate.  TIMEOUT_NS, at least 1 ms, is the time limit of every wait. */
    weft_status (*group_listen)(struct gloo_device *device, int32_t rank, int32_t size,
                                const uint8_t *wanted, int64_t timeout_ns, void *addresses,
                                struct gloo_group **out, struct gloo_failure *failure);
    /* Collective.  Entry i of ADDRESSES is the address that rank i made for this rank.  KEY is
     * equal on all ranks of the group, and different in every group: a connection from a non-member
     * is detected and is an error. */
    weft_status (*group_connect)(struct gloo_group *group, const void *addresses, uint64_t key,
                                 struct gloo_failure *failure);
    void (*group_close)(struct gloo_group *group); /* NULL is accepted */
    /* End all pending and later calls with WEFT_ERR_ABORTED.  Does not wait. */
    void (*group_abort)(struct gloo_group *group);

    /* Start all messages at once.  Their memory is in use until `wait`, which the caller calls also
     * after a failure of another call.  *OUT is NULL if there are no messages. */
    weft_status (*start)(struct gloo_group *group, uint32_t send_count,
                         const struct gloo_part *sends, uint32_t receive_count,
                         const struct gloo_part *receives, struct gloo_work **out,
                         struct gloo_failure *failure);
    /* Frees WORK in any case; NULL is accepted. */
    weft_status (*wait)(struct gloo_group *group, struct gloo_work *work,
                        struct gloo_failure *failure);

    /* Gloo's collectives, where all pairs are connected.  In place: DATA holds the parts of all
     * ranks one after the other, BYTES[i] long. */
    weft_status (*all_gather_v)(struct gloo_group *group, void *data, const size_t *bytes,
                                struct gloo_failure *failure);
    weft_status (*broadcast)(struct gloo_group *group, void *data, size_t bytes, int32_t root,
                             struct gloo_failure *failure);
    weft_status (*barrier)(struct gloo_group *group, struct gloo_failure *failure);

    /* After a failure: send a notice of GLOO_NOTICE_BYTES to every connected peer, then close the
     * connections.  Pending calls of this rank and its peers end.  Best effort; takes
     * milliseconds. */
    void (*hang_up)(struct gloo_group *group, const void *notice);
    /* The notice that PEER sent when it disconnected; zeros if it sent none. */
    void (*read_notice)(struct gloo_group *group, int32_t peer, void *notice);
};

#define GLOO_NOTICE_BYTES 512

/* The one exported symbol, GLOO_BRIDGE_ENTRY. */
typedef const struct gloo_bridge *gloo_bridge_entry(void);

#ifdef __cplusplus
}
#endif
#endif
