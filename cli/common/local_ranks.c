/* local_ranks.c - see local_ranks.h. */
#include "common/local_ranks.h"

#include "common/children.h"
#include "common/cli.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FRAME_BYTES = 4096, /* at most PIPE_BUF, so that frames of several ranks do not mix */
    CAUSE_MS = 10000    /* that the cause of an error may come after the error of a peer */
};

/* A write to the pipe of the command: a part of a message of rank 0, or the error of a rank. */
struct frame {
    int32_t rank;
    weft_status status; /* WEFT_OK: DATA is a part of a message, else the text of the error */
    uint32_t bytes;
    uint32_t is_last; /* of the message */
    char data[FRAME_BYTES - 16];
};
_Static_assert(sizeof(struct frame) == FRAME_BYTES, "a frame without padding");

struct local_rank {
    int32_t rank;
    int fd;                      /* the pipe of the command; -1: none */
    const struct local_job *job; /* with fd -1: receives the messages in this process */
};

struct local_ranks {
    bool is_first; /* later jobs of a command choose the same backend and do not log it again */
    int32_t size;
    pid_t pids[LOCAL_RANKS_MAX];
    const char *backend;
    const struct local_job *job;
};

/* ---- one rank ---- */

static weft_status write_frame(int fd, const struct frame *frame)
{
    size_t bytes = offsetof(struct frame, data) + frame->bytes;

    if (write(fd, frame, bytes) == (ssize_t)bytes) return WEFT_OK;
    return wf_fail(WEFT_ERR_SYSTEM, "the launcher of this rank has ended");
}

weft_status local_rank_send(const struct local_rank *rank, const void *message, size_t bytes)
{
    struct frame frame = {.rank = rank->rank};
    const char *rest = message;

    if (rank->rank != 0) return WEFT_OK;
    if (rank->fd < 0) return rank->job->receive(rank->job->self, message, bytes);
    do {
        frame.bytes = (uint32_t)(bytes < sizeof frame.data ? bytes : sizeof frame.data);
        if (frame.bytes > 0) memcpy(frame.data, rest, frame.bytes);
        rest += frame.bytes;
        bytes -= frame.bytes;
        frame.is_last = bytes == 0;
        WF_TRY(write_frame(rank->fd, &frame));
    } while (bytes > 0);
    return WEFT_OK;
}

/* Join by OPTIONS, work, and leave.  RANK's number is known when it has joined. */
static weft_status run_rank(const struct local_job *job, const weft_init_options *options,
                            struct local_rank *rank)
{
    weft_context *context;
    weft_status status = weft_init(options, &context);

    if (status != WEFT_OK) return status;
    rank->rank = weft_rank(context);
    status = job->work(job->self, context, rank);
    if (status == WEFT_OK) weft_context_release(&context);
    return status;
}

static _Noreturn void child_main(const struct local_ranks *ranks, int32_t number,
                                 const char *rendezvous, int fd)
{
    weft_init_options options = {.struct_size = sizeof options,
                                 .backend = ranks->backend,
                                 .rank = number,
                                 .size = ranks->size,
                                 .rendezvous = rendezvous};
    struct local_rank rank = {.rank = number, .fd = fd, .job = ranks->job};
    struct frame failure = {.rank = number, .is_last = 1};

    if (!ranks->is_first) setenv("WEFT_LOG", "warning", 0);
    if (ranks->job->prepare != NULL) ranks->job->prepare(ranks->job->self, number);
    failure.status = run_rank(ranks->job, &options, &rank);
    if (failure.status == WEFT_OK) _exit(CLI_OK);
    snprintf(failure.data, sizeof failure.data, "%s", weft_last_error());
    failure.bytes = (uint32_t)strlen(failure.data) + 1;
    (void)write_frame(fd, &failure);
    _exit(CLI_NO);
}

/* ---- the command ---- */

static weft_status start(struct local_ranks *ranks, const int fds[2])
{
    char rendezvous[64];

    snprintf(rendezvous, sizeof rendezvous, "unix:weft-ranks-%ld-%llx", (long)getpid(),
             (unsigned long long)wf_now_ns());
    for (int32_t rank = 0; rank < ranks->size; rank++) {
        pid_t pid = cli_fork();

        if (pid == 0) {
            close(fds[0]);
            child_main(ranks, rank, rendezvous, fds[1]);
        }
        if (pid < 0)
            return wf_fail(WEFT_ERR_SYSTEM, "rank %d could not be started: %s", (int)rank,
                           kit_error_text(errno));
        ranks->pids[rank] = pid;
    }
    return WEFT_OK;
}

