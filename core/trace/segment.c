/* segment.c - the memory of a ring: a file in shared memory, or private memory where that is not to
 * be had. */
#include "folder.h"
#include "trace.h"

#include "weft/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(weft_record) == 128, "a record is two cache lines");
_Static_assert(sizeof(struct wf_segment) % 64 == 0, "texts and records are aligned");

static size_t segment_bytes(uint64_t records)
{
    return sizeof(struct wf_segment) + WF_TEXT_BYTES + (size_t)records * sizeof(weft_record);
}

/* ---- the file ---- */

/* Create the file of the ring, with all its memory, so that later writes cannot fail. */
static weft_status create_file(struct wf_trace *trace, int folder,
                               const struct wf_trace_identity *identity)
{
    size_t used = strlen(trace->path);
    const char *name = trace->path + used + 1;
    int error;

    snprintf(trace->path + used, sizeof trace->path - used,
             "/" WF_RING_PREFIX "%016" PRIx64 ".%d.%d", identity->job, identity->rank,
             (int)getpid());
    trace->file = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (trace->file < 0)
        return wf_fail(WEFT_ERR_SYSTEM, "%s cannot be created: %s", trace->path, strerror(errno));
    error = flock(trace->file, LOCK_EX | LOCK_NB) != 0 ? errno : 0;
    if (error == 0) error = posix_fallocate(trace->file, 0, (off_t)trace->bytes);
    if (error != 0)
        return wf_fail(WEFT_ERR_SYSTEM, "%s cannot have %zu bytes: %s", trace->path, trace->bytes,
                       strerror(error));
    return WEFT_OK;
}

static weft_status map_file(struct wf_trace *trace)
{
    void *memory =
        mmap(NULL, trace->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, trace->file, 0);

    if (memory == MAP_FAILED)
        return wf_fail(WEFT_ERR_SYSTEM, "%s cannot be mapped: %s", trace->path, strerror(errno));
    trace->segment = memory;
    return WEFT_OK;
}

static void drop_file(struct wf_trace *trace)
{
    if (trace->file < 0) return;
    unlink(trace->path);
    close(trace->file);
    trace->file = -1;
    trace->path[0] = '\0';
}

static weft_status share(struct wf_trace *trace, const struct wf_trace_identity *identity)
{
    weft_status status;
    int folder;

    WF_TRY(wf_folder_open(trace->path, sizeof trace->path - 64, &folder));
    wf_folder_clean(folder);
    status = create_file(trace, folder, identity);
    close(folder);
    if (status == WEFT_OK) status = map_file(trace);
    if (status != WEFT_OK) drop_file(trace);
    return status;
}

static weft_status keep_private(struct wf_trace *trace)
{
    void *memory =
        mmap(NULL, trace->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) return wf_fail_memory(trace->bytes);
    trace->segment = memory;
    return WEFT_OK;
}

/* ---- what it says ---- */

static void read_program(char *out, size_t bytes)
{
    int file = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, out, bytes - 1) : 0;

    out[length > 0 ? length - 1 : 0] = '\0'; /* without the newline */
    if (file >= 0) close(file);
}

static void describe(struct wf_segment *segment, const struct wf_trace_identity *identity,
                     uint64_t records)
{
    struct wf_instant begun = wf_instant_begun();

    segment->version = WF_SEGMENT_VERSION;
    segment->head_bytes = sizeof *segment;
    segment->text_bytes = WF_TEXT_BYTES;
    segment->record_bytes = sizeof(weft_record);
    segment->record_count = (uint32_t)records;
    segment->rank = identity->rank;
    segment->size = identity->size;
    segment->pid = (int32_t)getpid();
    segment->job = identity->job;
    segment->begun_ticks = begun.ticks;
    segment->begun_ns = begun.ns;
    (void)gethostname(segment->host, sizeof segment->host - 1);
    read_program(segment->program, sizeof segment->program);
    snprintf(segment->backend, sizeof segment->backend, "%s", identity->backend);
    atomic_store(&segment->text_used, 1); /* text 0 is "" */
    atomic_thread_fence(memory_order_release);
    memcpy(segment->magic, WF_SEGMENT_MAGIC, sizeof segment->magic);
}

static uint64_t round_up(uint64_t records)
{
    uint64_t count = 64;

    while (count < records && count < WF_RECORDS_MOST)
        count *= 2;
    return count;
}

