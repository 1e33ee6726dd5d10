#include "support/suite.h"
#include "support/trace.h"
#include "trace/counts.h"

#include <sys/stat.h>

static char content[2048];

static const char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");

    ck_assert_msg(file != NULL, "%s is missing", path);
    content[fread(content, 1, sizeof content - 1, file)] = '\0';
    fclose(file);
    return content;
}

TEST(each_counter_is_a_line)
{
    struct wf_sums counts = {.sent = 24, .received = 48, .cache_hits = 2, .axes_count = 1};
    static const char lines[] = "operation 3 all-reduce\noperation 1 symmetric barrier\n"
                                "step 2 all-gather\naxes 3 24 48 dp,tp\ntotal 24 sent\n"
                                "total 48 received\ntotal 2 cache hits\nend 1 rank\n";
    char twice[2 * sizeof lines];

    test_runtime = folder_create();
    counts.operations[WEFT_RECORD_ALL_REDUCE] = 3;
    counts.operations[WEFT_RECORD_SYMM_BARRIER] = 1;
    counts.steps[WEFT_STEP_ALL_GATHER] = 2;
    counts.axes[0] = (struct wf_axes_sums){"dp,tp", 3, 24, 48};
    ck_assert_int_eq(wf_counts_append(&counts, folder_path(&test_runtime, "a.%r.txt"), 12),
                     WEFT_OK);
    ck_assert_str_eq(read_file(folder_path(&test_runtime, "a.12.txt")), lines);
    ck_assert_int_eq(wf_counts_append(&counts, folder_path(&test_runtime, "b"), 3), WEFT_OK);
    ck_assert_int_eq(wf_counts_append(&counts, folder_path(&test_runtime, "b"), 3), WEFT_OK);
    snprintf(twice, sizeof twice, "%s%s", lines, lines);
    ck_assert_str_eq(read_file(folder_path(&test_runtime, "b.3")), twice);
    folder_remove(&test_runtime);
}

TEST(a_name_with_newlines_is_one_line)
{
    struct wf_sums counts = {.axes_count = 1};

    test_runtime = folder_create();
    counts.axes[0] = (struct wf_axes_sums){"tp\nend 1 rank\n\033[2J", 3, 24, 48};
    ck_assert_int_eq(wf_counts_append(&counts, folder_path(&test_runtime, "a"), 0), WEFT_OK);
    ck_assert_str_eq(read_file(folder_path(&test_runtime, "a.0")),
                     "axes 3 24 48 tp?end 1 rank??[2J\nend 1 rank\n");
    folder_remove(&test_runtime);
}

TEST(a_file_that_cannot_be_written_is_an_error)
{
    struct wf_sums counts = {.sent = 1};
    char name[5000];

    ck_assert_int_eq(wf_counts_append(&counts, "/proc/no-such-folder/counts", 0), WEFT_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "/proc/no-such-folder/counts.0 cannot be"));
    test_runtime = folder_create();
    ck_assert_int_eq(mkfifo(folder_path(&test_runtime, "pipe.0"), 0600), 0);
    ck_assert_int_eq(wf_counts_append(&counts, folder_path(&test_runtime, "pipe"), 0),
                     WEFT_ERR_SYSTEM);
    folder_remove(&test_runtime);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(wf_counts_append(&counts, name, 0), WEFT_ERR_SYSTEM);
}
