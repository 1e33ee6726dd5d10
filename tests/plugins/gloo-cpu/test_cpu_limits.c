/* Systems with low limits: each gives a clear error, and work continues where possible. */
#include "ranks.h"

#include "support/suite.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

/* Run BODY in its own process, with ranks or alone.  Exit code 77 means that the test cannot run
 * here. */
static void in_child(int (*body)(void))
{
    int status;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) _exit(body());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WEXITSTATUS(status) == 77 ? 0 : status, 0);
}

static weft_status all_reduce(struct rank *rank, void *send, void *recv, uint64_t count)
{
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_REDUCE,
                                 .dtype = WEFT_DTYPE_U8,
                                 .send = send,
                                 .recv = recv,
                                 .count = count};

    return rank->plugin->comm->collective(rank->comm, &args);
}

static void reduce_private(struct rank *rank)
{
    static unsigned char send[3000], recv[3000];

    memset(send, 1, sizeof send);
    RANK_OK(all_reduce(rank, send, recv, sizeof send));
    for (size_t i = 0; i < sizeof recv; i++)
        RANK_CHECK(recv[i] == rank->size);
}

/* ---- /dev/shm of 2 MiB ---- */

static void fill_it_up(struct rank *rank)
{
    void *memory = NULL;

    reduce_private(rank);
    RANK_CHECK(rank->plugin->device->allocate(rank->device, 8u << 20, 0, &memory) ==
               WEFT_ERR_NO_MEMORY);
    RANK_CHECK(strstr(ranks_error(), "/dev/shm, which may be full or small") != NULL);
    reduce_private(rank); /* the communicator has not failed */
}

static int with_tiny_dev_shm(void)
{
    struct ranks_options options = {.size = 2, .timeout_ns = 300 * SECOND, .body = fill_it_up};

    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4m") != 0) {
        printf("skipped: a tiny /dev/shm cannot be made here: %s\n", strerror(errno));
        return 77;
    }
    ranks_knob("WEFT_CPU_DEV_SHM", "1");
    return ranks_run(&options);
}

TEST(a_tiny_dev_shm_is_an_error_with_a_sentence_and_no_crash)
{
    in_child(with_tiny_dev_shm);
}

static void allocate_much(struct rank *rank)
{
    void *memory = NULL;

    RANK_OK(rank->plugin->device->allocate(rank->device, 8u << 20, 0, &memory));
    memset(memory, 1, 8u << 20);
    reduce_private(rank);
}

static int tiny_but_unused(void)
{
    struct ranks_options options = {.size = 2, .timeout_ns = 300 * SECOND, .body = allocate_much};

    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k") != 0) {
        printf("skipped: a tiny /dev/shm cannot be made here: %s\n", strerror(errno));
        return 77;
    }
    return ranks_run(&options);
}

TEST(a_tiny_dev_shm_does_not_matter_by_default)
{
    in_child(tiny_but_unused);
}

/* ---- few files ---- */

static int with_few_files(void)
{
    struct ranks_options options = {.size = 4, .timeout_ns = 300 * SECOND, .body = reduce_private};
    struct rlimit limit = {12, 12};

    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 77;
    return ranks_run(&options);
}

static int with_no_file(void)
{
    struct ranks_options options = {.size = 1, .body = reduce_private};
    struct rlimit limit = {3, 3};

    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 77;
    /* The rank cannot open its device and reports the reason. */
    return ranks_run(&options) == 1 ? 0 : 1;
}

TEST(a_dozen_files_are_enough_for_any_number_of_ranks)
{
    in_child(with_few_files);
}

TEST(no_file_at_all_is_an_error)
{
    in_child(with_no_file);
}

/* ---- small files ---- */

static void check_refused(struct rank *rank, void *device)
{
    void *memory = NULL;

    RANK_CHECK(rank->plugin->device->allocate(device, 64u << 20, 0, &memory) == WEFT_ERR_NO_MEMORY);
    RANK_CHECK(strstr(ranks_error(), "may not make files of more than 4096 bytes") != NULL);
    RANK_CHECK(strstr(ranks_error(), "ulimit -f") != NULL);
}

/* SIGXFSZ would end a rank whose heap grows beyond the limit. */
static void limit_files(struct rank *rank)
{
    weft_device_options options = {.struct_size = sizeof options, .device = -1};
    struct rlimit limit;
    void *another = NULL;

    reduce_private(rank);
    RANK_CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = 4096;
    RANK_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    check_refused(rank, rank->device);
    RANK_OK(rank->plugin->device->open(&options, &another));
    check_refused(rank, another);
    rank->plugin->device->close(another);
    reduce_private(rank);
}

static int with_small_files(void)
{
    struct ranks_options options = {.size = 2, .timeout_ns = 300 * SECOND, .body = limit_files};

    return ranks_run(&options);
}

