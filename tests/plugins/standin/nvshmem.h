/* nvshmem.h - declarations that the parts of the simulated libnvshmem_host share. */
#ifndef WEFT_STANDIN_NVSHMEM_H
#define WEFT_STANDIN_NVSHMEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
#define API(type, name, ...)                                                                       \
    __attribute__((visibility("default"))) type name(__VA_ARGS__);                                 \
    __attribute__((visibility("default"))) type name(__VA_ARGS__)
/* clang-format on */

enum { MAX_PES = 64, MAX_TEAMS = 32, FIRST_FREE_TEAM = 6, NOT_BEGUN = 0, BEGUN = 2, LIMITED = 3 };

struct standin_barrier {
    _Atomic uint32_t arrived, rounds;
};

/* Shared by all processes of a job. */
struct standin_board {
    struct standin_barrier all;
    _Atomic uint64_t sizes[MAX_PES];
    _Atomic int owners[MAX_PES], files[MAX_PES]; /* processes and their descriptors of pieces */
    _Atomic int devices[MAX_PES], versions[MAX_PES];
    struct standin_barrier teams[MAX_TEAMS][MAX_PES]; /* by number and first member */
    _Atomic uint64_t team_ids[MAX_PES];               /* of the team that a process is creating */
    _Atomic uint64_t found_ids[MAX_PES];              /* of the team whose members it has found */
    _Atomic int places[MAX_PES];
    _Atomic uint32_t free_teams[MAX_PES]; /* a bit for each number */
};

struct standin_job {
    int state, pe, pes, pieces;
    struct standin_board *board;
    char *heap[MAX_PES]; /* the one piece that weft allocates */
    size_t bytes;
};

__attribute__((visibility("hidden"))) extern struct standin_job standin_job;
__attribute__((visibility("hidden"))) long standin_setting(const char *name, long otherwise);
/* A function of the simulated driver. */
__attribute__((visibility("hidden"))) void *standin_driver(const char *name);
/* Ends the process with a message, as the real library does on many errors. */
__attribute__((visibility("hidden"), noreturn)) void standin_end(const char *why);
/* Ends the process if the device has failed, has fewer bytes free, or has no usable default
 * stream. */
__attribute__((visibility("hidden"))) void standin_need(size_t bytes);
/* Ends the process if this stream cannot be used. */
__attribute__((visibility("hidden"))) void standin_need_stream(void *stream);
/* Wait for COUNT processes. */
__attribute__((visibility("hidden"))) void standin_wait_all(struct standin_barrier *barrier,
                                                            int count);

#endif
