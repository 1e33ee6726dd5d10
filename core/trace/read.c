/* read.c - a file becomes a recorder.
 *
 * Its owner may write while it is read.  A record is valid while its id stands there, so the file
 * is read three times: a record counts if all three copies have its id, and its fields come from
 * the second one.  The same holds for communicators and their numbers. */
#include "read.h"

#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_BYTES_MOST (1u << 20)

/* ---- the bytes of the file ---- */

static weft_status fail_short(const weft_recorder *recorder, uint64_t bytes, uint64_t wanted)
{
    return wf_fail(WEFT_ERR_PARSE, "%s is cut short: it has %" PRIu64 " bytes, not %" PRIu64,
                   recorder->path, bytes, wanted);
}

/* Read BYTES at OFFSET of RECORDER's file. */
static weft_status read_bytes(const weft_recorder *recorder, size_t offset, void *to, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t got =
            pread(recorder->file, (char *)to + done, bytes - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return wf_fail(WEFT_ERR_SYSTEM, "%s cannot be read: %s", recorder->path,
                           kit_error_text(errno));
        if (got == 0) return fail_short(recorder, offset + done, offset + bytes);
        done += (size_t)got;
    }
    atomic_thread_fence(memory_order_acquire); /* before the next copy */
    return WEFT_OK;
}

static size_t file_bytes(const struct wf_segment *head)
{
    return (size_t)head->head_bytes + head->text_bytes +
           (size_t)head->record_count * head->record_bytes;
}

static weft_status check_sizes(const weft_recorder *recorder, const struct wf_segment *head)
{
    uint32_t count = head->record_count;

    if (head->version != WF_SEGMENT_VERSION)
        return wf_fail(
            WEFT_ERR_VERSION,
            "%s is a recorder of version %u, but this weft reads version %u: use the `weft` "
            "of the job",
            recorder->path, head->version, WF_SEGMENT_VERSION);
    if (head->head_bytes != sizeof *head || head->record_bytes != sizeof(weft_record) ||
        head->text_bytes == 0 || head->text_bytes > TEXT_BYTES_MOST || head->text_bytes % 64 != 0 ||
        count == 0 || count > WF_RECORDS_MOST || (count & (count - 1)) != 0)
        return wf_fail(
            WEFT_ERR_PARSE,
            "%s is damaged: its first bytes state %u of head, %u of texts and %u records "
            "of %u",
            recorder->path, head->head_bytes, head->text_bytes, count, head->record_bytes);
    return WEFT_OK;
}

/* Read the head twice: the owner writes MAGIC last. */
static weft_status read_head(weft_recorder *recorder, struct wf_segment *head)
{
    static const char zeros[sizeof head->magic];
    struct stat info;

    if (fstat(recorder->file, &info) != 0)
        return wf_fail(WEFT_ERR_SYSTEM, "%s cannot be examined: %s", recorder->path,
                       kit_error_text(errno));
    if (!S_ISREG(info.st_mode))
        return wf_fail(WEFT_ERR_PARSE, "%s is not a recorder of weft: it is not a plain file",
                       recorder->path);
    recorder->removed = info.st_nlink == 0;
    if (info.st_size == 0) return WEFT_IN_PROGRESS;
    if ((uint64_t)info.st_size < sizeof head->magic)
        return fail_short(recorder, (uint64_t)info.st_size, sizeof *head);
    WF_TRY(read_bytes(recorder, 0, head->magic, sizeof head->magic));
    if (memcmp(head->magic, zeros, sizeof zeros) == 0 && wf_folder_is_owned(recorder->file))
        return WEFT_IN_PROGRESS;
    if (memcmp(head->magic, WF_SEGMENT_MAGIC, sizeof head->magic) != 0)
        return wf_fail(WEFT_ERR_PARSE, "%s is not a recorder of weft: it begins with other bytes",
                       recorder->path);
    WF_TRY(read_bytes(recorder, 0, head, sizeof *head));
    WF_TRY(check_sizes(recorder, head));
    if ((uint64_t)info.st_size < file_bytes(head))
        return fail_short(recorder, (uint64_t)info.st_size, file_bytes(head));
    return WEFT_OK;
}

/* ---- times ---- */

/* Two instants that convert the ticks of a recorder. */
struct line {
    struct wf_instant first, last;
};

#define NS_MOST (UINT64_C(1) << 60) /* so that conversions do not overflow */

/* The owner's first instant makes the line long and therefore exact.  It is used if it fits to
 * this process's clock: the file may be older than the host's last start, or lie. */
