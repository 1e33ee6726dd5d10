/* cmd_completion.c - `weft completion`: scripts with which bash and zsh complete command lines
 * of weft, generated from the tables of the commands. */
#include "common/cli.h"

#include <ctype.h>
#include <string.h>

/* True if WORD is a choice between literal words, such as "bash|zsh". */
static bool is_choice(const char *word, size_t length)
{
    bool bar = false;

    for (size_t i = 0; i < length; i++) {
        if (!islower((unsigned char)word[i]) && !isdigit((unsigned char)word[i]) &&
            strchr("|-_", word[i]) == NULL)
            return false;
        bar = bar || word[i] == '|';
    }
    return bar && word[0] != '-' && word[0] != '|';
}

/* Add "bash|zsh" as "bash zsh". */
static void add_choice(struct wf_text *out, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        wf_text_char(out, word[i] == '|' ? ' ' : word[i]);
}

/* Add the choices in the usage line of COMMAND, each followed by a blank. */
static void add_argument_choices(struct wf_text *out, const struct cli_command *command)
{
    const char *at = command->arguments;

    while (*at != '\0') {
        size_t length = strcspn(at, " []");
        if (is_choice(at, length)) {
            add_choice(out, at, length);
            wf_text_char(out, ' ');
        }
        at += length + (at[length] != '\0');
    }
}

/* True if COMMAND is followed by the name of a benchmark, with options of its own. */
static bool has_benchmarks(const struct cli_command *command)
{
    return strcmp(command->name, "bench") == 0;
}

static bool names_a_file(const char *value)
{
    static const char *const words[] = {"FILE", "FILES", "PATH", "DIRECTORY", "FOLDER"};

    for (size_t i = 0; i < WF_COUNT(words); i++)
        if (strcmp(value, words[i]) == 0) return true;
    return false;
}

/* ---- bash ---- */

/* Add the name of COMMAND as one word: "bench coll" becomes bench.coll. */
static void add_bash_name(struct wf_text *out, const struct cli_command *command)
{
    for (const char *c = command->name; *c != '\0'; c++)
        wf_text_char(out, *c == ' ' ? '.' : *c);
}

static void add_bash_values(struct wf_text *out, const struct cli_command *command)
{
    for (const struct cli_option *o = command->options; o->name != NULL; o++) {
        if (o->value == NULL) continue;
        wf_text_add(out, "    ");
        add_bash_name(out, command);
        wf_text_add(out, "/--%s", o->name);
        if (o->letter != 0) {
            wf_text_char(out, '|');
            add_bash_name(out, command);
            wf_text_add(out, "/-%c", o->letter);
        }
        wf_text_add(out, ") ");
        if (is_choice(o->value, strlen(o->value))) {
            wf_text_add(out, "offers=\"");
            add_choice(out, o->value, strlen(o->value));
            wf_text_add(out, "\" ;;\n");
        } else {
            wf_text_add(out, names_a_file(o->value)
                                 ? "COMPREPLY=(); return ;;\n"
                                 : "COMPREPLY=(); compopt +o default; return ;;\n");
        }
    }
}

static void add_bash_command(struct wf_text *out, const struct cli_command *command)
{
    wf_text_add(out, "    ");
    add_bash_name(out, command);
    wf_text_add(out, "/*) offers=\"");
    add_argument_choices(out, command);
    for (size_t i = 0; has_benchmarks(command) && i < cli_bench_count; i++)
        wf_text_add(out, "%s ", cli_bench_what(cli_benches[i]));
    for (const struct cli_option *o = command->options; o->name != NULL; o++) {
        if (o->letter != 0) wf_text_add(out, "-%c ", o->letter);
        wf_text_add(out, "--%s ", o->name);
    }
    wf_text_add(out, "--help\" ;;\n");
}

static void add_bash_cases(struct wf_text *out, const struct cli_command *const *commands,
                           size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_bash_values(out, commands[i]);
    for (size_t i = 0; i < count; i++)
        add_bash_command(out, commands[i]);
}

static void add_bash(struct wf_text *out)
{
    wf_text_add(out, "# bash completion of weft, as written by `weft completion bash`.\n"
                     "_weft()\n{\n"
                     "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} offers=\n"
                     "    if ((COMP_CWORD == 1)); then command=weft; fi\n"
                     "    if ((COMP_CWORD > 2)) && [[ $command == bench ]]; then\n"
                     "        command=bench.${COMP_WORDS[2]}\n"
                     "    fi\n"
                     "    case $command/${COMP_WORDS[COMP_CWORD - 1]} in\n"
                     "    weft/*) offers=\"");
    for (size_t i = 0; i < cli_command_count; i++)
        wf_text_add(out, "%s ", cli_commands[i]->name);
    wf_text_add(out, "--help --version\" ;;\n");
    add_bash_cases(out, cli_commands, cli_command_count);
    add_bash_cases(out, cli_benches, cli_bench_count);
    wf_text_add(out, "    esac\n"
                     "    mapfile -t COMPREPLY < <(compgen -W \"$offers\" -- \"$word\")\n"
                     "}\n"
                     "complete -o default -F _weft weft\n");
}

