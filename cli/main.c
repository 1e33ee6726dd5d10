/* main.c - finds the command and runs it. */
#include "common/children.h"
#include "common/cli.h"
#include "help/topics.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define COMMAND(name) extern const struct cli_command cli_##name;
#include "commands/commands.def"
#undef COMMAND

const struct cli_command *const cli_commands[] = {
#define COMMAND(name) &cli_##name,
#include "commands/commands.def"
#undef COMMAND
};
const size_t cli_command_count = WF_COUNT(cli_commands);

static void print_help(FILE *file)
{
    fprintf(file, "weft moves tensors between distributed layouts on any hardware.\n\n"
                  "usage: weft COMMAND [options]\n\n");
    for (size_t i = 0; i < cli_command_count; i++)
        fprintf(file, "  %-14s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fprintf(file, "\n`weft COMMAND --help` shows a command's options and an example.\n"
                  "`weft help TOPIC` prints a format; TOPIC is ");
    for (size_t i = 0; i < help_topic_count; i++)
        fprintf(file, "%s%s",
                i == 0                     ? ""
                : i + 1 < help_topic_count ? ", "
                                           : " or ",
                help_topics[i].name);
    fprintf(file, ".\n");
}

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < cli_command_count; i++)
        if (strcmp(name, cli_commands[i]->name) == 0) return cli_commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[WF_COUNT(cli_commands) + 1] = {"help"};
    int nearest;

    for (size_t i = 0; i < cli_command_count; i++)
        names[i + 1] = cli_commands[i]->name;
    nearest = wf_nearest(name, names, WF_COUNT(names));
    fprintf(stderr, "weft: unknown command \"%s\"", name);
    if (nearest >= 0) fprintf(stderr, "; did you mean \"%s\"?", names[nearest]);
    fprintf(stderr, "\n`weft --help` lists the commands.\n");
    return CLI_USAGE;
}

static int unknown_topic(const char *name)
{
    const char *names[64];
    size_t count = 0;
    int nearest;

    for (size_t i = 0; i < help_topic_count; i++)
        names[count++] = help_topics[i].name;
    for (size_t i = 0; i < cli_command_count && count < WF_COUNT(names); i++)
        names[count++] = cli_commands[i]->name;
    nearest = wf_nearest(name, names, count);
    fprintf(stderr, "weft help: there is no command and no topic \"%s\"", name);
    if (nearest >= 0) fprintf(stderr, "; did you mean \"%s\"?", names[nearest]);
    fprintf(stderr, "\n`weft --help` lists the commands and topics.\n");
    return CLI_USAGE;
}

static void print_topic(const struct help_topic *topic)
{
    printf("%s - %s\n\n%s\n", topic->name, topic->summary, topic->text);
    cli_print_pages(stdout, &topic->page, 1);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static void on_interrupt(int number)
{
    (void)number;
    _exit(CLI_INTERRUPTED);
}

static void exit_when_interrupted(void)
{
    struct sigaction before;

    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        cli_signal_set(SIGINT, on_interrupt);
}

static void on_file_limit(int number)
{
    (void)number;
}

/* A file that reaches the process's limit makes the write fail; the signal would end the tool.
 * Programs that a command starts have the default again. */
static void survive_file_limit(void)
{
    struct sigaction before;

    if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        signal(SIGXFSZ, on_file_limit);
}

/* As the library warns, unless WEFT_LOG asks for errors only. */
static void warn_of_variables(const struct cli_command *command)
{
    weft_variable_info v = {.struct_size = sizeof v};

    for (size_t i = 0; weft_variable_get(i, &v) == WEFT_OK; i++) {
        if (strcmp(v.name, "WEFT_LOG") == 0 && v.value != NULL && strcmp(v.value, "error") == 0)
            return;
        if (v.type != NULL) continue;
        cli_complain(command, "warning: weft does not know %s%s%s%s", v.name,
                     v.nearest != NULL ? "; did you mean " : "", v.nearest != NULL ? v.nearest : "",
                     v.nearest != NULL ? "?" : "; `weft env` lists the variables it knows");
    }
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    if (command->warns) warn_of_variables(command);
    return command->run(command, argc, argv);
}

/* `weft help plan` is `weft plan --help`; `weft help layout` prints the topic of this name too. */
static int print_help_about(int argc, char **argv)
{
    static char help[] = "--help";
    const struct cli_command *command = find_command(argv[2]);
    const struct help_topic *topic = help_topic_find(argv[2]);
    int code = CLI_OK;

    if (command == NULL && topic == NULL) return unknown_topic(argv[2]);
    if (command != NULL) {
        memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof *argv);
        argv[argc - 1] = help;
        code = run(command, argc - 1, argv + 1);
    }
    if (topic == NULL || code != CLI_OK) return code;
    if (command != NULL) printf("\n");
    print_topic(topic);
    return CLI_OK;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";
    const struct cli_command *command;

    exit_when_interrupted();
    survive_file_limit();
    if (argc > 2 && asks_for_help(name)) return print_help_about(argc, argv);
    if (asks_for_help(name)) {
        print_help(argc > 1 ? stdout : stderr);
        return argc > 1 ? CLI_OK : CLI_USAGE;
    }
    if (strcmp(name, "--version") == 0) name = "version";
    command = find_command(name);
    return command != NULL ? run(command, argc - 1, argv + 1) : unknown_command(name);
}
