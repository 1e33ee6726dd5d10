/* ccl_endpoint.c - passes file descriptors between the processes of a host, in datagrams over Unix
 * sockets.
 *
 * The queue of a socket holds few datagrams, so sending and receiving alternate until all are
 * done. */
#include "ccl_window.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The message that carries a file descriptor. */
struct handle_note {
    uint64_t nonce; /* the receiver's */
    int32_t from, reserved;
};

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

weft_status ccl_endpoint_open(struct ccl_endpoint *endpoint)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t length = sizeof name.sun_family; /* the kernel chooses the name */
    size_t used;

    endpoint->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (endpoint->socket < 0)
        return plug_fail(WEFT_ERR_SYSTEM, "cannot open a socket to share memory: %s",
                         strerror(errno));
    if (bind(endpoint->socket, (struct sockaddr *)&name, length) != 0) goto refused;
    length = sizeof name;
    if (getsockname(endpoint->socket, (struct sockaddr *)&name, &length) != 0) goto refused;
    used = length - offsetof(struct sockaddr_un, sun_path);
    if (used > sizeof endpoint->address.name) {
        errno = ENAMETOOLONG;
        goto refused;
    }
    endpoint->address.length = (uint32_t)used;
    memcpy(endpoint->address.name, name.sun_path, used);
    if (getrandom(&endpoint->address.nonce, sizeof endpoint->address.nonce, 0) !=
        sizeof endpoint->address.nonce)
        goto refused;
    return WEFT_OK;

refused:
    ccl_endpoint_close(endpoint);
    return plug_fail(WEFT_ERR_SYSTEM, "cannot bind a socket to share memory: %s", strerror(errno));
}

void ccl_endpoint_close(struct ccl_endpoint *endpoint)
{
    int kept = errno;

    if (endpoint->socket >= 0) close(endpoint->socket);
    endpoint->socket = -1;
    errno = kept;
}

/* Returns true if FILE was sent.  *FAILED is an errno value if it cannot be sent at all. */
static bool send_file(const struct ccl_endpoint *endpoint, const struct ccl_endpoint_address *to,
                      int32_t from, int file, int *failed)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct handle_note note = {.nonce = to->nonce, .from = from};
    struct iovec bytes = {&note, sizeof note};
    union control control = {.room = {0}};
    struct msghdr message = {.msg_name = &name,
                             .msg_namelen =
                                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + to->length),
                             .msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};

    memcpy(name.sun_path, to->name, to->length);
    control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &file, sizeof file);
    if (sendmsg(endpoint->socket, &message, MSG_NOSIGNAL) >= 0) return true;
    if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR) *failed = errno;
    return false;
}

/* Returns the rank that sent a file, and *FILE.  Returns -1 if no file arrived, or only one for
 * another receiver. */
static int32_t receive_file(const struct ccl_endpoint *endpoint, int32_t size, int *file)
{
    struct handle_note note = {0};
    struct iovec bytes = {&note, sizeof note};
    union control control = {.room = {0}};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(endpoint->socket, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;

    if (header == NULL || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int)))
        return -1;
    memcpy(file, CMSG_DATA(header), sizeof *file);
    if (got == sizeof note && note.nonce == endpoint->address.nonce && note.from >= 0 &&
        note.from < size)
        return note.from;
    close(*file);
    return -1;
}

/* Receive all files that have arrived.  Returns the number of awaited files among them. */
static int32_t collect(const struct ccl_endpoint *endpoint, const struct gpu_comm *comm,
                       const bool *wanted, int *files)
{
    int32_t came = 0, from;
    int file = -1;

    while ((from = receive_file(endpoint, comm->size, &file)) >= 0) {
        if (!wanted[from] || files[from] >= 0) {
            close(file);
            continue;
        }
        files[from] = file;
        came++;
    }
    return came;
}

static int32_t name_missing(const struct gpu_comm *comm, const bool *wanted, const int *files)
{
    for (int32_t r = 0; r < comm->size; r++)
        if (wanted[r] && files[r] < 0) return r;
    return -1;
}

/* Send FILE to the ranks from *NEXT on.  Stops at a rank whose queue is full. */
static weft_status deliver(const struct ccl_endpoint *endpoint, const struct gpu_comm *comm,
                           const struct ccl_endpoint_address *addresses, const bool *wanted,
                           int file, int32_t *next)
{
    for (; *next < comm->size; (*next)++) {
        int failed = 0;

        if (!wanted[*next]) continue;
        if (send_file(endpoint, &addresses[*next], comm->rank, file, &failed)) continue;
        if (failed == 0) return WEFT_OK; /* the rank's queue is full */
        return plug_fail(WEFT_ERR_PEER, "cannot send memory handles to rank %d of %s: %s", *next,
                         comm->name, strerror(failed));
    }
    return WEFT_OK;
}

weft_status ccl_endpoint_run(struct ccl_endpoint *endpoint, struct gpu_comm *comm,
                             const struct ccl_endpoint_address *addresses, const bool *wanted,
                             int file, int *files)
{
    uint64_t began = plug_now();
    int32_t missing = 0, next = 0;

    for (int32_t r = 0; r < comm->size; r++) {
        files[r] = -1;
        if (wanted[r]) missing++;
    }
    while (missing > 0 || next < comm->size) {
        struct pollfd readable = {endpoint->socket, POLLIN, 0};

        PLUG_TRY(deliver(endpoint, comm, addresses, wanted, file, &next));
        missing -= collect(endpoint, comm, wanted, files);
        if (missing == 0 && next == comm->size) break;
        PLUG_TRY(gpu_comm_cause(comm));
        if (comm->timeout_ns >= 0 && plug_now() - began >= (uint64_t)comm->timeout_ns)
            return plug_fail(WEFT_ERR_TIMEOUT, "rank %d of %s sent no memory handles within %.3f s",
                             name_missing(comm, wanted, files), comm->name,
                             (double)comm->timeout_ns / 1e9);
        poll(&readable, 1, next < comm->size ? 1 : 20);
    }
    return WEFT_OK;
}
