/* cmd_version.c - `weft version`. */
#include "common/cli.h"

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_args args;
    struct wf_text text = {0};
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (cli_has(command, &args, "json")) {
        struct wf_json json = {.out = &text};
        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "version", weft_version());
        wf_json_uint(&json, "abi_major", WEFT_ABI_MAJOR);
        wf_json_uint(&json, "abi_minor", WEFT_ABI_MINOR);
        wf_json_end(&json, '}');
    } else {
        wf_text_add(&text, "weft %s, plugin ABI %u.%u", weft_version(), WEFT_ABI_MAJOR,
                    WEFT_ABI_MINOR);
    }
    wf_text_char(&text, '\n');
    return cli_print(command, stdout, &text);
}

const struct cli_command cli_version = {
    .name = "version",
    .summary = "print the versions of weft and of its plugin ABI",
    .arguments = "[--json]",
    .example = "weft version --json",
    .options = (const struct cli_option[]){CLI_JSON, {0}},
    .run = run,
};
