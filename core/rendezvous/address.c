/* address.c - addresses of a rendezvous, and sockets that listen on or connect to them.
 *
 * "unix:NAME" is a socket in Linux's abstract namespace: it has no file, it ends with its process,
 * and both ends can ask the kernel for the other's user. */
#include "rendezvous.h"

#include "weft/status.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char unix_prefix[] = "unix:";

static weft_status parse_unix(const char *what, const char *name, struct wf_address *out)
{
    size_t most = sizeof((struct sockaddr_un *)0)->sun_path - 1;

    if (name[0] == '\0' || strlen(name) > most)
        return wf_fail(WEFT_ERR_PARSE,
                       "%s is \"unix:%.120s\"; expected a name of 1 to %zu characters", what, name,
                       most);
    *out = (struct wf_address){.is_unix = true};
    memcpy(out->host, name, strlen(name) + 1);
    return WEFT_OK;
}

weft_status wf_address_parse(const char *what, const char *text, int default_port,
                             struct wf_address *out)
{
    static const char wanted[] = "expected host:port, [IPv6]:port or unix:name";
    const char *host = text, *rest;
    size_t length;
    int64_t port = default_port;
    struct wf_scan scan;

    if (strncmp(text, unix_prefix, strlen(unix_prefix)) == 0)
        return parse_unix(what, text + strlen(unix_prefix), out);
    if (text[0] == '[') {
        host = text + 1;
        length = strcspn(host, "]");
        rest = host + length + (host[length] == ']' ? 1 : 0);
        if (host[length] != ']') length = 0;
    } else {
        length = strcspn(host, ":");
        rest = host + length;
    }
    if (length == 0 || length >= sizeof out->host)
        return wf_fail(WEFT_ERR_PARSE, "%s is \"%.200s\"; %s", what, text, wanted);
    scan = (struct wf_scan){rest, 0};
    if (wf_scan_char(&scan, ':')) {
        if (wf_scan_int(&scan, "a port", &port) != WEFT_OK || !wf_scan_end(&scan) || port > 65535)
            return wf_fail(WEFT_ERR_PARSE, "%s is \"%.200s\"; expected a port from 0 to 65535",
                           what, text);
    } else if (!wf_scan_end(&scan) || default_port < 0) {
        return wf_fail(WEFT_ERR_PARSE, "%s is \"%.200s\"; %s", what, text, wanted);
    }
    *out = (struct wf_address){.port = (uint16_t)port};
    memcpy(out->host, host, length);
    return WEFT_OK;
}

void wf_address_print(const struct wf_address *address, char out[WF_ADDRESS_TEXT])
{
    bool v6 = strchr(address->host, ':') != NULL;

    if (address->is_unix)
        snprintf(out, WF_ADDRESS_TEXT, "%s%s", unix_prefix, address->host);
    else
        snprintf(out, WF_ADDRESS_TEXT, "%s%s%s:%u", v6 ? "[" : "", address->host, v6 ? "]" : "",
                 (unsigned)address->port);
}

bool wf_address_is_local(const struct wf_address *address)
{
    return address->is_unix || strcmp(address->host, "localhost") == 0 ||
           strcmp(address->host, "::1") == 0 || strncmp(address->host, "127.", 4) == 0;
}

/* ---- sockets ---- */

