#include "support/open_files.h"
#include "support/rendezvous.h"
#include "support/suite.h"

#include <poll.h>
#include <sys/resource.h>

static struct rv_rank ranks[64];

/* All bytes that the other side sends until it closes; -1 if it does not close within five
 * seconds. */
static ssize_t read_to_end(int fd)
{
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    char bytes[256];
    ssize_t total = 0;

    while (poll(&waiting, 1, 8000) > 0) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got <= 0) return total;
        total += got;
    }
    return -1;
}

static void all_ok(int32_t size)
{
    for (int32_t rank = 0; rank < size; rank++)
        ck_assert_msg(ranks[rank].status == WEFT_OK, "rank %d: %s", rank, ranks[rank].text);
}

TEST(ranks_meet_over_every_family)
{
    static const char *const addresses[] = {"127.0.0.1", "localhost", "unix:weft-test-server",
                                            "[::1]"};

    for (size_t i = 0; i < WF_COUNT(addresses); i++) {
        struct wf_address probe;
        int fds[WF_MAX_LISTENERS];
        size_t count;
        struct rv rv;

        ck_assert_int_eq(wf_address_parse("it", addresses[i], 0, &probe), WEFT_OK);
        if (wf_address_listen(&probe, fds, &count) != WEFT_OK) {
            printf("skipped %s: %s\n", addresses[i], weft_last_error());
            continue;
        }
        while (count > 0)
            close(fds[--count]);
        rv = rv_begin(3, addresses[i], 300 * WF_SECOND_NS);
        rv_all(ranks, &rv, 3, rv_gather);
        all_ok(3);
        wf_server_release(&rv.server);
    }
}

TEST(garbage_gets_no_byte_back)
{
    static const char *const garbage[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02", "\n",
                                          "weft-rv0 almost but not quite"};
    struct rv rv = rv_begin(2, "127.0.0.1", 300 * WF_SECOND_NS);

    for (size_t i = 0; i < WF_COUNT(garbage); i++) {
        int fd = rv_connect_raw(&rv);
        ck_assert_int_gt(send(fd, garbage[i], strlen(garbage[i]), MSG_NOSIGNAL), 0);
        ck_assert_int_eq(read_to_end(fd), 0);
        close(fd);
    }
    rv_all(ranks, &rv, 2, rv_gather);
    all_ok(2);
    wf_server_release(&rv.server);
}

TEST(a_hello_alone_gets_a_nonce_and_an_end)
{
    struct rv rv = rv_begin(2, "127.0.0.1", 300 * WF_SECOND_NS);
    uint8_t nonce[WF_NONCE_BYTES] = {0}, hello[WF_HELLO_BYTES], junk[4096] = {1};
    int fd = rv_connect_raw(&rv), guess = rv_connect_raw(&rv);

    wf_join_hello(nonce, hello);
    ck_assert_int_eq(send(guess, hello, sizeof hello, 0), sizeof hello);
    rv_sleep_ms(50);
    ck_assert_int_gt(send(guess, junk, sizeof junk, MSG_NOSIGNAL), 0); /* an invalid proof */
    ck_assert_int_lt(read_to_end(guess), 200);
    ck_assert_int_eq(send(fd, hello, sizeof hello, 0), sizeof hello);
    rv_all(ranks, &rv, 2, rv_gather);
    all_ok(2);
    ck_assert_int_eq(read_to_end(fd), WF_HELLO_BYTES); /* after the stage's time limit */
    close(fd);
    close(guess);
    wf_server_release(&rv.server);
}

TEST(silent_connections_do_not_keep_ranks_out)
{
    struct rv rv = rv_begin(4, "127.0.0.1", 300 * WF_SECOND_NS);
    int silent[300];

    for (size_t i = 0; i < WF_COUNT(silent); i++)
        silent[i] = rv_connect_raw(&rv);
    rv_all(ranks, &rv, 4, rv_gather);
    all_ok(4);
    for (size_t i = 0; i < WF_COUNT(silent); i++)
        close(silent[i]);
    wf_server_release(&rv.server);
}

