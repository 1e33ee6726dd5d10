/* segment.c - the memory of a recorder: a file in shared memory, or private memory where that is
 * not to be had. */
#include "trace/dump/dump.h"
#include "counts.h"
#include "folder.h"
#include "rank_file.h"
#include "trace.h"

#include "base/fork.h"
#include "kit/limits.h"
#include "weft/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(weft_record) == 128, "a record is two cache lines");
_Static_assert(sizeof(struct wf_segment) % 64 == 0, "texts and records are aligned");

static size_t segment_bytes(uint64_t records)
{
    return sizeof(struct wf_segment) + WF_TEXT_BYTES + (size_t)records * sizeof(weft_record);
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
    struct wf_instant begun = wf_instant_now();

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

/* ---- the file ---- */

/* Names of the file in its folder: while it is made, and then. */
struct names {
    char made[64], recorder[64];
};

static struct names name_file(const struct wf_trace_identity *identity)
{
    struct names names;
    char rest[56];

    snprintf(rest, sizeof rest, "%016" PRIx64 ".%d.%d", identity->job, identity->rank,
             (int)getpid());
    snprintf(names.made, sizeof names.made, WF_MADE_PREFIX "%s", rest);
    snprintf(names.recorder, sizeof names.recorder, WF_RECORDER_PREFIX "%s", rest);
    return names;
}

/* A fork of this process closes it, so that the lock ends with this process. */
static int open_kept(int folder, const char *name)
{
    wf_fd_hold();
    return wf_fd_keep(
        openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
}

/* Create the file of the recorder with all its memory, so that later writes cannot fail. */
static weft_status create_file(struct wf_trace *trace, int folder, const char *name)
{
    int error;

    trace->file = open_kept(folder, name);
    if (trace->file < 0)
        return wf_fail(WEFT_ERR_SYSTEM, "%s/%s cannot be created: %s", trace->path, name,
                       kit_error_text(errno));
    error = wf_folder_own(trace->file) ? 0 : errno;
    if (error == 0 && trace->bytes > kit_file_limit()) error = EFBIG;
    if (error == 0) error = posix_fallocate(trace->file, 0, (off_t)trace->bytes);
    if (error != 0)
        return wf_fail(WEFT_ERR_SYSTEM, "%s/%s cannot have %zu bytes: %s", trace->path, name,
                       trace->bytes, kit_error_text(error));
    return WEFT_OK;
}

static weft_status map_file(struct wf_trace *trace)
{
    void *memory =
        mmap(NULL, trace->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, trace->file, 0);

    if (memory == MAP_FAILED)
        return wf_fail(WEFT_ERR_SYSTEM, "a recorder in %s cannot be mapped: %s", trace->path,
                       kit_error_text(errno));
    /* A mapping keeps the lock, too, and a fork must not write. */
    (void)madvise(memory, trace->bytes, MADV_DONTFORK);
    trace->segment = memory;
    return WEFT_OK;
}

/* Make the complete file visible to other processes. */
static weft_status publish(struct wf_trace *trace, int folder, const struct names *names)
{
    size_t used = strlen(trace->path);

    if (renameat(folder, names->made, folder, names->recorder) != 0)
        return wf_fail(WEFT_ERR_SYSTEM, "%s/%s cannot be renamed to %s: %s", trace->path,
                       names->made, names->recorder, kit_error_text(errno));
    snprintf(trace->path + used, sizeof trace->path - used, "/%s", names->recorder);
    return WEFT_OK;
}

static weft_status share_in(struct wf_trace *trace, int folder,
                            const struct wf_trace_identity *identity)
{
    struct names names = name_file(identity);
    weft_status status = create_file(trace, folder, names.made);

    if (status == WEFT_OK) status = map_file(trace);
    if (status == WEFT_OK) {
        describe(trace->segment, identity, trace->mask + 1);
        status = publish(trace, folder, &names);
    }
    if (status == WEFT_OK) return WEFT_OK;
    if (trace->segment != NULL) munmap(trace->segment, trace->bytes);
    trace->segment = NULL;
    if (trace->file < 0) return status;
    unlinkat(folder, names.made, 0);
    wf_fd_close(trace->file);
    trace->file = -1;
    return status;
}

/* In the first folder in which it is possible. */
static weft_status share(struct wf_trace *trace, const struct wf_trace_identity *identity)
{
    char paths[WF_FOLDERS][WF_FOLDER_PATH];
    size_t count = wf_folder_list(paths);
    weft_status status = WEFT_OK;

    for (size_t i = 0; i < count; i++) {
        int folder;

        status = wf_folder_make(paths[i], &folder);
        if (status != WEFT_OK) continue;
        snprintf(trace->path, sizeof trace->path, "%s", paths[i]);
        wf_folder_clean(folder);
        status = share_in(trace, folder, identity);
        close(folder);
        if (status == WEFT_OK) return WEFT_OK;
    }
    trace->path[0] = '\0';
    return status;
}

static void drop_file(struct wf_trace *trace)
{
    if (trace->file < 0) return;
    unlink(trace->path);
    wf_fd_close(trace->file);
}

static weft_status keep_private(struct wf_trace *trace, const struct wf_trace_identity *identity)
{
    void *memory =
        mmap(NULL, trace->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) return wf_fail_memory(trace->bytes);
    trace->segment = memory;
    describe(trace->segment, identity, trace->mask + 1);
    return WEFT_OK;
}

/* ---- the object ---- */

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
    struct wf_text_entry *texts = wf_calloc(WF_TEXT_ENTRIES, sizeof *texts);
    uint64_t count = records > 0 ? round_up(records) : WF_RECORDS_PRIVATE;
    weft_status status = WEFT_ERR_UNSUPPORTED;

    if (trace == NULL || texts == NULL) {
        wf_free(trace);
        wf_free(texts);
        return wf_fail_memory(WF_TEXT_ENTRIES * sizeof *texts);
    }
    trace->texts = texts;
    trace->file = -1;
    trace->has_recorder = records > 0;
    trace->bytes = segment_bytes(count);
    trace->mask = count - 1;
    pthread_mutex_init(&trace->lock, NULL);
    pthread_mutex_init(&trace->counts_lock, NULL);
    pthread_mutex_init(&trace->dump_lock, NULL);
    if (trace->has_recorder) {
        status = share(trace, identity);
        if (status != WEFT_OK)
            wf_log(WF_LOG_NOTICE,
                   "other processes, such as `weft status`, cannot see the operations of this "
                   "rank: %s",
                   weft_last_error());
    }
    if (status != WEFT_OK) status = keep_private(trace, identity);
    if (status != WEFT_OK) {
        wf_trace_destroy(trace);
        return status;
    }
    trace->records =
        (weft_record *)((char *)trace->segment + sizeof *trace->segment + WF_TEXT_BYTES);
    *out = trace;
    return WEFT_OK;
}

void wf_trace_set_place(struct wf_trace *trace, uint64_t job, int32_t rank, int32_t size)
{
    trace->segment->job = job;
    trace->segment->rank = rank;
    trace->segment->size = size;
}

void wf_trace_destroy(struct wf_trace *trace)
{
    if (trace == NULL) return;
    wf_dump_end(trace);
    drop_file(trace);
    if (trace->segment != NULL) munmap(trace->segment, trace->bytes);
    pthread_mutex_destroy(&trace->lock);
    pthread_mutex_destroy(&trace->counts_lock);
    pthread_mutex_destroy(&trace->dump_lock);
    wf_free(trace->texts);
    wf_counter_free(atomic_load(&trace->counter));
    wf_free(trace);
}
