/* local_ranks.c - see local_ranks.h. */
#include "common/local_ranks.h"

#include "common/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct local_ranks {
    bool is_first; /* later ones of a command choose the same backend, and need not log it again */
    int32_t size;
    pid_t pids[LOCAL_RANKS_MAX];
    const char *backend;
    local_rank_main *rank;
    void *self;
};

static _Noreturn void child_main(const struct local_ranks *ranks, int32_t rank,
                                 const char *rendezvous, int fd)
{
    weft_options options = {.struct_size = sizeof options,
                            .backend = ranks->backend,
                            .rank = rank,
                            .size = ranks->size,
                            .rendezvous = rendezvous};

    if (!ranks->is_first) setenv("WEFT_LOG", "warning", 0);
    _exit(ranks->rank(ranks->self, &options, fd) == WEFT_OK ? CLI_OK : CLI_NO);
}

static weft_status start(struct local_ranks *ranks, const int fds[2])
{
    char rendezvous[64];
    pid_t parent = getpid();

    snprintf(rendezvous, sizeof rendezvous, "unix:weft-ranks-%ld-%llx", (long)getpid(),
             (unsigned long long)wf_now_ns());
    for (int32_t rank = 0; rank < ranks->size; rank++) {
        pid_t pid = fork();

        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* no rank outlives the command */
            if (getppid() != parent) _exit(CLI_NO);
            close(fds[0]);
            child_main(ranks, rank, rendezvous, fds[1]);
        }
        if (pid < 0)
            return wf_fail(WEFT_ERR_SYSTEM, "rank %d could not be started: %s", (int)rank,
                           strerror(errno));
        ranks->pids[rank] = pid;
    }
    return WEFT_OK;
}

/* Wait for all ranks; after a failure, kill them first. */
static weft_status end(struct local_ranks *ranks, weft_status status)
{
    for (int32_t rank = 0; rank < ranks->size; rank++) {
        int code = 0;

        if (ranks->pids[rank] <= 0) continue;
        if (status != WEFT_OK) kill(ranks->pids[rank], SIGKILL);
        waitpid(ranks->pids[rank], &code, 0);
        if (status == WEFT_OK && code != 0)
            status = WIFSIGNALED(code) ? wf_fail(WEFT_ERR_PEER, "rank %d was ended by signal %d",
                                                 (int)rank, WTERMSIG(code))
                                       : wf_fail(WEFT_ERR_PEER, "rank %d ended with code %d",
                                                 (int)rank, WEXITSTATUS(code));
    }
    return status;
}

/* ---- messages ---- */

weft_status local_rank_send(int fd, const void *message, size_t bytes)
{
    if (write(fd, message, bytes) == (ssize_t)bytes) return WEFT_OK;
    return wf_fail(WEFT_ERR_SYSTEM, "the command that started this rank is gone");
}

bool local_ranks_receive(int fd, void *message, size_t bytes, weft_status *status)
{
    ssize_t got;

    do
        got = read(fd, message, bytes);
    while (got < 0 && errno == EINTR);
    *status = got == 0 || got == (ssize_t)bytes
                  ? WEFT_OK
                  : wf_fail(WEFT_ERR_SYSTEM, "the pipe to the ranks broke");
    return got == (ssize_t)bytes;
}

/* Does TEXT begin with "rank 3: "? */
static bool names_a_rank(const char *text)
{
    size_t digits;

    if (strncmp(text, "rank ", 5) != 0) return false;
    digits = strspn(text + 5, "0123456789");
    return digits > 0 && text[5 + digits] == ':';
}

weft_status local_rank_fail(weft_status status, int32_t rank, const char *text, size_t length)
{
    if (names_a_rank(text)) return wf_fail(status, "%.*s", (int)length, text);
    return wf_fail(status, "rank %d: %.*s", (int)rank, (int)length, text);
}

/* ---- running ---- */

weft_status local_ranks_join(const weft_options *options, local_rank_main *rank,
                             local_ranks_reader *read_messages, void *self)
{
    weft_status status, ended;
    int fds[2];

    if (pipe(fds) != 0) return wf_fail(WEFT_ERR_SYSTEM, "no pipe: %s", strerror(errno));
    ended = rank(self, options, fds[1]);
    close(fds[1]);
    status = read_messages(self, fds[0]);
    close(fds[0]);
    return status != WEFT_OK ? status : ended;
}

weft_status local_ranks_run(int32_t size, const char *backend, local_rank_main *rank,
                            local_ranks_reader *read_messages, void *self)
{
    static bool had_one;
    struct local_ranks ranks = {
        .is_first = !had_one, .size = size, .backend = backend, .rank = rank, .self = self};
    weft_status status;
    int fds[2];

    had_one = true;
    if (pipe(fds) != 0) return wf_fail(WEFT_ERR_SYSTEM, "no pipe: %s", strerror(errno));
    status = start(&ranks, fds);
    close(fds[1]);
    if (status == WEFT_OK) status = read_messages(self, fds[0]);
    close(fds[0]);
    return end(&ranks, status);
}
