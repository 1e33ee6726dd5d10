/* cpu_segment.c - one growing anonymous piece of shared memory.
 *
 * The segment is a memfd, so nothing remains after a process ends in any way.  Another process
 * opens it as /proc/PID/fd/N, which does not need ptrace permission.  It compares inode numbers,
 * because in another pid namespace that path may name an unrelated file.  A fork of this process
 * closes its descriptors: weft refuses every call there, and the memory must not outlive its
 * owner. */
#include "cpu_heap.h"
#include "kit/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIB (UINT64_C(1) << 30)
/* Every rank of a host maps all heaps.  256 ranks then use half of a 47-bit address space. */
#define RESERVED_MAX (256 * GIB)

/* A mapped segment, possibly of this process.  The owner counts as one user. */
struct mapping {
    struct mapping *next;
    struct cpu_process process;
    uint64_t serial, bytes, users;
    uint64_t exists; /* size of the file when last examined, in bytes; it does not shrink */
    uint8_t *base;
    int fd; /* of this process's own segment, else -1 */
};

/* Held during a fork, and while a descriptor is open that is not in a mapping. */
static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;
static struct mapping *mappings;
static atomic_uint_fast64_t serials;

static struct mapping **find_mapping(const struct cpu_process *process, uint64_t serial)
{
    struct mapping **at = &mappings;

    while (*at != NULL && !((*at)->serial == serial && cpu_process_same(&(*at)->process, process)))
        at = &(*at)->next;
    return at;
}

static void before_fork(void)
{
    pthread_mutex_lock(&mappings_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mappings_lock);
}

static void after_fork_in_child(void)
{
    for (struct mapping *m = mappings; m != NULL; m = m->next) {
        if (m->fd >= 0) close(m->fd);
        m->fd = -1;
    }
    pthread_mutex_unlock(&mappings_lock);
}

/* If registration fails, forks keep the descriptors. */
static void watch_forks(void)
{
    if (pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0)
        plug_log(2, "gloo-cpu: a fork of this process will keep its shared memory open");
}

static weft_status add_mapping(const struct cpu_process *process, uint64_t serial, uint8_t *base,
                               uint64_t bytes, int fd)
{
    struct mapping *made = plug_alloc(sizeof *made);

    if (made == NULL) return plug_fail_memory(sizeof *made);
    *made = (struct mapping){.next = mappings,
                             .process = *process,
                             .serial = serial,
                             .bytes = bytes,
                             .users = 1,
                             .base = base,
                             .fd = fd};
    mappings = made;
    return WEFT_OK;
}

static void drop_mapping(const struct cpu_process *process, uint64_t serial)
{
    struct mapping **at, *known;

    pthread_mutex_lock(&mappings_lock);
    at = find_mapping(process, serial);
    known = *at;
    if (known != NULL && --known->users == 0) {
        *at = known->next;
        munmap(known->base, known->bytes);
        plug_free(known);
    }
    pthread_mutex_unlock(&mappings_lock);
}

/* Address space to reserve: all memory that the machine can back, or less under a limit. */
static weft_status reserve_wanted(uint64_t *out)
{
    uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t wanted = (pages * page + GIB - 1) / GIB * GIB;
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur / 16 < wanted)
        wanted = limit.rlim_cur / 16;
    if (wanted > RESERVED_MAX) wanted = RESERVED_MAX;
    PLUG_TRY(plug_knob_bytes("WEFT_CPU_HEAP", wanted, &wanted));
    if (wanted < 4u << 20) wanted = 4u << 20;
    *out = wanted / page * page;
    return WEFT_OK;
}

/* For old kernels and sandboxes without memfd_create: a name that is unlinked at once. */
static int open_shm(void)
{
    char name[64];
    uint64_t number;
    int fd;

    if (cpu_random(&number, sizeof number) != WEFT_OK) return -1;
    snprintf(name, sizeof name, "/weft-cpu-%llx", (unsigned long long)number);
    fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) shm_unlink(name);
    return fd;
}

static weft_status open_file(struct cpu_segment *segment)
{
    int error;

    segment->limited = plug_knob_flag("WEFT_CPU_DEV_SHM", false);
    segment->fd = segment->limited ? -1 : memfd_create("weft", MFD_CLOEXEC);
    if (segment->fd >= 0) return WEFT_OK;
    error = errno;
    segment->fd = open_shm();
    if (segment->fd < 0)
        return plug_fail_errno(WEFT_ERR_SYSTEM, error,
                               "no shared memory: memfd_create failed, and so did /dev/shm (%s)",
                               strerror(errno));
    if (!segment->limited)
        plug_log(3, "gloo-cpu: no memfd_create (%s), using /dev/shm", strerror(error));
    segment->limited = true;
    return WEFT_OK;
}

