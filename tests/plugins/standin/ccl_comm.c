/* ccl_comm.c - communicators of the simulated library: ids, joining, splitting, errors, release. */
#include "ccl.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static _Thread_local char last_error[256];

long sc_setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text != NULL && text[0] != '\0' ? strtol(text, NULL, 0) : otherwise;
}

int sc_fail(int result, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return result;
}

/* ---- the device's stand-in ---- */

static struct {
    pthread_once_t once;
    int (*enqueue)(void *stream, void (*fn)(void *), void *argument);
    int (*get)(void);
    int (*set)(int device);
} device = {.once = PTHREAD_ONCE_INIT};

/* Once: ThreadSanitizer keeps a list of all libraries for each call of dlopen. */
static void find_device(void)
{
#ifdef STANDIN_RCCL
    void *library = dlopen("libamdhip64.so", RTLD_NOW | RTLD_NOLOAD);
#else
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
#endif

    if (library == NULL) return;
    *(void **)(void *)&device.enqueue = dlsym(library, "standin_enqueue");
    *(void **)(void *)&device.get = dlsym(library, "standin_device");
    *(void **)(void *)&device.set = dlsym(library, "standin_set_device");
}

int sc_enqueue(void *stream, void (*fn)(void *), void *argument)
{
    pthread_once(&device.once, find_device);
    if (device.enqueue == NULL || device.enqueue(stream, fn, argument) != 0)
        return sc_fail(SC_GPU, "the device refused");
    return SC_OK;
}

static int current_device(void)
{
    pthread_once(&device.once, find_device);
    return device.get != NULL ? device.get() : -1;
}

static void set_device(int ordinal)
{
    pthread_once(&device.once, find_device);
    if (device.set != NULL) device.set(ordinal);
}

/* ---- shared memory ---- */

struct sc_ring *sc_ring(struct sc_comm *comm, int lane, int from, int to)
{
    return &comm->shared->rings[(lane * comm->size + from) * comm->size + to];
}

static void shared_name(uint64_t key, char *out, size_t size)
{
    snprintf(out, size, "/weft-standin-%016llx", (unsigned long long)key);
}

