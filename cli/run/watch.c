/* watch.c - waits for the ranks, forwards signals, and ends them all when one fails. */
#include "run/run.h"

#include "common/children.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Time to wait for output of processes that an ended rank left behind. */
#define DRAIN_NS (SECOND_NS / 2)
/* Ended processes are looked for at least so often: another part of this process, such as a library
 * that is preloaded, may take SIGCHLD. */
#define REAP_MS 250
/* Minimum time between the starts of a process and of the one that replaces it. */
#define RESPAWN_NS SECOND_NS

static void signal_all(struct run_job *job, int number)
{
    for (int32_t i = 0; i < job->count; i++)
        if (job->processes[i].running) kill(-job->processes[i].pid, number);
}

static void begin_end(struct run_job *job)
{
    if (job->end_ns != 0) return;
    job->end_ns = wf_now_ns();
    for (int32_t i = 0; i < job->count; i++)
        job->processes[i].ended_by_us |= job->processes[i].running;
    signal_all(job, SIGTERM);
    signal_all(job, SIGCONT); /* a stopped process does not see the first */
}

static void kill_all(struct run_job *job)
{
    if (job->killed) return;
    job->killed = true;
    for (int32_t i = 0; i < job->count; i++)
        if (job->processes[i].running)
            fprintf(stderr, "weft run: rank %d did not end by itself, and is killed\n", i);
    signal_all(job, SIGKILL);
}

/* ---- processes that end ---- */

static bool failed(const struct run_process *process)
{
    return !WIFEXITED(process->wait_status) || WEXITSTATUS(process->wait_status) != 0;
}

bool run_has_place(const struct run_job *job, const struct run_process *process)
{
    return process->number == 0 || weft_rendezvous_has_entered(job->rendezvous, process->number);
}

/* If several processes ended at the same time, one that a signal killed is the more likely
 * cause. */
static void note_first(struct run_job *job, int32_t index)
{
    const struct run_process *process = &job->processes[index];

    if (!failed(process) || process->ended_by_us || job->interrupted != 0 ||
        !run_has_place(job, process))
        return;
    if (job->first < 0) {
        job->first = index;
    } else {
        const struct run_process *first = &job->processes[job->first];

        if (process->ended_ns == first->ended_ns && WIFSIGNALED(process->wait_status) &&
            !WIFSIGNALED(first->wait_status))
            job->first = index;
    }
}

/* Tell the other ranks not to wait for a rank that ended before it joined. */
static void report_to_rendezvous(struct run_job *job, int32_t index)
{
    int status = job->processes[index].wait_status;
    char text[96];

    if (job->threads || job->processes[index].number > 0) return;
    if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "is gone: signal %d (%s) killed it", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, sizeof text, "is gone: it ended with exit code %d", WEXITSTATUS(status));
    weft_rendezvous_report_gone(job->rendezvous, index, text);
}

/* The number of a zombie is not reused, so its process group can still receive signals.  A rank
 * that succeeded stays a zombie until the job ends: the processes that it left may serve other
 * ranks.  The processes of a rank that failed are killed with it. */
static bool bury(struct run_process *process, const siginfo_t *info)
{
    process->left = info->si_code == CLD_EXITED && info->si_status == 0;
    if (process->left) return true; /* and its wait status is 0 */
    kill(-process->pid, SIGKILL);
    return waitpid(process->pid, &process->wait_status, 0) >= 0;
}

/* All ranks have ended: end the processes that they left. */
static void end_left(struct run_job *job)
{
    for (int32_t i = 0; i < job->count; i++) {
        struct run_process *process = &job->processes[i];

        if (!process->left) continue;
        kill(-process->pid, SIGTERM);
        process->left = false;
        waitpid(process->pid, &process->wait_status, 0);
    }
}

/* ---- processes that wait for a place ---- */

/* A process that fails at once is not replaced at once. */
static void plan_another(struct run_job *job, int32_t index)
{
    struct run_process *process = &job->processes[index];
    uint64_t earliest_ns = process->begun_ns + RESPAWN_NS;

    if (!failed(process) || process->ended_by_us || job->has_finished || job->end_ns != 0 ||
        job->interrupted != 0)
        return;
    if (job->respawns)
        process->again_ns = process->ended_ns > earliest_ns ? process->ended_ns : earliest_ns;
    else if (!run_has_place(job, process))
        fprintf(stderr, "weft run: process %d, which waited for a place, has ended: %s\n", index,
                process->last_line);
}

static void start_another(struct run_job *job, int32_t index)
{
    struct run_process *process = &job->processes[index];
    struct wf_text text = {0};

    run_relay_rest(job, index, &process->out);
    run_relay_rest(job, index, &process->err);
    run_print_end(process, &text);
    if (!text.failed)
        fprintf(stderr, "weft run: process %d %s; another one is started\n", index, text.data);
    wf_text_free(&text);
    if (job->first == index) job->first = -1;
    *process = (struct run_process){.number = job->ranks + job->numbers++};
    process->out.from = process->err.from = -1;
    if (!run_spawn(job, index)) job->respawns = false;
}

static void start_others(struct run_job *job)
{
    uint64_t now_ns = wf_now_ns();

    for (int32_t i = 0; i < job->count; i++) {
        uint64_t again_ns = job->processes[i].again_ns;

        if (again_ns == 0 || again_ns > now_ns) continue;
        job->processes[i].again_ns = 0;
        if (!job->has_finished && job->end_ns == 0 && job->interrupted == 0) start_another(job, i);
    }
}

/* No rank is left: nobody needs the processes that wait. */
static void end_spares(struct run_job *job)
{
    if (job->running == 0 || (job->spares == 0 && !job->respawns)) return;
    for (int32_t i = 0; i < job->count; i++)
        if (job->processes[i].running && run_has_place(job, &job->processes[i])) return;
    begin_end(job);
}