static socklen_t unix_address(const struct wf_address *address, struct sockaddr_un *out)
{
    size_t length = strlen(address->host);

    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path + 1, address->host, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int open_socket(int family)
{
    wf_fd_hold();
    return wf_fd_keep(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/* True if this process can open another file; else errno is set.  getaddrinfo does not tell that it
 * could not. */
static bool can_open(void)
{
    int fd = open_socket(AF_UNIX);

    if (fd >= 0) wf_fd_close(fd);
    return fd >= 0;
}

static weft_status resolve(const struct wf_address *address, bool passive, struct addrinfo **out)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char port[8];
    int code;

    hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
    snprintf(port, sizeof port, "%u", (unsigned)address->port);
    code = getaddrinfo(address->host, port, &hints, out);
    if (code == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_SYSTEM, "the host \"%s\" of the rendezvous cannot be resolved: %s",
                   address->host, can_open() ? gai_strerror(code) : kit_error_text(errno));
}

/* Returns a socket, or -1 with errno set. */
static int listen_on(int family, const struct sockaddr *to, socklen_t bytes)
{
    int fd = open_socket(family), one = 1, saved;

    if (fd < 0) return -1;
    if (family != AF_UNIX) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (family != AF_UNIX) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, to, bytes) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
    saved = errno;
    wf_fd_close(fd);
    errno = saved;
    return -1;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage name;
    socklen_t bytes = sizeof name;

    if (getsockname(fd, (struct sockaddr *)&name, &bytes) != 0) return 0;
    if (name.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&name)->sin6_port);
    return ntohs(((struct sockaddr_in *)&name)->sin_port);
}

static void set_port(struct sockaddr *to, uint16_t port)
{
    if (to->sa_family == AF_INET6) ((struct sockaddr_in6 *)(void *)to)->sin6_port = htons(port);
    if (to->sa_family == AF_INET) ((struct sockaddr_in *)(void *)to)->sin_port = htons(port);
}

static weft_status cannot_listen(const struct wf_address *address, int code)
{
    char text[WF_ADDRESS_TEXT];

    wf_address_print(address, text);
    return wf_fail(WEFT_ERR_SYSTEM, "the rendezvous cannot listen on %s: %s", text,
                   code == EADDRINUSE ? "another process listens there" : kit_error_text(code));
}

/* Another process listens on ADDRESS, a Unix socket: name the process and its user. */
static weft_status name_is_taken(const struct wf_address *address)
{
    char text[WF_ADDRESS_TEXT], owner[WF_PEER_TEXT] = "another process";
    struct sockaddr_un name;
    socklen_t bytes = unix_address(address, &name);
    int fd = open_socket(AF_UNIX);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&name, bytes) == 0) wf_address_peer(fd, owner);
    if (fd >= 0) wf_fd_close(fd);
    wf_address_print(address, text);
    return wf_fail(WEFT_ERR_SYSTEM, "the rendezvous cannot listen on %s: %s listens there", text,
                   owner);
}

static weft_status listen_tcp(struct wf_address *address, int fds[WF_MAX_LISTENERS], size_t *count)
{
    struct addrinfo *found;
    size_t made = 0;
    int first_error = 0;

    WF_TRY(resolve(address, true, &found));
    for (struct addrinfo *a = found; a != NULL && made < WF_MAX_LISTENERS; a = a->ai_next) {
        int fd;

        set_port(a->ai_addr, address->port);
        fd = listen_on(a->ai_family, a->ai_addr, a->ai_addrlen);
        if (fd < 0) {
            if (first_error == 0) first_error = errno;
            continue; /* localhost resolves to ::1 even if IPv6 is off */
        }
        fds[made++] = fd;
        if (address->port == 0) address->port = port_of(fd);
    }
    freeaddrinfo(found);
    if (made == 0) return cannot_listen(address, first_error);
    *count = made;
    return WEFT_OK;
}

weft_status wf_address_listen(struct wf_address *address, int fds[WF_MAX_LISTENERS], size_t *count)
{
    struct sockaddr_un name;
    socklen_t bytes;

    if (!address->is_unix) return listen_tcp(address, fds, count);
    bytes = unix_address(address, &name);
    fds[0] = listen_on(AF_UNIX, (struct sockaddr *)&name, bytes);
    if (fds[0] < 0 && errno == EADDRINUSE) return name_is_taken(address);
    if (fds[0] < 0) return cannot_listen(address, errno);
    *count = 1;
    return WEFT_OK;
}

