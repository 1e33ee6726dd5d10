#include "base/fork.h"
#include "support/allocfail.h"
#include "support/caught.h"
#include "support/suite.h"
#include "support/trace.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const char *recorder_path(void)
{
    static char name[128];

    snprintf(name, sizeof name, "weft/recorder.0000000000001234.3.%d", (int)getpid());
    return folder_path(&test_runtime, name);
}

/* Files in the folder of recorders. */
static int count_files(void)
{
    DIR *entries = opendir(folder_path(&test_runtime, "weft"));
    int count = 0;

    if (entries == NULL) return -1;
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries))
        if (entry->d_name[0] != '.') count++;
    closedir(entries);
    return count;
}

TEST(a_recorder_is_a_file_that_only_its_user_can_read)
{
    struct wf_trace *trace = test_trace_begin(100);
    struct wf_segment *segment = trace->segment;
    struct stat info;

    ck_assert_str_eq(trace->path, recorder_path());
    ck_assert_int_eq(count_files(), 1);
    ck_assert_int_eq(stat(recorder_path(), &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0600);
    ck_assert_uint_eq((size_t)info.st_size, trace->bytes);
    ck_assert_int_eq(stat(folder_path(&test_runtime, "weft"), &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0700);
    ck_assert_mem_eq(segment->magic, WF_SEGMENT_MAGIC, 8);
    ck_assert(segment->rank == 3 && segment->size == 8 && segment->job == 0x1234);
    ck_assert(segment->record_count == 128 && segment->pid == (int32_t)getpid());
    ck_assert_str_eq(segment->backend, "gloo-cpu");
    ck_assert_int_eq(strncmp(segment->program, "test_trace_segment", 15), 0);
    wf_trace_destroy(trace);
    ck_assert_int_eq(count_files(), 0);
    folder_remove(&test_runtime);
}

TEST(a_recorder_begins_with_its_context_not_with_the_process)
{
    uint64_t before = wf_instant_begun().ns;
    struct wf_trace *trace;

    while (wf_now_ns() - before < 2000000)
        continue;
    before = wf_now_ns();
    trace = test_trace_begin(64);
    ck_assert_uint_ge(trace->segment->begun_ns, before);
    test_trace_end(trace);
}

TEST(without_a_recorder_there_is_no_file)
{
    struct wf_trace *trace = test_trace_begin(0);

    ck_assert(!wf_trace_is_active(trace));
    ck_assert_int_eq(count_files(), -1);
    ck_assert_uint_eq(test_submit(trace, 1, 0).id, 1); /* observers need it */
    test_trace_end(trace);
}

TEST(recorders_have_a_power_of_two_of_records)
{
    static const uint64_t wanted[][2] = {{1, 64}, {64, 64}, {65, 128}, {1 << 20, 65536}};

    for (size_t i = 0; i < WF_COUNT(wanted); i++) {
        struct wf_trace *trace = test_trace_begin(wanted[i][0]);

        ck_assert_uint_eq(trace->mask + 1, wanted[i][1]);
        test_trace_end(trace);
    }
}

TEST(a_fork_does_not_own_the_recorder_of_its_parent)
{
    struct wf_trace *trace = test_trace_begin(64);
    int file = open(recorder_path(), O_RDONLY | O_CLOEXEC), here[2], there[2];
    char byte = 0;
    pid_t child;

    ck_assert_int_ge(file, 0);
    ck_assert(wf_folder_is_owned(file));
    ck_assert_int_eq(pipe(here), 0);
    ck_assert_int_eq(pipe(there), 0);
    child = fork();
    if (child == 0) { /* until the parent closes its end */
        close(there[1]);
        _exit(write(here[1], &byte, 1) != 1 || read(there[0], &byte, 1) != 0);
    }
    ck_assert_int_eq(read(here[0], &byte, 1), 1);
    wf_trace_destroy(trace);
    ck_assert(!wf_folder_is_owned(file));
    close(there[1]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    close(here[0]), close(here[1]), close(there[0]), close(file);
    folder_remove(&test_runtime);
}

/* ---- where there is no shared memory ---- */

/* The body of a child process: 0, or the line of a failed claim. */
#define CLAIM(claim)                                                                               \
    do {                                                                                           \
        if (!(claim)) return __LINE__;                                                             \
    } while (0)

/* With SPOIL, the recorder is private, and one notice says WHY. */
static int check_private(int (*spoil)(void), const char *why)
{
    struct wf_trace *trace = NULL;
    const char *notice;

    catch_begin();
    CLAIM(spoil() == 0);
    CLAIM(wf_trace_create(&test_identity, 64, &trace) == WEFT_OK);
    notice = catch_end();
    CLAIM(strstr(notice, "other processes, such as `weft status`, cannot see") != NULL);
    if (strstr(notice, why) == NULL) fprintf(stderr, "no \"%s\" in: %s", why, notice);
    CLAIM(strstr(notice, why) != NULL);
    CLAIM(strchr(notice, '\n') == strrchr(notice, '\n'));
    CLAIM(trace->file < 0 && trace->path[0] == '\0');
    CLAIM(wf_trace_is_active(trace) && test_submit(trace, 1, 0).id == 1);
    wf_trace_destroy(trace);
    return 0;
}

static int limit_size(void)
{
    return setrlimit(RLIMIT_FSIZE, &(struct rlimit){16384, 16384});
}

static int limit_files(void)
{
    int lowest = dup(0); /* of the free descriptors */

    close(lowest);
    return setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)lowest, (rlim_t)lowest});
}

static int without_space(void)
{
    return check_private(limit_size, "cannot have");
}

static int without_files(void)
{
    return check_private(limit_files, "Too many open files");
}

static int run_in_child(int (*body)(void))
{
    int code = 0;
    pid_t child = fork();

    if (child == 0) {
        alarm(60);
        code = body();
        if (code != 0) fprintf(stderr, "line %d in the child\n", code);
        _exit(code != 0);
    }
    return waitpid(child, &code, 0) == child ? code : -1;
}

TEST(without_space_the_recorder_is_private)
{
    struct wf_trace *trace = test_trace_begin(0);

    ck_assert_int_eq(run_in_child(without_space), 0);
    ck_assert_int_eq(count_files(), 0);
    test_trace_end(trace);
}

TEST(without_descriptors_the_recorder_is_private)
{
    struct wf_trace *trace = test_trace_begin(0);

    ck_assert_int_eq(run_in_child(without_files), 0);
    test_trace_end(trace);
}

TEST(an_unusable_folder_is_replaced_by_the_next)
{
    static const char *const unusable[] = {"relative", "/proc/no-such-folder", "/dev/null", ""};

    for (size_t i = 0; i < WF_COUNT(unusable); i++) {
        struct wf_trace *trace = NULL;

        ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", unusable[i], 1), 0);
        ck_assert_int_eq(wf_trace_create(&test_identity, 64, &trace), WEFT_OK);
        if (trace->path[0] != '\0') /* another user may have spoiled /dev/shm/weft-UID */
            ck_assert_int_eq(strncmp(trace->path, "/dev/shm/weft-", 14), 0);
        wf_trace_destroy(trace);
    }
}

/* ---- memory ---- */

TEST(a_failed_allocation_is_an_error)
{
    struct wf_trace *trace = test_trace_begin(0), *other = NULL;

    ck_assert_uint_gt(
        ALLOCATIONS_FAIL(wf_trace_create(&test_identity, 64, &other), wf_trace_destroy(other)), 0);
    ck_assert_int_eq(count_files(), 0);
    test_trace_end(trace);
}
