/* cmd_redistribute.c - `weft redistribute`: runs a plan on ranks of this host and checks every
 * element. */
#include "common/cli.h"

#include "common/local_ranks.h"
#include "common/progress.h"
#include "redistribute/report.h"

#include <unistd.h>

static bool read_job(const struct cli_command *command, const struct cli_args *args,
                     const struct request *request, struct job *out)
{
    int64_t needed = job_ranks_needed(request), ranks, iters;

    if (needed > LOCAL_RANKS_MAX) {
        fprintf(stderr,
                "weft %s: the meshes have %lld ranks, and the command starts at most %d; "
                "`weft sim` needs no ranks\n",
                command->name, (long long)needed, LOCAL_RANKS_MAX);
        return false;
    }
    if (!cli_int(command, args, "ranks", 1, LOCAL_RANKS_MAX, needed, &ranks) ||
        !cli_int(command, args, "iters", 1, 1000000, 0, &iters))
        return false;
    *out = (struct job){.request = request,
                        .costs_given = cli_has(command, args, "costs"),
                        .backend = cli_value(command, args, "backend"),
                        .ranks = (int32_t)ranks,
                        .packed = cli_has(command, args, "packed"),
                        .counted = cli_has(command, args, "counts"),
                        .form = cli_has(command, args, "json") ? PLAN_JSON : PLAN_LINES,
                        .iters = (uint64_t)iters,
                        .budget_ns = 100000000};
    return true;
}

/* Rank 0 fills its shard beside the other ranks, which may be more than the processors. */
static void begin_work(const struct job *job)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t weight =
        processors > 0 && processors < job->ranks ? (uint64_t)job->ranks / (uint64_t)processors : 1;
    uint64_t bytes = weft_spec_shard_bytes(job->request->from, 0);

    job->work->total = bytes / weft_dtype_bytes(weft_spec_dtype(job->request->from)) * weight +
                       WORK_CHECK * work_elements(job->request->to);
    work_begin(job->work, "moving the tensor on", job->ranks, weight);
}

static int carry_out(const struct cli_command *command, const struct cli_args *args,
                     struct job *job)
{
    struct report report = {
        .request = job->request, .ranks = job->ranks, .form = job->form, .work = job->work};
    weft_status status = shards_make(job->request->to, &job->results);
    int code;

    cli_progress_begin();
    begin_work(job);
    if (status == WEFT_OK) status = job_run(job, &report.outcome, &report.plan);
    code = status == WEFT_OK ? report_results(command, args, &report, &job->results) : CLI_NO;
    cli_progress_end();
    if (status != WEFT_OK) code = cli_fail(command, status);
    wf_text_free(&report.plan);
    shards_free(&job->results);
    return code;
}

/* The command starts its own ranks.  Under a launcher, each rank of the launcher would start
 * them. */
static bool stands_alone(const struct cli_command *command)
{
    weft_launch_info launch = {.struct_size = sizeof launch};
    weft_status status = weft_launch_get(&launch);

    if (status != WEFT_OK) {
        cli_fail(command, status);
        return false;
    }
    if (launch.size == 1) return true;
    fprintf(stderr,
            "weft %s: this is rank %d of %d of a job that %s started, but the command starts ranks "
            "itself; run it without the launcher, with --ranks %d, or set WEFT_LAUNCHER=none\n",
            command->name, launch.rank, launch.size, launch.launcher, launch.size);
    return false;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct request request;
    struct cli_args args;
    struct work work = {0};
    struct job job;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    if (!stands_alone(command)) return CLI_USAGE;
    if (!request_read(command, &args, &request, &code)) return code;
    code = CLI_USAGE;
    if (read_job(command, &args, &request, &job)) {
        job.work = &work;
        code = carry_out(command, &args, &job);
    }
    request_free(&request);
    return code;
}

const struct cli_command cli_redistribute = {
    .name = "redistribute",
    .summary = "move a tensor from one layout to another on ranks of this host, and check it",
    .arguments = "-n N --mesh M --from P --to P [--shape S] [options]",
    .example =
        "weft redistribute -n 4 --mesh 2x2 --shape 4096x4096 --from \"S(0),R\" --to \"R,S(1)\"",
    .page = "redistribution.md",
    .options =
        (const struct cli_option[]){
            CLI_RANKS("ranks to start on this host (default: as many as the meshes have)"),
            REQUEST_OPTIONS,
            CLI_BACKEND,
            {"iters", "K", "timed runs (default: as many as fit into 0.1 s)", 0},
            {"packed", NULL, "pack, send and unpack, even where ranks share memory", 0},
            {"counts", NULL, "print how many operations one run makes on all ranks", 0},
            {"dump", "DIR", "write each rank's result to DIR/rank-K.npy", 0},
            CLI_JSON,
            {0}},
    .run = run,
};
