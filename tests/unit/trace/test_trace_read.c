/* Rings of other processes: while they are written, and files that are not what they seem. */
#include "trace/read.h"

#include "support/allocfail.h"
#include "support/folder.h"
#include "support/suite.h"
#include "weft/status.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

/* Rings of this test are in a folder of its own. */
static struct folder begin(void)
{
    struct folder folder = folder_create();

    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", folder.path, 1), 0);
    return folder;
}

static void end(const struct folder *folder)
{
    unsetenv("XDG_RUNTIME_DIR");
    folder_remove(folder);
}

static struct wf_trace *make_trace(int32_t rank, uint64_t records)
{
    struct wf_trace_identity identity = {
        .job = 0x1234, .rank = rank, .size = 2, .backend = "fake"};
    struct wf_trace *trace = NULL;

    ck_assert_int_eq(wf_trace_create(&identity, records, &trace), WEFT_OK);
    ck_assert_str_ne(trace->path, "");
    return trace;
}

static struct wf_submitted submit(struct wf_trace *trace, uint64_t sequence)
{
    return wf_trace_submit(trace, NULL, WF_CALL_SUBMITTED,
                           &(weft_record){.comm = 7,
                                          .sequence = sequence,
                                          .sent = 3 * sequence,
                                          .received = 5 * sequence,
                                          .plan = 7 * sequence,
                                          .peer = -1,
                                          .operation = WEFT_OP_ALL_REDUCE,
                                          .binding = (uint32_t)sequence});
}

static weft_ring *open_ring(const char *path)
{
    weft_ring *ring = NULL;

    ck_assert_msg(weft_ring_open(path, &ring) == WEFT_OK, "%s", weft_last_error());
    return ring;
}

static weft_ring_info info_of(const weft_ring *ring)
{
    weft_ring_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_ring_get(ring, &info), WEFT_OK);
    return info;
}

START_TEST(ring_has_what_its_rank_wrote)
{
    struct folder folder = begin();
    struct wf_trace *trace = make_trace(1, 64);
    struct wf_submitted first;
    const weft_record *record;
    weft_ring_comm_info comm = {.struct_size = sizeof comm};
    uint64_t before = wf_now_ns();
    weft_ring *ring;
    weft_ring_info info;
    char text[64];

    wf_trace_add_comm(trace, 7, wf_trace_intern(trace, "tp\033[1m"), (const int32_t[]){3, 4, 6}, 3,
                      1);
    first = submit(trace, 1);
    (void)submit(trace, 2);
    wf_trace_finish(trace, first);
    wf_trace_fail_comm(trace, 7, WEFT_ERR_PEER, "");
    ring = open_ring(trace->path);
    info = info_of(ring);
    ck_assert_str_eq(info.path, trace->path);
    ck_assert_uint_eq(info.job, 0x1234);
    ck_assert_int_eq(info.rank, 1);
    ck_assert_int_eq(info.size, 2);
    ck_assert_int_eq(info.pid, getpid());
    ck_assert_str_eq(info.backend, "fake");
    ck_assert_uint_eq(info.alive, 1);
    ck_assert_uint_eq(info.stopped + info.removed, 0);
    ck_assert_uint_eq(info.oldest, 1);
    ck_assert_uint_eq(info.newest, 2);
    ck_assert_uint_le(info.begun_ns, info.read_ns);

    record = weft_ring_record(ring, 1);
    ck_assert_ptr_nonnull(record);
    ck_assert_int_eq(record->state, WEFT_RECORD_FINISHED);
    ck_assert_uint_eq(record->received, 5);
    ck_assert_uint_ge(record->finished, record->submitted);
    ck_assert_uint_ge(record->submitted + 1000000, before); /* the clocks agree */
    ck_assert_uint_le(record->finished, info.read_ns + 1000000);
    ck_assert_int_eq(weft_ring_record(ring, 2)->state, WEFT_RECORD_SUBMITTED);
    ck_assert_uint_gt(weft_ring_print(ring, weft_ring_record(ring, 2), text, sizeof text), 0);
    ck_assert_str_eq(text, "all-reduce 10 B");
    ck_assert_ptr_null(weft_ring_record(ring, 0));
    ck_assert_ptr_null(weft_ring_record(ring, 3));

    ck_assert_uint_eq(weft_ring_comm_count(ring), 1);
    ck_assert_int_eq(weft_ring_comm_get(ring, 0, &comm), WEFT_OK);
    ck_assert_uint_eq(comm.number, 7);
    ck_assert_str_eq(comm.name, "tp?[1m"); /* a terminal does not see the escape */
    ck_assert_str_eq(comm.ranks, "3-4,6");
    ck_assert_int_eq(comm.size, 3);
    ck_assert_int_eq(comm.failed, WEFT_ERR_PEER);
    ck_assert_int_eq(weft_ring_comm_get(ring, 1, &comm), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_ring_text(ring, UINT32_MAX), "");

    wf_trace_destroy(trace);
    ck_assert_int_eq(weft_ring_refresh(ring), WEFT_OK);
    ck_assert_uint_eq(info_of(ring).alive, 0);
    ck_assert_uint_eq(info_of(ring).removed, 1);
    weft_ring_close(&ring);
    ck_assert_ptr_null(ring);
    end(&folder);
}
END_TEST

