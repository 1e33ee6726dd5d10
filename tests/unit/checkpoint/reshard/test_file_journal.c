/* Journals remember the steps that were recorded, and nothing else. */
#include "checkpoint/reshard/journal.h"
#include "support/allocfail.h"
#include "support/checkpoints.h"
#include "support/suite.h"

#include <fcntl.h>
#include <unistd.h>

static const struct wf_journal_plan plan = {.digest = 77, .buffer = 1 << 20, .steps = 200};

/* An output with one file. */
static struct wf_outputs begin_output(const char *path)
{
    struct wf_outputs output;

    OK(wf_outputs_begin(&output, path, true, false, WF_OUTPUT_NEW, 1));
    OK(wf_outputs_open(&output, 0, "rank-00000-of-00001.safetensors", 100));
    OK(wf_outputs_allocate(&output));
    return output;
}

TEST(steps_are_remembered_when_they_are_recorded)
{
    const char *path = folder_path(&folder, "remembered");
    struct wf_outputs output = begin_output(path);
    struct wf_journal journal;
    struct wf_journal_plan found;

    OK(wf_journal_begin(&journal, path, 0, 1, &plan, true, false));
    wf_journal_add(&journal, 0, 11);
    wf_journal_add(&journal, 64, 12);
    wf_journal_add(&journal, 199, 13);
    OK(wf_journal_record(&journal, &output));
    wf_journal_add(&journal, 5, 14); /* is not recorded */
    ck_assert(wf_journal_has(&journal, 5));
    wf_journal_end(&journal, true);

    OK(wf_journal_peek(path, &found));
    ck_assert(found.digest == 77 && found.buffer == 1 << 20 && found.steps == 200);
    OK(wf_journal_begin(&journal, path, 0, 1, &plan, true, true));
    for (uint64_t i = 0; i < 200; i++)
        ck_assert_int_eq(wf_journal_has(&journal, i), i == 0 || i == 64 || i == 199);
    ck_assert_uint_eq(journal.recorded, 3);
    ck_assert_uint_eq(atomic_load(&journal.sums[64]), 12);
    wf_journal_end(&journal, false);
    ck_assert_int_eq(wf_journal_peek(path, &found), WEFT_ERR_NOT_FOUND);
    wf_outputs_end(&output);
}

/* The system reports lost bytes once; a later flush succeeds, although they are lost. */
TEST(steps_whose_flush_failed_are_never_recorded)
{
    const char *path = folder_path(&folder, "lost");
    struct wf_outputs output = begin_output(path);
    int fd = output.files[0].fd, other = open("/dev/null", O_WRONLY);
    struct wf_journal journal;

    OK(wf_journal_begin(&journal, path, 0, 1, &plan, false, false));
    OK(wf_outputs_write(&output, 0, 0, "first", 5));
    wf_journal_add(&journal, 1, 0);
    OK(wf_journal_record(&journal, &output));
    OK(wf_outputs_write(&output, 0, 5, "second", 6));
    wf_journal_add(&journal, 2, 0);
    output.files[0].fd = other; /* cannot be flushed */
    REFUSED(wf_journal_record(&journal, &output), WEFT_ERR_SYSTEM, "rank-00000-of-00001");
    output.files[0].fd = fd;
    REFUSED(wf_journal_record(&journal, &output), WEFT_ERR_SYSTEM, "what was written may be lost");
    REFUSED(wf_outputs_flush(&output, NULL, NULL), WEFT_ERR_SYSTEM, "what was written may be lost");
    REFUSED(wf_outputs_commit(&output), WEFT_ERR_SYSTEM, "what was written may be lost");
    wf_journal_end(&journal, true);

    OK(wf_journal_begin(&journal, path, 0, 1, &plan, false, true));
    ck_assert(wf_journal_has(&journal, 1));
    ck_assert(!wf_journal_has(&journal, 2));
    wf_journal_end(&journal, false);
    close(other);
    wf_outputs_end(&output);
}

