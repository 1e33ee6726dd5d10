/* pull.h - reading regions straight out of the peers' buffers. */
#ifndef WEFT_CPU_PULL_H
#define WEFT_CPU_PULL_H

#include "cpu_comm.h"
#include "kernel/cpu_regions.h"

struct cpu_shm_pull {
    struct cpu_shm_identity identity;
    uint32_t dtype, reduction, holders, divisor; /* 0: HOLDERS */
    uint32_t to;                                 /* dtype of RECV */
    const struct cpu_regions *regions;
    const int32_t *sources; /* ranks of the group, or of the communicator with PLACES */
    const int32_t *places;  /* a rank's place in the group; below 0: it is not read here */
    const void *send;
    void *recv;
    /* Of an exchange: what others read, and their ranks of the communicator. */
    const struct cpu_regions *served;
    const int32_t *readers;
};

/* ---- shm_pull.c ---- */
weft_status cpu_shm_pull(struct cpu_shm_group *group, const struct cpu_shm_pull *pull);

/* ---- cpu_pull.c ---- */
weft_status cpu_comm_pull(void *comm, const weft_pull_args *args);
weft_status cpu_comm_pull_cast(void *comm, const weft_pull_args *args, uint32_t to);
weft_status cpu_comm_exchange(void *comm, const weft_pull_args *args);

/* ---- hosts_exchange.c ---- */
/* PULL reads the ranks of all hosts, each of which calls this. */
weft_status cpu_hosts_exchange_regions(struct cpu_comm *comm, const struct cpu_shm_pull *pull);

#endif
