/* cmd_conform.c - `weft conform`: runs the conformance kit on a plugin and reports. */
#include "common/cli.h"

#include "common/children.h"
#include "common/progress.h"
#include "team/run.h"

#include <stdlib.h>
#include <string.h>

static void print_level(const struct kit_progress *progress, int level)
{
    const struct kit_level_result *result = &progress->levels[level];
    uint32_t passed = atomic_load(&result->passed), failed = atomic_load(&result->failed);
    uint32_t lost = atomic_load(&result->lost);

    if (passed + failed + lost == 0 && result->skipped[0] == '\0') return; /* not requested */
    cli_progress_clear();
    printf("%-12s", kit_levels[level].name);
    if (passed + failed + lost == 0) {
        printf(" not run: %s\n", result->skipped);
        return;
    }
    printf(" %5u passed", passed);
    if (failed > 0)
        printf(", %s%u failed%s", cli_colour(stdout, CLI_RED), failed,
               cli_colour(stdout, CLI_PLAIN));
    if (lost > 0) printf(", %u not run after that", lost);
    printf("%s%s%s\n", result->skipped[0] != '\0' ? " (" : "", result->skipped,
           result->skipped[0] != '\0' ? ")" : "");
    fflush(stdout);
}

/* The running level is the first one that is not done. */
static void show_progress(const struct kit_progress *progress)
{
    int level = 0;

    while (level < (int)kit_level_count && atomic_load(&progress->levels[level].done))
        level++;
    if (level == (int)kit_level_count) return;
    cli_progress_of((uint64_t)level, kit_level_count, "%s: %u cases", kit_levels[level].name,
                    atomic_load(&progress->levels[level].passed) +
                        atomic_load(&progress->levels[level].failed));
}

struct totals {
    uint32_t passed, failed, lost;
};

static struct totals add_up(const struct kit_progress *progress)
{
    struct totals totals = {0};

    for (size_t i = 0; i < kit_level_count; i++) {
        totals.passed += atomic_load(&progress->levels[i].passed);
        totals.failed += atomic_load(&progress->levels[i].failed);
        totals.lost += atomic_load(&progress->levels[i].lost);
    }
    return totals;
}

static bool all_well(const struct kit_progress *progress)
{
    struct totals totals = add_up(progress);

    return totals.failed == 0 && totals.lost == 0 && totals.passed > 0;
}

static void print_failures(const struct kit_options *options, const struct kit_progress *progress)
{
    uint32_t count = atomic_load(&progress->failure_count);

    for (uint32_t i = 0; i < count && i < KIT_MAX_FAILURES; i++)
        printf("\n%sFAILED%s %s\n       rank %d: %s\n", cli_colour(stdout, CLI_RED),
               cli_colour(stdout, CLI_PLAIN), progress->failures[i].name,
               progress->failures[i].rank, progress->failures[i].text);
    if (count > KIT_MAX_FAILURES) printf("\nand %u more failures\n", count - KIT_MAX_FAILURES);
    if (count == 0) return;
    printf("\nrun one alone: weft conform %s --ranks %d", options->backend, options->ranks);
    if (options->hosts > 1) printf(" --hosts %d", options->hosts);
    printf("%s --only '%s'\n", options->threads ? " --threads" : "", progress->failures[0].name);
}

static void print_end(const struct kit_options *options, const struct kit_progress *progress,
                      double seconds)
{
    struct totals totals = add_up(progress);

    print_failures(options, progress);
    if (progress->stopped[0] != '\0') printf("\n%s\n", progress->stopped);
    if (totals.failed == 0 && totals.passed == 0)
        printf("no case was run%s%s\n", options->only != NULL ? "; no case has the name " : "",
               options->only != NULL ? options->only : "");
    else if (all_well(progress))
        printf("%spassed%s: %u case%s in %.1f s\n", cli_colour(stdout, CLI_GREEN),
               cli_colour(stdout, CLI_PLAIN), totals.passed, WF_PLURAL(totals.passed), seconds);
    else
        printf("%sfailed%s: %u of %u cases in %.1f s\n", cli_colour(stdout, CLI_RED),
               cli_colour(stdout, CLI_PLAIN), totals.failed, totals.passed + totals.failed,
               seconds);
}

