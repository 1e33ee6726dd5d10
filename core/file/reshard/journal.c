/* journal.c - see journal.h.
 *
 * A file has a header, a checksum per step if they are wanted, and a bit per step.  Bits are only
 * ever set, after the bytes and checksums of their steps were flushed.  So a write of the bits that
 * is cut short is harmless. */
#include "file/io/at.h"
#include "file/reshard/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct header {
    char magic[16];
    uint64_t digest, buffer, steps, sums;
    uint64_t run;   /* the same in all journals of a run, and in no other */
    uint64_t parts; /* the most processes that the run has had */
};

static const char magic[16] = "weft-journal 3\n";

enum { MOST_PARTS = 1 << 20 };

static weft_status fail_journal(const char *path)
{
    return wf_fail(WEFT_ERR_SYSTEM, "%s: %s", path, strerror(errno));
}

static weft_status read_at(int fd, const char *path, void *target, size_t bytes, uint64_t offset)
{
    int64_t count = wf_read_at(fd, target, bytes, offset);

    if (count < 0) return fail_journal(path);
    return (size_t)count == bytes ? WEFT_OK : wf_fail(WEFT_ERR_PARSE, "%s is cut short", path);
}

static weft_status write_at(const struct wf_journal *journal, const void *source, size_t bytes,
                            uint64_t offset)
{
    return wf_write_at(journal->fd, source, bytes, offset) ? WEFT_OK : fail_journal(journal->path);
}

static uint64_t bits_offset(const struct wf_journal *journal)
{
    return sizeof(struct header) + (journal->sums != NULL ? journal->steps * 8 : 0);
}

/* ---- begin ---- */

static weft_status read_header(int fd, const char *path, struct header *out)
{
    WF_TRY(read_at(fd, path, out, sizeof *out, 0));
    if (memcmp(out->magic, magic, sizeof magic) == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE, "%s is not a journal of weft", path);
}