weft_status wf_trace_create(const struct wf_trace_identity *identity, uint64_t records,
                            struct wf_trace **out)
{
    struct wf_trace *trace = wf_calloc(1, sizeof *trace);
    uint64_t count = records > 0 ? round_up(records) : WF_RECORDS_PRIVATE;
    weft_status status = WEFT_ERR_UNSUPPORTED;

    if (trace == NULL) return wf_fail_memory(sizeof *trace);
    trace->file = -1;
    trace->has_ring = records > 0;
    trace->bytes = segment_bytes(count);
    trace->mask = count - 1;
    pthread_mutex_init(&trace->lock, NULL);
    pthread_mutex_init(&trace->counts_lock, NULL);
    if (trace->has_ring) {
        status = share(trace, identity);
        if (status != WEFT_OK)
            wf_log(WF_LOG_NOTICE,
                   "other processes, such as `weft status`, cannot see the operations of this "
                   "rank: %s",
                   weft_last_error());
    }
    if (status != WEFT_OK) status = keep_private(trace);
    if (status != WEFT_OK) {
        wf_trace_destroy(trace);
        return status;
    }
    describe(trace->segment, identity, count);
    trace->records =
        (weft_record *)((char *)trace->segment + sizeof *trace->segment + WF_TEXT_BYTES);
    *out = trace;
    return WEFT_OK;
}

void wf_trace_destroy(struct wf_trace *trace)
{
    if (trace == NULL) return;
    drop_file(trace);
    if (trace->segment != NULL) munmap(trace->segment, trace->bytes);
    pthread_mutex_destroy(&trace->lock);
    pthread_mutex_destroy(&trace->counts_lock);
    wf_free(trace->texts);
    wf_counts_free(atomic_load(&trace->counts));
    wf_free(trace);
}

/* ---- communicators ---- */

/* "0-3,8": consecutive ranks joined. */
static void list_ranks(const int32_t *ranks, int32_t count, struct wf_text *out)
{
    for (int32_t first = 0, last; first < count; first = last + 1) {
        last = first;
        while (last + 1 < count && ranks[last + 1] == ranks[last] + 1)
            last++;
        wf_text_add(out, first > 0 ? ",%d" : "%d", ranks[first]);
        if (last > first) wf_text_add(out, "-%d", ranks[last]);
    }
}

static struct wf_segment_comm *find_comm(struct wf_trace *trace, uint64_t number)
{
    for (size_t i = 0; i < WF_SEGMENT_COMMS; i++)
        if (atomic_load(&trace->segment->comms[i].number) == number)
            return &trace->segment->comms[i];
    return NULL;
}

void wf_trace_add_comm(struct wf_trace *trace, uint64_t number, uint32_t name, const int32_t *ranks,
                       int32_t size, int32_t rank)
{
    struct wf_text text = {0};
    struct wf_segment_comm *comm;
    uint32_t list;

    list_ranks(ranks, size, &text);
    list = wf_trace_intern(trace, text.failed ? "" : text.data);
    wf_text_free(&text);
    pthread_mutex_lock(&trace->lock);
    comm = find_comm(trace, 0);
    if (comm != NULL) {
        atomic_store(&comm->name, name);
        atomic_store(&comm->ranks, list);
        atomic_store(&comm->rank, rank);
        atomic_store(&comm->size, size);
        atomic_store(&comm->failed, WEFT_OK);
        atomic_store(&comm->number, number);
    }
    pthread_mutex_unlock(&trace->lock);
}

void wf_trace_fail_comm(struct wf_trace *trace, uint64_t number, weft_status status,
                        const char *text)
{
    struct wf_segment_comm *comm = find_comm(trace, number);

    if (comm != NULL) atomic_store(&comm->failed, status);
    if (atomic_load(&trace->observing) != 0) wf_observers_fail(trace, number, status, text);
}

void wf_trace_remove_comm(struct wf_trace *trace, uint64_t number)
{
    struct wf_segment_comm *comm;

    pthread_mutex_lock(&trace->lock);
    comm = find_comm(trace, number);
    if (comm != NULL) atomic_store(&comm->number, 0);
    pthread_mutex_unlock(&trace->lock);
}

uint32_t wf_trace_comm_ranks(struct wf_trace *trace, uint64_t number)
{
    struct wf_segment_comm *comm = find_comm(trace, number);

    return comm != NULL ? atomic_load(&comm->ranks) : 0;
}
