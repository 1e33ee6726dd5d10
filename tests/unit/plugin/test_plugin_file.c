#include "kit/trust.h"
#include "plugin/plugin.h"
#include "support/folder.h"
#include "support/suite.h"

static struct folder folder;
static struct wf_verdict verdict;

/* Open FILE and close it again.  The reason is left in VERDICT. */
static bool opens(const char *file, bool secure)
{
    struct wf_trusted trusted;

    verdict = (struct wf_verdict){0};
    if (!wf_file_open(file, NULL, secure, &trusted, &verdict)) {
        ck_assert_int_eq(trusted.fd, -1);
        return false;
    }
    ck_assert_str_eq(trusted.path, file);
    close(trusted.fd);
    return true;
}

TEST(a_file_of_our_own_opens)
{
    folder = folder_create();
    ck_assert_msg(opens(folder_write(&folder, "a", "x", 1), false), "%s", verdict.text);
    folder_remove(&folder);
}

TEST(what_is_not_there_is_not_found)
{
    folder = folder_create();
    ck_assert(!opens(folder_path(&folder, "none"), false));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_NOT_FOUND);
    ck_assert_int_eq(symlink("nowhere", folder_path(&folder, "dangling")), 0);
    ck_assert(!opens(folder_path(&folder, "dangling"), false));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_NOT_FOUND);
    folder_remove(&folder);
}

TEST(only_regular_files_are_readable)
{
    folder = folder_create();
    ck_assert_int_eq(mkdir(folder_path(&folder, "d"), 0755), 0);
    ck_assert(!opens(folder_path(&folder, "d"), false));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_NOT_READABLE);
    ck_assert_ptr_nonnull(strstr(verdict.text, "a directory"));
    ck_assert_int_eq(mkfifo(folder_path(&folder, "pipe"), 0644), 0);
    ck_assert(!opens(folder_path(&folder, "pipe"), false)); /* and does not wait for a writer */
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_NOT_READABLE);
    folder_remove(&folder);
}

TEST(a_file_without_read_permission_is_not_readable)
{
    folder = folder_create();
    ck_assert_int_eq(chmod(folder_write(&folder, "a", "x", 1), 0200), 0);
    if (geteuid() == 0) {
        printf("not checked: root may read everything\n");
    } else {
        ck_assert(!opens(folder_path(&folder, "a"), false));
        ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_NOT_READABLE);
    }
    folder_remove(&folder);
}

TEST(what_anybody_may_change_is_not_trusted)
{
    folder = folder_create();
    ck_assert_int_eq(chmod(folder_write(&folder, "a", "x", 1), 0666), 0);
    ck_assert(!opens(folder_path(&folder, "a"), false));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_NOT_TRUSTED);
    ck_assert_ptr_nonnull(strstr(verdict.text, "mode 0666"));
    ck_assert_ptr_nonnull(strstr(verdict.text, "expected mode 0644"));
    folder_remove(&folder);
}

TEST(a_privileged_program_minds_the_group_too)
{
    folder = folder_create();
    ck_assert_int_eq(chmod(folder_write(&folder, "a", "x", 1), 0664), 0);
    ck_assert(!opens(folder_path(&folder, "a"), true));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_NOT_TRUSTED);
    folder_remove(&folder);
}

TEST(a_file_of_another_user_is_not_trusted)
{
    struct wf_trusted trusted;

    folder = folder_create();
    folder_write(&folder, "a", "x", 1);
    folder_write(&folder, "libweft.so", "x", 1);
    if (geteuid() != 0 || chown(folder_path(&folder, "a"), 4711, 4711) != 0) {
        printf("not checked: only root may give files away\n");
    } else {
        ck_assert(!opens(folder_path(&folder, "a"), false));
        ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_NOT_TRUSTED);
        ck_assert_ptr_nonnull(strstr(verdict.text, "user 4711"));
        /* It may belong to the owner of libweft, who could change the library anyway. */
        ck_assert_int_eq(chown(folder_path(&folder, "libweft.so"), 4711, 4711), 0);
        ck_assert(wf_file_open(folder_path(&folder, "a"), folder_path(&folder, "libweft.so"), false,
                               &trusted, &verdict));
        close(trusted.fd);
    }
    folder_remove(&folder);
}
