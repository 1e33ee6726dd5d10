/* comm.h - a communicator: the ranks of this host as a group, and what the ABI adds to it. */
#ifndef WEFT_CPU_COMM_H
#define WEFT_CPU_COMM_H

#include "shm.h"

struct wf_cpu_device {
    struct wf_cpu_heap heap;
    int32_t local_rank;
};

struct wf_cpu_comm {
    struct wf_cpu_device *device;
    char *name;
    int32_t rank, size;
    int32_t hosts;             /* 1: the group is the whole communicator */
    struct wf_shm_group group; /* the ranks of this host */
    struct wf_cpu_address *address;
    /* Collectives are numbered when they are called and run in that order, on whatever stream. */
    pthread_mutex_t turn_lock;
    pthread_cond_t turn_changed;
    uint64_t issued, finished;
};

/* ---- cpu_device.c ---- */

weft_status wf_cpu_probe(weft_probe *out);
weft_status wf_cpu_device_open(const weft_device_options *options, void **device);
void wf_cpu_device_close(void *device);
weft_status wf_cpu_device_describe(void *device, weft_device_info *out);
weft_status wf_cpu_device_allocate(void *device, uint64_t bytes, uint32_t kind, void **pointer);
weft_status wf_cpu_device_free(void *device, void *pointer);
weft_status wf_cpu_device_query_pointer(void *device, const void *pointer, weft_pointer_info *out);
weft_status wf_cpu_device_copy(void *device, void *target, const void *source, uint64_t bytes,
                               void *stream);
weft_status wf_cpu_device_fill(void *device, void *target, uint8_t byte, uint64_t bytes,
                               void *stream);

/* ---- cpu_comm.c ---- */

weft_status wf_cpu_comm_prepare(void *device, const weft_comm_options *options, void **comm,
                                weft_blob *address);
weft_status wf_cpu_comm_commit(void *comm, const weft_blob *addresses,
                               const weft_exchange *exchange);
void wf_cpu_comm_destroy(void *comm);
void wf_cpu_comm_abort(void *comm);
weft_status wf_cpu_comm_async_error(void *comm);

/* ---- cpu_collective.c ---- */

weft_status wf_cpu_comm_support(void *device, const weft_support_query *query, uint32_t *level);
weft_status wf_cpu_comm_collective(void *comm, const weft_collective_args *args);

/* ---- cpu_message.c ---- */

weft_status wf_cpu_comm_send(void *comm, const weft_message *message);
weft_status wf_cpu_comm_receive(void *comm, const weft_message *message);
weft_status wf_cpu_comm_group_begin(void *comm);
weft_status wf_cpu_comm_group_end(void *comm);

/* ---- cpu_cost.c ---- */

weft_status wf_cpu_comm_cost(void *device, const weft_support_query *query, uint64_t bytes,
                             weft_cost *out);

#endif