/* Wait for all ranks; after a failure, kill them first. */
static weft_status end(struct local_ranks *ranks, weft_status status)
{
    for (int32_t rank = 0; rank < ranks->size; rank++) {
        int code;

        if (ranks->pids[rank] <= 0) continue;
        if (status != WEFT_OK) kill(ranks->pids[rank], SIGKILL);
        code = cli_wait(ranks->pids[rank]);
        if (status == WEFT_OK && code != 0)
            status = WIFSIGNALED(code) ? wf_fail(WEFT_ERR_PEER, "rank %d was ended by signal %d",
                                                 (int)rank, WTERMSIG(code))
                                       : wf_fail(WEFT_ERR_PEER, "rank %d ended with code %d",
                                                 (int)rank, WEXITSTATUS(code));
    }
    return status;
}

/* True if TEXT begins with "rank 3: ". */
static bool names_a_rank(const char *text)
{
    size_t digits;

    if (strncmp(text, "rank ", 5) != 0) return false;
    digits = strspn(text + 5, "0123456789");
    return digits > 0 && text[5 + digits] == ':';
}

/* Fail with STATUS and the TEXT of RANK, which may begin with a rank already. */
static weft_status fail_for_rank(weft_status status, int32_t rank, const char *text)
{
    char copy[FRAME_BYTES]; /* TEXT may be the last error itself */

    snprintf(copy, sizeof copy, "%s", text);
    if (names_a_rank(copy)) return wf_fail(status, "%s", copy);
    return wf_fail(status, "rank %d: %s", (int)rank, copy);
}

/* Read BYTES; fewer only at the end of the pipe or after an error. */
static size_t read_all(int fd, void *to, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t got = read(fd, (char *)to + done, bytes - done);

        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += (size_t)got;
    }
    return done;
}

/* The next frame.  False at the end, with *STATUS WEFT_OK, and after an error. */
static bool read_frame(int fd, struct frame *frame, weft_status *status)
{
    size_t header = offsetof(struct frame, data), got = read_all(fd, frame, header);

    *status = WEFT_OK;
    if (got == 0) return false;
    if (got == header && frame->bytes <= sizeof frame->data &&
        read_all(fd, frame->data, frame->bytes) == frame->bytes)
        return true;
    *status = wf_fail(WEFT_ERR_SYSTEM, "the pipe to the ranks broke");
    return false;
}

/* FIRST is the error of a rank that has lost a peer.  The peer may report the cause a little later:
 * write that to FIRST instead. */
static void prefer_cause(int fd, struct frame *first)
{
    uint64_t now_ns = wf_now_ns(), end_ns = now_ns + CAUSE_MS * UINT64_C(1000000);
    struct frame frame;
    weft_status status;

    for (; first->status == WEFT_ERR_PEER && now_ns < end_ns; now_ns = wf_now_ns()) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};

        if (poll(&waiting, 1, (int)((end_ns - now_ns) / 1000000)) <= 0 ||
            !read_frame(fd, &frame, &status))
            return;
        if (frame.status != WEFT_OK && frame.status != WEFT_ERR_PEER) *first = frame;
    }
}

/* Hand the messages of rank 0 to JOB until all ranks have closed the pipe. */
static weft_status receive_all(const struct local_job *job, int fd)
{
    struct wf_text message = {0};
    struct frame frame;
    weft_status status;

    while (read_frame(fd, &frame, &status)) {
        if (frame.status != WEFT_OK) {
            prefer_cause(fd, &frame);
            status = fail_for_rank(frame.status, frame.rank, frame.data);
            break;
        }
        wf_text_append(&message, frame.data, frame.bytes);
        if (!frame.is_last) continue;
        status = wf_text_status(&message);
        if (status == WEFT_OK) status = job->receive(job->self, message.data, message.length);
        wf_text_free(&message);
        if (status != WEFT_OK) break;
    }
    wf_text_free(&message);
    return status;
}

/* ---- running ---- */

weft_status local_ranks_join(const weft_init_options *options, const struct local_job *job)
{
    struct local_rank rank = {.rank = options->rank, .fd = -1, .job = job};
    weft_status status = run_rank(job, options, &rank);

    return status == WEFT_OK ? WEFT_OK : fail_for_rank(status, rank.rank, weft_last_error());
}

weft_status local_ranks_run(int32_t size, const char *backend, const struct local_job *job)
{
    static bool had_one;
    struct local_ranks ranks = {.is_first = !had_one, .size = size, .backend = backend, .job = job};
    weft_status status;
    int fds[2];

    had_one = true;
    if (pipe(fds) != 0) return wf_fail(WEFT_ERR_SYSTEM, "no pipe: %s", kit_error_text(errno));
    status = start(&ranks, fds);
    close(fds[1]);
    if (status == WEFT_OK) status = receive_all(job, fds[0]);
    close(fds[0]);
    return end(&ranks, status);
}