static void json_levels(struct wf_json *json, const struct kit_progress *progress)
{
    wf_json_begin(json, "levels", '[');
    for (size_t i = 0; i < kit_level_count; i++) {
        const struct kit_level_result *result = &progress->levels[i];
        wf_json_begin(json, NULL, '{');
        wf_json_string(json, "name", kit_levels[i].name);
        wf_json_uint(json, "passed", atomic_load(&result->passed));
        wf_json_uint(json, "failed", atomic_load(&result->failed));
        wf_json_uint(json, "passed_over", atomic_load(&result->lost));
        wf_json_string(json, "skipped", result->skipped[0] != '\0' ? result->skipped : NULL);
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
}

static void json_report(struct wf_text *text, const struct kit_options *options,
                        const struct kit_progress *progress, double seconds)
{
    struct wf_json json = {.out = text};
    uint32_t count = atomic_load(&progress->failure_count);
    struct totals totals = add_up(progress);

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "plugin", progress->plugin.name);
    wf_json_string(&json, "version", progress->plugin.version);
    wf_json_string(&json, "file", progress->plugin.file);
    wf_json_int(&json, "ranks", options->ranks);
    wf_json_string(&json, "ranks_as", options->threads ? "threads" : "processes");
    wf_json_uint(&json, "seed", options->seed);
    wf_json_bool(&json, "conforms", all_well(progress));
    wf_json_uint(&json, "passed", totals.passed);
    wf_json_uint(&json, "failed", totals.failed);
    wf_json_uint(&json, "passed_over", totals.lost);
    wf_json_real(&json, "seconds", seconds);
    wf_json_string(&json, "stopped", progress->stopped[0] != '\0' ? progress->stopped : NULL);
    json_levels(&json, progress);
    wf_json_begin(&json, "failures", '[');
    for (uint32_t i = 0; i < count && i < KIT_MAX_FAILURES; i++) {
        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "case", progress->failures[i].name);
        wf_json_int(&json, "rank", progress->failures[i].rank);
        wf_json_string(&json, "text", progress->failures[i].text);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

/* Run the kit and print its report. */
static int run_kit(const struct cli_command *command, const struct kit_options *options, bool json)
{
    struct kit_program program = {
        .fork = cli_fork, .level_done = json ? NULL : print_level, .tick = show_progress};
    struct kit_progress *progress = kit_progress_make();
    uint64_t start = wf_now_ns();
    struct wf_text text = {0};
    double seconds;
    bool started;
    int exit_code;

    if (progress == NULL) return cli_fail(command, wf_fail_memory(sizeof *progress));
    if (!json)
        printf("%s, %d rank%s as %s, seed %llu\n", options->backend, options->ranks,
               WF_PLURAL(options->ranks), options->threads ? "threads" : "processes",
               (unsigned long long)options->seed);
    cli_progress_begin();
    started = kit_team_run(options, &program, progress);
    cli_progress_end();
    if (!started) {
        kit_progress_free(progress);
        return CLI_ENVIRONMENT;
    }
    seconds = (double)(wf_now_ns() - start) * 1e-9;
    exit_code = all_well(progress) ? CLI_OK : CLI_NO;
    if (json) {
        json_report(&text, options, progress, seconds);
        if (cli_print(command, stdout, &text) != CLI_OK) exit_code = CLI_ENVIRONMENT;
    } else {
        print_end(options, progress, seconds);
    }
    kit_progress_free(progress);
    return exit_code;
}

/* False after a complaint: LEVEL, or what --only starts with, is not a level. */
static bool check_level(const struct cli_command *command, const char *option, const char *name)
{
    const char *names[KIT_MAX_LEVELS];
    char word[64];
    int nearest;

    if (name == NULL || name[0] == '*' || kit_level_find(name, strcspn(name, "/")) >= 0)
        return true;
    for (size_t i = 0; i < kit_level_count; i++)
        names[i] = kit_levels[i].name;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, "/"), name);
    nearest = wf_nearest(word, names, kit_level_count);
    fprintf(stderr, "weft %s: %s: there is no level \"%s\"", command->name, option, word);
    if (nearest >= 0) fprintf(stderr, "; did you mean \"%s\"?", names[nearest]);
    fprintf(stderr, "%s the levels are", nearest >= 0 ? "" : ";");
    for (size_t i = 0; i < kit_level_count; i++)
        fprintf(stderr, "%s %s", i == 0 ? "" : i + 1 < kit_level_count ? "," : " and", names[i]);
    fprintf(stderr, "\n");
    return false;
}