START_TEST(old_records_are_gone)
{
    struct folder folder = begin();
    struct wf_trace *trace = make_trace(0, 64);
    weft_ring *ring;

    for (uint64_t i = 1; i <= 100; i++)
        (void)submit(trace, i);
    ring = open_ring(trace->path);
    ck_assert_uint_eq(info_of(ring).oldest, 37);
    ck_assert_ptr_null(weft_ring_record(ring, 36));
    ck_assert_uint_eq(weft_ring_record(ring, 37)->sequence, 37);
    ck_assert_uint_eq(weft_ring_record(ring, 100)->sequence, 100);
    weft_ring_close(&ring);
    wf_trace_destroy(trace);
    end(&folder);
}
END_TEST

/* ---- while the owner writes ---- */

struct writer {
    struct wf_trace *trace;
    _Atomic bool ends;
};

static void *write_records(void *argument)
{
    struct writer *writer = argument;

    for (uint64_t i = 1; !atomic_load(&writer->ends); i++)
        wf_trace_finish(writer->trace, submit(writer->trace, i));
    return NULL;
}

START_TEST(no_record_is_torn_while_its_owner_writes)
{
    struct folder folder = begin();
    struct writer writer = {.trace = make_trace(0, 256)};
    weft_ring *ring = open_ring(writer.trace->path);
    uint64_t seen = 0, missed = 0;
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, write_records, &writer), 0);
    for (int i = 0; i < 1000; i++) {
        weft_ring_info info;

        ck_assert_int_eq(weft_ring_refresh(ring), WEFT_OK);
        info = info_of(ring);
        for (uint64_t id = info.oldest; id <= info.newest && id > 0; id++) {
            const weft_record *record = weft_ring_record(ring, id);

            if (record == NULL) {
                missed++;
                continue;
            }
            seen++;
            ck_assert_uint_eq(record->id, id);
            ck_assert_uint_eq(record->sequence, id); /* one thread writes */
            ck_assert_uint_eq(record->sent, 3 * id);
            ck_assert_uint_eq(record->received, 5 * id);
            ck_assert_uint_eq(record->plan, 7 * id);
            ck_assert_uint_eq(record->binding, (uint32_t)id);
            ck_assert(record->state != WEFT_RECORD_FINISHED ||
                      record->finished >= record->submitted);
        }
    }
    atomic_store(&writer.ends, true);
    pthread_join(thread, NULL);
    ck_assert_uint_gt(seen, 0);
    printf("%llu records, %llu overwritten meanwhile\n", (unsigned long long)seen,
           (unsigned long long)missed);
    weft_ring_close(&ring);
    wf_trace_destroy(writer.trace);
    end(&folder);
}
END_TEST

/* ---- owners ---- */

/* A process that ends with this one, or when HOLD[1] is closed. */
static int hold[2];

static void wait_for_end(void)
{
    char byte;

    close(hold[1]);
    (void)!read(hold[0], &byte, 1);
    _exit(0);
}

/* A child that owns a ring and, if it FORKS, has a child that does not; PATH, of 256 bytes, gets
 * that of the ring. */
static pid_t start_owner(char *path, bool forks)
{
    int fds[2];
    pid_t child;

    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(pipe(hold), 0);
    child = fork();
    if (child == 0) {
        struct wf_trace *trace = make_trace(0, 64);

        if (forks && fork() != 0) wait_for_end();
        (void)!write(fds[1], trace->path, sizeof trace->path);
        wait_for_end();
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(read(fds[0], path, 256), 256);
    close(fds[0]);
    close(fds[1]);
    close(hold[0]);
    return child;
}

static void end_child(pid_t child)
{
    int code;

    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &code, 0), child);
}