/* A file that this process has not written to since its last flush is not flushed again. */
TEST(only_files_that_were_written_are_flushed)
{
    static const char *const names[] = {"rank-00000-of-00002.safetensors",
                                        "rank-00001-of-00002.safetensors"};
    struct wf_outputs output;
    int fds[2], other = open("/dev/null", O_WRONLY);

    OK(wf_outputs_begin(&output, folder_path(&folder, "flushed"), true, false, WF_OUTPUT_NEW, 2));
    for (size_t i = 0; i < 2; i++)
        OK(wf_outputs_open(&output, i, names[i], 100));
    OK(wf_outputs_allocate(&output));
    for (size_t i = 0; i < 2; i++) {
        fds[i] = output.files[i].fd;
        output.files[i].fd = other; /* cannot be flushed */
    }
    OK(wf_outputs_flush(&output, NULL, NULL));
    output.files[1].fd = fds[1];
    OK(wf_outputs_write(&output, 1, 0, "x", 1));
    OK(wf_outputs_flush(&output, NULL, NULL));
    output.files[1].fd = other;
    OK(wf_outputs_flush(&output, NULL, NULL));
    for (size_t i = 0; i < 2; i++)
        output.files[i].fd = fds[i];
    close(other);
    wf_outputs_end(&output);
}

TEST(other_journals_are_refused)
{
    const char *path = folder_path(&folder, "other");
    struct wf_journal_plan wrong = plan, found;
    struct wf_journal journal;

    OK(wf_journal_begin(&journal, path, 0, 1, &plan, false, false));
    wf_journal_end(&journal, true);
    wrong.digest++;
    REFUSED(wf_journal_begin(&journal, path, 0, 1, &wrong, false, true), WEFT_ERR_INVALID,
            "belongs to another run");
    REFUSED(wf_journal_begin(&journal, path, 0, 1, &plan, true, true), WEFT_ERR_INVALID,
            "belongs to another run");
    ck_assert_int_eq(truncate(folder_path(&folder, "other.weft-journal"), 90), 0);
    REFUSED(wf_journal_begin(&journal, path, 0, 1, &plan, false, true), WEFT_ERR_INVALID,
            "is damaged");
    ck_assert_int_eq(truncate(folder_path(&folder, "other.weft-journal"), 20), 0);
    REFUSED(wf_journal_peek(path, &found), WEFT_ERR_PARSE, "is cut short");
    folder_write(&folder, "other.weft-journal",
                 "01234567890123456789012345678901234567890123456789012345678901234567890123456789",
                 80);
    REFUSED(wf_journal_peek(path, &found), WEFT_ERR_PARSE, "is not a journal of weft");
}

/* Whatever byte is damaged, a journal has no step that was not recorded: it is refused, or the
 * record before counts. */
TEST(damaged_journals_have_no_other_steps)
{
    static const struct wf_journal_plan small = {.digest = 77, .buffer = 1 << 20, .steps = 3};
    char path[300];
    struct wf_outputs output;
    int refused = 0, earlier = 0;
    struct wf_journal journal;
    unsigned char bytes[512];
    FILE *file;
    size_t count;

    snprintf(path, sizeof path, "%s", folder_path(&folder, "damaged"));
    output = begin_output(path);
    OK(wf_journal_begin(&journal, path, 0, 1, &small, true, false));
    wf_journal_add(&journal, 1, 11);
    OK(wf_journal_record(&journal, &output));
    wf_journal_add(&journal, 2, 12);
    OK(wf_journal_record(&journal, &output));
    wf_journal_end(&journal, true);
    file = fopen(folder_path(&folder, "damaged.weft-journal"), "rb");
    ck_assert_ptr_nonnull(file);
    count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t i = 0; i < count; i++) {
        weft_status status;
        bytes[i] ^= 0x11;
        folder_write(&folder, "damaged.weft-journal", (const char *)bytes, count);
        bytes[i] ^= 0x11;
        status = wf_journal_begin(&journal, path, 0, 1, &small, true, true);
        if (status != WEFT_OK) {
            ck_assert(status == WEFT_ERR_INVALID || status == WEFT_ERR_PARSE);
            refused++;
            continue;
        }
        ck_assert(!wf_journal_has(&journal, 0));
        ck_assert(wf_journal_has(&journal, 1) && atomic_load(&journal.sums[1]) == 11);
        if (wf_journal_has(&journal, 2))
            ck_assert_uint_eq(atomic_load(&journal.sums[2]), 12);
        else
            earlier++;
        wf_journal_end(&journal, true);
    }
    ck_assert_int_ge(refused, 72);
    ck_assert_int_ge(earlier, 32);
    wf_outputs_end(&output);
}

