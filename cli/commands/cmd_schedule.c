/* cmd_schedule.c - `weft schedule NAME`: the actions of a pipeline's ranks, and their times. */
#include "common/cli.h"

#include "common/describe.h"
#include "common/progress.h"
#include "schedule/drawing.h"
#include "schedule/request.h"

#include <stdlib.h>
#include <string.h>

/* Option and flag of weft_schedule_lower. */
static const struct {
    const char *option;
    uint32_t flag;
} passes[] = {{"sharded", WEFT_LOWER_SHARDED},
              {"reduce", WEFT_LOWER_REDUCE},
              {"merge", WEFT_LOWER_MERGE},
              {"late-receives", WEFT_LOWER_LATE},
              {"lower", 0}};

/* The schedule that the arguments name. */
static bool make(const struct cli_command *command, const struct cli_args *args,
                 weft_schedule **out, int *exit_code)
{
    int64_t ranks;

    *exit_code = CLI_USAGE;
    if (args->rest_count == 0) {
        fprintf(stderr,
                "weft schedule: give the name of a schedule, such as 1f1b, or a CSV file\n");
        return false;
    }
    if (schedule_is_file(args->rest[0])) {
        if (!cli_has(command, args, "ranks"))
            return schedule_read(command, args, args->rest[0], out, exit_code);
        cli_complain(command, "--ranks is for a schedule by name; a file has its own sizes");
        return false;
    }
    if (!cli_int(command, args, "ranks", 1, WEFT_SCHEDULE_RANKS, 4, &ranks)) return false;
    return schedule_make(command, args, args->rest[0], (int32_t)ranks, 2 * ranks, out, exit_code);
}

/* Replace *SCHEDULE by what the options make of it. */
static weft_status lower(const struct cli_command *command, const struct cli_args *args,
                         weft_schedule **schedule)
{
    weft_schedule *lowered = NULL;
    uint32_t flags = 0;
    bool wanted = false;

    for (size_t i = 0; i < WF_COUNT(passes); i++)
        if (cli_has(command, args, passes[i].option)) {
            flags |= passes[i].flag;
            wanted = true;
        }
    if (!wanted) return WEFT_OK;
    WF_TRY(weft_schedule_lower(*schedule, flags, &lowered));
    weft_schedule_release(schedule);
    *schedule = lowered;
    return WEFT_OK;
}

static weft_status print_csv(const weft_schedule *schedule, char *text, size_t size, size_t *needed)
{
    return weft_schedule_print(schedule, 0, text, size, needed);
}

static weft_status print_waits(const weft_schedule *schedule, char *text, size_t size,
                               size_t *needed)
{
    return weft_schedule_print(schedule, WEFT_SCHEDULE_PRINT_WAITS, text, size, needed);
}

static weft_status describe(const struct cli_command *command, const struct cli_args *args,
                            const weft_timeline *timeline, struct wf_text *out)
{
    if (cli_has(command, args, "waits")) {
        weft_schedule_info info = {.struct_size = sizeof info};

        WF_TRY(weft_schedule_get(weft_timeline_schedule(timeline), &info));
        if (!info.lowered)
            return wf_fail(WEFT_ERR_INVALID,
                           "--waits is for a schedule with sends; --lower adds them");
        DESCRIBE_ADD(print_waits, weft_timeline_schedule(timeline), out);
        return WEFT_OK;
    }
    if (cli_has(command, args, "csv")) {
        DESCRIBE_ADD(print_csv, weft_timeline_schedule(timeline), out);
        return WEFT_OK;
    }
    if (cli_has(command, args, "json")) {
        DESCRIBE_ADD(weft_timeline_json_print, timeline, out);
        wf_text_char(out, '\n');
        return WEFT_OK;
    }
    if (cli_has(command, args, "svg")) return schedule_add_svg(timeline, out);
    return schedule_add_text(timeline, out);
}

static int print(const struct cli_command *command, const struct cli_args *args,
                 weft_schedule **schedule, int64_t limit)
{
    weft_timeline_options options = {.struct_size = sizeof options,
                                     .memory_limit = (uint64_t)limit};
    weft_timeline *timeline = NULL;
    struct wf_text text = {0};
    weft_status status = lower(command, args, schedule);
    const char *path = cli_value(command, args, "svg");
    int exit_code;

    cli_progress_of(1, 3, "part 2 of 3: when ranks work");
    if (status == WEFT_OK) status = weft_timeline_create(*schedule, &options, &timeline);
    cli_progress_of(2, 3, "part 3 of 3: the text");
    if (status == WEFT_OK) status = describe(command, args, timeline, &text);
    cli_progress_end();
    weft_timeline_release(&timeline);
    if (status == WEFT_OK) return cli_print_to(command, path != NULL ? path : "-", &text);
    exit_code = cli_fail(command, status);
    wf_text_free(&text);
    return exit_code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    weft_schedule *schedule = NULL;
    struct cli_args args;
    int64_t limit;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (cli_has(command, &args, "json") + cli_has(command, &args, "csv") +
            cli_has(command, &args, "svg") >
        1) {
        fprintf(stderr, "weft schedule: give only one of --json, --csv and --svg\n");
        return CLI_USAGE;
    }
    if (cli_has(command, &args, "waits") && !cli_has(command, &args, "csv")) {
        fprintf(stderr, "weft schedule: --waits is for --csv\n");
        return CLI_USAGE;
    }
    if (!cli_int(command, &args, "limit", 1, INT64_MAX, 0, &limit)) return CLI_USAGE;
    cli_progress_begin();
    cli_progress_of(0, 3, "part 1 of 3: the schedule");
    if (!make(command, &args, &schedule, &exit_code)) {
        cli_progress_end();
        return exit_code;
    }
    exit_code = print(command, &args, &schedule, limit);
    weft_schedule_release(&schedule);
    return exit_code;
}

const struct cli_command cli_schedule = {
    .name = "schedule",
    .summary = "print the order in which a pipeline's ranks work, and when they are idle",
    .arguments = "NAME|FILE.csv [options]",
    .example = "weft schedule zbv --ranks 4 --microbatches 8",
    .page = "training/pipeline.md",
    .options =
        (const struct cli_option[]){
            CLI_RANKS("ranks of the pipeline (default: 4)"),
            {"chunks", "V", "stages on each rank (default: 1 or 2, as the schedule needs)", 0},
            {"microbatches", "N", "microbatches of a step (default: twice the ranks)", 0},
            {"lower", NULL, "add sends and receives", 0},
            {"sharded", NULL, "add UNSHARD and RESHARD too", 0},
            {"reduce", NULL, "add REDUCE_GRAD too", 0},
            {"merge", NULL, "make B of I and W that follow each other", 0},
            {"late-receives", NULL, "post each receive right before it is needed", 0},
            {"limit", "N", "refuse schedules with more than N activations on a rank", 0},
            {"csv", NULL, "print CSV, as PyTorch reads it", 0},
            {"waits", NULL, "print waits for sends too, which PyTorch 2.15 needs", 0},
            CLI_SVG,
            CLI_JSON,
            {0}},
    .rest_max = 1,
    .run = run,
};
