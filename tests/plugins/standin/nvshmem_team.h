/* nvshmem_team.h - teams of the simulated libnvshmem_host. */
#ifndef WEFT_STANDIN_NVSHMEM_TEAM_H
#define WEFT_STANDIN_NVSHMEM_TEAM_H

#include "nvshmem.h"

/* A team as this process knows it.  Its number is the index in the list. */
struct standin_team {
    bool is_made;
    int size, place;
    int pes[MAX_PES];
};

/* NULL if no team has that number. */
__attribute__((visibility("hidden"))) const struct standin_team *standin_team(int number);
__attribute__((visibility("hidden"))) void standin_team_meet(int number);

#endif