static void reap(struct run_job *job)
{
    uint64_t now_ns = wf_now_ns();
    siginfo_t info;

    for (int32_t i = 0; i < job->count; i++) {
        struct run_process *process = &job->processes[i];

        if (!process->running) continue;
        info.si_pid = 0;
        if (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) continue;
        if (info.si_pid == 0) continue;
        if (!bury(process, &info)) continue;
        process->running = false;
        process->ended_ns = now_ns;
        job->running--;
        note_first(job, i);
        report_to_rendezvous(job, i);
        if (!failed(process) && run_has_place(job, process)) job->has_finished = true;
        plan_another(job, i);
    }
    end_spares(job);
    if (job->first >= 0 && !job->keep_going && !run_can_lose(job)) begin_end(job);
}

bool run_can_lose(const struct run_job *job)
{
    int32_t left = 0;

    for (int32_t i = 0; i < job->count; i++)
        left += job->processes[i].running ||
                (job->running > 0 && job->processes[i].again_ns != 0) ||
                (!failed(&job->processes[i]) && run_has_place(job, &job->processes[i]));
    return job->ranks_min > 0 && left >= job->ranks_min;
}

/* ---- signals ---- */

static void suspend(struct run_job *job)
{
    signal_all(job, SIGSTOP);
    raise(SIGSTOP);
    signal_all(job, SIGCONT);
}

static void obey(struct run_job *job, int number)
{
    if (number == SIGCHLD) {
        reap(job);
    } else if (number == SIGTSTP) {
        suspend(job);
    } else if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT) {
        if (job->interrupted != 0) kill_all(job);
        if (job->interrupted == 0) {
            job->interrupted = number;
            job->end_ns = wf_now_ns();
            signal_all(job, number);
            signal_all(job, SIGCONT);
        }
    } else {
        signal_all(job, number);
    }
}

/* ---- the loop ---- */

static uint64_t next_deadline(const struct run_job *job)
{
    uint64_t at = UINT64_MAX;

    if (job->end_ns == 0 && job->timeout_ns > 0) at = job->begun_ns + (uint64_t)job->timeout_ns;
    if (job->end_ns != 0 && !job->killed) at = job->end_ns + (uint64_t)job->grace_ns;
    return at;
}

static uint64_t next_start(const struct run_job *job)
{
    uint64_t at = UINT64_MAX;

    for (int32_t i = 0; i < job->count; i++)
        if (job->processes[i].again_ns != 0 && job->processes[i].again_ns < at)
            at = job->processes[i].again_ns;
    return at;
}

static void meet_deadline(struct run_job *job)
{
    if (job->end_ns != 0) {
        kill_all(job);
    } else {
        job->timed_out = true;
        begin_end(job);
    }
}

static size_t fill_polls(struct run_job *job, struct pollfd *polls)
{
    size_t used = 0;

    polls[used++] = (struct pollfd){.fd = job->signals, .events = POLLIN};
    for (int32_t i = 0; i < job->count; i++) {
        polls[used++] = (struct pollfd){.fd = job->processes[i].out.from, .events = POLLIN};
        polls[used++] = (struct pollfd){.fd = job->processes[i].err.from, .events = POLLIN};
    }
    return used;
}

static bool pipes_open(const struct run_job *job)
{
    for (int32_t i = 0; i < job->count; i++)
        if (job->processes[i].out.from >= 0 || job->processes[i].err.from >= 0) return true;
    return false;
}

static void read_pipes(struct run_job *job, const struct pollfd *polls)
{
    for (int32_t i = 0; i < job->count; i++) {
        struct run_process *process = &job->processes[i];
        bool heard = true;

        if (polls[1 + 2 * i].revents != 0) heard &= run_relay(job, i, &process->out);
        if (polls[2 + 2 * i].revents != 0) heard &= run_relay(job, i, &process->err);
        if (!heard) {
            job->broken_pipe = true;
            begin_end(job);
        }
    }
}

/* Handle the next events; wait until UNTIL_NS at most. */
static void round_of(struct run_job *job, struct pollfd *polls, uint64_t until_ns)
{
    uint64_t now_ns = wf_now_ns();
    int64_t left_ms = now_ns < until_ns ? (int64_t)((until_ns - now_ns) / 1000000) + 1 : 0;

    if (poll(polls, fill_polls(job, polls), (int)wf_min_i64(left_ms, REAP_MS)) < 0) return;
    read_pipes(job, polls);
    if (polls[0].revents == 0) return;
    for (int number = cli_signals_next(); number != 0; number = cli_signals_next())
        obey(job, number);
}

void run_watch(struct run_job *job)
{
    struct pollfd *polls = wf_calloc(1 + 2 * (size_t)job->count, sizeof *polls);
    uint64_t until_ns;

    if (polls == NULL) {
        fprintf(stderr, "weft run: out of memory\n");
        begin_end(job);
        kill_all(job);
        return;
    }
    while (job->running > 0) {
        uint64_t start_ns = next_start(job), deadline_ns = next_deadline(job);

        round_of(job, polls, start_ns < deadline_ns ? start_ns : deadline_ns);
        if (wf_now_ns() >= next_deadline(job)) meet_deadline(job);
        reap(job);
        start_others(job);
    }
    end_left(job);
    until_ns = wf_now_ns() + DRAIN_NS;
    while (pipes_open(job) && wf_now_ns() < until_ns)
        round_of(job, polls, until_ns);
    for (int32_t i = 0; i < job->count; i++) {
        run_relay_rest(job, i, &job->processes[i].out);
        run_relay_rest(job, i, &job->processes[i].err);
    }
    wf_free(polls);
}
