/* cmd_sim.c - `weft sim`: carries a plan out for every rank in one thread, and checks every
 * element. */
#include "common/cli.h"

#include "redistribute/report.h"
#include "redistribute/values.h"
#include "weft/exec.h"

static weft_status simulate(const struct request *request, struct report *report,
                            struct shards *sources, struct shards *targets)
{
    struct values values = values_between(request->from, request->to);
    struct bench_times *times = &report->outcome.times;
    weft_plan *plan = NULL;
    uint64_t begun;
    weft_status status;

    WF_TRY(weft_plan_create(request->from, request->to, &request->options, &plan));
    status = weft_plan_print(plan, report->outcome.plan, sizeof report->outcome.plan, NULL);
    for (int32_t i = 0; i < weft_mesh_size(request->mesh); i++)
        values_fill(&values, request->from, weft_mesh_rank_at(request->mesh, i), NULL,
                    sources->at[i]);
    begun = wf_now_ns();
    if (status == WEFT_OK)
        status = weft_simulate(plan, (const void *const *)sources->at, targets->at);
    *times = (struct bench_times){.median_ns = wf_now_ns() - begun, .samples = 1, .calls = 1};
    times->min_ns = times->p99_ns = times->median_ns;
    weft_plan_release(&plan);
    return status;
}

static int carry_out(const struct cli_command *command, const struct cli_args *args,
                     const struct request *request)
{
    struct report report = {
        .request = request, .ranks = job_ranks_needed(request), .simulated = true};
    struct shards sources = {0}, targets = {0};
    weft_status status = shards_make(request->from, &sources);
    int code;

    if (status == WEFT_OK) status = shards_make(request->to, &targets);
    if (status == WEFT_OK) status = simulate(request, &report, &sources, &targets);
    code = status == WEFT_OK ? report_results(command, args, &report, &targets) : cli_fail(command);
    shards_free(&sources);
    shards_free(&targets);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct request request;
    struct cli_args args;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    if (!request_read(command, &args, &request, &code)) return code;
    code = carry_out(command, &args, &request);
    request_free(&request);
    return code;
}

const struct cli_command cli_sim = {
    .name = "sim",
    .summary = "move a tensor between layouts for all ranks in one thread, and check it",
    .arguments = "--mesh M --shape S --from P --to P [options]",
    .example = "weft sim --mesh 32x32 --shape 100x100 --from \"S(0),S(1)\" --to \"S(1),S(0)\"",
    .options =
        (const struct cli_option[]){REQUEST_OPTIONS,
                                    {"dump", "DIR", "write each rank's result to DIR/rank-K.npy"},
                                    {"json", NULL, "as JSON"},
                                    {0}},
    .run = run,
};