START_TEST(stopped_and_killed_owners_are_told_apart)
{
    struct folder folder = begin();
    char path[256];
    pid_t child = start_owner(path, false);
    weft_ring *ring = open_ring(path);
    int code;

    ck_assert_uint_eq(info_of(ring).alive, 1);
    ck_assert_uint_eq(info_of(ring).stopped, 0);
    ck_assert_int_eq(kill(child, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(child, &code, WUNTRACED), child);
    ck_assert_int_eq(weft_ring_refresh(ring), WEFT_OK);
    ck_assert_uint_eq(info_of(ring).stopped, 1);
    end_child(child);
    ck_assert_int_eq(weft_ring_refresh(ring), WEFT_OK);
    ck_assert_uint_eq(info_of(ring).alive + info_of(ring).stopped, 0);
    ck_assert_uint_eq(info_of(ring).removed, 0);
    weft_ring_close(&ring);
    close(hold[1]);
    end(&folder);
}
END_TEST

START_TEST(fork_of_an_owner_does_not_own)
{
    struct folder folder = begin();
    char path[256];
    pid_t child = start_owner(path, true);
    weft_ring *ring = open_ring(path);

    ck_assert_uint_eq(info_of(ring).alive, 1);
    end_child(child); /* its own child is still there */
    ck_assert_int_eq(weft_ring_refresh(ring), WEFT_OK);
    ck_assert_uint_eq(info_of(ring).alive, 0);
    weft_ring_close(&ring);
    close(hold[1]);
    end(&folder);
}
END_TEST

START_TEST(readers_do_not_keep_an_owner_from_its_lock)
{
    struct folder folder = begin();
    struct wf_trace *traces[64];
    pid_t child = fork();

    if (child == 0)
        for (;;) {
            weft_rings *rings = NULL;

            if (weft_rings_create(&rings) != WEFT_OK) _exit(1);
            weft_rings_release(&rings);
        }
    for (int round = 0; round < 2; round++) {
        for (int32_t i = 0; i < 64; i++)
            traces[i] = make_trace(i, 64); /* which checks that it is shared */
        for (int32_t i = 0; i < 64; i++)
            wf_trace_destroy(traces[i]);
    }
    end_child(child);
    end(&folder);
}
END_TEST

/* ---- the list ---- */

START_TEST(list_has_all_rings_in_order)
{
    struct folder folder = begin();
    struct wf_trace *second = make_trace(1, 64), *first = make_trace(0, 64);
    weft_rings *rings = NULL;
    size_t found = 0;

    folder_write(&folder, "weft/ring.text", "hello", 5);
    folder_write(&folder, "weft/ring.empty", "", 0);
    folder_write(&folder, "weft/other", "hello", 5);
    ck_assert_int_eq(weft_rings_create(&rings), WEFT_OK);
    for (size_t i = 0; i < weft_rings_count(rings); i++) { /* another user of the host's may be */
        weft_ring_info info = info_of(weft_rings_at(rings, i));

        if (strncmp(info.path, folder.path, strlen(folder.path)) != 0) continue;
        ck_assert_int_eq(info.rank, (int32_t)found);
        found++;
    }
    ck_assert_uint_eq(found, 2);
    ck_assert_ptr_null(weft_rings_at(rings, weft_rings_count(rings)));
    ck_assert_ptr_nonnull(strstr(weft_rings_folder(rings, 0), folder.path));
    ck_assert_ptr_null(weft_rings_folder(rings, 2));
    ck_assert_ptr_nonnull(strstr(weft_rings_problem(rings, 0), "weft/ring.text is cut short"));
    weft_rings_release(&rings);
    ck_assert_ptr_null(rings);
    wf_trace_destroy(first);
    wf_trace_destroy(second);
    end(&folder);
}
END_TEST

START_TEST(another_user_cannot_read)
{
    struct folder folder = begin();
    struct wf_trace *trace = make_trace(0, 64);
    int code;
    pid_t child;

    if (geteuid() != 0) {
        printf("only root can become another user\n");
        wf_trace_destroy(trace);
        end(&folder);
        return;
    }
    ck_assert_int_eq(chmod(folder.path, 0755), 0);
    child = fork();
    if (child == 0) {
        weft_rings *rings = NULL;
        weft_ring *ring = NULL;

        if (setuid(65534) != 0) _exit(2);
        if (weft_ring_open(trace->path, &ring) != WEFT_ERR_SYSTEM) _exit(3);
        if (strstr(weft_last_error(), "Permission denied") == NULL) _exit(4);
        if (weft_rings_create(&rings) != WEFT_OK) _exit(5);
        for (size_t i = 0; i < weft_rings_count(rings); i++)
            if (strncmp(info_of(weft_rings_at(rings, i)).path, folder.path, strlen(folder.path)) == 0)
                _exit(6);
        if (weft_rings_problem(rings, 0) == NULL ||
            strstr(weft_rings_problem(rings, 0), folder.path) == NULL)
            _exit(7);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &code, 0), child);
    ck_assert_int_eq(code, 0);
    wf_trace_destroy(trace);
    end(&folder);
}
END_TEST

