/* cmd_report.c - `weft report`: what a report of a defect needs, in one file. */
#include "common/children.h"
#include "common/cli.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>

#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the machine ---- */

/* Add the value of KEY in FILE, whose lines are "KEY=VALUE" or "KEY: VALUE". */
static void add_value(struct wf_text *out, const char *name, const char *path, const char *key)
{
    FILE *file = fopen(path, "re");
    char line[512];

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        size_t length = strlen(key);

        if (strncmp(line, key, length) != 0 || strchr("=:\t ", line[length]) == NULL) continue;
        length += strspn(line + length, "=:\t ");
        wf_text_add(out, "%s: %.*s\n", name, (int)strcspn(line + length, "\n"), line + length);
        break;
    }
    if (file != NULL) fclose(file);
}

static void add_machine(struct wf_text *out)
{
    struct utsname system;

    wf_text_add(out, "== machine ==\n");
    if (uname(&system) == 0)
        wf_text_add(out, "kernel: %s %s %s\n", system.sysname, system.release, system.machine);
    add_value(out, "system", "/etc/os-release", "PRETTY_NAME");
    add_value(out, "processor", "/proc/cpuinfo", "model name");
    wf_text_add(out, "processors: %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
    add_value(out, "memory", "/proc/meminfo", "MemTotal");
    wf_text_char(out, '\n');
}

/* ---- what commands of this tool print ---- */

static void read_rest(int from, struct wf_text *out)
{
    char bytes[4096];
    ssize_t got;

    do {
        got = read(from, bytes, sizeof bytes);
        if (got > 0) wf_text_append(out, bytes, (size_t)got);
    } while (got > 0 || (got < 0 && errno == EINTR));
}

/* Run ARGV of this program, and add what it prints.  The child ends with 127 if it cannot be run.
 */
static void add_command(struct wf_text *out, char *const *argv)
{
    int ends[2], status = -1;
    pid_t child;

    wf_text_add(out, "== weft %s ==\n", argv[1]);
    if (pipe(ends) != 0) {
        wf_text_add(out, "it cannot be run: %s\n\n", kit_error_text(errno));
        return;
    }
    child = cli_fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    close(ends[1]);
    if (child > 0) {
        read_rest(ends[0], out);
        status = cli_wait(child);
    }
    close(ends[0]);
    if (status == -1 || !WIFEXITED(status))
        wf_text_add(out, "it did not end by itself\n");
    else if (WEXITSTATUS(status) != 0)
        wf_text_add(out, "exit code %d\n", WEXITSTATUS(status));
    wf_text_char(out, '\n');
}

/* ---- what is nobody's business ---- */

static bool is_part_of_word(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '_' || c == '-';
}

/* Replace each word NAME of TEXT by PUBLIC.  NULL and "" are ignored. */
static void hide(struct wf_text *text, const char *name, const char *public)
{
    size_t length = name != NULL ? strlen(name) : 0;
    struct wf_text hidden = {0};
    size_t from = 0;

    if (length < 2 || text->data == NULL) return; /* "/" is not replaced */
    for (size_t at = 0; at + length <= text->length;) {
        bool begins = at == 0 || !is_part_of_word(text->data[at - 1]);

        if (!begins || memcmp(text->data + at, name, length) != 0 ||
            is_part_of_word(text->data[at + length])) {
            at++;
            continue;
        }
        wf_text_append(&hidden, text->data + from, at - from);
        wf_text_add(&hidden, "%s", public);
        at += length;
        from = at;
    }
    wf_text_append(&hidden, text->data + from, text->length - from);
    hidden.failed = hidden.failed || text->failed;
    wf_text_free(text);
    *text = hidden;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    static char *const commands[][4] = {{"weft", "version", NULL},
                                        {"weft", "info", NULL},
                                        {"weft", "why", NULL},
                                        {"weft", "env", NULL},
                                        {"weft", "status", "--all", NULL}};
    struct cli_args args;
    struct wf_text text = {0};
    struct utsname system;
    const struct passwd *user = getpwuid(getuid());
    const char *path;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    path = cli_value(command, &args, "output");
    wf_text_add(&text, "What I did, what I expected, and what happened:\n\n\n");
    add_machine(&text);
    for (size_t i = 0; i < WF_COUNT(commands); i++)
        add_command(&text, commands[i]);
    if (user != NULL) hide(&text, user->pw_dir, "~");
    if (uname(&system) == 0) hide(&text, system.nodename, "HOST");
    return cli_print_to(command, path != NULL ? path : "-", &text);
}

const struct cli_command cli_report = {
    .name = "report",
    .summary = "collect what a report of a defect needs in one file, without secrets",
    .arguments = "[--output FILE]",
    .example = "weft report --output report.txt",
    .page = "observability.md",
    .options =
        (const struct cli_option[]){
            {"output", "FILE", "write it to FILE; - is standard output (default: -)", 'o'}, {0}},
    .run = run,
};
