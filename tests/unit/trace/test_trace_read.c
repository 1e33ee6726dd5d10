/* Recorders of other processes: while they are written, and files that are not what they seem. */
#include "support/recorders.h"
#include "support/suite.h"

#include <pthread.h>

TEST(recorder_has_what_its_rank_wrote)
{
    struct folder folder = recorders_begin();
    struct wf_trace *trace = recorders_make(1, 64);
    struct wf_submitted first;
    const weft_record *record;
    uint64_t before = wf_now_ns();
    weft_recorder *recorder;
    weft_recorder_info info;
    char text[64];
    size_t needed = 0;

    first = recorders_submit(trace, 1);
    (void)recorders_submit(trace, 2);
    wf_trace_finish(trace, first);
    recorder = recorders_open(trace->path);
    info = recorders_info(recorder);
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

    record = weft_recorder_record(recorder, 1);
    ck_assert_ptr_nonnull(record);
    ck_assert_int_eq(record->state, WEFT_RECORD_FINISHED);
    ck_assert_uint_eq(record->received, 5);
    ck_assert_uint_ge(record->finished, record->submitted);
    ck_assert_uint_ge(record->submitted + 1000000, before); /* the clocks agree */
    ck_assert_uint_le(record->finished, info.read_ns + 1000000);
    ck_assert_int_eq(weft_recorder_record(recorder, 2)->state, WEFT_RECORD_SUBMITTED);
    ck_assert_int_eq(weft_recorder_print(recorder, weft_recorder_record(recorder, 2), text,
                                         sizeof text, &needed),
                     WEFT_OK);
    ck_assert_uint_eq(needed, strlen(text));
    ck_assert_str_eq(text, "all-reduce 10 B");
    ck_assert_ptr_null(weft_recorder_record(recorder, 0));
    ck_assert_ptr_null(weft_recorder_record(recorder, 3));

    wf_trace_destroy(trace);
    ck_assert_int_eq(weft_recorder_refresh(recorder), WEFT_OK);
    ck_assert_uint_eq(recorders_info(recorder).alive, 0);
    ck_assert_uint_eq(recorders_info(recorder).removed, 1);
    weft_recorder_close(&recorder);
    ck_assert_ptr_null(recorder);
    recorders_end(&folder);
}

TEST(recorder_has_its_communicators)
{
    struct folder folder = recorders_begin();
    struct wf_trace *trace = recorders_make(1, 64);
    weft_recorder_comm_info comm = {.struct_size = sizeof comm};
    weft_recorder *recorder;

    wf_trace_add_comm(trace, 7, wf_trace_intern(trace, "tp\033[1m"), (const int32_t[]){3, 4, 6}, 3,
                      1);
    wf_trace_fail_comm(trace, 7, WEFT_ERR_PEER, "");
    recorder = recorders_open(trace->path);
    ck_assert_uint_eq(weft_recorder_comm_count(recorder), 1);
    ck_assert_int_eq(weft_recorder_comm_get(recorder, 0, &comm), WEFT_OK);
    ck_assert_str_eq(comm.carrier, "");
    wf_trace_set_carrier(trace, 7, wf_trace_intern(trace, "pigeons"));
    ck_assert_int_eq(weft_recorder_refresh(recorder), WEFT_OK);
    ck_assert_int_eq(weft_recorder_comm_get(recorder, 0, &comm), WEFT_OK);
    ck_assert_str_eq(comm.carrier, "pigeons");
    ck_assert_uint_eq(comm.number, 7);
    ck_assert_str_eq(comm.name, "tp?[1m"); /* a terminal does not see the escape */
    ck_assert_str_eq(comm.ranks, "3-4,6");
    ck_assert_int_eq(comm.size, 3);
    ck_assert_int_eq(comm.failed, WEFT_ERR_PEER);
    ck_assert_int_eq(weft_recorder_comm_get(recorder, 1, &comm), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_recorder_text(recorder, UINT32_MAX), "");
    weft_recorder_close(&recorder);
    wf_trace_destroy(trace);
    recorders_end(&folder);
}

