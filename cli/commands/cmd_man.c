/* cmd_man.c - `weft man`: the manual page, written from the tables of commands and variables. */
#include "common/cli.h"
#include "help/topics.h"

#include <ctype.h>
#include <string.h>

/* Add TEXT with the special characters of roff escaped. */
static void add_text(struct wf_text *out, const char *text)
{
    static const struct {
        char plain;
        const char *roff;
    } escapes[] = {{'\\', "\\e"},  {'-', "\\-"},    {'^', "\\(ha"},
                   {'~', "\\(ti"}, {'\'', "\\(aq"}, {'`', "\\(ga"}};

    if (text[0] == '.') wf_text_add(out, "\\&");
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (i < WF_COUNT(escapes) && escapes[i].plain != *text)
            i++;
        if (i < WF_COUNT(escapes))
            wf_text_add(out, "%s", escapes[i].roff);
        else
            wf_text_char(out, *text);
    }
}

/* Add TEXT as a sentence. */
static void add_sentence(struct wf_text *out, const char *text)
{
    const char first[] = {(char)toupper((unsigned char)text[0]), '\0'};

    add_text(out, first);
    if (first[0] != '\0') add_text(out, text + 1);
    wf_text_add(out, ".\n");
}

static void add_option(struct wf_text *out, const struct cli_option *option)
{
    char letter[] = {'-', option->letter, '\0'};

    wf_text_add(out, ".TP\n\\fB");
    if (option->letter != 0) {
        add_text(out, letter);
        wf_text_add(out, "\\fR, \\fB");
    }
    add_text(out, "--");
    add_text(out, option->name);
    wf_text_add(out, "\\fR");
    if (option->value != NULL) {
        wf_text_add(out, " \\fI");
        add_text(out, option->value);
        wf_text_add(out, "\\fR");
    }
    wf_text_char(out, '\n');
    add_sentence(out, option->help);
}

static void add_command(struct wf_text *out, const struct cli_command *command)
{
    wf_text_add(out, ".SS weft ");
    add_text(out, command->name);
    wf_text_char(out, ' ');
    add_text(out, command->arguments);
    wf_text_char(out, '\n');
    add_sentence(out, command->summary);
    for (const struct cli_option *o = command->options; o->name != NULL; o++)
        add_option(out, o);
    if (command->note != NULL) {
        wf_text_add(out, ".PP\n");
        add_text(out, command->note);
        wf_text_char(out, '\n');
    }
    wf_text_add(out, ".PP\nExample:\n.PP\n.RS\n.nf\n");
    add_text(out, command->example);
    wf_text_add(out, "\n.fi\n.RE\n");
}

/* Add TEXT, whose lines with four blanks are in a format, and are kept. */
static void add_topic(struct wf_text *out, const struct help_topic *topic)
{
    bool literal = false;

    wf_text_add(out, ".SS %s\n", topic->name);
    for (const char *at = topic->text; *at != '\0';) {
        bool in_format = strncmp(at, "    ", 4) == 0;
        size_t indent = in_format ? 4 : 0, length = strcspn(at, "\n");
        char line[160];

        if (in_format != literal && length > 0) {
            wf_text_add(out, in_format ? ".PP\n.RS\n.nf\n" : ".fi\n.RE\n.PP\n");
            literal = in_format;
        }
        if (length > 0) {
            snprintf(line, sizeof line, "%.*s", (int)(length - indent), at + indent);
            add_text(out, line);
            wf_text_char(out, '\n');
        }
        at += length + (at[length] != '\0');
    }
    if (literal) wf_text_add(out, ".fi\n.RE\n");
}

static void add_environment(struct wf_text *out)
{
    weft_variable_info variable = {.struct_size = sizeof variable};

    wf_text_add(out, ".SH ENVIRONMENT\n"
                     "\\fBweft env\\fR shows the values in force and where they are from.\n");
    for (size_t i = 0; weft_variable_get(i, &variable) == WEFT_OK && variable.type != NULL; i++) {
        wf_text_add(out, ".TP\n\\fB%s\\fR (%s", variable.name, variable.type);
        if (variable.fallback != NULL) {
            wf_text_add(out, ", default ");
            add_text(out, variable.fallback);
        }
        wf_text_add(out, ")\n");
        add_sentence(out, variable.help);
    }
}

static void add_page(struct wf_text *out)
{
    wf_text_add(out,
                ".\\\" Written by `weft man`.\n"
                ".TH WEFT 1 \"\" \"weft %s\" \"User Commands\"\n"
                ".SH NAME\nweft \\- move tensors between distributed layouts\n"
                ".SH SYNOPSIS\n.B weft\n.I command\n.RI [ options ]\n"
                ".SH DESCRIPTION\n"
                "weft moves tensors between distributed layouts on any hardware. Plugins "
                "supply memory, streams and communication; this tool shows which of them "
                "serve on this machine and why, proves that they are right, and shows what "
                "the library would do.\n"
                ".PP\nEvery command takes \\fB\\-\\-help\\fR.\n"
                ".SH COMMANDS\n",
                weft_version());
    for (size_t i = 0; i < cli_command_count; i++)
        add_command(out, cli_commands[i]);
    wf_text_add(out, ".SH BENCHMARKS\n");
    for (size_t i = 0; i < cli_bench_count; i++)
        add_command(out, cli_benches[i]);
    wf_text_add(out, ".SH FORMATS\n\\fBweft help\\fR \\fITOPIC\\fR prints one of these.\n");
    for (size_t i = 0; i < help_topic_count; i++)
        add_topic(out, &help_topics[i]);
    add_environment(out);
    wf_text_add(out, ".SH EXIT STATUS\n"
                     ".TP\n.B 0\nDone; the answer is yes.\n"
                     ".TP\n.B 1\nThe answer is no: something is not usable, not legal, different, "
                     "or a check failed. The reason is printed.\n"
                     ".TP\n.B 2\nThe command line is wrong.\n"
                     ".TP\n.B 3\nThe environment cannot: a device, a library, memory or space is "
                     "missing.\n"
                     ".TP\n.B 130\nInterrupted.\n"
                     ".PP\n\\fBweft run\\fR exits with the code of the rank that failed first; 124 "
                     "after its time limit; 127 if the program cannot be run; 128 and the number "
                     "of the signal that ended the rank or the job.\n");
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_args args;
    struct wf_text text = {0};
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    add_page(&text);
    return cli_print(command, stdout, &text);
}

const struct cli_command cli_man = {
    .name = "man",
    .summary = "print the manual page, for man to read",
    .arguments = "",
    .example = "weft man | man -l -",
    .options = (const struct cli_option[]){{0}},
    .run = run,
};