/* Wait for a connection that is being established.  Returns 0, or an errno value. */
static int finish_connect(int fd, uint64_t deadline_ns)
{
    struct pollfd waiting = {.fd = fd, .events = POLLOUT};
    int code = 0;
    socklen_t bytes = sizeof code;

    for (;;) {
        uint64_t now = wf_now_ns();
        int64_t left_ms = now < deadline_ns ? (int64_t)((deadline_ns - now) / 1000000) + 1 : 0;
        int ready = poll(&waiting, 1, (int)wf_min_i64(left_ms, 1000));

        if (ready > 0) break;
        if (ready < 0 && errno != EINTR) return errno;
        if (left_ms == 0) return ETIMEDOUT;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes) != 0) return errno;
    return code;
}

/* If no process listens on a port, the kernel may choose that port as the local port of the
 * connection.  The socket is then connected to itself. */
static bool is_connected_to_itself(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_bytes = sizeof here, there_bytes = sizeof there;

    return getsockname(fd, (struct sockaddr *)&here, &here_bytes) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &there_bytes) == 0 &&
           here_bytes == there_bytes && memcmp(&here, &there, here_bytes) == 0;
}

/* Makes one attempt.  Returns the socket, or -1 with errno set. */
static int connect_to(int family, const struct sockaddr *to, socklen_t bytes, uint64_t deadline_ns)
{
    uint64_t patience = wf_now_ns() + 3 * WF_SECOND_NS;
    int fd = open_socket(family), one = 1, code;

    if (fd < 0) return -1;
    code = connect(fd, to, bytes) == 0 ? 0 : errno;
    if (code == EINPROGRESS || code == EINTR)
        code = finish_connect(fd, deadline_ns < patience ? deadline_ns : patience);
    if (code == 0 && family != AF_UNIX && is_connected_to_itself(fd)) code = ECONNREFUSED;
    if (code != 0) {
        wf_fd_close(fd);
        errno = code;
        return -1;
    }
    if (family != AF_UNIX) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static int connect_once(const struct wf_address *address, const struct addrinfo *found,
                        uint64_t deadline_ns)
{
    struct sockaddr_un name;
    socklen_t bytes;
    int fd = -1;

    if (address->is_unix) {
        bytes = unix_address(address, &name);
        return connect_to(AF_UNIX, (struct sockaddr *)&name, bytes, deadline_ns);
    }
    for (const struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next)
        fd = connect_to(a->ai_family, a->ai_addr, a->ai_addrlen, deadline_ns);
    return fd;
}

weft_status wf_address_connect(const struct wf_address *address, uint64_t deadline_ns, int *fd)
{
    struct timespec pause = {0, 1000000};
    struct addrinfo *found = NULL;
    int got;

    if (!address->is_unix) WF_TRY(resolve(address, false, &found));
    while ((got = connect_once(address, found, deadline_ns)) < 0) {
        int code = errno;
        bool hopeless = code == EMFILE || code == ENFILE || code == EACCES || code == EPERM;

        if (hopeless || wf_now_ns() >= deadline_ns) {
            if (found != NULL) freeaddrinfo(found);
            return wf_fail(hopeless ? WEFT_ERR_SYSTEM : WEFT_ERR_TIMEOUT,
                           "the rendezvous cannot be reached: %s", kit_error_text(code));
        }
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 100000000) pause.tv_nsec *= 2;
    }
    if (found != NULL) freeaddrinfo(found);
    *fd = got;
    return WEFT_OK;
}

weft_status wf_address_begin(const struct wf_address *address, int *fd)
{
    struct addrinfo *found = NULL;
    char text[WF_ADDRESS_TEXT];
    struct sockaddr_un name;
    socklen_t bytes = 0;
    int code = 0, one = 1;

    if (!address->is_unix)
        WF_TRY(resolve(address, false, &found));
    else
        bytes = unix_address(address, &name);
    *fd = open_socket(address->is_unix ? AF_UNIX : found->ai_family);
    if (*fd >= 0 && address->is_unix)
        code = connect(*fd, (struct sockaddr *)&name, bytes);
    else if (*fd >= 0)
        code = connect(*fd, found->ai_addr, found->ai_addrlen);
    code = *fd < 0 || (code != 0 && errno != EINPROGRESS) ? errno : 0;
    if (found != NULL) freeaddrinfo(found);
    if (code == 0) {
        if (!address->is_unix) setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        return WEFT_OK;
    }
    if (*fd >= 0) wf_fd_close(*fd);
    wf_address_print(address, text);
    return wf_fail(WEFT_ERR_SYSTEM, "%s cannot be reached: %s", text, kit_error_text(code));
}

