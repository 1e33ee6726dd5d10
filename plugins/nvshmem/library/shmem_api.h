/* shmem_api.h - the functions of NVSHMEM's host library that the plugin calls, declared here so
 * that the build does not need files of NVIDIA.  shmem_declarations.c checks them against NVIDIA's
 * headers. */
#ifndef WEFT_NVSHMEM_API_H
#define WEFT_NVSHMEM_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct shmem_id shmem_id;
typedef struct shmem_attributes shmem_attributes;
typedef struct shmem_team_options shmem_team_options;

#define SHMEM_VERSION_OF(type) ((1 << 16) + (int)sizeof(type))

enum { SHMEM_WITH_UNIQUE_ID = 8 };
enum { SHMEM_BOOTSTRAPPED = 1, SHMEM_INITIALIZED = 2, SHMEM_LIMITED = 3, SHMEM_SHARED = 4 };

struct shmem_id {
    int version;
    char internal[124];
};

struct shmem_id_arguments {
    int version;
    struct shmem_id *id;
    int rank, ranks;
};

struct shmem_arguments {
    int version;
    struct shmem_id_arguments id;
    char reserved[96];
};

struct shmem_attributes {
    int version;
    void *mpi_comm;
    struct shmem_arguments arguments;
};

enum { SHMEM_TEAM_WORLD = 0, SHMEM_TEAM_OPTIONS_VERSION = (2 << 16) + 64, SHMEM_TEAM_HAS_ID = 2 };

/* Options of nvshmemx_team_init.  The members find each other by the id that one of them
 * created. */
struct shmem_team_options {
    int version, contexts;
    uint64_t id;
    char reserved[48];
};

/* nvshmemx_TYPE_OP_reduce_on_stream, and _reducescatter_on_stream. */
typedef int (*shmem_reduce)(int team, void *target, const void *source, size_t count, void *stream);

_Static_assert(sizeof(struct shmem_team_options) == 64, "must be the size in NVSHMEM");
_Static_assert(sizeof(struct shmem_id) == 128, "must be the size in NVSHMEM");
_Static_assert(sizeof(struct shmem_id_arguments) == 24, "must be the size in NVSHMEM");
_Static_assert(sizeof(struct shmem_arguments) == 128, "must be the size in NVSHMEM");
_Static_assert(sizeof(struct shmem_attributes) == 144, "must be the size in NVSHMEM");

struct shmem_api {
#define SHMEM(need, type, symbol, arguments) type(*symbol) arguments;
#include "shmem_api.def"
#undef SHMEM
};

#endif
