#include "support/suite.h"
#include "support/trace.h"
#include "trace/dump/dump.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct wf_trace *trace;

static void begin(void)
{
    trace = test_trace_begin(64);
    wf_trace_add_comm(trace, 9, wf_trace_intern(trace, "world"), (int32_t[]){3, 4}, 2, 0);
    wf_trace_set_limit(trace, 9, 2000000);
    (void)test_submit(trace, 9, 0);
}

/* The content of file NAME in the folder of the recorder, of SIZE bytes; NULL: there is no such
 * file.
 */
static const char *content(const char *name, size_t *size)
{
    static char bytes[65536];
    FILE *file = fopen(folder_path(&test_runtime, name), "rb");

    if (file == NULL) return NULL;
    *size = fread(bytes, 1, sizeof bytes - 1, file);
    bytes[*size] = '\0';
    fclose(file);
    return bytes;
}

TEST(a_dump_is_two_files)
{
    char prefix[128];
    size_t size;

    begin();
    snprintf(prefix, sizeof prefix, "%s/d", test_runtime.path);
    ck_assert_int_eq(wf_dump_call(trace, prefix), WEFT_OK);
    ck_assert_int_eq(memcmp(content("d.3", &size), "\x80\x02}(X\x07\0\0\0version", 16), 0);
    ck_assert_str_eq(content("d.3", &size) + size - 3, "eu.");
    ck_assert_ptr_nonnull(strstr(content("d-3.json", &size), "\"ranks\": \"[3, 4]\""));
    ck_assert_ptr_nonnull(strstr(content("d-3.json", &size), "\"timeout_ms\": 2,"));
    ck_assert_ptr_nonnull(strstr(content("d-3.json", &size), "\"state\": \"started\""));
    snprintf(prefix, sizeof prefix, "%s/%%r.d", test_runtime.path);
    ck_assert_int_eq(wf_dump_call(trace, prefix), WEFT_OK);
    ck_assert_ptr_nonnull(content("3.d", &size));
    ck_assert_ptr_nonnull(content("3.d.json", &size));
    test_trace_end(trace);
}

enum { OPEN_RECORDS = 512 };

static struct wf_submitted open_records[OPEN_RECORDS];

/* Ends records while another thread writes them, so that it takes about as long. */
static void *finish_records(void *argument)
{
    for (int i = 0; i < OPEN_RECORDS; i++) {
        wf_trace_finish(trace, open_records[i]);
        if (i % 8 == 0) nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    }
    return argument;
}

/* How often the file NAME has MARK. */
static int count_marks(const char *name, const char *mark, size_t length)
{
    enum { MOST = 4 << 20 };
    FILE *file = fopen(folder_path(&test_runtime, name), "rb");
    char *bytes = malloc(MOST);
    size_t size;
    int count = 0;

    ck_assert(file != NULL && bytes != NULL);
    size = fread(bytes, 1, MOST, file);
    ck_assert_uint_lt(size, MOST);
    for (size_t i = 0; i + length <= size; i++)
        count += memcmp(bytes + i, mark, length) == 0;
    free(bytes);
    fclose(file);
    return count;
}

TEST(the_files_have_each_record_in_the_same_state)
{
    pthread_t thread;
    char prefix[128];

    trace = test_trace_begin(OPEN_RECORDS);
    wf_trace_add_comm(trace, 9, wf_trace_intern(trace, "world"), (int32_t[]){3, 4}, 2, 0);
    for (int i = 0; i < OPEN_RECORDS; i++)
        open_records[i] = test_submit(trace, 9, 0);
    snprintf(prefix, sizeof prefix, "%s/d", test_runtime.path);
    ck_assert_int_eq(pthread_create(&thread, NULL, finish_records, NULL), 0);
    ck_assert_int_eq(wf_dump_call(trace, prefix), WEFT_OK);
    ck_assert_int_eq(count_marks("d-3.json", "\"completed\"", 11),
                     count_marks("d.3", "X\x09\0\0\0completed", 14));
    pthread_join(thread, NULL);
    test_trace_end(trace);
}

TEST(a_dump_needs_a_name)
{
    char prefix[WF_DUMP_PATH + 8];

    begin();
    ck_assert_int_eq(wf_dump_call(trace, NULL), WEFT_ERR_INVALID);
    memset(prefix, 'a', sizeof prefix);
    prefix[sizeof prefix - 1] = '\0';
    ck_assert_int_eq(wf_dump_call(trace, prefix), WEFT_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), strerror(ENAMETOOLONG)));
    test_trace_end(trace);
}

