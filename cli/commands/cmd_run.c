/* cmd_run.c - `weft run`: runs a program as several ranks on this host. */
#include "run/run.h"

#include "common/children.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_TIMEOUT = 124, EXIT_SIGNAL = 128 };

/* ---- the command line ---- */

static bool read_seconds(const struct cli_command *command, const struct cli_args *args,
                         const char *name, int64_t fallback_ns, int64_t *out)
{
    const char *text = cli_value(command, args, name);
    char *end;
    double seconds;

    *out = fallback_ns;
    if (text == NULL) return true;
    errno = 0;
    seconds = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(seconds > 0 && seconds < 1e9)) {
        fprintf(stderr, "weft run: --%s is \"%s\"; expected a number of seconds\n", name, text);
        return false;
    }
    *out = (int64_t)(seconds * 1e9);
    return true;
}

static bool read_stdin_policy(const struct run_job *job, const char *text)
{
    struct wf_scan scan = {text, 0};
    int64_t rank;

    if (strcmp(text, "auto") == 0 || strcmp(text, "none") == 0) return true;
    if (wf_scan_int(&scan, "a rank", &rank) == WEFT_OK && wf_scan_end(&scan) && rank < job->count)
        return true;
    fprintf(stderr, "weft run: --stdin is \"%s\"; expected auto, none or a rank below %d\n", text,
            job->count);
    return false;
}

/* --rank: the output of one process is printed, so ranks that are threads cannot be told apart. */
static bool read_shown(const struct cli_command *command, const struct cli_args *args,
                       struct run_job *job)
{
    int64_t shown;

    if (job->threads && cli_has(command, args, "rank")) {
        fprintf(stderr, "weft run: --rank is for ranks that are processes, not for --threads\n");
        return false;
    }
    if (!cli_int(command, args, "rank", 0, job->ranks - 1, -1, &shown)) return false;
    job->shown = (int32_t)shown;
    return true;
}

static bool read_job(const struct cli_command *command, int argc, char **argv,
                     const struct cli_args *args, struct run_job *job)
{
    int64_t ranks, ranks_min, spares;

    *job = (struct run_job){
        .command = command, .program = argv + args->rest_at, .first = -1, .master_fd = -1};
    if (args->rest_at >= argc) {
        fprintf(stderr, "weft run: no program given\n`weft run --help` shows an example.\n");
        return false;
    }
    if (!cli_has(command, args, "ranks")) {
        fprintf(stderr, "weft run: give the number of ranks, as in -n 4\n");
        return false;
    }
    if (!cli_int(command, args, "ranks", 1, 4096, 1, &ranks)) return false;
    if (!cli_int(command, args, "min", 1, ranks, 0, &ranks_min)) return false;
    if (ranks_min > 0 && cli_has(command, args, "threads")) {
        fprintf(stderr, "weft run: --min is for ranks that are processes, not for --threads\n");
        return false;
    }
    if (!cli_int(command, args, "spares", 1, WEFT_ELASTIC_MAX, 0, &spares)) return false;
    if ((spares > 0 || cli_has(command, args, "respawn")) && (ranks_min == 0 || ranks < 2)) {
        fprintf(stderr, "weft run: --spares and --respawn are for elastic jobs of at least two "
                        "ranks; give --min, too\n");
        return false;
    }
    if (cli_has(command, args, "json") && !cli_has(command, args, "counts")) {
        fprintf(stderr, "weft run: --json is the form of --counts; give both\n");
        return false;
    }
    job->listens = cli_has(command, args, "listen");
    job->threads = cli_has(command, args, "threads");
    job->ranks = (int32_t)ranks;
    job->ranks_min = (int32_t)ranks_min;
    job->spares = (int32_t)spares;
    job->respawns = cli_has(command, args, "respawn");
    job->count = job->threads ? 1 : job->ranks + job->spares;
    job->keep_going = cli_has(command, args, "keep-going");
    job->counts_json = cli_has(command, args, "json");
    job->prefix = !cli_has(command, args, "no-prefix");
    job->stdin_policy =
        cli_has(command, args, "stdin") ? cli_value(command, args, "stdin") : "auto";
    return read_seconds(command, args, "timeout", 0, &job->timeout_ns) &&
           read_seconds(command, args, "grace", 5 * SECOND_NS, &job->grace_ns) &&
           read_stdin_policy(job, job->stdin_policy) && read_shown(command, args, job);
}