TEST(a_limit_of_the_size_of_files_is_an_error_and_no_signal)
{
    in_child(with_small_files);
}

/* ---- little address space ---- */

static int with_little_space(void)
{
    struct ranks_options options = {.size = 4, .timeout_ns = 300 * SECOND, .body = reduce_private};
    struct rlimit limit = {UINT64_C(1) << 30, UINT64_C(1) << 30};

    if (setrlimit(RLIMIT_AS, &limit) != 0) return 77;
    ranks_knob("WEFT_CPU_HEAP", "");
    return ranks_run(&options);
}

TEST(a_gigabyte_of_address_space_is_enough)
{
    if (RANKS_SANITIZED)
        printf("skipped: sanitizers need more address space\n");
    else
        in_child(with_little_space);
}

/* ---- a heap that is full ---- */

static void exhaust(struct rank *rank)
{
    static unsigned char send[1 << 20], recv[1 << 20];
    void *memory = NULL;

    RANK_CHECK(rank->plugin->device->allocate(rank->device, 64u << 20, 0, &memory) ==
               WEFT_ERR_NO_MEMORY);
    RANK_CHECK(strstr(ranks_error(), "67108864 bytes do not fit: ") != NULL);
    RANK_OK(rank->plugin->device->allocate(rank->device, 7u << 20, 0, &memory));
    RANK_CHECK(rank->plugin->device->allocate(rank->device, 1u << 20, 0, &memory) ==
               WEFT_ERR_NO_MEMORY);
    RANK_CHECK(strstr(ranks_error(), "1048576 bytes do not fit: 7") != NULL);
    RANK_CHECK(strstr(ranks_error(), " of the 7577600 bytes of the shared heap are in use; "
                                     "WEFT_CPU_HEAP sets its size") != NULL);
    /* No room for a stage: an error that says so, on every rank. */
    RANK_CHECK(all_reduce(rank, send, recv, sizeof send) != WEFT_OK);
    RANK_CHECK(strstr(ranks_error(), "no shared memory to stage private memory") != NULL);
}

TEST(a_full_heap_is_an_error_on_every_rank)
{
    struct ranks_options options = {.size = 2, .timeout_ns = 300 * SECOND, .body = exhaust};

    ranks_knob("WEFT_CPU_HEAP", "7400K");
    ck_assert_int_eq(ranks_run(&options), 0);
    ranks_knob("WEFT_CPU_HEAP", NULL);
}

/* ---- no permission to read other processes ---- */

TEST(private_memory_works_without_cross_memory_attach)
{
    struct ranks_options options = {.size = 3, .timeout_ns = 300 * SECOND, .body = reduce_private};

    ranks_knob("WEFT_CPU_CMA", "0");
    ck_assert_int_eq(ranks_run(&options), 0);
    ranks_knob("WEFT_CPU_CMA", NULL);
}

/* ---- knobs ---- */

static void open_with_bad_knobs(struct rank *rank)
{
    static const char *const sizes[] = {"abc", "-1", "99999999T", "8589934592G", "1KB", " 1"};
    weft_device_options options = {.struct_size = sizeof options, .device = -1};
    void *device = NULL;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ranks_knob("WEFT_CPU_HEAP", sizes[i]);
        RANK_CHECK(rank->plugin->device->open(&options, &device) == WEFT_ERR_INVALID);
        RANK_CHECK(strstr(ranks_error(), "WEFT_CPU_HEAP is \"") != NULL);
        RANK_CHECK(strstr(ranks_error(), sizes[i]) != NULL);
    }
    ranks_knob("WEFT_CPU_HEAP", "8192k");
    ranks_knob("WEFT_CPU_LEVEL", "bogus");
    RANK_CHECK(rank->plugin->device->open(&options, &device) == WEFT_ERR_INVALID);
    RANK_CHECK(strstr(ranks_error(), "WEFT_CPU_LEVEL is \"bogus\"") != NULL);
    ranks_knob("WEFT_CPU_LEVEL", "neon");
    RANK_OK(rank->plugin->device->open(&options, &device));
    rank->plugin->device->close(device);
}

TEST(knobs_that_cannot_be_meant_are_errors)
{
    struct ranks_options options = {
        .size = 1, .timeout_ns = 300 * SECOND, .body = open_with_bad_knobs};

    ck_assert_int_eq(ranks_run(&options), 0);
}

/* The ranks together request more memory than exists. */
static int with_huge_heaps(void)
{
    struct ranks_options options = {.size = 4, .timeout_ns = 300 * SECOND, .body = reduce_private};

    ranks_knob("WEFT_CPU_HEAP", "100000G");
    return ranks_run(&options) == options.size ? 0 : 1;
}

TEST(heaps_that_cannot_all_be_mapped_are_an_error_on_every_rank)
{
    if (RANKS_SANITIZED)
        printf("skipped: sanitizers do not let so much be mapped\n");
    else
        in_child(with_huge_heaps);
}
