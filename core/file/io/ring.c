/* ring.c - see ring.h.
 *
 * The system calls are made directly: there are two of them, and no library is needed.  Requests
 * are made in batches, and all of a batch have ended before the next one begins. */
#include "file/io/ring.h"

#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

#ifdef IORING_FEAT_RW_CUR_POS /* Linux 5.6, which has IORING_OP_READ */

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEPTH = 8, REQUEST = 1 << 20 };

struct wf_ring {
    struct wf_ring *next; /* in the list of idle ones */
    int fd;
    pid_t owner; /* a process that was forked shares the ring's memory, and must not use it */
    void *memory, *entries;
    size_t memory_bytes, entries_bytes;
    uint32_t *submit_head, *submit_tail, *submit_mask, *submit_array;
    uint32_t *done_head, *done_tail, *done_mask;
    struct io_uring_sqe *requests;
    struct io_uring_cqe *results;
};

/* ---- a ring ---- */

static void close_ring(struct wf_ring *ring)
{
    if (ring->memory != MAP_FAILED) munmap(ring->memory, ring->memory_bytes);
    if (ring->entries != MAP_FAILED) munmap(ring->entries, ring->entries_bytes);
    close(ring->fd);
    wf_free(ring);
}

static void *map(int fd, size_t bytes, off_t offset)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
}

static bool map_ring(struct wf_ring *ring, const struct io_uring_params *params)
{
    const struct io_sqring_offsets *submit = &params->sq_off;
    const struct io_cqring_offsets *done = &params->cq_off;
    size_t submit_bytes = submit->array + params->sq_entries * sizeof(uint32_t);
    char *memory;

    if ((params->features & IORING_FEAT_SINGLE_MMAP) == 0) return false;
    ring->memory_bytes = done->cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    if (ring->memory_bytes < submit_bytes) ring->memory_bytes = submit_bytes;
    ring->entries_bytes = params->sq_entries * sizeof(struct io_uring_sqe);
    ring->memory = map(ring->fd, ring->memory_bytes, IORING_OFF_SQ_RING);
    ring->entries = map(ring->fd, ring->entries_bytes, IORING_OFF_SQES);
    if (ring->memory == MAP_FAILED || ring->entries == MAP_FAILED) return false;
    memory = ring->memory;
    ring->submit_head = (void *)(memory + submit->head);
    ring->submit_tail = (void *)(memory + submit->tail);
    ring->submit_mask = (void *)(memory + submit->ring_mask);
    ring->submit_array = (void *)(memory + submit->array);
    ring->done_head = (void *)(memory + done->head);
    ring->done_tail = (void *)(memory + done->tail);
    ring->done_mask = (void *)(memory + done->ring_mask);
    ring->results = (void *)(memory + done->cqes);
    ring->requests = ring->entries;
    return true;
}

static struct wf_ring *open_ring(void)
{
    struct io_uring_params params = {0};
    int fd = (int)syscall(SYS_io_uring_setup, DEPTH, &params);
    struct wf_ring *ring;

    if (fd < 0) return NULL;
    ring = wf_calloc(1, sizeof *ring);
    if (ring == NULL) {
        close(fd);
        return NULL;
    }
    *ring =
        (struct wf_ring){.fd = fd, .owner = getpid(), .memory = MAP_FAILED, .entries = MAP_FAILED};
    if (map_ring(ring, &params)) return ring;
    close_ring(ring);
    return NULL;
}

/* ---- idle rings ---- */

void wf_rings_begin(struct wf_rings *rings)
{
    *rings = (struct wf_rings){.idle = NULL};
    pthread_mutex_init(&rings->guard, NULL);
}

void wf_rings_end(struct wf_rings *rings)
{
    while (rings->idle != NULL) {
        struct wf_ring *ring = rings->idle;
        rings->idle = ring->next;
        close_ring(ring);
    }
    pthread_mutex_destroy(&rings->guard);
}

struct wf_ring *wf_rings_take(struct wf_rings *rings)
{
    struct wf_ring *ring;
    bool refused;

