/* nvshmem.c - libnvshmem_host.so.3, as far as weft calls it: processes that find each other through
 * a file in shared memory, and a heap of which each maps everyone's part.  The files have no names:
 * others open them through the process that made them, and none stays if processes are killed.
 *
 * The environment can make it fail: STANDIN_LIMITED=1 (several processes on a device without MPS),
 * STANDIN_BEGIN=CODE (beginning fails), STANDIN_HEAP=BYTES (all the symmetric memory there is),
 * STANDIN_FAR=1 (no process reaches another's memory), STANDIN_NVSHMEM=30405 (its version).  It
 * ends the process, or waits without limit, where the real one does. */
#include "nvshmem.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct id {
    int version, owner, file;
    char reserved[116];
};

struct attributes {
    int version;
    void *mpi_comm;
    int arguments_version, gap, id_version, other_gap;
    struct id *id;
    int rank, ranks;
    char reserved[96];
};
_Static_assert(sizeof(struct attributes) == 144, "as the library has it");

#define PIECE ((size_t)512 << 20) /* device memory that it uses itself */

struct standin_job standin_job;
#define job standin_job

long standin_setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text != NULL && text[0] != '\0' ? strtol(text, NULL, 0) : otherwise;
}

void *standin_driver(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *function = library != NULL ? dlsym(library, name) : NULL;

    if (function == NULL) abort();
    return function;
}

void standin_end(const char *why)
{
    fprintf(stderr, "the stand-in NVSHMEM exits: %s\n", why);
    exit(255);
}

static size_t free_memory(void)
{
    int (*ask)(size_t *, size_t *) = NULL;
    size_t available = 0, total = 0;

    *(void **)(void *)&ask = standin_driver("cuMemGetInfo_v2");
    if (ask(&available, &total) != 0) standin_end("the device failed");
    return available;
}

void standin_need_stream(void *stream)
{
    int (*is_capturing)(void *, int *) = NULL;
    int status = 0;

    *(void **)(void *)&is_capturing = standin_driver("cuStreamIsCapturing");
    if (is_capturing(stream, &status) != 0) standin_end("the stream cannot be used");
}

void standin_need(size_t bytes)
{
    standin_need_stream(NULL);
    if (free_memory() < bytes) standin_end("the device is full");
}

/* Register the memory as device memory with the simulated driver. */
static void tell_device(void *memory, size_t bytes)
{
    int (*adopt)(void *, size_t) = NULL;

    *(void **)(void *)&adopt = standin_driver("standin_adopt");
    if (adopt(memory, bytes) != 0) abort();
}

/* A new file, or -1. */
static int make_file(size_t bytes)
{
    int file = memfd_create("weft-standin-nvshmem", MFD_CLOEXEC);

    if (file < 0 || ftruncate(file, (off_t)bytes) == 0) return file;
    close(file);
    return -1;
}

/* Map FILE of process OWNER. */
static void *map_file(int owner, int file, size_t bytes)
{
    void *memory = MAP_FAILED;
    char name[64];
    int opened;

    snprintf(name, sizeof name, "/proc/%d/fd/%d", owner, file);
    opened = open(name, O_RDWR | O_CLOEXEC);
    if (opened >= 0) {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
        close(opened);
    }
    return memory != MAP_FAILED ? memory : NULL;
}

