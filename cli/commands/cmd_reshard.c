/* cmd_reshard.c - `weft reshard`: a checkpoint from any layout to any layout. */
#include "common/checkpoints.h"
#include "common/launched.h"
#include "common/progress.h"
#include "reshard/report.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

struct state {
    struct reshard_report report;
    struct cli_launched launched;
    const weft_reshard *plan; /* that runs */
};

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    struct state *state = user;
    weft_reshard_info info = {.struct_size = sizeof info};
    uint64_t ranks = (uint64_t)state->launched.size; /* others write as many bytes */

    if (weft_reshard_get(state->plan, &info) != WEFT_OK) info.resumed = 0;
    done *= ranks;
    reshard_report_progress(&state->report, done < total ? done : total, info.resumed * ranks,
                            total);
    return interrupted == 0;
}

static weft_status on_combine(void *user, size_t count, uint64_t *values)
{
    const struct state *state = user;

    return cli_launched_sum(&state->launched, count, values);
}

static weft_status run_plan(weft_reshard *plan, struct state *state, const weft_reshard_info *info,
                            uint64_t *nanoseconds)
{
    struct sigaction action = {.sa_handler = on_interrupt}, before;
    weft_status status;

    state->plan = plan;
    reshard_report_begin(&state->report, info);
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
    cli_progress_begin();
    status = weft_reshard_run(plan);
    cli_progress_end();
    sigaction(SIGINT, &before, NULL);
    *nanoseconds = wf_now_ns() - state->report.begun_ns;
    return status;
}

struct request {
    const char *from, *to;
    struct cli_rules rules;
    weft_reshard_options options;
    bool dry_run;
    struct cli_checkpoint opened; /* closed, but after a failure it says whether it was missing */
    struct state state;
    int exit_code; /* of printing the plan */
};

static bool read_request(const struct cli_command *command, const struct cli_args *args,
                         struct request *request)
{
    int64_t memory, jobs, file;

    if (args->rest_count != 2) {
        fprintf(stderr, "weft %s: %s missing; for example:\n  %s\n", command->name,
                args->rest_count == 1 ? "TO, the target, is"
                                      : "FROM, the source, and TO, the target, are",
                command->example);
        return false;
    }
    if (!cli_size(command, args, "memory-limit", 0, &memory) ||
        !cli_size(command, args, "file-size", 0, &file) ||
        !cli_int(command, args, "jobs", 1, 1024, 0, &jobs))
        return false;
    *request = (struct request){
        .from = args->rest[0], .to = args->rest[1], .dry_run = cli_has(command, args, "dry-run")};
    request->state.report = (struct reshard_report){
        .command = command, .path = request->to, .as_json = cli_has(command, args, "json")};
    request->options = (weft_reshard_options){.struct_size = sizeof request->options,
                                              .replace = cli_has(command, args, "force"),
                                              .checksums = cli_has(command, args, "verify"),
                                              .keep = true,
                                              .resume = cli_has(command, args, "resume"),
                                              .file_bytes = (uint64_t)file,
                                              .memory = (uint64_t)memory,
                                              .jobs = (int32_t)jobs,
                                              .progress = on_progress};
    return true;
}

static weft_status print_plan(struct request *request, weft_reshard *plan,
                              const weft_reshard_info *info)
{
    uint64_t predicted = 0;

    if (request->state.report.is_silent) return WEFT_OK;
    WF_TRY(weft_reshard_predict(plan, &predicted));
    request->exit_code = reshard_report_plan(&request->state.report, plan, info, predicted);
    if (!request->options.replace && access(request->to, F_OK) == 0)
        fprintf(stderr, "weft %s: %s exists already; the run needs --force\n",
                request->state.report.command->name, request->to);
    return WEFT_OK;
}

static weft_status reshard(struct request *request, weft_reshard_info *info, uint64_t *nanoseconds)
{
    const weft_checkpoint *in = NULL;
    weft_reshard *plan = NULL;
    weft_status status = cli_checkpoint_open(request->from, &request->rules, &request->opened, &in);

    request->options.user = &request->state;
    request->state.report.is_silent = request->state.launched.rank != 0;
    if (status == WEFT_OK) status = weft_reshard_create(in, request->to, &request->options, &plan);
    if (status == WEFT_OK) status = weft_reshard_get(plan, info);
    if (status == WEFT_OK && request->dry_run) {
        status = print_plan(request, plan, info);
    } else if (status == WEFT_OK) {
        weft_status told;
        status = run_plan(plan, &request->state, info, nanoseconds);
        told = weft_reshard_get(plan, info); /* what is resumed, or kept */
        if (status == WEFT_OK) status = told;
    }
    weft_reshard_release(&plan);
    cli_checkpoint_close(&request->opened);
    return status;
}

