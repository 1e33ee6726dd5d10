/* pull.h - reading regions straight out of the peers' buffers. */
#ifndef WEFT_CPU_PULL_H
#define WEFT_CPU_PULL_H

#include "comm.h"
#include "regions.h"

struct wf_shm_pull {
    struct wf_shm_identity identity;
    uint32_t dtype, reduction, holders, divisor; /* 0: HOLDERS */
    const struct wf_cpu_regions *regions;
    const int32_t *sources; /* ranks of the group */
    const void *send;
    void *recv;
};

/* ---- shm_pull.c ---- */
weft_status wf_shm_pull(struct wf_shm_group *group, const struct wf_shm_pull *pull);

/* ---- cpu_pull.c ---- */
weft_status wf_cpu_comm_pull(void *comm, const weft_pull_args *args);

#endif
