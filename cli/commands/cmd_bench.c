/* cmd_bench.c - `weft bench WHAT`: finds the benchmark and runs it.
 *
 * Each benchmark is a command of its own, named "bench WHAT", with its own options.  With --json
 * it prints one object, {"bench": WHAT, "rows": [...]}. */
#include "common/cli.h"

#include <string.h>

#define BENCH(name) extern const struct cli_command bench_##name;
#include "bench/benches.def"
#undef BENCH

const struct cli_command *const cli_benches[] = {
#define BENCH(name) &bench_##name,
#include "bench/benches.def"
#undef BENCH
};
const size_t cli_bench_count = WF_COUNT(cli_benches);

const char *cli_bench_what(const struct cli_command *bench)
{
    return strchr(bench->name, ' ') + 1;
}

static void print_help(const struct cli_command *command, FILE *file)
{
    fprintf(file, "weft %s - %s\n\nusage: weft %s %s\n\n", command->name, command->summary,
            command->name, command->arguments);
    for (size_t i = 0; i < WF_COUNT(cli_benches); i++)
        fprintf(file, "  %-14s %s\n", cli_bench_what(cli_benches[i]), cli_benches[i]->summary);
    fprintf(file, "\n`weft %s WHAT --help` shows a benchmark's options.\n\nexample:\n  %s\n\n",
            command->name, command->example);
    cli_print_page(file, command);
}

static int unknown_bench(const struct cli_command *command, const char *name)
{
    const char *names[WF_COUNT(cli_benches)];
    int nearest;

    for (size_t i = 0; i < WF_COUNT(cli_benches); i++)
        names[i] = cli_bench_what(cli_benches[i]);
    nearest = wf_nearest(name, names, WF_COUNT(cli_benches));
    fprintf(stderr, "weft %s: there is no benchmark \"%s\"", command->name, name);
    if (nearest >= 0) fprintf(stderr, "; did you mean \"%s\"?", names[nearest]);
    fprintf(stderr, "\n`weft %s --help` lists them.\n", command->name);
    return CLI_USAGE;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(command, argc < 2 ? stderr : stdout);
        return argc < 2 ? CLI_USAGE : CLI_OK;
    }
    for (size_t i = 0; i < WF_COUNT(cli_benches); i++)
        if (strcmp(argv[1], cli_bench_what(cli_benches[i])) == 0)
            return cli_benches[i]->run(cli_benches[i], argc - 1, argv + 1);
    return unknown_bench(command, argv[1]);
}

const struct cli_command cli_bench = {
    .name = "bench",
    .summary = "measure how fast weft is here",
    .arguments = "WHAT [options]",
    .example = "weft bench layout --json",
    .page = "performance.md",
    .options = (const struct cli_option[]){{0}},
    .run = run,
};
