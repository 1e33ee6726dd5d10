/* options.c - parsing of command lines, help pages, and output of commands. */
#include "common/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_usage(FILE *file, const struct cli_command *command)
{
    fprintf(file, "usage: weft %s%s%s\n", command->name, command->arguments[0] != '\0' ? " " : "",
            command->arguments);
}

void cli_print_page(FILE *file, const struct cli_command *command)
{
    cli_print_pages(file, (const char *const[]){"cli.md", command->page},
                    command->page != NULL ? 2 : 1);
}

static void print_help(const struct cli_command *command)
{
    printf("weft %s - %s\n\n", command->name, command->summary);
    print_usage(stdout, command);
    printf("\noptions:\n");
    for (const struct cli_option *o = command->options; o->name != NULL; o++) {
        char left[48], letter[8] = "";
        if (o->letter != 0) snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->value != NULL ? " " : "",
                 o->value != NULL ? o->value : "");
        printf("  %-24s %s\n", left, o->help);
    }
    printf("  %-24s %s\n", "--help", "print this page");
    if (command->note != NULL) printf("\n%s\n", command->note);
    printf("\nexample:\n  %s\n\n", command->example);
    cli_print_page(stdout, command);
}

static int option_index(const struct cli_command *command, const char *name, size_t length)
{
    for (int i = 0; command->options[i].name != NULL; i++)
        if (strlen(command->options[i].name) == length &&
            memcmp(command->options[i].name, name, length) == 0)
            return i;
    return -1;
}

/* Options of earlier versions and of other launchers, with their names today. */
static const struct {
    const char *old, *now;
} renamed[] = {{"ms", "budget-ms"},
               {"n", "ranks"},
               {"np", "ranks"},
               {"nproc", "ranks"},
               {"memory", "memory-limit"},
               {"memory", "buffers"},
               {"timeout", "comm-timeout"},
               {"without", "skip"},
               {"sizes", "rows"}};

static const char *suggest_option(const struct cli_command *command, const char *word)
{
    const char *names[32], *name = word + strspn(word, "-");
    size_t count = 0, length = strcspn(name, "=");
    int nearest;

    for (size_t i = 0; i < WF_COUNT(renamed); i++)
        if (strlen(renamed[i].old) == length && strncmp(renamed[i].old, name, length) == 0 &&
            option_index(command, renamed[i].now, strlen(renamed[i].now)) >= 0)
            return renamed[i].now;
    while (count < WF_COUNT(names) && command->options[count].name != NULL) {
        names[count] = command->options[count].name;
        count++;
    }
    nearest = wf_nearest(name, names, count);
    return nearest >= 0 ? names[nearest] : NULL;
}

static void complain_unknown(const struct cli_command *command, const char *word)
{
    const char *suggestion = suggest_option(command, word);

    fprintf(stderr, "weft %s: unknown option %s", command->name, word);
    if (suggestion != NULL) fprintf(stderr, "; did you mean --%s?", suggestion);
    fprintf(stderr, "\n`weft %s --help` lists the options.\n", command->name);
}

static int letter_index(const struct cli_command *command, char letter)
{
    for (int i = 0; command->options[i].name != NULL; i++)
        if (command->options[i].letter == letter) return i;
    return -1;
}

/* Find the option that WORD names: --ranks, --ranks=4, -n or -n4.  *VALUE becomes its value within
 * WORD, or NULL.  Returns -1 if there is no such option. */
static int find_option(const struct cli_command *command, const char *word, const char **value)
{
    const char *name = word + 2;
    bool has_number = name[0] >= '0' && name[0] <= '9';
    size_t length = strcspn(name, "=");

    *value = NULL;
    if (word[1] == '-') {
        if (name[length] == '=') *value = name + length + 1;
        return option_index(command, name, length);
    }
    if (name[0] != '\0' && !has_number) return -1;
    if (has_number) *value = name;
    return letter_index(command, word[1]);
}