/* ---- files that are not what they seem ---- */

enum { COPY_BYTES = 1 << 20 };

static unsigned char copy[COPY_BYTES];

/* The bytes of a small ring in COPY.  Returns their number. */
static size_t make_copy(void)
{
    struct wf_trace *trace = make_trace(0, 64);
    FILE *file;
    size_t bytes;

    wf_trace_add_comm(trace, 7, wf_trace_intern(trace, "tp"), (const int32_t[]){0, 1}, 2, 0);
    wf_trace_finish(trace, submit(trace, 1));
    file = fopen(trace->path, "rb");
    ck_assert_ptr_nonnull(file);
    bytes = fread(copy, 1, sizeof copy, file);
    fclose(file);
    wf_trace_destroy(trace);
    return bytes;
}

static void refused(const struct folder *folder, size_t bytes, weft_status status, const char *text)
{
    const char *path = folder_write(folder, "damaged", copy, bytes);
    weft_ring *ring = NULL;

    ck_assert_int_eq(weft_ring_open(path, &ring), status);
    ck_assert_ptr_null(ring);
    ck_assert_msg(strstr(weft_last_error(), path) != NULL, "%s", weft_last_error());
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "%s", weft_last_error());
}

static void refused_with(const struct folder *folder, size_t offset, uint32_t value,
                         weft_status status, const char *text)
{
    size_t bytes = make_copy();

    memcpy(copy + offset, &value, sizeof value);
    refused(folder, bytes, status, text);
}

START_TEST(damaged_files_are_refused)
{
    struct folder folder = begin();
    size_t bytes = make_copy();
    weft_ring *ring = NULL;

    ring = open_ring(folder_write(&folder, "copy", copy, bytes));
    ck_assert_uint_eq(info_of(ring).alive, 0); /* nobody owns a copy */
    ck_assert_uint_eq(weft_ring_record(ring, 1)->sent, 3);
    weft_ring_close(&ring);

    ck_assert_int_eq(weft_ring_open(folder_path(&folder, "missing"), &ring), WEFT_ERR_NOT_FOUND);
    refused(&folder, 0, WEFT_ERR_PARSE, "it is empty");
    refused(&folder, 3, WEFT_ERR_PARSE, "is cut short: it has 3 bytes");
    refused(&folder, 100, WEFT_ERR_PARSE, "is cut short: it has 100 bytes");
    refused(&folder, bytes - 1, WEFT_ERR_PARSE, "is cut short");
    refused_with(&folder, 0, 0x464c457f, WEFT_ERR_PARSE, "it begins with other bytes");
    refused_with(&folder, 0, 0, WEFT_ERR_PARSE, "it begins with other bytes");
    refused_with(&folder, offsetof(struct wf_segment, version), 2, WEFT_ERR_VERSION,
                 "is a ring of version 2, but this weft reads version 1");
    refused_with(&folder, offsetof(struct wf_segment, head_bytes), 64, WEFT_ERR_PARSE, "is damaged");
    refused_with(&folder, offsetof(struct wf_segment, text_bytes), UINT32_MAX, WEFT_ERR_PARSE,
                 "is damaged");
    refused_with(&folder, offsetof(struct wf_segment, text_bytes), 100, WEFT_ERR_PARSE,
                 "is damaged");
    refused_with(&folder, offsetof(struct wf_segment, record_bytes), 64, WEFT_ERR_PARSE,
                 "is damaged");
    refused_with(&folder, offsetof(struct wf_segment, record_count), 63, WEFT_ERR_PARSE,
                 "is damaged");
    refused_with(&folder, offsetof(struct wf_segment, record_count), 0, WEFT_ERR_PARSE,
                 "is damaged");
    refused_with(&folder, offsetof(struct wf_segment, record_count), 1u << 31, WEFT_ERR_PARSE,
                 "is damaged");
    refused_with(&folder, offsetof(struct wf_segment, record_count), 65536, WEFT_ERR_PARSE,
                 "is cut short");
    ck_assert_int_eq(mkdir(folder_path(&folder, "folder"), 0700), 0);
    ck_assert_int_eq(weft_ring_open(folder_path(&folder, "folder"), &ring), WEFT_ERR_PARSE);
    ck_assert_int_eq(mkfifo(folder_path(&folder, "pipe"), 0600), 0);
    ck_assert_int_eq(weft_ring_open(folder_path(&folder, "pipe"), &ring), WEFT_ERR_PARSE);
    end(&folder);
}
END_TEST