    pthread_mutex_lock(&rings->guard);
    ring = rings->idle;
    refused = rings->refused;
    if (ring != NULL) rings->idle = ring->next;
    pthread_mutex_unlock(&rings->guard);
    if (ring != NULL && ring->owner != getpid()) {
        wf_rings_give(rings, ring);
        return NULL;
    }
    if (ring != NULL || refused) return ring;
    ring = open_ring();
    if (ring != NULL) return ring;
    pthread_mutex_lock(&rings->guard);
    rings->refused = true;
    pthread_mutex_unlock(&rings->guard);
    return NULL;
}

void wf_rings_give(struct wf_rings *rings, struct wf_ring *ring)
{
    pthread_mutex_lock(&rings->guard);
    ring->next = rings->idle;
    rings->idle = ring;
    pthread_mutex_unlock(&rings->guard);
}

/* ---- reading ---- */

static uint32_t load(const uint32_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *at, uint32_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

static size_t request_bytes(size_t bytes, size_t number)
{
    size_t left = bytes - number * REQUEST;

    return left < REQUEST ? left : REQUEST;
}

static void add_requests(struct wf_ring *ring, int fd, char *target, size_t bytes, uint64_t offset,
                         uint32_t count)
{
    uint32_t tail = *ring->submit_tail;

    for (uint32_t i = 0; i < count; i++, tail++) {
        uint32_t slot = tail & *ring->submit_mask;
        ring->requests[slot] =
            (struct io_uring_sqe){.opcode = IORING_OP_READ,
                                  .fd = fd,
                                  .addr = (uintptr_t)target + i * (size_t)REQUEST,
                                  .len = (uint32_t)request_bytes(bytes, i),
                                  .off = offset + i * (uint64_t)REQUEST,
                                  .user_data = i};
        ring->submit_array[slot] = slot;
    }
    store(ring->submit_tail, tail);
}

/* Take the results that are there; how many. */
static uint32_t take_results(struct wf_ring *ring, int32_t *results)
{
    uint32_t head = *ring->done_head, tail = load(ring->done_tail), count = tail - head;

    for (; head != tail; head++) {
        const struct io_uring_cqe *result = &ring->results[head & *ring->done_mask];
        results[result->user_data] = result->res;
    }
    store(ring->done_head, head);
    return count;
}

/* Submit COUNT requests, and wait until all that were taken have ended: they use the caller's
 * memory.  A request that was not taken has the result 0. */
static void run_requests(struct wf_ring *ring, uint32_t count, int32_t *results)
{
    uint32_t submitted = 0, ended = 0;
    bool refused = false;

    while (refused ? ended < submitted : ended < count) {
        uint32_t more = refused ? 0 : count - submitted;
        long taken =
            syscall(SYS_io_uring_enter, ring->fd, more, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        if (taken > 0) submitted += (uint32_t)taken;
        if (taken < 0 && errno != EINTR) refused = true;
        ended += take_results(ring, results);
    }
    store(ring->submit_tail, load(ring->submit_head)); /* forget those that were not taken */
}

size_t wf_ring_read(struct wf_ring *ring, int fd, void *target, size_t bytes, uint64_t offset)
{
    size_t done = 0;

    while (done < bytes) {
        size_t left = bytes - done, wanted = (left + REQUEST - 1) / REQUEST;
        uint32_t count = wanted < DEPTH ? (uint32_t)wanted : DEPTH;
        int32_t results[DEPTH] = {0};
        add_requests(ring, fd, (char *)target + done, left, offset + (uint64_t)done, count);
        run_requests(ring, count, results);
        for (uint32_t i = 0; i < count; i++) {
            size_t length = request_bytes(left, i);
            if (results[i] > 0) done += (size_t)results[i];
            if (results[i] < 0 || (size_t)results[i] < length) return done;
        }
    }
    return done;
}

#else /* the headers of the kernel are older */

void wf_rings_begin(struct wf_rings *rings)
{
    *rings = (struct wf_rings){.refused = true};
}

void wf_rings_end(struct wf_rings *rings)
{
    (void)rings;
}

struct wf_ring *wf_rings_take(struct wf_rings *rings)
{
    (void)rings;
    return NULL;
}

void wf_rings_give(struct wf_rings *rings, struct wf_ring *ring)
{
    (void)rings;
    (void)ring;
}

size_t wf_ring_read(struct wf_ring *ring, int fd, void *target, size_t bytes, uint64_t offset)
{
    (void)ring;
    (void)fd;
    (void)target;
    (void)bytes;
    (void)offset;
    return 0;
}

#endif
