/* cmd_status.c - `weft status [PID|JOB|FILE]`: what the ranks of this host do, and who waits for
 * whom.
 */
#include "status/status.h"
#include "weft/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct request {
    const struct cli_command *command;
    const char *wanted; /* a pid, or the beginning of a job's number; NULL: all */
    bool as_json, all;
    int64_t watch_ns; /* 0: once */
};

/* ---- which job ---- */

/* The process that started PID; 0 if this process cannot see it. */
static int32_t parent_of(int32_t pid)
{
    char path[64], text[512];
    const char *end;
    size_t got;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (file == NULL) return 0;
    got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = '\0';
    end = strrchr(text, ')');
    return end != NULL && strlen(end) > 4 ? (int32_t)strtol(end + 4, NULL, 10) : 0;
}

static bool has_pid(const struct status_job *job, int64_t pid)
{
    for (int32_t i = 0; i < job->rank_count; i++) {
        const weft_recorder_info *info = &job->ranks[i].info;

        if (info->pid == pid || (info->alive && parent_of(info->pid) == pid)) return true;
    }
    return false;
}

/* True if WANTED is the pid of a rank of JOB or of its launcher, or begins JOB's number. */
static bool is_wanted(const struct status_job *job, const char *wanted)
{
    struct wf_scan scan = {wanted, 0};
    char id[24];
    int64_t pid;

    if (wanted == NULL) return true;
    if (wf_scan_int(&scan, "a pid", &pid) == WEFT_OK && wf_scan_end(&scan) && pid > 0 &&
        has_pid(job, pid))
        return true;
    snprintf(id, sizeof id, "%016" PRIx64, job->id);
    return strlen(wanted) >= 4 && strncmp(id, wanted, strlen(wanted)) == 0;
}

static size_t count_wanted(const struct status *status, const char *wanted, bool only_alive)
{
    size_t count = 0;

    for (size_t i = 0; i < status->count; i++)
        count += is_wanted(&status->jobs[i], wanted) && (!only_alive || status->jobs[i].alive > 0);
    return count;
}

/* ---- printing ---- */

static void add_jobs_json(struct wf_text *out, const struct status *status, const char *wanted)
{
    struct wf_json json = {.out = out};

    wf_json_begin(&json, NULL, '{');
    wf_json_begin(&json, "jobs", '[');
    for (size_t i = 0; i < status->count; i++)
        if (is_wanted(&status->jobs[i], wanted)) status_add_json(&json, &status->jobs[i]);
    wf_json_end(&json, ']');
    wf_json_begin(&json, "problems", '[');
    for (size_t i = 0; i < weft_recorders_problem_count(status->recorders); i++)
        wf_json_string(&json, NULL, weft_recorders_problem(status->recorders, i));
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
}

static void add_jobs(struct wf_text *out, const struct status *status, const struct request *asked)
{
    bool waits = false, ended = false;

    for (size_t i = 0; i < status->count; i++) {
        const struct status_job *job = &status->jobs[i];
        bool in_full = job->alive > 0 || asked->wanted != NULL;

        if (!is_wanted(job, asked->wanted)) continue;
        status_add_text(out, job, in_full, asked->all);
        waits = waits || (job->alive > 0 && status_has_waits(job));
        ended = ended || !in_full;
    }
    if (ended) wf_text_add(out, "`weft status JOB` shows the last operations of an ended job.\n");
    if (waits && asked->watch_ns == 0)
        wf_text_add(out, "Repeat the command: if no number after # grows, the job hangs or "
                         "computes.\n");
}

static void print_problems(const struct cli_command *command, const struct status *status)
{
    for (size_t i = 0; i < weft_recorders_problem_count(status->recorders); i++)
        cli_complain(command, "%s", weft_recorders_problem(status->recorders, i));
}

/* True if WANTED may be a PID, or the beginning of a job's number. */
static bool is_name(const char *wanted)
{
    size_t digits = strspn(wanted, "0123456789"), hex = strspn(wanted, "0123456789abcdef");

    return wanted[0] != '\0' && (wanted[digits] == '\0' || (wanted[hex] == '\0' && hex >= 4));
}

static void add_nothing(struct wf_text *out, const struct status *status, const char *wanted)
{
    if (wanted != NULL)
        wf_text_add(out,
                    "no job of this user on this host has the pid or number %s; the pid of a "
                    "launcher finds a job only while its ranks run, and of the ranks that have "
                    "ended weft keeps the last 32",
                    wanted);
    else
        wf_text_add(out, "no job of this user on this host");
    wf_text_add(
        out,
        "; a rank has a recorder after weft_init, unless WEFT_RECORDER=0, and only its user can "
        "see it; recorders are searched for in");
    for (size_t i = 0; i < weft_recorders_folder_count(status->recorders); i++)
        wf_text_add(out, "%s %s", i > 0 ? " and" : "", weft_recorders_folder(status->recorders, i));
}

