/* cmd_env.c - `weft env`: every knob, its value, and where that comes from. */
#include "common/cli.h"

#include "config/config.h"

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct wf_environment environment = wf_environment();
    struct wf_config *config;
    struct cli_args args;
    struct wf_text text = {0};
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (cli_has(command, &args, "markdown")) {
        wf_config_print_markdown(&text);
        return cli_print(command, stdout, &text);
    }
    if (cli_has(command, &args, "json"))
        wf_config_print_json(environment, &text);
    else
        wf_config_print(environment, &text);
    exit_code = cli_print(command, stdout, &text);
    if (exit_code != CLI_OK) return exit_code;
    if (wf_config_parse(environment, &config) != WEFT_OK) return cli_fail(command);
    wf_config_release(&config);
    return CLI_OK;
}

const struct cli_command cli_env = {
    .name = "env",
    .summary = "the environment variables weft obeys, and what they are set to",
    .arguments = "[--json | --markdown]",
    .example = "WEFT_LOG=debug weft env",
    .options = (const struct cli_option[]){{"json", NULL, "as JSON"},
                                           {"markdown", NULL, "the table of docs/config.md"},
                                           {0}},
    .run = run,
};