TEST(a_released_communicator_is_in_the_dump)
{
    char prefix[128];
    size_t size;

    begin();
    wf_trace_remove_comm(trace, 9);
    snprintf(prefix, sizeof prefix, "%s/d", test_runtime.path);
    ck_assert_int_eq(wf_dump_call(trace, prefix), WEFT_OK);
    ck_assert_ptr_nonnull(strstr(content("d-3.json", &size), "\"desc\": \"world on gloo-cpu\""));
    test_trace_end(trace);
}

TEST(a_failure_is_written_once_until_some_seconds_have_passed)
{
    char prefix[128];
    size_t size;

    begin();
    snprintf(prefix, sizeof prefix, "%s/d", test_runtime.path);
    ck_assert_int_eq(wf_dump_begin(trace, prefix), WEFT_OK);
    wf_dump_if_due(trace);
    ck_assert_ptr_null(content("d.3", &size));
    wf_trace_fail_comm(trace, 9, WEFT_ERR_TIMEOUT, "too late");
    wf_dump_if_due(trace);
    ck_assert_ptr_nonnull(strstr(content("d-3.json", &size), "\"failed\": \"ERR_TIMEOUT\""));
    ck_assert_int_eq(unlink(folder_path(&test_runtime, "d.3")), 0);
    wf_trace_fail_comm(trace, 9, WEFT_ERR_TIMEOUT, "again");
    wf_dump_if_due(trace);
    ck_assert_ptr_null(content("d.3", &size));
    trace->dumped_ns -= UINT64_C(6000000000);
    wf_dump_if_due(trace);
    ck_assert_ptr_nonnull(content("d.3", &size));
    test_trace_end(trace);
}

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    handled = number;
}

TEST(a_signal_writes_and_calls_the_handler_before_it)
{
    struct sigaction now;
    char prefix[128];
    size_t size;

    signal(SIGUSR1, on_signal);
    begin();
    snprintf(prefix, sizeof prefix, "%s/d", test_runtime.path);
    ck_assert_int_eq(wf_dump_begin(trace, prefix), WEFT_OK);
    errno = EDOM;
    ck_assert_int_eq(raise(SIGUSR1), 0);
    ck_assert_int_eq(errno, EDOM);
    ck_assert_int_eq(handled, SIGUSR1);
    ck_assert_ptr_nonnull(content("d.3", &size));
    ck_assert_int_eq(unlink(folder_path(&test_runtime, "d.3")), 0);
    trace->dump_pid++; /* as in a fork, whose process has another number */
    ck_assert_int_eq(raise(SIGUSR1), 0);
    ck_assert_ptr_null(content("d.3", &size));
    test_trace_end(trace);
    ck_assert_int_eq(sigaction(SIGUSR1, NULL, &now), 0);
    ck_assert(now.sa_handler == on_signal);
    signal(SIGUSR1, SIG_DFL);
}

TEST(a_handler_of_the_program_is_not_replaced)
{
    struct sigaction now;

    begin();
    ck_assert_int_eq(wf_dump_begin(trace, "/nonexistent/d"), WEFT_OK);
    signal(SIGUSR1, on_signal);
    test_trace_end(trace);
    ck_assert_int_eq(sigaction(SIGUSR1, NULL, &now), 0);
    ck_assert(now.sa_handler == on_signal);
    signal(SIGUSR1, SIG_DFL);
}

/* True if a signal to this thread writes a dump. */
static bool is_written(void)
{
    size_t size;

    (void)unlink(folder_path(&test_runtime, "d.3"));
    ck_assert_int_eq(raise(SIGUSR1), 0);
    return content("d.3", &size) != NULL;
}

static void begin_watching(void)
{
    char prefix[128];

    begin();
    snprintf(prefix, sizeof prefix, "%s/d", test_runtime.path);
    ck_assert_int_eq(wf_dump_begin(trace, prefix), WEFT_OK);
}

/* The default would end the process, so it is not tried here. */
TEST(a_program_may_ignore_the_signal)
{
    static void (*const actions[])(int) = {SIG_IGN, SIG_DFL};
    struct sigaction now;

    for (size_t i = 0; i < WF_COUNT(actions); i++) {
        begin_watching();
        ck_assert(is_written());
        signal(SIGUSR1, actions[i]);
        if (actions[i] == SIG_IGN) ck_assert(!is_written());
        test_trace_end(trace);
        ck_assert_int_eq(sigaction(SIGUSR1, NULL, &now), 0);
        ck_assert(now.sa_handler == actions[i]);
        begin_watching();
        ck_assert(is_written());
        test_trace_end(trace);
        ck_assert_int_eq(sigaction(SIGUSR1, NULL, &now), 0);
        ck_assert(now.sa_handler == actions[i]);
    }
}