static struct line line_of(struct wf_instant owner)
{
    struct wf_instant own = wf_instant_begun(), now = wf_instant_apart(own);
    uint64_t about, since, off;

    if (owner.ns == 0 || owner.ns >= own.ns || owner.ticks == 0 || owner.ticks >= own.ticks ||
        own.ns - owner.ns > NS_MOST)
        return (struct line){own, now};
    about = wf_ticks_convert(own, now, owner.ticks);
    since = now.ns - owner.ns;
    off = about > owner.ns ? about - owner.ns : owner.ns - about;
    return off <= 1000000 + since / 100 ? (struct line){owner, now} : (struct line){own, now};
}

static void convert(struct line line, weft_record *record)
{
    record->submitted = wf_ticks_convert(line.first, line.last, record->submitted);
    record->started = wf_ticks_convert(line.first, line.last, record->started);
    record->finished = wf_ticks_convert(line.first, line.last, record->finished);
}

/* ---- what the copies have in common ---- */

struct copies {
    void *block;
    unsigned char *bytes[3]; /* aligned as the file is in memory */
    size_t size;             /* of each */
};

static const struct wf_segment *head_in(const struct copies *copies, int copy)
{
    return (const struct wf_segment *)(const void *)copies->bytes[copy];
}

static const weft_record *record_in(const struct copies *copies, int copy,
                                    const weft_recorder *recorder, size_t index)
{
    return (const weft_record *)(const void *)(copies->bytes[copy] + sizeof(struct wf_segment) +
                                               recorder->text_bytes) +
           index;
}

static void take_texts(weft_recorder *recorder, const struct copies *copies)
{
    uint32_t used = head_in(copies, 1)->text_used, room = recorder->text_bytes;

    if (used > room) used = room;
    memcpy(recorder->texts, copies->bytes[2] + sizeof(struct wf_segment), used);
    memset(recorder->texts + used, 0, room + 1 - used);
    wf_text_clean(recorder->texts, used);
}

/* The owner stores a state last, so a copy may have the state without what belongs to it. */
static void settle(weft_record *record)
{
    if ((record->state == WEFT_RECORD_FINISHED && record->finished == 0) ||
        (record->state == WEFT_RECORD_FAILED && record->status == WEFT_OK))
        record->state = WEFT_RECORD_SUBMITTED;
    if (record->state == WEFT_RECORD_SUBMITTED) record->finished = 0;
}

static void take_records(weft_recorder *recorder, const struct copies *copies)
{
    const struct wf_segment *head = head_in(copies, 1);
    struct line line = line_of((struct wf_instant){head->begun_ticks, head->begun_ns});
    uint64_t mask = recorder->record_count - 1;

    recorder->newest = head->next;
    recorder->begun_ns = wf_ticks_convert(line.first, line.last, head->begun_ticks);
    for (size_t i = 0; i <= mask; i++) {
        weft_record *record = &recorder->records[i];

        *record = *record_in(copies, 1, recorder, i);
        if (record->id == 0 || (record->id & mask) != i || record->id > recorder->newest ||
            recorder->newest - record->id > mask || record->state < WEFT_RECORD_SUBMITTED ||
            record->state > WEFT_RECORD_FAILED ||
            record_in(copies, 0, recorder, i)->id != record->id ||
            record_in(copies, 2, recorder, i)->id != record->id) {
            record->id = 0;
            continue;
        }
        settle(record);
        convert(line, record);
    }
    recorder->read_ns = line.last.ns;
}

static void take_comms(weft_recorder *recorder, const struct copies *copies)
{
    recorder->comm_count = 0;
    for (size_t i = 0; i < WF_SEGMENT_COMMS; i++) {
        const struct wf_segment_comm *comm = &head_in(copies, 1)->comms[i];

        if (comm->number == 0 || head_in(copies, 0)->comms[i].number != comm->number ||
            head_in(copies, 2)->comms[i].number != comm->number)
            continue;
        memcpy(&recorder->comms[recorder->comm_count++], comm, sizeof *comm);
    }
}

static void take_text(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
    to[bytes - 1] = '\0';
    wf_text_clean(to, bytes - 1);
}

static void take_head(weft_recorder *recorder, const struct wf_segment *head)
{
    memcpy(recorder->facts, head, sizeof recorder->facts);
    recorder->text_bytes = head->text_bytes;
    recorder->record_count = head->record_count;
    recorder->rank = head->rank;
    recorder->size = head->size;
    recorder->pid = head->pid;
    recorder->job = head->job;
    take_text(recorder->host, head->host, sizeof recorder->host);
    take_text(recorder->program, head->program, sizeof recorder->program);
    take_text(recorder->backend, head->backend, sizeof recorder->backend);
}

