#include "symm/symm.h"
#include "support/fake_symm.h"
#include "support/fake_world.h"
#include "support/open_files.h"
#include "support/suite.h"
#include "weft/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world_rank ranks[WORLD_MAX];

/* Run BODY in a fork of this process.  Returns 0, or the line of a failed claim. */
static int in_child(int (*body)(void *), void *argument)
{
    int code = 0;
    pid_t child = fork();

    if (child == 0) {
        alarm(60);
        code = body(argument);
        if (code != 0) fprintf(stderr, "line %d in the child: %s\n", code, weft_last_error());
        _exit(code != 0);
    }
    return child > 0 && waitpid(child, &code, 0) == child ? code : -1;
}

#define CLAIM(claim)                                                                               \
    do {                                                                                           \
        if (!(claim)) return __LINE__;                                                             \
    } while (0)

#define REFUSED(call)                                                                              \
    CLAIM(                                                                                         \
        (call) == WEFT_ERR_INVALID &&                                                              \
        strstr(weft_last_error(), "this process is a fork of the process that called weft_init"))

/* ---- descriptors ---- */

static int are_closed(void *argument)
{
    const int *fds = argument;

    for (int i = 0; i < 4; i++)
        CLAIM(fcntl(fds[i], F_GETFD) < 0 && errno == EBADF);
    CLAIM(fcntl(fds[4], F_GETFD) >= 0);
    return 0;
}

/* ---- objects ---- */

static struct {
    weft_context *context;
    weft_comm *comm;
    weft_symm *symm;
    weft_stream *stream;
    weft_work *work;
    void *memory;
} made;

