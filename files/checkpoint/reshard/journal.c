/* journal.c - see journal.h.
 *
 * A file has a header and two records, which are written in turn: a write that is cut short leaves
 * the record before.  A record has a number, a check over its contents, a checksum per step if they
 * are wanted, and a bit per step.  A bit is set after the bytes of its step were flushed. */
#include "checkpoint/io/at.h"
#include "checkpoint/reshard/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct header {
    char magic[16];
    uint64_t digest, buffer, steps, sums;
    uint64_t run;   /* the same in all journals of a run, and in no other */
    uint64_t parts; /* the most processes that the run has had */
    uint64_t check; /* of the fields before it */
};

struct record {
    uint64_t number; /* from 1; the largest valid one counts */
    uint64_t check;
};

static const char magic[16] = "weft-journal 4\n";

enum { MOST_PARTS = 1 << 20 };

static weft_status fail_journal(const char *path)
{
    return wf_fail(WEFT_ERR_SYSTEM, "%s: %s", path, kit_error_text(errno));
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

static weft_status fail_damaged(const char *path)
{
    return wf_fail(WEFT_ERR_INVALID,
                   "%s is damaged, so the run cannot be resumed; without resume, it begins anew",
                   path);
}

/* ---- records ---- */

static uint64_t sums_bytes(const struct wf_journal *journal)
{
    return journal->sums != NULL ? journal->steps * 8 : 0;
}

static uint64_t record_offset(const struct wf_journal *journal, uint64_t number)
{
    return sizeof(struct header) +
           number % 2 * (sizeof(struct record) + sums_bytes(journal) + journal->words * 8);
}

/* The check of record NUMBER with the steps of `copy`.  SUMS of other steps may change meanwhile.
 */
static uint64_t record_check(const struct wf_journal *journal, uint64_t number,
                             const _Atomic uint64_t *sums)
{
    uint64_t check = wf_hash(number, journal->copy, (size_t)journal->words * 8);

    for (uint64_t step = 0; step < journal->steps && sums != NULL; step++)
        if ((journal->copy[step / 64] >> step % 64 & 1) != 0)
            check = wf_hash_mix(check, atomic_load_explicit(&sums[step], memory_order_relaxed));
    return check;
}

/* Write the steps of `copy` to the place of the record before the last one. */
static weft_status write_record(struct wf_journal *journal)
{
    struct record record = {.number = journal->number + 1};
    uint64_t at = record_offset(journal, record.number);

    record.check = record_check(journal, record.number, journal->sums);
    WF_TRY(write_at(journal, &record, sizeof record, at));
    at += sizeof record;
    if (journal->sums != NULL)
        WF_TRY(write_at(journal, (const void *)journal->sums, (size_t)sums_bytes(journal), at));
    WF_TRY(write_at(journal, journal->copy, (size_t)journal->words * 8, at + sums_bytes(journal)));
    if (fdatasync(journal->fd) != 0) return fail_journal(journal->path);
    journal->number = record.number;
    return WEFT_OK;
}

/* Read the record at the place of NUMBER to SUMS and `copy`; *FOUND is its number, or 0 if it is
 * not a whole record. */
static weft_status read_record(struct wf_journal *journal, int fd, const char *path,
                               uint64_t number, _Atomic uint64_t *sums, uint64_t *found)
{
    uint64_t at = record_offset(journal, number), bits = at + sizeof(struct record);
    struct record record = {0};
    weft_status status = read_at(fd, path, &record, sizeof record, at);

    *found = 0;
    if (status == WEFT_OK && sums != NULL)
        status = read_at(fd, path, (void *)sums, (size_t)sums_bytes(journal), bits);
    bits += sums_bytes(journal);
    if (status == WEFT_OK)
        status = read_at(fd, path, journal->copy, (size_t)journal->words * 8, bits);
    if (status == WEFT_ERR_PARSE) return WEFT_OK;
    WF_TRY(status);
    if (record.number % 2 == number % 2 &&
        record.check == record_check(journal, record.number, sums))
        *found = record.number;
    return WEFT_OK;
}

/* ---- begin ---- */

static uint64_t header_check(const struct header *header)
{
    return wf_hash(1, header, offsetof(struct header, check));
}

static weft_status read_header(int fd, const char *path, struct header *out)
{
    WF_TRY(read_at(fd, path, out, sizeof *out, 0));
    if (memcmp(out->magic, magic, sizeof magic) != 0)
        return wf_fail(WEFT_ERR_PARSE, "%s is not a journal of weft", path);
    return out->check == header_check(out) ? WEFT_OK : fail_damaged(path);
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

/* Read the last record of the journal FD to SUMS and `copy`; *NUMBER is its number. */
static weft_status read_last(struct wf_journal *journal, int fd, const char *path,
                             _Atomic uint64_t *sums, uint64_t *number)
{
    uint64_t even = 0, odd = 0;

    WF_TRY(read_record(journal, fd, path, 0, sums, &even));
    WF_TRY(read_record(journal, fd, path, 1, sums, &odd));
    *number = even > odd ? even : odd;
    if (*number == 0) return fail_damaged(path);
    return even > odd ? read_record(journal, fd, path, 0, sums, &even) : WEFT_OK;
}

/* Add the steps of the journal FD, whose header was read; *NUMBER is that of its last record. */
static weft_status load(struct wf_journal *journal, int fd, const char *path, uint64_t *number)
{
    _Atomic uint64_t *sums = NULL;
    weft_status status;

    if (journal->sums != NULL) {
        sums = wf_calloc((size_t)journal->steps, sizeof *sums);
        if (sums == NULL) return wf_fail_memory((size_t)journal->steps * sizeof *sums);
    }
    status = read_last(journal, fd, path, sums, number);
    for (uint64_t step = 0; step < journal->steps && status == WEFT_OK; step++)
        if ((journal->copy[step / 64] >> step % 64 & 1) != 0)
            wf_journal_add(journal, step, sums != NULL ? atomic_load(&sums[step]) : 0);
    wf_free((void *)sums);
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
    uint64_t number;
    int fd;

    if (other == NULL) return wf_fail_memory(strlen(path) + 32);
    fd = open(other, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    status = fd >= 0 ? read_header(fd, other, &header) : WEFT_OK;
    if (status == WEFT_ERR_PARSE) /* killed before its first record */
        status = WEFT_OK;
    else if (fd >= 0 && status == WEFT_OK && header.run == run &&
             is_of(&header, plan, journal->sums != NULL))
        status = load(journal, fd, other, &number);
    if (fd >= 0) close(fd);
    wf_free(other);
    return status;
}

/* Write the steps that JOURNAL has, and then the header: without it, this is not a journal. */
static weft_status begin_file(struct wf_journal *journal, struct header *header)
{
    for (uint64_t i = 0; i < journal->words; i++) {
        journal->copy[i] = atomic_load(&journal->done[i]);
        journal->recorded += (uint64_t)__builtin_popcountll(journal->copy[i]);
    }
    WF_TRY(write_record(journal));
    header->check = header_check(header);
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
        WF_TRY(load(journal, journal->fd, journal->path, &journal->number));
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
    uint64_t number;
    int fd;

    if (first == NULL) return wf_fail_memory(strlen(path) + 32);
    fd = open(first, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    status = fd >= 0 ? read_header(fd, first, &header) : fail_journal(first);
    if (status == WEFT_OK && !is_of(&header, plan, journal->sums != NULL))
        status = wf_fail(WEFT_ERR_INVALID, "%s belongs to another run", first);
    if (status == WEFT_OK && resume) status = load(journal, fd, first, &number);
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

weft_status wf_journal_record(struct wf_journal *journal, struct wf_outputs *output)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < journal->words; i++) {
        journal->copy[i] = atomic_load_explicit(&journal->done[i], memory_order_acquire);
        count += (uint64_t)__builtin_popcountll(journal->copy[i]);
    }
    if (count == journal->recorded) return WEFT_OK;
    WF_TRY(wf_outputs_flush(output, NULL, NULL));
    WF_TRY(write_record(journal));
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
