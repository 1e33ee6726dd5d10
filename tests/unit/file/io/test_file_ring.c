/* Reads through a ring give the bytes that plain reads give, and without a ring there are plain
 * reads.  The program's own syscall() refuses rings, or makes their calls fail, when a test asks.
 */
#include "file/file.h"
#include "support/checkpoints.h"
#include "support/random.h"
#include "support/suite.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

enum { FILE_BYTES = (12 << 20) + 4321 };

static int refused_setups, failing_enters, enters;

long syscall(long number, ...)
{
    long (*real)(long, ...);
    void *found = dlsym(RTLD_NEXT, "syscall");
    long a[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_io_uring_setup && refused_setups > 0) {
        refused_setups--;
        errno = EPERM;
        return -1;
    }
    if (number == SYS_io_uring_enter && failing_enters > 0 && a[1] > 1) {
        failing_enters--;
        a[1] = 1; /* one request is taken, then none */
    } else if (number == SYS_io_uring_enter && failing_enters > 0 && a[1] > 0) {
        errno = ENOMEM;
        return -1;
    }
    enters += number == SYS_io_uring_enter;
    memcpy(&real, &found, sizeof real);
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* This machine permits rings, and has what they need. */
static bool rings_work(void)
{
#ifdef IORING_FEAT_RW_CUR_POS
    const uint32_t needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_RW_CUR_POS;
    struct io_uring_params params = {0};
    int fd = (int)syscall(SYS_io_uring_setup, 8, &params);

    if (fd >= 0) close(fd);
    return fd >= 0 && (params.features & needed) == needed;
#else
    return false;
#endif
}

static char *content; /* of the file "numbers" */

static void write_numbers(void)
{
    content = malloc(FILE_BYTES);
    ck_assert_ptr_nonnull(content);
    for (size_t i = 0; i < FILE_BYTES; i++)
        content[i] = (char)(i * 2654435761u >> 13 & 255);
    folder_write(&folder, "numbers", content, FILE_BYTES);
}

/* Any range that reading may ask for. */
static void check_ranges(struct wf_inputs *inputs)
{
    struct random random = random_begin("file_ring");
    char *got = malloc(FILE_BYTES);
    uint32_t index;

    ck_assert_ptr_nonnull(got);
    OK(wf_inputs_add(inputs, "numbers", &index));
    for (int i = 0; i < 60; i++) {
        size_t at = i == 0 ? 0 : (size_t)random_in(&random, 0, FILE_BYTES - 1);
        size_t bytes =
            i == 0 ? FILE_BYTES : (size_t)random_in(&random, 0, FILE_BYTES - (int32_t)at);
        memset(got, 0x55, FILE_BYTES);
        OK(wf_inputs_read(inputs, index, at, got, bytes));
        ck_assert_msg(memcmp(got, content + at, bytes) == 0, "%zu bytes at %zu", bytes, at);
        ck_assert(bytes == FILE_BYTES || got[bytes] == 0x55);
    }
    free(got);
}

START_TEST(long_reads_use_a_ring_where_there_can_be_one)
{
    struct wf_inputs inputs;
    bool can_be = rings_work();
    uint32_t index;

    write_numbers();
    OK(wf_inputs_begin(&inputs, folder.path));
    OK(wf_inputs_add(&inputs, "numbers", &index));
    enters = 0;
    OK(wf_inputs_read(&inputs, index, 0, content, WF_RING_LEAST - 1));
    ck_assert_int_eq(enters, 0);
    OK(wf_inputs_read(&inputs, index, 0, content, FILE_BYTES));
    ck_assert_msg((enters > 0) == can_be, "%d calls", enters);
    ck_assert_int_eq(inputs.rings.idle != NULL, can_be);
    wf_inputs_end(&inputs);
    free(content);
}
END_TEST

START_TEST(both_ways_read_the_same_bytes)
{
    struct wf_inputs inputs;

    write_numbers();
    for (int refused = 0; refused < 2; refused++) {
        refused_setups = refused;
        OK(wf_inputs_begin(&inputs, folder.path));
        check_ranges(&inputs);
        ck_assert_int_eq(refused_setups, 0);
        ck_assert(refused == 0 || (inputs.rings.refused && inputs.rings.idle == NULL));
        wf_inputs_end(&inputs);
    }
    free(content);
}
END_TEST

/* A ring that takes some requests and refuses the rest: plain reads do the rest. */
START_TEST(requests_that_are_not_taken_are_read_without_a_ring)
{
    struct wf_inputs inputs;

    write_numbers();
    OK(wf_inputs_begin(&inputs, folder.path));
    failing_enters = 1 << 20;
    check_ranges(&inputs);
    failing_enters = 0;
    check_ranges(&inputs); /* and the ring is as good as before */
    wf_inputs_end(&inputs);
    free(content);
}
END_TEST

START_TEST(the_end_of_the_file_and_errors_end_the_read)
{
    struct wf_rings rings;
    struct wf_ring *ring;
    char *got = malloc(FILE_BYTES + (4 << 20));
    int fd;

    write_numbers();
    fd = open(folder_path(&folder, "numbers"), O_RDONLY);
    wf_rings_begin(&rings);
    ring = wf_rings_take(&rings);
    if (ring != NULL) { /* NULL: this machine does not permit it */
        ck_assert_uint_eq(wf_ring_read(ring, fd, got, FILE_BYTES + (4 << 20), 0), FILE_BYTES);
        ck_assert_int_eq(memcmp(got, content, FILE_BYTES), 0);
        ck_assert_uint_eq(wf_ring_read(ring, fd, got, 4 << 20, FILE_BYTES), 0);
        ck_assert_uint_eq(wf_ring_read(ring, -1, got, 4 << 20, 0), 0);
        ck_assert_uint_eq(wf_ring_read(ring, fd, got, 3 << 20, 17), 3 << 20);
        ck_assert_int_eq(memcmp(got, content + 17, 3 << 20), 0);
        wf_rings_give(&rings, ring);
        ck_assert_ptr_eq(wf_rings_take(&rings), ring);
        wf_rings_give(&rings, ring);
    }
    wf_rings_end(&rings);
    close(fd);
    free(got);
    free(content);
}
END_TEST

START_TEST(a_forked_process_reads_without_the_ring)
{
    struct wf_inputs inputs;
    uint32_t index;
    char *got = malloc(4 << 20);
    int status = -1;
    pid_t child;

    write_numbers();
    OK(wf_inputs_begin(&inputs, folder.path));
    OK(wf_inputs_add(&inputs, "numbers", &index));
    OK(wf_inputs_read(&inputs, index, 0, got, 4 << 20));
    child = fork();
    if (child == 0)
        _exit(wf_rings_take(&inputs.rings) == NULL &&
                      wf_inputs_read(&inputs, index, 5, got, 4 << 20) == WEFT_OK &&
                      memcmp(got, content + 5, 4 << 20) == 0
                  ? 0
                  : 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    OK(wf_inputs_read(&inputs, index, 9, got, 4 << 20));
    ck_assert_int_eq(memcmp(got, content + 9, 4 << 20), 0);
    wf_inputs_end(&inputs);
    free(got);
    free(content);
}
END_TEST

SUITE(file_ring, long_reads_use_a_ring_where_there_can_be_one, both_ways_read_the_same_bytes,
      requests_that_are_not_taken_are_read_without_a_ring,
      the_end_of_the_file_and_errors_end_the_read, a_forked_process_reads_without_the_ring)