bool wf_address_same_user(int fd)
{
    struct sockaddr_storage name;
    struct ucred peer;
    socklen_t bytes = sizeof name;

    if (getsockname(fd, (struct sockaddr *)&name, &bytes) != 0) return false;
    if (name.ss_family != AF_UNIX) return true;
    bytes = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

bool wf_address_same_host(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage room;
    } own, peer;
    socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer;

    if (getsockname(fd, &own.any, &own_bytes) != 0) return false;
    if (own.any.sa_family == AF_UNIX) return true;
    if (getpeername(fd, &peer.any, &peer_bytes) != 0) return false;
    if (own.any.sa_family == AF_INET) return own.v4.sin_addr.s_addr == peer.v4.sin_addr.s_addr;
    return own.any.sa_family == AF_INET6 &&
           memcmp(&own.v6.sin6_addr, &peer.v6.sin6_addr, sizeof own.v6.sin6_addr) == 0;
}

/* "user bob (uid 1001)" */
static void print_user(uid_t uid, char *out, size_t bytes)
{
    struct passwd entry, *found = NULL;
    char names[1024];

    if (getpwuid_r(uid, &entry, names, sizeof names, &found) == 0 && found != NULL)
        snprintf(out, bytes, "user %.32s (uid %u)", entry.pw_name, (unsigned)uid);
    else
        snprintf(out, bytes, "the user with uid %u", (unsigned)uid);
}

void wf_address_peer(int fd, char out[WF_PEER_TEXT])
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    char user[64];

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
        snprintf(out, WF_PEER_TEXT, "another process");
        return;
    }
    print_user(peer.uid, user, sizeof user);
    if (peer.pid > 0)
        snprintf(out, WF_PEER_TEXT, "process %d of %s", (int)peer.pid, user);
    else /* the process is in another PID namespace */
        snprintf(out, WF_PEER_TEXT, "a process of %s", user);
}

/* ---- addresses of standbys ---- */

/* The address of a standby: for TCP, the host of NAME and port NUMBER; for a Unix socket, a name
 * made of the user's id and NUMBER. */
static bool address_at(const struct sockaddr *name, socklen_t bytes, uint64_t number,
                       struct wf_address *out)
{
    *out = (struct wf_address){.is_unix = name->sa_family == AF_UNIX};
    if (out->is_unix) {
        snprintf(out->host, sizeof out->host, "weft-%u-standby-%016" PRIx64, (unsigned)geteuid(),
                 number);
        return true;
    }
    if (number > UINT16_MAX) return false;
    out->port = (uint16_t)number;
    return getnameinfo(name, bytes, out->host, sizeof out->host, NULL, 0, NI_NUMERICHOST) == 0;
}

bool wf_address_beside(int fd, struct wf_address *out)
{
    struct sockaddr_storage name;
    socklen_t bytes = sizeof name;
    uint64_t number = 0;

    if (getsockname(fd, (struct sockaddr *)&name, &bytes) != 0) return false;
    while (name.ss_family == AF_UNIX && number == 0)
        wf_random_bytes(&number, sizeof number);
    return address_at((struct sockaddr *)&name, bytes, number, out);
}

uint64_t wf_address_number(const struct wf_address *address)
{
    const char *dash = strrchr(address->host, '-');

    if (!address->is_unix) return address->port;
    return dash != NULL ? strtoull(dash + 1, NULL, 16) : 0;
}

bool wf_address_of_peer(int fd, uint64_t number, struct wf_address *out)
{
    struct sockaddr_storage name = {0};
    socklen_t bytes = sizeof name;

    return getpeername(fd, (struct sockaddr *)&name, &bytes) == 0 &&
           address_at((struct sockaddr *)&name, bytes, number, out);
}
