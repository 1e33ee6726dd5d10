/* cli.h - services that the commands of the `weft` tool share: options, exit codes, printing. */
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include "base/base.h"
#include "weft/parallel.h"

#include <stdbool.h>
#include <stdio.h>

enum cli_exit {
    CLI_OK = 0,            /* done; the answer is yes */
    CLI_NO = 1,            /* the answer is no: illegal, different, a failed check */
    CLI_USAGE = 2,         /* wrong usage */
    CLI_ENVIRONMENT = 3,   /* the environment lacks something: a device, memory, space */
    CLI_INTERRUPTED = 130, /* interrupted by SIGINT */
};

/* One option of a command: `--json` is a switch, `--ranks N` takes a value. */
struct cli_option {
    const char *name;  /* without the dashes */
    const char *value; /* "N", or NULL for a switch */
    const char *help;
    char letter; /* 'n' for `-n N`, or 0 */
};

/* Options of several commands, with the same help text in each. */
#define CLI_RANKS(help)                                                                            \
    {                                                                                              \
        "ranks", "N", help, 'n'                                                                    \
    }
#define CLI_LOCAL_RANKS CLI_RANKS("ranks to start on this host (default: 2)")
#define CLI_BACKEND                                                                                \
    {                                                                                              \
        "backend", "B", "the backend, instead of WEFT_BACKEND", 0                                  \
    }
#define CLI_JSON                                                                                   \
    {                                                                                              \
        "json", NULL, "print JSON", 0                                                              \
    }
#define CLI_SVG                                                                                    \
    {                                                                                              \
        "svg", "FILE", "draw it into FILE; - is standard output", 0                                \
    }
#define CLI_SEED                                                                                   \
    {                                                                                              \
        "seed", "S", "the seed of random numbers (default: 1)", 0                                  \
    }
#define CLI_MESH                                                                                   \
    {                                                                                              \
        "mesh", "M", "the mesh: 2x4, dp=2,tp=4, 2x2@4-7, 2x2@0,2,1,3, dp=*,tp=4", 0                \
    }
#define CLI_MESH_RANKS CLI_RANKS("ranks of the job; one size of a mesh may be *: what they leave")
#define CLI_SHAPE                                                                                  \
    {                                                                                              \
        "shape", "S", "the tensor's shape: 4096x4096; [] is a scalar", 0                           \
    }
#define CLI_DTYPE                                                                                  \
    {                                                                                              \
        "dtype", "T", "the tensor's dtype (default: f32)", 0                                       \
    }
#define CLI_PLACEMENTS                                                                             \
    {                                                                                              \
        "placements", "P",                                                                         \
            "one per mesh axis: R, S(dim), SS(dim,factor), B(dim;sizes), G(dim;sizes), P(op), "    \
            "O(owner); or a spec, f32[8,16] S(0),R, without --shape and --dtype",                  \
            0                                                                                      \
    }
/* A tensor on a mesh. */
#define CLI_TENSOR CLI_MESH, CLI_MESH_RANKS, CLI_SHAPE, CLI_DTYPE, CLI_PLACEMENTS
#define CLI_TO                                                                                     \
    {                                                                                              \
        "to", "P", "the target: R,S(1), or a spec", 0                                              \
    }
#define CLI_COSTS                                                                                  \
    {                                                                                              \
        "costs", "T", "a cost table of `weft costs`, or a file (default: WEFT_COSTS)", 0           \
    }
/* The most memory that the subject of the command may take. */
#define CLI_MEMORY_LIMIT(help)                                                                     \
    {                                                                                              \
        "memory-limit", "SIZE", help, 0                                                            \
    }
#define CLI_BUDGET_MS(help)                                                                        \
    {                                                                                              \
        "budget-ms", "N", help, 0                                                                  \
    }

struct cli_args;

struct cli_command {
    const char *name, *summary, *arguments, *example;
    const char *page;                 /* of docs/ about its subject; NULL: cli.md alone */
    const char *note;                 /* lines of its help page, or NULL */
    const struct cli_option *options; /* ended by a NULL name; --help is implied */
    /* Options that may have several values, which the command reads from argv, ended by NULL.
     * NULL: none. */
    const char *const *repeated;
    int rest_max; /* the most arguments beside options; cli_parse refuses more */
    /* What is missing from a command line, or contradicts itself; NULL: nothing does.  cli_parse
     * calls it, unless it is NULL. */
    const char *(*complaint)(const struct cli_command *command, const struct cli_args *args);
    /* It neither opens plugins nor joins a job, so that the library does not warn about variables
     * that it does not know. */
    bool warns;
    int (*run)(const struct cli_command *command, int argc, char **argv);
};

/* A parsed command line.  It points into argv. */
struct cli_args {
    const char *values[32]; /* per option of the command; "" for a given switch, NULL if absent */
    const char *rest[2];    /* the first arguments that are not options, in order */
    int rest_count;         /* of all of them */
    int rest_at; /* index in argv of the first of them, or argc; the others follow it there */
};