static int comm_is_refused(void *argument)
{
    weft_comm *comm = made.comm, *out = NULL;
    uint32_t level;
    float x = 1, y;

    (void)argument;
    REFUSED(weft_barrier(comm, NULL));
    REFUSED(weft_barrier(weft_world(made.context), NULL));
    REFUSED(weft_all_reduce(comm, &x, &y, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    REFUSED(weft_send(comm, &x, 1, WEFT_DTYPE_F32, 0, 0, NULL));
    REFUSED(weft_receive(comm, &y, 1, WEFT_DTYPE_F32, 0, 0, NULL));
    REFUSED(weft_group_begin(comm));
    REFUSED(weft_group_end(comm));
    REFUSED(weft_comm_split(comm, 0, 0, NULL, &out));
    REFUSED(weft_comm_create(comm, 1, (int32_t[]){0}, NULL, &out));
    REFUSED(weft_comm_support(comm, WEFT_COLL_BARRIER, 0, 0, &level));
    REFUSED(weft_comm_async_error(comm));
    CLAIM(weft_comm_native(comm) == NULL);
    weft_comm_abort(comm);
    weft_comm_release(&made.comm);
    CLAIM(made.comm == NULL);
    return 0;
}

static int symm_is_refused(void *argument)
{
    weft_symm *symm = made.symm, *out = NULL;
    weft_symm_device device;
    uint64_t x = 0;

    (void)argument;
    REFUSED(weft_symm_create(made.comm, 64, NULL, &out));
    REFUSED(weft_symm_register(made.comm, made.memory, 16, NULL, &out));
    REFUSED(weft_symm_put_to(symm, &x, 0, 0, 8, NULL));
    REFUSED(weft_symm_get_from(symm, 0, 0, &x, 8, NULL));
    REFUSED(weft_symm_put_signal_to(symm, &x, 0, 0, 8, 0, 1, WEFT_SIGNAL_SET, NULL));
    REFUSED(weft_symm_signal_to(symm, 0, 0, 1, WEFT_SIGNAL_SET, NULL));
    REFUSED(weft_symm_wait_from(symm, 0, 0, WEFT_COMPARE_EQ, 1, 0, NULL));
    REFUSED(weft_symm_test_from(symm, 0, 0, WEFT_COMPARE_EQ, 1));
    REFUSED(weft_symm_fence(symm, NULL));
    REFUSED(weft_symm_quiet(symm, NULL));
    REFUSED(weft_symm_barrier(symm, NULL));
    REFUSED(weft_symm_offset(symm, &x, 8, &x));
    REFUSED(weft_symm_device_get(symm, &device));
    weft_symm_release(&made.symm);
    CLAIM(made.symm == NULL && fake.windows == 1);
    return 0;
}

static int context_is_refused(void *argument)
{
    weft_context *context = made.context, *other = NULL;
    weft_device_info device = {.struct_size = sizeof device};
    weft_pointer_info info = {.struct_size = sizeof info};
    weft_stream *stream = NULL;
    weft_work *work = NULL;
    void *memory = NULL;

    (void)argument;
    REFUSED(weft_init(NULL, &other));
    REFUSED(weft_device_get(context, &device));
    REFUSED(weft_context_bind_thread(context));
    REFUSED(weft_alloc(context, 16, WEFT_MEMORY_DEVICE, &memory));
    REFUSED(weft_free(context, made.memory));
    REFUSED(weft_pointer_get(context, made.memory, &info));
    REFUSED(weft_memory_copy(context, "x", made.memory, 1, NULL));
    REFUSED(weft_memory_fill(context, made.memory, 0, 1, NULL));
    REFUSED(weft_stream_create(context, &stream));
    REFUSED(weft_stream_wrap(context, NULL, &stream));
    REFUSED(weft_stream_test(made.stream));
    REFUSED(weft_context_wait(context, made.stream, 0));
    REFUSED(weft_work_record(context, made.stream, &work));
    REFUSED(weft_work_wrap(context, made.memory, &work));
    CLAIM(weft_stream_native(made.stream) == NULL);
    weft_stream_release(&made.stream);
    CLAIM(made.stream == NULL);
    weft_context_release(&made.context);
    CLAIM(made.context == NULL && fake.devices == 1);
    return 0;
}

static int work_is_refused(void *argument)
{
    int64_t ns;

    (void)argument;
    REFUSED(weft_work_test(made.work));
    REFUSED(weft_work_wait(made.work, 0));
    REFUSED(weft_stream_wait_work(made.stream, made.work));
    REFUSED(weft_work_elapsed(made.work, made.work, &ns));
    CLAIM(weft_work_native(made.work) == NULL);
    weft_work_release(&made.work);
    CLAIM(made.work == NULL && fake.events == 1);
    return 0;
}

static int begins_anew(void *argument)
{
    (void)argument;
    made.context = world_alone();
    CLAIM(weft_barrier(weft_world(made.context), NULL) == WEFT_OK);
    weft_context_release(&made.context);
    return 0;
}

static int is_refused_a_context(void *argument)
{
    weft_init_options options = {.struct_size = sizeof options, .size = 1};
    weft_context *context = NULL;

    (void)argument;
    REFUSED(weft_init(NULL, &context));
    REFUSED(wf_context_create(&options, fake_plugin(), &context));
    return 0;
}

/* First: the process has had no context. */
TEST(a_fork_may_begin_a_context_only_if_its_parent_has_not)
{
    fake_reset();
    ck_assert_int_eq(in_child(begins_anew, NULL), 0);
    made.context = world_alone();
    weft_context_release(&made.context);
    ck_assert_int_eq(in_child(is_refused_a_context, NULL), 0);
    made.context = world_alone(); /* and the parent stays usable */
    weft_context_release(&made.context);
}

TEST(descriptors_that_were_kept_are_closed_in_a_fork)
{
    int fds[5], pair[2];

    wf_fd_hold();
    ck_assert_int_eq(wf_fd_keep_pair(pipe2(fds, O_CLOEXEC), fds), 0);
    for (int i = 2; i < 4; i++) {
        wf_fd_hold();
        fds[i] = wf_fd_keep(open("/dev/null", O_RDONLY | O_CLOEXEC));
        ck_assert_int_ge(fds[i], 0);
    }
    fds[4] = open("/dev/null", O_RDONLY | O_CLOEXEC); /* the program's own descriptor */
    ck_assert_int_eq(in_child(are_closed, fds), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_ge(fcntl(fds[i], F_GETFD), 0);
    for (int i = 0; i < 4; i++)
        wf_fd_close(fds[i]);
    ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0); /* numbers that were kept before */
    fds[0] = fds[1] = fds[2] = fds[3] = 1000;
    ck_assert_int_le(pair[0], fds[4]);
    fds[4] = pair[0];
    ck_assert_int_eq(in_child(are_closed, fds), 0);
    close(pair[0]);
    close(pair[1]);
}

TEST(a_failure_to_open_stays_what_it_is)
{
    int fds[2] = {-1, -1};

    wf_fd_hold();
    ck_assert_int_eq(wf_fd_keep(open("/nosuch/file", O_RDONLY)), -1);
    ck_assert_int_eq(errno, ENOENT);
    wf_fd_hold();
    ck_assert_int_eq(wf_fd_keep_pair(pipe2(fds, ~0), fds), -1);
    ck_assert_int_eq(errno, EINVAL);
}

TEST(a_fork_is_refused_every_call_and_its_parent_goes_on)
{
    fake_reset();
    made.context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_comm_split(weft_world(made.context), 0, 0, NULL, &made.comm), WEFT_OK);
    ck_assert_int_eq(weft_symm_create(made.comm, 64, NULL, &made.symm), WEFT_OK);
    ck_assert_int_eq(weft_stream_create(made.context, &made.stream), WEFT_OK);
    ck_assert_int_eq(weft_work_record(made.context, made.stream, &made.work), WEFT_OK);
    ck_assert_int_eq(weft_alloc(made.context, 16, WEFT_MEMORY_DEVICE, &made.memory), WEFT_OK);
    ck_assert_int_eq(in_child(comm_is_refused, NULL), 0);
    ck_assert_int_eq(in_child(symm_is_refused, NULL), 0);
    ck_assert_int_eq(in_child(context_is_refused, NULL), 0);
    ck_assert_int_eq(in_child(work_is_refused, NULL), 0);
    ck_assert_int_eq(weft_barrier(made.comm, NULL), WEFT_OK);
    ck_assert_int_eq(weft_symm_fence(made.symm, NULL), WEFT_OK);
    ck_assert_int_eq(weft_work_wait(made.work, WEFT_FOREVER), WEFT_OK);
    ck_assert_int_eq(weft_free(made.context, made.memory), WEFT_OK);
    weft_work_release(&made.work);
    weft_stream_release(&made.stream);
    weft_symm_release(&made.symm);
    weft_comm_release(&made.comm);
    weft_context_release(&made.context);
}

static int cannot_serve(void *argument)
{
    weft_rendezvous *rendezvous = argument;

    CLAIM(weft_rendezvous_serve(rendezvous) == WEFT_ERR_INVALID);
    CLAIM(strstr(weft_last_error(), "is a fork of the process that called weft_rendezvous_open"));
    weft_rendezvous_report_gone(rendezvous, 0, "is gone");
    weft_rendezvous_close(&rendezvous);
    CLAIM(rendezvous == NULL);
    return 0;
}

TEST(a_fork_cannot_serve_for_its_parent)
{
    weft_rendezvous_options options = {.struct_size = sizeof options, .size = 1};
    weft_rendezvous *rendezvous = NULL;

    ck_assert_int_eq(weft_rendezvous_open(&options, &rendezvous), WEFT_OK);
    ck_assert_int_eq(in_child(cannot_serve, rendezvous), 0);
    ck_assert_int_eq(weft_rendezvous_serve(rendezvous), WEFT_OK);
    ck_assert_int_eq(in_child(cannot_serve, rendezvous), 0);
    weft_rendezvous_close(&rendezvous);
}

/* ---- a world of several ranks ---- */

static int uses_threads_of_its_parent(void *argument)
{
    weft_threads *threads = argument;
    weft_init_options options = {.struct_size = sizeof options, .threads = threads};
    weft_context *context = NULL;

    REFUSED(wf_context_create(&options, fake_plugin(), &context));
    weft_threads_release(&threads);
    CLAIM(threads == NULL);
    return 0;
}

TEST(a_rendezvous_is_of_no_use_to_a_fork)
{
    weft_threads *threads;

    fake_reset();
    ck_assert_int_eq(weft_threads_create(2, &threads), WEFT_OK);
    ck_assert_int_eq(in_child(uses_threads_of_its_parent, threads), 0);
    weft_threads_release(&threads);
    world_run(ranks, 2, NULL, NULL);
    all_saw(ranks, 2, WEFT_OK, "");
}

/* True if exec closes every descriptor above standard error, except the program's own in SINCE. */
static bool all_close_on_exec(const bool *since)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    bool all = folder != NULL;

    while (all && (entry = readdir(folder)) != NULL) {
        int fd = atoi(entry->d_name);

        if (fd > STDERR_FILENO && fd < 1024 && !since[fd])
            all = (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
    }
    if (folder != NULL) closedir(folder);
    return all;
}

static bool before[1024];
static int files_before;

static int has_no_more_files(void *argument)
{
    (void)argument;
    CLAIM(open_files() == files_before);
    return 0;
}

static void fork_while_all_are_here(struct world_rank *self)
{
    HOLDS(weft_barrier(weft_world(self->context), NULL) == WEFT_OK);
    if (self->rank == 0) {
        HOLDS(open_files() > files_before);
        HOLDS(all_close_on_exec(before));
        HOLDS(in_child(has_no_more_files, NULL) == 0);
    }
    HOLDS(weft_barrier(weft_world(self->context), NULL) == WEFT_OK);
}

TEST(a_fork_has_none_of_the_rendezvous_descriptors)
{
    fake_reset();
    for (int fd = 0; fd < 1024; fd++)
        before[fd] = fcntl(fd, F_GETFD) >= 0;
    files_before = open_files();
    world_run(ranks, 3, fork_while_all_are_here, NULL);
    ck_assert_int_eq(open_files(), files_before);
}

/* The first test runs in a process that has created no context yet. */
