/* ucx.h - the UCX library as a carrier (network.h), on its active messages.
 *
 * A group has one worker of UCX and one endpoint per peer.  Every message has a header with the key
 * of the group and with a number per sender, so that messages of strangers and replayed ones are
 * dropped, and matches are in order.  Messages are matched here: UCX knows of no buffer until its
 * message has come.
 *
 * Data moves while a thread of the rank is in a call.  One thread at a time makes progress for all
 * of them. */
#ifndef WEFT_CPU_UCX_H
#define WEFT_CPU_UCX_H

#include "network/network.h"

#include <ucp/api/ucp.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

/* ---- ucx_library.c ---- */

#define UCX_FUNCTIONS(F)                                                                           \
    F(ucp_get_version)                                                                             \
    F(ucp_config_read)                                                                             \
    F(ucp_config_modify)                                                                           \
    F(ucp_config_print)                                                                            \
    F(ucp_config_release)                                                                          \
    F(ucp_init_version)                                                                            \
    F(ucp_cleanup)                                                                                 \
    F(ucp_worker_create)                                                                           \
    F(ucp_worker_destroy)                                                                          \
    F(ucp_worker_get_address)                                                                      \
    F(ucp_worker_release_address)                                                                  \
    F(ucp_worker_set_am_recv_handler)                                                              \
    F(ucp_worker_progress)                                                                         \
    F(ucp_worker_get_efd)                                                                          \
    F(ucp_worker_arm)                                                                              \
    F(ucp_ep_create)                                                                               \
    F(ucp_ep_print_info)                                                                           \
    F(ucp_ep_close_nbx)                                                                            \
    F(ucp_am_send_nbx)                                                                             \
    F(ucp_am_recv_data_nbx)                                                                        \
    F(ucp_am_data_release)                                                                         \
    F(ucp_request_check_status)                                                                    \
    F(ucp_request_free)                                                                            \
    F(ucs_status_string)

struct ucx_functions {
#define UCX_MEMBER(name) __typeof__(name) *name;
    UCX_FUNCTIONS(UCX_MEMBER)
#undef UCX_MEMBER
};

extern struct ucx_functions ucx; /* valid after net_ucx has succeeded */
/* A group exists: children of this process cannot use UCX from now on. */
void ucx_library_is_used(void);

/* ---- a group ---- */

#define UCX_MESSAGE_ID 1u

/* Kinds beside enum net_kind. */
enum { UCX_HELLO = 16, UCX_NOTICE, UCX_GOODBYE, UCX_HEARD };

struct ucx_header {
    uint64_t key, bytes;
    uint32_t from, number; /* the sender's rank, and how many messages it sent here before */
    uint32_t kind, tag;
    struct net_call call;
};

/* A message that has come before its receive, or before its turn. */
struct ucx_arrival {
    struct ucx_arrival *next;
    struct ucx_header header;
    void *descriptor; /* UCX's, of data that has not been transferred; NULL: DATA has it */
    unsigned char data[];
};

struct ucx_peer {
    struct net_group *group;
    int32_t rank;
    bool wanted, said_hello, departed, has_notice;
    bool has_heard;  /* it has received this rank's notice or goodbye */
    bool is_strange; /* a hello in its name had another key */
    ucp_ep_h endpoint;
    struct ucx_op *ops;                   /* unfinished, oldest first */
    struct ucx_arrival *arrivals, *early; /* oldest first; in any order */
    uint32_t sent, received;
    struct net_failure cause; /* why it departed */
    struct ucx_header hello, farewell, answer;
    void *close; /* request of UCX */
    unsigned char notice[NET_NOTICE_BYTES];
};

struct net_group {
    int32_t rank, size;
    int64_t timeout_ns;
    uint64_t key;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_bytes;
    int wake[2], efd; /* the ends of a pipe, which wake the thread that makes progress; UCX's */

    pthread_mutex_t lock; /* of all below, and of UCX */
    pthread_cond_t changed;
    pthread_cond_t server; /* the thread that waits for requests */
    bool serves, serves_no_more;
    bool has_leader, leader_yields, connected, has_failed, has_hung_up;
    uint32_t sleepers; /* threads that wait for UCX or the pipe */
    uint64_t turn;     /* changes with the leader */
    bool is_dead;      /* UCX may still refer to memory of a caller: no progress any more */
    uint32_t followers;
    uint32_t controls; /* hellos, notices and goodbyes under way */
    unsigned char farewell[NET_NOTICE_BYTES];
    struct net_work *abandoned;
    _Atomic(bool) aborted;
    struct ucx_peer peers[];
};