static struct rv scanned;
static atomic_bool scanning;

static void *scan(void *argument)
{
    (void)argument;
    while (scanning) {
        int fd = -1;

        if (wf_address_connect(&scanned.address, wf_now_ns() + WF_SECOND_NS, &fd) != WEFT_OK) break;
        if (fd % 3 != 0 && send(fd, "\0\1\2\3\4\5\6\7", 8, MSG_NOSIGNAL) < 0) rv_sleep_ms(1);
        close(fd);
    }
    return NULL;
}

TEST(ranks_work_while_the_port_is_scanned)
{
    pthread_t scanner;

    scanned = rv_begin(4, "127.0.0.1", 300 * WF_SECOND_NS);
    scanning = true;
    ck_assert_int_eq(pthread_create(&scanner, NULL, scan, NULL), 0);
    for (int i = 0; i < 5; i++) { /* the server restarts when all ranks have left */
        rv_all(ranks, &scanned, 4, rv_gather);
        all_ok(4);
    }
    scanning = false;
    pthread_join(scanner, NULL);
    wf_server_release(&scanned.server);
}

static void gather_many(struct rv_rank *self)
{
    for (int i = 0; i < 200 && self->status == WEFT_OK; i++)
        rv_gather(self);
}

TEST(jobs_one_after_another_leave_nothing_behind)
{
    struct rv rv = rv_begin(3, "unix:weft-test-jobs", 300 * WF_SECOND_NS);
    int64_t live = 0;
    int files = 0;

    for (int i = 0; i < 20; i++) {
        rv_all(ranks, &rv, 3, gather_many);
        all_ok(3);
        rv_sleep_ms(i < 2 ? 50 : 1);
        if (i == 1) live = wf_mem_live();
        if (i == 1) files = open_files();
    }
    while (wf_mem_live() > live || open_files() > files)
        rv_sleep_ms(1); /* the server detects the last disconnection later */
    wf_server_release(&rv.server);
}

TEST(too_few_file_descriptors_are_a_sentence)
{
    struct rlimit before, low;
    struct wf_server_options options = {.size = 100, .join_timeout_ns = WF_SECOND_NS};
    struct wf_address address = {.host = "127.0.0.1"};
    struct wf_server *server;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    ck_assert_int_eq(wf_server_create(&options, &address, &server), WEFT_ERR_SYSTEM);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "rendezvous of 100 ranks opens about 110 files"));
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "; raise the limit of open files, which is 64 (ulimit -n)"));
}

/* What counts is not the limit but what the process has left of it. */
TEST(files_that_are_open_already_count)
{
    struct rlimit before, low;
    struct wf_server_options options = {.size = 100, .join_timeout_ns = WF_SECOND_NS};
    struct wf_address address = {.host = "127.0.0.1"};
    struct wf_server *server;
    int taken[200];
    weft_status status;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = 256;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (size_t i = 0; i < WF_COUNT(taken); i++)
        taken[i] = dup(0);
    status = wf_server_create(&options, &address, &server);
    for (size_t i = 0; i < WF_COUNT(taken); i++)
        close(taken[i]);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_int_eq(status, WEFT_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "which is 256 (ulimit -n)"));
}

static weft_status make(void *server)
{
    struct wf_server_options options = {.size = 3, .join_timeout_ns = WF_SECOND_NS};
    struct wf_address address = {.host = "weft-test-memory", .is_unix = true};

    return wf_server_create(&options, &address, server);
}

TEST(no_allocation_that_fails_leaves_anything)
{
    struct wf_server *server = NULL;
    int64_t live = wf_mem_live();
    int files = open_files();

    for (uint64_t n = 1;; n++) {
        weft_status status;

        wf_mem_fail_at(n);
        status = make(&server);
        wf_mem_fail_at(0);
        if (status == WEFT_OK) break;
        ck_assert_int_eq(status, WEFT_ERR_NO_MEMORY);
        ck_assert_int_eq(wf_mem_live(), live);
        ck_assert_int_eq(open_files(), files);
    }
    wf_server_release(&server);
    ck_assert_int_eq(wf_mem_live(), live);
}
