/* Recorders of a host: their list, their owners, and other users. */
#include "support/allocfail.h"
#include "support/caught.h"
#include "support/recorders.h"
#include "support/suite.h"

#include "trace/folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

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

/* A child that owns a recorder and, if it FORKS, has a child that does not; PATH, of 256 bytes,
 * gets that of the recorder. */
static pid_t start_owner(char *path, bool forks)
{
    int fds[2];
    pid_t child;

    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(pipe(hold), 0);
    child = fork();
    if (child == 0) {
        struct wf_trace *trace = recorders_make(0, 64);

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

TEST(stopped_and_killed_owners_are_told_apart)
{
    struct folder folder = recorders_begin();
    char path[256];
    pid_t child = start_owner(path, false);
    weft_recorder *recorder = recorders_open(path);
    int code;

    ck_assert_uint_eq(recorders_info(recorder).alive, 1);
    ck_assert_uint_eq(recorders_info(recorder).stopped, 0);
    ck_assert_int_eq(kill(child, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(child, &code, WUNTRACED), child);
    ck_assert_int_eq(weft_recorder_refresh(recorder), WEFT_OK);
    ck_assert_uint_eq(recorders_info(recorder).stopped, 1);
    end_child(child);
    ck_assert_int_eq(weft_recorder_refresh(recorder), WEFT_OK);
    ck_assert_uint_eq(recorders_info(recorder).alive + recorders_info(recorder).stopped, 0);
    ck_assert_uint_eq(recorders_info(recorder).removed, 0);
    weft_recorder_close(&recorder);
    close(hold[1]);
    recorders_end(&folder);
}

TEST(fork_of_an_owner_does_not_own)
{
    struct folder folder = recorders_begin();
    char path[256];
    pid_t child = start_owner(path, true);
    weft_recorder *recorder = recorders_open(path);

    ck_assert_uint_eq(recorders_info(recorder).alive, 1);
    end_child(child); /* its own child is still there */
    ck_assert_int_eq(weft_recorder_refresh(recorder), WEFT_OK);
    ck_assert_uint_eq(recorders_info(recorder).alive, 0);
    weft_recorder_close(&recorder);
    close(hold[1]);
    recorders_end(&folder);
}

struct asker {
    const char *path;
    _Atomic bool ends;
};

static void *ask(void *argument)
{
    struct asker *asker = argument;
    int file = open(asker->path, O_RDONLY | O_CLOEXEC);

    while (!atomic_load(&asker->ends))
        (void)wf_folder_is_owned(file);
    close(file);
    return NULL;
}

TEST(readers_do_not_keep_an_owner_from_its_lock)
{
    struct folder folder = folder_create();
    struct asker asker = {.path = folder_write(&folder, "recorder", "", 0)};
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, ask, &asker), 0);
    for (int i = 0; i < 20000; i++) {
        int file = open(asker.path, O_RDWR | O_CLOEXEC);

        ck_assert(wf_folder_own(file));
        close(file);
    }
    atomic_store(&asker.ends, true);
    pthread_join(thread, NULL);
    folder_remove(&folder);
}

/* ---- the list ---- */

TEST(list_has_all_recorders_in_order)
{
    struct folder folder = recorders_begin();
    struct wf_trace *second = recorders_make(1, 64), *first = recorders_make(0, 64);
    weft_recorders *recorders = NULL;
    weft_recorder *listed;
    size_t found = 0;

    folder_write(&folder, "weft/recorder.text", "hello", 5);
    folder_write(&folder, "weft/recorder.empty", "", 0);
    folder_write(&folder, "weft/other", "hello", 5);
    ck_assert_int_eq(weft_recorders_create(&recorders), WEFT_OK);
    for (size_t i = 0; i < weft_recorders_count(recorders);
         i++) { /* another user of the host's may be */
        weft_recorder_info info = recorders_info(weft_recorders_at(recorders, i));

        if (strncmp(info.path, folder.path, strlen(folder.path)) != 0) continue;
        ck_assert_int_eq(info.rank, (int32_t)found);
        found++;
    }
    ck_assert_uint_eq(found, 2);
    ck_assert_ptr_null(weft_recorders_at(recorders, weft_recorders_count(recorders)));
    ck_assert_ptr_nonnull(strstr(weft_recorders_folder(recorders, 0), folder.path));
    ck_assert_uint_eq(weft_recorders_folder_count(recorders), 2);
    ck_assert_ptr_null(weft_recorders_folder(recorders, 2));
    ck_assert_uint_ge(weft_recorders_problem_count(recorders), 1);
    ck_assert_ptr_null(weft_recorders_problem(recorders, weft_recorders_problem_count(recorders)));
    ck_assert_uint_eq(weft_recorders_problem_count(NULL), 0);
    ck_assert_uint_eq(weft_recorders_folder_count(NULL), 0);
    ck_assert_ptr_nonnull(
        strstr(weft_recorders_problem(recorders, 0), "weft/recorder.text is cut short"));
    listed = weft_recorders_at(recorders, 0);
    catch_begin();
    weft_recorder_close(&listed);
    ck_assert_ptr_nonnull(strstr(catch_end(),
                                 "weft_recorder_close: weft_recorders_release closes the "
                                 "recorders of its list"));
    ck_assert_ptr_null(listed);
    weft_recorders_release(&recorders);
    ck_assert_ptr_null(recorders);
    wf_trace_destroy(first);
    wf_trace_destroy(second);
    recorders_end(&folder);
}

TEST(another_user_cannot_read)
{
    struct folder folder = recorders_begin();
    struct wf_trace *trace = recorders_make(0, 64);
    int code;
    pid_t child;

    if (geteuid() != 0) {
        printf("only root can become another user\n");
        wf_trace_destroy(trace);
        recorders_end(&folder);
        return;
    }
    ck_assert_int_eq(chmod(folder.path, 0755), 0);
    child = fork();
    if (child == 0) {
        weft_recorders *recorders = NULL;
        weft_recorder *recorder = NULL;

        if (setuid(65534) != 0) _exit(2);
        if (weft_recorder_open(trace->path, &recorder) != WEFT_ERR_SYSTEM) _exit(3);
        if (strstr(weft_last_error(), "Permission denied") == NULL) _exit(4);
        if (weft_recorders_create(&recorders) != WEFT_OK) _exit(5);
        for (size_t i = 0; i < weft_recorders_count(recorders); i++)
            if (strncmp(recorders_info(weft_recorders_at(recorders, i)).path, folder.path,
                        strlen(folder.path)) == 0)
                _exit(6);
        if (weft_recorders_problem_count(recorders) == 0 ||
            strstr(weft_recorders_problem(recorders, 0), folder.path) == NULL)
            _exit(7);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &code, 0), child);
    ck_assert_int_eq(code, 0);
    wf_trace_destroy(trace);
    recorders_end(&folder);
}