/* The program's handler calls weft's, which must not call it back. */
static struct sigaction chained;

static void call_chained(int number, siginfo_t *info, void *machine)
{
    handled++;
    chained.sa_sigaction(number, info, machine);
}

TEST(a_handler_that_calls_wefts_is_called_once)
{
    struct sigaction own = {.sa_flags = SA_SIGINFO};

    own.sa_sigaction = call_chained;
    signal(SIGUSR1, SIG_DFL);
    begin_watching();
    ck_assert_int_eq(sigaction(SIGUSR1, &own, &chained), 0);
    for (int i = 0; i < 2; i++) {
        handled = 0;
        ck_assert(is_written());
        ck_assert_int_eq(handled, 1);
        test_trace_end(trace);
        begin_watching();
    }
    test_trace_end(trace);
    signal(SIGUSR1, SIG_DFL);
}

TEST(a_blocked_signal_writes_when_it_is_unblocked)
{
    sigset_t set;
    size_t size;

    begin_watching();
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    ck_assert(!is_written());
    ck_assert_int_eq(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    ck_assert_ptr_nonnull(content("d.3", &size));
    test_trace_end(trace);
}

enum { STDERR_AS_IT_IS, STDERR_FULL, STDERR_CLOSED };

/* Standard error becomes a pipe that nobody reads. */
static void redirect_stderr(int how)
{
    int ends[2];

    if (how == STDERR_AS_IT_IS || pipe(ends) != 0) return;
    if (how == STDERR_FULL) {
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        while (write(ends[1], "", 1) == 1)
            continue;
        fcntl(ends[1], F_SETFL, 0);
    } else {
        close(ends[0]);
    }
    dup2(ends[1], STDERR_FILENO);
}

/* A process of its own gets SIGTERM while ACTION is its disposition.  Returns how it ended. */
static int terminate(void (*action)(int), int how)
{
    struct wf_trace *own = NULL;
    pid_t child = fork();
    int end;

    if (child == 0) {
        signal(SIGTERM, action);
        alarm(60);
        redirect_stderr(how);
        if (wf_trace_create(&test_identity, 0, &own) != WEFT_OK) _exit(1);
        if (wf_dump_begin(own, folder_path(&test_runtime, "ended")) != WEFT_OK) _exit(2);
        (void)raise(SIGTERM);
        _exit(handled == SIGTERM ? 3 : 4);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &end, 0), child);
    return end;
}

TEST(sigterm_writes_and_does_what_it_does_without)
{
    static void (*const actions[])(int) = {SIG_DFL, on_signal, SIG_IGN};
    size_t size;

    begin(); /* makes the folder */
    handled = 0;
    for (size_t i = 0; i < WF_COUNT(actions); i++) {
        int end = terminate(actions[i], STDERR_AS_IT_IS);

        if (actions[i] == SIG_DFL)
            ck_assert(WIFSIGNALED(end) && WTERMSIG(end) == SIGTERM);
        else
            ck_assert(WIFEXITED(end) && WEXITSTATUS(end) == (actions[i] == SIG_IGN ? 4 : 3));
        ck_assert_int_eq(content("ended.3", &size) != NULL, actions[i] != SIG_IGN);
        (void)unlink(folder_path(&test_runtime, "ended.3"));
    }
    test_trace_end(trace);
}

TEST(sigterm_ends_a_process_that_nobody_listens_to)
{
    size_t size;

    begin();
    for (int how = STDERR_FULL; how <= STDERR_CLOSED; how++) {
        int end = terminate(SIG_DFL, how);

        ck_assert(WIFSIGNALED(end) && WTERMSIG(end) == SIGTERM);
        ck_assert_ptr_nonnull(content("ended.3", &size));
        ck_assert_int_eq(unlink(folder_path(&test_runtime, "ended.3")), 0);
    }
    test_trace_end(trace);
}

static int twice(void)
{
    for (int i = 0; i < 2; i++) {
        handled = 0;
        (void)raise(SIGTERM);
        if (handled != SIGTERM) return 1;
    }
    return 0;
}

