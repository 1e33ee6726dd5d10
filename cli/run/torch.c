/* torch.c - the variables by which programs of PyTorch find their rank and each other.
 *
 * Rank 0 of such a program serves a store at MASTER_PORT.  Until then the launcher holds the port:
 * its socket is bound, so that the kernel gives the port to no other program, but does not listen,
 * so that rank 0, which sets SO_REUSEADDR as PyTorch does, can bind and listen. */
#include "run/run.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- in the launcher ---- */

/* Bind a new socket to a free port of all addresses: of IPv6 and IPv4, if FAMILY is AF_INET6.
 * Returns the socket, or -1 with errno. */
static int hold_port(int family, uint16_t *port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr *name = family == AF_INET6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t bytes = family == AF_INET6 ? sizeof six : sizeof four;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, off = 0, saved;

    if (fd < 0) return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        (family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) &&
        bind(fd, name, bytes) == 0 && getsockname(fd, name, &bytes) == 0) {
        *port = ntohs(family == AF_INET6 ? six.sin6_port : four.sin_port);
        return fd;
    }
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

bool run_torch_begin(struct run_job *job)
{
    job->master_fd = hold_port(AF_INET6, &job->master_port);
    if (job->master_fd < 0) job->master_fd = hold_port(AF_INET, &job->master_port);
    if (job->master_fd >= 0) return true;
    fprintf(stderr, "weft run: no port for MASTER_PORT: %s\n", kit_error_text(errno));
    return false;
}

void run_torch_end(struct run_job *job)
{
    if (job->master_fd >= 0) close(job->master_fd);
    job->master_fd = -1;
}

/* ---- before the fork ---- */

/* The host at which the ranks join the job: the loopback address, unless --listen gives another. */
static void set_address(const struct run_job *job)
{
    const char *address = weft_rendezvous_address(job->rendezvous), *end = strrchr(address, ':');
    char host[256];

    if (!job->listens || end == NULL || strncmp(address, "unix:", 5) == 0) {
        setenv("MASTER_ADDR", "127.0.0.1", 1);
        return;
    }
    if (address[0] == '[') { /* [IPv6]:port */
        address++;
        end--;
    }
    snprintf(host, sizeof host, "%.*s", (int)(end - address), address);
    setenv("MASTER_ADDR", host, 1);
}

void run_torch_set_variables(const struct run_job *job, int32_t index)
{
    /* A torchrun that started this launcher set these for its own job. */
    static const char *const others[] = {"GROUP_RANK",
                                         "GROUP_WORLD_SIZE",
                                         "ROLE_NAME",
                                         "ROLE_RANK",
                                         "ROLE_WORLD_SIZE",
                                         "TORCHELASTIC_MAX_RESTARTS",
                                         "TORCHELASTIC_RESTART_COUNT",
                                         "TORCHELASTIC_RUN_ID",
                                         "TORCHELASTIC_USE_AGENT_STORE"};

    for (size_t i = 0; i < WF_COUNT(others); i++)
        unsetenv(others[i]);
    run_set_number("RANK", index);
    run_set_number("WORLD_SIZE", job->ranks);
    run_set_number("LOCAL_RANK", index);
    run_set_number("LOCAL_WORLD_SIZE", job->ranks);
    run_set_number("MASTER_PORT", job->master_port);
    set_address(job);
}
