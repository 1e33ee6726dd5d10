#include "rendezvous/rendezvous.h"
#include "support/suite.h"
#include "weft/status.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *round_trip(const char *text)
{
    static char out[WF_ADDRESS_TEXT];
    struct wf_address address;

    if (wf_address_parse("IT", text, -1, &address) != WEFT_OK) return weft_last_error();
    wf_address_print(&address, out);
    return out;
}

TEST(addresses_print_as_they_are_written)
{
    static const char *const texts[] = {"localhost:1", "127.0.0.1:65535", "[::1]:80",
                                        "node-01.cluster:29400", "unix:weft-1000-ab"};

    for (size_t i = 0; i < WF_COUNT(texts); i++)
        ck_assert_str_eq(round_trip(texts[i]), texts[i]);
}

TEST(an_invalid_address_is_named_with_the_valid_forms)
{
    static const char *const texts[] = {"",      ":80",     "host",     "host:",    "host:65536",
                                        "[::1]", "[::1:80", "::1:80",   "host:80 ", "host:-1",
                                        "unix:", "[]:80",   "host:80x", "[::1]x:80"};

    for (size_t i = 0; i < WF_COUNT(texts); i++) {
        const char *said = round_trip(texts[i]);
        ck_assert_msg(strncmp(said, "IT is \"", 7) == 0 && strstr(said, "expected") != NULL,
                      "\"%s\" gives %s", texts[i], said);
    }
}

TEST(a_port_may_have_a_default)
{
    struct wf_address address;

    ck_assert_int_eq(wf_address_parse("IT", "0.0.0.0", 29400, &address), WEFT_OK);
    ck_assert_uint_eq(address.port, 29400);
    ck_assert_int_eq(wf_address_parse("IT", "[::]:7", 29400, &address), WEFT_OK);
    ck_assert_uint_eq(address.port, 7);
}

TEST(loopback_is_known_by_sight)
{
    static const char *const local[] = {"localhost:1", "127.0.0.1:1", "127.5.5.5:1", "[::1]:1",
                                        "unix:x"};
    static const char *const remote[] = {"10.0.0.1:1", "0.0.0.0:1", "[::]:1", "node:1"};
    struct wf_address address;

    for (size_t i = 0; i < WF_COUNT(local); i++) {
        ck_assert_int_eq(wf_address_parse("IT", local[i], -1, &address), WEFT_OK);
        ck_assert(wf_address_is_local(&address));
    }
    for (size_t i = 0; i < WF_COUNT(remote); i++) {
        ck_assert_int_eq(wf_address_parse("IT", remote[i], -1, &address), WEFT_OK);
        ck_assert(!wf_address_is_local(&address));
    }
}

/* Listen at TEXT, connect, and accept the connection.  False if the family is not available. */
static bool connects(const char *text)
{
    struct wf_address address;
    int listeners[WF_MAX_LISTENERS], fd, arrived = -1;
    size_t count;

    ck_assert_int_eq(wf_address_parse("IT", text, -1, &address), WEFT_OK);
    if (wf_address_listen(&address, listeners, &count) != WEFT_OK) return false;
    ck_assert(address.is_unix || address.port != 0);
    ck_assert_int_eq(wf_address_connect(&address, wf_now_ns() + 300 * WF_SECOND_NS, &fd), WEFT_OK);
    for (size_t i = 0; i < count; i++) {
        int got = accept(listeners[i], NULL, NULL);
        if (got >= 0) arrived = got;
        close(listeners[i]);
    }
    ck_assert_int_ge(arrived, 0);
    ck_assert(wf_address_same_user(fd) && wf_address_same_user(arrived));
    ck_assert(wf_address_same_host(fd) && wf_address_same_host(arrived));
    close(arrived);
    close(fd);
    return true;
}

TEST(every_family_connects)
{
    ck_assert(connects("127.0.0.1:0"));
    ck_assert(connects("localhost:0"));
    ck_assert(connects("unix:weft-test-address"));
    if (!connects("[::1]:0")) puts("skipped: IPv6 loopback is not there");
}