/* One part of a work.  In its peer's list until it is finished. */
struct ucx_op {
    struct ucx_op *next;
    struct net_work *work;
    struct ucx_peer *peer;
    struct ucx_header header; /* of the message that is sent, or expected */
    void *data;
    void *request; /* UCX's, while the data moves */
    bool finished;
};

struct net_work {
    struct net_group *group;
    struct net_work *next; /* of abandoned ones */
    uint32_t count, left;
    struct net_failure failure; /* the first; status WEFT_OK: none */
    struct ucx_op ops[];
};

/* In these, the caller holds the lock, except where stated. */

/* Fill FAILURE; returns STATUS. */
weft_status ucx_fail(struct net_failure *failure, weft_status status, int32_t peer,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- ucx_progress.c ---- */

/* Make progress until DONE; false: DEADLINE has passed (0 or more, by plug_now), or the group is
 * dead.  Releases the lock meanwhile. */
bool ucx_wait(struct net_group *group, bool (*done)(const void *), const void *argument,
              int64_t deadline);
int64_t ucx_deadline(int64_t timeout_ns);
/* Make progress until DONE, DEADLINE, or another thread does.  YIELDS: any thread may take over,
 * and this one sleeps when there is nothing to do. */
void ucx_lead(struct net_group *group, bool (*done)(const void *), const void *argument,
              int64_t deadline, bool yields);
/* Sleep until CHANGED, some milliseconds at most. */
void ucx_follow(struct net_group *group, pthread_cond_t *changed, int64_t deadline);
/* Wake the thread that makes progress. [any, without the lock] */
void ucx_wake(struct net_group *group);

/* ---- ucx_match.c: messages that come, and whom they are for ---- */

/* Callback of UCX. */
ucs_status_t ucx_arrived(void *group, const void *header, size_t header_bytes, void *data,
                         size_t bytes, const ucp_am_recv_param_t *param);
/* Receive OP: at once if its message has come. */
void ucx_expect(struct ucx_op *op);
/* OP ends, with FAILURE unless it is NULL. */
void ucx_op_end(struct ucx_op *op, const struct net_failure *failure);
/* Callback's share of the end of a request of OP. */
void ucx_op_moved(struct ucx_op *op, ucs_status_t status);
void ucx_op_add(struct ucx_op *op);
/* Nothing more comes from PEER, and nothing reaches it. */
void ucx_depart(struct ucx_peer *peer, weft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ucx_drop_arrivals(struct ucx_peer *peer);

/* ---- ucx_group.c ---- */

weft_status ucx_listen(const struct net_ranks *ranks, struct net_group **out,
                       struct net_failure *failure);
size_t ucx_address_bytes(const struct net_group *group);
void ucx_address(const struct net_group *group, void *out);
weft_status ucx_connect(struct net_group *group, const void *addresses, size_t stride, uint64_t key,
                        struct net_failure *failure);
void ucx_close(struct net_group *group);
void ucx_abort(struct net_group *group);

/* ---- ucx_ending.c ---- */

/* Send a message of KIND to every peer that is left, and wait a moment until each has received it.
 * The peers say so themselves: a flush of UCX 1.13 over TCP is an empty put, and UCX ends the
 * process if that is confirmed after the connection has failed. */
void ucx_say_farewell(struct net_group *group, uint32_t kind, size_t bytes);
/* End the connection to PEER at once. */
void ucx_break_off(struct ucx_peer *peer);
/* End all connections.  The group can only be freed afterwards. */
void ucx_end_connections(struct net_group *group);
/* Send HEADER with the BYTES of DATA, which stay until group->controls is 0. */
void ucx_control(struct ucx_peer *peer, struct ucx_header *header, uint32_t kind, const void *data,
                 size_t bytes);
void ucx_hang_up(struct net_group *group, const void *notice);
void ucx_read_notice(struct net_group *group, int32_t rank, void *notice);

/* ---- ucx_message.c ---- */

weft_status ucx_start(struct net_group *group, uint32_t send_count, const struct net_part *sends,
                      uint32_t receive_count, const struct net_part *receives,
                      struct net_work **out, struct net_failure *failure);
weft_status ucx_work_wait(struct net_group *group, struct net_work *work,
                          struct net_failure *failure);

/* ---- ucx_transport.c ---- */

void ucx_transport(struct net_group *group, char *out, size_t bytes);

/* ---- ucx_serve.c ---- */

bool ucx_await(struct net_group *group, uint32_t kind, int32_t *peer);
void ucx_end_await(struct net_group *group);

#endif