TEST(old_records_are_gone)
{
    struct folder folder = recorders_begin();
    struct wf_trace *trace = recorders_make(0, 64);
    weft_recorder *recorder;

    for (uint64_t i = 1; i <= 100; i++)
        (void)recorders_submit(trace, i);
    recorder = recorders_open(trace->path);
    ck_assert_uint_eq(recorders_info(recorder).oldest, 37);
    ck_assert_ptr_null(weft_recorder_record(recorder, 36));
    ck_assert_uint_eq(weft_recorder_record(recorder, 37)->sequence, 37);
    ck_assert_uint_eq(weft_recorder_record(recorder, 100)->sequence, 100);
    weft_recorder_close(&recorder);
    wf_trace_destroy(trace);
    recorders_end(&folder);
}

/* ---- while the owner writes ---- */

struct writer {
    struct wf_trace *trace;
    _Atomic bool ends;
};

static void *write_records(void *argument)
{
    struct writer *writer = argument;

    for (uint64_t i = 1; !atomic_load(&writer->ends); i++)
        wf_trace_finish(writer->trace, recorders_submit(writer->trace, i));
    return NULL;
}

/* One thread writes, so that a record's number is its sequence. */
static bool is_whole(const weft_record *record, uint64_t id)
{
    return record->id == id && record->sequence == id && record->sent == 3 * id &&
           record->received == 5 * id && record->plan == 7 * id &&
           record->binding == (uint32_t)id &&
           (record->state != WEFT_RECORD_FINISHED || record->finished >= record->submitted);
}

TEST(no_record_is_torn_while_its_owner_writes)
{
    struct folder folder = recorders_begin();
    struct writer writer = {.trace = recorders_make(0, 256)};
    weft_recorder *recorder = recorders_open(writer.trace->path);
    uint64_t seen = 0, missed = 0;
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, write_records, &writer), 0);
    for (int i = 0; i < 3000; i++) {
        weft_recorder_info info;

        ck_assert_int_eq(weft_recorder_refresh(recorder), WEFT_OK);
        info = recorders_info(recorder);
        for (uint64_t id = info.oldest; id <= info.newest && id > 0; id++) {
            const weft_record *record = weft_recorder_record(recorder, id);

            if (record == NULL) {
                missed++;
                continue;
            }
            seen++;
            if (!is_whole(record, id)) ck_abort_msg("record %llu", (unsigned long long)id);
        }
    }
    atomic_store(&writer.ends, true);
    pthread_join(thread, NULL);
    ck_assert_uint_gt(seen, 0);
    printf("%llu records, %llu overwritten meanwhile\n", (unsigned long long)seen,
           (unsigned long long)missed);
    weft_recorder_close(&recorder);
    wf_trace_destroy(writer.trace);
    recorders_end(&folder);
}

/* ---- files that are not what they seem ---- */

enum { COPY_BYTES = 1 << 20 };

static _Alignas(struct wf_segment) unsigned char copy[COPY_BYTES];