START_TEST(texts_without_an_end_end)
{
    struct folder folder = begin();
    size_t bytes = make_copy();
    struct wf_segment *head = (struct wf_segment *)(void *)copy;
    weft_ring_comm_info comm = {.struct_size = sizeof comm};
    weft_ring *ring;

    memset(copy + sizeof *head, 'x', head->text_bytes);
    memset(copy + offsetof(struct wf_segment, host), 'y', sizeof head->host);
    memset(copy + offsetof(struct wf_segment, text_used), 0xff, 4);
    ring = open_ring(folder_write(&folder, "texts", copy, bytes));
    ck_assert_uint_eq(strlen(weft_ring_text(ring, 0)), WF_TEXT_BYTES);
    ck_assert_uint_eq(strlen(weft_ring_text(ring, WF_TEXT_BYTES - 1)), 1);
    ck_assert_str_eq(weft_ring_text(ring, WF_TEXT_BYTES), "");
    ck_assert_uint_eq(strlen(info_of(ring).host), 63);
    ck_assert_int_eq(weft_ring_comm_get(ring, 0, &comm), WEFT_OK);
    ck_assert_ptr_nonnull(comm.name);
    weft_ring_close(&ring);
    end(&folder);
}
END_TEST

START_TEST(file_that_changes_is_noticed)
{
    struct folder folder = begin();
    size_t bytes = make_copy();
    const char *path = folder_write(&folder, "changing", copy, bytes);
    weft_ring *ring = open_ring(path);
    uint32_t rank = 5;
    FILE *file;

    ck_assert_int_eq(truncate(path, 5000), 0);
    ck_assert_int_eq(weft_ring_refresh(ring), WEFT_ERR_PARSE);
    ck_assert_uint_eq(weft_ring_record(ring, 1)->sent, 3); /* the earlier copy stays */
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_assert_int_eq(weft_ring_refresh(ring), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "emptied"));
    (void)folder_write(&folder, "changing", copy, bytes);
    ck_assert_int_eq(weft_ring_refresh(ring), WEFT_OK);
    file = fopen(path, "r+b");
    ck_assert_int_eq(fseek(file, (long)offsetof(struct wf_segment, rank), SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(&rank, sizeof rank, 1, file), 1);
    fclose(file);
    ck_assert_int_eq(weft_ring_refresh(ring), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "another process has written to it"));
    weft_ring_close(&ring);
    end(&folder);
}
END_TEST

static weft_status create(void *rings)
{
    return weft_rings_create(rings);
}

static void release(void *rings)
{
    weft_rings_release(rings);
}

START_TEST(missing_memory_is_reported)
{
    struct folder folder = begin();
    struct wf_trace *trace = make_trace(0, 64);
    weft_rings *rings = NULL;

    folder_write(&folder, "weft/ring.text", "hello", 5);
    check_allocation_failures(create, release, &rings);
    wf_trace_destroy(trace);
    end(&folder);
}
END_TEST

SUITE(trace_read, ring_has_what_its_rank_wrote, old_records_are_gone,
      no_record_is_torn_while_its_owner_writes, stopped_and_killed_owners_are_told_apart,
      fork_of_an_owner_does_not_own, readers_do_not_keep_an_owner_from_its_lock,
      list_has_all_rings_in_order, another_user_cannot_read, damaged_files_are_refused,
      texts_without_an_end_end, file_that_changes_is_noticed, missing_memory_is_reported)