weft_status wf_journal_peek(const char *path, struct wf_journal_plan *out)
{
    char *journal = wf_journal_path(path, 0);
    struct header header;
    weft_status status;
    int fd;

    if (journal == NULL) return wf_fail_memory(strlen(path) + 16);
    fd = open(journal, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        status = errno == ENOENT ? wf_fail(WEFT_ERR_NOT_FOUND, "%s does not exist", journal)
                                 : fail_journal(journal);
    else
        status = read_header(fd, journal, &header);
    if (fd >= 0) close(fd);
    if (status == WEFT_OK)
        *out = (struct wf_journal_plan){header.digest, header.buffer, header.steps};
    wf_free(journal);
    return status;
}

static weft_status allocate(struct wf_journal *journal, bool sums)
{
    size_t bytes = (size_t)journal->words * 8;

    journal->done = wf_calloc((size_t)journal->words, sizeof *journal->done);
    journal->copy = wf_calloc((size_t)journal->words, sizeof *journal->copy);
    if (sums) journal->sums = wf_calloc((size_t)journal->steps, sizeof *journal->sums);
    if (journal->done == NULL || journal->copy == NULL || (sums && journal->sums == NULL))
        return wf_fail_memory(bytes);
    return WEFT_OK;
}

/* Add the steps of the journal FD, whose header was read. */
static weft_status load(struct wf_journal *journal, int fd, const char *path)
{
    uint64_t *sums = NULL;
    weft_status status;

    if (journal->sums != NULL) {
        sums = wf_calloc((size_t)journal->steps, sizeof *sums);
        if (sums == NULL) return wf_fail_memory((size_t)journal->steps * sizeof *sums);
    }
    status = sums == NULL
                 ? WEFT_OK
                 : read_at(fd, path, sums, (size_t)journal->steps * 8, sizeof(struct header));
    if (status == WEFT_OK)
        status = read_at(fd, path, journal->copy, (size_t)journal->words * 8, bits_offset(journal));
    for (uint64_t step = 0; step < journal->steps && status == WEFT_OK; step++)
        if ((journal->copy[step / 64] >> step % 64 & 1) != 0)
            wf_journal_add(journal, step, sums != NULL ? sums[step] : 0);
    wf_free(sums);
    return status;
}

static bool is_of(const struct header *header, const struct wf_journal_plan *plan, bool sums)
{
    return header->digest == plan->digest && header->steps == plan->steps && header->sums == sums;
}

/* Add the steps of process PART of the run RUN, if it left a journal. */
static weft_status load_other(struct wf_journal *journal, const char *path, int32_t part,
                              const struct wf_journal_plan *plan, uint64_t run)
{
    char *other = wf_journal_path(path, part);
    struct header header;
    weft_status status;
    int fd;

    if (other == NULL) return wf_fail_memory(strlen(path) + 32);
    fd = open(other, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    status = fd >= 0 ? read_header(fd, other, &header) : WEFT_OK;
    if (status == WEFT_ERR_PARSE) /* killed before its first record */
        status = WEFT_OK;
    else if (fd >= 0 && status == WEFT_OK && header.run == run &&
             is_of(&header, plan, journal->sums != NULL))
        status = load(journal, fd, other);
    if (fd >= 0) close(fd);
    wf_free(other);
    return status;
}

/* Write the steps that JOURNAL has, and then the header: without it, this is not a journal. */
static weft_status begin_file(struct wf_journal *journal, const struct header *header)
{
    for (uint64_t i = 0; i < journal->words; i++) {
        journal->copy[i] = atomic_load(&journal->done[i]);
        journal->recorded += (uint64_t)__builtin_popcountll(journal->copy[i]);
    }
    if (journal->sums != NULL)
        WF_TRY(write_at(journal, (const void *)journal->sums, (size_t)journal->steps * 8,
                        sizeof *header));
    WF_TRY(write_at(journal, journal->copy, (size_t)journal->words * 8, bits_offset(journal)));
    if (fdatasync(journal->fd) != 0) return fail_journal(journal->path);
    WF_TRY(write_at(journal, header, sizeof *header, 0));
    return fdatasync(journal->fd) == 0 ? WEFT_OK : fail_journal(journal->path);
}

static weft_status begin_first(struct wf_journal *journal, const char *path, int32_t parts,
                               const struct wf_journal_plan *plan, bool resume)
{
    struct header header = {.digest = plan->digest,
                            .buffer = plan->buffer,
                            .steps = plan->steps,
                            .sums = journal->sums != NULL,
                            .run = wf_hash_mix(wf_now_ns(), (uint64_t)getpid()),
                            .parts = (uint64_t)parts};

    memcpy(header.magic, magic, sizeof magic);
    journal->fd = open(journal->path,
                       O_RDWR | O_CLOEXEC | O_NOFOLLOW | (resume ? 0 : O_CREAT | O_TRUNC), 0666);
    if (journal->fd < 0) return fail_journal(journal->path);
    if (resume) {
        WF_TRY(read_header(journal->fd, journal->path, &header));
        if (!is_of(&header, plan, journal->sums != NULL))
            return wf_fail(WEFT_ERR_INVALID, "%s belongs to another run", journal->path);
        WF_TRY(load(journal, journal->fd, journal->path));
        for (uint64_t other = 1; other < header.parts && other < MOST_PARTS; other++)
            WF_TRY(load_other(journal, path, (int32_t)other, plan, header.run));
        if (header.parts < (uint64_t)parts) header.parts = (uint64_t)parts;
    }
    journal->others = header.parts < MOST_PARTS ? header.parts - 1 : 0;
    return begin_file(journal, &header);
}

/* The first process has begun. */
static weft_status begin_other(struct wf_journal *journal, const char *path,
                               const struct wf_journal_plan *plan, bool resume)
{
    char *first = wf_journal_path(path, 0);
    struct header header;
    weft_status status;
    int fd;

    if (first == NULL) return wf_fail_memory(strlen(path) + 32);
    fd = open(first, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    status = fd >= 0 ? read_header(fd, first, &header) : fail_journal(first);
    if (status == WEFT_OK && !is_of(&header, plan, journal->sums != NULL))
        status = wf_fail(WEFT_ERR_INVALID, "%s belongs to another run", first);
    if (status == WEFT_OK && resume) status = load(journal, fd, first);
    if (fd >= 0) close(fd);
    wf_free(first);
    WF_TRY(status);
    journal->fd = open(journal->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT | O_TRUNC, 0666);
    return journal->fd >= 0 ? begin_file(journal, &header) : fail_journal(journal->path);
}

weft_status wf_journal_begin(struct wf_journal *journal, const char *path, int32_t part,
                             int32_t parts, const struct wf_journal_plan *plan, bool sums,
                             bool resume)
{
    weft_status status;

    *journal = (struct wf_journal){.fd = -1,
                                   .path = wf_journal_path(path, part),
                                   .steps = plan->steps,
                                   .words = plan->steps / 64 + 1};
    status = journal->path != NULL ? allocate(journal, sums) : wf_fail_memory(strlen(path) + 32);
    if (status == WEFT_OK)
        status = part == 0 ? begin_first(journal, path, parts, plan, resume)
                           : begin_other(journal, path, plan, resume);
    if (status != WEFT_OK) wf_journal_end(journal, resume);
    return status;
}

/* ---- steps ---- */

bool wf_journal_has(const struct wf_journal *journal, uint64_t step)
{
    return (atomic_load_explicit(&journal->done[step / 64], memory_order_acquire) >> step % 64 &
            1) != 0;
}

void wf_journal_add(struct wf_journal *journal, uint64_t step, uint64_t sum)
{
    if (journal->sums != NULL)
        atomic_store_explicit(&journal->sums[step], sum, memory_order_relaxed);
    atomic_fetch_or_explicit(&journal->done[step / 64], UINT64_C(1) << step % 64,
                             memory_order_release);
}

/* Flush the steps that are in `copy`, then write that they are done.  All is written every time, so
 * a journal that could not be written can be written again. */
static weft_status record(struct wf_journal *journal, struct wf_outputs *output)
{
    WF_TRY(wf_outputs_flush(output));
    if (journal->sums != NULL) {
        WF_TRY(write_at(journal, (const void *)journal->sums, (size_t)journal->steps * 8,
                        sizeof(struct header)));
        if (fdatasync(journal->fd) != 0) return fail_journal(journal->path);
    }
    WF_TRY(write_at(journal, journal->copy, (size_t)journal->words * 8, bits_offset(journal)));
    return fdatasync(journal->fd) == 0 ? WEFT_OK : fail_journal(journal->path);
}

weft_status wf_journal_record(struct wf_journal *journal, struct wf_outputs *output)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < journal->words; i++) {
        journal->copy[i] = atomic_load_explicit(&journal->done[i], memory_order_acquire);
        count += (uint64_t)__builtin_popcountll(journal->copy[i]);
    }
    if (count == journal->recorded) return WEFT_OK;
    WF_TRY(record(journal, output));
    journal->recorded = count;
    return WEFT_OK;
}

/* The first one last: without it, the others mean nothing. */
static void remove_files(const struct wf_journal *journal)
{
    for (uint64_t other = 1; other <= journal->others; other++) {
        struct wf_text text = {0};
        wf_text_add(&text, "%s-%" PRIu64, journal->path, other);
        if (wf_text_status(&text) == WEFT_OK) unlink(text.data);
        wf_text_free(&text);
    }
    unlink(journal->path);
}

void wf_journal_end(struct wf_journal *journal, bool keep)
{
    if (journal->fd >= 0) {
        if (!keep) remove_files(journal);
        close(journal->fd);
    }
    wf_free(journal->path);
    wf_free((void *)journal->done);
    wf_free((void *)journal->sums);
    wf_free(journal->copy);
    *journal = (struct wf_journal){.fd = -1};
}