/* Read argv[1..] by COMMAND's options.  False after printing help (*exit_code CLI_OK) or an error
 * (CLI_USAGE): an unknown option, with the nearest known one, an argument beyond rest_max, or the
 * command's complaint.
 * Arguments after "--" are not options.  STOP_AT_REST: parsing ends at the first argument that is
 * not an option (`weft run prog --flag`), which is argv[rest_at]. */
bool cli_parse(const struct cli_command *command, int argc, char **argv, bool stop_at_rest,
               struct cli_args *out, int *exit_code);
/* Print that COMMAND does not take the argument WORD, and its usage.  Returns CLI_USAGE. */
int cli_fail_argument(const struct cli_command *command, const char *word);

/* Print the pages of the manual about COMMAND. */
void cli_print_page(FILE *file, const struct cli_command *command);
/* pages.c: print the names of COUNT pages: where they are installed, or else in the sources. */
void cli_print_pages(FILE *file, const char *const *pages, size_t count);

/* Value of option NAME, or NULL. */
const char *cli_value(const struct cli_command *command, const struct cli_args *args,
                      const char *name);
bool cli_has(const struct cli_command *command, const struct cli_args *args, const char *name);

/* Create the mesh of OPTION, which may have a size * if --ranks is given; NULL: the option is
 * absent. Errors name the option. */
weft_status cli_mesh(const struct cli_command *command, const struct cli_args *args,
                     const char *option, weft_mesh **out);

/* Create the spec of OPTION on MESH: placements of the tensor of --shape and --dtype, or a whole
 * spec such as "f32[8,16] S(0),R", beside which the two are refused.  Errors name the option. */
weft_status cli_spec(const struct cli_command *command, const struct cli_args *args,
                     const char *option, const weft_mesh *mesh, weft_spec **out);
/* Create the spec that TEXT of OPTION is on MESH: placements of TENSOR, or a whole spec. */
weft_status cli_spec_of(const weft_spec *tensor, const weft_mesh *mesh, const char *option,
                        const char *text, weft_spec **out);
/* True if TEXT is a whole spec, not placements. */
bool cli_is_spec(const char *text);

/* Read option NAME as an integer from LEAST to MOST; FALLBACK if it is absent.  False after
 * printing an error. */
bool cli_int(const struct cli_command *command, const struct cli_args *args, const char *name,
             int64_t least, int64_t most, int64_t fallback, int64_t *out);

/* Read option NAME as a size in bytes: "65536", "64K", "64KiB"; FALLBACK if it is absent.  False
 * after printing an error. */
bool cli_size(const struct cli_command *command, const struct cli_args *args, const char *name,
              int64_t fallback, int64_t *out);

/* Read option NAME as a dtype; f32 if it is absent.  Errors name the option. */
weft_status cli_dtype(const struct cli_command *command, const struct cli_args *args,
                      const char *name, enum weft_dtype *out) WF_NODISCARD;

/* Print an error of COMMAND, which may quote files and names of others, to standard error as a
 * terminal may show it. */
void cli_complain(const struct cli_command *command, const char *format, ...) WF_PRINTF(2, 3);

/* Print the last error of the thread for COMMAND.  Returns the exit code for STATUS:
 * CLI_ENVIRONMENT if the machine lacks something, else CLI_NO. */
int cli_fail(const struct cli_command *command, weft_status status);

/* Print "PATH: " and the text of errno ERROR for COMMAND.  Returns CLI_ENVIRONMENT. */
int cli_fail_file(const struct cli_command *command, const char *path, int error);

/* Print TEXT to FILE and free it.  Returns the exit code: CLI_ENVIRONMENT, after printing an
 * error, if TEXT had no memory or could not be written. */
int cli_print(const struct cli_command *command, FILE *file, struct wf_text *text);
/* The same on standard output if STATUS is WEFT_OK; otherwise as cli_fail, and TEXT is freed. */
int cli_answer(const struct cli_command *command, weft_status status, struct wf_text *text);
/* As cli_print, to the file PATH, which is created; "-" is standard output. */
int cli_print_to(const struct cli_command *command, const char *path, struct wf_text *text);

/* Append the content of the file PATH, "-" is standard input, to OUT.  False after printing an
 * error of COMMAND, with *EXIT_CODE set: the file cannot be read, or is not text. */
bool cli_read_file(const struct cli_command *command, const char *path, struct wf_text *out,
                   int *exit_code);

/* The value that the environment gives to a variable of weft, or NULL. */
const char *cli_variable(const char *name);

/* Set *OUT to what ARGUMENT names, a backend that weft_backends_create takes: the whole path of a
 * file, also of one that WEFT_BACKEND names where ARGUMENT is its plugin, or ARGUMENT.  The caller
 * frees *OUT.  False after printing an error of COMMAND, with *EXIT_CODE set. */
bool cli_plugin(const struct cli_command *command, const char *argument, char **out,
                int *exit_code);

/* The escape sequence of COLOUR if FILE is a terminal and NO_COLOR is not set, else "". */
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
