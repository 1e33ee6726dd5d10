/* cli.h - what the commands of the `weft` tool share. */
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include "base/base.h"
#include "weft/weft.h"

#include <stdbool.h>
#include <stdio.h>

enum cli_exit {
    CLI_OK = 0,   /* what was asked for is usable, right or done */
    CLI_NO = 1,   /* it is not, and the reason was printed */
    CLI_USAGE = 2 /* the command line itself is wrong */
};

/* One option of a command: `--json` takes no value, `--ranks N` does; of one letter, `-n N`. */
struct cli_option {
    const char *name;  /* without the dashes */
    const char *value; /* "N", or NULL for a switch */
    const char *help;
};

struct cli_command {
    const char *name, *summary, *arguments, *example;
    const struct cli_option *options; /* ended by a NULL name; --help is implied */
    int (*run)(const struct cli_command *command, int argc, char **argv);
};

/* A command line taken apart.  Borrowed pointers into argv. */
struct cli_args {
    const char *values[32]; /* per option of the command; "" for a given switch, NULL if absent */
    const char *rest[64];   /* what is not an option, in order */
    int rest_count;
    int rest_at; /* index in argv of the first of them; argc if there is none */
};

/* Read argv[1..] by COMMAND's options.  False after printing help (*exit_code CLI_OK) or a
 * complaint with the nearest known option (CLI_USAGE).  Everything after "--" is rest.
 * STOP_AT_REST: what follows the first rest word is not looked at (`weft run prog --flag`); it is
 * argv[rest_at] and on. */
bool cli_parse(const struct cli_command *command, int argc, char **argv, bool stop_at_rest,
               struct cli_args *out, int *exit_code);

/* Value of option NAME, or NULL. */
const char *cli_value(const struct cli_command *command, const struct cli_args *args,
                      const char *name);
bool cli_has(const struct cli_command *command, const struct cli_args *args, const char *name);

/* Option NAME as an integer in [least, most]; FALLBACK if absent.  False after a complaint. */
bool cli_int(const struct cli_command *command, const struct cli_args *args, const char *name,
             int64_t least, int64_t most, int64_t fallback, int64_t *out);

/* Option NAME as a size in bytes: "65536", "64K", "64KiB"; FALLBACK if absent.  False after a
 * complaint. */
bool cli_size(const struct cli_command *command, const struct cli_args *args, const char *name,
              int64_t fallback, int64_t *out);
/* Such a size, at least 1, at the beginning of TEXT.  The length taken, or 0. */
size_t cli_scan_size(const char *text, int64_t *out);

/* What stands before an option's NAME: "-" for one letter, else "--". */
const char *cli_dashes(const char *name);

/* Print the thread's last error for COMMAND and return CLI_NO. */
int cli_fail(const struct cli_command *command);

/* Print TEXT (or the memory failure it met) to FILE and free it. */
int cli_print(const struct cli_command *command, FILE *file, struct wf_text *text);

/* Colour on a terminal without NO_COLOR; "" elsewhere. */
enum cli_colour { CLI_PLAIN, CLI_BOLD, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_DIM };
const char *cli_colour(FILE *file, enum cli_colour colour);

/* Every command of the tool, in the order of commands.def. */
extern const struct cli_command *const cli_commands[];
extern const size_t cli_command_count;

/* Every benchmark, in the order of benches.def: a command named "bench WHAT". */
extern const struct cli_command *const cli_benches[];
extern const size_t cli_bench_count;
const char *cli_bench_what(const struct cli_command *bench);

#endif