static bool is_repeated(const struct cli_command *command, const char *name)
{
    for (size_t i = 0; command->repeated != NULL && command->repeated[i] != NULL; i++)
        if (strcmp(command->repeated[i], name) == 0) return true;
    return false;
}

/* An option has one value, so that none is left out silently.  False after printing an error. */
static bool may_have(const struct cli_command *command, const struct cli_args *args, int index,
                     const char *value)
{
    const char *name = command->options[index].name, *kind = command->options[index].value,
               *first = args->values[index];

    if (first == NULL || strcmp(first, value) == 0 || is_repeated(command, name)) return true;
    fprintf(stderr, "weft %s: --%s is \"%s\" and \"%s\"; give ", command->name, name, first, value);
    if (strcmp(kind, "LIST") == 0 || strcmp(kind, "FILES") == 0)
        fprintf(stderr, "one list, such as --%s %s,%s\n", name, first, value);
    else
        fprintf(stderr, "one of them\n");
    return false;
}

/* Take the option at argv[*at].  False after printing an error. */
static bool take_option(const struct cli_command *command, int argc, char **argv, int *at,
                        struct cli_args *out)
{
    const char *word = argv[*at], *value;
    int index = find_option(command, word, &value);

    if (index < 0) {
        complain_unknown(command, word);
        return false;
    }
    if (command->options[index].value == NULL) {
        if (value != NULL) {
            fprintf(stderr, "weft %s: --%s takes no value\n", command->name,
                    command->options[index].name);
            return false;
        }
        out->values[index] = "";
        return true;
    }
    if (value == NULL && *at + 1 >= argc) {
        fprintf(stderr, "weft %s: --%s needs a value, %s\n", command->name,
                command->options[index].name, command->options[index].value);
        return false;
    }
    if (value == NULL) value = argv[++*at];
    if (!may_have(command, out, index, value)) return false;
    out->values[index] = value;
    return true;
}

int cli_fail_argument(const struct cli_command *command, const char *word)
{
    fprintf(stderr, "weft %s: unexpected argument \"%s\"\n", command->name, word);
    print_usage(stderr, command);
    return CLI_USAGE;
}

bool cli_parse(const struct cli_command *command, int argc, char **argv, bool stop_at_rest,
               struct cli_args *out, int *exit_code)
{
    const char *complaint = NULL;
    bool options_over = false;

    *out = (struct cli_args){.rest_at = argc};
    *exit_code = CLI_USAGE;
    for (int i = 1; i < argc; i++) {
        bool is_option = !options_over && argv[i][0] == '-' && argv[i][1] != '\0';
        if (is_option && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            print_help(command);
            *exit_code = CLI_OK;
            return false;
        }
        if (is_option && strcmp(argv[i], "--") == 0) {
            options_over = true;
        } else if (is_option) {
            if (!take_option(command, argc, argv, &i, out)) return false;
        } else {
            if (out->rest_count == 0) out->rest_at = i;
            if (stop_at_rest) break;
            if (out->rest_count == command->rest_max) {
                cli_fail_argument(command, argv[i]);
                return false;
            }
            if (out->rest_count < (int)WF_COUNT(out->rest)) out->rest[out->rest_count] = argv[i];
            argv[out->rest_at + out->rest_count++] = argv[i]; /* after the others */
        }
    }
    if (command->complaint != NULL) complaint = command->complaint(command, out);
    if (complaint != NULL) {
        cli_complain(command, "%s", complaint);
        return false;
    }
    *exit_code = CLI_OK;
    return true;
}

const char *cli_value(const struct cli_command *command, const struct cli_args *args,
                      const char *name)
{
    int index = option_index(command, name, strlen(name));

    return index < 0 ? NULL : args->values[index];
}

bool cli_has(const struct cli_command *command, const struct cli_args *args, const char *name)
{
    return cli_value(command, args, name) != NULL;
}

