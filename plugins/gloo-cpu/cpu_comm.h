/* comm.h - a communicator: the ranks of this host as a group, and what the ABI adds to it. */
#ifndef WEFT_CPU_COMM_H
#define WEFT_CPU_COMM_H

#include "stream/cpu_bell.h"
#include "shm/shm_mailbox.h"

struct cpu_device {
    struct cpu_heap heap;
    int32_t local_rank;
    bool is_held; /* by a communicator that could not be freed */
};

/* A collective with everything it needs, no longer depending on the caller's arguments. */
struct cpu_call {
    struct cpu_shm_op op;
    _Alignas(16) unsigned char scale[16];
    uint64_t *counts; /* copies of the arrays; owned */
    uint64_t turn;
};

/* Calls between group_begin and group_end. */
struct cpu_batch {
    struct cpu_comm *comm;
    size_t call_count, call_room;
    struct cpu_call *calls;
    size_t transfer_count, transfer_room;
    struct cpu_shm_transfer *transfers;
    size_t stream_count, stream_room;
    void **streams;         /* each once; NULL may be among them */
    struct cpu_error error; /* the first */
};

struct cpu_comm {
    struct cpu_device *device;
    char *name;
    int32_t rank, size, world_rank;
    int32_t hosts;                 /* 1: the group is the whole communicator */
    int32_t *members;              /* the group's ranks, as ranks of the communicator */
    int32_t *places;               /* a rank's place in the group; -1: on another host */
    int32_t *names;                /* a rank's number in the world, for messages */
    int32_t *host_of;              /* a rank's host; hosts in the order of their first ranks */
    uint64_t *host_ids;            /* a rank's host id, from the options */
    struct cpu_shm_group group;    /* the ranks of this host */
    char apart[400];               /* why ranks of this host share no memory; empty if they do */
    char carrier[800];             /* what carries data between the ranks; empty: there is one */
    void *address;                 /* the published address: struct cpu_address */
    struct cpu_hosts *other_hosts; /* NULL with one host */
    /* Collectives are numbered when they are called and run in that order, on whatever stream. */
    uint64_t issued;
    _Atomic(uint64_t) finished;
    struct cpu_bell turn_came;
    _Atomic(uint64_t) under_way; /* collectives and messages on streams */
    struct cpu_window *windows;  /* that have not been freed */
    pthread_mutex_t windows_lock;
    int group_depth;
    struct cpu_batch batch;
};

/* ---- cpu_device.c ---- */

weft_status cpu_probe(weft_probe *out);
weft_status cpu_device_open(const weft_device_options *options, void **device);
void cpu_device_close(void *device);
weft_status cpu_device_describe(void *device, weft_device_info *out);
weft_status cpu_device_allocate(void *device, uint64_t bytes, uint32_t kind, void **pointer);
weft_status cpu_device_free(void *device, void *pointer);
weft_status cpu_device_allocate_on(void *device, uint64_t bytes, void *stream, void **pointer);
weft_status cpu_device_free_on(void *device, void *pointer, void *stream);
weft_status cpu_device_query_pointer(void *device, const void *pointer, weft_pointer_info *out);
weft_status cpu_device_copy(void *device, void *target, const void *source, uint64_t bytes,
                            void *stream);
weft_status cpu_device_fill(void *device, void *target, uint8_t byte, uint64_t bytes, void *stream);

/* ---- cpu_comm.c ---- */

weft_status cpu_comm_prepare(void *device, const weft_comm_options *options, void **comm,
                             weft_blob *address);
weft_status cpu_comm_commit(void *comm, const weft_blob *addresses, const weft_exchange *exchange);
void cpu_comm_destroy(void *comm);
void cpu_comm_abort(void *comm);
weft_status cpu_comm_async_error(void *comm);
const char *cpu_comm_carrier(void *comm);

/* Result of a step of commit on one rank.  Structs that ranks exchange begin with it. */
struct cpu_outcome {
    int32_t status;
    char text[508];
};