/* After a failure: how to go on. */
static void explain_resume(const struct cli_command *command, const struct request *request,
                           const weft_reshard_info *info)
{
    struct wf_text journal = {0};

    wf_text_add(&journal, "%s.weft-journal", request->to);
    if (request->state.launched.size > 1 && wf_text_status(&journal) == WEFT_OK &&
        access(journal.data, F_OK) == 0)
        fprintf(stderr,
                "weft %s: what the ranks have done is kept in %s.weft-partial; the same command "
                "with --resume continues\n",
                command->name, request->to);
    else if (info->kept > 0)
        fprintf(stderr,
                "weft %s: %" PRIu64 " of %" PRIu64
                " steps are done and kept in %s.weft-partial; the same command with --resume "
                "continues\n",
                command->name, info->kept, info->steps, request->to);
    wf_text_free(&journal);
}

/* Under a launcher, the ranks divide the work. */
static weft_status join_ranks(struct request *request)
{
    struct cli_launched *launched = &request->state.launched;

    WF_TRY(cli_launched_join(launched));
    if (launched->size == 1) return WEFT_OK;
    request->options.part = launched->rank;
    request->options.parts = launched->size;
    request->options.combine = on_combine;
    return WEFT_OK;
}

static int report_failure(const struct cli_command *command, const struct request *request,
                          const weft_reshard_info *info, weft_status status)
{
    int exit_code = CLI_INTERRUPTED;

    reshard_report_failed(&request->state.report, info, status, interrupted != 0);
    if (interrupted)
        fprintf(stderr, "weft %s: interrupted; there is nothing new at %s\n", command->name,
                request->to);
    else
        exit_code = cli_checkpoint_fail(command, &request->opened, status);
    explain_resume(command, request, info);
    return exit_code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    weft_reshard_info info = {.struct_size = sizeof info};
    uint64_t nanoseconds = 0;
    struct cli_args args;
    struct request request;
    weft_layout_file *layout = NULL;
    weft_status status;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (!read_request(command, &args, &request)) return CLI_USAGE;
    status = cli_layout_open(command, &args, &layout);
    if (status == WEFT_OK) status = cli_rules_open(command, &args, &request.rules);
    if (status != WEFT_OK) {
        cli_fail(command, status);
        cli_rules_close(&request.rules);
        weft_layout_file_release(&layout);
        return CLI_USAGE;
    }
    request.options.layout = layout;
    status = join_ranks(&request);
    if (status == WEFT_OK) status = reshard(&request, &info, &nanoseconds);
    if (status == WEFT_OK) status = cli_launched_leave(&request.state.launched);
    weft_layout_file_release(&layout);
    cli_rules_close(&request.rules);
    if (status != WEFT_OK) return report_failure(command, &request, &info, status);
    if (request.dry_run) return request.exit_code;
    return reshard_report_done(&request.state.report, &info, nanoseconds);
}

const struct cli_command cli_reshard = {
    .name = "reshard",
    .summary = "write a checkpoint in another layout",
    .arguments = "FROM TO [options]",
    .example = "weft reshard Llama-3-8B out --layout llama.layout",
    .rest_max = 2,
    .page = "checkpoints.md",
    .options =
        (const struct cli_option[]){
            {"layout", "FILE",
             "write a file per rank in this layout (default: whole tensors, as a Hugging Face "
             "folder, or one file if TO ends in .safetensors)",
             0},
            CLI_MESH, /* in place of that of the layout */
            CLI_MESH_RANKS,
            CLI_RULES,
            CLI_MEMORY_LIMIT("the most memory for buffers (default: 256M)"),
            {"jobs", "N", "threads (default: one per processor, at most 16)", 'j'},
            {"file-size", "SIZE", "the most bytes of tensors in a file (default: 5,000,000,000)",
             0},
            {"verify", NULL, "write weft.json, with which `weft verify TO` checks every tensor", 0},
            {"force", NULL, "replace a checkpoint at TO", 0},
            {"resume", NULL, "continue a run that failed or was killed, or begin one", 0},
            {"dry-run", NULL, "print the plan only", 0},
            CLI_JSON,
            {0}},
    .run = run,
};