static bool is_assignment(const char *text)
{
    struct wf_scan scan = {text, 0};
    const char *name;
    size_t length;

    return strlen(text) <= 200 && wf_scan_name(&scan, &name, &length) && wf_scan_char(&scan, '=');
}

static int list_levels(void)
{
    for (size_t i = 0; i < kit_level_count; i++)
        printf("%-12s %s\n", kit_levels[i].name, kit_levels[i].summary);
    return CLI_OK;
}

static bool read_options(const struct cli_command *command, const struct cli_args *args,
                         struct kit_options *out)
{
    int64_t ranks, hosts, seed, timeout, patience;

    if (!cli_int(command, args, "ranks", 1, KIT_MAX_RANKS, 4, &ranks) ||
        !cli_int(command, args, "hosts", 1, ranks, 1, &hosts) ||
        !cli_int(command, args, "seed", 0, INT64_MAX, 1, &seed) ||
        !cli_int(command, args, "comm-timeout", 1, 3600, 10, &timeout) ||
        !cli_int(command, args, "patience", 1, 100, 1, &patience))
        return false;
    *out = (struct kit_options){.backend = args->rest[0],
                                .ranks = (int32_t)ranks,
                                .hosts = (int32_t)hosts,
                                .threads = cli_has(command, args, "threads"),
                                .level = cli_value(command, args, "level"),
                                .only = cli_value(command, args, "only"),
                                .skip = cli_value(command, args, "skip"),
                                .rank_env = cli_value(command, args, "rank-env"),
                                .seed = (uint64_t)seed,
                                .timeout_ns = timeout * KIT_SECOND,
                                .patience = patience};
    if (!check_level(command, "--level", out->level) ||
        !check_level(command, "--only", out->only) || !check_level(command, "--skip", out->skip))
        return false;
    if (out->rank_env == NULL || is_assignment(out->rank_env)) return true;
    fprintf(stderr, "weft %s: --rank-env is \"%s\"; expected NAME=VALUE of at most 200 bytes\n",
            command->name, out->rank_env);
    return false;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_args args;
    struct kit_options options;
    char *path;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (cli_has(command, &args, "levels"))
        return args.rest_count == 0 ? list_levels() : cli_fail_argument(command, args.rest[0]);
    if (args.rest_count == 0) {
        fprintf(stderr, "weft %s: give one plugin, by path or by name\n", command->name);
        return CLI_USAGE;
    }
    if (!read_options(command, &args, &options)) return CLI_USAGE;
    if (!cli_plugin(command, options.backend, &path, &exit_code)) return exit_code;
    options.backend = path;
    exit_code = run_kit(command, &options, cli_has(command, &args, "json"));
    free(path);
    return exit_code;
}

const struct cli_command cli_conform = {
    .name = "conform",
    .summary = "run the conformance kit on a plugin",
    .arguments = "PLUGIN [options] | --levels",
    .example = "weft conform ./libweft_plugin_mine.so --ranks 4\n"
               "  weft conform gloo-cpu --only 'collectives/all_reduce/*/sum'",
    .page = "writing-a-plugin.md",
    .options =
        (const struct cli_option[]){
            CLI_RANKS("ranks to start (default: 4)"),
            {"hosts", "N", "tell the plugin that ranks are on N hosts, in turn (default: 1)", 0},
            {"threads", NULL, "ranks are threads of one process, not processes", 0},
            {"level", "L", "run this level only", 0},
            {"levels", NULL, "list the levels", 0},
            {"only", "CASE", "run the cases under this name; * stands for any one part", 0},
            {"skip", "CASE", "leave out the cases under this name; * stands for any one part", 0},
            CLI_SEED,
            {"comm-timeout", "SECONDS", "time limit of communicators (default: 10)", 0},
            {"patience", "TIMES", "factor of the time after which a case is a hang (default: 1)",
             0},
            {"rank-env", "NAME=VALUE", "set this in each rank; {rank} stands for its number", 0},
            CLI_JSON,
            {0}},
    .rest_max = 1,
    .run = run,
};
