/* memory.c - memory that others can read only. */
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic(uint64_t) *serial_of(const struct wf_feed_memory *memory, uint64_t slot)
{
    _Atomic(uint64_t) *numbers = (void *)memory->data;

    return &numbers[slot];
}

static weft_status fail_memory(const struct wf_feed_memory *memory)
{
    return wf_fail(
        WEFT_ERR_NO_MEMORY,
        "the host has no shared memory of %llu bytes for the versions that are kept: %s; "
        "keep fewer, or give the host more memory",
        (unsigned long long)memory->bytes, strerror(errno));
}

weft_status wf_feed_memory_create(size_t slots, uint64_t slot_bytes, struct wf_feed_memory *out)
{
    struct wf_feed_memory made = {
        .fd = -1, .slot_bytes = slot_bytes, .bytes = WF_FEED_HEADER + slots * slot_bytes};
    weft_status status;

    made.fd = memfd_create("weft-feed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made.fd < 0 || fallocate(made.fd, 0, 0, (off_t)made.bytes) != 0) {
        status = fail_memory(&made);
        wf_feed_close(&made.fd);
        return status;
    }
    made.data = mmap(NULL, made.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, 0);
    if (made.data == MAP_FAILED) {
        made.data = NULL;
        status = fail_memory(&made);
    } else if (fcntl(made.fd, F_ADD_SEALS,
                     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
        status = wf_fail(WEFT_ERR_SYSTEM, "the kernel cannot seal memory against writers: %s",
                         strerror(errno));
    } else {
        *out = made;
        return WEFT_OK;
    }
    wf_feed_memory_free(&made);
    return status;
}

weft_status wf_feed_memory_map(int fd, size_t slots, uint64_t slot_bytes,
                               struct wf_feed_memory *out)
{
    struct wf_feed_memory made = {
        .fd = fd, .slot_bytes = slot_bytes, .bytes = WF_FEED_HEADER + slots * slot_bytes};
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat info;
    weft_status status;

    if (fstat(fd, &info) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
        (uint64_t)info.st_size != made.bytes) {
        status = wf_fail(WEFT_ERR_INVALID,
                         "the publisher's memory has %lld bytes and %s shrink; expected %llu bytes "
                         "that cannot",
                         fstat(fd, &info) == 0 ? (long long)info.st_size : -1LL,
                         seals >= 0 && (seals & F_SEAL_SHRINK) != 0 ? "cannot" : "can",
                         (unsigned long long)made.bytes);
    } else {
        made.data = mmap(NULL, made.bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (made.data != MAP_FAILED) {
            wf_feed_close(&made.fd);
            *out = made;
            return WEFT_OK;
        }
        made.data = NULL;
        status = wf_fail(WEFT_ERR_NO_MEMORY, "the publisher's memory cannot be mapped: %s",
                         strerror(errno));
    }
    wf_feed_memory_free(&made);
    return status;
}

void wf_feed_memory_free(struct wf_feed_memory *memory)
{
    if (memory->data != NULL) munmap(memory->data, memory->bytes);
    wf_feed_close(&memory->fd);
    *memory = (struct wf_feed_memory){.fd = -1};
}

uint64_t wf_feed_memory_serial(const struct wf_feed_memory *memory, uint64_t slot)
{
    return atomic_load_explicit(serial_of(memory, slot), memory_order_acquire);
}

void wf_feed_memory_read_fence(void)
{
    atomic_thread_fence(memory_order_acquire);
}

/* The fence keeps writes of elements behind the 0. */
void wf_feed_memory_set_serial(struct wf_feed_memory *memory, uint64_t slot, uint64_t serial)
{
    atomic_store_explicit(serial_of(memory, slot), serial, memory_order_release);
    if (serial == 0) atomic_thread_fence(memory_order_seq_cst);
}
