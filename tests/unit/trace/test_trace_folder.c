#include "support/suite.h"
#include "support/trace.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

static weft_status enter(const char *name)
{
    int folder = -1;
    weft_status status = wf_folder_make(folder_path(&test_runtime, name), &folder);

    if (status == WEFT_OK) close(folder);
    return status;
}

static void enters(const char *name)
{
    ck_assert_msg(enter(name) == WEFT_OK, "%s", weft_last_error());
}

static void refuses(const char *name, const char *why)
{
    ck_assert_int_eq(enter(name), WEFT_ERR_SYSTEM);
    ck_assert_msg(strstr(weft_last_error(), why) != NULL, "%s", weft_last_error());
}

TEST(only_a_folder_of_this_user_alone_is_used)
{
    int folder;

    test_runtime = folder_create();
    enters("new");
    enters("new");
    ck_assert_int_eq(chmod(folder_path(&test_runtime, "new"), 0750), 0);
    refuses("new", "its mode is 750, not 700");
    enters("target");
    ck_assert_int_eq(symlink("target", folder_path(&test_runtime, "link")), 0);
    refuses("link", "cannot be opened");
    folder_write(&test_runtime, "file", "", 0);
    refuses("file", "cannot be opened: Not a directory");
    refuses("none/below", "cannot be created: No such file");
    if (geteuid() == 0) {
        enters("other");
        ck_assert_int_eq(chown(folder_path(&test_runtime, "other"), 1, 1), 0);
        refuses("other", "belongs to user 1, not to user 0");
    }
    ck_assert_int_eq(wf_folder_enter(folder_path(&test_runtime, "absent"), &folder),
                     WEFT_ERR_NOT_FOUND);
    folder_remove(&test_runtime);
}

TEST(only_an_absolute_path_of_the_environment_is_listed)
{
    char paths[WF_FOLDERS][WF_FOLDER_PATH], own[64], long_path[300];

    snprintf(own, sizeof own, "/dev/shm/weft-%u", (unsigned)geteuid());
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    ck_assert_uint_eq(wf_folder_list(paths), 2);
    ck_assert_str_eq(paths[0], "/run/user/7/weft");
    ck_assert_str_eq(paths[1], own);
    setenv("XDG_RUNTIME_DIR", "run", 1);
    ck_assert_uint_eq(wf_folder_list(paths), 1);
    ck_assert_str_eq(paths[0], own);
    memset(long_path, '/', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    setenv("XDG_RUNTIME_DIR", long_path, 1);
    ck_assert_uint_eq(wf_folder_list(paths), 1);
    unsetenv("XDG_RUNTIME_DIR");
    ck_assert_uint_eq(wf_folder_list(paths), 1);
}

/* ---- recorders that were left ---- */

/* A recorder that was written SECONDS ago. */
static void leave_recorder(const char *name, long seconds)
{
    struct timespec then = {time(NULL) - seconds, 0};

    folder_write(&test_runtime, name, "x", 1);
    ck_assert_int_eq(
        utimensat(AT_FDCWD, folder_path(&test_runtime, name), (struct timespec[]){then, then}, 0),
        0);
}

static bool has(const char *name)
{
    return access(folder_path(&test_runtime, name), F_OK) == 0;
}

static void clean(void)
{
    int folder = open(test_runtime.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ck_assert_int_ge(folder, 0);
    wf_folder_clean(folder);
    close(folder);
}

TEST(the_newest_32_abandoned_recorders_stay)
{
    char name[32];
    int owned;

    test_runtime = folder_create();
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "recorder.%d", i);
        leave_recorder(name, 100 + i);
    }
    leave_recorder("recorder.owned", 1000);
    owned = open(folder_path(&test_runtime, "recorder.owned"), O_RDWR | O_CLOEXEC);
    ck_assert(wf_folder_own(owned));
    leave_recorder("file", 1000);
    ck_assert_int_eq(mkfifo(folder_path(&test_runtime, "recorder.fifo"), 0600), 0);
    clean();
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "recorder.%d", i);
        ck_assert_msg(has(name) == (i < 32), "%s", name);
    }
    ck_assert(has("recorder.owned") && has("file") && has("recorder.fifo"));
    close(owned);
    folder_remove(&test_runtime);
}

TEST(an_incomplete_recorder_is_removed_once_it_is_old)
{
    test_runtime = folder_create();
    leave_recorder("made.new", 0);
    leave_recorder("made.old", 100);
    clean();
    ck_assert(has("made.new") && !has("made.old"));
    folder_remove(&test_runtime);
}
