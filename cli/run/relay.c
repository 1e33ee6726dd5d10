/* relay.c - copies the output of the ranks line by line, with the rank before each line. */
#include "run/run.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* A longer line is copied in pieces. */
#define LONGEST_LINE (1u << 20)

/* Write all of TEXT, also if the output is non-blocking.  False if the output is closed. */
static bool write_all(int fd, const struct wf_text *text)
{
    size_t sent = 0;

    while (sent < text->length) {
        ssize_t put = write(fd, text->data + sent, text->length - sent);

        if (put >= 0) {
            sent += (size_t)put;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 1000);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

static void add_prefix(const struct run_job *job, int32_t index, int to, struct wf_text *out)
{
    FILE *file = to == STDOUT_FILENO ? stdout : stderr;
    int width = 1;

    if (!job->prefix || job->threads) return;
    for (int32_t most = job->count - 1; most >= 10; most /= 10)
        width++;
    wf_text_add(out, "%s[%*d]%s ", cli_colour(file, CLI_DIM), width, index,
                cli_colour(file, CLI_PLAIN));
}

static void remember(struct run_process *process, const char *line, size_t length)
{
    size_t kept = length < sizeof process->last_line ? length : sizeof process->last_line - 1;

    if (length == 0) return;
    memcpy(process->last_line, line, kept);
    process->last_line[kept] = '\0';
}

/* Move the complete lines of PIPE to OUT.  ALL: also the last line without a line end. */
static void take_lines(struct run_job *job, int32_t index, struct run_pipe *pipe, bool all,
                       struct wf_text *out)
{
    const char *at = pipe->line.data, *end = at + pipe->line.length;

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;

        if (newline == NULL && !all) break;
        if (job->shown < 0 || job->shown == index) {
            add_prefix(job, index, pipe->to, out);
            wf_text_append(out, at, (size_t)(stop - at));
            wf_text_char(out, '\n');
        }
        if (pipe->to == STDERR_FILENO) remember(&job->processes[index], at, (size_t)(stop - at));
        at = newline != NULL ? newline + 1 : end;
    }
    if (at == pipe->line.data) return;
    memmove(pipe->line.data, at, (size_t)(end - at));
    pipe->line.length = (size_t)(end - at);
}

static bool pass_on(struct run_job *job, int32_t index, struct run_pipe *pipe, bool all)
{
    struct wf_text out = {0};
    bool heard;

    if (pipe->line.length == 0) return true;
    take_lines(job, index, pipe, all || pipe->line.length > LONGEST_LINE, &out);
    heard = write_all(pipe->to, &out);
    wf_text_free(&out);
    return heard;
}

void run_relay_rest(struct run_job *job, int32_t index, struct run_pipe *pipe)
{
    (void)pass_on(job, index, pipe, true);
    wf_text_free(&pipe->line);
    if (pipe->from >= 0) close(pipe->from);
    pipe->from = -1;
}

bool run_relay(struct run_job *job, int32_t index, struct run_pipe *pipe)
{
    char bytes[16384];
    ssize_t got;

    for (int i = 0; i < 8; i++) { /* then the other ranks are served */
        got = read(pipe->from, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (got <= 0) {
            run_relay_rest(job, index, pipe);
            return true;
        }
        wf_text_append(&pipe->line, bytes, (size_t)got);
        if (pipe->line.failed) wf_text_free(&pipe->line); /* out of memory: the output is lost */
    }
    return pass_on(job, index, pipe, false);
}