TEST(an_empty_path_is_refused)
{
    weft_recorder *recorder = NULL;

    ck_assert_int_eq(weft_recorder_open("", &recorder), WEFT_ERR_NOT_FOUND);
    ck_assert_str_eq(weft_last_error(), "weft_recorder_open: path is empty; it must name a file");
}

TEST(missing_memory_is_reported)
{
    struct folder folder = recorders_begin();
    struct wf_trace *trace = recorders_make(0, 64);
    weft_recorder *recorder = NULL;
    int64_t live;

    folder_write(&folder, "weft/recorder.text", "hello", 5);
    ALLOCATIONS_FAIL(weft_recorder_open(trace->path, &recorder), weft_recorder_close(&recorder));
    live = wf_mem_live();
    for (uint64_t n = 1; n <= 12; n++) { /* how many there are depends on other jobs of the user */
        weft_recorders *recorders = NULL;
        weft_status status;

        wf_mem_fail_at(n);
        status = weft_recorders_create(&recorders);
        wf_mem_fail_at(0);
        ck_assert(status == WEFT_OK || status == WEFT_ERR_NO_MEMORY);
        weft_recorders_release(&recorders);
        ck_assert_int_eq(wf_mem_live(), live);
    }
    wf_trace_destroy(trace);
    recorders_end(&folder);
}
