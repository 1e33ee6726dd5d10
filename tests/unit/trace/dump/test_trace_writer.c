#include "support/suite.h"
#include "support/trace.h"
#include "trace/dump/dump.h"

#include <errno.h>
#include <sys/resource.h>

static struct wf_writer writer;

static void expect_file(const char *path, const char *want)
{
    char have[256] = "";
    FILE *file = fopen(path, "rb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_lt(fread(have, 1, sizeof have - 1, file), sizeof have - 1);
    fclose(file);
    ck_assert_str_eq(have, want);
}

TEST(numbers_are_printed_without_stdio)
{
    char out[WF_DECIMAL], want[32], hex[17];
    static const int64_t numbers[] = {0, 7, -1, 10, INT32_MIN, INT64_MAX, INT64_MIN};

    for (size_t i = 0; i < WF_COUNT(numbers); i++) {
        snprintf(want, sizeof want, "%lld", (long long)numbers[i]);
        ck_assert_uint_eq(wf_print_decimal(numbers[i], out), strlen(want));
        ck_assert_str_eq(out, want);
    }
    wf_print_hex(UINT64_C(0x0123456789abcdef), hex);
    ck_assert_str_eq(hex, "0123456789abcdef");
}

TEST(a_phrase_is_cut_at_its_end)
{
    char out[8];
    struct wf_phrase phrase = {out, sizeof out, 0};

    wf_phrase_add(&phrase, "rank ");
    wf_phrase_add_decimal(&phrase, 12345);
    ck_assert_str_eq(out, "rank 12");
}

TEST(a_file_appears_when_it_is_complete)
{
    struct folder folder = folder_create();
    const char *path = folder_path(&folder, "file");

    wf_writer_open(&writer, path);
    wf_write_text(&writer, "one ");
    wf_write_decimal(&writer, -2);
    wf_writer_close(&writer);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(access(writer.made, F_OK), 0);
    wf_writer_publish(&writer, path);
    wf_writer_discard(&writer);
    ck_assert_int_eq(writer.error, 0);
    expect_file(path, "one -2");
    folder_remove(&folder);
}

TEST(a_file_that_cannot_be_written_leaves_nothing)
{
    struct folder folder = folder_create();
    const char *path = folder_path(&folder, "file");
    struct rlimit limit, small;
    char bytes[3000] = {0};

    wf_writer_open(&writer, "/nonexistent/file");
    wf_write_bytes(&writer, bytes, sizeof bytes);
    wf_writer_discard(&writer);
    ck_assert_int_eq(writer.error, ENOENT);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 5000;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    wf_writer_open(&writer, path); /* SIGXFSZ would end this process */
    for (int i = 0; i < 4; i++)
        wf_write_bytes(&writer, bytes, sizeof bytes);
    wf_writer_close(&writer);
    wf_writer_publish(&writer, path);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(writer.error, EFBIG);
    ck_assert_int_eq(access(writer.made, F_OK), 0);
    wf_writer_discard(&writer);
    ck_assert_int_eq(rmdir(folder.path), 0); /* it is empty */
}
