/* Rings of a host: their list, their owners, and other users. */
#include "support/allocfail.h"
#include "support/caught.h"
#include "support/rings.h"
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
        struct wf_trace *trace = rings_make(0, 64);

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
    struct folder folder = rings_begin();
    char path[256];
    pid_t child = start_owner(path, false);
    weft_ring *ring = rings_open(path);
    int code;

    ck_assert_uint_eq(rings_info(ring).alive, 1);
    ck_assert_uint_eq(rings_info(ring).stopped, 0);
    ck_assert_int_eq(kill(child, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(child, &code, WUNTRACED), child);
    ck_assert_int_eq(weft_ring_refresh(ring), WEFT_OK);
    ck_assert_uint_eq(rings_info(ring).stopped, 1);
    end_child(child);
    ck_assert_int_eq(weft_ring_refresh(ring), WEFT_OK);
    ck_assert_uint_eq(rings_info(ring).alive + rings_info(ring).stopped, 0);
    ck_assert_uint_eq(rings_info(ring).removed, 0);
    weft_ring_close(&ring);
    close(hold[1]);
    rings_end(&folder);
}
END_TEST

START_TEST(fork_of_an_owner_does_not_own)
{
    struct folder folder = rings_begin();
    char path[256];
    pid_t child = start_owner(path, true);
    weft_ring *ring = rings_open(path);

    ck_assert_uint_eq(rings_info(ring).alive, 1);
    end_child(child); /* its own child is still there */
    ck_assert_int_eq(weft_ring_refresh(ring), WEFT_OK);
    ck_assert_uint_eq(rings_info(ring).alive, 0);
    weft_ring_close(&ring);
    close(hold[1]);
    rings_end(&folder);
}
END_TEST

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

START_TEST(readers_do_not_keep_an_owner_from_its_lock)
{
    struct folder folder = folder_create();
    struct asker asker = {.path = folder_write(&folder, "ring", "", 0)};
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
END_TEST

/* ---- the list ---- */

START_TEST(list_has_all_rings_in_order)
{
    struct folder folder = rings_begin();
    struct wf_trace *second = rings_make(1, 64), *first = rings_make(0, 64);
    weft_rings *rings = NULL;
    weft_ring *listed;
    size_t found = 0;

    folder_write(&folder, "weft/ring.text", "hello", 5);
    folder_write(&folder, "weft/ring.empty", "", 0);
    folder_write(&folder, "weft/other", "hello", 5);
    ck_assert_int_eq(weft_rings_create(&rings), WEFT_OK);
    for (size_t i = 0; i < weft_rings_count(rings); i++) { /* another user of the host's may be */
        weft_ring_info info = rings_info(weft_rings_at(rings, i));

        if (strncmp(info.path, folder.path, strlen(folder.path)) != 0) continue;
        ck_assert_int_eq(info.rank, (int32_t)found);
        found++;
    }
    ck_assert_uint_eq(found, 2);
    ck_assert_ptr_null(weft_rings_at(rings, weft_rings_count(rings)));
    ck_assert_ptr_nonnull(strstr(weft_rings_folder(rings, 0), folder.path));
    ck_assert_ptr_null(weft_rings_folder(rings, 2));
    ck_assert_ptr_nonnull(strstr(weft_rings_problem(rings, 0), "weft/ring.text is cut short"));
    listed = weft_rings_at(rings, 0);
    catch_begin();
    weft_ring_close(&listed);
    ck_assert_ptr_nonnull(strstr(catch_end(), "weft_ring_close: weft_rings_release closes the "
                                              "rings of its list"));
    ck_assert_ptr_null(listed);
    weft_rings_release(&rings);
    ck_assert_ptr_null(rings);
    wf_trace_destroy(first);
    wf_trace_destroy(second);
    rings_end(&folder);
}
END_TEST

START_TEST(another_user_cannot_read)
{
    struct folder folder = rings_begin();
    struct wf_trace *trace = rings_make(0, 64);
    int code;
    pid_t child;

    if (geteuid() != 0) {
        printf("only root can become another user\n");
        wf_trace_destroy(trace);
        rings_end(&folder);
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
            if (strncmp(rings_info(weft_rings_at(rings, i)).path, folder.path,
                        strlen(folder.path)) == 0)
                _exit(6);
        if (weft_rings_problem(rings, 0) == NULL ||
            strstr(weft_rings_problem(rings, 0), folder.path) == NULL)
            _exit(7);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &code, 0), child);
    ck_assert_int_eq(code, 0);
    wf_trace_destroy(trace);
    rings_end(&folder);
}
END_TEST

START_TEST(an_empty_path_is_refused)
{
    weft_ring *ring = NULL;

    ck_assert_int_eq(weft_ring_open("", &ring), WEFT_ERR_NOT_FOUND);
    ck_assert_str_eq(weft_last_error(), "weft_ring_open: path is empty; it must name a file");
}
END_TEST

struct opening {
    const char *path;
    weft_ring *ring;
};

static weft_status open_one(void *argument)
{
    struct opening *opening = argument;

    return weft_ring_open(opening->path, &opening->ring);
}

static void close_one(void *argument)
{
    weft_ring_close(&((struct opening *)argument)->ring);
}

START_TEST(missing_memory_is_reported)
{
    struct folder folder = rings_begin();
    struct wf_trace *trace = rings_make(0, 64);
    struct opening opening = {.path = trace->path};
    int64_t live;

    folder_write(&folder, "weft/ring.text", "hello", 5);
    check_allocation_failures(open_one, close_one, &opening);
    live = wf_mem_live();
    for (uint64_t n = 1; n <= 12; n++) { /* how many there are depends on other jobs of the user */
        weft_rings *rings = NULL;
        weft_status status;

        wf_mem_fail_at(n);
        status = weft_rings_create(&rings);
        wf_mem_fail_at(0);
        ck_assert(status == WEFT_OK || status == WEFT_ERR_NO_MEMORY);
        weft_rings_release(&rings);
        ck_assert_int_eq(wf_mem_live(), live);
    }
    wf_trace_destroy(trace);
    rings_end(&folder);
}
END_TEST

SUITE(trace_rings, stopped_and_killed_owners_are_told_apart, fork_of_an_owner_does_not_own,
      readers_do_not_keep_an_owner_from_its_lock, list_has_all_rings_in_order,
      another_user_cannot_read, an_empty_path_is_refused, missing_memory_is_reported)