static int open_shared(struct sc_comm *comm)
{
    size_t rings = (size_t)(SC_LANES * comm->size * comm->size);
    char name[64];
    int file;

    comm->shared_bytes = sizeof *comm->shared + rings * sizeof(struct sc_ring);
    shared_name(comm->key, name, sizeof name);
    file = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return sc_fail(SC_SYSTEM, "shm_open: %s", strerror(errno));
    if (ftruncate(file, (off_t)comm->shared_bytes) == 0)
        comm->shared = mmap(NULL, comm->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (comm->shared == NULL || comm->shared == MAP_FAILED) {
        comm->shared = NULL;
        return sc_fail(SC_SYSTEM, "mmap: %s", strerror(errno));
    }
    return SC_OK;
}

bool sc_peer_died(const struct sc_comm *comm)
{
    for (int r = 0; r < comm->size; r++) {
        int32_t process = atomic_load(&comm->shared->process[r]);
        if (process != 0 && kill(process, 0) != 0 && errno == ESRCH) return true;
    }
    return false;
}

int sc_gather_now(struct sc_comm *comm, const void *mine, void *all, size_t bytes)
{
    struct sc_task task = {.comm = comm,
                           .kind = SC_ALL_GATHER,
                           .send = mine,
                           .recv = all,
                           .count = bytes,
                           .dtype = SC_U8};

    sc_run_tasks(comm, &task);
    if (atomic_load(&comm->abort->is_set)) return sc_fail(SC_INTERNAL, "aborted");
    return SC_OK;
}

/* ---- calls that do not block ---- */

/* Only one thread at a time may use such a communicator.  The real libraries crash or hang
 * later. */
static void enter(struct sc_comm *comm)
{
    long slow = sc_setting("STANDIN_CCL_SLOW", 0);

    if (comm->blocking) return;
    if (atomic_exchange(&comm->is_used, true)) {
        fprintf(stderr, "stand-in: two threads at once use a communicator that does not block\n");
        abort();
    }
    if (slow > 0) nanosleep(&(struct timespec){.tv_nsec = slow * 1000}, NULL);
}

static void leave(struct sc_comm *comm)
{
    if (!comm->blocking) atomic_store(&comm->is_used, false);
}

struct errand {
    struct sc_comm *comm;
    int device;
    int (*fn)(struct sc_comm *comm, void *argument);
    void *argument;
};

static void *run_errand(void *given)
{
    struct errand errand = *(struct errand *)given;

    free(given);
    set_device(errand.device);
    atomic_store(&errand.comm->result, errand.fn(errand.comm, errand.argument));
    return NULL;
}

int sc_do(struct sc_comm *comm, int (*fn)(struct sc_comm *comm, void *argument), void *argument)
{
    struct errand *errand;

    if (comm->blocking) return fn(comm, argument);
    errand = malloc(sizeof *errand);
    if (errand == NULL) return SC_SYSTEM;
    enter(comm);
    *errand = (struct errand){comm, current_device(), fn, argument};
    atomic_store(&comm->result, SC_IN_PROGRESS);
    comm->has_helper = pthread_create(&comm->helper, NULL, run_errand, errand) == 0;
    leave(comm);
    return SC_IN_PROGRESS;
}

void sc_join_helper(struct sc_comm *comm)
{
    if (!comm->has_helper) return; /* always so if calls block */
    pthread_join(comm->helper, NULL);
    comm->has_helper = false;
}

/* ---- making ---- */

#ifdef STANDIN_RCCL
#define OWN_VERSION 21701
#elif defined(STANDIN_OLD_NCCL)
#define OWN_VERSION 21803
#else
#define OWN_VERSION 22809
#endif

static long version_now(void)
{
    return sc_setting("STANDIN_CCL_VERSION", OWN_VERSION);
}

/* A library without names of communicators is given a struct without them. */
static bool is_config(const struct sc_config *config)
{
    bool has_names = version_now() >= 22703;

    return config->magic == 0xcafebeef && config->bytes >= 44 &&
           config->bytes <= (has_names ? sizeof *config : offsetof(struct sc_config, name));
}

static struct sc_comm *new_comm(const struct sc_config *config, struct sc_flag *flag)
{
    struct sc_comm *comm = calloc(1, sizeof *comm);

    if (comm == NULL) abort();
    comm->blocking = config->blocking != 0; /* unset means blocking */
    comm->shares_flag = config->split_share == 1;
    if (config->bytes >= sizeof *config && config->name != NULL)
        snprintf(comm->name, sizeof comm->name, "%s", config->name);
    comm->abort = flag != NULL ? flag : calloc(1, sizeof *flag);
    if (comm->abort == NULL) abort();
    atomic_fetch_add(&comm->abort->holders, 1);
    for (int i = 0; i < SC_MADE_OPS; i++)
        comm->made_dtype[i] = -1;
    return comm;
}

/* Detect two ranks with one host id and one device. */
static int check_devices(struct sc_comm *comm, int ordinal)
{
    struct place {
        char host[120];
        int device;
    } mine = {"", ordinal}, all[SC_MAX_RANKS];
    const char *host = getenv("NCCL_HOSTID");
    int result;

    snprintf(mine.host, sizeof mine.host, "%s", host != NULL ? host : "");
    result = sc_gather_now(comm, &mine, all, sizeof mine);
    for (int a = 0; a < comm->size && result == SC_OK; a++)
        for (int b = a + 1; b < comm->size; b++)
            if (memcmp(&all[a], &all[b], sizeof mine) == 0)
                result = sc_fail(SC_USAGE, "Duplicate GPU detected : rank %d and rank %d", a, b);
    return result;
}

static int join(struct sc_comm *comm, void *ordinal)
{
    char name[64];
    int result;

    if (comm->rank == sc_setting("STANDIN_CCL_FAIL_INIT", -1))
        return sc_fail(SC_SYSTEM, "told to fail");
    result = open_shared(comm);
    if (result != SC_OK) return result;
    atomic_store(&comm->shared->process[comm->rank], (int32_t)getpid());
    atomic_fetch_add(&comm->shared->joined, 1);
    while (atomic_load(&comm->shared->joined) < comm->size) {
        if (atomic_load(&comm->abort->is_set)) return sc_fail(SC_INTERNAL, "aborted");
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    shared_name(comm->key, name, sizeof name);
    if (comm->rank == 0) shm_unlink(name);
    return check_devices(comm, (int)(intptr_t)ordinal);
}

API(int, ncclGetVersion, int *version)
{
    *version = (int)version_now();
    return SC_OK;
}

API(const char *, ncclGetErrorString, int result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled device error",
                                        "system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "in progress"};

    return result >= 0 && result <= SC_IN_PROGRESS ? texts[result] : "unknown result code";
}

API(const char *, ncclGetLastError, struct sc_comm *comm)
{
    (void)comm;
    return last_error;
}

API(int, ncclGetUniqueId, struct sc_id *id)
{
    memset(id, 0, sizeof *id);
    return getrandom(id->bytes, 8, 0) == 8 ? SC_OK : SC_SYSTEM;
}

API(int, ncclCommInitRankConfig, struct sc_comm **out, int size, struct sc_id id, int rank,
    struct sc_config *config)
{
    struct sc_comm *comm;

    if (!is_config(config)) return sc_fail(SC_ARGUMENT, "the configuration was not initialised");
    if (size < 1 || size > SC_MAX_RANKS || rank < 0 || rank >= size)
        return sc_fail(SC_ARGUMENT, "rank %d of %d", rank, size);
    comm = new_comm(config, NULL);
    memcpy(&comm->key, id.bytes, sizeof comm->key);
    comm->rank = rank;
    comm->size = size;
    *out = comm;
    return sc_do(comm, join, (void *)(intptr_t)current_device());
}

struct sc_window {
    struct sc_window *next;
    void *memory;
    size_t bytes;
};

static void end(struct sc_comm *comm)
{
    char name[64];

    while (comm->windows != NULL) {
        struct sc_window *window = comm->windows;

        comm->windows = window->next;
        free(window);
    }
    sc_join_helper(comm);
    while (atomic_load(&comm->finished) < atomic_load(&comm->issued))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    shared_name(comm->key, name, sizeof name);
    if (comm->rank == 0) shm_unlink(name);
    if (comm->shared != NULL) munmap(comm->shared, comm->shared_bytes);
    if (atomic_fetch_sub(&comm->abort->holders, 1) == 1) free(comm->abort);
    free(comm);
}

#ifndef STANDIN_RCCL
struct split {
    struct sc_comm *child, **out;
    int color, key, device;
};

static int split_off(struct sc_comm *parent, void *given)
{
    struct split split = *(struct split *)given;
    int mine[2] = {split.color, split.key}, all[SC_MAX_RANKS][2];
    struct sc_comm *child = split.child;
    int result = sc_gather_now(parent, mine, all, sizeof mine);

    free(given);
    if (result != SC_OK) return result;
    if (split.color < 0) { /* in no part */
        *split.out = NULL;
        end(child);
        return SC_OK;
    }
    for (int r = 0; r < parent->size; r++) {
        bool before = all[r][1] < split.key || (all[r][1] == split.key && r < parent->rank);
        if (all[r][0] != split.color) continue;
        child->size++;
        if (before) child->rank++;
    }
    child->key = (parent->key ^ (uint64_t)parent->splits) * UINT64_C(0x9e3779b97f4a7c15) +
                 (uint64_t)split.color;
    result = join(child, (void *)(intptr_t)split.device);
    if (result == SC_OK) *split.out = child;
    return result;
}

API(int, ncclCommSplit, struct sc_comm *comm, int color, int key, struct sc_comm **out,
    struct sc_config *config)
{
    struct split *split = malloc(sizeof *split);

    if (split == NULL) abort();
    if (atomic_load(&comm->result) != SC_OK || color < -1 || !is_config(config)) {
        free(split);
        return sc_fail(SC_ARGUMENT, "the communicator is not ready");
    }
    comm->splits++;
    *split = (struct split){new_comm(config, comm->shares_flag ? comm->abort : NULL), out, color,
                            key, current_device()};
    return sc_do(comm, split_off, split);
}
#endif

/* ---- asking and ending ---- */

API(int, ncclCommGetAsyncError, struct sc_comm *comm, int *result)
{
    if (comm == NULL) return sc_fail(SC_ARGUMENT, "the communicator is NULL");
    enter(comm);
    *result = atomic_load(&comm->result);
    if (*result != SC_IN_PROGRESS) sc_join_helper(comm);
    leave(comm);
    return SC_OK;
}

API(int, ncclCommCount, const struct sc_comm *comm, int *size)
{
    *size = comm->size;
    return SC_OK;
}

/* Not of the real libraries: the name that the configuration gave to COMM. */
API(const char *, standinCommName, const struct sc_comm *comm)
{
    return comm->name;
}

API(int, ncclCommUserRank, const struct sc_comm *comm, int *rank)
{
    *rank = comm->rank;
    return SC_OK;
}

API(int, ncclCommDestroy, struct sc_comm *comm)
{
    if (comm == NULL) return SC_OK;
    if (atomic_load(&comm->result) != SC_OK)
        return sc_fail(SC_ARGUMENT, "the communicator is not ready");
    end(comm);
    return SC_OK;
}

#ifndef STANDIN_RCCL
/* Windows: all ranks register the same number of bytes, or none does. */

API(int, ncclCommWindowRegister, struct sc_comm *comm, void *memory, size_t bytes,
    struct sc_window **out, int flags)
{
    size_t all[SC_MAX_RANKS];
    struct sc_window *window;

    if (version_now() < 22703 || flags > 1) return sc_fail(SC_USAGE, "no such windows");
    if (memory == NULL || bytes == 0) return SC_OK; /* the real library leaves *OUT unchanged too */
    if ((uintptr_t)memory % 4096 != 0) return sc_fail(SC_ARGUMENT, "a window begins on a page");
    if (sc_gather_now(comm, &bytes, all, sizeof bytes) != SC_OK) return SC_INTERNAL;
    for (int r = 0; r < comm->size; r++)
        if (all[r] != bytes) return sc_fail(SC_USAGE, "windows of different sizes");
    window = malloc(sizeof *window);
    if (window == NULL) return SC_SYSTEM;
    *window = (struct sc_window){comm->windows, memory, bytes};
    comm->windows = window;
    *out = window;
    return SC_OK;
}

API(int, ncclCommWindowDeregister, struct sc_comm *comm, struct sc_window *window)
{
    struct sc_window **at = &comm->windows;

    while (*at != NULL && *at != window)
        at = &(*at)->next;
    if (window == NULL || *at == NULL) return sc_fail(SC_ARGUMENT, "no window of this");
    *at = window->next;
    free(window);
    return SC_OK;
}
#endif

API(int, ncclCommAbort, struct sc_comm *comm)
{
    if (comm == NULL) return SC_OK;
    atomic_store(&comm->abort->is_set, 1);
    end(comm);
    return SC_OK;
}