bool cli_int(const struct cli_command *command, const struct cli_args *args, const char *name,
             int64_t least, int64_t most, int64_t fallback, int64_t *out)
{
    const char *text = cli_value(command, args, name);
    struct wf_scan scan = {text, 0};
    int64_t value = fallback;

    if (text != NULL && (wf_scan_int(&scan, "a number", &value) != WEFT_OK || !wf_scan_end(&scan) ||
                         value < least || value > most)) {
        fprintf(stderr,
                "weft %s: --%s is \"%s\"; expected a number from %" PRId64 " to %" PRId64 "\n",
                command->name, name, text, least, most);
        return false;
    }
    *out = value;
    return true;
}

weft_status cli_dtype(const struct cli_command *command, const struct cli_args *args,
                      const char *name, enum weft_dtype *out)
{
    const char *text = cli_value(command, args, name);
    struct wf_text reason = {0};
    uint32_t dtype = WEFT_DTYPE_F32;
    weft_status status = WEFT_OK;

    if (text != NULL && !wf_dtype_find(text, strlen(text), &dtype)) {
        wf_dtype_explain(text, strlen(text), &reason);
        status = wf_fail(WEFT_ERR_PARSE, "--%s: %s", name, reason.data != NULL ? reason.data : "");
        wf_text_free(&reason);
    }
    *out = (enum weft_dtype)dtype;
    return status;
}

static int exit_code_of(weft_status status)
{
    switch (status) {
    case WEFT_ERR_NO_MEMORY:
    case WEFT_ERR_SYSTEM:
    case WEFT_ERR_DEVICE:
    case WEFT_ERR_NO_BACKEND:
    case WEFT_ERR_NO_LIBRARY:
    case WEFT_ERR_OLD_LIBRARY:
    case WEFT_ERR_NO_DEVICE:
        return CLI_ENVIRONMENT;
    default:
        return CLI_NO;
    }
}

void cli_complain(const struct cli_command *command, const char *format, ...)
{
    struct wf_text text = {0};
    va_list args;

    va_start(args, format);
    wf_text_addv(&text, format, args);
    va_end(args);
    if (text.data != NULL) wf_text_clean_lines(text.data, text.length);
    fprintf(stderr, "weft %s: %s\n", command->name, text.failed ? "out of memory" : text.data);
    wf_text_free(&text);
}

int cli_fail(const struct cli_command *command, weft_status status)
{
    cli_complain(command, "%s", weft_last_error());
    return exit_code_of(status);
}

int cli_fail_file(const struct cli_command *command, const char *path, int error)
{
    cli_complain(command, "%s: %s", path, kit_error_text(error));
    return CLI_ENVIRONMENT;
}

static int print_named(const struct cli_command *command, FILE *file, const char *path,
                       struct wf_text *text)
{
    char *string;
    weft_status status = wf_text_take(text, &string);

    if (status != WEFT_OK) return cli_fail(command, status);
    fputs(string, file);
    wf_free(string);
    if (fflush(file) == 0 && !ferror(file)) return CLI_OK;
    return cli_fail_file(command, path, errno);
}

int cli_print(const struct cli_command *command, FILE *file, struct wf_text *text)
{
    return print_named(command, file, "standard output", text);
}

int cli_answer(const struct cli_command *command, weft_status status, struct wf_text *text)
{
    if (status == WEFT_OK) return cli_print(command, stdout, text);
    wf_text_free(text);
    return cli_fail(command, status);
}

int cli_print_to(const struct cli_command *command, const char *path, struct wf_text *text)
{
    FILE *file;
    int code;

    if (strcmp(path, "-") == 0) return cli_print(command, stdout, text);
    file = fopen(path, "w");
    if (file == NULL) {
        wf_text_free(text);
        return cli_fail_file(command, path, errno);
    }
    code = print_named(command, file, path, text);
    if (fclose(file) != 0 && code == CLI_OK) code = cli_fail_file(command, path, errno);
    return code;
}

const char *cli_colour(FILE *file, enum cli_colour colour)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[31m",
                                        "\033[32m", "\033[33m", "\033[2m"};
    const char *refused = getenv("NO_COLOR");

    if (!isatty(fileno(file)) || (refused != NULL && refused[0] != '\0')) return "";
    return codes[colour];
}
