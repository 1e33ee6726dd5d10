/* spawn.c - starts one process per rank, each in its own process group, with the variables of
 * its rank. */
#include "run/run.h"

#include "common/children.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- before the fork: the launcher may have threads, so its child sets no variables ---- */

void run_set_number(const char *name, int32_t value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* A process that waits for a place has no rank yet.  It gets one that a launcher may give. */
static void set_variables(const struct run_job *job, int32_t index)
{
    int32_t rank = index % job->ranks, number = job->processes[index].number;

    setenv("WEFT_LAUNCHER", "weft", 1);
    run_set_number("WEFT_RANK", rank);
    run_set_number("WEFT_SIZE", job->ranks);
    run_set_number("WEFT_LOCAL_RANK", rank);
    if (number > 0)
        run_set_number("WEFT_SPARE", number);
    else
        unsetenv("WEFT_SPARE");
    setenv("WEFT_RENDEZVOUS", weft_rendezvous_address(job->rendezvous), 1);
    setenv("WEFT_TOKEN", weft_rendezvous_token(job->rendezvous), 1);
    setenv("WEFT_SERVED", "1", 1);
    if (job->ranks_min > 0) run_set_number("WEFT_ELASTIC", job->ranks_min);
    run_torch_set_variables(job, rank);
}

/* ---- in the child, between fork and exec ---- */

static bool gets_stdin(const struct run_job *job, int32_t index)
{
    if (strcmp(job->stdin_policy, "none") == 0 || job->processes[index].number > 0) return false;
    /* A process outside the terminal's foreground group would be stopped by reading from it. */
    if (strcmp(job->stdin_policy, "auto") == 0) return index == 0 && !isatty(STDIN_FILENO);
    return strtol(job->stdin_policy, NULL, 10) == index;
}

static void become(const struct run_job *job, int32_t index, int out, int err, int report)
{
    int code;

    setpgid(0, 0);
    if (!gets_stdin(job, index)) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null >= 0) dup2(null, STDIN_FILENO);
    }
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    if (job->threads) {
        close(report);
        _exit(run_entry(job));
    }
    execvp(job->program[0], job->program);
    code = errno;
    if (write(report, &code, sizeof code) != sizeof code) _exit(126);
    _exit(127);
}

/* ---- in the launcher ---- */

/* A name without a slash is searched in PATH only, also if the file is in the current folder. */
static bool complain(const struct run_job *job, int code)
{
    const char *name = job->program[0];
    bool is_searched = strchr(name, '/') == NULL;

    fprintf(stderr, "weft run: cannot run %s: ", name);
    if (code != ENOENT || !is_searched)
        fprintf(stderr, "%s\n", kit_error_text(code));
    else if (access(name, X_OK) == 0)
        fprintf(stderr, "it is in no folder of PATH; ./%s exists: `weft run -n %d ./%s`\n", name,
                (int)job->ranks, name);
    else
        fprintf(stderr, "it is in no folder of PATH\n");
    return false;
}

static bool make_pipes(int out[2], int err[2], int report[2])
{
    int saved;

    if (pipe2(out, O_CLOEXEC) != 0) return false;
    if (pipe2(err, O_CLOEXEC) != 0) goto close_out;
    if (pipe2(report, O_CLOEXEC) != 0) goto close_err;
    return true;

close_err:
    saved = errno;
    close(err[0]);
    close(err[1]);
    errno = saved;
close_out:
    saved = errno;
    close(out[0]);
    close(out[1]);
    errno = saved;
    return false;
}

bool run_spawn(struct run_job *job, int32_t index)
{
    struct run_process *process = &job->processes[index];
    int out[2], err[2], report[2], code = 0;
    ssize_t got;
    pid_t pid;

    if (!make_pipes(out, err, report)) return complain(job, errno);
    run_counts_set_variable(job);
    if (!job->threads) set_variables(job, index);
    fflush(NULL);
    process->begun_ns = wf_now_ns();
    pid = cli_fork();
    if (pid == 0) become(job, index, out[1], err[1], report[1]);
    code = pid < 0 ? errno : 0;
    close(out[1]);
    close(err[1]);
    close(report[1]);
    process->out = (struct run_pipe){.from = out[0], .to = STDOUT_FILENO};
    process->err = (struct run_pipe){.from = err[0], .to = STDERR_FILENO};
    if (pid > 0) {
        setpgid(pid, pid); /* the child does the same; either may be first */
        process->pid = pid;
        process->running = true;
        job->running++;
        do
            got = read(report[0], &code, sizeof code); /* nothing: the program runs */
        while (got < 0 && errno == EINTR);
        if (got != sizeof code) code = 0;
    }
    close(report[0]);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    return code == 0 || complain(job, code);
}