/* ---- zsh ---- */

/* Add TEXT to a single-quoted word of zsh; quotes, colons and brackets are escaped. */
static void add_zsh_text(struct wf_text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            wf_text_add(out, "'\\''");
        else if (strchr(":[]\\", *text) != NULL)
            wf_text_add(out, "\\%c", *text);
        else
            wf_text_char(out, *text);
    }
}

/* Add DASHES and the name of OPTION, or its letter. */
static void add_zsh_spelling(struct wf_text *out, const struct cli_option *option,
                             const char *spelling)
{
    wf_text_add(out, " \\\n      '%s[", spelling);
    add_zsh_text(out, option->help);
    wf_text_char(out, ']');
    if (option->value != NULL) {
        wf_text_char(out, ':');
        add_zsh_text(out, option->value);
        wf_text_char(out, ':');
        if (is_choice(option->value, strlen(option->value))) {
            wf_text_char(out, '(');
            add_choice(out, option->value, strlen(option->value));
            wf_text_char(out, ')');
        } else if (names_a_file(option->value)) {
            wf_text_add(out, "_files");
        }
    }
    wf_text_char(out, '\'');
}

/* `--ranks=2` and `--ranks 2`, but `-n 2` only. */
static void add_zsh_option(struct wf_text *out, const struct cli_option *option)
{
    char spelling[64];

    if (option->letter != 0) {
        snprintf(spelling, sizeof spelling, "-%c", option->letter);
        add_zsh_spelling(out, option, spelling);
    }
    snprintf(spelling, sizeof spelling, "--%s%s", option->name, option->value != NULL ? "=" : "");
    add_zsh_spelling(out, option, spelling);
}

static void add_zsh_command(struct wf_text *out, const struct cli_command *command,
                            const char *name)
{
    static const struct cli_option help = {"help", NULL, "print this page", 0};
    struct wf_text choices = {0};

    wf_text_add(out, "  %s)\n    _arguments", name);
    for (const struct cli_option *o = command->options; o->name != NULL; o++)
        add_zsh_option(out, o);
    add_zsh_option(out, &help);
    add_argument_choices(&choices, command);
    if (choices.length > 0)
        wf_text_add(out, " \\\n      '*:word:(%s)' ;;\n", choices.data);
    else
        wf_text_add(out, " \\\n      '*:file:_files' ;;\n");
    out->failed = out->failed || choices.failed;
    wf_text_free(&choices);
}

static const char *last_word(const struct cli_command *command)
{
    const char *blank = strrchr(command->name, ' ');

    return blank != NULL ? blank + 1 : command->name;
}

/* Add a function that completes the name of one of COMMANDS, described as KIND, and its
 * arguments. */
static void add_zsh_function(struct wf_text *out, const char *function, const char *kind,
                             const struct cli_command *const *commands, size_t count)
{
    wf_text_add(out, "%s() {\n  local -a commands\n  commands=(\n", function);
    for (size_t i = 0; i < count; i++) {
        wf_text_add(out, "    '%s:", last_word(commands[i]));
        add_zsh_text(out, commands[i]->summary);
        wf_text_add(out, "'\n");
    }
    wf_text_add(out,
                "  )\n"
                "  if ((CURRENT == 2)); then\n"
                "    _describe %s commands\n"
                "    return\n"
                "  fi\n"
                "  shift words\n"
                "  ((CURRENT--))\n"
                "  case $words[1] in\n",
                kind);
    for (size_t i = 0; i < count; i++)
        if (has_benchmarks(commands[i]))
            wf_text_add(out, "  bench) _weft_bench ;;\n");
        else
            add_zsh_command(out, commands[i], last_word(commands[i]));
    wf_text_add(out, "  esac\n}\n");
}

static void add_zsh(struct wf_text *out)
{
    wf_text_add(out, "#compdef weft\n"
                     "# zsh completion of weft, as written by `weft completion zsh`.\n");
    add_zsh_function(out, "_weft_bench", "benchmark", cli_benches, cli_bench_count);
    add_zsh_function(out, "_weft", "command", cli_commands, cli_command_count);
    wf_text_add(
        out, "if [[ $funcstack[1] == _weft ]]; then _weft \"$@\"; else compdef _weft weft; fi\n");
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_args args;
    struct wf_text text = {0};
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (args.rest_count == 1 && strcmp(args.rest[0], "bash") == 0) {
        add_bash(&text);
    } else if (args.rest_count == 1 && strcmp(args.rest[0], "zsh") == 0) {
        add_zsh(&text);
    } else {
        fprintf(stderr, "weft completion: name the shell, bash or zsh\n");
        return CLI_USAGE;
    }
    return cli_print(command, stdout, &text);
}

const struct cli_command cli_completion = {
    .name = "completion",
    .summary = "print the script with which bash or zsh completes command lines of weft",
    .arguments = "bash|zsh",
    .example = "source <(weft completion bash)",
    .options = (const struct cli_option[]){{0}},
    .rest_max = 1,
    .run = run,
};