/* The files of an earlier run are removed with its journal, unless it is resumed. */
TEST(a_new_output_has_no_journal)
{
    const char *path = folder_path(&folder, "new");
    struct wf_outputs output = begin_output(path);
    struct wf_journal_plan found;
    struct wf_journal journal;

    OK(wf_journal_begin(&journal, path, 0, 1, &plan, false, false));
    wf_journal_end(&journal, true);
    output.keep = true;
    wf_outputs_end(&output);
    ck_assert(path_exists(folder_path(&folder, "new.weft-partial")));

    OK(wf_outputs_begin(&output, path, true, false, WF_OUTPUT_RESUME, 1));
    OK(wf_outputs_open(&output, 0, "rank-00000-of-00001.safetensors", 100));
    wf_outputs_end(&output);
    OK(wf_journal_peek(path, &found));
    OK(wf_outputs_begin(&output, path, true, false, WF_OUTPUT_RESUME, 1));
    REFUSED(wf_outputs_open(&output, 0, "rank-00000-of-00001.safetensors", 101), WEFT_ERR_INVALID,
            "has 100 bytes, but 101 are needed");
    wf_outputs_end(&output);

    output = begin_output(path);
    ck_assert_int_eq(wf_journal_peek(path, &found), WEFT_ERR_NOT_FOUND);
    wf_outputs_end(&output);
    ck_assert(!path_exists(folder_path(&folder, "new.weft-partial")));
}

/* Of three processes, the second one ended before it had a journal. */
TEST(a_new_output_removes_the_journals_of_all_processes)
{
    struct wf_outputs output;
    struct wf_journal journal;
    char path[300];

    snprintf(path, sizeof path, "%s", folder_path(&folder, "three"));
    output = begin_output(path);
    for (int32_t part = 0; part < 3; part += 2) {
        OK(wf_journal_begin(&journal, path, part, 3, &plan, false, false));
        wf_journal_end(&journal, true);
    }
    folder_write(&folder, "three.weft-journal-2b", "", 0);
    folder_write(&folder, "three.weft-journal-", "", 0);
    folder_write(&folder, "thre.weft-journal-2", "", 0);
    output.keep = true;
    wf_outputs_end(&output);
    ck_assert(path_exists(folder_path(&folder, "three.weft-journal-2")));

    output = begin_output(path);
    ck_assert(!path_exists(folder_path(&folder, "three.weft-journal")));
    ck_assert(!path_exists(folder_path(&folder, "three.weft-journal-2")));
    ck_assert(path_exists(folder_path(&folder, "three.weft-journal-2b")));
    ck_assert(path_exists(folder_path(&folder, "three.weft-journal-")));
    ck_assert(path_exists(folder_path(&folder, "thre.weft-journal-2")));
    wf_outputs_end(&output);
}

static weft_status begin_and_end(void *path)
{
    struct wf_journal_plan found;
    struct wf_journal journal;

    WF_TRY(wf_journal_begin(&journal, path, 0, 1, &plan, true, false));
    wf_journal_end(&journal, true);
    WF_TRY(wf_journal_peek(path, &found));
    WF_TRY(wf_journal_begin(&journal, path, 0, 1, &plan, true, true));
    wf_journal_end(&journal, false);
    return WEFT_OK;
}

TEST(memory_may_run_out_anywhere)
{
    char path[300];

    snprintf(path, sizeof path, "%s", folder_path(&folder, "memory"));
    ALLOCATIONS_FAIL(begin_and_end(path), (void)0);
}