static weft_status register_own(struct cpu_segment *segment)
{
    struct cpu_process self;

    PLUG_TRY(cpu_process_self(&self));
    segment->serial = atomic_fetch_add(&serials, 1);
    return add_mapping(&self, segment->serial, segment->base, segment->reserved, segment->fd);
}

/* The caller holds the lock. */
static weft_status create(struct cpu_segment *out)
{
    struct cpu_segment segment = {.fd = -1};
    uint64_t wanted = 0;
    weft_status status;
    void *base;

    PLUG_TRY(reserve_wanted(&wanted));
    PLUG_TRY(open_file(&segment));
    for (;; wanted /= 2) {
        base =
            mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, segment.fd, 0);
        if (base != MAP_FAILED || wanted <= 4u << 20) break;
    }
    if (base == MAP_FAILED) {
        int error = errno;

        close(segment.fd);
        return plug_fail_errno(WEFT_ERR_NO_MEMORY, error,
                               "no address space for the shared heap (%llu bytes)",
                               (unsigned long long)wanted);
    }
    madvise(base, wanted, MADV_HUGEPAGE);
    segment.base = base;
    segment.reserved = wanted;
    status = register_own(&segment);
    if (status != WEFT_OK) {
        munmap(base, wanted);
        close(segment.fd);
        return status;
    }
    *out = segment;
    return WEFT_OK;
}

weft_status cpu_segment_create(struct cpu_segment *out)
{
    weft_status status;

    pthread_once(&forks_watched, watch_forks);
    pthread_mutex_lock(&mappings_lock);
    status = create(out);
    pthread_mutex_unlock(&mappings_lock);
    return status;
}

void cpu_segment_close(struct cpu_segment *segment)
{
    struct cpu_process self;

    if (segment->base == NULL) return;
    pthread_mutex_lock(&mappings_lock);
    for (struct mapping *m = mappings; m != NULL; m = m->next)
        if (m->fd == segment->fd) m->fd = -1; /* other ranks may still use the mapping */
    close(segment->fd);
    pthread_mutex_unlock(&mappings_lock);
    if (cpu_process_self(&self) == WEFT_OK) drop_mapping(&self, segment->serial);
    segment->base = NULL;
    segment->fd = -1;
}

/* Allocates the pages now, so that a shortage is an error here and not a SIGBUS at first access. */
static weft_status claim(struct cpu_segment *segment, uint64_t offset, uint64_t bytes)
{
    int error;

    do {
        error = posix_fallocate(segment->fd, (off_t)offset, (off_t)bytes);
    } while (error == EINTR);
    if (error == 0) return WEFT_OK;
    return plug_fail_errno(WEFT_ERR_NO_MEMORY, error, "the shared heap cannot grow by %llu bytes%s",
                           (unsigned long long)bytes,
                           segment->limited ? " in /dev/shm, which may be full or small" : "");
}

weft_status cpu_segment_grow(struct cpu_segment *segment, uint64_t bytes)
{
    if (bytes <= segment->bytes) return WEFT_OK;
    if (bytes > kit_file_limit())
        return plug_fail(WEFT_ERR_NO_MEMORY,
                         "the shared heap cannot have %llu bytes: this process may not make files "
                         "of more than %llu bytes (RLIMIT_FSIZE), which holds for shared memory, "
                         "too; raise the limit with ulimit -f",
                         (unsigned long long)bytes, (unsigned long long)kit_file_limit());
    PLUG_TRY(claim(segment, segment->bytes, bytes - segment->bytes));
    segment->bytes = bytes;
    return WEFT_OK;
}

void cpu_segment_discard(struct cpu_segment *segment, uint64_t offset, uint64_t bytes)
{
    if (fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                  (off_t)bytes) != 0)
        plug_log(4, "gloo-cpu: cannot return %llu bytes to the system: %s",
                 (unsigned long long)bytes, strerror(errno));
}

weft_status cpu_segment_restore(struct cpu_segment *segment, uint64_t offset, uint64_t bytes)
{
    return claim(segment, offset, bytes);
}