/* The program's handler is called once if it asks for that, and calls are restarted if it does. */
TEST(flags_of_the_programs_handler_hold)
{
    struct sigaction once = {.sa_handler = on_signal}, now;
    pid_t child;
    int end;

    begin();
    once.sa_flags = (int)SA_RESETHAND;
    child = fork();
    if (child == 0) {
        struct wf_trace *own = NULL;

        sigaction(SIGTERM, &once, NULL);
        if (wf_trace_create(&test_identity, 0, &own) != WEFT_OK) _exit(1);
        if (wf_dump_begin(own, folder_path(&test_runtime, "once")) != WEFT_OK) _exit(2);
        sigaction(SIGTERM, NULL, &now);
        if ((now.sa_flags & (SA_RESTART | SA_ONSTACK)) != 0) _exit(3);
        _exit(4 + twice());
    }
    ck_assert_int_eq(waitpid(child, &end, 0), child);
    ck_assert(WIFSIGNALED(end) && WTERMSIG(end) == SIGTERM);
    test_trace_end(trace);
}

/* ---- threads that raise signals without a pause ---- */

static atomic_bool is_done;

static void *raise_signals(void *argument)
{
    while (!is_done)
        (void)raise(SIGUSR1);
    return argument;
}

static void leave(int number)
{
    _exit(number);
}

/* The number of files in the folder that are not complete. */
static int count_unfinished(void)
{
    DIR *folder = opendir(test_runtime.path);
    int count = 0;

    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += strncmp(entry->d_name, ".weft-", 6) == 0;
    closedir(folder);
    return count;
}

/* SIGTERM ends a process whose other thread writes dumps again and again. */
static void end_while_writing(void (*action)(int))
{
    struct wf_trace *own = NULL;
    pthread_t thread;

    alarm(60);
    signal(SIGTERM, action);
    if (wf_trace_create(&test_identity, 64, &own) != WEFT_OK) _exit(1);
    if (wf_dump_begin(own, folder_path(&test_runtime, "ended")) != WEFT_OK) _exit(2);
    if (pthread_create(&thread, NULL, raise_signals, NULL) != 0) _exit(3);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    (void)raise(SIGTERM);
    _exit(4);
}

TEST(sigterm_leaves_no_unfinished_files)
{
    enum { PROCESSES = 20 };

    begin();
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = fork();
        int end;

        ck_assert_int_ge(child, 0);
        if (child == 0) end_while_writing(i % 2 == 0 ? SIG_DFL : leave);
        ck_assert_int_eq(waitpid(child, &end, 0), child);
        ck_assert(i % 2 == 0 ? WIFSIGNALED(end) && WTERMSIG(end) == SIGTERM
                             : WIFEXITED(end) && WEXITSTATUS(end) == SIGTERM);
        ck_assert_int_eq(count_unfinished(), 0);
    }
    test_trace_end(trace);
}

static sigjmp_buf place;

static void jump(int number)
{
    (void)number;
    siglongjmp(place, 1);
}

TEST(a_handler_that_jumps_out_of_a_dump_does_not_stop_dumps)
{
    enum { JUMPS = 100 };
    struct itimerval soon = {.it_value = {.tv_usec = 20}};
    volatile int jumps = 0;

    begin_watching();
    signal(SIGALRM, jump);
    if (sigsetjmp(place, 1) != 0) jumps++;
    while (jumps < JUMPS) {
        soon.it_value.tv_usec = 20 + 3 * jumps;
        ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
        for (;;)
            (void)raise(SIGUSR1);
    }
    signal(SIGALRM, SIG_DFL);
    ck_assert(is_written());
    test_trace_end(trace);
}

/* ---- forks ---- */

/* The child of a fork: its handler writes nothing, and traces of its own end. */
static int act_as_child(void)
{
    struct wf_trace *own = NULL;
    size_t size;

    alarm(60);
    (void)raise(SIGUSR1);
    if (wf_trace_create(&test_identity, 0, &own) != WEFT_OK) return 1;
    if (wf_dump_begin(own, folder_path(&test_runtime, "child")) != WEFT_OK) return 2;
    wf_trace_destroy(own); /* must not wait for the parent's thread */
    return content("child.3", &size) == NULL ? 0 : 3;
}

TEST(a_fork_during_a_dump_neither_writes_nor_waits)
{
    pthread_t thread;
    int status;

    begin_watching();
    ck_assert_int_eq(pthread_create(&thread, NULL, raise_signals, NULL), 0);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();

        ck_assert_int_ge(child, 0);
        if (child == 0) _exit(act_as_child());
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %d: %x", i,
                      (unsigned)status);
    }
    is_done = true;
    pthread_join(thread, NULL);
    ck_assert(is_written());
    ck_assert_int_eq(access(trace->path, R_OK), 0);
    test_trace_end(trace);
}