/* Print STATUS.  The exit code is CLI_NO if there is no job that was asked for; a job that is
 * watched must be alive. */
static int print(const struct request *asked, const struct status *status, bool seen)
{
    size_t known = count_wanted(status, asked->wanted, false);
    size_t count = asked->wanted != NULL && asked->watch_ns > 0
                       ? count_wanted(status, asked->wanted, true)
                       : known;
    bool on_terminal = asked->watch_ns > 0 && !asked->as_json && isatty(STDOUT_FILENO);
    struct wf_text text = {0}, none = {0};
    int code;

    print_problems(asked->command, status);
    if (on_terminal) wf_text_add(&text, "\033[H\033[2J");
    if (asked->as_json)
        add_jobs_json(&text, status, asked->wanted);
    else
        add_jobs(&text, status, asked);
    if (asked->watch_ns > 0 && !asked->as_json && !on_terminal && count > 0)
        wf_text_char(&text, '\n');
    code = cli_print(asked->command, stdout, &text);
    if (count > 0 || code != CLI_OK) return code;
    if ((seen || known > 0) && asked->wanted != NULL)
        wf_text_add(&none, "the job %s has ended", asked->wanted);
    else
        add_nothing(&none, status, asked->wanted);
    cli_complain(asked->command, "%s", none.data != NULL ? none.data : "");
    wf_text_free(&none);
    return CLI_NO;
}

/* With SEEN, the job that was asked for existed before. */
static int look(const struct request *asked, bool seen)
{
    struct status status;
    weft_status read = status_create(&status);
    int code;

    if (read != WEFT_OK) return cli_fail(asked->command, read);
    code = print(asked, &status, seen);
    status_free(&status);
    return code;
}

/* Look again and again, until the job that was asked for is gone. */
static int watch(const struct request *asked)
{
    struct timespec pause = {.tv_sec = asked->watch_ns / 1000000000,
                             .tv_nsec = asked->watch_ns % 1000000000};

    for (bool seen = false;; seen = true) {
        int code = look(asked, seen);

        if (code != CLI_OK && (code != CLI_NO || asked->wanted != NULL)) return code;
        nanosleep(&pause, NULL);
    }
}

static bool read_seconds(const struct cli_command *command, const char *text, int64_t *out)
{
    char *end;
    double seconds;

    *out = 0;
    if (text == NULL) return true;
    errno = 0;
    seconds = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(seconds >= 0.01 && seconds <= 86400)) {
        cli_complain(command, "--watch is \"%s\", not a number of seconds from 0.01 to 86400",
                     text);
        return false;
    }
    *out = (int64_t)(seconds * 1e9);
    return true;
}

static int print_file(const struct request *asked)
{
    if (access(asked->wanted, F_OK) != 0 && errno == ENOENT && strchr(asked->wanted, '/') == NULL) {
        cli_complain(asked->command,
                     "\"%s\" is neither a PID nor the beginning of a job's number (at least four "
                     "hexadecimal digits), and there is no file of this name",
                     asked->wanted);
        return CLI_NO;
    }
    if (asked->watch_ns > 0) {
        cli_complain(asked->command, "--watch repeats the status of jobs, not of a file");
        return CLI_USAGE;
    }
    return status_print_file(asked->command, asked->wanted, asked->as_json);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct request asked = {.command = command};
    struct cli_args args;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    if (!read_seconds(command, cli_value(command, &args, "watch"), &asked.watch_ns))
        return CLI_USAGE;
    asked.wanted = args.rest_count > 0 ? args.rest[0] : NULL;
    asked.as_json = cli_has(command, &args, "json");
    asked.all = cli_has(command, &args, "all");
    if (asked.wanted != NULL && !is_name(asked.wanted)) return print_file(&asked);
    return asked.watch_ns > 0 ? watch(&asked) : look(&asked, false);
}

const struct cli_command cli_status = {
    .name = "status",
    .summary = "show what the ranks of this host do, and which rank the others wait for",
    .arguments = "[PID|JOB|FILE] [options]",
    .example =
        "weft status 24945 --watch 2   # PID: of a rank or of its launcher\n"
        "  weft status c8da              # JOB: the first digits of its number, at least four\n"
        "  weft status ./copied          # FILE: the operations in a recorder, or in a copy of one",
    .page = "observability.md",
    .options =
        (const struct cli_option[]){
            {"all", NULL, "show idle communicators too", 0},
            {"watch", "SECONDS",
             "show it again every so many seconds; with --json one object per line", 0},
            CLI_JSON,
            {0}},
    .rest_max = 1,
    .warns = true,
    .run = run,
};
