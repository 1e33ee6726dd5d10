/* checkpoints.h - a checkpoint that a command reads, as --rules and --set change it. */
#ifndef WEFT_CLI_CHECKPOINTS_H
#define WEFT_CLI_CHECKPOINTS_H

#include "common/cli.h"
#include "weft/file.h"

enum { CLI_RULES_MOST = 8 };

/* The files of --rules, in their order. */
struct cli_rules {
    weft_checkpoint_rules *list[CLI_RULES_MOST];
    int32_t count;
};

struct cli_checkpoint {
    weft_checkpoint *files;                  /* at the path */
    weft_checkpoint *mapped[CLI_RULES_MOST]; /* what each file of rules makes of it, in turn */
    bool missing;                            /* nothing is at the path */
};

/* clang-format off: a list of options */
#define CLI_RULES                                                                                  \
    {"rules", "FILES", "rename, join and split tensors as these files say, in turn", 0},           \
    {                                                                                              \
        "set", "LIST", "values for the rules, such as heads=32,kv_heads=8", 0                      \
    }
/* clang-format on */

/* Read the layout of --layout, with the mesh of --mesh if that is given; *OUT is NULL without
 * --layout. */
weft_status cli_layout_open(const struct cli_command *command, const struct cli_args *args,
                            weft_layout_file **out);
/* Read the files of --rules, a list with commas, with the values of --set.  Without --rules, OUT
 * has no files.  The caller closes OUT, after a failure too. */
weft_status cli_rules_open(const struct cli_command *command, const struct cli_args *args,
                           struct cli_rules *out);
void cli_rules_close(struct cli_rules *rules);
/* Open PATH; RULES may be NULL.  *USED is what the command works with.  The caller closes OUT,
 * after a failure too. */
weft_status cli_checkpoint_open(const char *path, const struct cli_rules *rules,
                                struct cli_checkpoint *out, const weft_checkpoint **used);
/* As cli_fail, of a command that works with CHECKPOINT: CLI_ENVIRONMENT if it is missing. */
int cli_checkpoint_fail(const struct cli_command *command, const struct cli_checkpoint *checkpoint,
                        weft_status status);
/* `missing` stays. */
void cli_checkpoint_close(struct cli_checkpoint *checkpoint);

#endif
