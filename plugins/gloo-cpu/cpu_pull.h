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
    const int32_t *sources; /* ranks of the group */
    const void *send;
    void *recv;
};

/* ---- shm_pull.c ---- */
weft_status cpu_shm_pull(struct cpu_shm_group *group, const struct cpu_shm_pull *pull);

/* ---- cpu_pull.c ---- */
weft_status cpu_comm_pull(void *comm, const weft_pull_args *args);
weft_status cpu_comm_pull_cast(void *comm, const weft_pull_args *args, uint32_t to);

#endif
