/* socket.c - addresses, and descriptors that are sent. */
#include "link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PREFIX       "unix:"
#define PREFIX_BYTES 5

weft_status wf_feed_address_check(const char *address)
{
    size_t length = strlen(address);

    if (strncmp(address, PREFIX, PREFIX_BYTES) == 0 && length > PREFIX_BYTES &&
        length < WF_FEED_ADDRESS_TEXT)
        return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "the address is \"%.200s\"; expected unix:NAME with a name of 1 to %d bytes",
                   address, WF_FEED_ADDRESS_TEXT - PREFIX_BYTES - 1);
}

/* An abstract name: it ends with its socket. */
static socklen_t fill(const char *address, struct sockaddr_un *out)
{
    size_t length = strlen(address) - PREFIX_BYTES;

    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path + 1, address + PREFIX_BYTES, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static weft_status fail_system(const char *what, const char *address)
{
    return wf_fail(WEFT_ERR_SYSTEM, "%s %.200s: %s", what, address, strerror(errno));
}

weft_status wf_feed_listen(const char *address, int *fd)
{
    struct sockaddr_un name;
    socklen_t bytes = fill(address, &name);
    weft_status status;
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (made >= 0 && bind(made, (const struct sockaddr *)&name, bytes) == 0 &&
        listen(made, 64) == 0) {
        *fd = made;
        return WEFT_OK;
    }
    status = fail_system("cannot listen at", address);
    wf_feed_close(&made);
    return status;
}

bool wf_feed_same_user(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

weft_status wf_feed_connect(const char *address, const struct wf_feed_wait *wait, int *fd)
{
    struct sockaddr_un name;
    socklen_t bytes = fill(address, &name);
    weft_status status;
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (made < 0) return fail_system("cannot make a socket for", address);
    while (connect(made, (const struct sockaddr *)&name, bytes) != 0) {
        if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR) {
            status = fail_system("cannot connect to", address);
            wf_feed_close(&made);
            return status;
        }
        if (wf_now_ns() >= wait->deadline_ns) {
            wf_feed_close(&made);
            return wf_fail(WEFT_ERR_TIMEOUT, "no publisher listens at %.200s", address);
        }
        poll(NULL, 0, 5);
        if (wait->progress != NULL) wait->progress(wait->user);
    }
    if (wf_feed_same_user(made)) {
        *fd = made;
        return WEFT_OK;
    }
    wf_feed_close(&made);
    return wf_fail(WEFT_ERR_INVALID, "the process at %.200s belongs to another user", address);
}

ssize_t wf_feed_send(int fd, const void *data, size_t bytes, int fd_out)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec piece = {(void *)(uintptr_t)data, bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    ssize_t put;

    if (fd_out >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control.room;
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &fd_out, sizeof fd_out);
    }
    do
        put = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (put < 0 && errno == EINTR);
    return put;
}

/* Keep the first descriptor of MESSAGE in *FD_IN, and close the others. */
static void take_descriptors(struct msghdr *message, int *fd_in)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
            int found;
            memcpy(&found, (const char *)c + at, sizeof found);
            if (*fd_in < 0)
                *fd_in = found;
            else
                wf_feed_close(&found);
        }
    }
}

ssize_t wf_feed_receive(int fd, void *data, size_t bytes, int *fd_in)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec piece = {data, bytes};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.room};
    ssize_t got;

    do
        got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got >= 0) take_descriptors(&message, fd_in);
    return got;
}

void wf_feed_close(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

struct wf_job_key wf_feed_key(const char *feed, const char *token)
{
    struct wf_job_key job = wf_job_key(token), key;
    weft_blob pieces[] = {{"feed ", 5}, {feed, strlen(feed)}};

    wf_hmac_sha256_pieces(job.bytes, sizeof job.bytes, pieces, WF_COUNT(pieces), key.bytes);
    return key;
}