/* ---- the owner ---- */

/* True if the process PID is stopped, as far as this process can see. */
static bool is_stopped(int32_t pid)
{
    char path[64], text[512];
    const char *end;
    ssize_t got;
    int file;

    if (pid <= 0) return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    got = read(file, text, sizeof text - 1);
    close(file);
    if (got <= 0) return false;
    text[got] = '\0';
    end = strrchr(text, ')'); /* the name before it may have any characters */
    return end != NULL && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
}

/* ---- loading ---- */

static void free_copies(struct copies *copies)
{
    wf_free(copies->block);
    *copies = (struct copies){0};
}

/* Room for three copies, and in RECORDER, if it has none yet, for texts and records. */
static weft_status make_room(weft_recorder *recorder, const struct wf_segment *head,
                             struct copies *copies)
{
    size_t bytes = (file_bytes(head) + 63) / 64 * 64, records;

    *copies = (struct copies){.size = file_bytes(head), .block = wf_alloc(3 * bytes + 64)};
    if (copies->block == NULL) return wf_fail_memory(3 * bytes + 64);
    for (size_t i = 0; i < 3; i++)
        copies->bytes[i] =
            (unsigned char *)copies->block + (64 - (uintptr_t)copies->block % 64) + i * bytes;
    if (recorder->records != NULL) return WEFT_OK;
    records = (size_t)head->record_count * sizeof *recorder->records;
    recorder->texts = wf_alloc((size_t)head->text_bytes + 1);
    recorder->records = recorder->texts != NULL ? wf_alloc(records) : NULL;
    if (recorder->records != NULL) return WEFT_OK;
    wf_free(recorder->texts);
    recorder->texts = NULL;
    free_copies(copies);
    return wf_fail_memory(records);
}

/* The start of the file may not change. */
static weft_status check_same(const weft_recorder *recorder, const struct wf_segment *head,
                              const void *before)
{
    if (memcmp(head, before, sizeof recorder->facts) == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE, "%s is damaged: another process has written to it",
                   recorder->path);
}

static weft_status read_copies(const weft_recorder *recorder, const struct wf_segment *head,
                               const struct copies *copies)
{
    for (int i = 0; i < 3; i++) {
        WF_TRY(read_bytes(recorder, 0, copies->bytes[i], copies->size));
        WF_TRY(check_same(recorder, head_in(copies, i), head));
    }
    return WEFT_OK;
}

weft_status wf_recorder_load(weft_recorder *recorder)
{
    struct wf_segment head;
    struct copies copies;
    weft_status status;

    WF_TRY(read_head(recorder, &head));
    if (recorder->records != NULL) WF_TRY(check_same(recorder, &head, recorder->facts));
    WF_TRY(make_room(recorder, &head, &copies));
    status = read_copies(recorder, &head, &copies);
    if (status == WEFT_OK) {
        take_head(recorder, &head);
        take_texts(recorder, &copies);
        take_records(recorder, &copies);
        take_comms(recorder, &copies);
        recorder->alive = wf_folder_is_owned(recorder->file);
        recorder->stopped = recorder->alive && is_stopped(head.pid);
    }
    free_copies(&copies);
    return status;
}

weft_status wf_recorder_open(int folder, const char *name, const char *path, weft_recorder **out)
{
    weft_recorder *recorder = wf_calloc(1, sizeof *recorder);
    weft_status status = WEFT_OK;

    if (recorder == NULL) return wf_fail_memory(sizeof *recorder);
    recorder->path = wf_strdup(path);
    /* A pipe without a writer must not block. */
    recorder->file = openat(
        folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (folder != AT_FDCWD ? O_NOFOLLOW : 0));
    if (recorder->path == NULL)
        status = wf_fail_memory(strlen(path) + 1);
    else if (recorder->file < 0)
        status = wf_fail(errno == ENOENT ? WEFT_ERR_NOT_FOUND : WEFT_ERR_SYSTEM,
                         "%s cannot be opened: %s", path, kit_error_text(errno));
    if (status == WEFT_OK) status = wf_recorder_load(recorder);
    if (status != WEFT_OK) {
        wf_recorder_free(recorder);
        return status;
    }
    *out = recorder;
    return WEFT_OK;
}

void wf_recorder_free(weft_recorder *recorder)
{
    if (recorder == NULL) return;
    if (recorder->file >= 0) close(recorder->file);
    wf_free(recorder->path);
    wf_free(recorder->texts);
    wf_free(recorder->records);
    wf_free(recorder);
}