void standin_wait_all(struct standin_barrier *barrier, int count)
{
    uint32_t round = atomic_load(&barrier->rounds);

    if (atomic_fetch_add(&barrier->arrived, 1) + 1 == (uint32_t)count) {
        atomic_store(&barrier->arrived, 0);
        atomic_fetch_add(&barrier->rounds, 1);
    }
    while (atomic_load(&barrier->rounds) == round)
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

static void meet(void)
{
    standin_wait_all(&job.board->all, job.pes);
}

/* ---- beginning ---- */

API(int, nvshmemx_get_uniqueid, struct id *id)
{
    const char *module = getenv("NVSHMEM_BOOTSTRAP_UID_PLUGIN");
    void *handle = module != NULL ? dlopen(module, RTLD_NOW) : NULL;

    if (handle != NULL && dlsym(handle, "nvshmemi_bootstrap_plugin_init") == NULL)
        standin_end("no bootstrap module");
    if (id->version != (1 << 16) + (int)sizeof *id) return 1;
    id->owner = getpid();
    id->file = make_file(sizeof *job.board); /* stays open until the process ends */
    return id->file < 0;
}

API(int, nvshmemx_set_attr_uniqueid_args, int rank, int ranks, struct id *id,
    struct attributes *attributes)
{
    if (attributes->version != (1 << 16) + (int)sizeof *attributes) return 1;
    attributes->id = id;
    attributes->rank = rank;
    attributes->ranks = ranks;
    return 0;
}

static int version(void)
{
    return (int)standin_setting("STANDIN_NVSHMEM", 30405);
}

/* Every process publishes its version.  The processes on this device must have equal steps. */
static void look_at_others(void)
{
    int device = atomic_load(&job.board->devices[job.pe]), first = -1, step = 0;

    for (int p = 0; p < job.pes; p++) {
        if (atomic_load(&job.board->versions[p]) != version()) standin_end("another version");
        if (atomic_load(&job.board->devices[p]) != device) continue;
        if (first < 0)
            first = p;
        else if (step == 0)
            step = p - first;
        else if ((p - first) % step != 0)
            standin_end("unequal steps on a device");
    }
}

API(int, nvshmemx_hostlib_init_attr, unsigned flags, struct attributes *attributes)
{
    int (*device)(void) = NULL;

    if (standin_setting("STANDIN_BEGIN", 0) != 0) return (int)standin_setting("STANDIN_BEGIN", 0);
    if (flags != 8 || job.state != NOT_BEGUN || attributes->ranks > MAX_PES) return 7;
    job.pe = attributes->rank;
    job.pes = attributes->ranks;
    job.board = map_file(attributes->id->owner, attributes->id->file, sizeof *job.board);
    if (job.board == NULL) return 2;
    atomic_store(&job.board->free_teams[job.pe], ~UINT32_C(0) << FIRST_FREE_TEAM);
    *(void **)(void *)&device = standin_driver("standin_device");
    atomic_store(&job.board->devices[job.pe], device());
    atomic_store(&job.board->versions[job.pe], version());
    meet();
    standin_need(PIECE);
    look_at_others();
    job.state = standin_setting("STANDIN_LIMITED", 0) != 0 && job.pes > 1 ? LIMITED : BEGUN;
    return 0;
}

API(int, nvshmemx_init_status, void)
{
    return job.state;
}

API(int, nvshmem_my_pe, void)
{
    return job.state != NOT_BEGUN ? job.pe : -1;
}

API(int, nvshmem_n_pes, void)
{
    return job.state != NOT_BEGUN ? job.pes : -1;
}

API(void, nvshmemx_vendor_get_version_info, int *major, int *minor, int *patch)
{
    *major = version() / 10000;
    *minor = version() / 100 % 100;
    *patch = version() % 100;
}

/* ---- memory ---- */

/* All ranks must request the same number of bytes, as in the real library. */
static bool sizes_agree(size_t bytes)
{
    atomic_store(&job.board->sizes[job.pe], bytes);
    meet();
    for (int p = 0; p < job.pes; p++)
        if (atomic_load(&job.board->sizes[p]) != bytes) return false;
    return true;
}

static bool has_room(size_t bytes)
{
    size_t most = (size_t)standin_setting("NVSHMEM_MAX_MEMORY_PER_GPU", 128L << 30);

    return bytes <= (size_t)standin_setting("STANDIN_HEAP", LONG_MAX) && bytes + PIECE < most &&
           bytes + PIECE <= free_memory();
}

/* A rank without room exits, and the others wait for it. */
API(void *, nvshmem_malloc, size_t bytes)
{
    int file;

    if (job.state == NOT_BEGUN || job.pieces > 0 || !sizes_agree(bytes) || !has_room(bytes))
        return NULL;
    file = make_file(bytes);
    atomic_store(&job.board->owners[job.pe], getpid());
    atomic_store(&job.board->files[job.pe], file);
    meet();
    for (int p = 0; p < job.pes; p++) {
        job.heap[p] =
            map_file(atomic_load(&job.board->owners[p]), atomic_load(&job.board->files[p]), bytes);
        if (job.heap[p] == NULL) return NULL;
        tell_device(job.heap[p], bytes);
    }
    meet();
    close(file);
    job.bytes = bytes;
    job.pieces = 1;
    return job.heap[job.pe];
}

API(void *, nvshmem_ptr, const void *address, int pe)
{
    const char *at = address, *own = job.heap[job.pe];

    if (pe < 0 || pe >= job.pes || own == NULL || at < own || at >= own + job.bytes) return NULL;
    if (pe != job.pe && standin_setting("STANDIN_FAR", 0) != 0) return NULL;
    return job.heap[pe] + (at - own);
}