/* ---- before the ranks ---- */

/* Each rank needs two pipes and a connection. */
static void raise_file_limit(const struct run_job *job)
{
    struct rlimit limit;
    rlim_t wanted = 64 + 4 * (rlim_t)job->count;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static weft_status open_rendezvous(struct run_job *job, const char *listen)
{
    weft_rendezvous_options options = {.struct_size = sizeof options,
                                       .size = job->ranks,
                                       .listen = listen,
                                       .grows = job->spares > 0 || job->respawns};
    weft_status status = weft_rendezvous_open(&options, &job->rendezvous);

    return status == WEFT_OK || listen == NULL ? status : wf_fail_context(status, "--listen");
}

static bool watch_signals(struct run_job *job)
{
    static const int numbers[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGTSTP, SIGWINCH};

    cli_signal_set(SIGPIPE, SIG_IGN);
    job->signals = cli_signals_note(numbers, WF_COUNT(numbers));
    if (job->signals >= 0) return true;
    fprintf(stderr, "weft run: no descriptor for signals: %s\n", kit_error_text(errno));
    return false;
}

/* ---- after the ranks ---- */

void run_print_end(const struct run_process *process, struct wf_text *out)
{
    int status = process->wait_status;

    if (WIFSIGNALED(status))
        wf_text_add(out, "was killed by signal %d (%s)%s", WTERMSIG(status),
                    strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", with a core file" : "");
    else
        wf_text_add(out, "ended with exit code %d", WEXITSTATUS(status));
}

/* Add the other ranks that failed and were not ended by this process. */
static void print_others(const struct run_job *job, struct wf_text *out)
{
    int32_t *others = wf_alloc((size_t)job->count * sizeof *others), count = 0;

    for (int32_t i = 0; others != NULL && i < job->count; i++)
        if (i != job->first && job->processes[i].wait_status != 0 &&
            !job->processes[i].ended_by_us && run_has_place(job, &job->processes[i]))
            others[count++] = i;
    if (count > 0) {
        wf_text_add(out, "weft run: ");
        wf_ranks_print(out, others, count);
        wf_text_add(out, " failed after it\n");
    }
    wf_free(others);
}

/* A program that is linked with weft may not find its libraries: they are beside the tool's. */
static void print_libraries(const struct run_process *first, struct wf_text *out)
{
    Dl_info library;
    char path[PATH_MAX];

    if (strstr(first->last_line, "error while loading shared libraries: libweft") == NULL ||
        dladdr((const void *)(uintptr_t)&weft_init, &library) == 0 || library.dli_fname == NULL ||
        realpath(library.dli_fname, path) == NULL)
        return;
    *strrchr(path, '/') = '\0';
    wf_text_add(out, "weft run: weft's libraries are in %s: set LD_LIBRARY_PATH to this folder\n",
                path);
}

static void print_failure(const struct run_job *job, struct wf_text *out)
{
    const struct run_process *first = &job->processes[job->first];

    if (job->threads)
        wf_text_add(out, "weft run: the process of all ranks ");
    else
        wf_text_add(out, "weft run: %s %d failed first: it ",
                    first->number > 0 ? "process" : "rank", job->first);
    run_print_end(first, out);
    wf_text_add(out, " after ");
    wf_text_time(out, first->ended_ns - job->begun_ns);
    wf_text_char(out, '\n');
    if (first->last_line[0] != '\0')
        wf_text_add(out, "weft run: its last line of output: %s\n", first->last_line);
    print_libraries(first, out);
    print_others(job, out);
}

static int exit_code_of(const struct run_process *process)
{
    int status = process->wait_status;

    return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static int report(const struct run_job *job)
{
    struct wf_text text = {0};
    int code = 0;

    if (job->interrupted != 0) {
        code = EXIT_SIGNAL + job->interrupted;
    } else if (job->broken_pipe) {
        code = EXIT_SIGNAL + SIGPIPE;
    } else if (job->timed_out) {
        code = EXIT_TIMEOUT;
        wf_text_add(&text, "weft run: the time limit of ");
        wf_text_time(&text, (uint64_t)job->timeout_ns);
        wf_text_add(&text, " passed; the ranks that were left have been ended\n");
    }
    if (job->first >= 0) {
        print_failure(job, &text);
        if (code == 0 && !run_can_lose(job)) code = exit_code_of(&job->processes[job->first]);
    }
    if (text.data != NULL) fputs(text.data, stderr);
    wf_text_free(&text);
    return code;
}

static void end_unstarted(struct run_job *job)
{
    for (int32_t i = 0; i < job->count; i++)
        if (job->processes[i].running) {
            job->processes[i].ended_by_us = true;
            kill(-job->processes[i].pid, SIGKILL);
        }
    run_watch(job);
}

static int run_ranks(struct run_job *job)
{
    weft_status status;

    job->begun_ns = wf_now_ns();
    for (int32_t i = 0; i < job->count; i++)
        job->processes[i].out.from = job->processes[i].err.from = -1;
    for (int32_t i = job->ranks; i < job->count; i++)
        job->processes[i].number = job->ranks + job->numbers++;
    for (int32_t i = 0; i < job->count; i++)
        if (!run_spawn(job, i)) {
            end_unstarted(job);
            return 127;
        }
    /* The server starts a thread, so it starts after the forks: a child of a process with
     * several threads may only call async-signal-safe functions.  Processes that are started later
     * do, because their variables are set before the fork. */
    status = weft_rendezvous_serve(job->rendezvous);
    if (status != WEFT_OK) {
        end_unstarted(job);
        return cli_fail(job->command, status);
    }
    run_watch(job);
    return report(job);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_args args;
    struct run_job job;
    weft_status status;
    int code;

    if (!cli_parse(command, argc, argv, true, &args, &code)) return code;
    if (!read_job(command, argc, argv, &args, &job)) return CLI_USAGE;
    raise_file_limit(&job);
    status = open_rendezvous(&job, cli_value(command, &args, "listen"));
    if (status != WEFT_OK) return cli_fail(command, status);
    code = CLI_ENVIRONMENT;
    job.processes = wf_calloc((size_t)job.count, sizeof *job.processes);
    if (job.processes == NULL)
        fprintf(stderr, "weft run: out of memory\n");
    else if ((!cli_has(command, &args, "counts") || run_counts_begin(&job)) &&
             run_torch_begin(&job) && watch_signals(&job))
        code = run_ranks(&job);
    run_torch_end(&job);
    run_counts_end(&job);
    weft_rendezvous_close(&job.rendezvous);
    wf_free(job.processes);
    return code;
}

const struct cli_command cli_run = {
    .name = "run",
    .summary = "run a program as several ranks on this host",
    .arguments = "-n N [options] PROGRAM [arguments]",
    .example = "weft run -n 4 --timeout 60 ./engine --steps 100",
    .note = "If a rank fails, the other ranks are ended.  With --min N the job is elastic: the "
            "others go\n"
            "on while at least N have not failed.  Processes that ranks left behind are ended when "
            "the\n"
            "last rank has ended.",
    .page = "launch.md",
    .options =
        (const struct cli_option[]){
            CLI_RANKS("number of ranks"),
            {"threads", NULL, "ranks are threads; PROGRAM is a shared object with weft_main", 0},
            {"timeout", "SECONDS", "end all ranks after SECONDS; the exit code is then 124", 0},
            {"grace", "SECONDS", "time between SIGTERM and SIGKILL when ranks end (default: 5)", 0},
            {"keep-going", NULL, "let the other ranks continue when a rank fails", 0},
            {"min", "N", "the job is elastic: it can lose ranks while N are left", 0},
            {"spares", "N", "with --min: start N processes that wait for the places of lost ranks",
             0},
            {"respawn", NULL, "with --min: start a process for each that is lost", 0},
            {"counts", NULL, "print how many operations the ranks have made, on standard error", 0},
            CLI_JSON,
            {"rank", "R", "print the output of this rank only", 0},
            {"no-prefix", NULL, "do not print the rank before each line of output", 0},
            {"stdin", "RANK",
             "reader of standard input: a rank, none, or auto (rank 0, no terminal)", 0},
            {"listen", "ADDRESS", "address of the rendezvous: host[:port] (default: loopback)", 0},
            {0}},
    .run = run,
};