weft_status cpu_segment_describe(const struct cpu_segment *segment, struct cpu_segment_address *out)
{
    struct cpu_segment_address address = {.serial = segment->serial,
                                          .reserved = segment->reserved,
                                          .base = (uint64_t)(uintptr_t)segment->base,
                                          .fd = segment->fd};
    struct stat about;

    PLUG_TRY(cpu_process_self(&address.process));
    if (fstat(segment->fd, &about) != 0)
        return plug_fail_errno(WEFT_ERR_SYSTEM, errno, "the shared heap cannot be examined");
    address.device = about.st_dev;
    address.inode = about.st_ino;
    *out = address;
    return WEFT_OK;
}

/* ---- other processes' segments ---- */

static weft_status open_other(const struct cpu_segment_address *address, int *out, uint64_t *bytes)
{
    char path[64];
    struct stat about;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)address->process.pid, (int)address->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return plug_fail_errno(WEFT_ERR_SYSTEM, errno, "shared memory of pid %d at %s",
                               (int)address->process.pid, path);
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_ino != address->inode ||
        about.st_dev != address->device) {
        close(fd);
        return plug_fail(
            WEFT_ERR_SYSTEM,
            "%s is not the expected shared memory; the process may be in another pid namespace",
            path);
    }
    *bytes = (uint64_t)about.st_size;
    *out = fd;
    return WEFT_OK;
}

static weft_status map_other(const struct cpu_segment_address *address, uint8_t **base,
                             uint64_t *bytes)
{
    void *at;
    int fd = -1, error;

    PLUG_TRY(open_other(address, &fd, bytes));
    at = mmap(NULL, address->reserved, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    error = errno;
    close(fd);
    if (at == MAP_FAILED)
        return plug_fail_errno(WEFT_ERR_NO_MEMORY, error,
                               "no address space for the shared heap of pid %d (%llu bytes; "
                               "WEFT_CPU_HEAP sets its size)",
                               (int)address->process.pid, (unsigned long long)address->reserved);
    madvise(at, address->reserved, MADV_HUGEPAGE);
    madvise(at, address->reserved, MADV_DONTDUMP);
    *base = at;
    return WEFT_OK;
}

static weft_status attach_new(const struct cpu_segment_address *address, uint8_t **base,
                              uint64_t *bytes)
{
    struct cpu_process self;
    weft_status status;
    uint8_t *at = NULL;

    PLUG_TRY(cpu_process_self(&self));
    if (cpu_process_same(&self, &address->process))
        return plug_fail(WEFT_ERR_MISMATCH, "this process has no shared heap with number %llu",
                         (unsigned long long)address->serial);
    PLUG_TRY(map_other(address, &at, bytes));
    status = add_mapping(&address->process, address->serial, at, address->reserved, -1);
    if (status != WEFT_OK) {
        munmap(at, address->reserved);
        return status;
    }
    mappings->exists = *bytes; /* the current size */
    *base = at;
    return WEFT_OK;
}

/* The file of KNOWN may have grown.  If it cannot be examined, the size seen before is valid. */
static weft_status attach_known(const struct cpu_segment_address *address, struct mapping *known,
                                uint8_t **base, uint64_t *bytes)
{
    struct stat about = {0};
    int fd = -1;

    if (address->reserved != known->bytes)
        return plug_fail(WEFT_ERR_MISMATCH,
                         "the shared heap of pid %d has %llu bytes; expected %llu",
                         (int)address->process.pid, (unsigned long long)known->bytes,
                         (unsigned long long)address->reserved);
    if (known->fd >= 0 && fstat(known->fd, &about) == 0) {
        known->exists = (uint64_t)about.st_size;
    } else if (known->fd < 0 && open_other(address, &fd, bytes) == WEFT_OK) {
        known->exists = *bytes;
        close(fd);
    }
    *bytes = known->exists;
    known->users++;
    *base = known->base;
    return WEFT_OK;
}

weft_status cpu_segment_attach(const struct cpu_segment_address *address, uint8_t **base,
                               uint64_t *bytes)
{
    struct mapping *known;
    weft_status status;

    pthread_mutex_lock(&mappings_lock);
    known = *find_mapping(&address->process, address->serial);
    status = known != NULL ? attach_known(address, known, base, bytes)
                           : attach_new(address, base, bytes);
    pthread_mutex_unlock(&mappings_lock);
    if (status == WEFT_OK && *bytes > address->reserved) *bytes = address->reserved;
    return status;
}

void cpu_segment_detach(const struct cpu_segment_address *address)
{
    drop_mapping(&address->process, address->serial);
}