/* Two addresses of the loopback stand for two hosts. */
TEST(ends_with_two_addresses_are_two_hosts)
{
    struct sockaddr_in near = {.sin_family = AF_INET}, far = near;
    socklen_t bytes = sizeof far;
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

    near.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    far.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&far, sizeof far), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&far, &bytes), 0);
    ck_assert(!wf_address_same_host(listener)); /* it is not connected */
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&near, sizeof near), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&far, sizeof far), 0);
    ck_assert(!wf_address_same_host(fd));
    close(fd);
    close(listener);
}

TEST(connecting_without_a_listener_times_out)
{
    struct wf_address address = {.host = "weft-nobody-listens-here", .is_unix = true};
    uint64_t begun = wf_now_ns();
    int fd = -1;

    ck_assert_int_eq(wf_address_connect(&address, begun + WF_SECOND_NS / 5, &fd), WEFT_ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "the rendezvous cannot be reached: "));
    ck_assert_int_eq(fd, -1);
}

TEST(a_taken_address_is_a_sentence)
{
    struct wf_address address = {.host = "127.0.0.1"};
    int listeners[WF_MAX_LISTENERS], more[WF_MAX_LISTENERS];
    size_t count, more_count;

    ck_assert_int_eq(wf_address_listen(&address, listeners, &count), WEFT_OK);
    ck_assert_int_eq(wf_address_listen(&address, more, &more_count), WEFT_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "another process listens there"));
    for (size_t i = 0; i < count; i++)
        close(listeners[i]);
}

/* A process of USER that listens on ADDRESS until it is killed, at the latest when this process
 * ends. */
static pid_t listen_as(struct wf_address *address, uid_t user)
{
    int listeners[WF_MAX_LISTENERS];
    size_t count;
    pid_t child = fork();

    if (child != 0) return child;
    if (setuid(user) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        wf_address_listen(address, listeners, &count) != WEFT_OK)
        _exit(1);
    for (;;)
        pause();
}

TEST(a_taken_name_is_reported_with_its_process_and_user)
{
    uid_t user = geteuid() == 0 ? 65534 : geteuid(); /* only root can change to another user */
    struct wf_address address = {.is_unix = true};
    int listeners[WF_MAX_LISTENERS], fd;
    char wanted[64], peer[WF_PEER_TEXT];
    size_t count;
    pid_t child;

    snprintf(address.host, sizeof address.host, "weft-test-taken-%d", (int)getpid());
    child = listen_as(&address, user);
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(wf_address_connect(&address, wf_now_ns() + 300 * WF_SECOND_NS, &fd), WEFT_OK);
    ck_assert_int_eq(wf_address_same_user(fd), user == geteuid());
    wf_address_peer(fd, peer);
    wf_fd_close(fd);
    ck_assert_int_eq(wf_address_listen(&address, listeners, &count), WEFT_ERR_SYSTEM);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    snprintf(wanted, sizeof wanted, "process %d of ", (int)child);
    ck_assert_msg(strncmp(peer, wanted, strlen(wanted)) == 0, "%s", peer);
    ck_assert_msg(strstr(weft_last_error(), peer) != NULL, "%s", weft_last_error());
    ck_assert_msg(strstr(weft_last_error(), address.host) != NULL, "%s", weft_last_error());
    snprintf(wanted, sizeof wanted, "uid %u", (unsigned)user);
    ck_assert_msg(strstr(peer, wanted) != NULL, "%s", peer);
}

TEST(an_unknown_name_gives_a_message)
{
    struct wf_address address = {.host = "no-such-host.invalid", .port = 1};
    int fd;

    ck_assert_int_eq(wf_address_connect(&address, wf_now_ns() + 300 * WF_SECOND_NS, &fd),
                     WEFT_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "no-such-host.invalid"));
}