/* The bytes of a small recorder in COPY.  Returns their number. */
static size_t make_copy(void)
{
    struct wf_trace *trace = recorders_make(0, 64);
    FILE *file;
    size_t bytes;

    wf_trace_add_comm(trace, 7, wf_trace_intern(trace, "tp"), (const int32_t[]){0, 1}, 2, 0);
    wf_trace_finish(trace, recorders_submit(trace, 1));
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
    weft_recorder *recorder = NULL;

    ck_assert_int_eq(weft_recorder_open(path, &recorder), status);
    ck_assert_ptr_null(recorder);
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

TEST(damaged_files_are_refused)
{
    struct folder folder = recorders_begin();
    size_t bytes = make_copy();
    weft_recorder *recorder = NULL;

    recorder = recorders_open(folder_write(&folder, "copy", copy, bytes));
    ck_assert_uint_eq(recorders_info(recorder).alive, 0); /* nobody owns a copy */
    ck_assert_uint_eq(weft_recorder_record(recorder, 1)->sent, 3);
    weft_recorder_close(&recorder);

    ck_assert_int_eq(weft_recorder_open(folder_path(&folder, "missing"), &recorder),
                     WEFT_ERR_NOT_FOUND);
    refused(&folder, 0, WEFT_ERR_PARSE, "it is empty");
    refused(&folder, 3, WEFT_ERR_PARSE, "is cut short: it has 3 bytes");
    refused(&folder, 100, WEFT_ERR_PARSE, "is cut short: it has 100 bytes");
    refused(&folder, bytes - 1, WEFT_ERR_PARSE, "is cut short");
    refused_with(&folder, 0, 0x464c457f, WEFT_ERR_PARSE, "it begins with other bytes");
    refused_with(&folder, 0, 0, WEFT_ERR_PARSE, "it begins with other bytes");
    refused_with(&folder, offsetof(struct wf_segment, version), 1, WEFT_ERR_VERSION,
                 "is a recorder of version 1, but this weft reads version 2");
    refused_with(&folder, offsetof(struct wf_segment, head_bytes), 64, WEFT_ERR_PARSE,
                 "is damaged");
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
    ck_assert_int_eq(weft_recorder_open(folder_path(&folder, "folder"), &recorder), WEFT_ERR_PARSE);
    ck_assert_int_eq(mkfifo(folder_path(&folder, "pipe"), 0600), 0);
    ck_assert_int_eq(weft_recorder_open(folder_path(&folder, "pipe"), &recorder), WEFT_ERR_PARSE);
    recorders_end(&folder);
}

TEST(texts_without_an_end_end)
{
    struct folder folder = recorders_begin();
    size_t bytes = make_copy();
    struct wf_segment *head = (struct wf_segment *)(void *)copy;
    weft_recorder_comm_info comm = {.struct_size = sizeof comm};
    weft_recorder *recorder;

    memset(copy + sizeof *head, 'x', head->text_bytes);
    memset(copy + offsetof(struct wf_segment, host), 'y', sizeof head->host);
    memset(copy + offsetof(struct wf_segment, text_used), 0xff, 4);
    recorder = recorders_open(folder_write(&folder, "texts", copy, bytes));
    ck_assert_uint_eq(strlen(weft_recorder_text(recorder, 0)), WF_TEXT_BYTES);
    ck_assert_uint_eq(strlen(weft_recorder_text(recorder, WF_TEXT_BYTES - 1)), 1);
    ck_assert_str_eq(weft_recorder_text(recorder, WF_TEXT_BYTES), "");
    ck_assert_uint_eq(strlen(recorders_info(recorder).host), 63);
    ck_assert_int_eq(weft_recorder_comm_get(recorder, 0, &comm), WEFT_OK);
    ck_assert_ptr_nonnull(comm.name);
    weft_recorder_close(&recorder);
    recorders_end(&folder);
}

TEST(file_that_changes_is_noticed)
{
    struct folder folder = recorders_begin();
    size_t bytes = make_copy();
    const char *path = folder_write(&folder, "changing", copy, bytes);
    weft_recorder *recorder = recorders_open(path);
    uint32_t rank = 5;
    FILE *file;

    ck_assert_int_eq(truncate(path, 5000), 0);
    ck_assert_int_eq(weft_recorder_refresh(recorder), WEFT_ERR_PARSE);
    ck_assert_uint_eq(weft_recorder_record(recorder, 1)->sent, 3); /* the earlier copy stays */
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_assert_int_eq(weft_recorder_refresh(recorder), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "emptied"));
    (void)folder_write(&folder, "changing", copy, bytes);
    ck_assert_int_eq(weft_recorder_refresh(recorder), WEFT_OK);
    file = fopen(path, "r+b");
    ck_assert_int_eq(fseek(file, (long)offsetof(struct wf_segment, rank), SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(&rank, sizeof rank, 1, file), 1);
    fclose(file);
    ck_assert_int_eq(weft_recorder_refresh(recorder), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "another process has written to it"));
    weft_recorder_close(&recorder);
    recorders_end(&folder);
}