/* All-gather BYTES into ALL.  If any rank failed, all ranks fail with the first failure. */
weft_status cpu_agree(const struct cpu_comm *comm, const void *mine, void *all, size_t bytes,
                      const weft_exchange *exchange);
/* STATUS and the text of this thread's last failure. */
void cpu_outcome_set(const struct cpu_comm *comm, struct cpu_outcome *outcome, weft_status status);

/* ---- hosts_*.c: communicators over several hosts ---- */

/* Sort the ranks into hosts.  Ranks are on one host if their host ids are equal and all of them
 * have mapped each other's memory.  ATTACHED has one row per rank: whose memory it has mapped. Sets
 * HOSTS and HOST_OF, and leaves the ranks of this host in the group. */
weft_status cpu_hosts_arrange(struct cpu_comm *comm, const unsigned char *attached);
/* Connect the hosts.  Collective; part of commit. */
weft_status cpu_hosts_open(struct cpu_comm *comm, const weft_exchange *exchange);
void cpu_hosts_close(struct cpu_comm *comm);
/* After this no other host accesses this rank's windows. */
void cpu_hosts_serve_end(struct cpu_comm *comm);
void cpu_hosts_abort(struct cpu_comm *comm);
/* WEFT_OK if communicators can span hosts; else the reason. */
weft_status cpu_hosts_possible(void);

/* Any collective. */
weft_status cpu_hosts_run(struct cpu_comm *comm, const struct cpu_shm_op *op);

/* Start messages to and from other hosts: those of TRANSFERS with a negative PEER, which is -1 -
 * its rank.  The wait returns failures and frees *OUT.  It accepts NULL. */
struct cpu_hosts_messages;
void cpu_hosts_messages_start(struct cpu_comm *comm, const struct cpu_shm_transfer *transfers,
                              size_t count, struct cpu_hosts_messages **out);
weft_status cpu_hosts_messages_wait(struct cpu_comm *comm, struct cpu_hosts_messages *messages);

/* ---- cpu_collective.c ---- */

weft_status cpu_comm_support(void *device, const weft_support_query *query, uint32_t *level);
weft_status cpu_comm_collective(void *comm, const weft_collective_args *args);
/* Run WORK when the collectives called before it are done. */
weft_status cpu_run_in_turn(struct cpu_comm *comm, uint64_t turn,
                            weft_status (*work)(struct cpu_comm *, const void *),
                            const void *argument);
weft_status cpu_call_run(struct cpu_comm *comm, uint64_t turn, const struct cpu_shm_op *op);
/* Wake calls that wait for their turn: the communicator has failed. */
void cpu_turns_end(struct cpu_comm *comm);

/* ---- cpu_message.c ---- */

weft_status cpu_comm_send(void *comm, const weft_message *message);
weft_status cpu_comm_receive(void *comm, const weft_message *message);
/* Start messages, and wait until all of them are complete.  The wait returns failures. */
void cpu_transfers_start(struct cpu_comm *comm, struct cpu_shm_transfer *transfers, size_t count,
                         struct cpu_hosts_messages **messages);
weft_status cpu_transfers_wait(struct cpu_comm *comm, struct cpu_shm_transfer *transfers,
                               size_t count, struct cpu_hosts_messages *messages);

/* ---- cpu_group.c ---- */

weft_status cpu_comm_group_begin(void *comm);
weft_status cpu_comm_group_end(void *comm);
/* Add to the open group; CALL's counts become the group's, also on failure. */
weft_status cpu_group_add_call(struct cpu_comm *comm, const struct cpu_call *call, void *stream);
weft_status cpu_group_add_transfer(struct cpu_comm *comm, const struct cpu_shm_transfer *transfer,
                                   void *stream);
/* Keep STATUS and the text of this thread's last failure as the open group's error, if it is the
 * first. */
void cpu_group_fail(struct cpu_comm *comm, weft_status status);
void cpu_group_clear(struct cpu_comm *comm);

/* ---- cpu_cost.c ---- */

weft_status cpu_comm_cost(void *device, const weft_support_query *query, uint64_t bytes,
                          weft_cost *out);

#endif
